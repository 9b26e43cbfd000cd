#include "client/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct json *json, const char *bytes, size_t count)
{
        if (!json->result)
                json->result = bytes_add(json->to, bytes, count);
}

void json_raw(struct json *json, const char *text)
{
        put(json, text, strlen(text));
}

int32_t utf8_next(const char *bytes, size_t count, size_t *ret_length)
{
        static const int32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const unsigned char *b = (const unsigned char *)bytes;
        size_t length, i;
        int32_t point;

        *ret_length = 1;
        if (b[0] < 0x80)
                return b[0];
        if (b[0] < 0xc2 || b[0] > 0xf4)
                return -1;

        length = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
        point = b[0] & (0x7f >> length);
        for (i = 1; i < length; i++) {
                if (i == count)
                        return -2;
                if ((b[i] & 0xc0) != 0x80)
                        return -1;
                point = point << 6 | (b[i] & 0x3f);
        }
        if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
                return -1;
        *ret_length = length;
        return point;
}

int utf8_is_control(int32_t point)
{
        if (point == '\n' || point == '\t')
                return 0;
        return (point >= 0 && point < 0x20) || (point >= 0x7f && point < 0xa0);
}

void json_text(struct json *json, const char *text, size_t bytes)
{
        char escape[8];
        size_t at = 0, length;
        int32_t point;

        put(json, "\"", 1);
        for (; at < bytes; at += length) {
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

void json_uint(struct json *json, uint64_t value)
{
        char text[24];

        put(json, text, (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)value));
}

void json_int(struct json *json, int64_t value)
{
        char text[24];

        put(json, text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)value));
}

void json_float(struct json *json, double value)
{
        char text[48], clean[48];
        size_t i, n = 0;

        if (!isfinite(value)) {
                json_raw(json, "null");
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

int json_end(struct json *json)
{
        put(json, "", 1);
        if (!json->result)
                json->to->count--;
        return json->result;
}
