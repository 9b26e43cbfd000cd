#include "cli/bench/figures.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const spread_names[SPREADS] = {
        [TTFT] = "ttft",           [TPOT] = "tpot",         [ITL] = "itl",   [E2E] = "e2e",
        [TTFT_SENT] = "ttft_sent", [E2E_SENT] = "e2e_sent", [LATE] = "late",
};

const char *const spread_titles[SPREADS] = {
        [TTFT] = "time to first token",
        [TPOT] = "time per output token",
        [ITL] = "inter-token latency",
        [E2E] = "end to end",
        [TTFT_SENT] = "first token, from sending",
        [E2E_SENT] = "end to end, from sending",
        [LATE] = "sent late by",
};

#define AT(member)          offsetof(struct figures, member)
#define OF(spread, number)  AT(spreads[spread].number), true, NEEDS_SAMPLES, spread
#define RATE(member, needs) AT(member), false, needs, SPREADS

const struct metric metrics[] = {
        { "requests_per_second", "req/s", RATE(requests_s, NEEDS_NOTHING) },
        { "input_tokens_per_second", "in tok/s", RATE(input_s, NEEDS_USAGE) },
        { "output_tokens_per_second", "out tok/s", RATE(output_s, NEEDS_NOTHING) },
        { "ttft_p50_ms", "TTFT p50", OF(TTFT, p50) },
        { "ttft_p99_ms", "TTFT p99", OF(TTFT, p99) },
        { "tpot_p50_ms", "TPOT p50", OF(TPOT, p50) },
        { "tpot_p99_ms", "TPOT p99", OF(TPOT, p99) },
        { "itl_p99_ms", "ITL p99", OF(ITL, p99) },
        { "e2e_p50_ms", "E2E p50", OF(E2E, p50) },
        { "e2e_p99_ms", "E2E p99", OF(E2E, p99) },
        { "good_requests_per_second", "good/s", RATE(good_s, NEEDS_NOTHING) },
        { "cached_percent", "cached %", RATE(cached_percent, NEEDS_USAGE) },
        { "drafts_right_percent", "right %", RATE(right_percent, NEEDS_DRAFTS) },
        { "tokens_per_step", "tok/step", RATE(tokens_step, NEEDS_DRAFTS) },
        { "own_cpu_percent", "own CPU %", AT(own_cpu), true, NEEDS_NOTHING, SPREADS },
};
const size_t metric_count = sizeof(metrics) / sizeof(*metrics);

bool metric_of(const struct figures *figures, const struct metric *metric, double *ret_value)
{
        if (metric->needs == NEEDS_USAGE && (figures->untold || !figures->answers))
                return false;
        if (metric->needs == NEEDS_DRAFTS && !figures->drafted)
                return false;
        if (metric->needs == NEEDS_SAMPLES && !figures->spreads[metric->spread].count)
                return false;
        *ret_value = *(const double *)(const void *)((const char *)figures + metric->offset);
        return true;
}

const struct metric *metric_find(const char *name)
{
        size_t i = 0;

        while (strcmp(metrics[i].name, name)) {
                i++;
                assert(i < metric_count);
        }
        return &metrics[i];
}

bool slo_given(const struct slo *slo)
{
        return slo->ttft > 0 || slo->tpot > 0 || slo->e2e > 0;
}

bool sample_value(const struct sample *sample, enum spread spread, double *ret_ms)
{
        if (*sample->error)
                return false;
        switch (spread) {
        case TTFT:
                *ret_ms = (sample->first - sample->due) * 1e3;
                return sample->pieces;
        case TTFT_SENT:
                *ret_ms = (sample->first - sample->sent) * 1e3;
                return sample->pieces;
        case TPOT:
                *ret_ms = sample->output > 1
                                  ? (sample->ended - sample->first) * 1e3 / (sample->output - 1)
                                  : 0;
                return sample->pieces && sample->output > 1;
        case E2E:
                *ret_ms = (sample->ended - sample->due) * 1e3;
                return true;
        case E2E_SENT:
                *ret_ms = (sample->ended - sample->sent) * 1e3;
                return true;
        case LATE:
                *ret_ms = (sample->sent - sample->due) * 1e3;
                return true;
        default:
                return false;
        }
}

