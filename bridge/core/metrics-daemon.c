#include "bridge/core/metrics-daemon.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "json/document.h"

#define LABEL_BYTES 200u
#define USERS_MAX   64u /* that have labels of their own */

#define N(array) (sizeof(array) / sizeof(*(array)))

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
        { "spec_decode_num_draft_tokens_total", "counter", "drafted", "Guessed tokens that were computed." },
        { "spec_decode_num_accepted_tokens_total", "counter", "drafts_right", "Guessed tokens that were right." },
        { "forks_total",              "counter", "requests.forks",    "Forks of running streams." },
        { "shared_blocks",            "gauge",   "blocks.shared",     "Blocks that more than one request refers to." },
        { "ring_full_stalls_total",   "counter", "requests.stalls",   "Times that a stream paused because its client did not read." },
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
        { "token_delivery_seconds",      "From the step that has a token until its client is told." },
};
static const struct {
        const char *name, *type, *key, *help;
} of_users[] = {
        { "user_requests_running", "gauge",   "running",    "Requests of a user that have a slot." },
        { "user_requests_waiting", "gauge",   "waiting",    "Requests of a user that wait." },
        { "user_blocks",           "gauge",   "blocks",     "Blocks that the requests of a user have or were promised." },
        { "user_tokens_total",     "counter", "tokens_out", "Tokens of a user's streams that have ended." },
};
/* clang-format on */

/* `of` has the counts of its buckets, whose bounds are the array `le`. */
static void put_buckets(struct metrics_writer *w, const struct json_document *json,
                        const char *name, uint32_t of, uint32_t le, double sum)
{
        uint32_t at = json_first(json, le);
        uint32_t bucket = json_first(json, json_member(json, of, "buckets"));
        double count = 0, bound = 0, value = 0;

        json_real(json, json_member(json, of, "count"), &count);
        for (; at != JSON_NONE && bucket != JSON_NONE;
             at = json_next(json, at), bucket = json_next(json, bucket)) {
                json_real(json, at, &bound);
                json_real(json, bucket, &value);
                metrics_put(w, METRICS_PREFIX "%s_bucket{le=\"%g\"} %.17g\n", name, bound, value);
        }
        metrics_put(w,
                    METRICS_PREFIX "%s_bucket{le=\"+Inf\"} %.17g\n" METRICS_PREFIX
                                   "%s_sum %.17g\n" METRICS_PREFIX "%s_count %.17g\n",
                    name, count, name, sum, name, count);
}

static void put_latency(struct metrics_writer *w, const struct json_document *json,
                        const char *name, const char *help)
{
        uint32_t of = json_member(json, at_path(json, "latency"), name);
        double sum = 0;

        if (!json_real(json, json_member(json, of, "sum"), &sum))
                return;
        metrics_put_head(w, name, "histogram", help);
        put_buckets(w, json, name, of, at_path(json, "latency.le"), sum);
}

static void put_steps(struct metrics_writer *w, const struct json_document *json)
{
        static const char name[] = "iteration_tokens_total";
        double rows;

        if (at_path(json, "step_rows") == JSON_NONE || !number_at(json, "rows", &rows))
                return;
        metrics_put_head(w, name, "histogram", "Rows of a step.");
        put_buckets(w, json, name, at_path(json, "step_rows"), at_path(json, "step_rows.le"), rows);
}

