/* What grammar_seal() finds out about rules: which may be empty, and which match anything. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/grammar.h"

static bool nullable(const struct grammar *grammar, uint32_t symbol)
{
        if (symbol & SYMBOL_RULE)
                return grammar->rules[symbol & ~SYMBOL_RULE].nullable;
        return regex_nullable(grammar->pool, grammar->lexer.lexemes[symbol].term);
}

static bool productive(const struct grammar *grammar, uint32_t symbol)
{
        if (symbol == SYMBOL_NONE)
                return false;
        if (symbol & SYMBOL_RULE)
                return grammar->rules[symbol & ~SYMBOL_RULE].productive;
        return regex_alive(grammar->pool, grammar->lexer.lexemes[symbol].term);
}

static bool all(const struct grammar *grammar, uint32_t symbols,
                bool (*is)(const struct grammar *, uint32_t))
{
        for (; !(grammar->symbols[symbols] & SYMBOL_END); symbols++)
                if (!is(grammar, grammar->symbols[symbols]))
                        return false;
        return true;
}

static bool any_sequence(const struct grammar *grammar, const struct grammar_rule *rule,
                         bool (*is)(const struct grammar *, uint32_t))
{
        for (uint32_t at = rule->first; at != SYMBOL_NONE; at = grammar->sequences[at].next)
                if (all(grammar, grammar->sequences[at].symbols, is))
                        return true;
        return false;
}

/* How many elements of the prefix match anything: a list ends before the first that does not. */
static uint32_t list_prefix(const struct grammar *grammar, const struct grammar_list *list)
{
        uint32_t at = 0;

        while (at < list->prefix_count && productive(grammar, grammar->symbols[list->prefix + at]))
                at++;
        return at;
}

static bool list_productive(const struct grammar *grammar, const struct grammar_list *list)
{
        uint32_t prefix = list_prefix(grammar, list);

        if (list->min <= prefix)
                return true;
        return prefix == list->prefix_count && list->rest != SYMBOL_NONE &&
               productive(grammar, list->rest);
}

static bool object_productive(const struct grammar *grammar, const struct grammar_object *object)
{
        uint32_t possible = 0, required = 0;

        for (uint32_t i = 0; i < object->member_count; i++) {
                const struct grammar_member *member = &grammar->members[object->members + i];
                bool can = productive(grammar, member->value) &&
                           productive(grammar, member->first_key);

                if (member->required && !can)
                        return false;
                required += member->required;
                if (can && member->repeats)
                        possible = REGEX_FOREVER;
                else if (can && possible != REGEX_FOREVER)
                        possible++;
        }
        return possible >= object->min && required <= object->max;
}

static bool rule_productive(const struct grammar *grammar, const struct grammar_rule *rule)
{
        switch (rule->form) {
        case RULE_OPEN:
                return false;
        case RULE_ALTERNATIVES:
                return any_sequence(grammar, rule, productive);
        case RULE_LIST:
                return list_productive(grammar, &grammar->lists[rule->first]);
        case RULE_OBJECT:
                return object_productive(grammar, &grammar->objects[rule->first]);
        }
        return false;
}

static bool rule_nullable(const struct grammar *grammar, const struct grammar_rule *rule)
{
        switch (rule->form) {
        case RULE_OPEN:
                return false;
        case RULE_ALTERNATIVES:
                return any_sequence(grammar, rule, nullable);
        case RULE_LIST:
                return grammar->lists[rule->first].min == 0 ||
                       grammar->lists[rule->first].skips_empty;
        case RULE_OBJECT: {
                const struct grammar_object *object = &grammar->objects[rule->first];

                for (uint32_t i = 0; i < object->member_count; i++)
                        if (grammar->members[object->members + i].required)
                                return false;
                return object->min == 0;
        }
        }
        return false;
}

