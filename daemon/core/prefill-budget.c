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
#define STEP_NS_MAX        (UINT64_C(1) << 36) /* about a minute, so that no product overflows */

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
static uint64_t decode_step_of(const struct prefill_budget *budget, uint32_t decode_rows)
{
        uint32_t size = size_class(decode_rows);

        for (uint32_t i = size + 1; i > 0; i--)
                if (budget->decode_step_ns[i - 1])
                        return budget->decode_step_ns[i - 1];
        for (uint32_t i = size + 1; i < PREFILL_SIZES; i++)
                if (budget->decode_step_ns[i])
                        return budget->decode_step_ns[i];
        return 0;
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
        /* At least 1 decode: a step reads the weights even without decodes. */
        uint64_t decodes_ns = decode_step_of(budget, decode_rows ? decode_rows : 1);
        uint64_t *known = &budget->decode_step_ns[size_class(decode_rows)], units = 0, added;

        if (ns > STEP_NS_MAX)
                ns = STEP_NS_MAX;
        if (prompt_rows)
                units = step->prompt_positions / prompt_rows / UNIT;
        added = prompt_rows * row_at(budget, units);
        if (decode_rows && prompt_rows && budget->row_ns)
                learn_slack(budget, decodes_ns, decodes_ns + added, ns);
        if (decode_rows && prompt_rows <= 1) {
                learn(known, ns > added ? ns - added : 1, budget->mixed_steps ? 32 : 16);
                budget->mixed_steps = 0;
        } else if (decode_rows) {
                budget->mixed_steps++;
                if (ns < decodes_ns)
                        *known = decodes_ns = ns; /* decodes alone take no longer than that */
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
