/*
 * Masks: the thread that makes the masks of requests with guides (daemon/constraint/guide.h).
 *
 * The engine asks for a mask when a request begins, and when it has made tokens.  With these it may
 * tell guesses at the next ones.  Then the thread also looks ahead along the guesses (guide.h).
 * The thread works on one question after the other.  It owns the guide, the grammar and all guides
 * of that grammar, as long as a request that uses them is with the engine.  The engine reads only
 * the masks and the state, and only between an answer and its next question.
 *
 * The engine never waits long for a mask.  A request whose mask does not come while the engine
 * waits is *late*.  It is left out of plans until its mask is there.  No wait is for that mask any
 * more, or for those of its next MASKS_LATE - 1 questions.
 *
 * Engine thread only, but for masks_start() and masks_join().
 */
#ifndef DAEMON_ENGINE_MASKS_H
#define DAEMON_ENGINE_MASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"

#define MASKS_LATE 16u

struct masks_take {
        const uint32_t *tokens, *guesses;
        uint32_t token_count, guess_count;
        uint32_t ahead_most; /* tokens that the thread looks ahead */
};

struct masks;

/* Starts the thread.  0, -ENOMEM, or the error of making a thread. */
int masks_start(uint32_t requests_max, struct masks **ret_masks);
/* When no question is open.  Takes NULL. */
struct masks *masks_join(struct masks *masks);

/* Asks for the first mask of a request. */
void masks_begin(struct masks *masks, struct request *request);
/* ... of a fork, whose parent has read all its tokens, or has asked for that. */
void masks_fork(struct masks *masks, struct request *request, struct request *parent);
/*
 * Asks for the mask behind these tokens.  The first was legal by the last mask; the others are
 * those that were ahead.
 */
void masks_take(struct masks *masks, struct request *request, const struct masks_take *take);
/* How long a mask takes, on average; 0: not known yet. */
float masks_ns(const struct masks *masks);

/* Questions without an answer, of any request. */
bool masks_are_open(const struct masks *masks);
/* Waits for the answers to those that are not late, and not longer than this. */
void masks_wait(struct masks *masks, uint64_t most_ns);
/* A request with an answer that was not told yet; NULL: there is none. */
struct request *masks_next(struct masks *masks);
/* Whether the request has no open question: the thread has let go of its guide. */
bool masks_is_idle(const struct masks *masks, const struct request *request);

#endif
