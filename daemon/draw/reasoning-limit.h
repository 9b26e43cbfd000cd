/*
 * Reasoning limit: ends the reasoning of an answer that has as many tokens of it as it may have.
 *
 * It reads the tokens of the answer as its parts do (daemon/text/parts.h).  When reasoning_tokens
 * reaches the limit in reasoning, and the text so far is whole UTF-8, the next tokens are forced,
 * one after the other: those of a message, then those of the mark that ends reasoning.  In a
 * dialect of channels these are the end of the message, and the header of the answer.  If the model
 * writes no whole character, it waits for UTF8_TOKENS tokens and no longer.  The limit is that of
 * all reasoning of the answer: reasoning that is opened again behind it is ended at once.
 *
 * All of this is a pure function of the tokens, as a history is (history.h): a fork begins with a
 * new one.  If a forced token is not drawn, because a guide does not let it, the limit begins again
 * behind the token that was.  All memory is allocated at admission; the engine uses it.
 */
#ifndef DAEMON_DRAW_REASONING_LIMIT_H
#define DAEMON_DRAW_REASONING_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text/parts/dialect.h"

struct reasoning_limit;

struct reasoning_limit_conf {
        const struct dialect *dialect; /* has reasoning, and outlives it */
        const struct tokenizer *tokenizer;
        uint32_t tokens_max; /* 0: reasoning ends as soon as it is opened */
        bool calls_wanted;   /* as for parts_begin() */
        const char *message; /* copied */
        size_t message_bytes;
};

/* 0 or -ENOMEM. */
int reasoning_limit_new(const struct reasoning_limit_conf *conf, struct reasoning_limit **ret);
/* A new one with the same conf, of a sibling or fork.  `other` may be with the engine. */
int reasoning_limit_like(const struct reasoning_limit *other, struct reasoning_limit **ret);
struct reasoning_limit *reasoning_limit_free(struct reasoning_limit *limit); /* takes NULL */
/*
 * A fork goes on from the state of its parent, whose tokens it has.  By itself it would come to the
 * same state, but would have to read all tokens.
 */
void reasoning_limit_follow(struct reasoning_limit *limit, const struct reasoning_limit *other);
size_t reasoning_limit_bytes(const struct reasoning_limit *limit); /* NULL: 0 */

#define REASONING_LIMIT_NONE UINT32_MAX

/*
 * The token that must be drawn behind these `count` tokens, or REASONING_LIMIT_NONE.  The answer
 * begins at `answer`.  The tokens are those of the call before, and perhaps more.
 */
uint32_t reasoning_limit_next(struct reasoning_limit *limit, const uint32_t *tokens, uint32_t count,
                              uint32_t answer);

/* The next tokens are guesses; reasoning_limit_return() forgets them. */
void reasoning_limit_keep(struct reasoning_limit *limit);
void reasoning_limit_return(struct reasoning_limit *limit); /* no effect if none was kept */

/* Was one of these tokens forced?  False if no next token was ever asked for. */
bool reasoning_limit_is_used(struct reasoning_limit *limit, const uint32_t *tokens, uint32_t count);

#endif
