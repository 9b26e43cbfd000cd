/*
 * Statements: text, printed expressions, and tags.
 */
#include "daemon/text/template/parser.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"

/* ---- the targets of assignments ---- */

#define TARGETS 32u

struct target {
        enum op op; /* OP_STORE, OP_STORE_IN, OP_UNPACK */
        uint32_t arg, more;
};

/* In the order of execution. */
struct targets {
        struct target items[TARGETS];
        uint32_t count;
};

static int add_target(struct parser *p, struct targets *targets, struct target target)
{
        if (targets->count == TARGETS)
                return error_raise(parser_refuse(
                        p, "more than %u names on the left of an assignment", TARGETS));
        targets->items[targets->count++] = target;
        return 0;
}

static int parse_target_name(struct parser *p, struct targets *targets, bool attributes)
{
        static const char *const constants[] = { "true", "True", "false", "False", "none", "None" };
        struct target target = { .op = OP_STORE };
        int r, dot;

        for (size_t i = 0; i < sizeof(constants) / sizeof(*constants); i++)
                if (parser_is_name(p, constants[i]))
                        return error_raise(
                                parser_refuse(p, "'%s' cannot be assigned to", constants[i]));
        if (p->now.kind != TOKEN_NAME)
                return error_pass(parser_expect(p, TOKEN_NAME));
        r = parser_text_constant(p, &p->now, &target.arg);
        if (!r)
                r = parser_advance(p);
        dot = r || !attributes ? 0 : parser_take(p, TOKEN_DOT);
        if (r || dot < 0)
                return error_pass(r ? r : dot);
        if (dot) {
                if (p->now.kind != TOKEN_NAME)
                        return error_pass(parser_expect(p, TOKEN_NAME));
                target.op = OP_STORE_IN;
                r = parser_text_constant(p, &p->now, &target.more);
                if (!r)
                        r = parser_advance(p);
        }
        return error_pass(r ? r : add_target(p, targets, target));
}

/* Names with commas between them, some of them in brackets. */
static int parse_targets(struct parser *p, struct targets *targets, bool attributes)
{
        uint32_t place = targets->count, count = 0;
        bool commas = false;
        int r = parser_enter(p), taken;

        if (!r)
                r = add_target(p, targets, (struct target){ .op = OP_UNPACK });
        while (!r) {
                if (count && p->now.kind != TOKEN_NAME && p->now.kind != TOKEN_LPAREN)
                        break;
                if (count && parser_is_name(p, "in"))
                        break;
                taken = parser_take(p, TOKEN_LPAREN);
                if (taken == 1) {
                        r = parse_targets(p, targets, attributes);
                        if (!r)
                                r = parser_expect(p, TOKEN_RPAREN);
                } else {
                        r = taken ? taken : parse_target_name(p, targets, attributes);
                }
                count++;
                if (r || !(taken = parser_take(p, TOKEN_COMMA)))
                        break;
                commas = true;
                r = taken < 0 ? taken : 0;
        }
        p->depth--;
        if (r)
                return error_pass(r);
        targets->items[place].arg = count;
        if (!commas) {
                memmove(&targets->items[place], &targets->items[place + 1],
                        (targets->count - place - 1) * sizeof(*targets->items));
                targets->count--;
        }
        return 0;
}

static int emit_targets(struct parser *p, const struct targets *targets)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < targets->count; i++) {
                const struct target *t = &targets->items[i];

                r = parser_emit(p, (struct instruction){ .op = (uint8_t)t->op,
                                                         .arg = (int32_t)t->arg,
                                                         .more = t->more });
        }
        return error_pass(r);
}

/* ---- bodies ---- */

int parse_body(struct parser *p)
{
        int r = parser_take(p, TOKEN_COLON); /* optional: `{% if a: %}` */

        if (r >= 0)
                r = parser_expect(p, TOKEN_BLOCK_END);
        if (!r)
                r = parser_enter(p);
        if (!r)
                r = parse_statements(p);
        p->depth--;
        return error_pass(r);
}

int parse_end(struct parser *p, const char *name)
{
        int r = parser_take_name(p, name);

        if (r < 0)
                return error_pass(r);
        if (!r)
                return error_raise(
                        parser_refuse(p, "expected '%s', found %s", name, parser_found(p).text));
        return 0;
}

static int parse_scope(struct parser *p, enum op begin, enum op end, const char *name)
{
        int r = parser_op(p, begin);

        if (!r)
                r = parse_body(p);
        if (!r)
                r = parser_op(p, end);
        return error_pass(r ? r : parse_end(p, name));
}

/* ---- if ---- */

