#include "json/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/utf8.h"

static void put(struct json_writer *json, const char *bytes, size_t count)
{
        if (!json->result)
                json->result = bytes_add(json->to, bytes, count);
}

void json_write_raw(struct json_writer *json, const char *text)
{
        put(json, text, strlen(text));
}

/* How many bytes at the front are plain ASCII, which is most of what a model writes. */
static size_t plain_bytes(const char *text, size_t bytes)
{
        size_t at = 0;

        while (at < bytes && text[at] >= ' ' && text[at] < 0x7f && text[at] != '"' &&
               text[at] != '\\')
                at++;
        return at;
}

void json_write_text(struct json_writer *json, const char *text, size_t bytes)
{
        char escape[8];
        size_t at = 0, length;
        int32_t point;

        put(json, "\"", 1);
        for (; at < bytes; at += length) {
                length = plain_bytes(text + at, bytes - at);
                if (length) {
                        put(json, text + at, length);
                        continue;
                }
                point = utf8_next(text + at, bytes - at, &length);
                if (point < 0) {
                        put(json, "\\ufffd", 6);
                } else if (point == '"' || point == '\\') {
                        escape[0] = '\\';
                        escape[1] = (char)point;
                        put(json, escape, 2);
                } else if (point == '\n') {
                        put(json, "\\n", 2);
                } else if (point == '\t') {
                        put(json, "\\t", 2);
                } else if (utf8_is_control(point)) {
                        snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)point & 0xffff);
                        put(json, escape, 6);
                } else {
                        put(json, text + at, length);
                }
        }
        put(json, "\"", 1);
}

void json_write_uint(struct json_writer *json, uint64_t value)
{
        char text[24];

        put(json, text, (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)value));
}

void json_write_int(struct json_writer *json, int64_t value)
{
        char text[24];

        put(json, text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)value));
}

void json_write_float(struct json_writer *json, double value)
{
        char text[48], clean[48];
        size_t i, n = 0;

        if (!isfinite(value)) {
                json_write_raw(json, "null");
                return;
        }

        /* The shortest form that reads back as the same value, so that 0.1 stays 0.1. */
        for (int digits = 15; digits <= 17; digits++) {
                snprintf(text, sizeof(text), "%.*g", digits, value);
                if (strtod(text, NULL) == value)
                        break;
        }

        /* Any character that is no digit, sign or exponent is the locale's decimal point. */
        for (i = 0; text[i]; i++) {
                if (strchr("0123456789+-e", text[i]))
                        clean[n++] = text[i];
                else if (!n || clean[n - 1] != '.')
                        clean[n++] = '.';
        }
        put(json, clean, n);
}

int json_write_end(struct json_writer *json)
{
        put(json, "", 1);
        if (!json->result)
                json->to->count--;
        return json->result;
}
