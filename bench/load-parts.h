/*
 * What loading cannot do without, each alone and as fast as this machine does it: to read so many bytes
 * of a file, and to be given as much memory.  The kernel clears each page before it is ours, and a guest's
 * host has to find it first.  Whoever loads weights does both, with the same processors, so he takes as long as
 * both together, if he does nothing else.
 */
#ifndef BENCH_LOAD_PARTS_H
#define BENCH_LOAD_PARTS_H

#include <stdint.h>

/* In seconds, by so many threads, 0: one for each core; negative: -errno.  Read it is again and again into the
 * same few pages; memory is given back by the process's end alone. */
double load_parts_read(uint32_t threads, const char *path, uint64_t bytes);
double load_parts_memory(uint32_t threads, uint64_t bytes);

#endif
