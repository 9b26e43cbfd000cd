#include "cli/top/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/status-reader.h"
#include "cli/work-reader.h"
#include "json/reader.h"

#define VALUES_MAX (1u << 20) /* a thousand streams have 20 each */

/* Of a new rate; the rest is from the rate before, so that rows do not jump. */
#define NEW_PART 0.5
/* Two looks that are closer than this say nothing about rates. */
#define CLOSE_MS 20

static const char *text_of(const struct json_document *json, uint32_t map, const char *key)
{
        const char *text = json_string(json, json_member(json, map, key), NULL);

        return text ? text : "";
}

/* ---- rates ---- */

static double elapsed_s(const struct snapshot *earlier, uint64_t at_ms)
{
        return (double)(at_ms - earlier->at_ms) / 1000;
}

/*
 * The rate of a stream that the earlier snapshot has, by the tokens since then.  Otherwise its
 * mean: it is young, or this is the first snapshot.
 */
static double stream_rate(const struct stream_row *row, const struct snapshot *earlier,
                          uint64_t at_ms)
{
        const struct stream_row *old = NULL;
        size_t at = snapshot_find(earlier, row->number);
        double rate;

        if (at < earlier->stream_count)
                old = &earlier->streams[at];
        if (!old || old->tokens > row->tokens)
                return row->age_ms ? (double)row->tokens * 1000 / (double)row->age_ms : 0;
        if (at_ms < earlier->at_ms + CLOSE_MS)
                return old->rate;
        rate = (double)(row->tokens - old->tokens) / elapsed_s(earlier, at_ms);
        if (!earlier->has_rate)
                return rate;
        return NEW_PART * rate + (1 - NEW_PART) * old->rate;
}

/* The daemon tells its owner how many tokens it has generated.  Others know their own streams. */
static void find_rate(struct snapshot *snapshot, const struct snapshot *earlier)
{
        snapshot->has_rate = earlier->status != NULL;
        snapshot->tokens_out = status_top_number(snapshot->status, "tokens_out");
        if (!snapshot->sees_all || !snapshot->has_rate) {
                for (size_t i = 0; i < snapshot->stream_count; i++)
                        snapshot->rate += snapshot->streams[i].rate;
        } else if (snapshot->at_ms < earlier->at_ms + CLOSE_MS) {
                snapshot->rate = earlier->rate;
        } else if (snapshot->tokens_out > earlier->tokens_out) {
                snapshot->rate = (snapshot->tokens_out - earlier->tokens_out) /
                                 elapsed_s(earlier, snapshot->at_ms);
        }
}

/* ---- rows ---- */

/* Names come from the user database, which may be slow: each is looked up once. */
static const char *name_of(const struct snapshot *snapshot, size_t count, uint64_t uid,
                           const char *principal, char to[USER_NAME_BYTES])
{
        for (size_t i = 0; i < count; i++)
                if (snapshot->streams[i].uid == uid &&
                    !strcmp(snapshot->streams[i].principal, principal))
                        return memcpy(to, snapshot->streams[i].user, USER_NAME_BYTES);
        return user_name(uid, principal, to);
}

static void read_stream(struct snapshot *snapshot, uint32_t node)
{
        const struct json_document *work = snapshot->work;
        struct stream_row *row = &snapshot->streams[snapshot->stream_count];

        *row = (struct stream_row){
                .number = work_number(work, node, "number"),
                .uid = work_number(work, node, "uid"),
                .pid = work_number(work, node, "pid"),
                .age_ms = work_number(work, node, "age_ms"),
                .tokens = work_number(work, node, "tokens"),
                .node = node,
                .principal = text_of(work, node, "principal"),
                .priority = work_word(work, node, "priority"),
                .state = work_word(work, node, "state"),
                .kind = work_word(work, node, "kind"),
                .waits_for = text_of(work, node, "waits_for"),
                .has_prompt = work_says(work, node, "prompt_done"),
                .has_cached = work_says(work, node, "prompt_found"),
                .prompt = work_number(work, node, "prompt"),
                .prompt_done = work_number(work, node, "prompt_done"),
                .cached = work_number(work, node, "prompt_found"),
        };
        name_of(snapshot, snapshot->stream_count, row->uid, row->principal, row->user);
        snapshot->stream_count++;
}

static int read_streams(struct snapshot *snapshot, const struct snapshot *earlier)
{
        uint32_t list = json_member(snapshot->work, 0, "streams");
        uint32_t count = json_count(snapshot->work, list);

        snapshot->streams = calloc(count + 1u, sizeof(*snapshot->streams));
        if (!snapshot->streams)
                return -ENOMEM;
        for (uint32_t at = json_first(snapshot->work, list); at != JSON_NONE;
             at = json_next(snapshot->work, at))
                read_stream(snapshot, at);
        for (size_t i = 0; i < snapshot->stream_count; i++)
                snapshot->streams[i].rate =
                        stream_rate(&snapshot->streams[i], earlier, snapshot->at_ms);
        return 0;
}

