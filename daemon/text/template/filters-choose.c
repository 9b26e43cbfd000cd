/*
 * Filters that apply a test, a filter or a path to each item: select, reject, map.
 */
#include "daemon/text/template/access.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/filters.h"
#include "daemon/text/template/text.h"

#include "base/errtext.h"

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

static int row_by_name(struct budget *budget, const struct builtins *builtins, struct value name,
                       uint32_t *ret_row)
{
        *ret_row = name.kind == VALUE_STRING
                           ? builtin_find(builtins, name.text->bytes, name.text->count)
                           : NO_BUILTIN;
        if (*ret_row != NO_BUILTIN && builtins->rows[*ret_row].work)
                return 0;
        if (name.kind != VALUE_STRING)
                return error_raise(budget_fail(budget, "a %s is not the name of a %s",
                                               value_type(name), builtins->what));
        return error_raise(budget_fail(budget, "%s '%s' is not supported", builtins->what,
                                       text_shown(name.text).text));
}

/* Selects items by the test that the call names, or else those that are true. */
static int choose(struct budget *budget, struct value self, const struct call *call, bool attribute,
                  bool wanted, struct value *ret_value)
{
        const struct arguments *all = &call->all, arguments = rest(all, attribute + 1u);
        bool tested = positional(all) > attribute;
        const struct value *items;
        uint32_t count, row = 0;
        int r;

        if (!value_truth(self)) /* as in Jinja, which then does not check the arguments */
                return error_pass(budget_list(budget, 0, LIST_STREAM, ret_value));
        r = value_items(budget, self, &items, &count);
        if (!r && attribute && !positional(all))
                r = budget_fail(budget, "an attribute's name is missing");
        if (!r && !tested && all->names)
                r = budget_fail(budget, "a test's name is missing");
        if (!r && tested)
                r = row_by_name(budget, &tests, all->values[attribute], &row);
        if (!r)
                r = budget_list(budget, count, LIST_STREAM, ret_value);
        for (uint32_t i = 0; !r && i < count; i++) {
                struct value item = items[i];

                if (attribute)
                        r = value_path(budget, item, all->values[0], missing, &item);
                if (!r)
                        r = budget_charge(budget, 1);
                if (!r && tested)
                        r = builtin_call(budget, &tests, row, item, &arguments, &item);
                if (!r && value_truth(item) == wanted)
                        r = budget_list_add(budget, ret_value, items[i]);
        }
        return error_pass(r);
}

int filter_select(struct budget *budget, struct value self, const struct call *call,
                  struct value *ret_value)
{
        return error_pass(choose(budget, self, call, false, true, ret_value));
}

int filter_reject(struct budget *budget, struct value self, const struct call *call,
                  struct value *ret_value)
{
        return error_pass(choose(budget, self, call, false, false, ret_value));
}

int filter_selectattr(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(choose(budget, self, call, true, true, ret_value));
}

int filter_rejectattr(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        return error_pass(choose(budget, self, call, true, false, ret_value));
}

/* map(attribute=..., default=...) */
static int map_paths(struct budget *budget, const struct value *items, uint32_t count,
                     const struct arguments *all, struct value *ret_value)
{
        struct value path = missing, otherwise = missing, item;
        int r = budget_list(budget, count, LIST_STREAM, ret_value);

        for (uint32_t i = 0; !r && all->names && i < all->names->count; i++) {
                const struct text *name = all->names->items[i].text;

                if (text_is(name, "attribute"))
                        path = all->values[i];
                else if (text_is(name, "default"))
                        otherwise = all->values[i];
                else
                        r = budget_fail(budget, "filter 'map' takes no argument '%s'",
                                        text_shown(name).text);
        }
        if (!r && is_missing(path))
                r = budget_fail(budget, "filter 'map' is missing an argument");
        if (otherwise.kind == VALUE_NONE)
                otherwise = missing;
        for (uint32_t i = 0; !r && i < count; i++) {
                r = value_path(budget, items[i], path, otherwise, &item);
                if (!r)
                        r = budget_list_add(budget, ret_value, item);
        }
        return error_pass(r);
}

int filter_map(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        const struct arguments *all = &call->all;
        struct arguments arguments;
        const struct value *items;
        struct value item;
        uint32_t count, row;
        int r;

        if (!value_truth(self)) /* as in Jinja, which then does not check the arguments */
                return error_pass(budget_list(budget, 0, LIST_STREAM, ret_value));
        r = value_items(budget, self, &items, &count);
        if (r || !positional(all))
                return error_pass(r ? r : map_paths(budget, items, count, all, ret_value));
        arguments = rest(all, 1);
        r = row_by_name(budget, &filters, all->values[0], &row);
        /* `map` calls filters by name, so it could call itself without a limit. */
        if (!r && filters.rows[row].work == filter_map && budget->calls >= TEMPLATE_DEPTH_MAX)
                r = budget_fail(budget, "'map' calls itself deeper than %u", TEMPLATE_DEPTH_MAX);
        budget->calls++;
        if (!r)
                r = budget_list(budget, count, LIST_STREAM, ret_value);
        for (uint32_t i = 0; !r && i < count; i++) {
                r = budget_charge(budget, 1);
                if (!r)
                        r = builtin_call(budget, &filters, row, items[i], &arguments, &item);
                if (!r)
                        r = budget_list_add(budget, ret_value, item);
        }
        budget->calls--;
        return error_pass(r);
}
