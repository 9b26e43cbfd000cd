#include "daemon/text/template/parser.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"

int parser_refuse(struct parser *p, const char *format, ...)
{
        char what[200];
        va_list args;

        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        return errtext_set(p->why, p->why_bytes, -EINVAL, "%s (line %u)", what, p->now.line);
}

static int no_memory(struct parser *p)
{
        return errtext_set(p->why, p->why_bytes, -ENOMEM, "out of memory for the template");
}

int parser_advance(struct parser *p)
{
        p->now = p->next;
        return error_pass(lexer_next(&p->lexer, &p->next));
}

struct shown parser_found(const struct parser *p)
{
        char name[64] = "";
        struct shown phrase;
        size_t count = p->now.count < sizeof(name) ? p->now.count : sizeof(name) - 1;

        if (p->now.kind != TOKEN_NAME)
                return token_shown(p->now.kind);
        memcpy(name, p->now.bytes, count);
        snprintf(phrase.text, sizeof(phrase.text), "'%.64s'", shown(name).text);
        return phrase;
}

int parser_expect(struct parser *p, enum token_kind kind)
{
        if (p->now.kind != kind)
                return error_raise(parser_refuse(p, "expected %s, found %s", token_shown(kind).text,
                                                 parser_found(p).text));
        return error_pass(parser_advance(p));
}

static bool is_name(const struct token *token, const char *name)
{
        return token->kind == TOKEN_NAME && token->count == strlen(name) &&
               !memcmp(token->bytes, name, token->count);
}

bool parser_is_name(const struct parser *p, const char *name)
{
        return is_name(&p->now, name);
}

int parser_take_name(struct parser *p, const char *name)
{
        int r;

        if (!is_name(&p->now, name))
                return 0;
        r = parser_advance(p);
        return error_pass(r ? r : 1);
}

int parser_take(struct parser *p, enum token_kind kind)
{
        int r;

        if (p->now.kind != kind)
                return 0;
        r = parser_advance(p);
        return error_pass(r ? r : 1);
}

int parser_enter(struct parser *p)
{
        if (++p->depth > TEMPLATE_DEPTH_MAX)
                return error_raise(parser_refuse(p, "the syntax nests deeper than %u levels",
                                                 TEMPLATE_DEPTH_MAX));
        return 0;
}

/* ---- code and constants ---- */

/* Makes room for one more item of `size` bytes.  The old memory stays in the arena, unused. */
static void *grown(struct parser *p, void *old, uint32_t count, uint32_t *capacity, size_t size)
{
        void *new;

        if (count < *capacity)
                return old;
        assert(*capacity <= 8 * TEMPLATE_BYTES_MAX);
        new = arena_take(p->template->arena, (*capacity ? *capacity * 2 : 64) * size);
        if (!new)
                return NULL;
        if (count)
                memcpy(new, old, count * size);
        *capacity = *capacity ? *capacity * 2 : 64;
        return new;
}

int parser_emit(struct parser *p, struct instruction instruction)
{
        struct template *t = p->template;
        struct instruction *code =
                grown(p, t->code, t->code_count, &p->code_capacity, sizeof(*code));

        if (!code)
                return error_raise(no_memory(p));
        t->code = code;
        instruction.line = p->now.line;
        code[t->code_count++] = instruction;
        return 0;
}

int parser_constant(struct parser *p, struct value value, uint32_t *ret_number)
{
        struct template *t = p->template;
        struct value *constants = grown(p, t->constants, t->constant_count, &p->constant_capacity,
                                        sizeof(*constants));

        if (!constants)
                return error_raise(no_memory(p));
        t->constants = constants;
        *ret_number = t->constant_count;
        constants[t->constant_count++] = value;
        return 0;
}

/* Does not copy the bytes: they live as long as the arena. */
int parser_text(struct parser *p, const struct token *token, struct value *ret_value)
{
        struct text *text = arena_take(p->template->arena, sizeof(*text));

        if (!text)
                return error_raise(no_memory(p));
        *text = (struct text){ .bytes = token->bytes, .count = token->count, .run_count = 1 };
        text->whole = (struct text_run){ token->count, TEXT_OURS };
        text->runs = &text->whole;
        *ret_value = (struct value){ .kind = VALUE_STRING, .text = text };
        return 0;
}

int parser_text_constant(struct parser *p, const struct token *token, uint32_t *ret_number)
{
        struct value value;
        int r = parser_text(p, token, &value);

        return error_pass(r ? r : parser_constant(p, value, ret_number));
}

void parser_land(struct parser *p, uint32_t from)
{
        p->template->code[from].arg = (int32_t)(parser_here(p) - from);
}

int parser_swap(struct parser *p, uint32_t start, uint32_t middle)
{
        struct instruction *code = p->template->code, *copy;
        uint32_t first = middle - start, second = parser_here(p) - middle;

        copy = arena_take(p->template->arena, (size_t)(first ? first : 1) * sizeof(*copy));
        if (!copy)
                return error_raise(no_memory(p));
        memcpy(copy, code + start, first * sizeof(*copy));
        memmove(code + start, code + middle, second * sizeof(*copy));
        memcpy(code + start + second, copy, first * sizeof(*copy));
        return 0;
}

/* ---- the whole template ---- */

static int parse_all(struct parser *p)
{
        int r = parser_advance(p);

        if (!r)
                r = parser_advance(p);
        if (!r)
                r = parse_statements(p);
        if (!r && p->now.kind != TOKEN_END)
                r = parser_refuse(p, "%s has no beginning", parser_found(p).text);
        return error_pass(r ? r : parser_op(p, OP_END));
}

/*
 * `a+a+a` takes about a hundred times its bytes, including memory that growing leaves unused.  Code
 * that is swapped again and again may take more, and is refused.
 */
#define ARENA_BYTES(bytes) (((size_t)(bytes) << 8) + (1u << 20))

int template_open(const char *text, size_t bytes, struct template **ret_template, char *why,
                  size_t why_bytes)
{
        struct parser p = { .why = why, .why_bytes = why_bytes };
        struct arena *arena;
        int r = arena_new(ARENA_BYTES(bytes < TEMPLATE_BYTES_MAX ? bytes : 0), &arena);

        if (r)
                return error_pass(errtext_set(why, why_bytes, r, "out of memory for the template"));
        p.template = arena_take(arena, sizeof(*p.template));
        if (!p.template) {
                arena_free(arena);
                return error_raise(no_memory(&p));
        }
        *p.template = (struct template){ .arena = arena };
        r = lexer_open(&p.lexer, arena, text, bytes, why, why_bytes);
        if (!r)
                r = parse_all(&p);
        if (r == -ENOMEM && arena_is_spent(arena))
                r = error_raise(errtext_set(why, why_bytes, -EINVAL,
                                            "a template of %zu bytes takes too much memory",
                                            bytes));
        if (r) {
                arena_free(arena);
                return error_pass(r);
        }
        *ret_template = p.template;
        return 0;
}

struct template *template_close(struct template *template)
{
        if (template)
                arena_free(template->arena);
        return NULL;
}
