/*
 * The text format of Prometheus, version 0.0.4: what is written, and histograms.  Pure functions.
 */
#ifndef BRIDGE_CORE_METRICS_TEXT_H
#define BRIDGE_CORE_METRICS_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "json/bytes.h"

#define HISTOGRAM_BOUNDS_MAX 32u

/* Bounds are upper ones, ascending; the last bucket, of all values, is not in them. */
struct histogram_bounds {
        size_t count;
        double at[HISTOGRAM_BOUNDS_MAX];
};

struct histogram {
        uint64_t buckets[HISTOGRAM_BOUNDS_MAX + 1]; /* values of this bucket alone */
        uint64_t count;
        double sum;
};

void histogram_note(struct histogram *histogram, const struct histogram_bounds *bounds,
                    double value);

struct metrics_writer {
        const char *prefix; /* of every name */
        struct bytes *to;
        int result; /* -ENOMEM: the rest is not written */
};

void metrics_put(struct metrics_writer *w, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void metrics_put_head(struct metrics_writer *w, const char *name, const char *type,
                      const char *help);
/* Without labels. */
void metrics_put_value(struct metrics_writer *w, const char *name, double value);
/* `labels` is "", or `a="b",c="d"`. */
void metrics_put_histogram(struct metrics_writer *w, const char *name, const char *labels,
                           const struct histogram *histogram,
                           const struct histogram_bounds *bounds);
/* Writes a text as the value of a label may have it, cut to the size.  Returns `to`. */
const char *metrics_escape(const char *text, char *to, size_t size);

#endif
