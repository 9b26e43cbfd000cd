/*
 * An arena is a list of pieces of memory, each twice as large as the one before.  So a small
 * rendering takes little memory and a large one calls malloc() seldom.
 *
 * A map keeps its entries in the order in which they were added.  A map of more than a few entries
 * also has their indices sorted by key.  A lookup then takes O(log n), whatever the keys are.
 */
#include "daemon/text/value.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PIECE_FIRST 4096u
#define PIECE_MOST  (256u << 10)
#define FEW         8u

struct piece {
        struct piece *next;
        _Alignas(16) char bytes[];
};

struct arena {
        struct piece *pieces;
        char *at;
        size_t left, next, budget;
        bool spent;
};

/* ---- the arena ---- */

int arena_new(size_t bytes_max, struct arena **ret_arena)
{
        struct arena *arena = calloc(1, sizeof(*arena));

        if (!arena)
                return error_raise(-ENOMEM);
        arena->budget = bytes_max;
        arena->next = PIECE_FIRST;
        *ret_arena = arena;
        return 0;
}

struct arena *arena_free(struct arena *arena)
{
        struct piece *next;

        if (!arena)
                return NULL;
        for (struct piece *piece = arena->pieces; piece; piece = next) {
                next = piece->next;
                free(piece);
        }
        free(arena);
        return NULL;
}

bool arena_is_spent(const struct arena *arena)
{
        return arena->spent;
}

static struct piece *arena_grow(struct arena *arena, size_t bytes)
{
        struct piece *piece = NULL;

        if (bytes > SIZE_MAX - sizeof(*piece) || bytes + sizeof(*piece) > arena->budget) {
                arena->spent = true;
                return NULL;
        }
        piece = malloc(sizeof(*piece) + bytes);
        if (!piece)
                return NULL;
        arena->budget -= sizeof(*piece) + bytes;
        piece->next = arena->pieces;
        arena->pieces = piece;
        return piece;
}

void *arena_take(struct arena *arena, size_t bytes)
{
        struct piece *piece;

        if (bytes > SIZE_MAX - 15)
                bytes = SIZE_MAX - 15;
        bytes = (bytes + 15) & ~(size_t)15;
        if (bytes > arena->left) {
                /* A large request gets its own piece; the rest of the last piece stays in use. */
                if (bytes > arena->next / 4) {
                        piece = arena_grow(arena, bytes);
                        return piece ? piece->bytes : NULL;
                }
                piece = arena_grow(arena, arena->next);
                if (!piece)
                        return NULL;
                arena->at = piece->bytes;
                arena->left = arena->next;
                if (arena->next < PIECE_MOST)
                        arena->next *= 2;
        }
        arena->at += bytes;
        arena->left -= bytes;
        return arena->at - bytes;
}

/* ---- strings, lists, maps ---- */

int value_string(struct arena *arena, const char *bytes, size_t count, enum text_origin origin,
                 struct value *ret_value)
{
        struct text *text = NULL;
        char *copy;

        if (count < UINT32_MAX)
                text = arena_take(arena, sizeof(*text) + count);
        if (!text)
                return error_raise(-ENOMEM);
        copy = (char *)(text + 1);
        if (count)
                memcpy(copy, bytes, count);
        *text = (struct text){ .bytes = copy, .count = (uint32_t)count, .run_count = 1 };
        text->whole = (struct text_run){ (uint32_t)count, origin };
        text->runs = &text->whole;
        *ret_value = (struct value){ .kind = VALUE_STRING, .text = text };
        return 0;
}

int value_list(struct arena *arena, uint32_t capacity, struct value *ret_value)
{
        struct list *list =
                arena_take(arena, sizeof(*list) + (size_t)capacity * sizeof(*list->items));

        if (!list)
                return error_raise(-ENOMEM);
        list->count = 0;
        list->capacity = capacity;
        list->depth = 1;
        list->grouped = false;
        *ret_value = (struct value){ .kind = VALUE_LIST, .list = list };
        return 0;
}

