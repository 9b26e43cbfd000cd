/*
 * Numbers that name something have 64 bits, and many readers of JSON keep only 53 of them.  They
 * are texts here, as in `samovar ps --json`.
 */
#include "cli/top/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/status-reader.h"
#include "cli/work-reader.h"
#include "json/builder.h"

static void put_real(struct json_builder *json, const char *key, double value)
{
        json_put_key(json, key);
        json_put_float(json, value);
}

/* A count of the status: a whole number. */
static void put_count(struct json_builder *json, const char *key, double value)
{
        json_put_key_uint(json, key, (uint64_t)(value > 0 ? value : 0));
}

static void put_section(struct json_builder *json, const struct json_document *status,
                        const char *key, const char *section)
{
        json_put_key(json, key);
        json_put_node(json, status, json_member(status, 0, section));
}

static void put_quantiles(struct json_builder *json, const struct json_document *status,
                          const char *key, const char *histogram)
{
        static const struct {
                const char *key;
                double part;
        } parts[] = { { "p50_s", 0.5 }, { "p95_s", 0.95 }, { "p99_s", 0.99 } };

        json_put_key(json, key);
        if (status_quantile(status, histogram, 0.5) < 0) {
                json_put_null(json);
                return;
        }
        json_put_object(json);
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
                put_real(json, parts[i].key, status_quantile(status, histogram, parts[i].part));
        json_put_object_end(json);
}

static void put_daemon(struct json_builder *json, const struct json_document *status)
{
        struct reply_daemon daemon = reply_daemon(status);
        bool stopping = false;

        json_bool(status, json_member(status, 0, "stopping"), &stopping);
        json_put_key(json, "daemon");
        json_put_object(json);
        json_put_key_word(json, "socket", daemon.socket);
        json_put_key_uint(json, "pid", daemon.pid);
        json_put_key_uint(json, "uid", daemon.uid);
        json_put_key_word(json, "version", status_text(status, 0, "version"));
        put_count(json, "uptime_s", status_top_number(status, "uptime_s"));
        json_put_key_bool(json, "stopping", stopping);
        json_put_object_end(json);
}

/* An ordinary user is not told rates and times. */
static void put_speed(struct json_builder *json, const struct snapshot *snapshot)
{
        const struct json_document *status = snapshot->status;

        put_real(json, "tokens_per_s", snapshot->rate);
        put_section(json, status, "rates", "rates");
        json_put_key(json, "latency");
        if (!snapshot->sees_all) {
                json_put_null(json);
                return;
        }
        json_put_object(json);
        put_quantiles(json, status, "first_token", "time_to_first_token_seconds");
        put_quantiles(json, status, "next_token", "inter_token_latency_seconds");
        put_quantiles(json, status, "request", "e2e_request_latency_seconds");
        put_quantiles(json, status, "queued", "request_queue_time_seconds");
        json_put_object_end(json);
}

static void put_user(struct json_builder *json, const struct user_row *user)
{
        json_put_object(json);
        json_put_key_word(json, "name", user->user);
        json_put_key_uint(json, "uid", user->uid);
        json_put_key_word(json, "principal", user->principal);
        put_count(json, "requests", user->requests);
        put_count(json, "running", user->running);
        put_count(json, "waiting", user->waiting);
        put_count(json, "blocks", user->blocks);
        put_count(json, "cached_blocks", user->cached);
        put_count(json, "pinned_blocks", user->pinned);
        put_count(json, "handles", user->handles);
        put_count(json, "connections", user->connections);
        put_real(json, "tokens_per_s", user->rate);
        json_put_object_end(json);
}

static void put_if(struct json_builder *json, const char *key, bool known, uint64_t value)
{
        if (known)
                json_put_key_uint(json, key, value);
        else
                json_put_key_null(json, key);
}

static void put_stream(struct json_builder *json, const struct json_document *work,
                       const struct stream_row *row)
{
        char number[24], facts[WORK_FACTS_BYTES];

        snprintf(number, sizeof(number), "%" PRIu64, row->number);
        json_put_object(json);
        json_put_key_word(json, "number", number);
        json_put_key_word(json, "kind", row->kind);
        json_put_key_word(json, "user", row->user);
        json_put_key_uint(json, "uid", row->uid);
        json_put_key_word(json, "principal", row->principal);
        json_put_key_uint(json, "pid", row->pid);
        json_put_key_word(json, "class", row->priority);
        json_put_key_word(json, "state", row->state);
        put_if(json, "prompt", row->has_prompt, row->prompt);
        put_if(json, "prompt_done", row->has_prompt, row->prompt_done);
        put_if(json, "cached", row->has_cached, row->cached);
        json_put_key_uint(json, "tokens", row->tokens);
        put_real(json, "tokens_per_s", row->rate);
        put_real(json, "age_s", (double)row->age_ms / 1000);
        json_put_key_word(json, "waits_for", row->waits_for);
        json_put_key_word(json, "why", work_facts(work, row->node, facts));
        json_put_object_end(json);
}

int report_write(const struct snapshot *snapshot, struct bytes *to)
{
        const struct json_document *status = snapshot->status;
        struct json_builder json = json_build(to);
        int r;

        json_put_object(&json);
        put_daemon(&json, status);
        put_section(&json, status, "model", "model");
        put_section(&json, status, "loading", "loading");
        json_put_key_bool(&json, "sees_all", snapshot->sees_all);
        put_section(&json, status, "pool", "blocks");
        put_section(&json, status, "requests", "requests");
        put_section(&json, status, "waits", "waits");
        put_count(&json, "slots", status_number(status, "limits", "max_seqs"));
        put_speed(&json, snapshot);
        json_put_key(&json, "users");
        json_put_array(&json);
        for (size_t i = 0; i < snapshot->user_count; i++)
                put_user(&json, &snapshot->users[i]);
        json_put_array_end(&json);
        json_put_key(&json, "streams");
        json_put_array(&json);
        for (size_t i = 0; i < snapshot->stream_count; i++)
                put_stream(&json, snapshot->work, &snapshot->streams[i]);
        json_put_array_end(&json);
        json_put_key_uint(&json, "handles", snapshot->handles);
        json_put_object_end(&json);
        r = json_put_end(&json);
        return r ? r : bytes_add(to, "\n", 1);
}
