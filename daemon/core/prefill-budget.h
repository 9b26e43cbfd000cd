/*
 * Prefill budget: limits the prompt rows of a step, so that they do not delay decodes too long.
 *
 * A client that reads a stream notices the longest gap between two tokens, and that gap
 * is one step.  So the bound is not on the mean, but on 99 steps of 100.  With prompt rows
 * in the same step, decodes take at most token_gap_ns (the setting gap_ms).  If twice the time
 * that they take alone is more, that is the limit instead: otherwise less than one row would fit.
 * A 16th of the limit is reserved for the work between steps.  The estimated time of a step is
 *
 *      decode_step_ns + prompt rows * (row_ns + far_ns * position / PREFILL_FAR) + slack_ns
 *
 * All these values are learned from the steps that have run.  Until the first prompt row is
 * measured, a step gets at most 16 of them, and slack_ns starts at a quarter of token_gap_ns.
 * So the first chunks are small.
 *
 * decode_step_ns is the time of a step of decodes only, with a separate value for each power of
 * two of the number of decodes.  Each step moves decode_step_ns and row_ns a quarter of the way
 * to the measured value.  row_ns moves less if the step had fewer than 16 prompt rows.
 * decode_step_ns moves half of the way if steps with several prompt rows came before.  If a step
 * took more than one and a half times the known value, it counts as one and a half times.  When
 * prompts arrive without a pause, no step has decodes only.  So every sixteenth step that has
 * both gets one prompt row only, which is good enough to measure decode_step_ns.
 *
 * far_ns: a row attends to all positions before it, so it costs more at a later position.  At
 * the end of a long prompt it may cost five times as much.  One step gives one measured
 * value, and there are two unknowns, row_ns and far_ns.  The error is corrected in both, in
 * proportion to the weight of each.  So rows near the beginning of a prompt teach row_ns, and
 * rows far from it teach far_ns.
 *
 * slack_ns is how much longer than estimated a step may take.  A step that takes even longer
 * raises it at once by a 16th of the gap, however late the step was.  A step that does not
 * lowers it by a 99th of that amount.  So slack_ns is stable when one step of a hundred is late,
 * for any reason.  The effect of a single slow step is gone after 99 steps.  slack_ns takes at
 * most half of the time that prompt rows could have.  Fewer rows do not help against
 * other programs that use the machine, and prompts must make progress in any case.
 *
 * The estimate cannot know of other work on the machine before that work has slowed a step.  If a
 * step may read several prompts, all their rows are estimated at the position of the furthest
 * one.  Nothing here reads the clock.
 *
 * The same values say how the time of a step is divided among its rows (charge.c).  For that,
 * decodes need one value more.  decode_step_ns follows the context of the decodes that run, so a
 * decode far from its beginning costs more than its part of it.  decode_far_ns is how much more,
 * for each PREFILL_FAR positions.  It is learned from steps whose decodes have much more context
 * than the steps that taught decode_step_ns, or much less.
 */
#ifndef DAEMON_CORE_PREFILL_BUDGET_H
#define DAEMON_CORE_PREFILL_BUDGET_H

#include <stdint.h>

#define PREFILL_SIZES 16u
#define PREFILL_FAR   1024u /* positions */
/* About a minute, so that no product overflows.  A step that takes longer counts as that. */
#define PREFILL_STEP_NS_MAX (UINT64_C(1) << 36)

struct prefill_budget {
        uint64_t token_gap_ns; /* 0: no bound */
        /* of a step of 2^i decodes or more; 0: not measured yet */
        uint64_t decode_step_ns[PREFILL_SIZES];
        /* ... and the sum of their positions, divided by 16 */
        uint64_t decode_units[PREFILL_SIZES];
        uint64_t decode_far_ns; /* the time that a decode adds per PREFILL_FAR positions */
        /* the time that a prompt row adds; row_ns is 0: not measured yet */
        uint64_t row_ns, far_ns;
        uint64_t slack_ns;
        uint32_t mixed_steps; /* steps with both, since decode_step_ns was last measured */
};

/* The rows of a step. */
struct prefill_step {
        uint32_t decode_rows, prompt_rows; /* rows of each kind */
        /* sums of the positions of these rows */
        uint64_t decode_positions, prompt_positions;
};

void prefill_budget_init(struct prefill_budget *budget, uint64_t token_gap_ns);

/* Learns from a step that took `ns`, at most PREFILL_STEP_NS_MAX. */
void prefill_budget_learn(struct prefill_budget *budget, const struct prefill_step *step,
                          uint64_t ns);

/*
 * How many prompt rows a step may have beside `decode_rows` decodes, if the prompt continues at
 * `position`: from 1 to `most`.
 */
uint32_t prefill_budget_rows(const struct prefill_budget *budget, uint32_t decode_rows,
                             uint32_t position, uint32_t most);

/*
 * The estimated cost of a decode at `position` in a step of `decode_rows` decodes, with its part of
 * the time that all decodes of a step share.  At least 1.
 */
uint64_t prefill_budget_decode_cost(const struct prefill_budget *budget, uint32_t decode_rows,
                                    uint32_t position);
/* The estimated cost of `count` prompt rows from `position` on.  At least 1 a row. */
uint64_t prefill_budget_prompt_cost(const struct prefill_budget *budget, uint32_t position,
                                    uint32_t count);

#endif
