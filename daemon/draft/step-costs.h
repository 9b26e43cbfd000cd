/*
 * How long a step takes by its number of rows, as measured while it serves.
 *
 * Each number of rows up to STEP_COSTS_ROWS has the moving mean of its steps, which begins with the
 * mean of three.  Between numbers that were measured it is a straight line.  Below the least and
 * above the largest that were measured it is flat: so more rows cost nothing, are tried, and then
 * they are known.  Two rows may take less time than one, if they have a faster kernel.  A step that
 * was interrupted counts as a little longer than the mean.  A number that did not occur for
 * STEP_COSTS_KEPT steps is forgotten, and tried again: the machine may have other work, or less.
 */
#ifndef DAEMON_DRAFT_STEP_COSTS_H
#define DAEMON_DRAFT_STEP_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#define STEP_COSTS_ROWS 128u
#define STEP_COSTS_KEPT 1024u

struct step_costs {
        float mean_ns[STEP_COSTS_ROWS + 1]; /* by rows */
        uint32_t samples[STEP_COSTS_ROWS + 1];
        uint64_t steps, last_step[STEP_COSTS_ROWS + 1];
        float curve_ns[STEP_COSTS_ROWS + 1];
};

/* Was this number of rows measured?  A number above STEP_COSTS_ROWS never is. */
bool step_costs_known(const struct step_costs *costs, uint32_t rows);
/* A step with so many rows, all of which were for next tokens, took so long. */
void step_costs_note(struct step_costs *costs, uint32_t rows, uint64_t ns);
/*
 * 0: no number of rows is measured now.  Above STEP_COSTS_ROWS rows it goes on as steeply as the
 * upper half of the curve on average, and does not fall.
 */
float step_costs_ns(const struct step_costs *costs, uint32_t rows);

#endif