static unsigned depth_of(struct value value)
{
        return value.kind == VALUE_LIST  ? value.list->depth
               : value.kind == VALUE_MAP ? value.map->depth
                                         : 0;
}

int value_list_add(struct value *value, struct value item)
{
        struct list *list = (struct list *)value->list;
        unsigned depth = depth_of(item) + 1;

        assert(value->kind == VALUE_LIST && list->count < list->capacity);
        if (depth > VALUE_DEPTH_MAX)
                return error_raise(-E2BIG);
        if (depth > list->depth)
                list->depth = (uint8_t)depth;
        list->items[list->count++] = item;
        return 0;
}

int value_map(struct arena *arena, uint32_t capacity, struct value *ret_value)
{
        struct map *map =
                arena_take(arena, sizeof(*map) + (size_t)capacity * sizeof(*map->entries));

        if (!map)
                return error_raise(-ENOMEM);
        map->count = 0;
        map->capacity = capacity;
        map->depth = 1;
        map->sorted = NULL;
        *ret_value = (struct value){ .kind = VALUE_MAP, .map = map };
        return 0;
}

int value_map_add(struct value *value, struct value key, struct value item)
{
        struct map *map = (struct map *)value->map;
        unsigned a = depth_of(item), b = depth_of(key), depth = (a > b ? a : b) + 1;

        assert(value->kind == VALUE_MAP && map->count < map->capacity);
        if (depth > VALUE_DEPTH_MAX)
                return error_raise(-E2BIG);
        if (depth > map->depth)
                map->depth = (uint8_t)depth;
        map->entries[map->count++] = (struct map_entry){ key, item };
        return 0;
}

int value_map_name(struct arena *arena, struct value *map, const char *name, struct value item)
{
        struct value key;
        int r = value_string(arena, name, strlen(name), TEXT_OURS, &key);

        return error_pass(r ? r : value_map_add(map, key, item));
}

/* ---- the order of keys ---- */

static bool is_number(struct value v)
{
        return v.kind == VALUE_BOOL || v.kind == VALUE_INTEGER || v.kind == VALUE_FLOAT;
}

static double real_of(struct value v)
{
        return v.kind == VALUE_FLOAT  ? v.real
               : v.kind == VALUE_BOOL ? (double)v.truth
                                      : (double)v.integer;
}

static int number_order(struct value a, struct value b)
{
        if (a.kind != VALUE_FLOAT && b.kind != VALUE_FLOAT) {
                int64_t x = a.kind == VALUE_BOOL ? a.truth : a.integer;
                int64_t y = b.kind == VALUE_BOOL ? b.truth : b.integer;

                return x < y ? -1 : x > y;
        }
        return real_of(a) < real_of(b) ? -1 : real_of(a) > real_of(b);
}

static int text_order(const struct text *a, const struct text *b)
{
        int r = memcmp(a->bytes, b->bytes, a->count < b->count ? a->count : b->count);

        return r ? r : a->count < b->count ? -1 : a->count > b->count;
}

static int rank(struct value v)
{
        return is_number(v) ? 0 : v.kind;
}

int value_key_order(struct value a, struct value b)
{
        int r = 0;

        if (rank(a) != rank(b))
                return rank(a) < rank(b) ? -1 : 1;
        if (is_number(a))
                return number_order(a, b);
        if (a.kind == VALUE_STRING)
                return text_order(a.text, b.text);
        if (a.kind != VALUE_LIST)
                return 0;
        for (uint32_t i = 0; !r && i < a.list->count && i < b.list->count; i++)
                r = value_key_order(a.list->items[i], b.list->items[i]);
        return r ? r : a.list->count < b.list->count ? -1 : a.list->count > b.list->count;
}

/* ---- a map's keys ---- */

/* Merges sorted runs of `width` indices into `to`; equal keys stay in their order. */
static void merge_runs(const struct map *map, const uint32_t *from, uint32_t *to, size_t width)
{
        size_t count = map->count;

        for (size_t start = 0; start < count; start += 2 * width) {
                size_t middle = start + width < count ? start + width : count;
                size_t end = middle + width < count ? middle + width : count;
                size_t a = start, b = middle;

                for (size_t i = start; i < end; i++) {
                        bool first = a < middle &&
                                     (b == end || value_key_order(map->entries[from[a]].key,
                                                                  map->entries[from[b]].key) <= 0);

                        to[i] = first ? from[a++] : from[b++];
                }
        }
}

