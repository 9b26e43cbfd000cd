/*
 * A grammar in GBNF as a tree, between gbnf-reader.c and gbnf.c.
 *
 * A node's children are linked by `next`.  Rules are named by number.
 */
#ifndef CONSTRAINT_GBNF_TREE_H
#define CONSTRAINT_GBNF_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/regex-pool.h"

#define GBNF_NONE UINT32_MAX

enum gbnf_kind {
        GBNF_TERM,     /* a: an expression */
        GBNF_RULE,     /* a: its number */
        GBNF_SEQUENCE, /* a: the first child */
        GBNF_CHOICE,
        GBNF_REPEAT, /* a: the child, min, max */
};

struct gbnf_node {
        enum gbnf_kind kind;
        uint32_t a, next, min, max;
};

struct gbnf_rule {
        uint32_t name, name_bytes; /* in the text */
        uint32_t body;             /* GBNF_NONE: not defined yet */
        uint32_t line;             /* where it is named first */
};

struct gbnf_tree {
        struct gbnf_node *nodes;
        struct gbnf_rule *rules;
        uint32_t node_count, node_size, rule_count, root;
};

/* Returns 0, -EINVAL with a sentence, or -ENOMEM.  The tree is freed by gbnf_tree_deinit(). */
int gbnf_tree_read(struct gbnf_tree *tree, struct regex_pool *pool, const char *text, size_t bytes,
                   char *why, size_t why_bytes);
void gbnf_tree_deinit(struct gbnf_tree *tree);

#endif
