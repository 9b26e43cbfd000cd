/*
 * Frames, scopes, and calls of macros, functions and methods.
 */
#include <assert.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/access.h"
#include "daemon/text/template/run.h"

/* ---- variables ---- */

static struct value *find_binding(struct scope *scope, const struct text *name)
{
        for (uint32_t i = 0; i < scope->count; i++)
                if (text_same(scope->bindings[i].name, name))
                        return &scope->bindings[i].value;
        return NULL;
}

struct value *run_variable(struct run *run, const struct text *name, int *ret_r)
{
        for (struct scope *scope = run->scope; scope; scope = scope->parent) {
                struct value *found = find_binding(scope, name);

                if ((*ret_r = budget_charge(&run->budget, scope->count / 16)))
                        return NULL;
                if (found)
                        return found;
        }
        *ret_r = 0;
        return NULL;
}

int run_assign(struct run *run, struct scope *scope, const struct text *name, struct value value)
{
        struct value *found = find_binding(scope, name);
        int r = budget_charge(&run->budget, scope->count / 16);

        if (!r && found)
                *found = value;
        if (r || found)
                return error_pass(r);
        r = budget_grow(&run->budget, &scope->bindings, scope->count, &scope->capacity,
                        sizeof(*scope->bindings));
        if (!r)
                scope->bindings[scope->count++] = (struct binding){ name, value };
        return error_pass(r);
}

/* ---- frames ---- */

int run_new_scope(struct run *run, struct scope *parent, struct scope **ret_scope)
{
        struct scope *scope = run->spare;
        int r = 0;

        if (scope) {
                run->spare = scope->parent;
                scope->count = 0;
                scope->captured = false;
        } else {
                scope = budget_take(&run->budget, sizeof(*scope), &r);
                if (!scope)
                        return error_pass(r);
                *scope = (struct scope){ .count = 0 };
        }
        scope->parent = parent;
        *ret_scope = scope;
        return 0;
}

int run_enter(struct run *run, enum frame_kind kind, struct frame **ret_frame)
{
        int r = budget_grow(&run->budget, &run->frames, run->frame_count, &run->frame_capacity,
                            sizeof(*run->frames));

        if (r)
                return error_pass(r);
        *ret_frame = &run->frames[run->frame_count++];
        **ret_frame = (struct frame){ .kind = kind,
                                      .stack_count = run->stack_count,
                                      .scope = run->scope,
                                      .output = run->output };
        return 0;
}

/* A scope to which no macro refers is reused. */
void run_leave(struct run *run)
{
        const struct frame *frame;

        assert(run->frame_count);
        frame = &run->frames[--run->frame_count];
        if (run->scope != frame->scope && !run->scope->captured) {
                run->scope->parent = run->spare;
                run->spare = run->scope;
        }
        run->scope = frame->scope;
        run->output = frame->output;
        run->stack_count = frame->stack_count;
}

/* ---- macros ---- */

static const struct text more_word = TEXT_WORD(more_word, "varargs");
static const struct text names_word = TEXT_WORD(names_word, "kwargs");

static int bind_named(struct run *run, const struct macro_code *code, struct value name,
                      struct value value, struct value *names)
{
        for (uint32_t i = 0; i < code->parameter_count; i++) {
                if (!text_same(code->parameters[i].name, name.text))
                        continue;
                if (find_binding(run->scope, name.text))
                        return error_raise(budget_fail(&run->budget, "argument '%s' is given twice",
                                                       text_shown(name.text).text));
                return error_pass(run_assign(run, run->scope, code->parameters[i].name, value));
        }
        if (text_is(name.text, "caller") && code->takes_caller)
                return error_pass(run_assign(run, run->scope, name.text, value));
        if (!code->takes_names)
                return error_raise(budget_fail(&run->budget, "macro '%s' takes no argument '%s'",
                                               text_shown(code->name).text,
                                               text_shown(name.text).text));
        return error_pass(budget_map_add(&run->budget, names, name, value));
}

static int bind_rest(struct run *run, const struct macro_code *code,
                     const struct arguments *arguments, uint32_t positional)
{
        uint32_t taken = code->parameter_count < positional ? code->parameter_count : positional;
        struct value more;
        int r = budget_list(&run->budget, positional - taken, LIST_TUPLE, &more);

        for (uint32_t i = taken; !r && i < positional; i++)
                r = budget_list_add(&run->budget, &more, arguments->values[i]);
        return error_pass(r ? r : run_assign(run, run->scope, &more_word, more));
}

static int bind_all(struct run *run, const struct macro_code *code,
                    const struct arguments *arguments)
{
        uint32_t named = named_count(arguments), positional = arguments->count - named;
        struct value names, word;
        int r = budget_map(&run->budget, named, &names);

        if (!r && positional > code->parameter_count && !code->takes_more)
                return error_raise(budget_fail(
                        &run->budget, "macro '%s' takes %u arguments, not %u",
                        text_shown(code->name).text, code->parameter_count, positional));
        for (uint32_t i = 0; !r && i < code->parameter_count && i < positional; i++)
                r = run_assign(run, run->scope, code->parameters[i].name, arguments->values[i]);
        for (uint32_t i = 0; !r && i < named; i++)
                r = bind_named(run, code, arguments->names->items[i],
                               arguments->values[positional + i], &names);
        for (uint32_t i = 0; !r && i < code->parameter_count; i++) {
                const struct parameter *p = &code->parameters[i];

                if (p->has_default || find_binding(run->scope, p->name))
                        continue;
                r = undefined_make(&run->budget, p->name, NULL, &word);
                if (!r)
                        r = run_assign(run, run->scope, p->name, word);
        }
        if (!r && code->takes_more)
                r = bind_rest(run, code, arguments, positional);
        if (r || !code->takes_names)
                return error_pass(r);
        r = budget_map_end(&run->budget, &names);
        return error_pass(r ? r : run_assign(run, run->scope, &names_word, names));
}

