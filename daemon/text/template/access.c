/*
 * Access to the parts of values: iteration, attributes, items, slices.
 *
 * As in Jinja, `a.b` looks for an attribute first and then for an item; `a['b']` looks for an item
 * first.  If neither is there, the result is undefined.  Access to a part of an undefined value is
 * an error.
 */
#include "daemon/text/template/access.h"

#include <assert.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/text.h"
#include "daemon/text/unicode.h"

/* ---- iteration ---- */

static int text_characters(struct budget *budget, const struct text *text,
                           const struct value **ret_items, uint32_t *ret_count)
{
        uint32_t count, at = 0, code;
        struct value *items;
        int r = text_length(budget, text, &count);

        if (!r)
                r = budget_charge(budget, count);
        if (r || !(items = budget_take(budget, (size_t)count * sizeof(*items), &r)))
                return error_pass(r);
        for (uint32_t i = 0; !r && i < count; i++) {
                uint32_t n = unicode_next(text->bytes + at, text->count - at, &code);

                r = text_slice(budget, text, at, at + n, &items[i]);
                at += n;
        }
        *ret_items = items;
        *ret_count = count;
        return error_pass(r);
}

static int map_keys(struct budget *budget, const struct map *map, const struct value **ret_items)
{
        struct value *keys;
        int r = budget_charge(budget, map->count / 4);

        if (r || !(keys = budget_take(budget, (size_t)map->count * sizeof(*keys), &r)))
                return error_pass(r);
        for (uint32_t i = 0; i < map->count; i++)
                keys[i] = map->entries[i].key;
        *ret_items = keys;
        return 0;
}

int value_items(struct budget *budget, struct value value, const struct value **ret_items,
                uint32_t *ret_count)
{
        *ret_items = NULL;
        *ret_count = 0;
        switch (value.kind) {
        case VALUE_UNDEFINED:
                return 0;
        case VALUE_STRING:
                return error_pass(text_characters(budget, value.text, ret_items, ret_count));
        case VALUE_LIST:
                *ret_items = value.list->items;
                *ret_count = value.list->count;
                return 0;
        case VALUE_MAP:
                *ret_count = value.map->count;
                return error_pass(map_keys(budget, value.map, ret_items));
        default:
                return error_raise(budget_fail(budget, "a %s is not iterable", value_type(value)));
        }
}

bool value_is_iterable(struct value value)
{
        return value.kind == VALUE_UNDEFINED || value.kind == VALUE_STRING ||
               value.kind == VALUE_LIST || value.kind == VALUE_MAP || value.kind == VALUE_LOOP;
}

int value_length(struct budget *budget, struct value value, uint32_t *ret_length, bool *ret_has)
{
        *ret_length = 0;
        *ret_has = true;
        switch (value.kind) {
        case VALUE_UNDEFINED:
                return 0;
        case VALUE_STRING:
                return error_pass(text_length(budget, value.text, ret_length));
        case VALUE_LIST:
                *ret_length = value.list->count;
                *ret_has = value.flavour != LIST_STREAM;
                return 0;
        case VALUE_MAP:
                *ret_length = value.map->count;
                return 0;
        case VALUE_LOOP:
                *ret_length = value.loop->count;
                return 0;
        default:
                *ret_has = false;
                return 0;
        }
}

/* ---- loops and namespaces ---- */

static struct value loop_neighbour(const struct loop *loop, int64_t at)
{
        return at >= 0 && at < loop->count ? loop->items[at]
                                           : (struct value){ .kind = VALUE_UNDEFINED };
}

