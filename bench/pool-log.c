#include "bench/pool-log.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

int pool_log_init(struct pool_log *log, uint32_t requests)
{
        *log = (struct pool_log){ .first_ns = calloc(requests, sizeof(*log->first_ns)),
                                  .end_ns = calloc(requests, sizeof(*log->end_ns)) };
        if (log->first_ns && log->end_ns)
                return 0;
        pool_log_deinit(log);
        return -ENOMEM;
}

void pool_log_deinit(struct pool_log *log)
{
        free(log->steps);
        free(log->first_ns);
        free(log->end_ns);
        *log = (struct pool_log){ 0 };
}

int pool_log_add(struct pool_log *log, const struct pool_step *step)
{
        assert(step->ns > 0);

        if (log->step_count == log->step_max) {
                size_t max = log->step_max ? 2 * log->step_max : 1024;
                struct pool_step *steps = realloc(log->steps, max * sizeof(*steps));

                if (!steps)
                        return -ENOMEM;
                log->steps = steps;
                log->step_max = max;
        }
        log->steps[log->step_count++] = *step;
        return 0;
}

static int by_size(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

/* The least value that this share of the sorted values does not exceed. */
static double percentile(const double *sorted, uint32_t count, double share)
{
        double at = ceil(count * share) - 1;

        return sorted[at > 0 ? (uint32_t)at : 0];
}

static int find_waits(const struct pool_log *log, const struct pool_world *world,
                      struct pool_figures *figures)
{
        uint32_t count = world->trace->count;
        double *waits = calloc(count, sizeof(*waits)), sum = 0;

        if (!waits)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++) {
                assert(log->first_ns[i] && log->end_ns[i] >= log->first_ns[i]);
                waits[i] = ((double)log->first_ns[i] - (double)pool_arrival_ns(world, i)) / 1e9;
                sum += waits[i];
        }
        qsort(waits, count, sizeof(*waits), by_size);
        figures->ttft_mean = sum / count;
        figures->ttft_p50 = percentile(waits, count, 0.5);
        figures->ttft_p95 = percentile(waits, count, 0.95);
        free(waits);
        return 0;
}

/* Between steps no sequence runs, and that time counts as well. */
static int find_use(const struct pool_log *log, const struct pool_world *world, double ns,
                    struct pool_figures *figures)
{
        double *times = calloc(world->slots + 1, sizeof(*times)), running = 0, blocks = 0, seen;
        uint32_t at = 0;

        if (!times)
                return -ENOMEM;
        times[0] = ns;
        for (size_t i = 0; i < log->step_count; i++) {
                const struct pool_step *step = &log->steps[i];

                assert(step->running <= world->slots && step->blocks <= world->blocks);
                times[0] -= (double)step->ns;
                times[step->running] += (double)step->ns;
                running += (double)step->running * (double)step->ns;
                blocks += (double)step->blocks * (double)step->ns;
        }
        for (seen = times[0]; at < world->slots && seen < 0.95 * ns; seen += times[at])
                at++;
        figures->running_mean = running / ns;
        figures->running_p95 = at;
        figures->blocks_mean = blocks / ns;
        free(times);
        return 0;
}

int pool_log_figures(const struct pool_log *log, const struct pool_world *world,
                     struct pool_figures *ret_figures)
{
        const struct trace *trace = world->trace;
        struct pool_figures figures = { .recomputed = log->recomputed };
        uint64_t end_ns = 0, tokens = 0;
        double ns;
        int r;

        assert(trace->count > 0);
        for (uint32_t i = 0; i < trace->count; i++) {
                end_ns = log->end_ns[i] > end_ns ? log->end_ns[i] : end_ns;
                tokens += trace->requests[i].output;
        }
        ns = (double)(end_ns - pool_arrival_ns(world, 0));
        figures.seconds = ns / 1e9;
        figures.requests_s = trace->count / figures.seconds;
        figures.tokens_s = (double)tokens / figures.seconds;
        figures.preemptions_100 = (double)log->preemptions * 100 / trace->count;
        r = find_waits(log, world, &figures);
        if (!r)
                r = find_use(log, world, ns, &figures);
        *ret_figures = figures;
        return r;
}
