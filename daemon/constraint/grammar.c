#include "daemon/constraint/grammar.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"

const struct grammar_limits grammar_limits_default = {
        .terms = 400000,
        .growth = 40000,
        .states = 10000,
        .symbols = 400000,
        .fuel = 800000,
};

struct grammar *grammar_new(const struct grammar_limits *limits)
{
        struct grammar *grammar = calloc(1, sizeof(*grammar));

        if (!grammar)
                return NULL;
        grammar->limits = *limits;
        grammar->pool = regex_pool_new(limits->terms);
        if (!grammar->pool)
                return grammar_free(grammar);
        regex_refuel(grammar->pool, limits->fuel);
        grammar->lexer.pool = grammar->pool;
        return grammar;
}

struct grammar *grammar_free(struct grammar *grammar)
{
        if (!grammar)
                return NULL;
        lexer_deinit(&grammar->lexer);
        regex_pool_free(grammar->pool);
        free(grammar->rules);
        free(grammar->sequences);
        free(grammar->lists);
        free(grammar->objects);
        free(grammar->members);
        free(grammar->needs);
        free(grammar->symbols);
        free(grammar);
        return NULL;
}

/*
 * Makes space for `more` elements behind the first `count`.  Arrays have a power of two of
 * elements, so their size need not be kept.
 */
static bool grow(struct grammar *grammar, void **array, uint32_t count, uint32_t more, size_t size)
{
        uint32_t have = 16, want = 16;
        void *larger;

        if (grammar->failed)
                return false;
        if (count + more > grammar->limits.symbols || more > grammar->limits.symbols) {
                grammar->failed = -E2BIG;
                return false;
        }
        while (have < count)
                have *= 2;
        while (want < count + more)
                want *= 2;
        if (*array && want <= have)
                return true;
        larger = realloc(*array, want * size);
        if (!larger) {
                grammar->failed = -ENOMEM;
                return false;
        }
        *array = larger;
        return true;
}

#define GROW(grammar, array, count, more)                                                          \
        grow((grammar), (void **)&(grammar)->array, (grammar)->count, (more),                      \
             sizeof(*(grammar)->array))

uint32_t grammar_rule(struct grammar *grammar)
{
        if (!GROW(grammar, rules, rule_count, 1))
                return SYMBOL_RULE;
        grammar->rules[grammar->rule_count] = (struct grammar_rule){ .first = SYMBOL_NONE };
        return SYMBOL_RULE | grammar->rule_count++;
}

static struct grammar_rule *rule_of(struct grammar *grammar, uint32_t rule)
{
        assert((rule & SYMBOL_RULE) && (rule & ~SYMBOL_RULE) < grammar->rule_count);
        return &grammar->rules[rule & ~SYMBOL_RULE];
}

void grammar_add(struct grammar *grammar, uint32_t rule, const uint32_t *symbols, uint32_t count)
{
        struct grammar_rule *of;

        if (!GROW(grammar, symbols, symbol_count, count + 1) ||
            !GROW(grammar, sequences, sequence_count, 1))
                return;
        of = rule_of(grammar, rule);
        assert(of->form == RULE_OPEN || of->form == RULE_ALTERNATIVES);
        of->form = RULE_ALTERNATIVES;
        grammar->sequences[grammar->sequence_count] =
                (struct grammar_sequence){ grammar->symbol_count, of->first };
        of->first = grammar->sequence_count++;
        if (count)
                memcpy(grammar->symbols + grammar->symbol_count, symbols, count * sizeof(*symbols));
        grammar->symbol_count += count;
        grammar->symbols[grammar->symbol_count++] = SYMBOL_END | (rule & ~SYMBOL_RULE);
}

void grammar_set_list(struct grammar *grammar, uint32_t rule, struct grammar_list list,
                      const uint32_t *prefix)
{
        if (!GROW(grammar, symbols, symbol_count, list.prefix_count) ||
            !GROW(grammar, lists, list_count, 1))
                return;
        assert(rule_of(grammar, rule)->form == RULE_OPEN && list.min <= list.max);
        list.rule = rule;
        list.prefix = grammar->symbol_count;
        if (list.prefix_count)
                memcpy(grammar->symbols + list.prefix, prefix, list.prefix_count * sizeof(*prefix));
        grammar->symbol_count += list.prefix_count;
        rule_of(grammar, rule)->form = RULE_LIST;
        rule_of(grammar, rule)->first = grammar->list_count;
        grammar->lists[grammar->list_count++] = list;
}