/* By position in a guess, from 0 as in vLLM. */
static void put_drafts(struct metrics_writer *w, const struct json_document *json, const char *key,
                       const char *name, const char *help)
{
        uint32_t at = json_first(json, at_path(json, key));
        double value = 0;

        if (at != JSON_NONE)
                metrics_put_head(w, name, "counter", help);
        for (unsigned i = 0; at != JSON_NONE; i++, at = json_next(json, at)) {
                json_real(json, at, &value);
                metrics_put(w, METRICS_PREFIX "%s{position=\"%u\"} %.17g\n", name, i, value);
        }
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

static void put_cache_config(struct metrics_writer *w, const struct json_document *json)
{
        double positions, total;

        if (!number_at(json, "blocks.positions", &positions) ||
            !number_at(json, "blocks.total", &total))
                return;
        metrics_put_head(w, "cache_config_info", "gauge",
                         "The KV pool: positions of a block, blocks.");
        metrics_put(w,
                    METRICS_PREFIX
                    "cache_config_info{block_size=\"%.0f\",num_gpu_blocks=\"%.0f\"} 1\n",
                    positions, total);
}

/* The reasons are told only to those who may see everything. */
static void put_refusals(struct metrics_writer *w, const struct json_document *json)
{
        static const char name[] = "admission_rejections_total";
        uint32_t at = json_first(json, at_path(json, "refusals"));
        double value;

        if (!number_at(json, "requests.refused", &value))
                return;
        metrics_put_head(w, name, "counter", "Requests that the daemon refused.");
        if (at == JSON_NONE)
                metrics_put_value(w, name, value);
        for (; at != JSON_NONE; at = json_next(json, at))
                if (json_real(json, at, &value))
                        metrics_put(w, METRICS_PREFIX "%s{reason=\"%s\"} %.17g\n", name,
                                    json_key(json, at, NULL), value);
}

static void put_model(struct metrics_writer *w, const struct json_document *json)
{
        const char *name = json_string(json, at_path(json, "model.name"), NULL);
        const char *backend = json_string(json, at_path(json, "model.backend"), NULL);

        char shown[2][LABEL_BYTES];

        if (!name)
                return;
        metrics_put_head(w, "model_info", "gauge", "The model that is served.");
        metrics_put(w, METRICS_PREFIX "model_info{model_name=\"%s\",backend=\"%s\"} 1\n",
                    metrics_escape(name, shown[0], LABEL_BYTES),
                    metrics_escape(backend ? backend : "", shown[1], LABEL_BYTES));
}

void metrics_daemon_write(struct metrics_writer *w, const struct json_document *json)
{
        double value;

        put_model(w, json);
        for (size_t i = 0; i < N(told); i++)
                if (number_at(json, told[i].path, &value)) {
                        metrics_put_head(w, told[i].name, told[i].type, told[i].help);
                        metrics_put_value(w, told[i].name, value);
                }
        put_usage(w, json);
        put_cache_config(w, json);
        put_steps(w, json);
        put_drafts(w, json, "drafted_by_depth", "spec_decode_num_draft_tokens_per_pos_total",
                   "Guessed tokens that were computed, by position in their guess.");
        put_drafts(w, json, "drafts_right_by_depth",
                   "spec_decode_num_accepted_tokens_per_pos_total",
                   "Guessed tokens that were right, by position in their guess.");
        put_refusals(w, json);
        metrics_put_head(w, "num_requests_waiting_by_reason", "gauge",
                         "Requests that wait, by reason.");
        for (size_t i = 0; i < N(waits); i++)
                if (number_at(json, waits[i].path, &value))
                        metrics_put(w,
                                    METRICS_PREFIX
                                    "num_requests_waiting_by_reason{reason=\"%s\"} %.17g\n",
                                    waits[i].reason, value);
        for (size_t i = 0; i < N(latencies); i++)
                put_latency(w, json, latencies[i].name, latencies[i].help);
}

/* ---- users ---- */

static void put_user(struct metrics_writer *w, const struct json_document *json, uint32_t user,
                     const char *name, double value)
{
        const char *principal = json_string(json, json_member(json, user, "principal"), NULL);
        char shown[LABEL_BYTES];
        double uid = 0;

        json_real(json, json_member(json, user, "uid"), &uid);
        metrics_put(w, METRICS_PREFIX "%s{uid=\"%.0f\",principal=\"%s\"} %.17g\n", name, uid,
                    metrics_escape(principal ? principal : "", shown, LABEL_BYTES), value);
}

/* One number of all users.  Those beyond USERS_MAX share a row. */
static void put_of_users(struct metrics_writer *w, const struct json_document *json, uint32_t users,
                         const char *name, const char *key)
{
        uint32_t count = 0;
        double others = 0;

        for (uint32_t at = json_first(json, users); at != JSON_NONE; at = json_next(json, at)) {
                double value = 0;

                json_real(json, json_member(json, at, key), &value);
                if (count++ < USERS_MAX)
                        put_user(w, json, at, name, value);
                else
                        others += value;
        }
        if (count > USERS_MAX)
                metrics_put(w, METRICS_PREFIX "%s{uid=\"other\",principal=\"\"} %.17g\n", name,
                            others);
}

void metrics_users_write(struct metrics_writer *w, const struct json_document *json)
{
        uint32_t users = at_path(json, "users");

        if (json_count(json, users) < 2)
                return;
        for (size_t i = 0; i < N(of_users); i++) {
                metrics_put_head(w, of_users[i].name, of_users[i].type, of_users[i].help);
                put_of_users(w, json, users, of_users[i].name, of_users[i].key);
        }
}
