#include "bridge/own/live.h"

#include <stdlib.h>
#include <string.h>

#include "bridge/core/bridge.h"
#include "bridge/core/kept.h"
#include "json/builder.h"
#include "json/reader.h"

#define NODES_MAX 1000000u
#define WHY_BYTES 128u

/* The daemon's answer is JSON already. */
static void on_json(struct call *call, const struct smv_event *answer)
{
        call_reply(call, 200, "application/json", answer->text, answer->text_bytes);
}

static void ask_status(struct call *call)
{
        uint32_t request = 0;
        int r = smv_ask_status(link_client(call->link), &request);

        call_ask(call, r, request, on_json);
}

void own_status(struct call *call)
{
        call_with_daemon(call, ask_status);
}

/* ---- the pool ---- */

/* A number of the query or of the path; false: it is none, and the call has failed. */
static bool read_number(struct call *call, const char *name, const char *text, uint64_t *ret_number)
{
        struct failure failure;
        char *end = NULL;

        if (text)
                *ret_number = strtoull(text, &end, 10);
        if (!text || (*text >= '0' && *text <= '9' && !*end))
                return true;
        failure =
                failure_make(FAILURE_REQUEST, name, "%s is %.20s; it must be a number", name, text);
        call_fail(call, &failure);
        return false;
}

static void ask_pool(struct call *call)
{
        uint32_t request = 0;
        uint64_t from = 0;
        int r;

        if (!read_number(call, "from", call_query(call, "from"), &from))
                return;
        r = smv_ask_pool(link_client(call->link), from < UINT32_MAX ? (uint32_t)from : UINT32_MAX,
                         &request);
        call_ask(call, r, request, on_json);
}

void own_pool(struct call *call)
{
        call_with_daemon(call, ask_pool);
}

/* ---- work ---- */

/* Many readers keep 53 bits of a number, so a number that names something is a text. */
static bool is_name(const char *key)
{
        return !strcmp(key, "number") || !strcmp(key, "handle");
}

static void put_member(struct json_builder *to, const struct json_document *work, uint32_t value)
{
        const char *key = json_key(work, value, NULL), *digits = json_number(work, value);

        json_put_key(to, key);
        if (digits && is_name(key))
                json_put_text(to, digits, strlen(digits));
        else
                json_put_node(to, work, value);
}

static void put_row(struct json_builder *to, const struct call *call,
                    const struct json_document *work, uint32_t row)
{
        const struct kept_stream *kept;
        uint64_t number = 0;

        json_put_object(to);
        for (uint32_t at = json_first(work, row); at != JSON_NONE; at = json_next(work, at))
                put_member(to, work, at);
        json_whole(work, json_member(work, row, "number"), &number);
        kept = kept_find_resumable(call->bridge->kept, call->principal, number);
        if (kept)
                json_put_key_word(to, "stream_id", kept->id);
        json_put_object_end(to);
}

static void put_rows(struct json_builder *to, const struct call *call,
                     const struct json_document *work, const char *name)
{
        uint32_t row = json_first(work, json_member(work, 0, name));

        json_put_key(to, name);
        json_put_array(to);
        for (; row != JSON_NONE; row = json_next(work, row))
                put_row(to, call, work, row);
        json_put_array_end(to);
}

static void on_work(struct call *call, const struct smv_event *answer)
{
        struct json_document *work = NULL;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);
        char why[WHY_BYTES];

        if (json_parse(answer->text, answer->text_bytes, NODES_MAX, &work, why, sizeof(why))) {
                call_no_memory(call);
                return;
        }
        json_put_object(&to);
        put_rows(&to, call, work, "streams");
        put_rows(&to, call, work, "handles");
        json_put_object_end(&to);
        json_free(work);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

static void ask_work(struct call *call)
{
        uint32_t request = 0;
        int r = smv_ask_list(link_client(call->link), &request);

        call_ask(call, r, request, on_work);
}

void own_work(struct call *call)
{
        call_with_daemon(call, ask_work);
}

static void on_work_ended(struct call *call, const struct smv_event *answer)
{
        static const char ended[] = "{\"ended\":true}";

        (void)answer;
        call_reply(call, 200, "application/json", ended, sizeof(ended) - 1);
}

static void ask_end(struct call *call)
{
        struct text tail = arena_copy(&call->arena, call->tail.at, call->tail.bytes);
        uint32_t request = 0;
        uint64_t number = 0;
        int r;

        if (!tail.at)
                call_no_memory(call);
        if (!tail.at || !read_number(call, "number", tail.at, &number))
                return;
        r = smv_ask_end(link_client(call->link), number, &request);
        call_ask(call, r, request, on_work_ended);
}

void own_work_end(struct call *call)
{
        call_with_daemon(call, ask_end);
}
