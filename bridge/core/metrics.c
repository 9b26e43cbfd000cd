/*
 * Two sources: what the bridge counts itself, and `status` of the daemon.  The tables below have
 * the names; a new row is a new metric.  contrib/grafana and docs/guide/metrics.md use the names.
 */
#include "bridge/core/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/core/metrics-text.h"
#include "json/document.h"

#define PREFIX         "samovar_"
#define ROUTES_MAX     64u
#define REASONS_MAX    8u
#define STATUS_CLASSES 6u /* 1xx to 5xx; 0: the client left before the answer */
#define LABEL_BYTES    200u
#define NS_PER_S       1e9

/* clang-format off */
static const struct histogram_bounds seconds_bounds = { 27, {
        .005, .01, .025, .05, .1, .2, .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60,
        120, 240, 480, 960, 1920, 7680 } };
static const struct histogram_bounds tokens_bounds = { 18, {
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5 } };
static const struct histogram_bounds count_bounds = { 5, { 1, 2, 5, 10, 20 } };
/* clang-format on */

#define N(array) (sizeof(array) / sizeof(*(array)))

struct metrics {
        struct route_counts {
                const char *route, *method; /* NULL: the entry is free */
                uint64_t by_class[STATUS_CLASSES];
        } routes[ROUTES_MAX]; /* in the order of their first call */
        struct histogram durations, queue, prefill, decode, inference;
        struct histogram prompt_tokens, generation_tokens, params_n, preemptions;
        struct reason_count {
                const char *reason;
                uint64_t count;
        } reasons[REASONS_MAX];
        uint64_t prompt_total, cached_total, recomputed_total, generation_total;
        uint64_t slow_clients;
        uint64_t histories[HISTORY_WAYS];
        struct gen_ai *gen_ai; /* NULL: not asked for */
};

int metrics_new(bool otel, struct metrics **ret_metrics)
{
        struct metrics *metrics = calloc(1, sizeof(*metrics));

        if (metrics && otel)
                metrics->gen_ai = gen_ai_new();
        if (!metrics || (otel && !metrics->gen_ai)) {
                free(metrics);
                return -ENOMEM;
        }
        *ret_metrics = metrics;
        return 0;
}

struct metrics *metrics_free(struct metrics *metrics)
{
        if (!metrics)
                return NULL;
        gen_ai_free(metrics->gen_ai);
        free(metrics);
        return NULL;
}

/* ---- counting ---- */

/* More routes than entries: those that come last share one. */
static struct route_counts *counts_of(struct metrics *metrics, const char *route,
                                      const char *method)
{
        struct route_counts *at = metrics->routes;

        while (at < &metrics->routes[ROUTES_MAX - 1] && at->route &&
               (strcmp(at->route, route) || strcmp(at->method, method)))
                at++;
        at->route = route;
        at->method = method;
        return at;
}

void metrics_call(struct metrics *metrics, const char *route, const char *method, unsigned status,
                  uint64_t took_ns)
{
        struct route_counts *counts = counts_of(metrics, route ? route : "none", method);

        counts->by_class[status < 600 ? status / 100 : 5]++;
        histogram_note(&metrics->durations, &seconds_bounds, (double)took_ns / NS_PER_S);
}

static void count_reason(struct metrics *metrics, const char *reason)
{
        struct reason_count *at = metrics->reasons;

        while (at < &metrics->reasons[REASONS_MAX - 1] && at->reason && strcmp(at->reason, reason))
                at++;
        at->reason = reason;
        at->count++;
}

void metrics_end(struct metrics *metrics, const char *reason, const struct smv_event *end,
                 bool first, uint32_t choices)
{
        uint64_t inference_ns = end->prefill_ns + end->decode_ns;

        count_reason(metrics, reason);
        metrics->generation_total += end->output_tokens;
        metrics->recomputed_total += end->recomputed;
        histogram_note(&metrics->generation_tokens, &tokens_bounds, end->output_tokens);
        histogram_note(&metrics->preemptions, &count_bounds, end->preemptions);
        histogram_note(&metrics->decode, &seconds_bounds, (double)end->decode_ns / NS_PER_S);
        histogram_note(&metrics->inference, &seconds_bounds, (double)inference_ns / NS_PER_S);
        if (!first)
                return;
        metrics->prompt_total += end->prompt_tokens;
        metrics->cached_total += end->cached_tokens;
        histogram_note(&metrics->prompt_tokens, &tokens_bounds, end->prompt_tokens);
        histogram_note(&metrics->params_n, &count_bounds, choices);
        histogram_note(&metrics->queue, &seconds_bounds, (double)end->queued_ns / NS_PER_S);
        histogram_note(&metrics->prefill, &seconds_bounds, (double)end->prefill_ns / NS_PER_S);
}

