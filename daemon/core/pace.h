/*
 * Pace: limits the prompt rows of a step, so that prefill does not delay decodes too long.
 *
 * A client that reads a stream notices the longest gap between two tokens, and that gap
 * is one step.  So the bound is not on the mean, but on 99 steps of 100.  With prompt rows
 * in the same step, decodes take at most gap_ns.  If twice the time that they take alone is
 * more than gap_ns, that is the limit instead: otherwise less than one row would fit.  A 16th
 * of the limit is reserved for the work between steps.  The estimated time of a step is
 *
 *      alone + rows of prompts * (row + far * position / PACE_FAR) + slack
 *
 * All these values are learned from the steps that have run.  Until the first prompt row is
 * measured, a step gets at most 16 of them, and slack starts at a quarter of gap_ns.  So the
 * first chunks are small.
 *
 * *alone* is the time of a step of decodes only, with a separate value for each power of two of
 * the number of decodes.  Each step moves *alone* and *row* a quarter of the way to the
 * measured value.  *row* moves less if the step had fewer than 16 prompt rows.  *alone* moves
 * half of the way if steps with several prompt rows came before.  If a step took more than
 * one and a half times the known value, it counts as one and a half times.  When prompts
 * arrive without a pause, no step has decodes only.  So every sixteenth step that has both
 * gets one prompt row only, which is good enough to measure *alone*.
 *
 * *far*: a row attends to all positions before it, so it costs more at a later position.  At
 * the end of a long prompt it may cost five times as much.  One step gives one measured
 * value, and there are two unknowns, *row* and *far*.  The error is corrected in both, in
 * proportion to the weight of each.  So rows near the beginning of a prompt teach *row*, and
 * rows far from it teach *far*.
 *
 * *slack* is how much longer than estimated a step may take.  A step that takes even longer
 * raises slack at once by a 16th of the gap, however late it was.  A step that does not lowers
 * slack by a 99th of that amount.  So slack is stable when one step of a hundred is late, for
 * any reason.  The effect of a single slow step is gone after 99 steps.  Slack takes at
 * most half of the time that prompt rows could have.  Fewer rows do not help against
 * other programs that use the machine, and prompts must make progress in any case.
 *
 * The estimate cannot know of other work on the machine before that work has slowed a step.  If a
 * step may read several prompts, all their rows are estimated at the position of the furthest
 * one.  Nothing here reads the clock.
 */
#ifndef DAEMON_CORE_PACE_H
#define DAEMON_CORE_PACE_H

#include <stdint.h>

#define PACE_SIZES 16u
#define PACE_FAR   1024u /* positions */

struct pace {
        uint64_t gap_ns;            /* 0: no bound */
        uint64_t alone[PACE_SIZES]; /* ns of a step of 2^i decodes or more; 0: not measured yet */
        uint64_t row, far;          /* ns that a prompt row adds; row is 0: not measured yet */
        uint64_t slack;             /* ns */
        uint32_t mixed;             /* steps with both, since `alone` was last measured */
};

/* The rows of a step. */
struct pace_step {
        uint32_t decodes, prompts; /* rows of each kind */
        uint64_t before;           /* sum of the positions of the prompt rows */
};

void pace_init(struct pace *pace, uint64_t gap_ns);

/* Learns from a step that took `ns`. */
void pace_note(struct pace *pace, const struct pace_step *step, uint64_t ns);

/*
 * How many prompt rows a step may have beside `decodes` decodes, if the prompt continues at
 * `position`: from 1 to `most`.
 */
uint32_t pace_rows(const struct pace *pace, uint32_t decodes, uint32_t position, uint32_t most);

#endif
