/*
 * Operands: names, literals and brackets, and the parts that follow them: attributes, subscripts,
 * calls, filters, tests.
 */
#include "daemon/text/template/parser.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/template/builtins.h"

#define NAMED_MAX 32u

/* ---- arguments ---- */

struct named {
        struct value names[NAMED_MAX];
        uint32_t count;
};

static int parse_name_of_argument(struct parser *p, struct named *named)
{
        struct value name;
        int r = parser_text(p, &p->now, &name);

        for (uint32_t i = 0; !r && i < named->count; i++)
                if (!value_key_order(named->names[i], name))
                        r = error_raise(parser_refuse(p, "argument %s is given twice",
                                                      parser_found(p).text));
        if (!r && named->count == NAMED_MAX)
                r = error_raise(parser_refuse(p, "more than %u arguments have names", NAMED_MAX));
        if (!r)
                named->names[named->count++] = name;
        if (!r)
                r = parser_advance(p);
        return error_pass(r ? r : parser_advance(p));
}

/* `*list` must come before the arguments with names, `**map` at the end. */
static int parse_spread(struct parser *p, const struct named *named, uint8_t *flags)
{
        uint8_t spread = p->now.kind == TOKEN_MULTIPLY ? SPREAD_LIST : SPREAD_MAP;
        int r;

        if (*flags >= spread || (spread == SPREAD_LIST && named->count))
                return error_raise(parser_refuse(p, "%s before this argument is not supported",
                                                 parser_found(p).text));
        *flags |= spread;
        r = parser_advance(p);
        return error_pass(r ? r : parse_expression(p));
}

static int parse_argument(struct parser *p, struct named *named, uint8_t *flags)
{
        int r = 0;

        if (p->now.kind == TOKEN_MULTIPLY || p->now.kind == TOKEN_POWER)
                return error_pass(parse_spread(p, named, flags));
        if (*flags & SPREAD_MAP)
                return error_raise(parser_refuse(p, "an argument follows '**'"));
        if (p->now.kind == TOKEN_NAME && p->next.kind == TOKEN_ASSIGN)
                r = parse_name_of_argument(p, named);
        else if (named->count || *flags)
                return error_raise(
                        parser_refuse(p, "an argument without a name follows a named argument"));
        return error_pass(r ? r : parse_expression(p));
}

/*
 * From `(` to `)`.  Emits code that leaves the values on the stack in order, and writes their
 * number, names and flags into the instruction.
 */
static int parse_arguments(struct parser *p, struct instruction *instruction)
{
        struct named named = { .count = 0 };
        struct value list;
        int r = parser_expect(p, TOKEN_LPAREN);

        instruction->more = NO_NAMES;
        while (!r && p->now.kind != TOKEN_RPAREN) {
                if (instruction->count && (r = parser_expect(p, TOKEN_COMMA)))
                        break;
                if (p->now.kind == TOKEN_RPAREN)
                        break;
                if (instruction->count == ARGUMENTS)
                        return error_raise(
                                parser_refuse(p, "a call has more than %u arguments", ARGUMENTS));
                r = parse_argument(p, &named, &instruction->flag);
                instruction->count++;
        }
        if (!r)
                r = parser_expect(p, TOKEN_RPAREN);
        if (r || !named.count)
                return error_pass(r);
        r = value_list(p->template->arena, named.count, &list);
        for (uint32_t i = 0; !r && i < named.count; i++)
                r = value_list_add(&list, named.names[i]);
        return error_pass(r ? r : parser_constant(p, list, &instruction->more));
}

/* ---- filters and tests ---- */

static int parse_row(struct parser *p, const struct builtins *builtins,
                     struct instruction *instruction)
{
        uint32_t row;

        if (p->now.kind != TOKEN_NAME)
                return error_pass(parser_expect(p, TOKEN_NAME));
        row = builtin_find(builtins, p->now.bytes, p->now.count);
        if (row == NO_BUILTIN || !builtins->rows[row].work)
                return error_raise(parser_refuse(p, "%s %s is not supported", builtins->what,
                                                 parser_found(p).text));
        instruction->arg = (int32_t)row;
        return error_pass(parser_advance(p));
}

/* Begins at the name of the first filter. */
int parse_filters(struct parser *p)
{
        int r;

        do {
                struct instruction i = { .op = OP_FILTER, .more = NO_NAMES };

                r = parse_row(p, &filters, &i);
                if (!r && p->now.kind == TOKEN_LPAREN)
                        r = parse_arguments(p, &i);
                if (!r)
                        r = parser_emit(p, i);
        } while (!r && (r = parser_take(p, TOKEN_PIPE)) == 1);
        return error_pass(r);
}

static bool begins_operand(const struct parser *p)
{
        switch (p->now.kind) {
        case TOKEN_NAME:
                return !parser_is_name(p, "else") && !parser_is_name(p, "or") &&
                       !parser_is_name(p, "and");
        case TOKEN_STRING:
        case TOKEN_INTEGER:
        case TOKEN_FLOAT:
        case TOKEN_LPAREN:
        case TOKEN_LBRACKET:
        case TOKEN_LBRACE:
                return true;
        default:
                return false;
        }
}

