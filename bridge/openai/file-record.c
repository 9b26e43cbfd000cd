#include "bridge/openai/file-record.h"

#include <stdio.h>
#include <string.h>

#include "bridge/core/fields.h"
#include "json/reader.h"

#define NS_PER_S   UINT64_C(1000000000)
#define VERSION    1
#define NODES_MAX  64u
#define NAME_BYTES 120u
#define DATA_MAX   (UINT64_C(1) << 50) /* so that no sum of two overflows */

void file_record_set_name(struct file_record *record, struct text name)
{
        snprintf(record->filename, sizeof(record->filename), "%.*s",
                 (int)(name.bytes < NAME_BYTES ? name.bytes : NAME_BYTES), name.at);
}

void file_put(struct json_builder *to, const struct file_record *record)
{
        json_put_object(to);
        json_put_key_word(to, "id", record->id);
        json_put_key_word(to, "object", "file");
        json_put_key_uint(to, "bytes", record->bytes);
        json_put_key_uint(to, "created_at", record->created_ns / NS_PER_S);
        json_put_key_uint(to, "expires_at", record->expires_s);
        json_put_key_word(to, "filename", record->filename);
        json_put_key_word(to, "purpose", record->purpose);
        json_put_key_word(to, "status", "processed");
        json_put_object_end(to);
}

void file_record_write(struct json_builder *to, const struct file_record *record)
{
        json_put_object(to);
        json_put_key_uint(to, "version", VERSION);
        json_put_key_word(to, "kind", "file");
        json_put_key_word(to, "id", record->id);
        json_put_key_word(to, "owner", record->owner);
        json_put_key_word(to, "filename", record->filename);
        json_put_key_word(to, "purpose", record->purpose);
        json_put_key_uint(to, "created_ns", record->created_ns);
        json_put_key_uint(to, "expires_s", record->expires_s);
        json_put_key_uint(to, "offset", record->offset);
        json_put_key_uint(to, "bytes", record->bytes);
        json_put_object_end(to);
}

bool record_id_is(struct text id, const char *prefix)
{
        size_t bytes = strlen(prefix);

        if (!id.at || id.bytes != bytes + 24 || memcmp(id.at, prefix, bytes))
                return false;
        for (size_t i = bytes; i < id.bytes; i++) {
                char c = id.at[i];

                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))
                        return false;
        }
        return true;
}

bool record_owner_is(struct text owner)
{
        return owner.at && (!owner.bytes || http_name_is_valid(owner.at, owner.bytes));
}

static bool number(const struct json_document *json, const char *name, uint64_t most,
                   uint64_t *ret_value)
{
        return json_whole(json, json_member(json, 0, name), ret_value) && *ret_value <= most;
}

/* The fault of a parsed record, or NULL. */
static const char *read_fields(const struct json_document *json, struct file_record *record)
{
        struct text kind = text_of(json, json_member(json, 0, "kind"));
        struct text id = text_of(json, json_member(json, 0, "id"));
        struct text owner = text_of(json, json_member(json, 0, "owner"));
        struct text name = text_of(json, json_member(json, 0, "filename"));
        struct text purpose = text_of(json, json_member(json, 0, "purpose"));
        uint64_t version = 0;

        if (!number(json, "version", VERSION, &version) || version != VERSION)
                return "it has another version";
        if (!text_is(kind, "file") || !record_id_is(id, FILE_PREFIX))
                return "it is no record of a file";
        if (!record_owner_is(owner) || !name.at ||
            (!text_is(purpose, "batch") && !text_is(purpose, "batch_output")))
                return "owner, filename or purpose is wrong";
        if (!number(json, "created_ns", INT64_MAX, &record->created_ns) ||
            !number(json, "expires_s", INT64_MAX, &record->expires_s) ||
            !number(json, "offset", DATA_MAX, &record->offset) ||
            !number(json, "bytes", DATA_MAX, &record->bytes))
                return "a time or a size is wrong";
        snprintf(record->id, sizeof(record->id), "%.*s", (int)id.bytes, id.at);
        snprintf(record->owner, sizeof(record->owner), "%.*s", (int)owner.bytes, owner.at);
        snprintf(record->purpose, sizeof(record->purpose), "%.*s", (int)purpose.bytes, purpose.at);
        file_record_set_name(record, name);
        return NULL;
}

bool file_record_read(struct text text, struct file_record *ret_record, const char **ret_why)
{
        struct json_document *json;
        char why[128];

        *ret_record = (struct file_record){ 0 };
        *ret_why = "it is no JSON";
        if (json_parse(text.at, text.bytes, NODES_MAX, &json, why, sizeof(why)))
                return false;
        *ret_why = read_fields(json, ret_record);
        json_free(json);
        return !*ret_why;
}
