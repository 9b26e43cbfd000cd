/*
 * Macros, and calls with a block; such a block is a macro without a name.
 */
#include "daemon/text/template/parser.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/template/text.h"

static int add_parameter(struct parser *p, struct macro_code *macro)
{
        struct value name;
        int r;

        if (p->now.kind != TOKEN_NAME)
                return error_pass(parser_expect(p, TOKEN_NAME));
        if (macro->parameter_count == PARAMETERS)
                return error_raise(
                        parser_refuse(p, "a macro has more than %u parameters", PARAMETERS));
        r = parser_text(p, &p->now, &name);
        if (r)
                return error_pass(r);
        for (uint32_t i = 0; i < macro->parameter_count; i++)
                if (text_same(macro->parameters[i].name, name.text))
                        return error_raise(parser_refuse(p, "duplicate parameter name"));
        macro->parameters[macro->parameter_count++].name = name.text;
        return error_pass(parser_advance(p));
}

/* `(a, b=1)`.  The code of the defaults becomes the beginning of the macro's code. */
static int parse_signature(struct parser *p, struct macro_code *macro, bool defaults)
{
        uint32_t place, n;
        int r = parser_expect(p, TOKEN_LPAREN), taken;

        while (!r && p->now.kind != TOKEN_RPAREN) {
                n = macro->parameter_count;
                if (n && (r = parser_expect(p, TOKEN_COMMA)))
                        break;
                if ((r = add_parameter(p, macro)) || !(taken = parser_take(p, TOKEN_ASSIGN))) {
                        if (!r && n && macro->parameters[n - 1].has_default)
                                return error_raise(
                                        parser_refuse(p, "a parameter without a default follows a "
                                                         "parameter with a default"));
                        continue;
                }
                if (taken < 0)
                        return error_pass(taken);
                if (!defaults)
                        return error_raise(parser_refuse(
                                p, "a default in a call's signature is not supported"));
                macro->parameters[n].has_default = true;
                place = parser_here(p);
                r = parser_op_arg(p, OP_DEFAULT, n);
                if (!r)
                        r = parse_expression(p);
                if (!r)
                        r = parser_emit(p, (struct instruction){ .op = OP_STORE_PARAMETER,
                                                                 .arg = (int32_t)n });
                if (!r)
                        p->template->code[place].more = parser_here(p) - place;
        }
        return error_pass(r ? r : parser_expect(p, TOKEN_RPAREN));
}

static int add_macro(struct parser *p, const struct text *name, struct macro_code **ret_macro)
{
        struct template *t = p->template;
        struct macro_code *macro = arena_take(t->arena, sizeof(*macro));

        if (!macro)
                return error_raise(
                        errtext_set(p->why, p->why_bytes, -ENOMEM, "out of memory for a macro"));
        *macro = (struct macro_code){ .name = name };
        if (t->macro_count == p->macro_capacity) {
                uint32_t capacity = t->macro_count ? t->macro_count * 2 : 16;
                struct macro_code **macros = arena_take(t->arena, capacity * sizeof(*macros));

                if (!macros)
                        return error_raise(errtext_set(p->why, p->why_bytes, -ENOMEM,
                                                       "out of memory for a macro"));
                if (t->macro_count)
                        memcpy(macros, t->macros, t->macro_count * sizeof(*macros));
                t->macros = macros;
                p->macro_capacity = capacity;
        }
        t->macros[t->macro_count++] = macro;
        *ret_macro = macro;
        return 0;
}

/* p->macro is the macro whose body is parsed; a use of varargs, kwargs or caller is noted there. */
static int parse_macro_body(struct parser *p, struct macro_code *macro, bool signature,
                            const char *end)
{
        struct macro_code *outer = p->macro;
        unsigned loops = p->loops;
        uint32_t place = parser_here(p);
        int r = parser_emit(
                p, (struct instruction){ .op = OP_MACRO, .more = p->template->macro_count - 1 });

        p->macro = macro;
        p->loops = 0;
        if (!r && signature)
                r = parse_signature(p, macro, true);
        if (!r)
                r = parse_body(p);
        p->macro = outer;
        p->loops = loops;
        if (outer) {
                outer->takes_more |= macro->takes_more;
                outer->takes_names |= macro->takes_names;
                outer->takes_caller |= macro->takes_caller;
        }
        if (!r)
                r = parse_end(p, end);
        if (!r)
                r = parser_op(p, OP_RETURN);
        if (!r)
                parser_land(p, place);
        return error_pass(r);
}

int parse_macro(struct parser *p)
{
        struct macro_code *macro;
        struct value name;
        uint32_t number;
        int r;

        if (p->now.kind != TOKEN_NAME)
                return error_pass(parser_expect(p, TOKEN_NAME));
        r = parser_text(p, &p->now, &name);
        if (!r)
                r = parser_constant(p, name, &number);
        if (!r)
                r = parser_advance(p);
        if (!r)
                r = add_macro(p, name.text, &macro);
        if (!r)
                r = parse_macro_body(p, macro, true, "endmacro");
        return error_pass(r ? r : parser_op_arg(p, OP_STORE, number));
}

/* Adds one argument to the call: a macro made of the block. */
static int add_caller(struct parser *p, struct instruction *call, struct value caller)
{
        const struct list *old =
                call->more == NO_NAMES ? NULL : p->template->constants[call->more].list;
        struct value names;
        int r = value_list(p->template->arena, (old ? old->count : 0) + 1, &names);

        for (uint32_t i = 0; !r && old && i < old->count; i++)
                r = value_list_add(&names, old->items[i]);
        if (!r)
                r = value_list_add(&names, caller);
        if (call->count == ARGUMENTS)
                return error_raise(
                        parser_refuse(p, "a call has more than %u arguments", ARGUMENTS));
        if (call->flag & SPREAD_MAP)
                return error_raise(parser_refuse(p, "'**' in a call's block is not supported"));
        call->count++;
        return error_pass(r ? r : parser_constant(p, names, &call->more));
}

int parse_call_block(struct parser *p)
{
        const struct token word = { .kind = TOKEN_NAME, .bytes = "caller", .count = 6 };
        struct instruction call = { .op = OP_CALL };
        struct macro_code *macro;
        struct value name;
        int r = parser_text(p, &word, &name);

        if (!r)
                r = add_macro(p, name.text, &macro);
        if (!r && p->now.kind == TOKEN_LPAREN)
                r = parse_signature(p, macro, false);
        if (!r)
                r = parse_only_call(p, &call);
        if (!r)
                r = add_caller(p, &call, name);
        if (!r)
                r = parse_macro_body(p, macro, false, "endcall");
        if (!r)
                r = parser_emit(p, call);
        return error_pass(r ? r : parser_op(p, OP_PRINT));
}
