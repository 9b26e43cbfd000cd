/*
 * What templates find here without making it: filters, tests, functions, methods.
 *
 * A row says how its arguments are called, in their order; the machine puts them into
 * slots, from their places or their names, and MISSING where there is none.  A `*` at
 * the end: any more are taken as they come, and found in `all`.
 */
#ifndef DAEMON_TEXT_TEMPLATE_BUILTINS_H
#define DAEMON_TEXT_TEMPLATE_BUILTINS_H

#include "daemon/text/template/code.h"

#define SLOTS      8u
#define MISSING    255u
#define NO_BUILTIN UINT32_MAX

struct run;

/* As they stand in a call: those with names come last. */
struct arguments {
        const struct value *values;
        uint32_t count;
        const struct list *names; /* of the last ones; NULL: none has one */
};

struct call {
        struct value slots[SLOTS];
        struct arguments all;
};

typedef int builtin_work(struct run *run, struct value self, const struct call *call,
                         struct value *ret_value);

struct builtin {
        const char *name;
        builtin_work *work; /* NULL: it is there in Python, and refused here by name */
        const char *parameters;
        uint32_t least; /* that must be given */
};

struct builtins {
        const char *what; /* they are: "filter" */
        const struct builtin *rows;
        uint32_t count;
};

extern const struct builtins filters, tests, functions, text_methods, map_methods, list_methods,
        loop_methods;

/* NO_BUILTIN: there is none of that name. */
uint32_t builtin_find(const struct builtins *builtins, const char *name, uint32_t count);
int builtin_call(struct run *run, const struct builtins *builtins, uint32_t row, struct value self,
                 const struct arguments *arguments, struct value *ret_value);

static inline bool is_missing(struct value value)
{
        return value.kind == MISSING;
}

#endif
