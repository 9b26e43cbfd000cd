/*
 * Expressions.  Binary operators are parsed by precedence climbing: an operand, then every operator
 * that binds at least as tightly as `binds`.  The right side of an operator is an expression of
 * operators that bind more tightly.
 */
#include "daemon/text/template/parser.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"

/* How tightly operators bind. */
enum {
        BIND_OR = 1,
        BIND_AND,
        BIND_NOT,
        BIND_COMPARE,
        BIND_ADD,
        BIND_CONCAT,
        BIND_TIMES,
        BIND_POWER
};

static const struct operation {
        enum token_kind token;
        const char *name; /* of an operator that is a word; else NULL */
        uint8_t binds, op, flag;
} operators[] = {
        { TOKEN_NAME, "or", BIND_OR, OP_JUMP_TRUE_KEEP, 0 },
        { TOKEN_NAME, "and", BIND_AND, OP_JUMP_FALSE_KEEP, 0 },
        { TOKEN_NAME, "in", BIND_COMPARE, OP_COMPARE, COMPARE_IN },
        { TOKEN_NAME, "not", BIND_COMPARE, OP_COMPARE, COMPARE_NOT_IN },
        { TOKEN_EQ, NULL, BIND_COMPARE, OP_COMPARE, COMPARE_EQ },
        { TOKEN_NE, NULL, BIND_COMPARE, OP_COMPARE, COMPARE_NE },
        { TOKEN_LT, NULL, BIND_COMPARE, OP_COMPARE, COMPARE_LT },
        { TOKEN_LE, NULL, BIND_COMPARE, OP_COMPARE, COMPARE_LE },
        { TOKEN_GT, NULL, BIND_COMPARE, OP_COMPARE, COMPARE_GT },
        { TOKEN_GE, NULL, BIND_COMPARE, OP_COMPARE, COMPARE_GE },
        { TOKEN_PLUS, NULL, BIND_ADD, OP_BINARY, BINARY_ADD },
        { TOKEN_MINUS, NULL, BIND_ADD, OP_BINARY, BINARY_SUBTRACT },
        { TOKEN_TILDE, NULL, BIND_CONCAT, OP_CONCAT, 0 },
        { TOKEN_MULTIPLY, NULL, BIND_TIMES, OP_BINARY, BINARY_MULTIPLY },
        { TOKEN_DIVIDE, NULL, BIND_TIMES, OP_BINARY, BINARY_DIVIDE },
        { TOKEN_FLOOR, NULL, BIND_TIMES, OP_BINARY, BINARY_FLOOR },
        { TOKEN_MODULO, NULL, BIND_TIMES, OP_BINARY, BINARY_MODULO },
        { TOKEN_POWER, NULL, BIND_POWER, OP_BINARY, BINARY_POWER },
};

static int parse_binary(struct parser *p, unsigned binds);

static const struct operation *find_operator(const struct parser *p)
{
        for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
                const struct operation *o = &operators[i];

                if (o->token != p->now.kind || (o->name && !parser_is_name(p, o->name)))
                        continue;
                if (o->flag == COMPARE_NOT_IN && o->op == OP_COMPARE &&
                    !(p->next.kind == TOKEN_NAME && p->next.count == 2 &&
                      !memcmp(p->next.bytes, "in", 2)))
                        return NULL;
                return o;
        }
        return NULL;
}

/*
 * `a < b < c`: b is evaluated once, and c only if a < b.  For each comparison but the last, the
 * stack is: a b, then b a b, then b (a < b).  If a < b is false, b is removed from below it.
 */
static int parse_comparisons(struct parser *p)
{
        const struct operation *o;
        uint32_t jumps = UINT32_MAX, over;
        int r = 0;

        while (!r && (o = find_operator(p)) && o->binds == BIND_COMPARE) {
                const struct operation *next;
                uint8_t flag = o->flag;

                r = parser_advance(p);
                if (!r && flag == COMPARE_NOT_IN)
                        r = parser_advance(p);
                if (!r)
                        r = parse_binary(p, BIND_COMPARE + 1);
                if (r)
                        break;
                next = find_operator(p);
                if (next && next->binds == BIND_COMPARE)
                        r = parser_op(p, OP_TUCK);
                if (!r)
                        r = parser_emit(p, (struct instruction){ .op = OP_COMPARE, .flag = flag });
                if (r || !next || next->binds != BIND_COMPARE)
                        break;
                /* The jumps without a target form a linked list through their `arg`. */
                r = parser_op_arg(p, OP_JUMP_FALSE_KEEP, jumps);
                jumps = parser_here(p) - 1;
        }
        if (r || jumps == UINT32_MAX)
                return error_pass(r);
        over = parser_here(p);
        r = parser_op(p, OP_JUMP);
        while (!r && jumps != UINT32_MAX) {
                uint32_t before = (uint32_t)p->template->code[jumps].arg;

                parser_land(p, jumps);
                jumps = before;
        }
        if (!r)
                r = parser_op(p, OP_NIP);
        if (!r)
                parser_land(p, over);
        return error_pass(r);
}