/* Repeats until nothing changes: a rule that is true stays so. */
static bool settle(struct grammar *grammar, bool nullables)
{
        for (bool changed = true; changed;) {
                changed = false;
                if (!regex_burn(grammar->pool, grammar->rule_count + grammar->symbol_count))
                        return false;
                for (uint32_t i = grammar->rule_count; i-- > 0;) {
                        struct grammar_rule *rule = &grammar->rules[i];
                        bool *mark = nullables ? &rule->nullable : &rule->productive;

                        if (*mark)
                                continue;
                        *mark = nullables ? rule_nullable(grammar, rule)
                                          : rule_productive(grammar, rule);
                        changed |= *mark;
                }
                for (uint32_t i = 0; i < grammar->list_count && nullables; i++) {
                        struct grammar_list *list = &grammar->lists[i];
                        bool empty = list->rest != SYMBOL_NONE && nullable(grammar, list->rest);

                        assert(!empty ||
                               (list->prefix_count == 0 && list->separator == SYMBOL_NONE));
                        changed |= empty && !list->skips_empty;
                        list->skips_empty |= empty;
                }
        }
        return true;
}

/* Nothing that the matcher follows may lead to a place without a way on. */
static void drop_unproductive(struct grammar *grammar)
{
        for (uint32_t i = 0; i < grammar->rule_count; i++) {
                uint32_t *link = &grammar->rules[i].first;

                if (grammar->rules[i].form != RULE_ALTERNATIVES)
                        continue;
                while (*link != SYMBOL_NONE) {
                        struct grammar_sequence *sequence = &grammar->sequences[*link];

                        if (all(grammar, sequence->symbols, productive))
                                link = &sequence->next;
                        else
                                *link = sequence->next;
                }
        }
        for (uint32_t i = 0; i < grammar->list_count; i++) {
                struct grammar_list *list = &grammar->lists[i];
                uint32_t prefix = list_prefix(grammar, list);

                if (prefix < list->prefix_count || list->rest == SYMBOL_NONE ||
                    !productive(grammar, list->rest)) {
                        list->prefix_count = prefix;
                        list->rest = SYMBOL_NONE;
                        list->max = list->max < prefix ? list->max : prefix;
                }
                if (list->skips_empty)
                        list->min = 0;
        }
        for (uint32_t i = 0; i < grammar->object_count; i++) {
                struct grammar_object *object = &grammar->objects[i];
                struct grammar_member *members = grammar->members + object->members;

                for (uint32_t j = 0; j < object->member_count; j++)
                        if (!productive(grammar, members[j].value) ||
                            !productive(grammar, members[j].first_key))
                                members[j].value = SYMBOL_NONE;
        }
}

static int spent(const struct grammar *grammar, char *why, size_t why_bytes)
{
        static const char *const sentence[] = {
                [REGEX_FINE] = "the grammar has more symbols than the limit",
                [REGEX_TERMS_SPENT] = "its expressions have more terms than the limit",
                [REGEX_FUEL_SPENT] = "it takes more work to compile than the limit",
                [REGEX_TOO_DEEP] = "its expressions are nested more deeply than the limit of 1000",
        };

        return error_raise(
                errtext_set(why, why_bytes, -E2BIG, "%s", sentence[regex_spent(grammar->pool)]));
}

int grammar_seal(struct grammar *grammar, uint32_t root, char *why, size_t why_bytes)
{
        int r;

        if (grammar->failed == -ENOMEM)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        if (grammar->failed || regex_spent(grammar->pool) != REGEX_FINE)
                return error_pass(spent(grammar, why, why_bytes));
        if (!(root & SYMBOL_RULE)) {
                uint32_t rule = grammar_rule(grammar);

                grammar_add(grammar, rule, &root, 1);
                return grammar_seal(grammar, rule, why, why_bytes);
        }
        grammar->root = root;
        if (!settle(grammar, true) || !settle(grammar, false) ||
            regex_spent(grammar->pool) != REGEX_FINE)
                return error_pass(spent(grammar, why, why_bytes));
        if (!productive(grammar, root))
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "no text can match: it asks for what it excludes"));
        drop_unproductive(grammar);
        r = lexer_seal(&grammar->lexer, grammar->limits.states);
        if (r < 0)
                errtext_set(why, why_bytes, r, "out of memory");
        regex_pool_limit(grammar->pool, grammar->limits.growth);
        return error_pass(r);
}

int grammar_finish(struct grammar *grammar, int r, uint32_t root, struct grammar **ret_grammar,
                   char *why, size_t why_bytes)
{
        if (r == 0)
                r = grammar_seal(grammar, root, why, why_bytes);
        if (r < 0)
                grammar_free(grammar);
        else
                *ret_grammar = grammar;
        return error_pass(r);
}
