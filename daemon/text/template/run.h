/*
 * One rendering: the state of the machine, and the budgets that everything is charged to.
 *
 * A function charges fuel in proportion to the bytes that it will copy or look at, before it does
 * so; a few linear scans charge right after.  Therefore no filter can work for longer than there is
 * fuel, however it is called.  Memory comes from the arena and is not freed before the rendering
 * ends.
 */
#ifndef DAEMON_TEXT_TEMPLATE_RUN_H
#define DAEMON_TEXT_TEMPLATE_RUN_H

#include "daemon/error.h"
#include "daemon/text/template.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/code.h"

struct binding {
        const struct text *name;
        struct value value;
};

/* Variables.  A name is looked up here, then in `parent` and above, then among the globals. */
struct scope {
        struct scope *parent;
        struct binding *bindings;
        uint32_t count, room;
        bool captured; /* a macro refers to it, so it must not be reused */
};

/* Text that grows, with the origin of its parts. */
struct builder {
        char *bytes;
        struct text_run *runs;
        uint32_t count, room, run_count, run_room;
};

enum frame_kind { FRAME_SCOPE, FRAME_CAPTURE, FRAME_LOOP, FRAME_KEEP, FRAME_CALL };

/* The state of the machine to restore when the frame ends, and the data of the frame itself. */
struct frame {
        enum frame_kind kind;
        uint32_t stack_count, return_to;
        struct scope *scope;
        struct builder *output;
        struct loop *loop;
        struct value kept;
};

struct loop {
        const struct value *items;
        uint32_t count, at;
        struct value changed; /* a tuple: the arguments of the last loop.changed() */
        /* skipped: a continue ended this turn; finished: a turn ended without a continue */
        bool skipped, finished;
};

struct macro {
        const struct macro_code *code;
        uint32_t entry;
        struct scope *scope;
};

struct method {
        struct value self;
        const struct builtins *builtins;
        uint32_t row;
};

struct namespace
{
        struct binding *bindings;
        uint32_t count, room;
};

/* Why a value is undefined. */
struct lack {
        const struct text *name;
        const char *owner; /* the type that lacks the attribute; NULL: `name` is a variable */
};

struct run {
        const struct template *template;
        struct arena *arena;
        struct template_limits limits;
        const struct tm *now;
        struct value globals;
        uint64_t fuel; /* left */
        uint32_t pc;
        struct value *stack;
        uint32_t stack_count, stack_room;
        struct frame *frames;
        uint32_t frame_count, frame_room;
        unsigned calls;
        struct scope *scope, *spare;
        struct builder main, *output;
        char *why;
        size_t why_bytes;
};

/* Ends the rendering with a sentence and appends the line to it; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int run_fail(struct run *run, const char *format, ...);
/* After an allocation failed: -EINVAL if the budget is spent, -ENOMEM if malloc() failed. */
int run_no_memory(struct run *run);
int run_no_fuel(struct run *run);

static inline int run_charge(struct run *run, uint64_t steps)
{
        if (run->fuel < steps)
                return error_raise(run_no_fuel(run));
        run->fuel -= steps;
        return 0;
}

static inline int run_charge_bytes(struct run *run, uint64_t bytes)
{
        return run_charge(run, bytes / 64);
}

/* run.c: from the first instruction to the last. */
int run_code(struct run *run);

/* NULL: *ret_r is the error. */
void *run_take(struct run *run, size_t bytes, int *ret_r);
/* Makes room for `count` + 1 things of `size` bytes in *array; 0 or an error. */
int run_grow(struct run *run, void *array, uint32_t count, uint32_t *room, size_t size);

/* As value_list() and so on; an error names the limit: the budget or the depth. */
int run_list(struct run *run, uint32_t room, enum list_flavour flavour, struct value *ret_list);
int run_list_add(struct run *run, struct value *list, struct value item);
int run_map(struct run *run, uint32_t room, struct value *ret_map);
int run_map_add(struct run *run, struct value *map, struct value key, struct value item);
int run_map_end(struct run *run, struct value *map);
/* *ret_entry is NULL if the key is not there. */
int run_map_find(struct run *run, const struct map *map, struct value key,
                 const struct map_entry **ret_entry);

/* NULL: no scope has a variable of that name. */
struct value *run_variable(struct run *run, const struct text *name, int *ret_r);
int run_assign(struct run *run, struct scope *scope, const struct text *name, struct value value);
int run_undefined(struct run *run, const struct text *name, const char *owner,
                  struct value *ret_value);
/* scopes.c: runs OP_CALL, and begins and ends frames. */
int run_call(struct run *run, const struct instruction *instruction);
/* The arguments of a call, a filter or a test, which are the last values on the stack. */
int run_arguments(struct run *run, const struct instruction *instruction,
                  struct arguments *ret_arguments);
int run_enter(struct run *run, enum frame_kind kind, struct frame **ret_frame);
int run_new_scope(struct run *run, struct scope *parent, struct scope **ret_scope);
void run_leave(struct run *run);
int run_push(struct run *run, struct value value);

#endif
