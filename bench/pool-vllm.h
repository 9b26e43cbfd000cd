/*
 * vLLM's admission to the KV pool, simulated: no worst case is reserved.
 *
 * The rules are those of vLLM's scheduler (V1) with its defaults, but without its prefix cache:
 *
 *      First come, first served.  Running requests get rows first, the oldest first: one for a
 *      decode, or the rest of the prompt, as far as the token budget goes.
 *      A request takes blocks as its rows need them.  If no block is free, the youngest running
 *      request is preempted: it gives up all of its blocks and waits again, before all others.
 *      It keeps its tokens, and later computes all of them again.
 *      A waiting request is admitted if a slot, a row, and blocks for all of its tokens are free.
 *      These blocks are not reserved: it takes those of its first chunk.
 *
 * vLLM also admits no request in a step that has preempted one.  This follows from the rules above:
 * the request preempted last is the first to be admitted, and some of its blocks were needed.
 */
#ifndef BENCH_POOL_VLLM_H
#define BENCH_POOL_VLLM_H

#include "bench/pool-log.h"

/* Runs the whole trace; 0 or -ENOMEM.  The log must be new. */
int pool_vllm_run(const struct pool_world *world, struct pool_log *log);

#endif