static int parse_primary(struct parser *p);
static int parse_postfix(struct parser *p);

/* Begins after `is`. */
static int parse_test(struct parser *p)
{
        struct instruction i = { .op = OP_TEST, .more = NO_NAMES };
        int negated = parser_take_name(p, "not"), r;

        if (negated < 0)
                return error_pass(negated);
        r = parse_row(p, &tests, &i);
        if (!r && p->now.kind == TOKEN_LPAREN) {
                r = parse_arguments(p, &i);
        } else if (!r && begins_operand(p)) {
                if (parser_is_name(p, "is"))
                        return error_raise(parser_refuse(p, "a test follows a test"));
                i.count = 1;
                r = parse_primary(p);
                if (!r)
                        r = parse_postfix(p);
        }
        if (!r)
                r = parser_emit(p, i);
        return error_pass(r || !negated ? r : parser_op(p, OP_NOT));
}

/* ---- attributes, subscripts and calls ---- */

static int parse_call(struct parser *p)
{
        struct instruction i = { .op = OP_CALL };
        int r = parse_arguments(p, &i);

        p->last_call = parser_here(p);
        return error_pass(r ? r : parser_emit(p, i));
}

static int parse_attribute(struct parser *p)
{
        uint32_t number;
        bool item = p->now.kind == TOKEN_INTEGER;
        int r;

        if (p->now.kind != TOKEN_NAME && !item)
                return error_pass(parser_expect(p, TOKEN_NAME));
        if (item) {
                r = parser_constant(p, value_integer(p->now.integer), &number);
                if (!r)
                        r = parser_op_arg(p, OP_CONST, number);
                if (!r)
                        r = parser_op(p, OP_ITEM);
        } else {
                r = parser_text_constant(p, &p->now, &number);
                if (!r)
                        r = parser_op_arg(p, OP_ATTRIBUTE, number);
        }
        return error_pass(r ? r : parser_advance(p));
}

static int emit_none(struct parser *p)
{
        uint32_t number;
        int r = parser_constant(p, value_none(), &number);

        return error_pass(r ? r : parser_op_arg(p, OP_CONST, number));
}

/* One of the three parts of a slice; none if it is left out. */
static int parse_slice_part(struct parser *p)
{
        if (p->now.kind == TOKEN_COLON || p->now.kind == TOKEN_RBRACKET ||
            p->now.kind == TOKEN_COMMA)
                return error_pass(emit_none(p));
        return error_pass(parse_expression(p));
}

/* Begins after `[`. */
static int parse_subscript(struct parser *p)
{
        enum op op = OP_ITEM;
        int r = parse_slice_part(p), colon;

        for (unsigned part = 1; !r && part < 3; part++) {
                colon = parser_take(p, TOKEN_COLON);
                if (colon < 0)
                        return error_pass(colon);
                if (!colon && op == OP_ITEM)
                        break;
                op = OP_SLICE;
                r = colon ? parse_slice_part(p) : emit_none(p);
        }
        if (!r && p->now.kind == TOKEN_COMMA)
                return error_raise(
                        parser_refuse(p, "a subscript with several values is not supported"));
        if (!r)
                r = parser_expect(p, TOKEN_RBRACKET);
        return error_pass(r ? r : parser_op(p, op));
}

static int parse_postfix(struct parser *p)
{
        int r = 0, taken;

        while (!r) {
                if (p->now.kind == TOKEN_LPAREN) {
                        r = parse_call(p);
                        continue;
                }
                if ((taken = parser_take(p, TOKEN_DOT)) == 1) {
                        r = parse_attribute(p);
                        continue;
                }
                if (!taken && (taken = parser_take(p, TOKEN_LBRACKET)) == 1) {
                        if (p->now.kind == TOKEN_RBRACKET)
                                return error_raise(parser_refuse(p, "a subscript is empty"));
                        r = parse_subscript(p);
                        continue;
                }
                return error_pass(taken);
        }
        return error_pass(r);
}

static int parse_filter_or_test(struct parser *p)
{
        int r = 0, taken;

        while (!r) {
                if (p->now.kind == TOKEN_LPAREN) {
                        r = parse_call(p);
                        continue;
                }
                if ((taken = parser_take(p, TOKEN_PIPE)) == 1) {
                        r = parse_filters(p);
                        continue;
                }
                if (!taken && (taken = parser_take_name(p, "is")) == 1) {
                        r = parse_test(p);
                        continue;
                }
                return error_pass(taken);
        }
        return error_pass(r);
}

/* ---- operands ---- */

/* Adjacent strings are joined. */
static int parse_string(struct parser *p)
{
        struct token all = p->now;
        uint32_t number;
        char *joined;
        int r = parser_advance(p);

        while (!r && p->now.kind == TOKEN_STRING) {
                joined = arena_take(p->template->arena, (size_t)all.count + p->now.count + 1);
                if (!joined)
                        return error_raise(errtext_set(p->why, p->why_bytes, -ENOMEM,
                                                       "out of memory for a string"));
                memcpy(joined, all.bytes, all.count);
                memcpy(joined + all.count, p->now.bytes, p->now.count);
                all.bytes = joined;
                all.count += p->now.count;
                r = parser_advance(p);
        }
        if (!r)
                r = parser_text_constant(p, &all, &number);
        return error_pass(r ? r : parser_op_arg(p, OP_CONST, number));
}

