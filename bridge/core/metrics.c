#include "bridge/core/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/core/metrics-daemon.h"
#include "bridge/core/metrics-text.h"

#define PREFIX         METRICS_PREFIX
#define ROUTES_MAX     64u
#define REASONS_MAX    8u
#define STATUS_CLASSES 6u /* 1xx to 5xx; 0: the client left before the answer */
#define NS_PER_S       1e9

/* clang-format off */
static const struct histogram_bounds seconds_bounds = { 27, {
        .005, .01, .025, .05, .1, .2, .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60,
        120, 240, 480, 960, 1920, 7680 } };
static const struct histogram_bounds tokens_bounds = { 18, {
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5 } };
static const struct histogram_bounds token_time_bounds = { 23, {
        .0005, .001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5,
        7.5, 10, 20, 40, 80 } };
static const struct histogram_bounds count_bounds = { 5, { 1, 2, 5, 10, 20 } };
/* clang-format on */

struct metrics {
        struct route_counts {
                const char *route, *method; /* NULL: the entry is free */
                uint64_t by_class[STATUS_CLASSES];
        } routes[ROUTES_MAX]; /* in the order of their first call */
        struct histogram durations, queue, prefill, decode, inference;
        struct histogram prompt_tokens, generation_tokens, params_n, params_max_tokens, preemptions;
        struct histogram token_time;
        struct reason_count {
                const char *reason;
                uint64_t count;
        } reasons[REASONS_MAX];
        uint64_t prompt_total, cached_total, recomputed_total, generation_total;
        uint64_t slow_clients, clients_left;
        uint64_t histories[HISTORY_WAYS];
        uint64_t misses[MISS_REASONS];
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

/* The time of a token behind the first one. */
static void note_token_time(struct metrics *metrics, const struct smv_event *end)
{
        if (end->output_tokens > 1)
                histogram_note(&metrics->token_time, &token_time_bounds,
                               (double)end->decode_ns / NS_PER_S / (end->output_tokens - 1));
}

void metrics_end(struct metrics *metrics, const char *reason, const struct smv_event *end,
                 bool first, uint32_t choices, uint32_t max_tokens)
{
        uint64_t inference_ns = end->prefill_ns + end->decode_ns;

        count_reason(metrics, reason);
        metrics->generation_total += end->output_tokens;
        metrics->recomputed_total += end->recomputed;
        histogram_note(&metrics->generation_tokens, &tokens_bounds, end->output_tokens);
        histogram_note(&metrics->preemptions, &count_bounds, end->preemptions);
        histogram_note(&metrics->decode, &seconds_bounds, (double)end->decode_ns / NS_PER_S);
        histogram_note(&metrics->inference, &seconds_bounds, (double)inference_ns / NS_PER_S);
        note_token_time(metrics, end);
        if (!first)
                return;
        metrics->prompt_total += end->prompt_tokens;
        metrics->cached_total += end->cached_tokens;
        histogram_note(&metrics->prompt_tokens, &tokens_bounds, end->prompt_tokens);
        histogram_note(&metrics->params_n, &count_bounds, choices);
        histogram_note(&metrics->params_max_tokens, &tokens_bounds, max_tokens);
        histogram_note(&metrics->queue, &seconds_bounds, (double)end->queued_ns / NS_PER_S);
        histogram_note(&metrics->prefill, &seconds_bounds, (double)end->prefill_ns / NS_PER_S);
}

void metrics_request(struct metrics *metrics, const struct gen_ai_request *request)
{
        if (metrics->gen_ai)
                gen_ai_note(metrics->gen_ai, request);
}

void metrics_tokens(const struct metrics *metrics, uint64_t *ret_prompts, uint64_t *ret_answers)
{
        *ret_prompts = metrics->prompt_total;
        *ret_answers = metrics->generation_total;
}

void metrics_slow_client(struct metrics *metrics)
{
        metrics->slow_clients++;
}

void metrics_client_left(struct metrics *metrics)
{
        metrics->clients_left++;
}

void metrics_miss(struct metrics *metrics, enum miss_reason reason)
{
        metrics->misses[reason]++;
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

const char *metrics_miss_word(enum miss_reason reason)
{
        static const char *const words[] = {
                [MISS_NOTHING_CACHED] = "nothing_cached", [MISS_PREFIX] = "prefix_changed",
                [MISS_TOOLS] = "tools_changed",           [MISS_SYSTEM] = "system_changed",
                [MISS_MESSAGES] = "messages_changed",     [MISS_UNKNOWN] = "unknown",
        };

        return words[reason];
}

static void put_misses(struct metrics_writer *w, const struct metrics *metrics)
{
        metrics_put_head(w, "cache_miss_reason_total", "counter",
                         "Prompts that differ from all that is cached, by reason.");
        for (unsigned reason = 0; reason < MISS_REASONS; reason++)
                metrics_put(w, PREFIX "cache_miss_reason_total{reason=\"%s\"} %" PRIu64 "\n",
                            metrics_miss_word((enum miss_reason)reason), metrics->misses[reason]);
}

static void put_one(struct metrics_writer *w, const char *name, const char *type, uint64_t value,
                    const char *help)
{
        metrics_put_head(w, name, type, help);
        metrics_put_value(w, name, (double)value);
}

static void put_server(struct metrics_writer *w, const struct http_counts *http)
{
        put_one(w, "http_connections", "gauge", http->connections_open, "Open connections.");
        put_one(w, "http_connections_total", "counter", http->connections,
                "Connections that were accepted.");
        put_one(w, "http_queued_bytes", "gauge", http->queued_bytes,
                "Bytes of answers that clients have not taken.");
        put_one(w, "http_body_bytes", "gauge", http->body_bytes,
                "Bytes of requests' bodies that are in memory.");
        put_one(w, "http_sent_bytes_total", "counter", http->sent_bytes,
                "Bytes that were sent to clients.");
        metrics_put_head(w, "http_refusals_total", "counter",
                         "Requests and connections that the server refused, by reason.");
        for (int i = 0; i < HTTP_REFUSALS; i++)
                metrics_put(w, PREFIX "http_refusals_total{reason=\"%s\"} %" PRIu64 "\n",
                            http_refusal_name((enum http_refusal)i), http->refusals[i]);
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
        put_histogram(w, "request_params_max_tokens",
                      "Tokens that a choice may have, as asked or as the daemon limits it.",
                      &metrics->params_max_tokens, &tokens_bounds);
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
        put_histogram(w, "request_time_per_output_token_seconds",
                      "Mean time of a choice's tokens behind the first one.", &metrics->token_time,
                      &token_time_bounds);
}

/* ---- the whole ---- */

static void put_bridge(struct metrics_writer *w, const struct metrics *metrics,
                       const struct metrics_now *now)
{
        put_requests(w, metrics);
        put_histogram(w, "http_request_duration_seconds",
                      "From a request to the end of its answer.", &metrics->durations,
                      &seconds_bounds);
        put_one(w, "http_calls", "gauge", now->calls, "Requests that are being answered.");
        put_server(w, &now->http);
        put_one(w, "http_slow_clients_total", "counter", metrics->slow_clients,
                "Clients that were cut because they read too slowly.");
        put_one(w, "http_clients_left_total", "counter", metrics->clients_left,
                "Clients that left before the end of their answer.");
        put_histories(w, metrics);
        put_runs(w, metrics);
        put_misses(w, metrics);
}

int metrics_write(const struct metrics *metrics, const struct metrics_now *now, struct bytes *to)
{
        struct metrics_writer w = { .prefix = PREFIX, .to = to };

        put_one(&w, "up", "gauge", now->status != NULL,
                "1: the bridge has a connection to the daemon.");
        put_bridge(&w, metrics, now);
        if (now->status)
                metrics_daemon_write(&w, now->status);
        if (now->status && now->shows_users)
                metrics_users_write(&w, now->status);
        if (metrics->gen_ai)
                gen_ai_write(metrics->gen_ai, to, &w.result);
        return w.result;
}
