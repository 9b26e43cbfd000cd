#include "daemon/constraint/structure.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/choices.h"
#include "daemon/constraint/gbnf.h"
#include "json/utf8.h"

struct structure_compiler {
        struct grammar *grammar;
        struct regex_pool *pool;
        uint32_t path[STRUCTURE_DEPTH + 1]; /* of the part that is being compiled */
        uint32_t depth;
        char *why;
        size_t why_bytes;
        int failed; /* the first failure, with a sentence in *why */
};

static void fail(struct structure_compiler *compiler, int error, const char *what)
{
        char place[(STRUCTURE_DEPTH + 1) * 11 + 1] = "";
        size_t used = 0;

        if (compiler->failed)
                return;
        for (uint32_t i = 0; i < compiler->depth; i++)
                used += snprintf(place + used, sizeof(place) - used, "/%u", compiler->path[i]);
        compiler->failed = error_raise(errtext_set(compiler->why, compiler->why_bytes, error,
                                                   "part \"%s\": %s", place, what));
}

/* Whether the text is UTF-8, but for control tokens. */
static bool is_text(const struct regex_text *text)
{
        uint32_t at = 0;

        while (at < text->count) {
                const char *token = memchr(text->bytes + at, TOKEN_LEAD, text->count - at);
                uint32_t end = token ? (uint32_t)(token - text->bytes) : text->count;

                if (utf8_valid(text->bytes + at, end - at) != end - at)
                        return false;
                if (!token)
                        return true;
                if (text->count - end < TOKEN_BYTES)
                        return false;
                for (unsigned i = 1; i < TOKEN_BYTES; i++)
                        if ((token[i] & 0xc0) != 0x80)
                                return false;
                at = end + TOKEN_BYTES;
        }
        return true;
}

static uint32_t literal(struct structure_compiler *compiler, const struct regex_text *text)
{
        if (!is_text(text))
                fail(compiler, -EINVAL, "a text is not UTF-8");
        return regex_literal(compiler->pool, text->bytes, text->count);
}

static uint32_t add_part(struct structure_compiler *compiler, const struct structure *part,
                         uint32_t index, bool is_last);

/* A new rule with this one alternative, behind `first` if that is a symbol. */
static void add_parts(struct structure_compiler *compiler, uint32_t rule, uint32_t first,
                      const struct structure *part, uint32_t from, bool is_last)
{
        uint32_t *symbols = calloc(part->count + 1ul, sizeof(*symbols)), count = 0;

        if (!symbols) {
                fail(compiler, -ENOMEM, "out of memory");
                return;
        }
        if (first != SYMBOL_NONE)
                symbols[count++] = first;
        for (uint32_t i = from; i < part->count && !compiler->failed; i++)
                symbols[count++] =
                        add_part(compiler, &part->parts[i], i, is_last && i + 1 == part->count);
        if (!compiler->failed)
                grammar_add(compiler->grammar, rule, symbols, count);
        free(symbols);
}

/*
 * With text between, the first one stands before a list of the others, each with the text in front
 * of it.
 */
static uint32_t add_list(struct structure_compiler *compiler, const struct structure *part)
{
        struct grammar *grammar = compiler->grammar;
        uint32_t rule = grammar_rule(grammar), both[2], rest;
        struct grammar_list list = { .separator = SYMBOL_NONE, .min = part->min, .max = part->max };

        if (part->count != 1 || part->min > part->max || part->max == 0) {
                fail(compiler, -EINVAL, "a list has one part, and its bounds allow some of it");
                return rule;
        }
        list.rest = both[0] = add_part(compiler, part->parts, 0, false);
        if (compiler->failed || grammar->failed)
                return rule;
        if (part->text.count == 0) {
                grammar_set_list(grammar, rule, list, NULL);
                return rule;
        }
        if (part->min == 0)
                grammar_add(grammar, rule, NULL, 0);
        if (part->max == 1) {
                grammar_add(grammar, rule, both, 1);
                return rule;
        }
        list.min -= part->min > 0;
        list.max -= part->max != REGEX_FOREVER;
        list.rest = grammar_rule(grammar);
        rest = grammar_rule(grammar);
        grammar_add(
                grammar, list.rest,
                (uint32_t[]){ grammar_lexeme(grammar, literal(compiler, &part->text)), both[0] },
                2);
        if (grammar->failed)
                return rule;
        both[1] = rest;
        grammar_set_list(grammar, rest, list, NULL);
        grammar_add(grammar, rule, both, 2);
        return rule;
}

