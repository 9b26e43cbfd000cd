#include "daemon/ipc/stats.h"

#include <assert.h>

#define SECOND_NS UINT64_C(1000000000)

/* Steps of about 1.6, as in the preferred numbers R5. */
#define DECADE(ns)                                                                                 \
        UINT64_C(10) * (ns), UINT64_C(16) * (ns), UINT64_C(25) * (ns), UINT64_C(40) * (ns),        \
                UINT64_C(63) * (ns)

static const uint64_t bounds[HISTOGRAM_BOUNDS] = {
        DECADE(100),                   /* from 1 us */
        DECADE(1000),                  /* from 10 us */
        DECADE(10000),                 /* from 0.1 ms */
        DECADE(100000),                /* from 1 ms */
        DECADE(1000000),               /* from 10 ms */
        DECADE(10000000),              /* from 100 ms */
        DECADE(100000000),             /* from 1 s */
        DECADE(1000000000),            /* from 10 s */
        DECADE(UINT64_C(10000000000)), /* from 100 s */
        UINT64_C(10) * 100000000000,   /* 1000 s */
};

uint64_t histogram_bound_ns(uint32_t bucket)
{
        assert(bucket < HISTOGRAM_BOUNDS);
        return bounds[bucket];
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
        histogram_add_many(histogram, ns, 1);
}

void histogram_add_many(struct histogram *histogram, uint64_t ns, uint64_t count)
{
        uint32_t low = 0, high = HISTOGRAM_BOUNDS; /* the bucket is one of these or between */

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (ns <= bounds[middle])
                        high = middle;
                else
                        low = middle + 1;
        }
        counter_add(&histogram->buckets[low], count);
        counter_add(&histogram->sum_ns, count * ns);
}

/* The sums of so many buckets, each with those before it.  Returns the sum of all buckets. */
static uint64_t accumulate(const counter *buckets, uint32_t bound_count, uint64_t *ret_counts)
{
        uint64_t count = 0;

        for (uint32_t i = 0; i < bound_count; i++) {
                count += counter_get(&buckets[i]);
                ret_counts[i] = count;
        }
        return count + counter_get(&buckets[bound_count]);
}

uint64_t histogram_read(const struct histogram *histogram, uint64_t ret_counts[HISTOGRAM_BOUNDS])
{
        return accumulate(histogram->buckets, HISTOGRAM_BOUNDS, ret_counts);
}

uint32_t step_bound(uint32_t bucket)
{
        assert(bucket < STEP_BOUNDS);
        return UINT32_C(1) << bucket;
}

void step_histogram_add(struct step_histogram *histogram, uint32_t rows)
{
        uint32_t bucket = 0;

        assert(rows);
        while (bucket < STEP_BOUNDS && rows > step_bound(bucket))
                bucket++;
        counter_add(&histogram->buckets[bucket], 1);
}

uint64_t step_histogram_read(const struct step_histogram *histogram,
                             uint64_t ret_counts[STEP_BOUNDS])
{
        return accumulate(histogram->buckets, STEP_BOUNDS, ret_counts);
}

void rate_add(struct rate *rate, uint64_t now_ns, uint64_t events)
{
        uint64_t second = now_ns / SECOND_NS;
        counter *slot = &rate->slots[second % RATE_SLOTS];

        if (counter_get(slot) >> 32 == (uint32_t)second)
                counter_add(slot, events);
        else
                counter_set(slot, second << 32 | events);
}

double rate_per_s(const struct rate *rate, uint64_t now_ns, uint64_t started_ns)
{
        uint64_t now = now_ns / SECOND_NS, first = now - (RATE_WINDOW_S - 1), events = 0, from_ns;

        if (now < RATE_WINDOW_S)
                first = 0;
        for (uint32_t i = 0; i < RATE_SLOTS; i++) {
                uint64_t slot = counter_get(&rate->slots[i]);

                if (slot >> 32 >= first && slot >> 32 <= now)
                        events += (uint32_t)slot;
        }
        from_ns = first * SECOND_NS > started_ns ? first * SECOND_NS : started_ns;
        if (now_ns < from_ns + SECOND_NS)
                return (double)events; /* of the first second: not less than was counted */
        return (double)events * (double)SECOND_NS / (double)(now_ns - from_ns);
}
