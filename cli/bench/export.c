/* The report for programs: JSON, CSV, and a line of JSON for each sample. */
#include <stdio.h>
#include <string.h>

#include "cli/bench/report.h"
#include "json/builder.h"

static void put_key_float(struct json_builder *to, const char *key, double value)
{
        json_put_key(to, key);
        json_put_float(to, value);
}

static void put_numbers(struct json_builder *to, const char *name, const struct numbers *numbers)
{
        char key[48];

        snprintf(key, sizeof(key), "%s_ms", name);
        json_put_key(to, key);
        json_put_object(to);
        json_put_key_uint(to, "count", numbers->count);
        if (numbers->count) {
                put_key_float(to, "mean", numbers->mean);
                put_key_float(to, "deviation", numbers->deviation);
                put_key_float(to, "least", numbers->least);
                put_key_float(to, "p50", numbers->p50);
                put_key_float(to, "p90", numbers->p90);
                put_key_float(to, "p95", numbers->p95);
                put_key_float(to, "p99", numbers->p99);
                put_key_float(to, "most", numbers->most);
        }
        json_put_object_end(to);
}

static void put_which(struct json_builder *to, const struct report *report,
                      const struct report_run *run)
{
        const char name[2] = { (char)('A' + run->server), '\0' };

        if (report->server_count > 1)
                json_put_key_word(to, "server", name);
        if (*run->label)
                json_put_key_word(to, "batching", run->label);
        json_put_key_uint(to, "round", run->round + 1);
        if (run->concurrency)
                json_put_key_uint(to, report->batches ? "batch" : "concurrency", run->concurrency);
        if (run->rate > 0)
                put_key_float(to, "rate", run->rate);
}

static void put_run(struct json_builder *to, const struct report *report,
                    const struct report_run *run)
{
        const struct figures *figures = &run->figures;

        json_put_object(to);
        put_which(to, report, run);
        json_put_key_uint(to, "answered", figures->answers);
        json_put_key_uint(to, "failed", figures->failed);
        json_put_key_uint(to, "not_sent", figures->unsent);
        json_put_key(to, "errors");
        json_put_object(to);
        for (uint32_t i = 0; i < figures->error_count; i++)
                json_put_key_uint(to, figures->errors[i].name, figures->errors[i].count);
        json_put_object_end(to);
        if (*run->why)
                json_put_key_word(to, "first_error", run->why);
        json_put_key_uint(to, "shorter", figures->shorter);
        json_put_key_uint(to, "without_usage", figures->untold);
        put_key_float(to, "seconds", figures->seconds);
        json_put_key_uint(to, "most_in_flight", figures->most_in_flight);
        json_put_key_uint(to, "output_tokens", figures->output_tokens);
        if (!figures->untold) {
                json_put_key_uint(to, "input_tokens", figures->input_tokens);
                json_put_key_uint(to, "cached_tokens", figures->cached_tokens);
                put_key_float(to, "input_tokens_per_second", figures->input_s);
        }
        if (figures->drafted) {
                json_put_key_uint(to, "drafted_tokens", figures->drafted);
                json_put_key_uint(to, "drafts_right", figures->drafts_right);
                put_key_float(to, "tokens_per_step", figures->tokens_step);
        }
        put_key_float(to, "requests_per_second", figures->requests_s);
        put_key_float(to, "output_tokens_per_second", figures->output_s);
        put_key_float(to, "good_requests_per_second", figures->good_s);
        put_key_float(to, "good_output_tokens_per_second", figures->good_output_s);
        put_key_float(to, "good_share", figures->good_share);
        put_key_float(to, "own_cpu_percent", figures->own_cpu);
        for (enum spread s = 0; s < SPREADS; s++)
                put_numbers(to, spread_names[s], &figures->spreads[s]);
        json_put_object_end(to);
}

static void put_machine(struct json_builder *to, const struct host *host)
{
        json_put_key(to, "machine");
        json_put_object(to);
        json_put_key_word(to, "name", host->name);
        json_put_key_word(to, "processor", host->processor);
        json_put_key_uint(to, "processors", host->processors);
        json_put_key_uint(to, "memory_bytes", host->memory_bytes);
        json_put_key_word(to, "system", host->system);
        if (host->load >= 0)
                put_key_float(to, "load_average", host->load);
        json_put_object_end(to);
}

