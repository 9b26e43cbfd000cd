/*
 * The sampler: makes a row's pick parameters from a request, and judges the token that comes back.
 *
 * The backend does the sampling itself (kernels/draw.h).  This module chooses its parameters, and
 * knows which tokens end a stream: the model's end tokens, unless ignored, and the request's own
 * stop ids.  Engine thread only, no state.
 */
#ifndef DAEMON_ENGINE_SAMPLER_H
#define DAEMON_ENGINE_SAMPLER_H

#include "daemon/core/sched.h"
#include "daemon/draw/history.h"
#include "kernels/kernels.h"

/*
 * position: of the token to be picked, so that a repeated step draws the same token.  If the
 * request has a history, or a limit of reasoning, all tokens before must be known.  `space`: of a
 * row behind the first one of a run, whose tokens may be guesses; else NULL.
 */
void sampler_pick(const struct request *request, const struct pick_space *space, uint32_t position,
                  struct pick *ret_pick);
/* The draw that the request asks for, and no more: no masks, no rules, no numbers to be sent. */
void sampler_draw(const struct request *request, uint32_t position, struct pick *ret_pick);
/* Behind a run: its guesses are not known any more. */
void sampler_return(const struct request *request);

/*
 * The same for a score: the token at `position` of the prompt is taken, as if it had been drawn.
 * So its log probability has the bits that it would have then.
 */
void sampler_score(const struct request *request, uint32_t position, struct pick *ret_pick);

/* The surprise that a pick with mirostat has told of its token. */
void sampler_learn(struct request *request, float surprise);

/* Does not look at stop strings: the detok does. */
enum sched_verdict sampler_judge(const struct request *request, uint32_t token);

/* The index of the first of the request's stop tokens that is this one; their number if none is. */
uint32_t sampler_stop_token(const struct request *request, uint32_t token);

#endif
