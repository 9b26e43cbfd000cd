/*
 * The two costs that loading cannot avoid, each measured alone and as fast as this machine does
 * it:  reading `bytes` of a file, and getting that much memory.  The kernel clears each page
 * before the process gets it, and the host of a virtual machine has to find it first.
 *
 * Loading weights does both with the same processors.  So it takes at least the sum of both
 * times, even if it does nothing else.
 */
#ifndef BENCH_LOAD_PARTS_H
#define BENCH_LOAD_PARTS_H

#include <stdint.h>

/*
 * Both return seconds, or a negative errno.  `threads` 0: one for each core.  The file is read
 * into the same few pages again and again; memory is returned only when the process ends.
 */
double load_parts_read(uint32_t threads, const char *path, uint64_t bytes);
double load_parts_memory(uint32_t threads, uint64_t bytes);

#endif
