/*
 * Filters that apply a test, a filter or a path to each item: select, reject, map.
 */
#include "daemon/text/template/filters.h"

#include "daemon/text/template/operate.h"
#include "daemon/text/template/text.h"
#include "daemon/why.h"

static const struct value missing = { .kind = MISSING };

/* The arguments of a call without the first `taken` of those that have no names. */
static struct arguments rest(const struct arguments *all, uint32_t taken)
{
        return (struct arguments){ all->values + taken, all->count - taken, all->names };
}

static uint32_t positional(const struct arguments *all)
{
        return all->count - (all->names ? all->names->count : 0);
}

static int row_by_name(struct run *run, const struct builtins *builtins, struct value name,
                       uint32_t *ret_row)
{
        *ret_row = name.kind == VALUE_STRING
                           ? builtin_find(builtins, name.text->bytes, name.text->count)
                           : NO_BUILTIN;
        if (*ret_row != NO_BUILTIN && builtins->rows[*ret_row].work)
                return 0;
        if (name.kind != VALUE_STRING)
                return error_raise(
                        run_fail(run, "a %s is no %s's name", value_type(name), builtins->what));
        return error_raise(run_fail(run, "%s '%s' is not known here", builtins->what,
                                    text_shown(name.text).text));
}

/* Selects items by the test that the call names, or else those that are true. */
static int choose(struct run *run, struct value self, const struct call *call, bool attribute,
                  bool wanted, struct value *ret_value)
{
        const struct arguments *all = &call->all, arguments = rest(all, attribute + 1u);
        bool tested = positional(all) > attribute;
        const struct value *items;
        uint32_t count, row = 0;
        int r;

        if (!value_truth(self)) /* as in Jinja, which then does not check the arguments */
                return error_pass(run_list(run, 0, LIST_STREAM, ret_value));
        r = value_items(run, self, &items, &count);
        if (!r && attribute && !positional(all))
                r = run_fail(run, "an attribute's name is missing");
        if (!r && !tested && all->names)
                r = run_fail(run, "a test's name is missing");
        if (!r && tested)
                r = row_by_name(run, &tests, all->values[attribute], &row);
        if (!r)
                r = run_list(run, count, LIST_STREAM, ret_value);
        for (uint32_t i = 0; !r && i < count; i++) {
                struct value item = items[i];

                if (attribute)
                        r = value_path(run, item, all->values[0], missing, &item);
                if (!r)
                        r = run_charge(run, 1);
                if (!r && tested)
                        r = builtin_call(run, &tests, row, item, &arguments, &item);
                if (!r && value_truth(item) == wanted)
                        r = run_list_add(run, ret_value, items[i]);
        }
        return error_pass(r);
}

int filter_select(struct run *run, struct value self, const struct call *call,
                  struct value *ret_value)
{
        return error_pass(choose(run, self, call, false, true, ret_value));
}

int filter_reject(struct run *run, struct value self, const struct call *call,
                  struct value *ret_value)
{
        return error_pass(choose(run, self, call, false, false, ret_value));
}

int filter_selectattr(struct run *run, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(choose(run, self, call, true, true, ret_value));
}

int filter_rejectattr(struct run *run, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(choose(run, self, call, true, false, ret_value));
}

/* map(attribute=..., default=...) */
static int map_paths(struct run *run, const struct value *items, uint32_t count,
                     const struct arguments *all, struct value *ret_value)
{
        struct value path = missing, otherwise = missing, item;
        int r = run_list(run, count, LIST_STREAM, ret_value);

        for (uint32_t i = 0; !r && all->names && i < all->names->count; i++) {
                const struct text *name = all->names->items[i].text;

                if (text_is(name, "attribute"))
                        path = all->values[i];
                else if (text_is(name, "default"))
                        otherwise = all->values[i];
                else
                        r = run_fail(run, "filter 'map' takes no argument '%s'",
                                     text_shown(name).text);
        }
        if (!r && is_missing(path))
                r = run_fail(run, "filter 'map' lacks an argument");
        if (otherwise.kind == VALUE_NONE)
                otherwise = missing;
        for (uint32_t i = 0; !r && i < count; i++) {
                r = value_path(run, items[i], path, otherwise, &item);
                if (!r)
                        r = run_list_add(run, ret_value, item);
        }
        return error_pass(r);
}

int filter_map(struct run *run, struct value self, const struct call *call, struct value *ret_value)
{
        const struct arguments *all = &call->all;
        struct arguments arguments;
        const struct value *items;
        struct value item;
        uint32_t count, row;
        int r;

        if (!value_truth(self)) /* as in Jinja, which then does not check the arguments */
                return error_pass(run_list(run, 0, LIST_STREAM, ret_value));
        r = value_items(run, self, &items, &count);
        if (r || !positional(all))
                return error_pass(r ? r : map_paths(run, items, count, all, ret_value));
        arguments = rest(all, 1);
        r = row_by_name(run, &filters, all->values[0], &row);
        /* `map` calls filters by name, so it could call itself without a limit. */
        if (!r && filters.rows[row].work == filter_map && run->calls >= TEMPLATE_DEPTH_MAX)
                r = run_fail(run, "'map' calls itself deeper than %u", TEMPLATE_DEPTH_MAX);
        run->calls++;
        if (!r)
                r = run_list(run, count, LIST_STREAM, ret_value);
        for (uint32_t i = 0; !r && i < count; i++) {
                r = run_charge(run, 1);
                if (!r)
                        r = builtin_call(run, &filters, row, items[i], &arguments, &item);
                if (!r)
                        r = run_list_add(run, ret_value, item);
        }
        run->calls--;
        return error_pass(r);
}
