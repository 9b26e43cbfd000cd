#include "cli/bench/answer-reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json/reader.h"
#include "json/utf8.h"

#define NODES_MAX 100000u

/* ---- events ---- */

static int take_line(struct event_reader *reader,
                     int (*on_data)(void *arg, const char *data, size_t count), void *arg)
{
        size_t count = reader->line.count;
        const char *at = reader->line.at;
        int r;

        if (count && at[count - 1] == '\r')
                count--;
        if (!count) {
                size_t bytes = reader->data.count;

                reader->data.count = 0;
                return bytes ? on_data(arg, reader->data.at, bytes) : 0;
        }
        if (count < 5 || memcmp(at, "data:", 5))
                return 0; /* a comment, or a field that does not matter */
        at += 5;
        count -= 5;
        if (count && *at == ' ') {
                at++;
                count--;
        }
        r = reader->data.count ? bytes_add(&reader->data, "\n", 1) : 0;
        return r ? r : bytes_add(&reader->data, at, count);
}

int event_reader_take(struct event_reader *reader, const char *bytes, size_t count,
                      int (*on_data)(void *arg, const char *data, size_t count), void *arg)
{
        int r = 0;

        while (count && !r) {
                const char *end = memchr(bytes, '\n', count);
                size_t part = end ? (size_t)(end - bytes) : count;

                if (reader->line.count + reader->data.count + part > EVENT_BYTES_MAX)
                        return -E2BIG;
                r = bytes_add(&reader->line, bytes, part);
                if (r || !end)
                        return r;
                r = take_line(reader, on_data, arg);
                reader->line.count = 0;
                bytes = end + 1;
                count -= part + 1;
        }
        return r;
}

void event_reader_deinit(struct event_reader *reader)
{
        bytes_deinit(&reader->line);
        bytes_deinit(&reader->data);
}

/* ---- chunks ---- */

/* Where the value of this member begins, if the text has one; a string has no such quotes. */
static const char *value_of(const char *data, size_t bytes, const char *key)
{
        const char *end = data + bytes, *at = memmem(data, bytes, key, strlen(key));

        if (!at)
                return NULL;
        at += strlen(key);
        while (at < end && (*at == ' ' || *at == ':'))
                at++;
        return at < end ? at : NULL;
}

static bool has_text(const char *data, size_t bytes)
{
        static const char *const keys[] = { "\"content\"", "\"text\"", "\"reasoning_content\"",
                                            "\"reasoning\"", "\"tool_calls\"" };
        const char *end = data + bytes;

        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
                const char *at = value_of(data, bytes, keys[i]);

                if (at && at + 1 < end &&
                    ((*at == '"' && at[1] != '"') || (*at == '[' && at[1] != ']')))
                        return true;
        }
        return false;
}

static uint32_t whole(const struct json_document *json, uint32_t object, const char *key)
{
        uint64_t value = 0;

        json_whole(json, json_member(json, object, key), &value);
        return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static void read_usage(const struct json_document *json, struct answer_chunk *chunk)
{
        uint32_t usage = json_member(json, 0, "usage");

        if (json_kind(json, usage) != JSON_OBJECT)
                return;
        chunk->has_usage = true;
        chunk->input = whole(json, usage, "prompt_tokens");
        chunk->output = whole(json, usage, "completion_tokens");
        chunk->cached =
                whole(json, json_member(json, usage, "prompt_tokens_details"), "cached_tokens");
}

/* On one line: a page of HTML may be among the words of a server. */
static void copy_words(const char *text, size_t bytes, char *to, size_t size)
{
        size_t count = 0;

        for (size_t at = 0, length; at < bytes; at += length) {
                int32_t point = utf8_next(text + at, bytes - at, &length);
                bool blank = point <= ' ' || utf8_is_control(point);

                if (count + length >= size)
                        break;
                if (!blank) {
                        memcpy(to + count, text + at, length);
                        count += length;
                } else if (count && to[count - 1] != ' ') {
                        to[count++] = ' ';
                }
        }
        count -= count && to[count - 1] == ' ';
        to[count] = '\0';
}

static void read_error(const struct json_document *json, struct answer_chunk *chunk)
{
        uint32_t error = json_member(json, 0, "error");
        const char *word = NULL, *text;

        if (error == JSON_NONE || json_kind(json, error) == JSON_NULL)
                return;
        text = json_string(json, json_member(json, error, "message"), NULL);
        if (!text)
                text = json_string(json, error, NULL);
        word = json_string(json, json_member(json, error, "code"), NULL);
        if (!word)
                word = json_string(json, json_member(json, error, "type"), NULL);
        word = word ? word : "";
        text = text ? text : "";
        copy_words(word, strlen(word), chunk->error, sizeof(chunk->error));
        copy_words(text, strlen(text), chunk->why, sizeof(chunk->why));
        if (!*chunk->error)
                strcpy(chunk->error, "error");
}

static int parse(const char *data, size_t bytes, struct answer_chunk *chunk)
{
        struct json_document *json;
        char why[64];

        if (json_parse(data, bytes, NODES_MAX, &json, why, sizeof(why)))
                return -EBADMSG;
        read_usage(json, chunk);
        read_error(json, chunk);
        json_free(json);
        return 0;
}

void answer_chunk_read(const char *data, size_t bytes, struct answer_chunk *ret_chunk)
{
        const char *at;

        *ret_chunk = (struct answer_chunk){ .text = has_text(data, bytes) };
        if (bytes == 6 && !memcmp(data, "[DONE]", 6)) {
                ret_chunk->done = true;
                return;
        }
        at = value_of(data, bytes, "\"choices\"");
        ret_chunk->choices = at && *at == '[';
        at = value_of(data, bytes, "\"finish_reason\"");
        ret_chunk->finished = at && *at == '"';
        at = value_of(data, bytes, "\"usage\"");
        if ((at && *at == '{') || value_of(data, bytes, "\"error\""))
                if (parse(data, bytes, ret_chunk))
                        snprintf(ret_chunk->error, sizeof(ret_chunk->error), "not JSON");
}

void answer_refusal_read(const char *body, size_t bytes, struct answer_chunk *ret_chunk)
{
        *ret_chunk = (struct answer_chunk){ .text = false };
        if (!parse(body, bytes, ret_chunk) && *ret_chunk->error)
                return;
        copy_words(body, bytes, ret_chunk->why, sizeof(ret_chunk->why));
}
