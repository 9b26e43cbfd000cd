/*
 * What was measured: rounds of samples in, one table out.
 *
 * A round's samples become its median and its 99th percentile.  Rounds of everything
 * are interleaved, so what the machine did meanwhile falls on all of it; the table
 * shows the median over rounds and how far they lie apart.  Nothing here judges:
 * the target stands beside the figure.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* One round of one row, which is made when it is first named; texts are kept, not copied.
 * Samples in ns, sorted in place.  The first twentieth is warming up and left out. */
void table_add(const char *group, const char *name, const char *target, uint32_t *samples,
               size_t count);

/* A round that has one figure only, as it is to be shown. */
void table_add_one(const char *group, const char *name, const char *target, double value);

/* ... and how much of its ceiling that is, and what the ceiling consists in. */
void table_add_share(const char *group, const char *name, const char *ceiling, double value,
                     double percent);

void table_print(void);

#endif
