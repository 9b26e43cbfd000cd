/*
 * The report for people.  One run: all its spreads.  Several levels: a row for each.  Two servers:
 * a table for each level, with ratios.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench/report.h"

/* Three significant digits, and no exponent. */
static const char *brief(double value, char to[32])
{
        double size = fabs(value);
        int digits = size >= 100 || size == 0 ? 0
                     : size >= 10             ? 1
                     : size >= 1              ? 2
                                              : (int)fmin(6, 2 - floor(log10(size)));

        snprintf(to, 32, "%.*f", digits, value);
        return to;
}

static const char *brief_range(struct range range, char to[112])
{
        char middle[32], least[32], most[32];

        if (range.least < range.most)
                snprintf(to, 112, "%s (%s-%s)", brief(range.median, middle),
                         brief(range.least, least), brief(range.most, most));
        else
                snprintf(to, 112, "%s", brief(range.median, middle));
        return to;
}

/* ---- what it ran on ---- */

static int put_server(const struct report *report, uint32_t which, struct bytes *to)
{
        const struct target_facts *facts = &report->servers[which];
        char parameters[48] = "", name[8] = "";
        int r;

        if (facts->parameters)
                snprintf(parameters, sizeof(parameters), ", %.4g million parameters",
                         (double)facts->parameters / 1e6);
        if (report->server_count > 1)
                snprintf(name, sizeof(name), "%c: ", 'A' + (int)which);
        r = put(to, "server     %s%s%s%s\n", name, facts->server, *facts->server ? " at " : "",
                facts->address);
        if (!r)
                r = put(to, "model      %s%s%s%s%s%s%s\n", name, facts->model,
                        *facts->quantisation ? ", " : "", facts->quantisation, parameters,
                        *facts->backend ? ", backend " : "", facts->backend);
        return r || !*facts->note ? r : put(to, "note       %s%s\n", name, facts->note);
}

static int put_head(const struct report *report, struct bytes *to)
{
        const struct host *host = &report->host;
        int r = put(to, "%s%ssamovar    %s, %s\nmachine    %s: %s, %u processor%s, %.0f GiB, %s",
                    report->title, *report->title ? "\n" : "", smv_version(), host->time,
                    host->name, host->processor, host->processors, host->processors == 1 ? "" : "s",
                    ceil((double)host->memory_bytes / 1073741824.0), host->system);

        if (!r)
                r = host->load >= 0 ? put(to, ", load average %.2f\n", host->load) : put(to, "\n");
        for (uint32_t i = 0; i < report->server_count && !r; i++)
                r = put_server(report, i, to);
        return r ? r : put(to, "workload   %s\nload       %s\n", report->workload, report->load);
}

/* ---- what went wrong in a run ---- */

static int put_errors(const struct report_run *run, const char *name, struct bytes *to)
{
        const struct figures *figures = &run->figures;
        int r = figures->error_count ? put(to, "errors     %s", name) : 0;

        for (uint32_t i = 0; i < figures->error_count && !r; i++)
                r = put(to, "%s%s: %u", i ? ", " : "", figures->errors[i].name,
                        figures->errors[i].count);
        if (!r && figures->error_count)
                r = put(to, "%s%s\n", *run->why ? "; the first: " : "", run->why);
        return r;
}

/* All that makes its figures doubtful. */
static int put_doubts(const struct report *report, const struct report_run *run, struct bytes *to)
{
        const struct figures *figures = &run->figures;
        char which[RUN_NAME_MAX], name[RUN_NAME_MAX + 2] = "";
        int r;

        if (report->count > 1)
                snprintf(name, sizeof(name), "%s: ", report_run_name(report, run, which));
        r = put_errors(run, name, to);
        if (!r && report->count > 1 && figures->unsent)
                r = put(to, "not sent   %s%u request%s\n", name, figures->unsent,
                        figures->unsent == 1 ? "" : "s");
        if (!r && figures->shorter)
                r = put(to, "shorter    %s%u of %u answers have fewer tokens than asked for\n",
                        name, figures->shorter, figures->answers);
        if (!r && figures->untold)
                r = put(to,
                        "no usage   %s%u of %u answers came without a count of tokens: a piece "
                        "counts as one, and those of prompts are not known\n",
                        name, figures->untold, figures->answers);
        return r;
}

