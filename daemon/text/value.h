/*
 * Values as a template sees them: the content of a document, in Python's types.
 *
 * Everything lies in an arena with a byte budget and is freed with the arena.  A value never
 * changes after it is made, so several threads can render the same document.
 *
 * A text stores its origin, run by run.  TEXT_OURS is text of the template, and text that the code
 * that made the value vouches for: the spelling of a control token, a well-known role.  TEXT_GIVEN
 * came from outside.  template.h says how origins are used.
 *
 * Values nest at most VALUE_DEPTH_MAX deep: adding one that would be deeper is refused, so code
 * that walks a value may recurse.
 *
 * There is no arithmetic here and nothing about templates: see daemon/text/template/.
 */
#ifndef DAEMON_TEXT_VALUE_H
#define DAEMON_TEXT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/reader.h"
#include "json/shown.h"

#define VALUE_DEPTH_MAX 80u /* a document of JSON_DEPTH_MAX, and the values put around it */

struct arena;

/* bytes_max: how many bytes it may take from malloc() in all.  0 or -ENOMEM. */
int arena_new(size_t bytes_max, struct arena **ret_arena);
struct arena *arena_free(struct arena *arena); /* takes NULL */
/*
 * The memory is not cleared.  NULL: the budget is spent, or malloc() failed; arena_is_spent()
 * tells which.
 */
void *arena_take(struct arena *arena, size_t bytes);
bool arena_is_spent(const struct arena *arena);

enum value_kind {
        VALUE_UNDEFINED, /* made only by templates */
        VALUE_NONE,
        VALUE_BOOL,
        VALUE_INTEGER,
        VALUE_FLOAT,
        VALUE_STRING,
        VALUE_LIST,
        VALUE_MAP,
        /* From here on: made only by templates. */
        VALUE_NAMESPACE,
        VALUE_LOOP,
        VALUE_MACRO,
        VALUE_FUNCTION,
        VALUE_METHOD,
};

enum text_origin { TEXT_OURS, TEXT_GIVEN };

struct value {
        uint8_t kind;
        uint8_t flavour; /* a list: enum list_flavour; other kinds: 0 */
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
                /* of an undefined value, or NULL */
                const struct undefined_reason *reason;
                uint32_t function;
        };
};

/* ---- making values: 0, or -ENOMEM, also when the arena's budget is spent ---- */

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

/* Copies the bytes, which should be UTF-8; a byte that is not counts as one character. */
int value_string(struct arena *arena, const char *bytes, size_t count, enum text_origin origin,
                 struct value *ret_value);

/*
 * The code that makes a list or a map adds its items in order, at most `capacity` of them, before
 * other code sees the value.  -E2BIG: it would nest deeper than VALUE_DEPTH_MAX.  Call
 * value_map_end() before a map is used.  It returns VALUE_E_TWICE if a key was added twice; the
 * last value of that key stays.
 */
enum value_outcome { VALUE_E_TWICE = 1 };

int value_list(struct arena *arena, uint32_t capacity, struct value *ret_value);
int value_list_add(struct value *list, struct value item);
int value_map(struct arena *arena, uint32_t capacity, struct value *ret_value);
int value_map_add(struct value *map, struct value key, struct value item);
int value_map_end(struct arena *arena, struct value *map);

/* value_map_add() with a key that is a C string of our own. */
int value_map_name(struct arena *arena, struct value *map, const char *name, struct value item);

/*
 * The value of a node of a document.  `origin` is the origin of all its strings and keys.  Integers
 * have 64 bits; an integer that does not fit them, or a real number that does not fit a double, is
 * -ERANGE.  JSON_NONE gives none.
 */
int value_from_json(struct arena *arena, const struct json_document *json, uint32_t node,
                    enum text_origin origin, struct value *ret_value);

/* The item of a key; NULL: `map` is not a map, or does not have the key. */
const struct value *value_member(struct value map, const char *key);

/* ---- the parts of values ---- */

/* Where a run of a text ends, and its origin.  Neighbouring runs differ in origin. */
struct text_run {
        uint32_t end;
        enum text_origin origin;
};

struct text {
        const char *bytes; /* may contain NULs */
        uint32_t count;
        uint32_t run_count; /* at least 1 */
        const struct text_run *runs;
        struct text_run whole; /* `runs` points here if there is only one */
};

enum list_flavour {
        LIST_LIST,
        LIST_TUPLE,
        LIST_RANGE,
        LIST_VIEW,   /* the keys, values or items of a map: has a length, but no [0] */
        LIST_STREAM, /* the result of a filter: has no length and no [0]; always true */
};

struct list {
        uint32_t count, capacity;
        uint8_t depth; /* 1: contains no list and no map */
        bool grouped;  /* made by groupby: its two items are also called `grouper` and `list` */
        struct value items[];
};

struct map_entry {
        struct value key, value;
};

struct map {
        uint32_t count, capacity;
        uint8_t depth;
        const uint32_t *sorted; /* indices of entries, sorted by key; NULL: there are few */
        struct map_entry entries[];
};

/* An order for keys only: numbers, then strings, then other kinds; 0: the same key. */
int value_key_order(struct value a, struct value b);
const struct map_entry *value_map_find(const struct map *map, struct value key);

/* ---- questions about values ---- */

const char *value_type(struct value value); /* Python's name of the type */
bool value_truth(struct value value);
bool value_is_number(struct value value);   /* true and false are numbers, too */
bool value_is_sequence(struct value value); /* a list or a tuple */
double value_real(struct value number);
int64_t value_whole(struct value number); /* of a bool or an integer */

/* The beginning of a text, as a C string that may be shown in a message. */
struct shown text_shown(const struct text *text);

#endif
