/* Measured costs of steps, for the tests of the costs and of the dealing that goes by them. */
#ifndef TESTS_UNIT_DEAL_RIG_H
#define TESTS_UNIT_DEAL_RIG_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/draft/step-costs.h"

static uint64_t dice; /* a test that draws sets it first */

static inline uint32_t below(uint32_t limit)
{
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(dice >> 33) % limit;
}

static inline void assert_near(double value, double expected)
{
        if (!(fabs(value - expected) <= 1e-4 * (1 + fabs(expected))))
                fail_msg("%.7g, not %.7g", value, expected);
}

/* A number of rows counts as measured after three steps. */
static inline void measure(struct step_costs *costs, uint32_t rows, uint64_t ns)
{
        for (uint32_t i = 0; i < 3; i++)
                step_costs_note(costs, rows, ns);
}

#endif
