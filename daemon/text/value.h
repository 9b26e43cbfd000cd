/*
 * Values, as a template sees them: what a document says, in Python's kinds.
 *
 * Everything lies in an arena with a byte budget and goes with it.  A value is made
 * once and never changed after, so a document can be rendered by several threads.
 *
 * A text knows where it came from, run by run: TEXT_OURS is the template's own (and
 * what its maker vouches for: the text of a control token, a role that is one of the
 * known words); TEXT_GIVEN came in from outside.  template.h says what becomes of it.
 *
 * Values lie at most VALUE_DEPTH_MAX deep within one another, by construction: who adds
 * one that is deeper is refused, so whoever walks a value may recurse.
 *
 * They can not do arithmetic, and know nothing of templates: daemon/text/template/ does.
 */
#ifndef DAEMON_TEXT_VALUE_H
#define DAEMON_TEXT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/json.h"

#define VALUE_DEPTH_MAX 80u /* a document of JSON_DEPTH_MAX, and what is put around it */

struct arena;

/* bytes_max: what it may take from malloc() in all.  0 or -ENOMEM. */
int arena_new(size_t bytes_max, struct arena **ret_arena);
struct arena *arena_free(struct arena *arena); /* takes NULL */
/* Not cleared.  NULL: the budget is spent, or malloc() failed; arena_is_spent() tells which. */
void *arena_take(struct arena *arena, size_t bytes);
bool arena_is_spent(const struct arena *arena);

enum value_kind {
        VALUE_UNDEFINED, /* only in templates */
        VALUE_NONE,
        VALUE_BOOL,
        VALUE_INTEGER,
        VALUE_FLOAT,
        VALUE_STRING,
        VALUE_LIST,
        VALUE_MAP,
        /* From here on: only in templates. */
        VALUE_NAMESPACE,
        VALUE_LOOP,
        VALUE_MACRO,
        VALUE_FUNCTION,
        VALUE_METHOD,
};

enum text_origin { TEXT_OURS, TEXT_GIVEN };

struct value {
        uint8_t kind;
        uint8_t flavour; /* of a list: enum list_flavour; else 0 */
        union {
                bool truth;
                int64_t integer;
                double real;
                const struct text *text;
                const struct list *list;
                const struct map *map;
                struct namespace *names;
                struct loop *loop;
                const struct macro *macro;
                const struct method *method;
                const struct lack *lack; /* of what is undefined; NULL: nothing is known of it */
                uint32_t function;
        };
};

/* ---- making them; 0, or -ENOMEM, the arena's budget included ---- */

static inline struct value value_none(void)
{
        return (struct value){ .kind = VALUE_NONE };
}
static inline struct value value_bool(bool truth)
{
        return (struct value){ .kind = VALUE_BOOL, .truth = truth };
}
static inline struct value value_integer(int64_t integer)
{
        return (struct value){ .kind = VALUE_INTEGER, .integer = integer };
}
static inline struct value value_float(double real)
{
        return (struct value){ .kind = VALUE_FLOAT, .real = real };
}

/* Copies the bytes, which should be UTF-8; a byte that is not is a character of its own. */
int value_string(struct arena *arena, const char *bytes, size_t count, enum text_origin origin,
                 struct value *ret_value);

/*
 * A list or a map is filled by its maker, in order, up to the room it was made for, and only
 * while nobody else knows it.  -E2BIG: what is added lies too deep.  A map is ended before
 * it is used: VALUE_E_TWICE, a key was there twice, and the last of its values stays.
 */
enum value_outcome { VALUE_E_TWICE = 1 };

int value_list(struct arena *arena, uint32_t room, struct value *ret_value);
int value_list_add(struct value *list, struct value item);
int value_map(struct arena *arena, uint32_t room, struct value *ret_value);
int value_map_add(struct value *map, struct value key, struct value item);
int value_map_end(struct arena *arena, struct value *map);

/* value_map_add() with a key that is a C string of our own. */
int value_map_name(struct arena *arena, struct value *map, const char *name, struct value item);

/*
 * What that node of a document says; its strings and keys are all `origin`.  Integers have
 * 64 bits; a number that does not fit them, or a double, is -ERANGE.  JSON_NONE is none.
 */
int value_from_json(struct arena *arena, const struct json *json, uint32_t node,
                    enum text_origin origin, struct value *ret_value);

/* The item of a key; NULL: it is no map, or the key is not there. */
const struct value *value_member(struct value map, const char *key);

/* ---- what they are made of ---- */

/* Where a part of a text ends, and whose it is.  Neighbours differ. */
struct text_run {
        uint32_t end;
        enum text_origin origin;
};

struct text {
        const char *bytes; /* may have NULs */
        uint32_t count;
        uint32_t run_count; /* at least 1 */
        const struct text_run *runs;
        struct text_run whole; /* runs, if there is one */
};

enum list_flavour {
        LIST_LIST,
        LIST_TUPLE,
        LIST_RANGE,
        LIST_VIEW,   /* a map's keys, values or items: has a length, no [0] */
        LIST_STREAM, /* what filters yield: neither; always true */
};

struct list {
        uint32_t count, room;
        uint8_t depth; /* 1: nothing in it that holds anything */
        bool grouped;  /* of groupby: its two are called `grouper` and `list` too */
        struct value items[];
};

struct map_entry {
        struct value key, value;
};

struct map {
        uint32_t count, room;
        uint8_t depth;
        const uint32_t *sorted; /* places of entries by key; NULL: they are few */
        struct map_entry entries[];
};

/* The order of keys, and of nothing else: numbers, then strings, then the rest; 0: the same. */
int value_key_order(struct value a, struct value b);
const struct map_entry *value_map_find(const struct map *map, struct value key);

#endif
