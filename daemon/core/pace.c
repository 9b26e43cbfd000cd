#include "daemon/core/pace.h"

#include <assert.h>

#define FIRST_CHUNK  16u /* rows, when nothing is known of what one adds; and those that tell all */
#define MIXED_MOST   15u
#define IN_TIME      99u /* steps, for one that may be late */
#define RISE_PART    16u /* of the gap */
#define OUTSIDE_PART 16u
#define NS_MOST      (UINT64_C(1) << 36) /* a minute; so that no product here is too large */

/* Positions are counted in 16: a row at FAR_UNITS of them costs `far` more. */
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

/* How much more than was known a single step is believed; from next to nothing it goes up, too. */
static uint64_t believed(uint64_t known)
{
        return known / 2 + 1000;
}

/* A part of the way, weight of 64; what was not known is known at once. */
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

/* Of the nearest number of decodes that was seen: fewer before more, for they take less. */
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

/* What a step may take: a part of the gap lies outside of steps, where tokens are told and read. */
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
 * A row so far on took so long.  A least step that puts right what is wrong (as in the method of
 * Kaczmarz) moves `row` by 1 and `far` by f of 1 + f * f, if f * PACE_FAR is where it stood.
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

/* Of the time that rows of prompts might have. */
static uint64_t slack_most(uint64_t time)
{
        return time / 2;
}

/* Beside decodes that take so long alone, a step was to take so long and took so long. */
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
        uint64_t before = alone(pace, decodes ? decodes : 1); /* the weights are read in any case */
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
                        *known = before = ns; /* alone they take no longer */
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
                /* The last of them stands further on; on the mean, half as far. */
                rows = time / row_at(pace, (position + rows / 2) / UNIT);
        }
        if (!rows || pace->mixed >= MIXED_MOST)
                return 1;
        return rows < most ? (uint32_t)rows : most;
}