static bool loop_attribute(const struct loop *loop, const struct text *name,
                           struct value *ret_value)
{
        const struct {
                const char *name;
                struct value value;
        } rows[] = {
                { "index", value_integer((int64_t)loop->at + 1) },
                { "index0", value_integer(loop->at) },
                { "revindex", value_integer((int64_t)loop->count - loop->at) },
                { "revindex0", value_integer((int64_t)loop->count - loop->at - 1) },
                { "first", value_bool(!loop->at) },
                { "last", value_bool(loop->at + 1 == loop->count) },
                { "length", value_integer(loop->count) },
                { "depth", value_integer(1) },
                { "depth0", value_integer(0) },
                { "previtem", loop_neighbour(loop, (int64_t)loop->at - 1) },
                { "nextitem", loop_neighbour(loop, (int64_t)loop->at + 1) },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
                if (text_is(name, rows[i].name)) {
                        *ret_value = rows[i].value;
                        return true;
                }
        return false;
}

static struct binding *find_name(const struct namespace *names, const struct text *name)
{
        for (uint32_t i = 0; i < names->count; i++)
                if (text_same(names->bindings[i].name, name))
                        return &names->bindings[i];
        return NULL;
}

int namespace_set(struct budget *budget, struct namespace *names, const struct text *name,
                  struct value value)
{
        struct binding *found = find_name(names, name);
        int r = budget_charge(budget, names->count / 16);

        if (!r && name->count && name->bytes[0] == '_')
                r = error_raise(budget_fail(budget, "a namespace has no attribute '%s'",
                                            text_shown(name).text));
        if (!r && found)
                found->value = value;
        if (r || found)
                return error_pass(r);
        r = budget_grow(budget, &names->bindings, names->count, &names->capacity,
                        sizeof(*names->bindings));
        if (!r)
                names->bindings[names->count++] = (struct binding){ name, value };
        return error_pass(r);
}

/* ---- attributes and items ---- */

static const struct builtins *methods_of(struct value value)
{
        return value.kind == VALUE_STRING                              ? &text_methods
               : value.kind == VALUE_MAP                               ? &map_methods
               : value.kind == VALUE_LOOP                              ? &loop_methods
               : value.kind == VALUE_LIST && value.flavour < LIST_VIEW ? &list_methods
                                                                       : NULL;
}

/* 1: the value has the attribute; 0: it does not; or an error. */
static int own_attribute(struct budget *budget, struct value value, const struct text *name,
                         struct value *ret_value)
{
        const struct builtins *methods = methods_of(value);
        const struct binding *found;
        struct method *method;
        uint32_t row;
        int r;

        if (value.kind == VALUE_NAMESPACE && (found = find_name(value.names, name))) {
                *ret_value = found->value;
                r = budget_charge(budget, value.names->count / 16);
                return error_pass(r ? r : 1);
        }
        if (value.kind == VALUE_LIST && value.list->grouped &&
            (text_is(name, "grouper") || text_is(name, "list"))) {
                *ret_value = value.list->items[text_is(name, "list")];
                return 1;
        }
        if (value.kind == VALUE_LOOP && loop_attribute(value.loop, name, ret_value))
                return 1;
        row = methods ? builtin_find(methods, name->bytes, name->count) : NO_BUILTIN;
        if (row == NO_BUILTIN)
                return 0;
        method = budget_take(budget, sizeof(*method), &r);
        if (!method)
                return error_pass(r);
        *method = (struct method){ value, methods, row };
        *ret_value = (struct value){ .kind = VALUE_METHOD, .method = method };
        return 1;
}

/* The character at an index, which counts from the end if it is negative.  1: it exists; 0. */
static int text_item(struct budget *budget, const struct text *text, int64_t index,
                     struct value *ret_value)
{
        uint32_t length, at, code;
        int r = text_length(budget, text, &length);

        if (index < 0)
                index += length;
        if (r || index < 0 || index >= length)
                return error_pass(r);
        at = text_place(text, index);
        r = text_slice(budget, text, at,
                       at + unicode_next(text->bytes + at, text->count - at, &code), ret_value);
        return error_pass(r ? r : 1);
}

/* 1: the value has the item; 0: it does not; or an error. */
static int own_item(struct budget *budget, struct value value, struct value key,
                    struct value *ret_value)
{
        bool whole = key.kind == VALUE_INTEGER || key.kind == VALUE_BOOL;
        const struct map_entry *entry;
        int64_t index;
        int r;

