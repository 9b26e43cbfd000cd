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
#include "tests/unit/mask-walk.h"

#define GRAMMARS 80

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
        case SPAN_FREE: /* no grammar of this test has free text */
        case SPAN_UP_TO:
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
