#include "bridge/openai/batch-record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge/core/fields.h"
#include "json/reader.h"

#define VERSION   1
#define NODES_MAX 16384u
#define DATA_MAX  (UINT64_C(1) << 50) /* so that no sum of two overflows */

static const char *const status_names[BATCH_STATUS_N] = {
        "validating", "in_progress", "finalizing", "cancelling",
        "completed",  "failed",      "expired",    "cancelled",
};

bool batch_record_has_ended(const struct batch_record *record)
{
        return record->status >= BATCH_COMPLETED;
}

const char *batch_status_name(enum batch_status status)
{
        return status_names[status];
}

/* ---- for clients ---- */

static void put_errors(struct json_builder *to, const struct batch_record *record)
{
        json_put_key(to, "errors");
        if (!*record->why) {
                json_put_null(to);
                return;
        }
        json_put_object(to);
        json_put_key_word(to, "object", "list");
        json_put_key(to, "data");
        json_put_array(to);
        json_put_object(to);
        json_put_key_word(to, "code", record->why_line ? "invalid_line" : "batch_failed");
        json_put_key(to, "line");
        if (record->why_line)
                json_put_uint(to, record->why_line);
        else
                json_put_null(to);
        json_put_key_word(to, "message", record->why);
        json_put_key_null(to, "param");
        json_put_object_end(to);
        json_put_array_end(to);
        json_put_object_end(to);
}

static void put_time(struct json_builder *to, const struct batch_record *record, const char *key,
                     enum batch_status status)
{
        json_put_key(to, key);
        if (record->times_s[status])
                json_put_uint(to, record->times_s[status]);
        else
                json_put_null(to);
}

static void put_times(struct json_builder *to, const struct batch_record *record)
{
        put_time(to, record, "created_at", BATCH_VALIDATING);
        put_time(to, record, "in_progress_at", BATCH_IN_PROGRESS);
        json_put_key_uint(to, "expires_at", record->times_s[BATCH_VALIDATING] + BATCH_WINDOW_S);
        put_time(to, record, "finalizing_at", BATCH_FINALIZING);
        put_time(to, record, "completed_at", BATCH_COMPLETED);
        put_time(to, record, "failed_at", BATCH_FAILED);
        put_time(to, record, "expired_at", BATCH_EXPIRED);
        put_time(to, record, "cancelling_at", BATCH_CANCELLING);
        put_time(to, record, "cancelled_at", BATCH_CANCELLED);
}

void batch_record_put(struct json_builder *to, const struct batch_record *record)
{
        bool ended = batch_record_has_ended(record);

        json_put_object(to);
        json_put_key_word(to, "id", record->id);
        json_put_key_word(to, "object", "batch");
        json_put_key_word(to, "endpoint", record->endpoint);
        put_errors(to, record);
        json_put_key_word(to, "input_file_id", record->input_id);
        json_put_key_word(to, "completion_window", "24h");
        json_put_key_word(to, "status", status_names[record->status]);
        json_put_key_word(to, "output_file_id",
                          ended && record->has_output ? record->output_id : NULL);
        json_put_key_word(to, "error_file_id",
                          ended && record->has_errors ? record->error_id : NULL);
        put_times(to, record);
        json_put_key(to, "request_counts");
        json_put_object(to);
        json_put_key_uint(to, "total", record->total);
        json_put_key_uint(to, "completed", record->completed);
        json_put_key_uint(to, "failed", record->failed);
        json_put_object_end(to);
        json_put_key(to, "metadata");
        json_put_raw(to, record->metadata ? record->metadata : "null");
        json_put_object_end(to);
}

/* ---- on the disk ---- */

void batch_record_write(struct json_builder *to, const struct batch_record *record)
{
        json_put_object(to);
        json_put_key_uint(to, "version", VERSION);
        json_put_key_word(to, "kind", "batch");
        json_put_key_word(to, "id", record->id);
        json_put_key_word(to, "owner", record->owner);
        json_put_key_word(to, "endpoint", record->endpoint);
        json_put_key_word(to, "input_id", record->input_id);
        json_put_key_word(to, "output_id", record->output_id);
        json_put_key_word(to, "error_id", record->error_id);
        json_put_key_bool(to, "has_output", record->has_output);
        json_put_key_bool(to, "has_errors", record->has_errors);
        json_put_key_word(to, "status", status_names[record->status]);
        json_put_key_word(to, "ending", status_names[record->ending]);
        json_put_key_uint(to, "created_ns", record->created_ns);
        json_put_key(to, "times_s");
        json_put_object(to);
        for (unsigned i = 0; i < BATCH_STATUS_N; i++)
                json_put_key_uint(to, status_names[i], record->times_s[i]);
        json_put_object_end(to);
        json_put_key_uint(to, "input_offset", record->input_offset);
        json_put_key_uint(to, "input_bytes", record->input_bytes);
        json_put_key_uint(to, "total", record->total);
        json_put_key_uint(to, "completed", record->completed);
        json_put_key_uint(to, "failed", record->failed);
        json_put_key_word(to, "why", record->why);
        json_put_key_uint(to, "why_line", record->why_line);
        json_put_key(to, "metadata");
        json_put_raw(to, record->metadata ? record->metadata : "null");
        json_put_object_end(to);
}