static bool within(const struct sample *sample, enum spread spread, double most)
{
        double value;

        return !(most > 0) || !sample_value(sample, spread, &value) || value <= most;
}

bool sample_is_good(const struct sample *sample, const struct slo *slo)
{
        return !*sample->error && within(sample, TTFT, slo->ttft) &&
               within(sample, TPOT, slo->tpot) && within(sample, E2E, slo->e2e);
}

static void count_error(struct figures *figures, const char *name)
{
        uint32_t i = 0;

        while (i < figures->error_count && strcmp(figures->errors[i].name, name))
                i++;
        if (i == figures->error_count) {
                if (i == FIGURE_ERRORS_MAX) {
                        i--;
                        strcpy(figures->errors[i].name, "others");
                } else {
                        memcpy(figures->errors[i].name, name, strlen(name) + 1);
                        figures->error_count++;
                }
        }
        figures->errors[i].count++;
        figures->failed++;
}

static void add_up(const struct load_result *result, const struct slo *slo, struct figures *figures)
{
        double good = 0, good_output = 0, seconds = result->seconds > 0 ? result->seconds : 1;

        for (uint32_t i = 0; i < result->samples.count; i++) {
                const struct sample *sample = result->samples.at[i];

                if (*sample->error) {
                        count_error(figures, sample->error);
                        continue;
                }
                figures->answers++;
                figures->shorter += sample->has_usage && sample->output < sample->wanted_output;
                figures->untold += !sample->has_usage;
                figures->input_tokens += sample->input;
                figures->output_tokens += sample->output;
                figures->cached_tokens += sample->cached;
                figures->drafted += sample->drafted;
                figures->drafts_right += sample->drafts_right;
                if (sample_is_good(sample, slo)) {
                        good++;
                        good_output += sample->output;
                }
        }
        figures->requests_s = figures->answers / seconds;
        figures->input_s = (double)figures->input_tokens / seconds;
        figures->output_s = (double)figures->output_tokens / seconds;
        figures->good_s = good / seconds;
        figures->good_output_s = good_output / seconds;
        if (result->samples.count)
                figures->good_share = good / result->samples.count;
        if (figures->input_tokens)
                figures->cached_percent =
                        100 * (double)figures->cached_tokens / (double)figures->input_tokens;
        /* A right guess is a token that had no step of its own. */
        if (figures->drafted) {
                figures->right_percent =
                        100 * (double)figures->drafts_right / (double)figures->drafted;
                figures->tokens_step = (double)figures->output_tokens /
                                       (double)(figures->output_tokens - figures->drafts_right);
        }
        figures->own_cpu = 100 * result->cpu_s / seconds;
}

static size_t collect(const struct samples *samples, enum spread spread, double *values)
{
        size_t count = 0;

        for (uint32_t i = 0; i < samples->count; i++) {
                const struct sample *sample = samples->at[i];

                if (spread != ITL) {
                        count += sample_value(sample, spread, &values[count]);
                        continue;
                }
                for (uint32_t k = 0; !*sample->error && k + 1 < sample->pieces; k++)
                        values[count++] = sample->gaps[k] * 1e3;
        }
        return count;
}

int figures_of(const struct load_result *result, const struct slo *slo, struct figures *ret_figures)
{
        size_t most = result->samples.count + 1u;
        double *values;

        for (uint32_t i = 0; i < result->samples.count; i++)
                most += result->samples.at[i]->pieces;
        values = calloc(most, sizeof(*values));
        if (!values)
                return -ENOMEM;
        *ret_figures = (struct figures){ .unsent = result->unsent,
                                         .most_in_flight = result->most,
                                         .seconds = result->seconds };
        add_up(result, slo, ret_figures);
        for (enum spread spread = 0; spread < SPREADS; spread++) {
                size_t count = collect(&result->samples, spread, values);

                ret_figures->spreads[spread] = numbers_of(values, count);
                for (unsigned p = 0; count && p < CURVE_POINTS; p++)
                        ret_figures->curves[spread][p] = numbers_percentile(values, count, p);
        }
        free(values);
        return 0;
}