/* The mark of a part of free text; NULL: it has none. */
static const struct regex_text *mark_of(const struct structure *part)
{
        if (part->kind == STRUCTURE_SEQUENCE && part->count)
                part = part->parts;
        return part->kind == STRUCTURE_LITERAL && part->text.count ? &part->text : NULL;
}

/* All texts without control tokens, and those of them in which no text of `marks` is complete. */
struct free_text {
        uint32_t any, marks;
};

static bool read_marks(struct structure_compiler *compiler, const struct structure *part,
                       struct free_text *text)
{
        struct regex_pool *pool = compiler->pool;

        text->any = regex_repeat(pool, regex_range(pool, 0, TOKEN_LEAD - 1), 0, REGEX_FOREVER);
        text->marks = REGEX_NONE;
        for (uint32_t i = 0; i < part->without_count; i++) {
                if (part->without[i].count == 0)
                        fail(compiler, -EINVAL, "an excluded text is empty");
                text->marks = regex_or2(pool, text->marks, literal(compiler, &part->without[i]));
        }
        for (uint32_t i = 0; i < part->count; i++) {
                const struct regex_text *mark = mark_of(&part->parts[i]);

                if (!mark)
                        fail(compiler, -EINVAL, "a part of free text does not begin with a mark");
                else
                        text->marks = regex_or2(pool, text->marks, literal(compiler, mark));
        }
        return compiler->failed == 0;
}

/* Text up to this mark, with it, and without any mark before its end. */
static uint32_t up_to(struct structure_compiler *compiler, const struct free_text *text,
                      const struct regex_text *mark)
{
        struct regex_pool *pool = compiler->pool;
        uint32_t more = regex_concat(pool, text->marks, regex_concat(pool, REGEX_BYTE, REGEX_ANY));
        uint32_t early = regex_concat(pool, REGEX_ANY, more);

        return regex_and2(pool, regex_concat(pool, text->any, literal(compiler, mark)),
                          regex_not(pool, early));
}

static uint32_t without_marks(struct regex_pool *pool, const struct free_text *text)
{
        uint32_t marked = regex_concat(pool, REGEX_ANY, regex_concat(pool, text->marks, REGEX_ANY));

        return regex_and2(pool, text->any, regex_not(pool, marked));
}

/* Text up to a mark, and the rest of the part that the mark begins. */
static uint32_t add_marked(struct structure_compiler *compiler, const struct structure *part,
                           const struct free_text *text, bool is_last)
{
        uint32_t rule = grammar_rule(compiler->grammar);

        for (uint32_t i = 0; i < part->count && !compiler->failed; i++) {
                const struct structure *marked = &part->parts[i];
                uint32_t term = up_to(compiler, text, mark_of(marked));
                uint32_t first = grammar_lexeme(compiler->grammar, term);

                compiler->path[compiler->depth++] = i;
                if (!regex_alive(compiler->pool, term) && regex_spent(compiler->pool) == REGEX_FINE)
                        fail(compiler, -EINVAL,
                             "its mark is never complete: another one is inside of it");
                if (marked->kind == STRUCTURE_SEQUENCE)
                        add_parts(compiler, rule, first, marked, 1, is_last);
                else
                        grammar_add(compiler->grammar, rule, &first, 1);
                compiler->depth--;
        }
        return rule;
}

static uint32_t add_text(struct structure_compiler *compiler, const struct structure *part,
                         bool is_last)
{
        struct grammar *grammar = compiler->grammar;
        bool may_be_last = !part->closed || part->min == 0, once = part->closed && part->max == 1;
        uint32_t rule = grammar_rule(grammar), symbols[2], tail;
        struct free_text text;

        if (part->min > part->max || (part->count == 0) != (part->max == 0))
                fail(compiler, -EINVAL, "the bounds of its parts exclude each other");
        if (may_be_last && !is_last)
                fail(compiler, -EINVAL, "free text that may be the last of all is not the last");
        if (!read_marks(compiler, part, &text))
                return rule;
        tail = symbols[1] = grammar_tail(grammar, without_marks(compiler->pool, &text));
        symbols[0] = add_marked(compiler, part, &text, is_last && once);
        if (compiler->failed || grammar->failed)
                return rule;
        if (part->max && !once) {
                struct grammar_list list = { .rest = symbols[0],
                                             .separator = SYMBOL_NONE,
                                             .min = part->min + (part->closed && part->min == 0),
                                             .max = part->max };

                symbols[0] = grammar_rule(grammar);
                if (!grammar->failed)
                        grammar_set_list(grammar, symbols[0], list, NULL);
        }
        if (part->max == 0 || (part->closed && part->min == 0))
                grammar_add(grammar, rule, &tail, 1);
        if (part->max)
                grammar_add(grammar, rule, symbols, part->closed ? 1 : 2);
        return rule;
}