static int parse_if(struct parser *p)
{
        uint32_t ends = UINT32_MAX, asked;
        int r = 0, more = 1, other = 0;

        while (!r && more == 1) {
                r = parse_tuple(p, false);
                asked = parser_here(p);
                if (!r)
                        r = parser_op(p, OP_JUMP_FALSE);
                if (!r)
                        r = parse_body(p);
                if (r)
                        break;
                more = parser_take_name(p, "elif");
                if (!more)
                        other = parser_take_name(p, "else");
                if (more || other) {
                        r = more < 0 ? more : other < 0 ? other : parser_op_arg(p, OP_JUMP, ends);
                        ends = parser_here(p) - 1;
                }
                if (!r)
                        parser_land(p, asked);
        }
        if (!r && other)
                r = parse_body(p);
        while (!r && ends != UINT32_MAX) {
                uint32_t before = (uint32_t)p->template->code[ends].arg;

                parser_land(p, ends);
                ends = before;
        }
        return error_pass(r ? r : parse_end(p, "endif"));
}

/* ---- for ---- */

/* `for ... if`: leaves a list of the items for which the condition is true. */
static int parse_for_filter(struct parser *p, const struct targets *targets)
{
        uint32_t next;
        int r = parser_op(p, OP_KEEP_BEGIN);

        next = parser_here(p);
        if (!r)
                r = parser_op(p, OP_KEEP_NEXT);
        if (!r)
                r = emit_targets(p, targets);
        if (!r)
                r = parse_expression(p);
        if (!r)
                r = parser_op(p, OP_KEEP);
        if (!r)
                r = parser_op_arg(p, OP_JUMP, next - parser_here(p));
        if (!r)
                parser_land(p, next);
        return error_pass(r);
}

/*
 * Sets the targets of breaks and continues.  In Jinja, the `else` of a loop runs if no turn of the
 * loop was finished, so a break has two targets: `arg` if a turn was finished, and else `more`.
 * next: the loop's last instruction.  skip: how far the code of `else` is behind it; 0: no `else`.
 */
static void land_breaks(struct parser *p, uint32_t from, uint32_t next, uint32_t skip)
{
        for (uint32_t i = from; i < next; i++) {
                struct instruction *c = &p->template->code[i];

                if (c->op == OP_BREAK && c->arg == PENDING) {
                        parser_land(p, i);
                        c->more = skip ? next + skip - i : (uint32_t)c->arg;
                } else if (c->op == OP_CONTINUE && c->arg == PENDING) {
                        c->arg = (int32_t)(next - i);
                }
        }
}

static int parse_for_body(struct parser *p, const struct targets *targets)
{
        uint32_t begin = parser_here(p), next, over;
        int r = parser_op(p, OP_FOR_BEGIN), other;

        if (!r)
                r = emit_targets(p, targets);
        p->loops++;
        if (!r)
                r = parse_body(p);
        p->loops--;
        next = parser_here(p);
        if (!r)
                r = parser_op_arg(p, OP_FOR_NEXT, begin + 1 - next);
        other = r ? r : parser_take_name(p, "else");
        if (other < 0)
                return error_pass(other);
        over = parser_here(p);
        if (other)
                r = parser_op(p, OP_JUMP);
        parser_land(p, begin);
        if (!r && other)
                r = parse_scope(p, OP_SCOPE_BEGIN, OP_SCOPE_END, "endfor");
        if (!r && !other)
                r = parse_end(p, "endfor");
        if (r)
                return error_pass(r);
        if (other)
                parser_land(p, over);
        p->template->code[next].flag = (uint8_t)other;
        land_breaks(p, begin, next, other ? 2 : 0);
        return 0;
}

static int parse_for(struct parser *p)
{
        struct targets targets = { .count = 0 };
        int r = parse_targets(p, &targets, false), taken;

        if (!r)
                r = parse_end(p, "in");
        if (!r)
                r = parse_tuple(p, false);
        taken = r ? r : parser_take_name(p, "if");
        if (taken == 1)
                taken = parse_for_filter(p, &targets);
        if (taken)
                return error_pass(taken);
        if (parser_is_name(p, "recursive"))
                return error_raise(parser_refuse(p, "a 'recursive' loop is not supported"));
        return error_pass(parse_for_body(p, &targets));
}

static int parse_leave(struct parser *p, enum op op)
{
        if (!p->loops)
                return error_raise(parser_refuse(p, "'%s' is outside a loop",
                                                 op == OP_BREAK ? "break" : "continue"));
        return error_pass(parser_op_arg(p, op, PENDING));
}

static int parse_break(struct parser *p)
{
        return error_pass(parse_leave(p, OP_BREAK));
}

static int parse_continue(struct parser *p)
{
        return error_pass(parse_leave(p, OP_CONTINUE));
}

/* ---- set, with ---- */

static int parse_set(struct parser *p)
{
        struct targets targets = { .count = 0 };
        uint32_t start, middle;
        int r = parse_targets(p, &targets, true), taken;

        taken = r ? r : parser_take(p, TOKEN_ASSIGN);
        if (taken < 0)
                return error_pass(taken);
        if (taken) {
                r = parse_tuple(p, true);
                return error_pass(r ? r : emit_targets(p, &targets));
        }
        /* Filters come before the body in the source, but run after it. */
        start = parser_here(p);
        taken = parser_take(p, TOKEN_PIPE);
        r = taken < 0 ? taken : taken ? parse_filters(p) : 0;
        middle = parser_here(p);
        if (!r)
                r = parse_scope(p, OP_CAPTURE_BEGIN, OP_CAPTURE_END, "endset");
        if (!r)
                r = parser_swap(p, start, middle);
        return error_pass(r ? r : emit_targets(p, &targets));
}

