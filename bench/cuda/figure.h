/*
 * One line for each figure, which contrib/gpu/report makes a page of:
 *
 *      part TAB what TAB unit TAB predicted TAB median TAB lowest TAB highest TAB share
 *
 * predicted is what was thought before anything had run, from the physical limits of an H200 (below);
 * share is what part of a limit was reached.  What there is none of is "-".  A line is out as soon as it is
 * known.
 */
#ifndef BENCH_CUDA_FIGURE_H
#define BENCH_CUDA_FIGURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An H200: bytes/s that were measured by others, of memory copied; bfloats multiplied, operations/s. */
#define LIMIT_MEMORY   4.3e12
#define LIMIT_PRODUCTS 790e12
#define LIMIT_L2       5.5e12 /* a guess */
/* What is predicted that a kernel costs beyond its bytes, where the one after it begins early. */
#define PREDICTED_GAP 0.9e-6

#define FIGURE_SAMPLE 4e-3 /* seconds that a sample takes, at least */

struct figure {
        double median, lowest, highest;
};

double figure_clock(void);                              /* seconds */
struct figure figure_of(double *samples, size_t count); /* they are sorted */
struct figure figure_times(struct figure f, double factor);
/* What a second makes of it: bytes/s of so many bytes.  The lowest time becomes the highest rate. */
struct figure figure_rate(struct figure seconds, double much);

/* predicted or share 0: there is none; f NULL: nothing was measured. */
void figure_tell(const char *part, const char *what, const char *unit, double predicted,
                 const struct figure *f, double share);

#ifdef __cplusplus
}
#endif

#endif