static void put_server(struct json_builder *to, const struct target_facts *facts)
{
        json_put_object(to);
        json_put_key_word(to, "address", facts->address);
        json_put_key_word(to, "server", facts->server);
        json_put_key_word(to, "model", facts->model);
        json_put_key_word(to, "quantisation", facts->quantisation);
        json_put_key_word(to, "backend", facts->backend);
        json_put_key_word(to, "digest", facts->digest);
        json_put_key_uint(to, "parameters", facts->parameters);
        json_put_key_uint(to, "context", facts->context);
        if (*facts->note)
                json_put_key_word(to, "note", facts->note);
        json_put_object_end(to);
}

static void put_slo(struct json_builder *to, const struct slo *slo)
{
        json_put_key(to, "target");
        json_put_object(to);
        if (slo->ttft > 0)
                put_key_float(to, "ttft_ms", slo->ttft);
        if (slo->tpot > 0)
                put_key_float(to, "tpot_ms", slo->tpot);
        if (slo->e2e > 0)
                put_key_float(to, "e2e_ms", slo->e2e);
        json_put_object_end(to);
}

/* The first server's metrics, divided by the second's. */
static void put_ratios(struct json_builder *to, const struct report *report)
{
        const struct report_run *run;
        uint32_t at = 0;

        json_put_key(to, "ratios");
        json_put_array(to);
        while ((run = report_group(report, &at))) {
                if (run->server)
                        continue;
                json_put_object(to);
                if (run->concurrency)
                        json_put_key_uint(to, "concurrency", run->concurrency);
                if (run->rate > 0)
                        put_key_float(to, "rate", run->rate);
                for (size_t i = 0; i < metric_count; i++) {
                        struct range range;

                        if (!report_ratio(report, run, &metrics[i], &range))
                                continue;
                        json_put_key(to, metrics[i].name);
                        json_put_object(to);
                        put_key_float(to, "median", range.median);
                        put_key_float(to, "least", range.least);
                        put_key_float(to, "most", range.most);
                        json_put_object_end(to);
                }
                json_put_object_end(to);
        }
        json_put_array_end(to);
}

int report_json(const struct report *report, struct bytes *to)
{
        struct json_builder json = json_build(to);
        int r;

        json_put_object(&json);
        json_put_key_word(&json, "samovar", smv_version());
        json_put_key_word(&json, "time", report->host.time);
        put_machine(&json, &report->host);
        json_put_key(&json, "servers");
        json_put_array(&json);
        for (uint32_t i = 0; i < report->server_count; i++)
                put_server(&json, &report->servers[i]);
        json_put_array_end(&json);
        json_put_key_word(&json, "workload", report->workload);
        json_put_key_word(&json, "load", report->load);
        json_put_key_uint(&json, "seed", report->seed);
        put_slo(&json, &report->slo);
        json_put_key(&json, "runs");
        json_put_array(&json);
        for (uint32_t i = 0; i < report->count; i++)
                put_run(&json, report, &report->runs[i]);
        json_put_array_end(&json);
        if (report->server_count > 1)
                put_ratios(&json, report);
        json_put_object_end(&json);
        r = json_put_end(&json);
        return r ? r : bytes_add(to, "\n", 1);
}

/* ---- CSV ---- */

/* In quotes if it must be. */
static int put_field(struct bytes *to, const char *text)
{
        int r;

        if (!strpbrk(text, ",\"\r\n"))
                return put(to, ",%s", text);
        r = put(to, ",\"");
        for (; *text && !r; text++)
                r = put(to, *text == '"' ? "\"\"" : "%c", *text);
        return r ? r : put(to, "\"");
}

static int put_csv_head(struct bytes *to)
{
        int r = put(
                to,
                "server,address,model,batching,round,concurrency,rate,answered,failed,"
                "not_sent,shorter,without_usage,seconds,input_tokens,output_tokens,cached_tokens,"
                "drafted_tokens,drafts_right,"
                "requests_per_second,input_tokens_per_second,output_tokens_per_second,"
                "good_requests_per_second,good_share,own_cpu_percent");

        for (enum spread s = 0; s < SPREADS && !r; s++) {
                const char *name = spread_names[s];

                r = put(to,
                        ",%s_mean_ms,%s_deviation_ms,%s_p50_ms,%s_p90_ms,%s_p95_ms,%s_p99_ms,"
                        "%s_most_ms",
                        name, name, name, name, name, name, name);
        }
        return r ? r : put(to, "\n");
}

