#include "daemon/core/prefill-budget.h"

#include <assert.h>

/*
 * Prompt rows of a step while the cost of a row is not known.  A step with at least this many
 * also counts with full weight when `row_ns` is learned.
 */
#define FIRST_CHUNK        16u
#define MIXED_STEPS_MAX    15u
#define STEPS_IN_TIME      99u /* steps in time for each step that may be late */
#define SLACK_RISE_PART    16u /* part of the gap by which slack_ns rises */
#define BETWEEN_STEPS_PART 16u /* part of the gap that is reserved for the work between steps */
#define BASE_PART          16u /* part of a decode that does not depend on its position, at least */

/* Positions are counted in units of 16: a row at FAR_UNITS units costs `far_ns` more. */
#define UNIT      16u
#define FAR_UNITS (PREFILL_FAR / UNIT)

void prefill_budget_init(struct prefill_budget *budget, uint64_t token_gap_ns)
{
        *budget = (struct prefill_budget){ .token_gap_ns = token_gap_ns,
                                           .slack_ns = token_gap_ns / 4 };
}

static uint32_t size_class(uint32_t decode_rows)
{
        uint32_t size = 0;

        while (size + 1 < PREFILL_SIZES && decode_rows >> (size + 1))
                size++;
        return size;
}

/*
 * The largest increase over the known value that a single step is believed.  The constant allows
 * a value near 0 to grow as well.
 */
static uint64_t increase_max(uint64_t known)
{
        return known / 2 + 1000;
}

/* Moves weight / 64 of the way to `seen`.  A value not yet known is set to it at once. */
static void learn(uint64_t *known, uint64_t seen, uint64_t weight)
{
        if (*known && seen > *known + increase_max(*known))
                seen = *known + increase_max(*known);
        if (!seen)
                seen = 1;
        if (!*known)
                *known = seen;
        else if (seen > *known)
                *known += (seen - *known) / 64 * weight + 1;
        else
                *known -= (*known - seen) / 64 * weight;
}

/*
 * The time for the nearest measured number of decodes.  Smaller numbers come first, because they
 * take less time.
 */
static uint32_t measured_size(const struct prefill_budget *budget, uint32_t decode_rows)
{
        uint32_t size = size_class(decode_rows);

        for (uint32_t i = size + 1; i > 0; i--)
                if (budget->decode_step_ns[i - 1])
                        return i - 1;
        for (uint32_t i = size + 1; i < PREFILL_SIZES; i++)
                if (budget->decode_step_ns[i])
                        return i;
        return size; /* none is measured */
}

static uint64_t decode_step_of(const struct prefill_budget *budget, uint32_t decode_rows)
{
        return budget->decode_step_ns[measured_size(budget, decode_rows)];
}

/*
 * The time that a step may take.  A part of the gap lies between steps, where tokens are sent and
 * read.
 */
static uint64_t step_limit(const struct prefill_budget *budget, uint64_t step)
{
        uint64_t limit = 2 * step > budget->token_gap_ns ? 2 * step : budget->token_gap_ns;

        return limit - limit / BETWEEN_STEPS_PART;
}

static uint64_t row_at(const struct prefill_budget *budget, uint64_t units)
{
        return budget->row_ns + budget->far_ns * units / FAR_UNITS;
}

static uint64_t add_at_least(uint64_t known, int64_t by, uint64_t least)
{
        int64_t sum = (int64_t)known + by;

        return sum < (int64_t)least ? least : (uint64_t)sum;
}

/*
 * Learns from a row at `units` that took `seen`.  Let f * PREFILL_FAR be the position of the row.
 * The smallest step that corrects the error (as in the method of Kaczmarz) moves both values.
 * It moves `row_ns` by 1 / (1 + f * f) of the error, and `far_ns` by f / (1 + f * f) of it.
 */