void metrics_request(struct metrics *metrics, const struct gen_ai_request *request)
{
        if (metrics->gen_ai)
                gen_ai_note(metrics->gen_ai, request);
}

void metrics_slow_client(struct metrics *metrics)
{
        metrics->slow_clients++;
}

void metrics_history(struct metrics *metrics, enum history_way way)
{
        metrics->histories[way]++;
}

/* ---- writing ---- */

static void put_histogram(struct metrics_writer *w, const char *name, const char *help,
                          const struct histogram *histogram, const struct histogram_bounds *bounds)
{
        metrics_put_head(w, name, "histogram", help);
        metrics_put_histogram(w, name, "", histogram, bounds);
}

static void put_requests(struct metrics_writer *w, const struct metrics *metrics)
{
        static const char *const classes[] = { "left", "1xx", "2xx", "3xx", "4xx", "5xx" };

        metrics_put_head(w, "http_requests_total", "counter",
                         "Requests that have ended, by route.");
        for (uint32_t i = 0; i < ROUTES_MAX && metrics->routes[i].route; i++)
                for (unsigned class = 0; class < STATUS_CLASSES; class ++)
                        if (metrics->routes[i].by_class[class])
                                metrics_put(w,
                                            PREFIX
                                            "http_requests_total{handler=\"%s\",method=\"%s\","
                                            "status=\"%s\"} %" PRIu64 "\n",
                                            metrics->routes[i].route, metrics->routes[i].method,
                                            classes[class], metrics->routes[i].by_class[class]);
}

static void put_histories(struct metrics_writer *w, const struct metrics *metrics)
{
        static const char *const ways[] = { "continued", "rendered", "none" };

        metrics_put_head(w, "http_histories_total", "counter",
                         "Stored responses, by the history that they were generated on.");
        for (unsigned way = 0; way < HISTORY_WAYS; way++)
                metrics_put(w, PREFIX "http_histories_total{history=\"%s\"} %" PRIu64 "\n",
                            ways[way], metrics->histories[way]);
}

static void put_runs(struct metrics_writer *w, const struct metrics *metrics)
{
        metrics_put_head(w, "request_success_total", "counter",
                         "Choices that have ended, by reason.");
        for (uint32_t i = 0; i < REASONS_MAX && metrics->reasons[i].reason; i++)
                metrics_put(w, PREFIX "request_success_total{finished_reason=\"%s\"} %" PRIu64 "\n",
                            metrics->reasons[i].reason, metrics->reasons[i].count);
        metrics_put_head(w, "prompt_tokens_total", "counter",
                         "Tokens of prompts, the cached ones counted.");
        metrics_put_value(w, "prompt_tokens_total", (double)metrics->prompt_total);
        metrics_put_head(w, "prompt_tokens_cached_total", "counter",
                         "Those that were in the cache.");
        metrics_put_value(w, "prompt_tokens_cached_total", (double)metrics->cached_total);
        metrics_put_head(w, "prompt_tokens_recomputed_total", "counter",
                         "Tokens that were computed again after a preemption.");
        metrics_put_value(w, "prompt_tokens_recomputed_total", (double)metrics->recomputed_total);
        metrics_put_head(w, "generation_tokens_total", "counter", "Tokens that were generated.");
        metrics_put_value(w, "generation_tokens_total", (double)metrics->generation_total);
        metrics_put_head(w, "prefix_cache_queries_total", "counter",
                         "Tokens of prompts that were looked up in the prefix cache.");
        metrics_put_value(w, "prefix_cache_queries_total", (double)metrics->prompt_total);
        metrics_put_head(w, "prefix_cache_hits_total", "counter", "Those that were there.");
        metrics_put_value(w, "prefix_cache_hits_total", (double)metrics->cached_total);
        put_histogram(w, "request_prompt_tokens", "Tokens of a prompt.", &metrics->prompt_tokens,
                      &tokens_bounds);
        put_histogram(w, "request_generation_tokens", "Tokens of a choice.",
                      &metrics->generation_tokens, &tokens_bounds);
        put_histogram(w, "request_params_n", "Choices that a request asks for.", &metrics->params_n,
                      &count_bounds);
        put_histogram(w, "request_num_preemptions", "Preemptions of a choice.",
                      &metrics->preemptions, &count_bounds);
        put_histogram(w, "http_queue_time_seconds", "Time that a request of the bridge waited.",
                      &metrics->queue, &seconds_bounds);
        put_histogram(w, "request_prefill_time_seconds", "Time of the prefill.", &metrics->prefill,
                      &seconds_bounds);
        put_histogram(w, "request_decode_time_seconds", "Time from the first to the last token.",
                      &metrics->decode, &seconds_bounds);
        put_histogram(w, "request_inference_time_seconds", "Prefill and decode.",
                      &metrics->inference, &seconds_bounds);
}

