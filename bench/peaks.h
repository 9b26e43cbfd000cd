/*
 * The best that this machine reaches: how fast a thread pool reads memory, and how fast it
 * multiplies while nothing comes from memory.  These are ceilings for programs that compute on it,
 * measured at this moment.  A neighbour's load affects them as much as it affects the benchmarks
 * run beside them.
 */
#ifndef BENCH_PEAKS_H
#define BENCH_PEAKS_H

#include <stddef.h>
#include <stdint.h>

enum peak_kind {
        PEAK_BYTES, /* products of bytes, summed in 32 bits */
        /*
         * products of bfloats, summed in floats; of floats, if there are no instructions for that
         */
        PEAK_BFLOATS,
        PEAK_FLOATS,
        PEAK_N,
};

struct peaks;

/*
 * Uses `threads` threads (0: one for each core that we may run on) and allocates `bytes` of
 * memory.  0 or a negative errno.
 */
int peaks_open(uint32_t threads, size_t bytes, struct peaks **ret_peaks);
struct peaks *peaks_close(struct peaks *peaks); /* takes NULL */

uint32_t peaks_threads(const struct peaks *peaks);
const char *peaks_name(enum peak_kind kind); /* of the instruction set */

/*
 * Each takes at least 20 ms or so.  Results are bytes per second and operations per second; a
 * product and its sum are two operations.
 */
double peaks_read(struct peaks *peaks);
double peaks_multiply(struct peaks *peaks, enum peak_kind kind);

#endif
