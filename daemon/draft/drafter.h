/*
 * A drafter: guesses at the next tokens of a request, and how likely they are to be right.
 *
 * It has three sources.  A prediction is a text that the client expects; a cursor goes along
 * it.  When the answer differs, the cursor goes on behind the token that differs, until the last
 * tokens show another place (places.h).  The second is what followed the last time when the end of
 * prompt and answer occurred before (suffix-tree.h).  The third are earlier answers to the same
 * user (answers.h), along which another cursor goes.  A prediction comes first, unless fewer than
 * two tokens before its cursor match; otherwise the longer match counts.  A draft model is another
 * source, which the caller runs (drafter_take).
 *
 * Nothing depends on a guess but time.  There is one for each slot, which begins again with each
 * request; all memory is allocated at the start.  The engine uses it.
 */
#ifndef DAEMON_DRAFT_DRAFTER_H
#define DAEMON_DRAFT_DRAFTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/draft/answers.h"
#include "daemon/draft/prediction.h"

#define DRAFT_MAX 16u

/* The chance of a draft model before any guess was tried, and again after a long time. */
#define DRAFTER_HOPE 0.8f

struct drafter;

/* A longer text is looked back at in part. */
#define DRAFTER_TOKENS_MAX 32768u

size_t drafter_bytes(uint32_t context);
/* For texts with as many tokens as the context.  0 or -ENOMEM. */
int drafter_new(uint32_t context, struct drafter **ret_drafter);
struct drafter *drafter_free(struct drafter *drafter); /* takes NULL */

enum draft_source {
        DRAFT_NONE,
        DRAFT_PREDICTION,
        DRAFT_REPEAT,
        DRAFT_ANSWERS,
        DRAFT_FORCED,
        DRAFT_MODEL,
        DRAFT_SOURCE_N,
};

struct draft {
        enum draft_source source;
        uint32_t count;
        uint32_t tokens[DRAFT_MAX];
        float survival[DRAFT_MAX]; /* the chance that this token and all before it are right */
};

struct drafter_text {
        uint32_t prompt_count, tokens_max;   /* of prompt and answer */
        uint32_t draft_max;                  /* tokens of a draft, at most; up to DRAFT_MAX */
        const struct prediction *prediction; /* NULL: there is none; outlives the request */
        struct answers *answers;             /* NULL: there are none; outlives the drafter */
        uint64_t domain;                     /* whose answers */
        float model_chance;                  /* what drafter_expects() begins with */
};
void drafter_begin(struct drafter *drafter, const struct drafter_text *text);

/*
 * Guesses what follows these `count` tokens of prompt and answer.  They are those of the call
 * before, and perhaps more.  A call costs some microseconds at most: a long prompt is read over
 * several calls, without a guess from it meanwhile.
 */
void drafter_propose(struct drafter *drafter, const uint32_t *tokens, uint32_t count,
                     struct draft *ret_draft);

/*
 * How likely a draft model's next token is to have a row here and to be right, as the last ones
 * were.  Behind drafter_propose().
 */
float drafter_expects(const struct drafter *drafter);
/*
 * A draft model has the token behind those of *draft, with this chance by its own numbers.  The
 * first one takes the place of the last proposal.
 */
void drafter_take(struct drafter *drafter, uint32_t token, float chance, struct draft *draft);

/* Tokens that the form of an answer leaves of a proposal, and adds to it. */
struct draft_form {
        const uint32_t *tokens;
        uint32_t count;
        uint32_t forced; /* the last so many were added: no other text is legal */
        uint32_t sure;   /* bit i: no other token is legal in place of token i */
};
/* Makes these the last proposal.  True: it was the draft model's, and none of it is left. */
bool drafter_form(struct drafter *drafter, const struct draft_form *form, struct draft *ret_draft);

/* How many tokens of the last proposal come from the prediction. */
uint32_t drafter_predicted(const struct drafter *drafter);

/*
 * Of the last proposal, `tried` tokens had a row, and the first `right` of them were right.  Not
 * called if none was tried, or if the answer ended by them.  True: they were those of the draft
 * model.
 */
bool drafter_learn(struct drafter *drafter, uint32_t tried, uint32_t right);
/*
 * No token of the last proposal had a row: it was not worth that.  The chance of its first token
 * returns slowly to what it was before any guess was tried.  A proposal counts once, if it is
 * passed several times.  Returns as above; false if it was passed before.
 */
bool drafter_pass(struct drafter *drafter);

#endif
