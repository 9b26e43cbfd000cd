#include "bridge/core/fields.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fields_fail(struct fields *fields, enum failure_class class, const char *param,
                 const char *format, ...)
{
        char message[sizeof(fields->failure.message)];
        va_list values;

        if (fields->failed)
                return false;
        va_start(values, format);
        vsnprintf(message, sizeof(message), format, values);
        va_end(values);
        fields->failure = failure_make(class, param, "%s", message);
        fields->failed = true;
        return false;
}

uint32_t field_of(const struct fields *fields, uint32_t object, const char *name)
{
        uint32_t node = json_member(fields->json, object, name);

        return json_kind(fields->json, node) == JSON_NULL ? JSON_NONE : node;
}

static bool wrong_kind(struct fields *fields, const char *name, const char *wanted)
{
        return fields_fail(fields, FAILURE_REQUEST, name, "%s must be %s", name, wanted);
}

bool field_text(struct fields *fields, uint32_t object, const char *name, struct text *ret_text)
{
        uint32_t node = field_of(fields, object, name);

        if (fields->failed || node == JSON_NONE)
                return false;
        if (json_kind(fields->json, node) != JSON_STRING)
                return wrong_kind(fields, name, "a string");
        *ret_text = text_of(fields->json, node);
        return true;
}

bool field_bool(struct fields *fields, uint32_t object, const char *name, bool *ret_value)
{
        uint32_t node = field_of(fields, object, name);

        if (fields->failed || node == JSON_NONE)
                return false;
        return json_bool(fields->json, node, ret_value) ||
               wrong_kind(fields, name, "true or false");
}

bool field_real(struct fields *fields, uint32_t object, const char *name, double low, double high,
                double *ret_value)
{
        uint32_t node = field_of(fields, object, name);
        double value;

        if (fields->failed || node == JSON_NONE)
                return false;
        if (!json_real(fields->json, node, &value))
                return wrong_kind(fields, name, "a number");
        if (value < low || value > high)
                return fields_fail(fields, FAILURE_REQUEST, name, "%s is %g; it may be %g to %g",
                                   name, value, low, high);
        *ret_value = value;
        return true;
}

bool field_uint(struct fields *fields, uint32_t object, const char *name, uint64_t low,
                uint64_t high, uint64_t *ret_value)
{
        uint32_t node = field_of(fields, object, name);
        uint64_t value;
        double real;

        if (fields->failed || node == JSON_NONE)
                return false;
        if (!json_whole(fields->json, node, &value)) {
                if (!json_real(fields->json, node, &real) || real < 0 || real != floor(real) ||
                    real > 9e15)
                        return wrong_kind(fields, name, "a whole number");
                value = (uint64_t)real;
        }
        if (value < low || value > high)
                return fields_fail(fields, FAILURE_REQUEST, name,
                                   "%s is %llu; it may be %llu to %llu", name,
                                   (unsigned long long)value, (unsigned long long)low,
                                   (unsigned long long)high);
        *ret_value = value;
        return true;
}

/* Two's complement: -1 is the largest, as programs mean that send it. */
bool field_int(struct fields *fields, uint32_t object, const char *name, int64_t *ret_value)
{
        uint32_t node = field_of(fields, object, name);
        const char *text;
        uint64_t whole;
        double real;
        char *end;

        if (fields->failed || node == JSON_NONE)
                return false;
        if (json_whole(fields->json, node, &whole)) {
                *ret_value = (int64_t)whole;
                return true;
        }
        text = json_number(fields->json, node);
        if (text) {
                errno = 0;
                *ret_value = strtoll(text, &end, 10);
                if (!*end && !errno)
                        return true;
        }
        if (!json_real(fields->json, node, &real) || real != floor(real) || fabs(real) > 9e15)
                return wrong_kind(fields, name, "a whole number of 64 bits");
        *ret_value = (int64_t)real;
        return true;
}

static uint32_t of_kind(struct fields *fields, uint32_t object, const char *name,
                        enum json_kind kind, const char *wanted)
{
        uint32_t node = field_of(fields, object, name);

        if (fields->failed || node == JSON_NONE)
                return JSON_NONE;
        if (json_kind(fields->json, node) == kind)
                return node;
        wrong_kind(fields, name, wanted);
        return JSON_NONE;
}

uint32_t field_array(struct fields *fields, uint32_t object, const char *name)
{
        return of_kind(fields, object, name, JSON_ARRAY, "an array");
}

uint32_t field_object(struct fields *fields, uint32_t object, const char *name)
{
        return of_kind(fields, object, name, JSON_OBJECT, "an object");
}

static bool asks_for_nothing(const struct fields *fields, uint32_t node)
{
        double real = 1;
        bool value = true;

        switch (json_kind(fields->json, node)) {
        case JSON_BOOL:
                json_bool(fields->json, node, &value);
                return !value;
        case JSON_NUMBER:
                return json_real(fields->json, node, &real) && real == 0;
        case JSON_STRING:
                return !text_of(fields->json, node).bytes;
        case JSON_ARRAY:
        case JSON_OBJECT:
                return !json_count(fields->json, node);
        default:
                return true;
        }
}

uint32_t field_asked(const struct fields *fields, uint32_t object, const char *name)
{
        uint32_t node = field_of(fields, object, name);

        return asks_for_nothing(fields, node) ? JSON_NONE : node;
}

void field_refuse(struct fields *fields, uint32_t object, const char *name, const char *why)
{
        if (field_asked(fields, object, name) != JSON_NONE)
                fields_fail(fields, FAILURE_UNSUPPORTED, name, "%s is not supported: %s", name,
                            why);
}

bool text_is(struct text text, const char *word)
{
        return text.at && text.bytes == strlen(word) && !memcmp(text.at, word, text.bytes);
}

struct text text_of(const struct json_document *json, uint32_t node)
{
        struct text text = { 0 };

        text.at = json_string(json, node, &text.bytes);
        return text;
}