/* From input_tokens to input_tokens_per_second.  Numbers that are not known are empty. */
static int put_csv_tokens(const struct figures *f, struct bytes *to)
{
        int r = f->untold ? put(to, ",,%llu,", (unsigned long long)f->output_tokens)
                          : put(to, ",%llu,%llu,%llu", (unsigned long long)f->input_tokens,
                                (unsigned long long)f->output_tokens,
                                (unsigned long long)f->cached_tokens);

        if (!r)
                r = f->drafted ? put(to, ",%llu,%llu", (unsigned long long)f->drafted,
                                     (unsigned long long)f->drafts_right)
                               : put(to, ",,");
        if (!r)
                r = put(to, ",%.17g,", f->requests_s);
        return r || f->untold ? r : put(to, "%.17g", f->input_s);
}

static int put_csv_row(const struct report *report, const struct report_run *run, struct bytes *to)
{
        const struct figures *f = &run->figures;
        int r = put(to, "%c", 'A' + (int)run->server);

        if (!r)
                r = put_field(to, report->servers[run->server].address);
        if (!r)
                r = put_field(to, report->servers[run->server].model);
        if (!r)
                r = put_field(to, run->label);
        if (!r)
                r = put(to, ",%u,%u,%.17g,%u,%u,%u,%u,%u,%.17g", run->round + 1, run->concurrency,
                        run->rate, f->answers, f->failed, f->unsent, f->shorter, f->untold,
                        f->seconds);
        if (!r)
                r = put_csv_tokens(f, to);
        if (!r)
                r = put(to, ",%.17g,%.17g,%.17g,%.17g", f->output_s, f->good_s, f->good_share,
                        f->own_cpu);
        for (enum spread s = 0; s < SPREADS && !r; s++) {
                const struct numbers *n = &f->spreads[s];

                r = n->count ? put(to, ",%.17g,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g", n->mean,
                                   n->deviation, n->p50, n->p90, n->p95, n->p99, n->most)
                             : put(to, ",,,,,,,");
        }
        return r ? r : put(to, "\n");
}

int report_csv(const struct report *report, struct bytes *to)
{
        int r = put_csv_head(to);

        for (uint32_t i = 0; i < report->count && !r; i++)
                r = put_csv_row(report, &report->runs[i], to);
        return r;
}

/* ---- samples ---- */

static void put_sample(struct json_builder *to, const struct sample *sample)
{
        double value;

        json_put_key_uint(to, "request", sample->number);
        put_key_float(to, "due_s", sample->due);
        put_key_float(to, "sent_s", sample->sent);
        put_key_float(to, "ended_s", sample->ended);
        json_put_key_uint(to, "output_tokens", sample->output);
        if (sample->has_usage) {
                json_put_key_uint(to, "input_tokens", sample->input);
                json_put_key_uint(to, "cached_tokens", sample->cached);
        }
        if (sample->drafted) {
                json_put_key_uint(to, "drafted_tokens", sample->drafted);
                json_put_key_uint(to, "drafts_right", sample->drafts_right);
        }
        if (*sample->error)
                json_put_key_word(to, "error", sample->error);
        for (enum spread s = 0; s < SPREADS; s++) {
                char key[48];

                if (!sample_value(sample, s, &value))
                        continue;
                snprintf(key, sizeof(key), "%s_ms", spread_names[s]);
                put_key_float(to, key, value);
        }
        json_put_key(to, "itl_ms");
        json_put_array(to);
        for (uint32_t i = 0; i + 1 < sample->pieces; i++)
                json_put_float(to, sample->gaps[i] * 1e3);
        json_put_array_end(to);
}

int report_raw(const struct report *report, const struct report_run *run,
               const struct samples *samples, struct bytes *to)
{
        int r = 0;

        for (uint32_t i = 0; i < samples->count && !r; i++) {
                struct json_builder json = json_build(to);

                json_put_object(&json);
                put_which(&json, report, run);
                put_sample(&json, samples->at[i]);
                json_put_object_end(&json);
                r = json_put_end(&json);
                if (!r)
                        r = bytes_add(to, "\n", 1);
        }
        return r;
}
