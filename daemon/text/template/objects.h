/*
 * The values that only templates make: loops, methods, namespaces, undefined values.
 */
#ifndef DAEMON_TEXT_TEMPLATE_OBJECTS_H
#define DAEMON_TEXT_TEMPLATE_OBJECTS_H

#include "daemon/text/value.h"

struct budget;
struct builtins; /* builtins.h */

struct binding {
        const struct text *name;
        struct value value;
};

struct loop {
        const struct value *items;
        uint32_t count, at;
        struct value changed; /* a tuple: the arguments of the last loop.changed() */
        /* skipped: a continue ended this turn; finished: a turn ended without a continue */
        bool skipped, finished;
};

struct method {
        struct value self;
        const struct builtins *builtins;
        uint32_t row;
};

struct namespace
{
        struct binding *bindings;
        uint32_t count, capacity;
};

/* Why a value is undefined. */
struct undefined_reason {
        const struct text *name;
        const char *owner; /* the type that lacks the attribute; NULL: `name` is a variable */
};

/* An undefined value.  `owner`: as in struct undefined_reason. */
int undefined_make(struct budget *budget, const struct text *name, const char *owner,
                   struct value *ret_value);
/* Fails the rendering, because the undefined `value` was used.  Never 0. */
int undefined_fail(struct budget *budget, struct value value);

#endif
