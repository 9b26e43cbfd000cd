/*
 * The filters, tests, functions and methods that every template can use.
 *
 * A row lists the names of its parameters in order.  The machine puts each argument into the slot
 * of its parameter, by position or by name; a slot without an argument is MISSING.  A `*` at the
 * end of the list means that further arguments are allowed; they are found in `all`.
 */
#ifndef DAEMON_TEXT_TEMPLATE_BUILTINS_H
#define DAEMON_TEXT_TEMPLATE_BUILTINS_H

#include "daemon/text/value.h"

#define SLOTS      8u
#define MISSING    255u
#define NO_BUILTIN UINT32_MAX

struct budget;

/* The arguments in the order of the call; those with names come last. */
struct arguments {
        const struct value *values;
        uint32_t count;
        const struct list *names; /* of the last arguments; NULL: none has a name */
};

struct call {
        struct value slots[SLOTS];
        struct arguments all;
};

typedef int builtin_work(struct budget *budget, struct value self, const struct call *call,
                         struct value *ret_value);

struct builtin {
        const char *name;
        builtin_work *work; /* NULL: Python has it, but a call is refused here by name */
        const char *parameters;
        uint32_t least; /* this many of the first parameters must be given */
};

struct builtins {
        const char *what; /* the kind of builtin, for messages: "filter" */
        const struct builtin *rows;
        uint32_t count;
};

extern const struct builtins filters, tests, functions, text_methods, map_methods, list_methods,
        loop_methods;

/* The row of a name; NO_BUILTIN: there is none. */
uint32_t builtin_find(const struct builtins *builtins, const char *name, uint32_t count);
int builtin_call(struct budget *budget, const struct builtins *builtins, uint32_t row,
                 struct value self, const struct arguments *arguments, struct value *ret_value);

static inline uint32_t named_count(const struct arguments *arguments)
{
        return arguments->names ? arguments->names->count : 0;
}

static inline bool is_missing(struct value value)
{
        return value.kind == MISSING;
}

#endif