/* Parts that another compiler reads: its sentence gets the place of the part. */
static uint32_t add_foreign(struct structure_compiler *compiler, const struct structure *part)
{
        const struct regex_text *text = &part->text;
        struct grammar *grammar = compiler->grammar;
        uint32_t symbol = SYMBOL_RULE;
        char why[400];
        int r = 0;

        if (part->kind == STRUCTURE_REGEX)
                r = regex_add(grammar, text->bytes, text->count, &symbol, why, sizeof(why));
        else if (part->kind == STRUCTURE_GBNF)
                r = gbnf_add(grammar, text->bytes, text->count, &symbol, why, sizeof(why));
        else if (part->kind == STRUCTURE_ONE_OF)
                r = choices_add(grammar, part->choices, part->choice_count, &symbol, why,
                                sizeof(why));
        else
                r = json_schema_add(grammar, text->bytes, text->count, &part->schema, &symbol, why,
                                    sizeof(why));
        if (r < 0)
                fail(compiler, r, why);
        return symbol;
}

static uint32_t add_kind(struct structure_compiler *compiler, const struct structure *part,
                         bool is_last)
{
        struct grammar *grammar = compiler->grammar;
        uint32_t rule;

        switch (part->kind) {
        case STRUCTURE_LITERAL:
                return grammar_lexeme(grammar, literal(compiler, &part->text));
        case STRUCTURE_REGEX:
        case STRUCTURE_GBNF:
        case STRUCTURE_SCHEMA:
        case STRUCTURE_ONE_OF:
                return add_foreign(compiler, part);
        case STRUCTURE_SEQUENCE:
                rule = grammar_rule(grammar);
                add_parts(compiler, rule, SYMBOL_NONE, part, 0, is_last);
                return rule;
        case STRUCTURE_CHOICE:
                rule = grammar_rule(grammar);
                if (part->count == 0)
                        fail(compiler, -EINVAL, "there is nothing to choose");
                for (uint32_t i = 0; i < part->count && !compiler->failed; i++) {
                        uint32_t symbol = add_part(compiler, &part->parts[i], i, is_last);

                        if (!compiler->failed)
                                grammar_add(grammar, rule, &symbol, 1);
                }
                return rule;
        case STRUCTURE_LIST:
                return add_list(compiler, part);
        case STRUCTURE_TEXT:
                return add_text(compiler, part, is_last);
        }
        assert(false);
        return SYMBOL_RULE;
}

/* `is_last`: nothing follows it.  The recursion is as deep as parts are nested. */
static uint32_t add_part(struct structure_compiler *compiler, const struct structure *part,
                         uint32_t index, bool is_last)
{
        uint32_t symbol = SYMBOL_RULE;

        if (compiler->depth == STRUCTURE_DEPTH) {
                fail(compiler, -EINVAL, "parts are nested more than 16 deep");
                return symbol;
        }
        compiler->path[compiler->depth++] = index;
        if (regex_spent(compiler->pool) == REGEX_FINE && !compiler->grammar->failed)
                symbol = add_kind(compiler, part, is_last);
        compiler->depth--;
        return symbol;
}

int structure_compile(const struct structure *structure, const struct grammar_limits *limits,
                      struct grammar **ret_grammar, char *why, size_t why_bytes)
{
        struct grammar *grammar = grammar_new(limits);
        struct structure_compiler compiler = { .grammar = grammar };
        uint32_t root;

        if (!grammar)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        compiler.pool = grammar->pool;
        compiler.why = why;
        compiler.why_bytes = why_bytes;
        root = add_kind(&compiler, structure, true);
        return error_pass(
                grammar_finish(grammar, compiler.failed, root, ret_grammar, why, why_bytes));
}
