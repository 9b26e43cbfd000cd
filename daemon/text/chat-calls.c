#include "daemon/text/chat-calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/template/print.h"
#include "daemon/text/value-edit.h"
#include "json/reader.h"

#define NODES_MAX 65536u

/* ---- asking a template ---- */

/* Words that no template has.  The id has nine letters, which Mistral wants. */
#define KEY "tarnfield"
#define SAMPLE(arguments)                                                                          \
        "{\"messages\":[{\"role\":\"user\",\"content\":\"A question.\"},"                          \
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"abcdefghi\","          \
        "\"type\":\"function\",\"function\":{\"name\":\"brinewhistle\",\"arguments\":" arguments   \
        "}}]}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"brinewhistle\","         \
        "\"description\":\"A tool.\",\"parameters\":{\"type\":\"object\",\"properties\":{},"       \
        "\"required\":[]}}}]}"

static const char *const samples[] = {
        [CALLS_AS_OBJECTS] = SAMPLE("{\"" KEY "\":\"mosslantern\"}"),
        [CALLS_AS_TEXTS] = SAMPLE("\"{\\\"" KEY "\\\":\\\"mosslantern\\\"}\""),
};

int chat_calls_sample(struct arena *arena, enum calls_form form, struct value *ret_messages,
                      struct value *ret_tools)
{
        struct json_document *json;
        char why[128];
        int r = json_parse(samples[form], strlen(samples[form]), 64, &json, why, sizeof(why));

        if (r)
                return error_raise(r);
        r = value_from_json(arena, json, json_member(json, 0, "messages"), TEXT_GIVEN,
                            ret_messages);
        if (!r)
                r = value_from_json(arena, json, json_member(json, 0, "tools"), TEXT_GIVEN,
                                    ret_tools);
        json_free(json);
        return error_pass(r);
}

/* It shows the arguments, and neither as Python writes a map, nor as a string in JSON. */
static bool is_good(const struct rendered *rendered)
{
        return rendered && strstr(rendered->text, KEY) && !strstr(rendered->text, "'" KEY "'") &&
               !strstr(rendered->text, "\\\"" KEY);
}

/* Blanks aside, as there may be some behind commas and colons. */
static bool are_alike(const char *a, const char *b)
{
        for (;; a++, b++) {
                a += strspn(a, " ");
                b += strspn(b, " ");
                if (*a != *b)
                        return false;
                if (!*a)
                        return true;
        }
}

enum calls_form chat_calls_judge(const struct rendered *objects, const struct rendered *texts)
{
        if (is_good(objects) && is_good(texts) && are_alike(objects->text, texts->text))
                return CALLS_AS_GIVEN;
        if (is_good(objects))
                return CALLS_AS_OBJECTS;
        return is_good(texts) ? CALLS_AS_TEXTS : CALLS_AS_GIVEN;
}

/* ---- converting ---- */

struct converting {
        struct arena *arena;
        enum calls_form form;
        size_t bytes;
        char *why;
        size_t why_bytes;
};

static int read_object(struct converting *converting, const struct text *text,
                       struct value *ret_object)
{
        struct json_document *json;
        char why[100];
        int r;

        if (!text->count)
                return error_pass(value_map(converting->arena, 0, ret_object));
        r = json_parse(text->bytes, text->count, NODES_MAX, &json, why, sizeof(why));
        if (r == -EINVAL)
                snprintf(converting->why, converting->why_bytes, "%s", why);
        if (r)
                return error_raise(r);
        if (json_kind(json, 0) != JSON_OBJECT) {
                snprintf(converting->why, converting->why_bytes, "it is another value");
                r = -EINVAL;
        }
        if (!r)
                r = value_from_json(converting->arena, json, 0, TEXT_GIVEN, ret_object);
        if (r == -ERANGE || r == -E2BIG) {
                snprintf(converting->why, converting->why_bytes,
                         r == -E2BIG ? "it nests too deep" : "a number is too large");
                r = -EINVAL;
        }
        json_free(json);
        return error_pass(r);
}

static int write_text(struct converting *converting, struct value object, struct value *ret_text)
{
        static const struct text comma = TEXT_WORD(comma, ", "), colon = TEXT_WORD(colon, ": ");
        const struct json_style style = { .comma = &comma, .colon = &colon };
        struct template_limits limits = template_limits(converting->bytes);
        struct budget budget = { .arena = converting->arena,
                                 .limits = limits,
                                 .fuel = limits.fuel,
                                 .why = converting->why,
                                 .why_bytes = converting->why_bytes };
        struct builder to = { .bytes = NULL };
        int r = print_json(&budget, &to, object, &style);

        return error_pass(r ? r : text_end_as_one(&budget, &to, ret_text));
}

/* 0; or CALLS_E_SAME: the arguments have the form already. */
enum { CALLS_E_SAME = 1 };

static int convert_arguments(struct converting *converting, struct value given,
                             struct value *ret_arguments)
{
        if (converting->form == CALLS_AS_OBJECTS && given.kind == VALUE_STRING)
                return error_pass(read_object(converting, given.text, ret_arguments));
        if (converting->form == CALLS_AS_TEXTS && given.kind == VALUE_MAP)
                return error_pass(write_text(converting, given, ret_arguments));
        return CALLS_E_SAME;
}

static int convert_call(struct converting *converting, struct value *call)
{
        const struct value *function = value_member(*call, "function");
        struct value about = function ? *function : *call, arguments;
        const struct value *given = value_member(about, "arguments");
        int r;

        if (!given)
                return CALLS_E_SAME;
        r = convert_arguments(converting, *given, &arguments);
        if (!r)
                r = value_edit_member(converting->arena, &about, given, arguments);
        if (r || !function) {
                *call = about;
                return error_pass(r);
        }
        return error_pass(value_edit_member(converting->arena, call, function, about));
}

/* The index of the first call that cannot be converted is *ret_call. */
static int convert_message(struct converting *converting, struct value *message, uint32_t *ret_call)
{
        const struct value *given = value_member(*message, "tool_calls");
        struct value calls;
        bool changed = false;

        if (!given || given->kind != VALUE_LIST)
                return CALLS_E_SAME;
        calls = *given;
        for (uint32_t i = 0; i < calls.list->count; i++) {
                struct value call = calls.list->items[i];
                int r = convert_call(converting, &call);

                *ret_call = i;
                if (!r)
                        r = value_edit_item(converting->arena, &calls, i, call);
                if (r < 0)
                        return error_pass(r);
                changed |= !r;
        }
        if (!changed)
                return CALLS_E_SAME;
        return error_pass(value_edit_member(converting->arena, message, given, calls));
}

int chat_calls_convert(struct arena *arena, enum calls_form form, size_t bytes,
                       struct value *messages, char *why, size_t why_bytes)
{
        char fault[100] = "";
        struct converting converting = { arena, form, bytes, fault, sizeof(fault) };
        uint32_t call = 0;

        if (form == CALLS_AS_GIVEN || messages->kind != VALUE_LIST)
                return 0;
        for (uint32_t i = 0; i < messages->list->count; i++) {
                struct value message = messages->list->items[i];
                int r = convert_message(&converting, &message, &call);

                if (!r)
                        r = value_edit_item(arena, messages, i, message);
                if (r == -EINVAL)
                        snprintf(why, why_bytes,
                                 "messages[%u]: the arguments of tool_calls[%u] must be a JSON "
                                 "object: %s",
                                 i, call, fault);
                if (r < 0)
                        return error_pass(r);
        }
        return 0;
}
