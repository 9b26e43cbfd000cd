#include "cli/bench/numbers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double numbers_percentile(const double *sorted, size_t count, double percent)
{
        double place, part, low, high;

        assert(count && percent >= 0 && percent <= 100);
        place = (double)(count - 1) * (percent / 100);
        low = sorted[(size_t)place];
        high = (size_t)place + 1 < count ? sorted[(size_t)place + 1] : low;
        part = place - floor(place);
        /* From the nearer end, so that the result never lies outside of the two. */
        return part >= 0.5 ? high - (high - low) * (1 - part) : low + (high - low) * part;
}

struct numbers numbers_of(double *values, size_t count)
{
        struct numbers numbers = { .count = count };
        double sum = 0, squares = 0;

        if (!count)
                return numbers;
        qsort(values, count, sizeof(*values), by_size);
        for (size_t i = 0; i < count; i++)
                sum += values[i];
        numbers.mean = sum / (double)count;
        for (size_t i = 0; i < count; i++)
                squares += (values[i] - numbers.mean) * (values[i] - numbers.mean);
        numbers.deviation = sqrt(squares / (double)count);
        numbers.least = values[0];
        numbers.p50 = numbers_percentile(values, count, 50);
        numbers.p90 = numbers_percentile(values, count, 90);
        numbers.p95 = numbers_percentile(values, count, 95);
        numbers.p99 = numbers_percentile(values, count, 99);
        numbers.most = values[count - 1];
        return numbers;
}

double numbers_median(double *values, size_t count)
{
        return numbers_of(values, count).p50;
}
