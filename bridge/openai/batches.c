#include "bridge/openai/batches.h"

#include <errno.h>
#include <string.h>

#include "bridge/core/fields.h"
#include "bridge/openai/batch-store.h"
#include "bridge/openai/files.h"

#define LIST_MAX 100u

static void reply_batch(struct call *call, const struct batch *batch)
{
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        batch_record_put(&to, &batch->record);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}

/* NULL: the call has failed. */
static struct batch *find(struct call *call)
{
        struct batch *batch = batch_find(call->bridge->batches, call_owner(call), call->tail);
        struct failure failure;

        if (batch)
                return batch;
        failure = failure_make(FAILURE_NOT_FOUND, "batch_id", "there is no such batch");
        call_fail(call, &failure);
        return NULL;
}

static void read_batch(struct call *call, struct fields *fields, struct batch_conf *conf,
                       struct bytes *metadata)
{
        struct text input = { 0 }, window = TEXT("24h");
        struct json_builder to = json_build(metadata);
        uint32_t node;

        field_text(fields, 0, "input_file_id", &input);
        field_text(fields, 0, "endpoint", &conf->endpoint);
        field_text(fields, 0, "completion_window", &window);
        node = field_object(fields, 0, "metadata");
        if (!batch_endpoint(conf->endpoint))
                fields_fail(fields, FAILURE_REQUEST, "endpoint",
                            "endpoint must be " BATCH_ENDPOINTS);
        if (!text_is(window, "24h"))
                fields_fail(fields, FAILURE_REQUEST, "completion_window",
                            "completion_window must be 24h");
        conf->input = input.at ? file_store_find(call->bridge->files, conf->owner, input) : NULL;
        if (!conf->input)
                fields_fail(fields, input.at ? FAILURE_NOT_FOUND : FAILURE_REQUEST, "input_file_id",
                            "input_file_id must name a file of this key");
        if (node == JSON_NONE)
                return;
        json_put_node(&to, fields->json, node);
        if (json_put_end(&to))
                call->arena.failed = true;
        else if (metadata->count > BATCH_METADATA_BYTES)
                fields_fail(fields, FAILURE_REQUEST, "metadata",
                            "metadata has %zu bytes; the limit is %u", metadata->count,
                            BATCH_METADATA_BYTES);
        else
                conf->metadata = (struct text){ metadata->at, metadata->count };
}

static void on_begun(void *arg, struct batch *batch, int result)
{
        struct call *call = openai_awaited(arg);

        if (call && result)
                call_not_stored(call, result);
        else if (call)
                reply_batch(call, batch);
}

static void begin(struct call *call, const struct batch_conf *conf)
{
        struct openai_wait *wait = openai_await(call);
        struct failure failure;
        int r;

        if (!wait)
                return;
        r = batch_begin(call->bridge->batches, conf, on_begun, wait);
        if (!r)
                return;
        openai_awaited(wait);
        if (r == -EDQUOT) {
                failure = failure_make(FAILURE_QUOTA, NULL,
                                       "8 batches of this key run already; wait, or cancel one");
                call_fail(call, &failure);
        } else if (r == -ENOMEM) {
                call_no_memory(call);
        } else {
                call_not_stored(call, r);
        }
}

void openai_batch_create(struct call *call)
{
        struct fields fields = { 0 };
        struct bytes metadata = { 0 };
        struct batch_conf conf = { .owner = call_owner(call) };

        if (!call_read_json(call))
                return;
        fields.json = call->json;
        read_batch(call, &fields, &conf, &metadata);
        if (call_was_read(call, &fields))
                begin(call, &conf);
        bytes_deinit(&metadata);
}

void openai_batch_get(struct call *call)
{
        const struct batch *batch = find(call);

        if (batch)
                reply_batch(call, batch);
}

void openai_batch_cancel(struct call *call)
{
        struct batch *batch = find(call);
        struct failure failure;

        if (!batch)
                return;
        if (batch_cancel(batch)) {
                reply_batch(call, batch);
                return;
        }
        failure = failure_make(FAILURE_REQUEST, "batch_id", "the batch has ended already");
        failure.status = 409;
        failure.no_retry = true;
        call_fail(call, &failure);
}

void openai_batch_list(struct call *call)
{
        const char *after = call_query(call, "after");
        const struct batch *at = NULL, *first = NULL, *last = NULL;
        uint32_t limit = openai_list_limit(call, LIST_MAX), count = 0;
        struct bytes body = { 0 };
        struct json_builder to = json_build(&body);

        if (after)
                at = batch_find(call->bridge->batches, call_owner(call),
                                (struct text){ after, strlen(after) });
        json_put_object(&to);
        json_put_key_word(&to, "object", "list");
        json_put_key(&to, "data");
        json_put_array(&to);
        while ((at = batch_next(call->bridge->batches, call_owner(call), at))) {
                if (count++ == limit)
                        break;
                batch_record_put(&to, &at->record);
                first = first ? first : at;
                last = at;
        }
        json_put_array_end(&to);
        json_put_key_word(&to, "first_id", first ? first->record.id : NULL);
        json_put_key_word(&to, "last_id", last ? last->record.id : NULL);
        json_put_key_bool(&to, "has_more", at != NULL);
        json_put_object_end(&to);
        call_reply_json(call, &to, &body);
        bytes_deinit(&body);
}