static uint32_t *sort_places(struct arena *arena, const struct map *map)
{
        uint32_t *places = arena_take(arena, (size_t)map->count * 2 * sizeof(*places)), *other;

        if (!places)
                return NULL;
        other = places + map->count;
        for (uint32_t i = 0; i < map->count; i++)
                places[i] = i;
        for (size_t width = 1; width < map->count; width *= 2) {
                uint32_t *swap = places;

                merge_runs(map, places, other, width);
                places = other;
                other = swap;
        }
        return places;
}

/* Of equal keys, the first entry stays and gets the value of the last one; the others go. */
static bool drop_twins(struct map *map, const uint32_t *places)
{
        uint32_t kept = 0;

        for (uint32_t i = 0, j; i < map->count; i = j) {
                for (j = i + 1; j < map->count && !value_key_order(map->entries[places[i]].key,
                                                                   map->entries[places[j]].key);
                     j++)
                        map->entries[places[j]].key.kind = VALUE_UNDEFINED;
                map->entries[places[i]].value = map->entries[places[j - 1]].value;
        }
        for (uint32_t i = 0; i < map->count; i++)
                if (map->entries[i].key.kind != VALUE_UNDEFINED)
                        map->entries[kept++] = map->entries[i];
        if (kept == map->count)
                return false;
        map->count = kept;
        return true;
}

int value_map_end(struct arena *arena, struct value *value)
{
        struct map *map = (struct map *)value->map;
        const uint32_t *places = sort_places(arena, map);
        bool twice;

        assert(value->kind == VALUE_MAP);
        if (!places)
                return error_raise(-ENOMEM);
        twice = drop_twins(map, places);
        if (twice && !(places = sort_places(arena, map)))
                return error_raise(-ENOMEM);
        if (map->count > FEW)
                map->sorted = places;
        return twice ? VALUE_E_TWICE : 0;
}

