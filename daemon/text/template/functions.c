/*
 * The functions that every template can call: those of Jinja, and those that transformers adds.
 */
#include <errno.h>
#include <string.h>

#include "daemon/text/template/operate.h"
#include "daemon/text/template/print.h"
#include "daemon/text/template/strings.h"
#include "daemon/text/template/text.h"
#include "daemon/why.h"

#define RANGE_MAX  100000 /* the same limit as in Jinja's sandbox */
#define DATE_BYTES 512u

static int function_range(struct run *run, struct value self, const struct call *call,
                          struct value *ret_value)
{
        int64_t start, stop, step;
        __int128 count = 0;
        int r = integer_argument(run, call->slots[0], 0, &start);

        (void)self;
        if (!r)
                r = integer_argument(run, call->slots[1], 0, &stop);
        if (!r)
                r = integer_argument(run, call->slots[2], 1, &step);
        if (!r && !step)
                r = run_fail(run, "a range by 0");
        if (r)
                return error_pass(r);
        if (is_missing(call->slots[1])) {
                stop = start;
                start = 0;
        }
        if (step > 0 ? stop > start : stop < start)
                count = ((__int128)stop - start + step - (step > 0 ? 1 : -1)) / step;
        if (count > RANGE_MAX)
                return error_raise(run_fail(run, "a range has more than %d numbers", RANGE_MAX));
        r = run_list(run, (uint32_t)count, LIST_RANGE, ret_value);
        for (int64_t i = 0; !r && i < count; i++)
                r = run_list_add(run, ret_value, value_integer(start + i * step));
        return error_pass(r);
}

/* Fills a map from the arguments: a list of pairs or a map, then arguments with names. */
static int fill_map(struct run *run, const struct call *call, struct value *ret_map)
{
        const struct arguments *all = &call->all;
        uint32_t named = all->names ? all->names->count : 0, positional = all->count - named;
        const struct value *items = NULL;
        uint32_t count = 0;
        struct value key, value;
        int r = positional > 1 ? run_fail(run, "a dictionary is made of more than one thing")
                : positional   ? value_items(run, all->values[0], &items, &count)
                               : 0;

        if (!r)
                r = run_map(run, count + named, ret_map);
        for (uint32_t i = 0; !r && i < count; i++) {
                const struct value *pair;
                uint32_t two = 2;

                if (all->values[0].kind == VALUE_MAP) {
                        key = items[i];
                        value = all->values[0].map->entries[i].value;
                } else if (!(r = value_items(run, items[i], &pair, &two)) && two == 2) {
                        key = pair[0];
                        value = pair[1];
                }
                if (!r && two != 2)
                        r = run_fail(run, "a dictionary is made of what is no pair");
                if (!r)
                        r = run_map_add(run, ret_map, key, value);
        }
        for (uint32_t i = 0; !r && i < named; i++)
                r = run_map_add(run, ret_map, all->names->items[i], all->values[positional + i]);
        return error_pass(r ? r : run_map_end(run, ret_map));
}

static int function_dict(struct run *run, struct value self, const struct call *call,
                         struct value *ret_value)
{
        (void)self;
        return error_pass(fill_map(run, call, ret_value));
}

static int function_namespace(struct run *run, struct value self, const struct call *call,
                              struct value *ret_value)
{
        struct namespace *names;
        struct value map;
        int r = fill_map(run, call, &map);

        (void)self;
        if (r || !(names = run_take(run, sizeof(*names), &r)))
                return error_pass(r);
        *names = (struct namespace){ .count = 0 };
        for (uint32_t i = 0; !r && i < map.map->count; i++) {
                const struct map_entry *entry = &map.map->entries[i];

                r = entry->key.kind == VALUE_STRING
                            ? namespace_set(run, names, entry->key.text, entry->value)
                            : run_fail(run, "a namespace has a name that is no text");
        }
        *ret_value = (struct value){ .kind = VALUE_NAMESPACE, .names = names };
        return error_pass(r);
}

/* The sentence comes from the template and is passed on unchanged. */
static int function_raise_exception(struct run *run, struct value self, const struct call *call,
                                    struct value *ret_value)
{
        struct value text;
        int r = print_text(run, call->slots[0], &text);

        (void)self;
        (void)ret_value;
        if (r)
                return error_pass(r);
        return error_raise(why_say(run->why, run->why_bytes, -EINVAL, "%.*s",
                                   (int)(text.text->count < 4096 ? text.text->count : 4096),
                                   text.text->bytes));
}

static int function_strftime_now(struct run *run, struct value self, const struct call *call,
                                 struct value *ret_value)
{
        char format[128], date[DATE_BYTES];
        const struct text *text;
        size_t bytes;
        int r = string_argument(run, call->slots[0], &text);

        (void)self;
        if (!r && (!text || text->count >= sizeof(format)))
                r = run_fail(run, "a date's format is longer than %zu", sizeof(format) - 1);
        if (!r)
                r = run_charge(run, 16);
        if (r)
                return error_pass(r);
        memcpy(format, text->bytes, text->count);
        format[text->count] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        bytes = *format ? strftime(date, sizeof(date), format, run->now) : 0;
#pragma GCC diagnostic pop
        return error_pass(text_ours(run, date, bytes, ret_value));
}

static const struct builtin rows[] = {
        { "dict", function_dict, "*", 0 },
        { "namespace", function_namespace, "*", 0 },
        { "raise_exception", function_raise_exception, "message", 1 },
        { "range", function_range, "start stop step", 1 },
        { "strftime_now", function_strftime_now, "format", 1 },
        { "cycler", NULL, "", 0 },
        { "joiner", NULL, "", 0 },
        { "lipsum", NULL, "", 0 },
};
const struct builtins functions = { "function", rows, sizeof(rows) / sizeof(*rows) };
