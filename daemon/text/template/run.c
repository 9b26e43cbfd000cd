/*
 * The machine: executes one instruction after the other.
 */
#include "daemon/text/template/run.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/access.h"
#include "daemon/text/template/compare.h"
#include "daemon/text/template/operate.h"
#include "daemon/text/template/print.h"

#define STEPS_A_LOOK 1024u /* instructions between two calls of `cancelled` */

/* ---- the stack ---- */

int run_push(struct run *run, struct value value)
{
        int r = budget_grow(&run->budget, &run->stack, run->stack_count, &run->stack_capacity,
                            sizeof(value));

        if (r)
                return error_pass(r);
        run->stack[run->stack_count++] = value;
        return 0;
}

static struct value pop(struct run *run)
{
        assert(run->stack_count);
        return run->stack[--run->stack_count];
}

static struct value *top(struct run *run)
{
        assert(run->stack_count);
        return &run->stack[run->stack_count - 1];
}

static struct value *last(struct run *run, uint32_t count)
{
        assert(run->stack_count >= count);
        return count ? run->stack + run->stack_count - count : NULL;
}

/* Replaces the last `count` values by this one. */
static int leave(struct run *run, uint32_t count, struct value value)
{
        assert(run->stack_count >= count);
        run->stack_count -= count;
        return error_pass(run_push(run, value));
}

static const struct text *name_of(struct run *run, uint32_t constant)
{
        assert(run->template->constants[constant].kind == VALUE_STRING);
        return run->template->constants[constant].text;
}

/* The next instruction is the one behind `pc`. */
static void go_to(struct run *run, uint32_t pc)
{
        run->pc = pc;
        run->budget.line = run->template->code[pc].line;
}

static void jump(struct run *run, const struct instruction *i)
{
        go_to(run, run->pc + (uint32_t)i->arg - 1);
}

/* ---- instructions ---- */

static int do_data(struct run *run, const struct instruction *i)
{
        return error_pass(text_add_all(&run->budget, run->output, name_of(run, (uint32_t)i->arg)));
}

static int do_print(struct run *run, const struct instruction *i)
{
        if (i->flag && top(run)->kind != VALUE_STRING)
                return error_raise(budget_fail(&run->budget, "a filter block gives a %s, not a str",
                                               value_type(*top(run))));
        return error_pass(print_value(&run->budget, run->output, pop(run)));
}

static int do_const(struct run *run, const struct instruction *i)
{
        return error_pass(run_push(run, run->template->constants[i->arg]));
}

static int do_load(struct run *run, const struct instruction *i)
{
        const struct text *name = name_of(run, (uint32_t)i->arg);
        const struct map_entry *entry;
        struct value value;
        int r;
        struct value *found = run_variable(run, name, &r);

        if (r || found)
                return error_pass(r ? r : run_push(run, *found));
        value = (struct value){ .kind = VALUE_STRING, .text = name };
        r = budget_map_find(&run->budget, run->globals.map, value, &entry);
        if (r || entry)
                return error_pass(r ? r : run_push(run, entry->value));
        value = (struct value){ .kind = VALUE_FUNCTION };
        value.function = builtin_find(&functions, name->bytes, name->count);
        if (value.function == NO_BUILTIN)
                r = undefined_make(&run->budget, name, NULL, &value);
        return error_pass(r ? r : run_push(run, value));
}

static int do_store(struct run *run, const struct instruction *i)
{
        return error_pass(run_assign(run, run->scope, name_of(run, (uint32_t)i->arg), pop(run)));
}

static int do_store_in(struct run *run, const struct instruction *i)
{
        const struct text *name = name_of(run, (uint32_t)i->arg);
        int r;
        struct value *found = run_variable(run, name, &r);

        if (r)
                return error_pass(r);
        if (!found || found->kind != VALUE_NAMESPACE)
                return error_raise(budget_fail(
                        &run->budget, "'%s' is not a namespace, so it cannot be assigned to",
                        text_shown(name).text));
        return error_pass(
                namespace_set(&run->budget, found->names, name_of(run, i->more), pop(run)));
}

static int do_unpack(struct run *run, const struct instruction *i)
{
        const struct value *items;
        uint32_t count;
        int r = value_items(&run->budget, pop(run), &items, &count);

        if (!r && count != (uint32_t)i->arg)
                return error_raise(budget_fail(&run->budget, "%u values are assigned to %d names",
                                               count, i->arg));
        while (!r && count--)
                r = run_push(run, items[count]);
        return error_pass(r);
}

