#include "daemon/constraint/gbnf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/gbnf-tree.h"

#define SEQUENCE_MAX 4096u /* symbols of one sequence */

struct gbnf_compiler {
        struct grammar *grammar;
        const struct gbnf_tree *tree;
        uint32_t *terms;   /* of each rule that is regular; REGEX_UNKNOWN: not (yet) */
        uint32_t *symbols; /* of each rule that is not */
        uint32_t *stack;   /* symbols of sequences that are being made */
        uint32_t stack_count;
};

#define REGEX_UNKNOWN UINT32_MAX

/*
 * The expression of a node, or UNKNOWN if a rule in it has none.  The recursion is as deep as
 * groups are nested.
 */
static uint32_t term_of(struct gbnf_compiler *compiler, uint32_t at)
{
        const struct gbnf_node *node = &compiler->tree->nodes[at];
        struct regex_pool *pool = compiler->grammar->pool;
        uint32_t term = node->kind == GBNF_CHOICE ? REGEX_NONE : REGEX_EMPTY, child;

        switch (node->kind) {
        case GBNF_TERM:
                return node->a;
        case GBNF_RULE:
                return compiler->terms[node->a];
        case GBNF_REPEAT:
                child = term_of(compiler, node->a);
                return child == REGEX_UNKNOWN ? child
                                              : regex_repeat(pool, child, node->min, node->max);
        case GBNF_SEQUENCE:
        case GBNF_CHOICE:
                for (uint32_t i = node->a; i != GBNF_NONE; i = compiler->tree->nodes[i].next) {
                        child = term_of(compiler, i);
                        if (child == REGEX_UNKNOWN)
                                return child;
                        term = node->kind == GBNF_CHOICE ? regex_or2(pool, term, child)
                                                         : regex_concat(pool, term, child);
                }
        }
        return term;
}

/* Rules whose rules are all regular are regular; those in circles are never reached. */
static void find_regular(struct gbnf_compiler *compiler)
{
        const struct gbnf_tree *tree = compiler->tree;

        for (bool changed = true;
             changed && regex_burn(compiler->grammar->pool, tree->node_count);) {
                changed = false;
                for (uint32_t i = tree->rule_count; i-- > 0;) {
                        if (compiler->terms[i] != REGEX_UNKNOWN)
                                continue;
                        compiler->terms[i] = term_of(compiler, tree->rules[i].body);
                        changed |= compiler->terms[i] != REGEX_UNKNOWN;
                }
        }
}

static uint32_t symbol_of(struct gbnf_compiler *compiler, uint32_t at);

static void push(struct gbnf_compiler *compiler, uint32_t symbol)
{
        if (compiler->stack_count < SEQUENCE_MAX)
                compiler->stack[compiler->stack_count++] = symbol;
        else if (!compiler->grammar->failed)
                compiler->grammar->failed = -E2BIG;
}

/* Adds the node as an alternative.  Neighbours that are regular become one lexeme. */
static void add_sequence(struct gbnf_compiler *compiler, uint32_t rule, uint32_t at)
{
        const struct gbnf_tree *tree = compiler->tree;
        struct regex_pool *pool = compiler->grammar->pool;
        uint32_t base = compiler->stack_count, term = REGEX_EMPTY;
        bool is_sequence = tree->nodes[at].kind == GBNF_SEQUENCE;

        for (uint32_t i = is_sequence ? tree->nodes[at].a : at; i != GBNF_NONE;
             i = is_sequence ? tree->nodes[i].next : GBNF_NONE) {
                uint32_t next = term_of(compiler, i);

                if (next != REGEX_UNKNOWN) {
                        term = regex_concat(pool, term, next);
                        continue;
                }
                if (term != REGEX_EMPTY)
                        push(compiler, grammar_lexeme(compiler->grammar, term));
                term = REGEX_EMPTY;
                push(compiler, symbol_of(compiler, i));
        }
        if (term != REGEX_EMPTY)
                push(compiler, grammar_lexeme(compiler->grammar, term));
        grammar_add(compiler->grammar, rule, compiler->stack + base, compiler->stack_count - base);
        compiler->stack_count = base;
}