static void note_special(struct parser *p)
{
        if (!p->macro)
                return;
        p->macro->takes_more |= parser_is_name(p, "varargs");
        p->macro->takes_names |= parser_is_name(p, "kwargs");
        p->macro->takes_caller |= parser_is_name(p, "caller");
}

static int parse_name(struct parser *p)
{
        static const struct {
                const char *name;
                struct value value;
        } known[] = {
                { "true", { .kind = VALUE_BOOL, .truth = true } },
                { "True", { .kind = VALUE_BOOL, .truth = true } },
                { "false", { .kind = VALUE_BOOL } },
                { "False", { .kind = VALUE_BOOL } },
                { "none", { .kind = VALUE_NONE } },
                { "None", { .kind = VALUE_NONE } },
        };
        enum op op = OP_LOAD;
        uint32_t number;
        int r = 0;

        for (size_t i = 0; !r && i < sizeof(known) / sizeof(*known); i++)
                if (parser_is_name(p, known[i].name)) {
                        r = parser_constant(p, known[i].value, &number);
                        op = OP_CONST;
                }
        if (!r && op == OP_LOAD) {
                note_special(p);
                r = parser_text_constant(p, &p->now, &number);
        }
        if (!r)
                r = parser_op_arg(p, op, number);
        return error_pass(r ? r : parser_advance(p));
}

static int parse_number(struct parser *p)
{
        struct value value = p->now.kind == TOKEN_INTEGER ? value_integer(p->now.integer)
                                                          : value_float(p->now.real);
        uint32_t number;
        int r = parser_constant(p, value, &number);

        if (!r)
                r = parser_op_arg(p, OP_CONST, number);
        return error_pass(r ? r : parser_advance(p));
}

/* The elements of a list or the pairs of a dictionary, from the opening bracket on. */
static int parse_elements(struct parser *p, enum token_kind end, enum op op)
{
        uint32_t count = 0;
        int r = parser_advance(p);

        while (!r && p->now.kind != end) {
                if (count && ((r = parser_expect(p, TOKEN_COMMA)) || p->now.kind == end))
                        break;
                r = parse_expression(p);
                if (!r && op == OP_DICT)
                        r = parser_expect(p, TOKEN_COLON);
                if (!r && op == OP_DICT)
                        r = parse_expression(p);
                count++;
        }
        if (!r)
                r = parser_expect(p, end);
        return error_pass(r ? r : parser_op_arg(p, op, count));
}

static int parse_brackets(struct parser *p)
{
        int r = parser_advance(p);

        if (!r && p->now.kind == TOKEN_RPAREN)
                r = parser_op_arg(p, OP_TUPLE, 0);
        else if (!r)
                r = parse_tuple(p, true);
        return error_pass(r ? r : parser_expect(p, TOKEN_RPAREN));
}

static int parse_primary(struct parser *p)
{
        int r;

        switch (p->now.kind) {
        case TOKEN_NAME:
                r = parse_name(p);
                break;
        case TOKEN_STRING:
                r = parse_string(p);
                break;
        case TOKEN_INTEGER:
        case TOKEN_FLOAT:
                r = parse_number(p);
                break;
        case TOKEN_LPAREN:
                r = parse_brackets(p);
                break;
        case TOKEN_LBRACKET:
                r = parse_elements(p, TOKEN_RBRACKET, OP_LIST);
                break;
        case TOKEN_LBRACE:
                r = parse_elements(p, TOKEN_RBRACE, OP_DICT);
                break;
        default:
                return error_raise(
                        parser_refuse(p, "expected an expression, found %s", parser_found(p).text));
        }
        p->last_call = NO_CALL;
        return error_pass(r);
}

int parse_operand(struct parser *p, bool filtered)
{
        enum token_kind sign = p->now.kind;
        int r;

        if (sign == TOKEN_MINUS || sign == TOKEN_PLUS) {
                if ((r = parser_enter(p)) || (r = parser_advance(p)))
                        return error_pass(r);
                r = parse_operand(p, false);
                if (!r)
                        r = parser_op(p, sign == TOKEN_MINUS ? OP_NEGATE : OP_PLUS);
                p->last_call = NO_CALL;
                p->depth--;
        } else {
                r = parse_primary(p);
        }
        if (!r)
                r = parse_postfix(p);
        return error_pass(r || !filtered ? r : parse_filter_or_test(p));
}

/* `{% call` must be followed by one call and nothing else. */
int parse_only_call(struct parser *p, struct instruction *ret_call)
{
        int r = parse_operand(p, false);

        if (r)
                return error_pass(r);
        if (p->last_call == NO_CALL || p->last_call + 1 != parser_here(p))
                return error_raise(parser_refuse(p, "'call' needs a call after it"));
        *ret_call = p->template->code[p->last_call];
        p->template->code_count--;
        return 0;
}