static int do_tuck(struct run *run, const struct instruction *i)
{
        struct value b = pop(run), a = pop(run);
        int r = run_push(run, b);

        (void)i;
        if (!r)
                r = run_push(run, a);
        return error_pass(r ? r : run_push(run, b));
}

static int do_nip(struct run *run, const struct instruction *i)
{
        struct value b = pop(run);

        (void)i;
        *top(run) = b;
        return 0;
}

static int do_list(struct run *run, const struct instruction *i)
{
        uint32_t count = (uint32_t)i->arg;
        const struct value *items = last(run, count);
        struct value list;
        int r = budget_list(&run->budget, count, i->op == OP_TUPLE ? LIST_TUPLE : LIST_LIST, &list);

        for (uint32_t n = 0; !r && n < count; n++)
                r = budget_list_add(&run->budget, &list, items[n]);
        return error_pass(r ? r : leave(run, count, list));
}

static int do_dict(struct run *run, const struct instruction *i)
{
        uint32_t count = (uint32_t)i->arg;
        const struct value *items = last(run, 2 * count);
        struct value map;
        int r = budget_map(&run->budget, count, &map);

        for (uint32_t n = 0; !r && n < count; n++)
                r = budget_map_add(&run->budget, &map, items[2 * n], items[2 * n + 1]);
        if (!r)
                r = budget_map_end(&run->budget, &map);
        return error_pass(r ? r : leave(run, 2 * count, map));
}

static int do_attribute(struct run *run, const struct instruction *i)
{
        return error_pass(
                value_attribute(&run->budget, *top(run), name_of(run, (uint32_t)i->arg), top(run)));
}

static int do_item(struct run *run, const struct instruction *i)
{
        struct value key = pop(run);

        (void)i;
        return error_pass(value_item(&run->budget, *top(run), key, top(run)));
}

static int do_slice(struct run *run, const struct instruction *i)
{
        struct value cut, *parts = last(run, 4);
        int r = value_slice(&run->budget, parts[0], parts + 1, &cut);

        (void)i;
        return error_pass(r ? r : leave(run, 4, cut));
}

static int do_sign(struct run *run, const struct instruction *i)
{
        return error_pass(value_sign(&run->budget, *top(run), i->op == OP_NEGATE, top(run)));
}

static int do_not(struct run *run, const struct instruction *i)
{
        (void)i;
        *top(run) = value_bool(!value_truth(*top(run)));
        return 0;
}

static int do_binary(struct run *run, const struct instruction *i)
{
        struct value b = pop(run);

        return error_pass(value_binary(&run->budget, (enum binary)i->flag, *top(run), b, top(run)));
}

static int do_concat(struct run *run, const struct instruction *i)
{
        uint32_t count = (uint32_t)i->arg;
        struct builder to = { .bytes = NULL };
        struct value all;
        int r = 0;

        for (uint32_t n = 0; !r && n < count; n++)
                r = print_value(&run->budget, &to, last(run, count)[n]);
        if (!r)
                r = text_end(&run->budget, &to, &all);
        return error_pass(r ? r : leave(run, count, all));
}

static int do_compare(struct run *run, const struct instruction *i)
{
        struct value b = pop(run);
        bool truth;
        int r = value_compare(&run->budget, (enum compare)i->flag, *top(run), b, &truth);

        if (!r)
                *top(run) = value_bool(truth);
        return error_pass(r);
}

static int do_jump(struct run *run, const struct instruction *i)
{
        jump(run, i);
        return 0;
}

static int do_jump_false(struct run *run, const struct instruction *i)
{
        if (!value_truth(pop(run)))
                jump(run, i);
        return 0;
}

static int do_jump_keep(struct run *run, const struct instruction *i)
{
        if (value_truth(*top(run)) == (i->op == OP_JUMP_TRUE_KEEP))
                jump(run, i);
        else
                pop(run);
        return 0;
}

static int do_row(struct run *run, const struct instruction *i)
{
        const struct builtins *builtins = i->op == OP_FILTER ? &filters : &tests;
        struct arguments arguments;
        struct value result;
        int r = run_arguments(run, i, &arguments);

        if (!r)
                r = builtin_call(&run->budget, builtins, (uint32_t)i->arg,
                                 *last(run, i->count + 1u), &arguments, &result);
        return error_pass(r ? r : leave(run, i->count + 1u, result));
}

/* ---- scopes and loops ---- */