        if (value.kind == VALUE_MAP && key.kind != VALUE_MAP) {
                r = budget_map_find(budget, value.map, key, &entry);
                if (entry)
                        *ret_value = entry->value;
                return error_pass(r ? r : entry != NULL);
        }
        if (value.kind == VALUE_STRING && whole)
                return error_pass(text_item(budget, value.text, value_whole(key), ret_value));
        if (value.kind == VALUE_LIST && value.flavour < LIST_VIEW && whole) {
                index = value_whole(key);
                if (index < 0)
                        index += value.list->count;
                if (index < 0 || index >= value.list->count)
                        return 0;
                *ret_value = value.list->items[index];
                return 1;
        }
        return 0;
}

static int lacking(struct budget *budget, struct value value, struct value key,
                   struct value *ret_value)
{
        if (key.kind == VALUE_STRING)
                return error_pass(undefined_make(budget, key.text, value_type(value), ret_value));
        *ret_value = (struct value){ .kind = VALUE_UNDEFINED };
        return 0;
}

int value_attribute(struct budget *budget, struct value value, const struct text *name,
                    struct value *ret_value)
{
        const struct value key = { .kind = VALUE_STRING, .text = name };
        int r = budget_charge_bytes(budget, name->count);

        if (!r && value.kind == VALUE_UNDEFINED)
                r = undefined_fail(budget, value);
        if (!r)
                r = own_attribute(budget, value, name, ret_value);
        if (!r)
                r = own_item(budget, value, key, ret_value);
        return error_pass(r < 0 ? r : r ? 0 : lacking(budget, value, key, ret_value));
}

int value_item(struct budget *budget, struct value value, struct value key, struct value *ret_value)
{
        int r = 0;

        if (key.kind == VALUE_STRING)
                r = budget_charge_bytes(budget, key.text->count);
        if (!r && value.kind == VALUE_UNDEFINED)
                r = undefined_fail(budget, value);
        if (!r)
                r = own_item(budget, value, key, ret_value);
        if (!r && key.kind == VALUE_STRING)
                r = own_attribute(budget, value, key.text, ret_value);
        return error_pass(r < 0 ? r : r ? 0 : lacking(budget, value, key, ret_value));
}

/* A part of a path that has only digits is a number, as in Jinja. */
static int path_part(struct budget *budget, const struct text *path, uint32_t from, uint32_t end,
                     struct value *ret_key)
{
        int64_t index = 0;
        bool digits = end > from;

        for (uint32_t i = from; i < end && digits; i++) {
                digits = path->bytes[i] >= '0' && path->bytes[i] <= '9';
                if (digits && (__builtin_mul_overflow(index, 10, &index) ||
                               __builtin_add_overflow(index, path->bytes[i] - '0', &index)))
                        return error_raise(budget_fail(budget, "an integer has more than 64 bits"));
        }
        *ret_key = value_integer(index);
        return error_pass(digits ? 0 : text_slice(budget, path, from, end, ret_key));
}

int value_path(struct budget *budget, struct value value, struct value path, struct value otherwise,
               struct value *ret_value)
{
        uint32_t from = 0;
        int r = budget_charge(budget, 1);

