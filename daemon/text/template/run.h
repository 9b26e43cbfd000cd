/*
 * The machine: the state of one rendering.
 *
 * Operations on values do not know it: they get its budget (budget.h).
 */
#ifndef DAEMON_TEXT_TEMPLATE_RUN_H
#define DAEMON_TEXT_TEMPLATE_RUN_H

#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/code.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/text.h"

/* Variables.  A name is looked up here, then in `parent` and above, then among the globals. */
struct scope {
        struct scope *parent;
        struct binding *bindings;
        uint32_t count, capacity;
        bool captured; /* a macro refers to it, so it must not be reused */
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

struct macro {
        const struct macro_code *code;
        uint32_t entry;
        struct scope *scope;
};

struct run {
        struct budget budget;
        const struct template *template;
        struct value globals;
        uint32_t pc;
        struct value *stack;
        uint32_t stack_count, stack_capacity;
        struct frame *frames;
        uint32_t frame_count, frame_capacity;
        struct scope *scope, *spare;
        struct builder main, *output;
};

/* run.c: from the first instruction to the last. */
int run_code(struct run *run);

/* NULL: no scope has a variable of that name. */
struct value *run_variable(struct run *run, const struct text *name, int *ret_r);
int run_assign(struct run *run, struct scope *scope, const struct text *name, struct value value);
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