static void learn_row(struct prefill_budget *budget, uint64_t units, uint64_t seen, uint32_t rows)
{
        const int64_t whole = 1024;
        uint64_t squares = FAR_UNITS * FAR_UNITS + units * units;
        int64_t to_row = (int64_t)(whole * FAR_UNITS * FAR_UNITS / squares);
        int64_t to_far = (int64_t)(whole * FAR_UNITS * units / squares);
        int64_t known = (int64_t)row_at(budget, units), wrong = (int64_t)seen - known;
        int64_t wrong_most = (int64_t)increase_max((uint64_t)known);
        int64_t weight = !budget->row_ns ? 64 : rows < FIRST_CHUNK ? rows : FIRST_CHUNK;

        if (budget->row_ns && wrong > wrong_most)
                wrong = wrong_most;
        wrong = wrong * weight / 64;
        budget->row_ns = add_at_least(budget->row_ns, wrong * to_row / whole, 1);
        budget->far_ns = add_at_least(budget->far_ns, wrong * to_far / whole, 0);
}

/* The part of the time of decodes that depends on their positions, which add up to `units`. */
static uint64_t decode_far_part(const struct prefill_budget *budget, uint64_t units)
{
        uint64_t ns = budget->decode_far_ns;

        return ns / FAR_UNITS * units + ns % FAR_UNITS * units / FAR_UNITS; /* does not overflow */
}

/* The other part: all that the decodes of a step share, and what each adds at its beginning. */
static uint64_t decode_base(const struct prefill_budget *budget, uint32_t decode_rows)
{
        uint32_t size = measured_size(budget, decode_rows);
        uint64_t step = budget->decode_step_ns[size], least = step / BASE_PART;
        uint64_t far = decode_far_part(budget, budget->decode_units[size]);

        return step - least > far ? step - far : least;
}

/* The estimated time of these decodes alone, at their positions. */
static uint64_t decodes_alone(const struct prefill_budget *budget, const struct prefill_step *step)
{
        /* At least 1 decode: a step reads the weights even without decodes. */
        return decode_base(budget, step->decode_rows ? step->decode_rows : 1) +
               decode_far_part(budget, step->decode_positions / UNIT);
}

/*
 * Learns from decodes whose positions add up to `units` and that took `seen`, where decodes of
 * `known_units` take `known`.  Corrects the error as learn_row() does, by f / (1 + f * f), where
 * f * PREFILL_FAR is the difference of the positions.
 */
static void learn_decode_far(struct prefill_budget *budget, uint64_t known, uint64_t known_units,
                             uint64_t units, uint64_t seen)
{
        const int64_t whole = 1 << 20, far = FAR_UNITS;
        int64_t more = (int64_t)units - (int64_t)known_units, most = (int64_t)increase_max(known);
        int64_t to_far = whole * far * more / (far * far + more * more);
        int64_t wrong = (int64_t)seen - (int64_t)known -
                        (int64_t)(budget->decode_far_ns / FAR_UNITS) * more;

        if (wrong > most)
                wrong = most;
        else if (wrong < -most)
                wrong = -most;
        budget->decode_far_ns = add_at_least(budget->decode_far_ns, wrong / 4 * to_far / whole, 0);
        if (budget->decode_far_ns > PREFILL_STEP_NS_MAX)
                budget->decode_far_ns = PREFILL_STEP_NS_MAX;
}

/* Learns from a step whose decodes took `ns`; `weight` is as in learn(). */
static void learn_decodes(struct prefill_budget *budget, const struct prefill_step *step,
                          uint64_t ns, uint64_t weight)
{
        uint32_t size = size_class(step->decode_rows);
        uint64_t units = step->decode_positions / UNIT, *known = &budget->decode_step_ns[size];
        uint64_t *known_units = &budget->decode_units[size];

        if (!*known) {
                *known_units = units;
        } else {
                learn_decode_far(budget, *known, *known_units, units, ns);
                if (units > *known_units)
                        *known_units += (units - *known_units) * weight / 64;
                else
                        *known_units -= (*known_units - units) * weight / 64;
        }
        learn(known, ns, weight);
}