static void read_user(struct snapshot *snapshot, uint32_t node)
{
        const struct json_document *status = snapshot->status;
        struct user_row *row = &snapshot->users[snapshot->user_count++];

        *row = (struct user_row){
                .uid = (uint64_t)status_member(status, node, "uid"),
                .principal = text_of(status, node, "principal"),
                .requests = status_member(status, node, "requests"),
                .running = status_member(status, node, "running"),
                .waiting = status_member(status, node, "waiting"),
                .blocks = status_member(status, node, "blocks"),
                .cached = status_member(status, node, "cached_blocks"),
                .pinned = status_member(status, node, "pinned_blocks"),
                .handles = status_member(status, node, "handles"),
                .connections = status_member(status, node, "connections"),
        };
        name_of(snapshot, snapshot->stream_count, row->uid, row->principal, row->user);
        for (size_t i = 0; i < snapshot->stream_count; i++)
                if (snapshot->streams[i].uid == row->uid &&
                    !strcmp(snapshot->streams[i].principal, row->principal))
                        row->rate += snapshot->streams[i].rate;
}

static int compare_users(const void *a, const void *b)
{
        const struct user_row *x = a, *y = b;

        if (x->requests != y->requests)
                return x->requests < y->requests ? 1 : -1;
        if (x->blocks + x->cached != y->blocks + y->cached)
                return x->blocks + x->cached < y->blocks + y->cached ? 1 : -1;
        return (x->uid > y->uid) - (x->uid < y->uid);
}

static int read_users(struct snapshot *snapshot)
{
        uint32_t list = json_member(snapshot->status, 0, "users");

        snapshot->users = calloc(json_count(snapshot->status, list) + 1u, sizeof(*snapshot->users));
        if (!snapshot->users)
                return -ENOMEM;
        for (uint32_t at = json_first(snapshot->status, list); at != JSON_NONE;
             at = json_next(snapshot->status, at))
                read_user(snapshot, at);
        qsort(snapshot->users, snapshot->user_count, sizeof(*snapshot->users), compare_users);
        return 0;
}

static int parse(const char *json, const char *what, struct json_document **ret_reply, char *why)
{
        char fault[128] = "";
        int r = json_parse(json, strlen(json), VALUES_MAX, ret_reply, fault, sizeof(fault));

        if (r)
                snprintf(why, SNAPSHOT_WHY_BYTES, "cannot read %s: %s", what, fault);
        return r;
}

int snapshot_make(const char *status, const char *work, uint64_t at_ms,
                  const struct snapshot *earlier, struct snapshot *ret_snapshot, char *why)
{
        struct snapshot made = { .at_ms = at_ms };
        int r = parse(status, "the status", &made.status, why);

        if (!r)
                r = parse(work, "the list", &made.work, why);
        if (r) {
                snapshot_deinit(&made);
                return r;
        }
        made.sees_all = status_sees_all(made.status);
        made.handles = json_count(made.work, json_member(made.work, 0, "handles"));
        r = read_streams(&made, earlier);
        if (!r)
                r = read_users(&made);
        if (r) {
                snprintf(why, SNAPSHOT_WHY_BYTES, "out of memory");
                snapshot_deinit(&made);
                return r;
        }
        find_rate(&made, earlier);
        *ret_snapshot = made;
        return 0;
}

void snapshot_deinit(struct snapshot *snapshot)
{
        json_free(snapshot->status);
        json_free(snapshot->work);
        free(snapshot->streams);
        free(snapshot->users);
        *snapshot = (struct snapshot){ 0 };
}

/* ---- order ---- */

static int compare_ages(const struct stream_row *x, const struct stream_row *y)
{
        if (x->age_ms != y->age_ms)
                return x->age_ms < y->age_ms ? 1 : -1;
        return (x->number > y->number) - (x->number < y->number);
}

static int compare_rows(const struct stream_row *x, const struct stream_row *y, enum top_sort by)
{
        int r = 0;

        if (by == TOP_BY_USER)
                r = strcmp(x->user, y->user);
        else if (by == TOP_BY_TOKENS)
                r = (x->tokens < y->tokens) - (x->tokens > y->tokens);
        else if (by == TOP_BY_RATE)
                r = (x->rate < y->rate) - (x->rate > y->rate);
        return r ? r : compare_ages(x, y);
}

static int compare_streams(const void *a, const void *b, void *arg)
{
        const int *order = arg;
        int r = compare_rows(a, b, (enum top_sort)order[0]);

        return order[1] ? -r : r;
}

void snapshot_sort(struct snapshot *snapshot, enum top_sort by, bool reversed)
{
        int order[] = { (int)by, reversed };

        if (snapshot->stream_count)
                qsort_r(snapshot->streams, snapshot->stream_count, sizeof(*snapshot->streams),
                        compare_streams, order);
}

size_t snapshot_find(const struct snapshot *snapshot, uint64_t number)
{
        for (size_t i = 0; i < snapshot->stream_count; i++)
                if (snapshot->streams[i].number == number)
                        return i;
        return snapshot->stream_count;
}
