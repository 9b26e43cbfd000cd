/*
 * What this machine gives at best: how fast a crew reads memory, and how fast it multiplies while
 * nothing comes from memory.  Ceilings for whoever computes on it, of this very minute: a
 * neighbour's load is in them as it is in what is measured beside them.
 */
#ifndef BENCH_PEAKS_H
#define BENCH_PEAKS_H

#include <stddef.h>
#include <stdint.h>

enum peak_kind {
        PEAK_BYTES,   /* products of bytes, summed in 32 bits */
        PEAK_BFLOATS, /* of bfloats, summed in floats; without instructions for that: of floats */
        PEAK_FLOATS,
        PEAK_N,
};

struct peaks;

/* In so many threads, 0: one for each core we may run on; beside `bytes` of memory.  0 or negative errno. */
int peaks_open(uint32_t threads, size_t bytes, struct peaks **ret_peaks);
struct peaks *peaks_close(struct peaks *peaks); /* takes NULL */

uint32_t peaks_threads(const struct peaks *peaks);
const char *peaks_name(enum peak_kind kind); /* of the instructions */

/* Each takes some 20 ms at least.  Bytes a second; operations a second, a product and its sum being two. */
double peaks_read(struct peaks *peaks);
double peaks_multiply(struct peaks *peaks, enum peak_kind kind);

#endif