static void define(struct gbnf_compiler *compiler, uint32_t rule, uint32_t at)
{
        const struct gbnf_node *node = &compiler->tree->nodes[at];

        if (compiler->grammar->failed)
                return;
        if (node->kind == GBNF_CHOICE) {
                for (uint32_t i = node->a; i != GBNF_NONE; i = compiler->tree->nodes[i].next)
                        add_sequence(compiler, rule, i);
        } else if (node->kind == GBNF_REPEAT && node->max > 0) {
                uint32_t rest = symbol_of(compiler, node->a);

                grammar_set_list(compiler->grammar, rule,
                                 (struct grammar_list){ .rest = rest,
                                                        .separator = SYMBOL_NONE,
                                                        .min = node->min,
                                                        .max = node->max },
                                 NULL);
        } else if (node->kind == GBNF_REPEAT) {
                grammar_add(compiler->grammar, rule, NULL, 0);
        } else {
                add_sequence(compiler, rule, at);
        }
}

static uint32_t symbol_of(struct gbnf_compiler *compiler, uint32_t at)
{
        const struct gbnf_node *node = &compiler->tree->nodes[at];
        uint32_t term = term_of(compiler, at), rule;

        if (compiler->grammar->failed)
                return 0;
        if (term != REGEX_UNKNOWN)
                return grammar_lexeme(compiler->grammar, term);
        if (node->kind == GBNF_RULE)
                return compiler->symbols[node->a];
        rule = grammar_rule(compiler->grammar);
        define(compiler, rule, at);
        return rule;
}

static uint32_t compile(struct gbnf_compiler *compiler)
{
        const struct gbnf_tree *tree = compiler->tree;

        for (uint32_t i = 0; i < tree->rule_count; i++)
                compiler->terms[i] = REGEX_UNKNOWN;
        find_regular(compiler);
        if (compiler->terms[tree->root] != REGEX_UNKNOWN)
                return grammar_lexeme(compiler->grammar, compiler->terms[tree->root]);
        for (uint32_t i = 0; i < tree->rule_count; i++)
                if (compiler->terms[i] == REGEX_UNKNOWN)
                        compiler->symbols[i] = grammar_rule(compiler->grammar);
        for (uint32_t i = 0; i < tree->rule_count; i++)
                if (compiler->terms[i] == REGEX_UNKNOWN)
                        define(compiler, compiler->symbols[i], tree->rules[i].body);
        return compiler->symbols[tree->root];
}

static int compile_tree(struct grammar *grammar, const struct gbnf_tree *tree, uint32_t *ret_symbol,
                        char *why, size_t why_bytes)
{
        struct gbnf_compiler compiler = { .grammar = grammar, .tree = tree };
        int r = 0;

        compiler.terms = calloc(tree->rule_count + 1, sizeof(*compiler.terms));
        compiler.symbols = calloc(tree->rule_count + 1, sizeof(*compiler.symbols));
        compiler.stack = calloc(SEQUENCE_MAX, sizeof(*compiler.stack));
        if (compiler.terms && compiler.symbols && compiler.stack)
                *ret_symbol = compile(&compiler);
        else
                r = error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        free(compiler.terms);
        free(compiler.symbols);
        free(compiler.stack);
        return error_pass(r);
}

int gbnf_add(struct grammar *grammar, const char *text, size_t bytes, uint32_t *ret_symbol,
             char *why, size_t why_bytes)
{
        struct gbnf_tree tree = { 0 };
        int r = gbnf_tree_read(&tree, grammar->pool, text, bytes, why, why_bytes);

        if (r == -ENOMEM)
                errtext_set(why, why_bytes, r, "out of memory");
        if (r == 0)
                r = compile_tree(grammar, &tree, ret_symbol, why, why_bytes);
        gbnf_tree_deinit(&tree);
        return error_pass(r);
}

int gbnf_compile(const char *text, size_t bytes, const struct grammar_limits *limits,
                 struct grammar **ret_grammar, char *why, size_t why_bytes)
{
        struct grammar *grammar = grammar_new(limits);
        uint32_t root = SYMBOL_NONE;
        int r;

        if (!grammar)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        r = gbnf_add(grammar, text, bytes, &root, why, why_bytes);
        return error_pass(grammar_finish(grammar, r, root, ret_grammar, why, why_bytes));
}