static int put_all_doubts(const struct report *report, struct bytes *to)
{
        size_t before = to->count;
        int r = put(to, "\n");

        for (uint32_t i = 0; i < report->count && !r; i++)
                r = put_doubts(report, &report->runs[i], to);
        if (to->count == before + 1)
                to->count = before;
        return r;
}

/* ---- one run ---- */

static int put_prompts(const struct figures *figures, struct bytes *to)
{
        if (figures->untold)
                return 0;
        return put(to, "cached     %llu of %llu tokens of prompts (%.1f %%)\n",
                   (unsigned long long)figures->cached_tokens,
                   (unsigned long long)figures->input_tokens, figures->cached_percent);
}

static int put_drafts(const struct figures *figures, struct bytes *to)
{
        if (!figures->drafted)
                return 0;
        return put(to, "drafts     %llu guesses, %llu right (%.1f %%); %.2f tokens a step\n",
                   (unsigned long long)figures->drafted, (unsigned long long)figures->drafts_right,
                   figures->right_percent, figures->tokens_step);
}

static int put_counts(const struct report *report, const struct report_run *run, struct bytes *to)
{
        const struct figures *figures = &run->figures;
        char a[32], b[32], c[32];
        int r;

        r = put(to, "\nrequests   %u answered, %u failed", figures->answers, figures->failed);
        if (!r && figures->unsent)
                r = put(to, ", %u not sent", figures->unsent);
        if (!r)
                r = put(to, ", in %s s; up to %u at a time\n", brief(figures->seconds, a),
                        figures->most_in_flight);
        if (!r)
                r = put_doubts(report, run, to);
        if (!r)
                r = put(to, "a second   %s requests, %s tokens of prompts, %s tokens of answers\n",
                        brief(figures->requests_s, a),
                        figures->untold ? "?" : brief(figures->input_s, b),
                        brief(figures->output_s, c));
        if (!r)
                r = put_prompts(figures, to);
        if (!r)
                r = put_drafts(figures, to);
        if (!r && slo_given(&report->slo))
                r = put(to,
                        "goodput    %s requests and %s tokens a second; %.1f %% of the "
                        "requests are within the target\n",
                        brief(figures->good_s, a), brief(figures->good_output_s, b),
                        100 * figures->good_share);
        return r ? r : put(to, "own load   %s %% of a core\n", brief(figures->own_cpu, a));
}

static int put_spreads(const struct report *report, const struct figures *figures, struct bytes *to)
{
        int r = put(to, "\n%-30s %8s %9s %8s %8s %8s %8s %8s\n", "milliseconds", "mean",
                    "deviation", "p50", "p90", "p95", "p99", "most");

        for (enum spread s = 0; s < SPREADS && !r; s++) {
                const struct numbers *n = &figures->spreads[s];
                const double values[] = { n->mean, n->deviation, n->p50, n->p90,
                                          n->p95,  n->p99,       n->most };
                char text[32];

                if (s > E2E && !report->open)
                        break;
                r = put(to, "%-5s%-25s",
                        s == TTFT   ? "TTFT"
                        : s == TPOT ? "TPOT"
                        : s == ITL  ? "ITL"
                        : s == E2E  ? "E2E"
                                    : "",
                        spread_titles[s]);
                for (size_t i = 0; i < sizeof(values) / sizeof(*values) && !r; i++)
                        r = put(to, " %*s", i == 1 ? 9 : 8,
                                n->count ? brief(values[i], text) : "-");
                if (!r)
                        r = put(to, "\n");
        }
        return r;
}

/* ---- several levels ---- */

static const char *level_title(const struct report *report)
{
        return report->by_rate ? "requests/s due" : report->batches ? "batch" : "concurrency";
}

static const char *level_of(const struct report *report, const struct report_run *run, char to[32])
{
        snprintf(to, 32, "%.4g", report_level(report, run));
        return to;
}

