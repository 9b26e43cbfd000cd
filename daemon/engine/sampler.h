/*
 * The sampler: from what a request asked for to one row's pick, and from the
 * token that came back to what it means.
 *
 * Drawing itself is the backend's (kernels/draw.h); here is which numbers it
 * gets, and which tokens end a stream: the model's end tokens, unless ignored,
 * and the request's own stop ids.  Engine thread only, no state.
 */
#ifndef DAEMON_ENGINE_SAMPLER_H
#define DAEMON_ENGINE_SAMPLER_H

#include "daemon/core/sched.h"
#include "kernels/kernels.h"

/* position: of the token that will be picked, so that a repeated step draws the same. */
void sampler_pick(const struct request *request, uint32_t position, struct pick *ret_pick);

/* Stop strings are the detok's to see. */
enum sched_verdict sampler_judge(const struct request *request, uint32_t token);

#endif
