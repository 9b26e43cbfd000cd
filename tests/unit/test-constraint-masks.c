/*
 * Masks of random grammars, in every state of random walks, compared with a recogniser of another
 * kind (span-recogniser.h) that tries each of 300 tokens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/gbnf.h"
#include "daemon/constraint/matcher.h"
#include "tests/unit/span-recogniser.h"

#define TOKENS   300
#define GRAMMARS 80
#define STEPS    9

static uint64_t random_state;

static unsigned random_below(unsigned bound)
{
        random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
        return (random_state >> 33) % bound;
}

static char token_bytes[TOKENS][5];

/* Texts of 1 to 4 letters; some are equal, as in real vocabularies. */
static struct token_trie *random_vocabulary(void)
{
        struct token_text texts[TOKENS];

        for (int i = 0; i < TOKENS; i++) {
                unsigned count = i < 4 ? 1 : 1 + random_below(4);

                memset(token_bytes[i], 0, sizeof(token_bytes[i]));
                for (unsigned j = 0; j < count; j++)
                        token_bytes[i][j] = i < 4 ? "abc\""[i] : "abc\""[random_below(4)];
                texts[i] = (struct token_text){ token_bytes[i], count };
        }
        return token_trie_new(texts, TOKENS, NULL, 0);
}

static int random_node(struct span_grammar *grammar, int depth)
{
        int index = grammar->node_count++;
        struct span_node node = { 0 };
        unsigned kind = depth == 0 || grammar->node_count > 70 ? 0 : random_below(10);

        if (kind < 3) {
                node.kind = random_below(3) || depth == 0 ? SPAN_SET : SPAN_RULE;
                node.rule = random_below(grammar->rule_count);
                for (const char *c = "abc\""; *c; c++)
                        if (random_below(2))
                                node.bytes[strlen(node.bytes)] = *c;
                if (!node.bytes[0])
                        node.bytes[0] = 'a';
        } else if (kind < 9) {
                node.kind = kind < 6 ? SPAN_SEQUENCE : SPAN_CHOICE;
                node.count = 1 + random_below(3);
                if (node.kind == SPAN_SEQUENCE && random_below(8) == 0)
                        node.count = 0;
                for (int i = 0; i < node.count; i++)
                        node.children[i] = random_node(grammar, depth - 1);
        } else {
                node.kind = SPAN_REPEAT;
                node.count = 1;
                node.min = random_below(3);
                node.max = random_below(2) ? SPAN_NO_MAX : node.min + (int)random_below(3);
                node.children[0] = random_node(grammar, depth - 1);
        }
        grammar->nodes[index] = node;
        return index;
}

static void random_grammar(struct span_grammar *grammar)
{
        do {
                memset(grammar, 0, sizeof(*grammar));
                grammar->rule_count = 1 + random_below(4);
                for (int i = 0; i < grammar->rule_count; i++)
                        grammar->rules[i] = random_node(grammar, 3);
        } while (!span_prepare(grammar));
}

static void print_node(FILE *to, const struct span_grammar *grammar, int index)
{
        const struct span_node *node = &grammar->nodes[index];

        switch (node->kind) {
        case SPAN_SET:
                fprintf(to, "[%s]", node->bytes);
                break;
        case SPAN_SEQUENCE:
        case SPAN_CHOICE:
                fputc('(', to);
                for (int i = 0; i < node->count; i++) {
                        fputs(i == 0 ? "" : node->kind == SPAN_CHOICE ? " | " : " ", to);
                        print_node(to, grammar, node->children[i]);
                }
                fputc(')', to);
                break;
        case SPAN_REPEAT:
                print_node(to, grammar, node->children[0]);
                if (node->max == SPAN_NO_MAX)
                        fprintf(to, "{%d,}", node->min);
                else
                        fprintf(to, "{%d,%d}", node->min, node->max);
                break;
        case SPAN_RULE:
                fputs(node->rule ? "" : "root", to);
                if (node->rule)
                        fprintf(to, "rule-%d", node->rule);
        }
}

static char *print_grammar(const struct span_grammar *grammar)
{
        char *text = NULL;
        size_t bytes;
        FILE *to = open_memstream(&text, &bytes);

        for (int i = 0; i < grammar->rule_count; i++) {
                if (i)
                        fprintf(to, "rule-%d ::= ", i);
                else
                        fputs("root ::= ", to);
                print_node(to, grammar, grammar->rules[i]);
                fputc('\n', to);
        }
        fclose(to);
        return text;
}