static int parse_concat(struct parser *p)
{
        uint32_t count = 1;
        int r = 0;

        while (!r && (r = parser_take(p, TOKEN_TILDE)) == 1) {
                r = parse_binary(p, BIND_CONCAT + 1);
                count++;
        }
        return error_pass(r ? r : parser_op_arg(p, OP_CONCAT, count));
}

/* At an operator; the code of its left side is emitted. */
static int parse_right(struct parser *p, const struct operation *o)
{
        uint32_t jump = parser_here(p);
        int r;

        if (o->op == OP_COMPARE)
                return error_pass(parse_comparisons(p));
        if (o->op == OP_CONCAT)
                return error_pass(parse_concat(p));
        r = parser_advance(p);
        if (!r && o->op != OP_BINARY)
                r = parser_op(p, o->op);
        if (!r)
                r = parse_binary(p, o->binds + 1u);
        if (!r && o->op == OP_BINARY)
                return error_pass(
                        parser_emit(p, (struct instruction){ .op = OP_BINARY, .flag = o->flag }));
        if (!r)
                parser_land(p, jump);
        return error_pass(r);
}

static int parse_binary(struct parser *p, unsigned binds)
{
        const struct operation *o;
        int r;

        if (binds <= BIND_NOT && parser_is_name(p, "not")) {
                if ((r = parser_enter(p)) || (r = parser_advance(p)))
                        return error_pass(r);
                r = parse_binary(p, BIND_NOT);
                if (!r)
                        r = parser_op(p, OP_NOT);
                p->depth--;
        } else {
                r = parse_operand(p, true);
        }
        while (!r && (o = find_operator(p)) && o->binds >= binds)
                r = parse_right(p, o);
        return error_pass(r);
}

/* After `value if`.  [start, middle) is the code of the value; the condition is put before it. */
static int parse_choice(struct parser *p, uint32_t start, uint32_t middle)
{
        uint32_t asked, over, number;
        int r = parse_binary(p, BIND_OR), other;

        if (!r)
                r = parser_op(p, OP_JUMP_FALSE);
        asked = start + parser_here(p) - middle - 1;
        if (!r)
                r = parser_swap(p, start, middle);
        over = parser_here(p);
        if (!r)
                r = parser_op(p, OP_JUMP);
        if (r)
                return error_pass(r);
        parser_land(p, asked);
        other = parser_take_name(p, "else");
        if (other < 0)
                return error_pass(other);
        if (other) {
                r = parse_expression(p);
        } else {
                r = parser_constant(p, (struct value){ .kind = VALUE_UNDEFINED }, &number);
                if (!r)
                        r = parser_op_arg(p, OP_CONST, number);
        }
        if (!r)
                parser_land(p, over);
        return error_pass(r);
}

int parse_expression(struct parser *p)
{
        uint32_t start = parser_here(p), middle;
        unsigned depth = p->depth;
        int r = parser_enter(p), taken;

        if (!r)
                r = parse_binary(p, BIND_OR);
        while (!r && (taken = parser_take_name(p, "if"))) {
                middle = parser_here(p);
                r = taken < 0 ? taken : parser_enter(p);
                if (!r)
                        r = parse_choice(p, start, middle);
        }
        p->depth = depth;
        return error_pass(r);
}

int parse_tuple(struct parser *p, bool choices)
{
        uint32_t count = 0;
        bool commas = false;
        int r = 0;

        while (!r) {
                if (p->now.kind == TOKEN_PRINT_END || p->now.kind == TOKEN_BLOCK_END ||
                    p->now.kind == TOKEN_RPAREN || parser_is_name(p, "recursive"))
                        break;
                r = choices ? parse_expression(p) : parse_binary(p, BIND_OR);
                count++;
                if (r || p->now.kind != TOKEN_COMMA)
                        break;
                commas = true;
                r = parser_advance(p);
        }
        if (!r && !count)
                r = error_raise(
                        parser_refuse(p, "expected an expression, found %s", parser_found(p).text));
        return error_pass(r || !commas ? r : parser_op_arg(p, OP_TUPLE, count));
}
