#include "daemon/core/pace.h"

#include <assert.h>

#define FIRST_CHUNK 16u /* rows, when nothing is known of what one adds */
#define MIXED_MOST  15u

static uint32_t size_of(uint32_t decodes)
{
        uint32_t size = 0;

        while (size + 1 < PACE_SIZES && decodes >> (size + 1))
                size++;
        return size;
}

/* A part of the way, weight of 64; what was not known is known at once. */
static void learn(uint64_t *known, uint64_t seen, uint64_t weight)
{
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

void pace_note(struct pace *pace, uint32_t decodes, uint32_t prompts, uint64_t ns)
{
        uint64_t before = alone(pace, decodes ? decodes : 1); /* the weights are read in any case */
        uint64_t *known = &pace->alone[size_of(decodes)];

        if (decodes && prompts <= 1) {
                learn(known, ns, pace->mixed ? 32 : 16);
                pace->mixed = 0;
        } else if (decodes) {
                pace->mixed++;
                if (ns < before)
                        *known = before = ns; /* alone they take no longer */
        }
        if (prompts && ns > before)
                learn(&pace->row, (ns - before) / prompts,
                      prompts < FIRST_CHUNK ? prompts : FIRST_CHUNK);
}

uint32_t pace_rows(const struct pace *pace, uint32_t decodes, uint32_t most)
{
        uint64_t step = alone(pace, decodes);
        uint64_t gap = 2 * step > pace->gap_ns ? 2 * step : pace->gap_ns;
        uint64_t rows = pace->row ? (gap - step) / pace->row : FIRST_CHUNK;

        assert(most > 0);
        if (!pace->gap_ns)
                return most;
        if (!rows || pace->mixed >= MIXED_MOST)
                return 1;
        return rows < most ? (uint32_t)rows : most;
}