const struct map_entry *value_map_find(const struct map *map, struct value key)
{
        uint32_t low = 0, high = map->count;

        if (!map->sorted) {
                for (uint32_t i = 0; i < map->count; i++)
                        if (!value_key_order(map->entries[i].key, key))
                                return &map->entries[i];
                return NULL;
        }
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                int order = value_key_order(map->entries[map->sorted[middle]].key, key);

                if (!order)
                        return &map->entries[map->sorted[middle]];
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

const struct value *value_member(struct value map, const char *key)
{
        struct text text = { .bytes = key, .count = (uint32_t)strlen(key) };
        const struct value wanted = { .kind = VALUE_STRING, .text = &text };
        const struct map_entry *entry;

        entry = map.kind == VALUE_MAP ? value_map_find(map.map, wanted) : NULL;
        return entry ? &entry->value : NULL;
}

/* ---- from a document ---- */

/* A number is an integer if it is written without a point and an exponent. */
static int number_from_json(const struct json_document *json, uint32_t node,
                            struct value *ret_value)
{
        const char *text = json_number(json, node);
        double real;

        if (text[strcspn(text, ".eE")]) {
                if (!json_real(json, node, &real))
                        return error_raise(-ERANGE);
                *ret_value = value_float(real);
                return 0;
        }
        errno = 0;
        *ret_value = value_integer(strtoll(text, NULL, 10));
        return errno ? error_raise(-ERANGE) : 0;
}

static int list_from_json(struct arena *arena, const struct json_document *json, uint32_t node,
                          enum text_origin origin, struct value *ret_value)
{
        struct value item;
        int r = value_list(arena, json_count(json, node), ret_value);

        for (uint32_t c = json_first(json, node); !r && c != JSON_NONE; c = json_next(json, c)) {
                r = value_from_json(arena, json, c, origin, &item);
                if (!r)
                        r = value_list_add(ret_value, item);
        }
        return error_pass(r);
}

static int map_from_json(struct arena *arena, const struct json_document *json, uint32_t node,
                         enum text_origin origin, struct value *ret_value)
{
        struct value key, item;
        int r = value_map(arena, json_count(json, node), ret_value);

        for (uint32_t c = json_first(json, node); !r && c != JSON_NONE; c = json_next(json, c)) {
                size_t bytes;
                const char *name = json_key(json, c, &bytes);

                r = value_string(arena, name, bytes, origin, &key);
                if (!r)
                        r = value_from_json(arena, json, c, origin, &item);
                if (!r)
                        r = value_map_add(ret_value, key, item);
        }
        return error_pass(r ? r : value_map_end(arena, ret_value));
}

/* A document is at most JSON_DEPTH_MAX deep, and so is this recursion. */
int value_from_json(struct arena *arena, const struct json_document *json, uint32_t node,
                    enum text_origin origin, struct value *ret_value)
{
        const char *text;
        size_t bytes;
        bool truth = false;

        switch (json_kind(json, node)) {
        case JSON_BOOL:
                json_bool(json, node, &truth);
                *ret_value = value_bool(truth);
                return 0;
        case JSON_NUMBER:
                return error_pass(number_from_json(json, node, ret_value));
        case JSON_STRING:
                text = json_string(json, node, &bytes);
                return error_pass(value_string(arena, text, bytes, origin, ret_value));
        case JSON_ARRAY:
                return error_pass(list_from_json(arena, json, node, origin, ret_value));
        case JSON_OBJECT:
                return error_pass(map_from_json(arena, json, node, origin, ret_value));
        case JSON_NULL:
        case JSON_ABSENT:
                break;
        }
        *ret_value = value_none();
        return 0;
}

/* ---- questions about values ---- */

const char *value_type(struct value value)
{
        static const char *const names[] = {
                [VALUE_UNDEFINED] = "Undefined", [VALUE_NONE] = "NoneType",
                [VALUE_BOOL] = "bool",           [VALUE_INTEGER] = "int",
                [VALUE_FLOAT] = "float",         [VALUE_STRING] = "str",
                [VALUE_LIST] = "list",           [VALUE_MAP] = "dict",
                [VALUE_NAMESPACE] = "namespace", [VALUE_LOOP] = "loop",
                [VALUE_MACRO] = "macro",         [VALUE_FUNCTION] = "function",
                [VALUE_METHOD] = "method",
        };
        static const char *const flavours[] = { "list", "tuple", "range", "view", "generator" };

        return value.kind == VALUE_LIST ? flavours[value.flavour] : names[value.kind];
}

bool value_truth(struct value value)
{
        switch (value.kind) {
        case VALUE_UNDEFINED:
        case VALUE_NONE:
                return false;
        case VALUE_BOOL:
                return value.truth;
        case VALUE_INTEGER:
                return value.integer;
        case VALUE_FLOAT:
                return value.real != 0;
        case VALUE_STRING:
                return value.text->count;
        case VALUE_LIST:
                return value.list->count || value.flavour == LIST_STREAM;
        case VALUE_MAP:
                return value.map->count;
        default:
                return true;
        }
}

bool value_is_number(struct value value)
{
        return value.kind >= VALUE_BOOL && value.kind <= VALUE_FLOAT;
}

int64_t value_whole(struct value number)
{
        return number.kind == VALUE_BOOL ? number.truth : number.integer;
}

double value_real(struct value number)
{
        return number.kind == VALUE_FLOAT ? number.real : (double)value_whole(number);
}

bool value_is_sequence(struct value value)
{
        return value.kind == VALUE_LIST && value.flavour <= LIST_TUPLE;
}

struct shown text_shown(const struct text *text)
{
        char start[sizeof(struct shown) + 1]; /* one more, so that shown() marks a cut */
        uint32_t count = text->count < sizeof(start) ? text->count : sizeof(start) - 1;

        memcpy(start, text->bytes, count);
        start[count] = '\0';
        return shown(start);
}