        *ret_value = value;
        if (!r && path.kind != VALUE_STRING) {
                r = value_item(budget, value, path, ret_value);
                if (!r && ret_value->kind == VALUE_UNDEFINED && !is_missing(otherwise))
                        *ret_value = otherwise;
                return error_pass(r);
        }
        while (!r && from <= path.text->count) {
                const char *dot = memchr(path.text->bytes + from, '.', path.text->count - from);
                uint32_t end = dot ? (uint32_t)(dot - path.text->bytes) : path.text->count;
                struct value key;

                r = path_part(budget, path.text, from, end, &key);
                if (!r)
                        r = value_item(budget, *ret_value, key, ret_value);
                if (!r && ret_value->kind == VALUE_UNDEFINED && !is_missing(otherwise))
                        *ret_value = otherwise;
                if (!r)
                        r = budget_charge(budget, 1);
                from = end + 1;
        }
        return error_pass(r);
}

/* ---- slices ---- */

struct cut {
        int64_t start, stop, step;
};

static int cut_part(struct budget *budget, struct value part, int64_t length, int64_t none,
                    int64_t least, int64_t most, int64_t *ret_part)
{
        int64_t at;

        *ret_part = none;
        if (part.kind == VALUE_NONE)
                return 0;
        if (part.kind != VALUE_INTEGER && part.kind != VALUE_BOOL)
                return error_raise(budget_fail(budget, "the start of a slice is a %s, not an int",
                                               value_type(part)));
        at = value_whole(part);
        if (at < 0)
                at = at < -length ? least : at + length;
        *ret_part = at < least ? least : at > most ? most : at;
        return 0;
}

static int make_cut(struct budget *budget, const struct value *parts, int64_t length,
                    struct cut *ret_cut)
{
        int64_t step = 1, least, most;
        int r = 0;

        if (parts[2].kind != VALUE_NONE) {
                if (parts[2].kind != VALUE_INTEGER && parts[2].kind != VALUE_BOOL)
                        return error_raise(budget_fail(budget,
                                                       "the step of a slice is a %s, not an int",
                                                       value_type(parts[2])));
                step = value_whole(parts[2]);
        }
        if (!step)
                return error_raise(budget_fail(budget, "the step of a slice is 0"));
        if (step > length + 1)
                step = length + 1;
        if (step < -length - 1)
                step = -length - 1;
        least = step < 0 ? -1 : 0;
        most = step < 0 ? length - 1 : length;
        ret_cut->step = step;
        r = cut_part(budget, parts[0], length, step < 0 ? most : least, least, most,
                     &ret_cut->start);
        return error_pass(r ? r
                            : cut_part(budget, parts[1], length, step < 0 ? least : most, least,
                                       most, &ret_cut->stop));
}

static int slice_text(struct budget *budget, const struct text *text, const struct value *parts,
                      struct value *ret_value)
{
        struct builder to = { .bytes = NULL };
        const struct value *items;
        struct cut cut = { 0, 0, 0 };
        uint32_t length, from;
        int r = text_length(budget, text, &length);

        if (!r)
                r = make_cut(budget, parts, length, &cut);
        if (r)
                return error_pass(r);
        if (cut.step == 1) {
                from = text_place(text, cut.start);
                return error_pass(
                        text_slice(budget, text, from, text_place(text, cut.stop), ret_value));
        }
        r = text_characters(budget, text, &items, &length);
        for (int64_t i = cut.start; !r && (cut.step < 0 ? i > cut.stop : i < cut.stop);
             i += cut.step)
                r = text_add_all(budget, &to, items[i].text);
        return error_pass(r ? r : text_end(budget, &to, ret_value));
}

int value_slice(struct budget *budget, struct value value, const struct value *parts,
                struct value *ret_value)
{
        struct cut cut = { 0, 0, 0 };
        int64_t count = 0;
        int r;

        if (value.kind == VALUE_STRING)
                return error_pass(slice_text(budget, value.text, parts, ret_value));
        if (value.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, value));
        if (value.kind != VALUE_LIST || value.flavour >= LIST_VIEW)
                return error_raise(budget_fail(budget, "a %s cannot be sliced", value_type(value)));
        r = make_cut(budget, parts, value.list->count, &cut);
        if (!r && (cut.step < 0 ? cut.start > cut.stop : cut.start < cut.stop))
                count = (cut.stop - cut.start + cut.step - (cut.step > 0 ? 1 : -1)) / cut.step;
        if (!r)
                r = budget_list(budget, (uint32_t)count, value.flavour, ret_value);
        for (int64_t i = 0; !r && i < count; i++)
                r = budget_list_add(budget, ret_value, value.list->items[cut.start + i * cut.step]);
        return error_pass(r);
}