static int do_begin(struct run *run, const struct instruction *i)
{
        struct frame *frame;
        int r = run_enter(run, i->op == OP_SCOPE_BEGIN ? FRAME_SCOPE : FRAME_CAPTURE, &frame);

        if (!r)
                r = run_new_scope(run, run->scope, &run->scope);
        if (r || i->op == OP_SCOPE_BEGIN)
                return error_pass(r);
        run->output = budget_take(&run->budget, sizeof(*run->output), &r);
        if (!run->output)
                return error_pass(r);
        *run->output = (struct builder){ .bytes = NULL };
        return 0;
}

static int do_end(struct run *run, const struct instruction *i)
{
        struct builder *output = run->output;
        struct value text;
        int r;

        run_leave(run);
        if (i->op == OP_SCOPE_END)
                return 0;
        r = text_end(&run->budget, output, &text);
        return error_pass(r ? r : run_push(run, text));
}

static int begin_loop(struct run *run, enum frame_kind kind, struct value over)
{
        struct frame *frame;
        struct loop *loop;
        int r;

        loop = budget_take(&run->budget, sizeof(*loop), &r);
        if (!loop)
                return error_pass(r);
        *loop = (struct loop){ .changed = { .kind = MISSING } };
        if ((r = value_items(&run->budget, over, &loop->items, &loop->count)) ||
            (r = run_enter(run, kind, &frame)))
                return error_pass(r);
        frame->loop = loop;
        if (kind == FRAME_KEEP &&
            (r = budget_list(&run->budget, loop->count, LIST_STREAM, &frame->kept)))
                return error_pass(r);
        return error_pass(run_new_scope(run, run->scope, &run->scope));
}

static const struct text loop_word = TEXT_WORD(loop_word, "loop");

/* Each turn of a loop begins without the variables of the turn before. */
static int begin_turn(struct run *run, struct frame *frame)
{
        int r = 0;

        run->scope->count = 0;
        if (frame->kind == FRAME_LOOP)
                r = run_assign(run, run->scope, &loop_word,
                               (struct value){ .kind = VALUE_LOOP, .loop = frame->loop });
        return error_pass(r ? r : run_push(run, frame->loop->items[frame->loop->at]));
}

static struct frame *innermost(struct run *run)
{
        assert(run->frame_count);
        return &run->frames[run->frame_count - 1];
}

static int do_for_begin(struct run *run, const struct instruction *i)
{
        int r = begin_loop(run, FRAME_LOOP, pop(run));

        if (r)
                return error_pass(r);
        if (innermost(run)->loop->count)
                return error_pass(begin_turn(run, innermost(run)));
        run_leave(run);
        jump(run, i);
        return 0;
}

static int do_for_next(struct run *run, const struct instruction *i)
{
        struct frame *frame = innermost(run);

        assert(frame->kind == FRAME_LOOP);
        frame->loop->finished |= !frame->loop->skipped;
        frame->loop->skipped = false;
        if (++frame->loop->at < frame->loop->count) {
                jump(run, i);
                return error_pass(begin_turn(run, frame));
        }
        /* The next instruction jumps over `else`; skip it if `else` is to run. */
        run->pc += i->flag && !frame->loop->finished;
        run_leave(run);
        return 0;
}

static int do_keep_begin(struct run *run, const struct instruction *i)
{
        (void)i;
        return error_pass(begin_loop(run, FRAME_KEEP, pop(run)));
}

static int do_keep_next(struct run *run, const struct instruction *i)
{
        struct frame *frame = innermost(run);
        struct value kept = frame->kept;

        assert(frame->kind == FRAME_KEEP);
        if (frame->loop->at < frame->loop->count)
                return error_pass(begin_turn(run, frame));
        run_leave(run);
        jump(run, i);
        return error_pass(run_push(run, kept));
}

static int do_keep(struct run *run, const struct instruction *i)
{
        struct frame *frame = innermost(run);
        struct value item = frame->loop->items[frame->loop->at++];

        (void)i;
        return error_pass(value_truth(pop(run)) ? budget_list_add(&run->budget, &frame->kept, item)
                                                : 0);
}

/* Ends all frames inside the loop; a break ends the loop's frame, too. */
static int do_break(struct run *run, const struct instruction *i)
{
        struct loop *loop;

        while (innermost(run)->kind != FRAME_LOOP)
                run_leave(run);
        run->stack_count = innermost(run)->stack_count;
        loop = innermost(run)->loop;
        if (i->op == OP_CONTINUE) {
                loop->skipped = true;
                jump(run, i);
                return 0;
        }
        run_leave(run);
        run->pc += (loop->finished ? (uint32_t)i->arg : i->more) - 1;
        return 0;
}