/* Whether some run can have it. */
static bool is_shown(const struct report *report, const struct metric *metric)
{
        uint32_t i = 0;

        if (!strcmp(metric->name, "good_requests_per_second"))
                return slo_given(&report->slo);
        if (metric->needs != NEEDS_DRAFTS)
                return true;
        while (i < report->count && !report->runs[i].figures.drafted)
                i++;
        return i < report->count;
}

/* The requests of a group that have no answer. */
static uint32_t missing(const struct report *report, const struct report_run *group)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < report->count; i++)
                if (report_same_group(report, &report->runs[i], group))
                        count += report->runs[i].figures.failed + report->runs[i].figures.unsent;
        return count;
}

static int put_row(const struct report *report, const struct report_run *run, bool labels,
                   struct bytes *to)
{
        struct range range;
        char text[32];
        int r = labels ? put(to, "%-12s ", run->label) : 0;

        if (!r)
                r = put(to, "%14s %6u", level_of(report, run, text), missing(report, run));
        for (size_t i = 0; i < metric_count && !r; i++) {
                if (!is_shown(report, &metrics[i]))
                        continue;
                r = put(to, " %9s",
                        report_range(report, run, &metrics[i], &range) ? brief(range.median, text)
                                                                       : "-");
        }
        return r ? r : put(to, "\n");
}

static int put_rows(const struct report *report, struct bytes *to)
{
        const struct report_run *run;
        bool labels = *report->runs[0].label;
        uint32_t at = 0;
        int r = put(to, "\n%s%*s %14s %6s", labels ? "batching" : "", labels ? 4 : 0, "",
                    level_title(report), "failed");

        for (size_t i = 0; i < metric_count && !r; i++)
                if (is_shown(report, &metrics[i]))
                        r = put(to, " %9s", metrics[i].title);
        if (!r)
                r = put(to, "\n");
        while (!r && (run = report_group(report, &at)))
                r = put_row(report, run, labels, to);
        if (!r)
                r = put_all_doubts(report, to);
        return r ? r
                 : put(to, "\nTimes are milliseconds%s.\n",
                       report->rounds > 1 ? "; medians of the rounds" : "");
}

/* ---- two servers ---- */

static int put_pair(const struct report *report, const struct report_run *run, struct bytes *to)
{
        struct report_run other = *run;
        char a[112], b[112], c[112];
        uint32_t lost_a, lost_b;
        int r;

        other.server = 1;
        r = put(to, "\n%s %s\n%-10s %26s %26s %22s\n", level_title(report),
                level_of(report, run, a), "", "A", "B", "A/B");
        lost_a = missing(report, run);
        lost_b = missing(report, &other);
        if (!r && (lost_a || lost_b))
                r = put(to, "%-10s %26u %26u %22s\n", "failed", lost_a, lost_b, "");
        for (size_t i = 0; i < metric_count && !r; i++) {
                const struct metric *metric = &metrics[i];
                struct range range;

                if (!is_shown(report, metric))
                        continue;
                r = put(to, "%-10s %26s %26s %22s\n", metric->title,
                        report_range(report, run, metric, &range) ? brief_range(range, a) : "-",
                        report_range(report, &other, metric, &range) ? brief_range(range, b) : "-",
                        report_ratio(report, run, metric, &range) ? brief_range(range, c) : "-");
        }
        return r;
}

static int put_pairs(const struct report *report, struct bytes *to)
{
        const struct report_run *run;
        uint32_t at = 0;
        int r = 0;

        while (!r && (run = report_group(report, &at)))
                if (!run->server)
                        r = put_pair(report, run, to);
        if (!r)
                r = put_all_doubts(report, to);
        return r ? r
                 : put(to,
                       "\nMedians of %u rounds in turns, with the least and the most; "
                       "the ratio is that of each round.\nTimes are milliseconds.\n",
                       report->rounds);
}

int report_table(const struct report *report, struct bytes *to)
{
        int r = put_head(report, to);

        if (r || !report->count)
                return r;
        if (report->server_count > 1)
                return put_pairs(report, to);
        if (report->count > 1)
                return put_rows(report, to);
        r = put_counts(report, &report->runs[0], to);
        return r ? r : put_spreads(report, &report->runs[0].figures, to);
}