void grammar_set_object(struct grammar *grammar, uint32_t rule, struct grammar_object object,
                        const struct grammar_member *members, const uint32_t *needs)
{
        uint32_t words = (object.member_count + 31) / 32 + 1;

        if (!GROW(grammar, members, member_count, object.member_count) ||
            !GROW(grammar, needs, need_count, 2 * object.need_count) ||
            !GROW(grammar, objects, object_count, 1))
                return;
        assert(rule_of(grammar, rule)->form == RULE_OPEN);
        object.rule = rule;
        object.members = grammar->member_count;
        object.needs = grammar->need_count;
        if (object.member_count)
                memcpy(grammar->members + object.members, members,
                       object.member_count * sizeof(*members));
        if (object.need_count)
                memcpy(grammar->needs + object.needs, needs,
                       2 * object.need_count * sizeof(*needs));
        grammar->member_count += object.member_count;
        grammar->need_count += 2 * object.need_count;
        if (grammar->register_words < words)
                grammar->register_words = words;
        rule_of(grammar, rule)->form = RULE_OBJECT;
        rule_of(grammar, rule)->first = grammar->object_count;
        grammar->objects[grammar->object_count++] = object;
}

static uint32_t add_lexeme(struct grammar *grammar, uint32_t term, bool is_tail)
{
        uint32_t lexeme = lexer_lexeme(&grammar->lexer, term, is_tail);

        if (lexeme == UINT32_MAX && !grammar->failed)
                grammar->failed = -ENOMEM;
        if (lexeme >= SYMBOL_END && !grammar->failed)
                grammar->failed = -E2BIG;
        return grammar->failed ? 0 : lexeme;
}

uint32_t grammar_lexeme(struct grammar *grammar, uint32_t term)
{
        return add_lexeme(grammar, term, false);
}

uint32_t grammar_tail(struct grammar *grammar, uint32_t term)
{
        return add_lexeme(grammar, term, true);
}

void grammar_token_bytes(uint32_t token, uint8_t ret_bytes[TOKEN_BYTES])
{
        ret_bytes[0] = TOKEN_LEAD;
        for (unsigned i = 1; i < TOKEN_BYTES; i++, token >>= 6)
                ret_bytes[i] = 0x80 | (token & 63);
}

uint32_t grammar_token(struct grammar *grammar, uint32_t token)
{
        uint8_t bytes[TOKEN_BYTES];

        grammar_token_bytes(token, bytes);
        return grammar_lexeme(grammar, regex_literal(grammar->pool, (char *)bytes, TOKEN_BYTES));
}

bool grammar_is_crowded(const struct grammar *grammar)
{
        const struct lexer *lexer = &grammar->lexer;

        return lexer->state_count > lexer->states_max / 2 ||
               lexer->part_count > lexer->parts_max / 2 || regex_is_crowded(grammar->pool);
}

size_t grammar_bytes(const struct grammar *grammar)
{
        const struct lexer *lexer = &grammar->lexer;
        size_t symbols = (size_t)grammar->symbol_count * sizeof(uint32_t) +
                         grammar->rule_count * sizeof(struct grammar_rule) +
                         grammar->sequence_count * sizeof(struct grammar_sequence) +
                         grammar->list_count * sizeof(struct grammar_list) +
                         grammar->object_count * sizeof(struct grammar_object) +
                         grammar->member_count * sizeof(struct grammar_member);
        size_t states = (size_t)lexer->states_max *
                        (sizeof(struct lexer_state) + lexer->classes * sizeof(uint32_t));

        return sizeof(*grammar) + symbols + states +
               (size_t)lexer->parts_max * (sizeof(struct lexer_part) + sizeof(uint32_t)) +
               regex_pool_bytes(grammar->pool);
}
