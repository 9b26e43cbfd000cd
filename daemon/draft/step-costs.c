#include "daemon/draft/step-costs.h"

#include <assert.h>
#include <stdbool.h>

#define WEIGHT (1.0f / 16) /* of a new step in the mean */
#define FAR    1.25f       /* a step that took so many times as long was interrupted */
#define FIRST  3u          /* samples until a number counts as measured */

static bool is_measured(const struct step_costs *costs, uint32_t rows)
{
        return costs->samples[rows] >= FIRST &&
               costs->steps - costs->last_step[rows] < STEP_COSTS_KEPT;
}

bool step_costs_known(const struct step_costs *costs, uint32_t rows)
{
        return rows <= STEP_COSTS_ROWS && is_measured(costs, rows);
}

/* The means, and the gaps between them filled. */
static void draw_curve(struct step_costs *costs)
{
        float *curve = costs->curve_ns;
        uint32_t last = 0;

        curve[0] = 0;
        for (uint32_t rows = 1; rows <= STEP_COSTS_ROWS; rows++) {
                if (!is_measured(costs, rows))
                        continue;
                curve[rows] = costs->mean_ns[rows];
                if (!last)
                        curve[0] = curve[rows];
                for (uint32_t i = last + 1; i < rows; i++) {
                        float part = (float)(i - last) / (float)(rows - last);

                        curve[i] = curve[last] + part * (curve[rows] - curve[last]);
                }
                last = rows;
        }
        for (uint32_t i = last + 1; i <= STEP_COSTS_ROWS; i++)
                curve[i] = curve[last];
}

void step_costs_note(struct step_costs *costs, uint32_t rows, uint64_t ns)
{
        float *mean, took = (float)ns;
        uint32_t count;

        assert(rows);
        if (rows > STEP_COSTS_ROWS)
                return;
        mean = &costs->mean_ns[rows];
        if (costs->samples[rows] && costs->steps - costs->last_step[rows] >= STEP_COSTS_KEPT)
                costs->samples[rows] = 0;
        count = costs->samples[rows];
        if (count && took > FAR * *mean)
                took = FAR * *mean;
        if (count && count < FIRST && FAR * took < *mean)
                *mean = FAR * took; /* those before were interrupted */
        *mean += (count < FIRST ? 1 / (float)(count + 1) : WEIGHT) * (took - *mean);
        costs->samples[rows] += costs->samples[rows] < FIRST;
        costs->last_step[rows] = ++costs->steps;
        draw_curve(costs);
}

float step_costs_ns(const struct step_costs *costs, uint32_t rows)
{
        const float *curve = costs->curve_ns;
        float slope;

        if (rows <= STEP_COSTS_ROWS)
                return curve[rows];
        slope = (curve[STEP_COSTS_ROWS] - curve[STEP_COSTS_ROWS / 2]) / (STEP_COSTS_ROWS / 2);
        slope = slope < 0 ? 0 : slope;
        return curve[STEP_COSTS_ROWS] + slope * (float)(rows - STEP_COSTS_ROWS);
}