/* ---- what the daemon says ---- */

static uint32_t at_path(const struct json_document *json, const char *path)
{
        uint32_t node = 0;
        char key[48];

        while (*path) {
                size_t bytes = strcspn(path, ".");

                snprintf(key, sizeof(key), "%.*s", (int)bytes, path);
                node = json_member(json, node, key);
                path += bytes + (path[bytes] == '.');
        }
        return node;
}

static bool number_at(const struct json_document *json, const char *path, double *ret_value)
{
        return json_real(json, at_path(json, path), ret_value);
}

/* clang-format off */
static const struct {
        const char *name, *type, *path, *help;
} told[] = {
        { "num_requests_running",     "gauge",   "requests.running",  "Requests that have a slot." },
        { "num_requests_waiting",     "gauge",   "requests.waiting",  "Requests that wait." },
        { "num_requests_stalled",     "gauge",   "requests.stalled",  "Streams whose client does not read." },
        { "num_preemptions_total",    "counter", "requests.preemptions", "Preemptions." },
        { "blocks_lost_total",        "counter", "requests.blocks_lost", "Preemptions because the pool was full." },
        { "admission_rejections_total", "counter", "requests.refused", "Requests that the daemon refused." },
        { "daemon_prompt_tokens_computed_total", "counter", "tokens_in", "Tokens of the prompts of all clients that were computed." },
        { "daemon_generation_tokens_total", "counter", "tokens_out",    "Tokens that were generated for all clients." },
        { "daemon_tokens_recomputed_total", "counter", "tokens_recomputed", "Tokens of all clients that were computed again after a preemption." },
        { "tokens_restored_total",    "counter", "tokens_restored",   "Tokens that came back from the swap." },
        { "corrupted_requests_total", "counter", "numeric_faults",    "Streams whose logits were not finite." },
        { "kv_blocks",                "gauge",   "blocks.total",      "Blocks of the KV pool." },
        { "kv_blocks_free",           "gauge",   "blocks.free",       "Free blocks." },
        { "kv_blocks_cached",         "gauge",   "blocks.cached",     "Blocks that only the cache holds." },
        { "kv_blocks_evicted_total",  "counter", "blocks.evicted",    "Blocks that were evicted." },
        { "cow_copies_total",         "counter", "blocks.copied",     "Blocks that were copied on write." },
        { "kv_blocks_swapped",        "gauge",   "blocks.swap_used",  "Blocks in the swap." },
        { "connections",              "gauge",   "connections.open",  "Connections of the daemon." },
        { "handles",                  "gauge",   "handles.open",      "Open handles." },
        { "steps_total",              "counter", "steps",             "Steps of the engine." },
        { "iteration_tokens_total",   "counter", "rows",              "Rows of all steps." },
};
static const struct {
        const char *reason, *path;
} waits[] = {
        { "turn", "waits.turn" }, { "slot", "waits.slot" }, { "windows", "waits.windows" },
        { "blocks", "waits.blocks" }, { "forecast", "waits.forecast" }, { "share", "waits.share" },
        { "prefix", "waits.prefix" }, { "reader", "waits.reader" },
};
static const struct {
        const char *name, *help;
} latencies[] = {
        { "time_to_first_token_seconds", "From a request to its first token." },
        { "inter_token_latency_seconds", "Between two tokens of a stream." },
        { "request_queue_time_seconds",  "From a request to its first row." },
        { "e2e_request_latency_seconds", "From a request to its end." },
};
/* clang-format on */