static int parse_with(struct parser *p)
{
        struct targets targets = { .count = 0 };
        uint32_t starts[TARGETS + 1], count = 0;
        int r = 0;

        while (!r && p->now.kind != TOKEN_BLOCK_END) {
                if (count && (r = parser_expect(p, TOKEN_COMMA)))
                        break;
                if (count == TARGETS)
                        return error_raise(parser_refuse(
                                p, "more than %u names on the left of an assignment", TARGETS));
                starts[count++] = targets.count;
                r = parse_target_name(p, &targets, false);
                if (!r)
                        r = parser_expect(p, TOKEN_ASSIGN);
                if (!r)
                        r = parse_expression(p);
        }
        if (!r)
                r = parser_op(p, OP_SCOPE_BEGIN);
        while (!r && count--) {
                struct targets one = { .items = { targets.items[starts[count]] }, .count = 1 };

                r = emit_targets(p, &one);
        }
        if (!r)
                r = parse_body(p);
        if (!r)
                r = parser_op(p, OP_SCOPE_END);
        return error_pass(r ? r : parse_end(p, "endwith"));
}

/* ---- the rest ---- */

static int parse_filter_block(struct parser *p)
{
        uint32_t start = parser_here(p), middle;
        int r = parse_filters(p);

        middle = parser_here(p);
        if (!r)
                r = parse_scope(p, OP_CAPTURE_BEGIN, OP_CAPTURE_END, "endfilter");
        if (!r)
                r = parser_swap(p, start, middle);
        return error_pass(r ? r
                            : parser_emit(p, (struct instruction){ .op = OP_PRINT, .flag = 1 }));
}

/* The tag marks the words of an assistant for training; here its body is only printed. */
static int parse_generation(struct parser *p)
{
        return error_pass(parse_scope(p, OP_SCOPE_BEGIN, OP_SCOPE_END, "endgeneration"));
}

static int parse_print(struct parser *p)
{
        int r = 0;

        while (!r && p->now.kind != TOKEN_BLOCK_END) {
                r = parse_expression(p);
                if (!r)
                        r = parser_op(p, OP_PRINT);
                if (!r && p->now.kind != TOKEN_BLOCK_END)
                        r = parser_expect(p, TOKEN_COMMA);
        }
        return error_pass(r);
}

static const struct statement {
        const char *name;
        int (*parse)(struct parser *p);
} statements[] = {
        { "if", parse_if },           { "for", parse_for },
        { "set", parse_set },         { "macro", parse_macro },
        { "break", parse_break },     { "continue", parse_continue },
        { "call", parse_call_block }, { "filter", parse_filter_block },
        { "with", parse_with },       { "generation", parse_generation },
        { "print", parse_print },
};

static int parse_tag(struct parser *p)
{
        int r;

        for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++) {
                if (!parser_is_name(p, statements[i].name))
                        continue;
                r = parser_advance(p);
                if (!r)
                        r = statements[i].parse(p);
                return error_pass(r ? r : parser_expect(p, TOKEN_BLOCK_END));
        }
        if (p->now.kind != TOKEN_NAME)
                return error_pass(parser_expect(p, TOKEN_NAME));
        return error_raise(parser_refuse(p, "tag %s is not supported", parser_found(p).text));
}

static bool ends_body(const struct parser *p)
{
        return parser_is_name(p, "elif") || parser_is_name(p, "else") ||
               (p->now.kind == TOKEN_NAME && p->now.count > 3 && !memcmp(p->now.bytes, "end", 3));
}

static int parse_printed(struct parser *p)
{
        int r = parse_tuple(p, true);

        if (!r)
                r = parser_op(p, OP_PRINT);
        return error_pass(r ? r : parser_expect(p, TOKEN_PRINT_END));
}

/* Ends at the end of the template, or at a name after `{%` that ends a body. */
int parse_statements(struct parser *p)
{
        uint32_t number;
        int r = 0;

        while (!r && p->now.kind != TOKEN_END) {
                if (p->now.kind == TOKEN_DATA) {
                        r = parser_text_constant(p, &p->now, &number);
                        if (!r)
                                r = parser_op_arg(p, OP_DATA, number);
                        if (!r)
                                r = parser_advance(p);
                        continue;
                }
                if (p->now.kind == TOKEN_PRINT_BEGIN) {
                        r = parser_advance(p);
                        if (!r)
                                r = parse_printed(p);
                        continue;
                }
                r = parser_expect(p, TOKEN_BLOCK_BEGIN);
                if (!r && ends_body(p))
                        return 0;
                if (!r)
                        r = parse_tag(p);
        }
        return error_pass(r);
}