/* Callee and arguments stay on the stack until the macro returns; its frame removes them. */
static int call_macro(struct run *run, const struct macro *macro, uint32_t stacked,
                      const struct arguments *arguments)
{
        struct frame *frame;
        int r;

        if (run->budget.calls == TEMPLATE_DEPTH_MAX)
                return error_raise(budget_fail(
                        &run->budget, "macros call each other deeper than %u", TEMPLATE_DEPTH_MAX));
        if ((r = run_enter(run, FRAME_CALL, &frame)))
                return error_pass(r);
        frame->stack_count = run->stack_count - stacked;
        frame->return_to = run->pc;
        frame->kept = (struct value){ .kind = VALUE_MACRO, .macro = macro };
        run->budget.calls++;
        if ((r = run_new_scope(run, macro->scope, &run->scope)))
                return error_pass(r);
        run->output = budget_take(&run->budget, sizeof(*run->output), &r);
        if (!run->output)
                return error_pass(r);
        *run->output = (struct builder){ .bytes = NULL };
        r = bind_all(run, macro->code, arguments);
        run->pc = macro->entry;
        return error_pass(r);
}

/* ---- calls ---- */

/* Replaces `*list` and `**map` in a call by the arguments that they contain. */
static int spread(struct run *run, const struct instruction *i, const struct value *from,
                  struct arguments *arguments)
{
        uint32_t named = named_count(arguments), count = 0, n = 0, fixed;
        const struct value *items = NULL;
        const struct map *map = NULL;
        struct value *values, names;
        int r = 0;

        fixed = i->count - named - !!(i->flag & SPREAD_LIST) - !!(i->flag & SPREAD_MAP);
        if (i->flag & SPREAD_LIST)
                r = value_items(&run->budget, from[fixed], &items, &count);
        if (!r && (i->flag & SPREAD_MAP)) {
                if (from[i->count - 1].kind != VALUE_MAP)
                        return error_raise(budget_fail(&run->budget,
                                                       "'**' before a %s, which is not a dict",
                                                       value_type(from[i->count - 1])));
                map = from[i->count - 1].map;
        }
        arguments->count = fixed + count + named + (map ? map->count : 0);
        if (!r)
                r = budget_charge(&run->budget, arguments->count);
        if (!r)
                r = budget_list(&run->budget, named + (map ? map->count : 0), LIST_LIST, &names);
        if (r ||
            !(values = budget_take(&run->budget, (size_t)arguments->count * sizeof(*values), &r)))
                return error_pass(r);
        for (uint32_t k = 0; k < fixed; k++)
                values[n++] = from[k];
        for (uint32_t k = 0; k < count; k++)
                values[n++] = items[k];
        for (uint32_t k = 0; !r && k < named; k++) {
                values[n++] = from[fixed + !!(i->flag & SPREAD_LIST) + k];
                r = budget_list_add(&run->budget, &names, arguments->names->items[k]);
        }
        for (uint32_t k = 0; !r && map && k < map->count; k++) {
                values[n++] = map->entries[k].value;
                r = map->entries[k].key.kind == VALUE_STRING
                            ? budget_list_add(&run->budget, &names, map->entries[k].key)
                            : budget_fail(&run->budget, "an argument's name is not a string");
        }
        arguments->values = values;
        arguments->names = names.list->count ? names.list : NULL;
        return error_pass(r);
}

int run_arguments(struct run *run, const struct instruction *i, struct arguments *ret_arguments)
{
        const struct value *from = run->stack + run->stack_count - i->count;

        assert(run->stack_count > i->count);
        *ret_arguments = (struct arguments){
                .values = from,
                .count = i->count,
                .names = i->more == NO_NAMES ? NULL : run->template->constants[i->more].list,
        };
        return error_pass(i->flag ? spread(run, i, from, ret_arguments) : 0);
}

int run_call(struct run *run, const struct instruction *i)
{
        struct arguments arguments;
        struct value callee, result;
        int r = run_arguments(run, i, &arguments);

        if (r)
                return error_pass(r);
        callee = run->stack[run->stack_count - i->count - 1];
        switch (callee.kind) {
        case VALUE_MACRO:
                return error_pass(call_macro(run, callee.macro, i->count + 1u, &arguments));
        case VALUE_FUNCTION:
                r = builtin_call(&run->budget, &functions, callee.function, callee, &arguments,
                                 &result);
                break;
        case VALUE_METHOD:
                r = builtin_call(&run->budget, callee.method->builtins, callee.method->row,
                                 callee.method->self, &arguments, &result);
                break;
        case VALUE_UNDEFINED:
                return error_pass(undefined_fail(&run->budget, callee));
        default:
                return error_raise(
                        budget_fail(&run->budget, "a %s cannot be called", value_type(callee)));
        }
        run->stack_count -= i->count + 1u;
        return error_pass(r ? r : run_push(run, result));
}
