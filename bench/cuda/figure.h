/*
 * Prints one line for each figure; contrib/gpu/report makes a page of these lines:
 *
 *      part TAB what TAB unit TAB predicted on an H100 TAB predicted on an H200
 *           TAB median TAB lowest TAB highest TAB share
 *
 * Predictions were made before anything ran on a GPU.  The share is the part of a limit that was
 * reached; the limit is that of the card that the program runs on.  A field without a value is
 * "-".  Each line is written as soon as it is known.
 */
#ifndef BENCH_CUDA_FIGURE_H
#define BENCH_CUDA_FIGURE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The limits of a GPU, as others have measured them. */
struct card {
        const char *name;
        double memory;   /* bytes/s of a copy, both directions counted */
        double products; /* operations/s, of bfloats */
        double l2;       /* bytes/s, a guess */
};

enum { CARD_H100, CARD_H200, CARDS };
extern const struct card cards[CARDS];

/*
 * Finds a card by the name that the driver gives a device.  An unknown device, or NULL, counts as
 * an H200.
 */
const struct card *card_of(const char *device);

/* 0: there is no prediction. */
struct prediction {
        double on[CARDS];
};

struct prediction prediction_of_all(double value); /* the same on each card */

/*
 * The predicted cost of a kernel in seconds beyond reading its bytes, if the next kernel begins
 * early.
 */
#define PREDICTED_GAP 0.9e-6

#define FIGURE_SAMPLE 4e-3 /* seconds that a sample takes, at least */

struct figure {
        double median, lowest, highest;
};

double figure_clock(void);                              /* seconds */
struct figure figure_of(double *samples, size_t count); /* sorts `samples` */
struct figure figure_times(struct figure f, double factor);
/* Turns seconds into a rate of `much` a second.  The lowest time becomes the highest rate. */
struct figure figure_rate(struct figure seconds, double much);

/* If f is NULL, nothing was measured; if share is 0, there is no share. */
void figure_tell(const char *part, const char *what, const char *unit, struct prediction predicted,
                 const struct figure *f, double share);

#ifdef __cplusplus
}
#endif

#endif