/* The maximum of slack_ns, if prompt rows could have `time`. */
static uint64_t slack_max(uint64_t time)
{
        return time / 2;
}

/*
 * Learns from a step whose decodes alone take `decodes_ns`.  The step was estimated to take
 * `expected_ns`, and took `ns`.
 */
static void learn_slack(struct prefill_budget *budget, uint64_t decodes_ns, uint64_t expected_ns,
                        uint64_t ns)
{
        uint64_t of = step_limit(budget, decodes_ns), most = slack_max(of - decodes_ns);
        uint64_t rise = of / SLACK_RISE_PART, fall = rise / STEPS_IN_TIME;

        if (ns > expected_ns + budget->slack_ns)
                budget->slack_ns += rise;
        else
                budget->slack_ns -= budget->slack_ns < fall ? budget->slack_ns : fall;
        if (budget->slack_ns > most)
                budget->slack_ns = most;
}

void prefill_budget_learn(struct prefill_budget *budget, const struct prefill_step *step,
                          uint64_t ns)
{
        uint32_t decode_rows = step->decode_rows, prompt_rows = step->prompt_rows;
        uint64_t decodes_ns = decodes_alone(budget, step);
        uint64_t units = 0, added;

        assert(ns <= PREFILL_STEP_NS_MAX);
        if (prompt_rows)
                units = step->prompt_positions / prompt_rows / UNIT;
        added = prompt_rows * row_at(budget, units);
        if (decode_rows && prompt_rows && budget->row_ns)
                learn_slack(budget, decodes_ns, decodes_ns + added, ns);
        if (decode_rows && prompt_rows <= 1) {
                learn_decodes(budget, step, ns > added ? ns - added : 1,
                              budget->mixed_steps ? 32 : 16);
                budget->mixed_steps = 0;
        } else if (decode_rows) {
                budget->mixed_steps++;
                if (ns < decodes_ns) { /* decodes alone take no longer than that */
                        budget->decode_step_ns[size_class(decode_rows)] = decodes_ns = ns;
                        budget->decode_units[size_class(decode_rows)] =
                                step->decode_positions / UNIT;
                }
        }
        if (prompt_rows && ns > decodes_ns)
                learn_row(budget, units, (ns - decodes_ns) / prompt_rows, prompt_rows);
}

uint32_t prefill_budget_rows(const struct prefill_budget *budget, uint32_t decode_rows,
                             uint32_t position, uint32_t most)
{
        uint64_t step = decode_step_of(budget, decode_rows), time = step_limit(budget, step) - step,
                 rows = FIRST_CHUNK;

        assert(most > 0);
        if (!budget->token_gap_ns)
                return most;
        time -= budget->slack_ns < slack_max(time) ? budget->slack_ns : slack_max(time);
        if (budget->row_ns) {
                rows = time / row_at(budget, position / UNIT);
                rows = rows < most ? rows : most;
                /* Estimate all rows at the position of the middle one. */
                rows = time / row_at(budget, (position + rows / 2) / UNIT);
        }
        if (!rows || budget->mixed_steps >= MIXED_STEPS_MAX)
                return 1;
        return rows < most ? (uint32_t)rows : most;
}

static uint64_t at_most_a_step(uint64_t ns)
{
        return ns < PREFILL_STEP_NS_MAX ? ns : PREFILL_STEP_NS_MAX;
}

uint64_t prefill_budget_decode_cost(const struct prefill_budget *budget, uint32_t decode_rows,
                                    uint32_t position)
{
        uint64_t base = decode_base(budget, decode_rows);

        if (!base)
                return prefill_budget_prompt_cost(budget, position, 1);
        return at_most_a_step(base / decode_rows + 1 + decode_far_part(budget, position / UNIT));
}

uint64_t prefill_budget_prompt_cost(const struct prefill_budget *budget, uint32_t position,
                                    uint32_t count)
{
        uint64_t row = at_most_a_step(row_at(budget, (position + (uint64_t)count / 2) / UNIT));

        return count * (row ? row : 1);
}