/* Compares the mask with the recogniser's; returns a legal token, or -1. */
static int check_mask(struct span_grammar *grammar, struct matcher *matcher, const char *gbnf,
                      const char *text)
{
        uint32_t bits[(TOKENS + 31) / 32];
        char longer[SPAN_TEXT + 8];
        bool whole;
        bool begins[256]; /* this letter may come next */
        int legal[TOKENS], count = 0;

        span_accepts(grammar, text, strlen(text), &whole);
        if (whole != matcher_can_end(matcher))
                fail_msg("behind '%s' of\n%s: can end: %d, not %d", text, gbnf, !whole, whole);
        if (matcher_mask(matcher, bits) != MATCHER_FINE)
                fail_msg("behind '%s' of\n%s: %s", text, gbnf, matcher_why(matcher));
        for (int i = 0; i < TOKENS; i++) {
                bool mask = bits[i / 32] >> (i % 32) & 1, wanted;

                snprintf(longer, sizeof(longer), "%.*s%.4s", SPAN_TEXT, text, token_bytes[i]);
                wanted = (i < 4 || begins[(int)token_bytes[i][0]]) &&
                         span_accepts(grammar, longer, strlen(longer), &whole);
                if (i < 4) /* the first tokens are the letters */
                        begins[(int)token_bytes[i][0]] = wanted;
                if (mask != wanted)
                        fail_msg("'%s' behind '%s' of\n%s: %d, not %d", token_bytes[i], text, gbnf,
                                 mask, wanted);
                if (wanted)
                        legal[count++] = i;
        }
        assert_int_equal(matcher_must_end(matcher), matcher_can_end(matcher) && count == 0);
        return count ? legal[random_below(count)] : -1;
}

/* Takes tokens, and sometimes goes back over some of them. */
static void walk(struct span_grammar *grammar, struct matcher *matcher, const char *gbnf)
{
        char text[SPAN_TEXT + 1] = "";
        size_t behind[STEPS + 1] = { 0 };
        int taken = 0;

        for (int step = 0; step < STEPS; step++) {
                int token = check_mask(grammar, matcher, gbnf, text);
                int illegal = random_below(TOKENS);
                uint32_t bits[(TOKENS + 31) / 32];

                assert_int_equal(matcher_mask(matcher, bits), MATCHER_FINE);
                if (!(bits[illegal / 32] >> (illegal % 32) & 1))
                        assert_int_equal(matcher_take(matcher, illegal), MATCHER_ILLEGAL);
                if ((token < 0 || random_below(3) == 0) && taken) {
                        int back = 1 + random_below(taken);

                        matcher_back(matcher, back);
                        taken -= back;
                        text[behind[taken]] = 0;
                        continue;
                }
                if (token < 0 || strlen(text) + 8 > SPAN_TEXT)
                        return;
                assert_int_equal(matcher_take(matcher, token), MATCHER_FINE);
                strcat(text, token_bytes[token]);
                behind[++taken] = strlen(text);
        }
}

static void masks_equal_those_of_another_recogniser(void **state)
{
        struct grammar_limits limits = grammar_limits_default;
        struct matcher_limits small = matcher_limits_default;
        struct span_grammar *spans = calloc(1, sizeof(*spans));
        struct token_trie *trie;

        (void)state;
        limits.terms = 50000;
        limits.states = 5000;
        small.items = 6000;
        random_state = 7;
        trie = random_vocabulary();
        for (int i = 0; i < GRAMMARS; i++) {
                struct grammar *grammar;
                struct matcher *matcher;
                char why[256], *gbnf;

                random_grammar(spans);
                gbnf = print_grammar(spans);
                if (gbnf_compile(gbnf, strlen(gbnf), &limits, &grammar, why, sizeof(why)))
                        fail_msg("%s: %s", gbnf, why);
                matcher = matcher_new(grammar, trie, &small);
                assert_non_null(matcher);
                matcher_reset(matcher);
                walk(spans, matcher, gbnf);
                matcher_reset(matcher);
                walk(spans, matcher, gbnf);
                matcher_free(matcher);
                grammar_free(grammar);
                free(gbnf);
        }
        token_trie_free(trie);
        free(spans);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(masks_equal_those_of_another_recogniser),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
