#include "cli/bench/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 64u

struct report_run *report_add(struct report *report)
{
        if (report->count == report->size) {
                uint32_t size = report->size ? 2 * report->size : 16;
                struct report_run *more = realloc(report->runs, size * sizeof(*more));

                if (!more)
                        return NULL;
                report->runs = more;
                report->size = size;
        }
        report->runs[report->count] = (struct report_run){ .round = 0 };
        return &report->runs[report->count++];
}

void report_deinit(struct report *report)
{
        free(report->runs);
        *report = (struct report){ .count = 0 };
}

double report_level(const struct report *report, const struct report_run *run)
{
        return report->by_rate ? run->rate : run->concurrency;
}

const char *report_run_name(const struct report *report, const struct report_run *run,
                            char to[RUN_NAME_MAX])
{
        char level[40], which[24] = "", number[24] = "";

        if (run->rate > 0)
                snprintf(level, sizeof(level), "%g/s", run->rate);
        else if (report->batches)
                snprintf(level, sizeof(level), "batch %u", run->concurrency);
        else if (run->concurrency)
                snprintf(level, sizeof(level), "%u at a time", run->concurrency);
        else
                snprintf(level, sizeof(level), "trace");
        if (report->server_count > 1)
                snprintf(which, sizeof(which), "%c, ", 'A' + (int)run->server);
        if (report->rounds > 1)
                snprintf(number, sizeof(number), "round %u, ", run->round + 1);
        snprintf(to, RUN_NAME_MAX, "%s%s%s%s%s", number, which, run->label, *run->label ? ", " : "",
                 level);
        return to;
}

bool report_same_group(const struct report *report, const struct report_run *a,
                       const struct report_run *b)
{
        (void)report;
        return a->server == b->server && a->concurrency == b->concurrency && a->rate == b->rate &&
               !strcmp(a->label, b->label);
}

const struct report_run *report_group(const struct report *report, uint32_t *at)
{
        for (; *at < report->count; (*at)++) {
                const struct report_run *run = &report->runs[*at];
                uint32_t before = 0;

                while (!report_same_group(report, &report->runs[before], run))
                        before++;
                if (before == *at) {
                        (*at)++;
                        return run;
                }
        }
        return NULL;
}

static bool range_of(double *values, size_t count, struct range *ret_range)
{
        struct numbers numbers = numbers_of(values, count);

        *ret_range = (struct range){ .median = numbers.p50,
                                     .least = numbers.least,
                                     .most = numbers.most };
        return count;
}

bool report_range(const struct report *report, const struct report_run *group,
                  const struct metric *metric, struct range *ret_range)
{
        double values[ROUNDS_MAX];
        size_t count = 0;

        for (uint32_t i = 0; i < report->count && count < ROUNDS_MAX; i++)
                if (report_same_group(report, &report->runs[i], group))
                        count += metric_of(&report->runs[i].figures, metric, &values[count]);
        return range_of(values, count, ret_range);
}

static const struct report_run *find_other(const struct report *report,
                                           const struct report_run *run)
{
        struct report_run other = *run;

        other.server = 1;
        for (uint32_t i = 0; i < report->count; i++)
                if (report_same_group(report, &report->runs[i], &other) &&
                    report->runs[i].round == run->round)
                        return &report->runs[i];
        return NULL;
}

bool report_ratio(const struct report *report, const struct report_run *group,
                  const struct metric *metric, struct range *ret_range)
{
        double values[ROUNDS_MAX];
        size_t count = 0;

        for (uint32_t i = 0; i < report->count && count < ROUNDS_MAX; i++) {
                const struct report_run *run = &report->runs[i], *other;
                double above, below;

                if (!report_same_group(report, run, group))
                        continue;
                other = find_other(report, run);
                if (other && run->figures.answers && other->figures.answers &&
                    metric_of(&run->figures, metric, &above) &&
                    metric_of(&other->figures, metric, &below) && below > 0)
                        values[count++] = above / below;
        }
        return range_of(values, count, ret_range);
}

int put(struct bytes *to, const char *format, ...)
{
        va_list values;
        char text[1024];
        int n;

        va_start(values, format);
        n = vsnprintf(text, sizeof(text), format, values);
        va_end(values);
        if (n < 0)
                return -EINVAL;
        return bytes_add(to, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}
