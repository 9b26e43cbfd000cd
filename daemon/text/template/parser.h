/*
 * The parser: turns tokens into code, in one pass.
 *
 * It recurses only for nested syntax, at most TEMPLATE_DEPTH_MAX deep.  It looks up the names of
 * filters and tests, so that an unknown name is refused before anything is rendered.
 */
#ifndef DAEMON_TEXT_TEMPLATE_PARSER_H
#define DAEMON_TEXT_TEMPLATE_PARSER_H

#include "daemon/text/template/code.h"
#include "daemon/text/template/lexer.h"

struct parser {
        struct lexer lexer;
        struct token now, next;
        struct template *template;
        uint32_t code_capacity, constant_capacity, macro_capacity;
        unsigned depth;
        unsigned loops;           /* how many enclosing loops a break may leave */
        struct macro_code *macro; /* the macro whose body is being parsed */
        uint32_t last_call;       /* OP_CALL of the operand just read; NO_CALL: it is no call */
        char *why;
        size_t why_bytes;
};

#define NO_CALL UINT32_MAX

/* The parts of the grammar. */
int parse_statements(struct parser *p);
int parse_expression(struct parser *p);
/* One operand with its sign; filtered: also with its filters and tests. */
int parse_operand(struct parser *p, bool filtered);
/* Several expressions with commas between them are a tuple.  choices: `a if b` is allowed. */
int parse_tuple(struct parser *p, bool choices);
/* `name(arguments) | name ...`, applied to the value on top of the stack when the code runs. */
int parse_filters(struct parser *p);

/* From the end of a tag to the tag that ends its body; does not take the name of that tag. */
int parse_body(struct parser *p);
int parse_end(struct parser *p, const char *name);
/* The tags `macro` and `call`, after their names. */
int parse_macro(struct parser *p);
int parse_call_block(struct parser *p);
/* One call and nothing else.  Removes its OP_CALL from the code and gives it to the caller. */
int parse_only_call(struct parser *p, struct instruction *ret_call);

/* ---- helpers for all parts of the parser ---- */

__attribute__((format(printf, 2, 3))) int parser_refuse(struct parser *p, const char *format, ...);
int parser_advance(struct parser *p);
int parser_expect(struct parser *p, enum token_kind kind);
bool parser_is_name(const struct parser *p, const char *name);
/* 1: the token was there and is taken; 0: it was not there; or an error. */
int parser_take_name(struct parser *p, const char *name);
int parser_take(struct parser *p, enum token_kind kind);
/* The token that the parser is at, as a phrase: 'a_name', '%}', an integer. */
struct shown parser_found(const struct parser *p);
int parser_enter(struct parser *p); /* goes one level deeper; the caller ends it by p->depth-- */

int parser_emit(struct parser *p, struct instruction instruction);
int parser_constant(struct parser *p, struct value value, uint32_t *ret_number);
int parser_text(struct parser *p, const struct token *token, struct value *ret_value);
int parser_text_constant(struct parser *p, const struct token *token, uint32_t *ret_number);
/* Makes the jump at `from` lead to the next instruction that is emitted. */
void parser_land(struct parser *p, uint32_t from);
/* Exchanges the code of [start, middle) and [middle, now). */
int parser_swap(struct parser *p, uint32_t start, uint32_t middle);

static inline int parser_op(struct parser *p, enum op op)
{
        return parser_emit(p, (struct instruction){ .op = (uint8_t)op });
}

static inline int parser_op_arg(struct parser *p, enum op op, uint32_t arg)
{
        return parser_emit(p, (struct instruction){ .op = (uint8_t)op, .arg = (int32_t)arg });
}

static inline uint32_t parser_here(const struct parser *p)
{
        return p->template->code_count;
}

#endif
