/*
 * Collects measurements: rounds of samples in, one table out.
 *
 * A round's samples become its median and its 99th percentile.  Rounds of different rows are
 * interleaved, so a disturbance of the machine affects all rows.  The table shows the median
 * over rounds and their spread.  It does not judge: the target stands beside the figure.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Adds one round of one row.  A row is created when it is first named.  Texts are kept, not
 * copied.  Samples are in ns and are sorted in place.  The first twentieth of them is warm-up
 * and left out.
 */
void table_add(const char *group, const char *name, const char *target, uint32_t *samples,
               size_t count);

/* Adds a round with a single figure, in the unit in which it is shown. */
void table_add_one(const char *group, const char *name, const char *target, double value);

/* ... and with its share of a ceiling, and the name of that ceiling. */
void table_add_share(const char *group, const char *name, const char *ceiling, double value,
                     double percent);

void table_print(void);

#endif