/* ---- macros ---- */

static int do_macro(struct run *run, const struct instruction *i)
{
        struct macro *macro;
        int r;

        macro = budget_take(&run->budget, sizeof(*macro), &r);
        if (!macro)
                return error_pass(r);
        *macro = (struct macro){ run->template->macros[i->more], run->pc, run->scope };
        for (struct scope *s = run->scope; s && !s->captured; s = s->parent)
                s->captured = true;
        jump(run, i);
        return error_pass(run_push(run, (struct value){ .kind = VALUE_MACRO, .macro = macro }));
}

static const struct parameter *parameter_of(struct run *run, const struct instruction *i)
{
        const struct frame *frame = innermost(run);

        assert(frame->kind == FRAME_CALL);
        return &frame->kept.macro->code->parameters[i->arg];
}

static int do_default(struct run *run, const struct instruction *i)
{
        const struct text *name = parameter_of(run, i)->name;

        for (uint32_t n = 0; n < run->scope->count; n++)
                if (run->scope->bindings[n].name == name) {
                        run->pc += i->more - 1;
                        break;
                }
        return 0;
}

static int do_store_parameter(struct run *run, const struct instruction *i)
{
        return error_pass(run_assign(run, run->scope, parameter_of(run, i)->name, pop(run)));
}

static int do_return(struct run *run, const struct instruction *i)
{
        struct builder *output = run->output;
        struct value text;
        int r;

        (void)i;
        assert(innermost(run)->kind == FRAME_CALL);
        go_to(run, innermost(run)->return_to);
        run->budget.calls--;
        run_leave(run);
        r = text_end(&run->budget, output, &text);
        return error_pass(r ? r : run_push(run, text));
}

typedef int instruction_work(struct run *run, const struct instruction *i);

static instruction_work *const works[OP_END] = {
        [OP_DATA] = do_data,
        [OP_PRINT] = do_print,
        [OP_CONST] = do_const,
        [OP_LOAD] = do_load,
        [OP_STORE] = do_store,
        [OP_STORE_IN] = do_store_in,
        [OP_UNPACK] = do_unpack,
        [OP_TUCK] = do_tuck,
        [OP_NIP] = do_nip,
        [OP_LIST] = do_list,
        [OP_TUPLE] = do_list,
        [OP_DICT] = do_dict,
        [OP_ATTRIBUTE] = do_attribute,
        [OP_ITEM] = do_item,
        [OP_SLICE] = do_slice,
        [OP_NEGATE] = do_sign,
        [OP_PLUS] = do_sign,
        [OP_NOT] = do_not,
        [OP_BINARY] = do_binary,
        [OP_CONCAT] = do_concat,
        [OP_COMPARE] = do_compare,
        [OP_JUMP] = do_jump,
        [OP_JUMP_FALSE] = do_jump_false,
        [OP_JUMP_FALSE_KEEP] = do_jump_keep,
        [OP_JUMP_TRUE_KEEP] = do_jump_keep,
        [OP_FILTER] = do_row,
        [OP_TEST] = do_row,
        [OP_CALL] = run_call,
        [OP_SCOPE_BEGIN] = do_begin,
        [OP_SCOPE_END] = do_end,
        [OP_CAPTURE_BEGIN] = do_begin,
        [OP_CAPTURE_END] = do_end,
        [OP_FOR_BEGIN] = do_for_begin,
        [OP_FOR_NEXT] = do_for_next,
        [OP_KEEP_BEGIN] = do_keep_begin,
        [OP_KEEP_NEXT] = do_keep_next,
        [OP_KEEP] = do_keep,
        [OP_BREAK] = do_break,
        [OP_CONTINUE] = do_break,
        [OP_MACRO] = do_macro,
        [OP_DEFAULT] = do_default,
        [OP_STORE_PARAMETER] = do_store_parameter,
        [OP_RETURN] = do_return,
};

int run_code(struct run *run)
{
        const struct template_limits *limits = &run->budget.limits;
        const struct instruction *i;
        uint32_t steps = 0;
        int r = 0;

        while (!r && (i = &run->template->code[run->pc])->op != OP_END) {
                if (++steps % STEPS_A_LOOK == 0 && limits->cancelled &&
                    limits->cancelled(limits->arg))
                        return -ECANCELED;
                run->budget.line = i->line;
                r = budget_charge(&run->budget, 1);
                if (!r)
                        r = works[i->op](run, i);
                run->pc += !r;
        }
        return error_pass(r);
}