static void put_latency(struct metrics_writer *w, const struct json_document *json,
                        const char *name, const char *help)
{
        uint32_t latency = at_path(json, "latency"),
                 le = json_first(json, at_path(json, "latency.le"));
        uint32_t of = json_member(json, latency, name);
        uint32_t bucket = json_first(json, json_member(json, of, "buckets"));
        double bound = 0, count = 0, sum = 0;

        if (!json_real(json, json_member(json, of, "count"), &count))
                return;
        json_real(json, json_member(json, of, "sum"), &sum);
        metrics_put_head(w, name, "histogram", help);
        for (; le != JSON_NONE && bucket != JSON_NONE;
             le = json_next(json, le), bucket = json_next(json, bucket)) {
                double value = 0;

                json_real(json, le, &bound);
                json_real(json, bucket, &value);
                metrics_put(w, PREFIX "%s_bucket{le=\"%g\"} %.17g\n", name, bound, value);
        }
        metrics_put(w,
                    PREFIX "%s_bucket{le=\"+Inf\"} %.17g\n" PREFIX "%s_sum %.17g\n" PREFIX
                           "%s_count %.17g\n",
                    name, count, name, sum, name, count);
}

static void put_usage(struct metrics_writer *w, const struct json_document *json)
{
        double total = 0, in_use = 0;

        if (!number_at(json, "blocks.total", &total) || !number_at(json, "blocks.in_use", &in_use))
                return;
        metrics_put_head(w, "kv_cache_usage_perc", "gauge",
                         "Share of the KV pool that running requests have, 0 to 1.");
        metrics_put_value(w, "kv_cache_usage_perc", total > 0 ? in_use / total : 0);
}

static void put_model(struct metrics_writer *w, const struct json_document *json)
{
        const char *name = json_string(json, at_path(json, "model.name"), NULL);
        const char *backend = json_string(json, at_path(json, "model.backend"), NULL);

        char shown[2][LABEL_BYTES];

        if (!name)
                return;
        metrics_put_head(w, "model_info", "gauge", "The model that is served.");
        metrics_put(w, PREFIX "model_info{model_name=\"%s\",backend=\"%s\"} 1\n",
                    metrics_escape(name, shown[0], LABEL_BYTES),
                    metrics_escape(backend ? backend : "", shown[1], LABEL_BYTES));
}

static void put_told(struct metrics_writer *w, const struct json_document *json)
{
        double value;

        put_model(w, json);
        for (size_t i = 0; i < N(told); i++)
                if (number_at(json, told[i].path, &value)) {
                        metrics_put_head(w, told[i].name, told[i].type, told[i].help);
                        metrics_put_value(w, told[i].name, value);
                }
        put_usage(w, json);
        metrics_put_head(w, "num_requests_waiting_by_reason", "gauge",
                         "Requests that wait, by reason.");
        for (size_t i = 0; i < N(waits); i++)
                if (number_at(json, waits[i].path, &value))
                        metrics_put(w,
                                    PREFIX "num_requests_waiting_by_reason{reason=\"%s\"} %.17g\n",
                                    waits[i].reason, value);
        for (size_t i = 0; i < N(latencies); i++)
                put_latency(w, json, latencies[i].name, latencies[i].help);
}

int metrics_write(const struct metrics *metrics, uint32_t calls, const struct json_document *status,
                  struct bytes *to)
{
        struct metrics_writer w = { .prefix = PREFIX, .to = to };

        metrics_put_head(&w, "up", "gauge", "1: the bridge has a connection to the daemon.");
        metrics_put_value(&w, "up", status ? 1 : 0);
        put_requests(&w, metrics);
        put_histogram(&w, "http_request_duration_seconds",
                      "From a request to the end of its answer.", &metrics->durations,
                      &seconds_bounds);
        metrics_put_head(&w, "http_calls", "gauge", "Requests that are being answered.");
        metrics_put_value(&w, "http_calls", calls);
        metrics_put_head(&w, "http_slow_clients_total", "counter",
                         "Clients that were cut because they read too slowly.");
        metrics_put_value(&w, "http_slow_clients_total", (double)metrics->slow_clients);
        put_histories(&w, metrics);
        put_runs(&w, metrics);
        if (status)
                put_told(&w, status);
        if (metrics->gen_ai)
                gen_ai_write(metrics->gen_ai, to, &w.result);
        return w.result;
}
