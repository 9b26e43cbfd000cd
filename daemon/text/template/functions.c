/*
 * The functions that every template can call: those of Jinja, and those that transformers adds.
 */
#include <errno.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/access.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/print.h"
#include "daemon/text/template/strings.h"
#include "daemon/text/template/text.h"

#define RANGE_MAX  100000 /* the same limit as in Jinja's sandbox */
#define DATE_BYTES 512u

static int function_range(struct budget *budget, struct value self, const struct call *call,
                          struct value *ret_value)
{
        int64_t start, stop, step;
        __int128 count = 0;
        int r = integer_argument(budget, call->slots[0], 0, &start);

        (void)self;
        if (!r)
                r = integer_argument(budget, call->slots[1], 0, &stop);
        if (!r)
                r = integer_argument(budget, call->slots[2], 1, &step);
        if (!r && !step)
                r = budget_fail(budget, "the step of a range is 0");
        if (r)
                return error_pass(r);
        if (is_missing(call->slots[1])) {
                stop = start;
                start = 0;
        }
        if (step > 0 ? stop > start : stop < start)
                count = ((__int128)stop - start + step - (step > 0 ? 1 : -1)) / step;
        if (count > RANGE_MAX)
                return error_raise(
                        budget_fail(budget, "a range has more than %d numbers", RANGE_MAX));
        r = budget_list(budget, (uint32_t)count, LIST_RANGE, ret_value);
        for (int64_t i = 0; !r && i < count; i++)
                r = budget_list_add(budget, ret_value, value_integer(start + i * step));
        return error_pass(r);
}

/* Fills a map from the arguments: a list of pairs or a map, then arguments with names. */
static int fill_map(struct budget *budget, const struct call *call, struct value *ret_map)
{
        const struct arguments *all = &call->all;
        uint32_t named = all->names ? all->names->count : 0, positional = all->count - named;
        const struct value *items = NULL;
        uint32_t count = 0;
        struct value key, value;
        int r = positional > 1
                        ? budget_fail(budget, "dict() takes at most one argument without a name")
                : positional ? value_items(budget, all->values[0], &items, &count)
                             : 0;

        if (!r)
                r = budget_map(budget, count + named, ret_map);
        for (uint32_t i = 0; !r && i < count; i++) {
                const struct value *pair;
                uint32_t two = 2;

                if (all->values[0].kind == VALUE_MAP) {
                        key = items[i];
                        value = all->values[0].map->entries[i].value;
                } else if (!(r = value_items(budget, items[i], &pair, &two)) && two == 2) {
                        key = pair[0];
                        value = pair[1];
                }
                if (!r && two != 2)
                        r = budget_fail(budget, "dict() needs key/value pairs");
                if (!r)
                        r = budget_map_add(budget, ret_map, key, value);
        }
        for (uint32_t i = 0; !r && i < named; i++)
                r = budget_map_add(budget, ret_map, all->names->items[i],
                                   all->values[positional + i]);
        return error_pass(r ? r : budget_map_end(budget, ret_map));
}

static int function_dict(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value)
{
        (void)self;
        return error_pass(fill_map(budget, call, ret_value));
}

static int function_namespace(struct budget *budget, struct value self, const struct call *call,
                              struct value *ret_value)
{
        struct namespace *names;
        struct value map;
        int r = fill_map(budget, call, &map);

        (void)self;
        if (r || !(names = budget_take(budget, sizeof(*names), &r)))
                return error_pass(r);
        *names = (struct namespace){ .count = 0 };
        for (uint32_t i = 0; !r && i < map.map->count; i++) {
                const struct map_entry *entry = &map.map->entries[i];

                r = entry->key.kind == VALUE_STRING
                            ? namespace_set(budget, names, entry->key.text, entry->value)
                            : budget_fail(budget, "a namespace's name is not a string");
        }
        *ret_value = (struct value){ .kind = VALUE_NAMESPACE, .names = names };
        return error_pass(r);
}

/* The sentence comes from the template and is passed on unchanged. */
static int function_raise_exception(struct budget *budget, struct value self,
                                    const struct call *call, struct value *ret_value)
{
        struct value text;
        int r = print_text(budget, call->slots[0], &text);

        (void)self;
        (void)ret_value;
        if (r)
                return error_pass(r);
        return error_raise(errtext_set(budget->why, budget->why_bytes, -EINVAL, "%.*s",
                                       (int)(text.text->count < 4096 ? text.text->count : 4096),
                                       text.text->bytes));
}

static int function_strftime_now(struct budget *budget, struct value self, const struct call *call,
                                 struct value *ret_value)
{
        char format[128], date[DATE_BYTES];
        const struct text *text;
        size_t bytes;
        int r = string_argument(budget, call->slots[0], &text);

        (void)self;
        if (!r && (!text || text->count >= sizeof(format)))
                r = budget_fail(budget, "a date's format is longer than %zu", sizeof(format) - 1);
        if (!r)
                r = budget_charge(budget, 16);
        if (r)
                return error_pass(r);
        memcpy(format, text->bytes, text->count);
        format[text->count] = '\0';
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        bytes = *format ? strftime(date, sizeof(date), format, budget->now) : 0;
#pragma GCC diagnostic pop
        return error_pass(text_ours(budget, date, bytes, ret_value));
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
