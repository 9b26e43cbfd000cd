#include "daemon/core/pace.h"

#include <assert.h>

/*
 * Prompt rows of a step while the cost of a row is not known.  A step with at least this many
 * also counts with full weight when `row` is learned.
 */
#define FIRST_CHUNK  16u
#define MIXED_MOST   15u
#define IN_TIME      99u /* steps in time for each step that may be late */
#define RISE_PART    16u /* part of the gap by which slack rises */
#define OUTSIDE_PART 16u /* part of the gap that is reserved for the work between steps */
#define NS_MOST      (UINT64_C(1) << 36) /* about a minute, so that no product overflows */

/* Positions are counted in units of 16: a row at FAR_UNITS units costs `far` more. */
#define UNIT      16u
#define FAR_UNITS (PACE_FAR / UNIT)

void pace_init(struct pace *pace, uint64_t gap_ns)
{
        *pace = (struct pace){ .gap_ns = gap_ns, .slack = gap_ns / 4 };
}

static uint32_t size_of(uint32_t decodes)
{
        uint32_t size = 0;

        while (size + 1 < PACE_SIZES && decodes >> (size + 1))
                size++;
        return size;
}

/*
 * The largest increase over the known value that a single step is believed.  The constant allows
 * a value near 0 to grow as well.
 */
static uint64_t believed(uint64_t known)
{
        return known / 2 + 1000;
}

/* Moves weight / 64 of the way to `seen`.  A value not yet known is set to it at once. */
static void learn(uint64_t *known, uint64_t seen, uint64_t weight)
{
        if (*known && seen > *known + believed(*known))
                seen = *known + believed(*known);
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
static uint64_t alone(const struct pace *pace, uint32_t decodes)
{
        uint32_t size = size_of(decodes);

        for (uint32_t i = size + 1; i > 0; i--)
                if (pace->alone[i - 1])
                        return pace->alone[i - 1];
        for (uint32_t i = size + 1; i < PACE_SIZES; i++)
                if (pace->alone[i])
                        return pace->alone[i];
        return 0;
}

/*
 * The time that a step may take.  A part of the gap lies between steps, where tokens are sent and
 * read.
 */
static uint64_t gap(const struct pace *pace, uint64_t step)
{
        uint64_t gap = 2 * step > pace->gap_ns ? 2 * step : pace->gap_ns;

        return gap - gap / OUTSIDE_PART;
}

static uint64_t row_at(const struct pace *pace, uint64_t units)
{
        return pace->row + pace->far * units / FAR_UNITS;
}

static uint64_t moved(uint64_t known, int64_t by, uint64_t least)
{
        int64_t sum = (int64_t)known + by;

        return sum < (int64_t)least ? least : (uint64_t)sum;
}

/*
 * Learns from a row at `units` that took `seen`.  Let f * PACE_FAR be the position of the row.
 * The smallest step that corrects the error (as in the method of Kaczmarz) moves both values.
 * It moves `row` by 1 / (1 + f * f) of the error, and `far` by f / (1 + f * f) of it.
 */
static void learn_row(struct pace *pace, uint64_t units, uint64_t seen, uint32_t rows)
{
        const int64_t whole = 1024;
        uint64_t squares = FAR_UNITS * FAR_UNITS + units * units;
        int64_t to_row = (int64_t)(whole * FAR_UNITS * FAR_UNITS / squares);
        int64_t to_far = (int64_t)(whole * FAR_UNITS * units / squares);
        int64_t known = (int64_t)row_at(pace, units), wrong = (int64_t)seen - known;
        int64_t wrong_most = (int64_t)believed((uint64_t)known);
        int64_t weight = !pace->row ? 64 : rows < FIRST_CHUNK ? rows : FIRST_CHUNK;

        if (pace->row && wrong > wrong_most)
                wrong = wrong_most;
        wrong = wrong * weight / 64;
        pace->row = moved(pace->row, wrong * to_row / whole, 1);
        pace->far = moved(pace->far, wrong * to_far / whole, 0);
}

/* The maximum of slack, if prompt rows could have `time`. */
static uint64_t slack_most(uint64_t time)
{
        return time / 2;
}

/*
 * Learns from a step whose decodes alone take `before`: it was estimated to take `reckoned`, and it
 * took `ns`.
 */
static void learn_slack(struct pace *pace, uint64_t before, uint64_t reckoned, uint64_t ns)
{
        uint64_t of = gap(pace, before), most = slack_most(of - before);
        uint64_t rise = of / RISE_PART, fall = rise / IN_TIME;

        if (ns > reckoned + pace->slack)
                pace->slack += rise;
        else
                pace->slack -= pace->slack < fall ? pace->slack : fall;
        if (pace->slack > most)
                pace->slack = most;
}

void pace_note(struct pace *pace, const struct pace_step *step, uint64_t ns)
{
        uint32_t decodes = step->decodes, prompts = step->prompts;
        /* At least 1 decode: a step reads the weights even without decodes. */
        uint64_t before = alone(pace, decodes ? decodes : 1);
        uint64_t *known = &pace->alone[size_of(decodes)], units = 0, added;

        if (ns > NS_MOST)
                ns = NS_MOST;
        if (prompts)
                units = step->before / prompts / UNIT;
        added = prompts * row_at(pace, units);
        if (decodes && prompts && pace->row)
                learn_slack(pace, before, before + added, ns);
        if (decodes && prompts <= 1) {
                learn(known, ns > added ? ns - added : 1, pace->mixed ? 32 : 16);
                pace->mixed = 0;
        } else if (decodes) {
                pace->mixed++;
                if (ns < before)
                        *known = before = ns; /* decodes alone take no longer than that */
        }
        if (prompts && ns > before)
                learn_row(pace, units, (ns - before) / prompts, prompts);
}

uint32_t pace_rows(const struct pace *pace, uint32_t decodes, uint32_t position, uint32_t most)
{
        uint64_t step = alone(pace, decodes), time = gap(pace, step) - step, rows = FIRST_CHUNK;

        assert(most > 0);
        if (!pace->gap_ns)
                return most;
        time -= pace->slack < slack_most(time) ? pace->slack : slack_most(time);
        if (pace->row) {
                rows = time / row_at(pace, position / UNIT);
                rows = rows < most ? rows : most;
                /* Estimate all rows at the position of the middle one. */
                rows = time / row_at(pace, (position + rows / 2) / UNIT);
        }
        if (!rows || pace->mixed >= MIXED_MOST)
                return 1;
        return rows < most ? (uint32_t)rows : most;
}