static bool copy(const struct json_document *json, const char *name, char *to, size_t size)
{
        size_t bytes = 0;
        const char *text = json_string(json, json_member(json, 0, name), &bytes);

        if (!text || bytes >= size || strlen(text) != bytes)
                return false;
        memcpy(to, text, bytes + 1);
        return true;
}

static bool copy_id(const struct json_document *json, const char *name, const char *prefix,
                    char *to, size_t size)
{
        return copy(json, name, to, size) && record_id_is((struct text){ to, strlen(to) }, prefix);
}

static bool read_status(const struct json_document *json, const char *name,
                        enum batch_status *ret_status)
{
        struct text text = text_of(json, json_member(json, 0, name));

        for (unsigned i = 0; i < BATCH_STATUS_N; i++) {
                if (!text_is(text, status_names[i]))
                        continue;
                *ret_status = (enum batch_status)i;
                return true;
        }
        return false;
}

static bool read_number(const struct json_document *json, uint32_t object, const char *name,
                        uint64_t most, uint64_t *ret_value)
{
        return json_whole(json, json_member(json, object, name), ret_value) && *ret_value <= most;
}

static bool read_count(const struct json_document *json, const char *name, uint64_t most,
                       uint32_t *ret_count)
{
        uint64_t value = 0;

        if (!read_number(json, 0, name, most, &value))
                return false;
        *ret_count = (uint32_t)value;
        return true;
}

static bool read_times(const struct json_document *json, struct batch_record *record)
{
        uint32_t times = json_member(json, 0, "times_s");

        for (unsigned i = 0; i < BATCH_STATUS_N; i++)
                if (!read_number(json, times, status_names[i], INT64_MAX, &record->times_s[i]))
                        return false;
        return read_number(json, 0, "created_ns", INT64_MAX, &record->created_ns);
}

/* The fault of a parsed record, or NULL. */
static const char *read_fields(const struct json_document *json, struct batch_record *record)
{
        uint64_t version = 0;

        if (!read_number(json, 0, "version", VERSION, &version) || version != VERSION)
                return "it has another version";
        if (!text_is(text_of(json, json_member(json, 0, "kind")), "batch") ||
            !copy_id(json, "id", BATCH_PREFIX, record->id, sizeof(record->id)))
                return "it is no record of a batch";
        if (!copy(json, "owner", record->owner, sizeof(record->owner)) ||
            !record_owner_is((struct text){ record->owner, strlen(record->owner) }) ||
            !copy(json, "endpoint", record->endpoint, sizeof(record->endpoint)) ||
            !copy(json, "why", record->why, sizeof(record->why)))
                return "owner, endpoint or why is wrong";
        if (!copy_id(json, "input_id", FILE_PREFIX, record->input_id, sizeof(record->input_id)) ||
            !copy_id(json, "output_id", FILE_PREFIX, record->output_id,
                     sizeof(record->output_id)) ||
            !copy_id(json, "error_id", FILE_PREFIX, record->error_id, sizeof(record->error_id)) ||
            !json_bool(json, json_member(json, 0, "has_output"), &record->has_output) ||
            !json_bool(json, json_member(json, 0, "has_errors"), &record->has_errors))
                return "a file is wrong";
        if (!read_status(json, "status", &record->status) ||
            !read_status(json, "ending", &record->ending) ||
            (record->status == BATCH_FINALIZING && record->ending < BATCH_COMPLETED) ||
            !read_times(json, record))
                return "the status or a time is wrong";
        if (!read_number(json, 0, "input_offset", DATA_MAX, &record->input_offset) ||
            !read_number(json, 0, "input_bytes", DATA_MAX, &record->input_bytes) ||
            !read_count(json, "total", BATCH_LINES_MAX, &record->total) ||
            !read_count(json, "completed", BATCH_LINES_MAX, &record->completed) ||
            !read_count(json, "failed", BATCH_LINES_MAX, &record->failed) ||
            !read_count(json, "why_line", UINT32_MAX, &record->why_line))
                return "a size or a count is wrong";
        return NULL;
}

static int read_metadata(const struct json_document *json, struct batch_record *record)
{
        uint32_t node = json_member(json, 0, "metadata");
        struct bytes text = { 0 };
        struct json_builder to = json_build(&text);

        if (json_kind(json, node) != JSON_OBJECT)
                return 0;
        json_put_node(&to, json, node);
        if (json_put_end(&to)) {
                bytes_deinit(&text);
                return -ENOMEM;
        }
        record->metadata = text.at;
        return 0;
}

int batch_record_read(struct text text, struct batch_record *ret_record, const char **ret_why)
{
        struct json_document *json;
        char why[128];
        int r;

        *ret_record = (struct batch_record){ 0 };
        *ret_why = "it is no JSON";
        r = json_parse(text.at, text.bytes, NODES_MAX, &json, why, sizeof(why));
        if (r)
                return r;
        *ret_why = read_fields(json, ret_record);
        r = *ret_why ? -EINVAL : read_metadata(json, ret_record);
        json_free(json);
        return r;
}
