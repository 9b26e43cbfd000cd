/*
 * Sampler chain: what a stream's draws do, in order, as words for the client.
 *
 * A sampler that changes nothing is left out, so the words are those that are in effect:
 *
 *      reasoning_limit   may force the token; nothing else is done then
 *      mask              a constraint, or rules of which tokens are legal
 *      bias penalties dry
 *      greedy            the likeliest token is taken; nothing follows
 *      n_sigma temperature top_k typical top_p min_p mirostat xtc
 *      draw
 *
 * With the order temperature_last, temperature stands before draw.  A dynamic one is
 * dynamic_temperature.  Loop thread only.
 */
#ifndef DAEMON_EDGE_SAMPLER_CHAIN_H
#define DAEMON_EDGE_SAMPLER_CHAIN_H

#include "daemon/core/request.h"

/* The request has its rules, and its guide if it has a constraint. */
void sampler_chain(const struct request *request, char ret_chain[SMV_CHAIN_BYTES]);

#endif
