/*
 * A node stands for the edge to it as well: the edge has the tokens of the text from `start` on,
 * `length` of them, or all behind it (LEAF).  The children of all nodes are in one table, by their
 * parent and the first token of their edge.
 *
 * The active point is `active_length` tokens behind active_node, on the edge that begins with the
 * token of the text at active_edge; it may be the end of that edge.
 */
#include "daemon/draft/suffix-tree.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define ROOT 0u
#define NONE UINT32_MAX
#define LEAF UINT32_MAX

struct node {
        uint32_t parent, start, length;
        uint32_t link;   /* the node without the first token of its text; of a leaf: nothing */
        uint32_t latest; /* the child that was made or used last; NONE: it has none */
};

struct suffix_tree {
        uint32_t made_for; /* tokens */
        uint32_t tokens_max, nodes_max, node_count;
        uint32_t from, count; /* the tokens [from, count) are in the tree */
        uint32_t active_node, active_edge, active_length;
        uint32_t rest; /* the tokens of the active point; the ends of the text that are no leaves */
        uint32_t table_mask;
        uint32_t *table; /* of nodes; NONE: empty */
        struct node *nodes;
};

/* Each token adds a leaf and a branch at most. */
static uint32_t nodes_max(uint32_t tokens_max)
{
        return 2 * tokens_max + 1;
}

/* A power of two, of which at most three quarters are used. */
static uint32_t table_size(uint32_t tokens_max)
{
        uint32_t size = 4;

        while (size / 4 * 3 < nodes_max(tokens_max))
                size *= 2;
        return size;
}

size_t suffix_tree_bytes(uint32_t tokens_max)
{
        return sizeof(struct suffix_tree) + nodes_max(tokens_max) * sizeof(struct node) +
               table_size(tokens_max) * sizeof(uint32_t);
}

static void clear(struct suffix_tree *tree, uint32_t from)
{
        tree->nodes[ROOT] = (struct node){ .parent = NONE, .link = ROOT, .latest = NONE };
        tree->node_count = 1;
        tree->from = tree->count = from;
        tree->active_node = ROOT;
        tree->active_edge = tree->active_length = tree->rest = 0;
        memset(tree->table, 0xFF, ((size_t)tree->table_mask + 1) * sizeof(*tree->table));
}

int suffix_tree_new(uint32_t tokens_max, struct suffix_tree **ret_tree)
{
        struct suffix_tree *tree = malloc(suffix_tree_bytes(tokens_max));

        assert(tokens_max && tokens_max < UINT32_MAX / 8);
        if (!tree)
                return error_raise(-ENOMEM);
        tree->made_for = tokens_max;
        tree->nodes = (struct node *)(tree + 1);
        tree->table = (uint32_t *)(tree->nodes + nodes_max(tokens_max));
        *ret_tree = tree;
        return 0;
}

/* A small text uses a small part of the table, so that little is cleared. */
void suffix_tree_begin(struct suffix_tree *tree, uint32_t tokens_max)
{
        assert(tokens_max && tokens_max <= tree->made_for);
        tree->tokens_max = tokens_max;
        tree->nodes_max = nodes_max(tokens_max);
        tree->table_mask = table_size(tokens_max) - 1;
        clear(tree, 0);
}

struct suffix_tree *suffix_tree_free(struct suffix_tree *tree)
{
        free(tree);
        return NULL;
}

/* ---- children ---- */

static uint32_t place_of(const struct suffix_tree *tree, uint32_t parent, uint32_t token)
{
        uint64_t key = ((uint64_t)parent << 32 | token) * UINT64_C(0x9E3779B97F4A7C15);

        return (uint32_t)(key >> 32) & tree->table_mask;
}

/* The place of this child in the table, or where it would be. */
static uint32_t find(const struct suffix_tree *tree, const uint32_t *text, uint32_t parent,
                     uint32_t token)
{
        uint32_t at = place_of(tree, parent, token), child;

        while ((child = tree->table[at]) != NONE &&
               (tree->nodes[child].parent != parent || text[tree->nodes[child].start] != token))
                at = (at + 1) & tree->table_mask;
        return at;
}

/* Gives its parent a node: in a new place, or in that of the node whose edge it takes a part of. */
static void attach(struct suffix_tree *tree, const uint32_t *text, uint32_t child)
{
        const struct node *node = &tree->nodes[child];

        tree->table[find(tree, text, node->parent, text[node->start])] = child;
        tree->nodes[node->parent].latest = child;
}

static uint32_t add_node(struct suffix_tree *tree, uint32_t parent, uint32_t start, uint32_t length)
{
        assert(tree->node_count < tree->nodes_max);
        tree->nodes[tree->node_count] = (struct node){
                .parent = parent, .start = start, .length = length, .link = ROOT, .latest = NONE
        };
        return tree->node_count++;
}

/* ---- growing ---- */

static bool ends_within(const struct suffix_tree *tree, uint32_t child)
{
        return tree->active_length < tree->nodes[child].length;
}

/* The active point is behind this edge: it begins at the node. */
static void walk(struct suffix_tree *tree, uint32_t child)
{
        uint32_t length = tree->nodes[child].length;

        tree->nodes[tree->active_node].latest = child;
        tree->active_node = child;
        tree->active_edge += length;
        tree->active_length -= length;
}

/* A node at the active point, within the edge of this child. */
static uint32_t split(struct suffix_tree *tree, const uint32_t *text, uint32_t child)
{
        uint32_t parent = tree->active_node, length = tree->active_length;
        uint32_t branch = add_node(tree, parent, tree->nodes[child].start, length);
        struct node *rest = &tree->nodes[child];

        attach(tree, text, branch);
        rest->parent = branch;
        rest->start += length;
        rest->length -= rest->length == LEAF ? 0 : length;
        attach(tree, text, child);
        return branch;
}

static void add_leaf(struct suffix_tree *tree, const uint32_t *text, uint32_t parent, uint32_t at)
{
        attach(tree, text, add_node(tree, parent, at, LEAF));
}

/* The next shorter end of the text. */
static void shorten(struct suffix_tree *tree, uint32_t at)
{
        tree->rest--;
        if (tree->active_node != ROOT) {
                tree->active_node = tree->nodes[tree->active_node].link;
        } else if (tree->active_length) {
                tree->active_length--;
                tree->active_edge = at + 1 - tree->rest;
        }
}

static void link_to(struct suffix_tree *tree, uint32_t *branch, uint32_t node)
{
        if (*branch != NONE)
                tree->nodes[*branch].link = node;
        *branch = NONE;
}

static void add_token(struct suffix_tree *tree, const uint32_t *text, uint32_t at)
{
        uint32_t branch = NONE; /* made for the end before, without its link */

        for (tree->rest++; tree->rest; shorten(tree, at)) {
                uint32_t child, made;

                for (;;) {
                        if (!tree->active_length)
                                tree->active_edge = at;
                        child = tree->table[find(tree, text, tree->active_node,
                                                 text[tree->active_edge])];
                        if (child == NONE || ends_within(tree, child))
                                break;
                        walk(tree, child);
                }
                if (child == NONE) {
                        link_to(tree, &branch, tree->active_node);
                        add_leaf(tree, text, tree->active_node, at);
                        continue;
                }
                if (text[tree->nodes[child].start + tree->active_length] == text[at]) {
                        link_to(tree, &branch, tree->active_node);
                        tree->nodes[tree->active_node].latest = child;
                        tree->active_length++;
                        return;
                }
                made = split(tree, text, child);
                add_leaf(tree, text, made, at);
                link_to(tree, &branch, made);
                branch = made;
        }
}

uint32_t suffix_tree_add(struct suffix_tree *tree, const uint32_t *text, uint32_t count,
                         uint32_t most)
{
        assert(count >= tree->count);
        if (count - tree->from > tree->tokens_max)
                clear(tree, count - (tree->tokens_max + 1) / 2);
        for (; tree->count < count && most; most--)
                add_token(tree, text, tree->count++);
        return count - tree->count;
}

/* ---- drafts ---- */

uint32_t suffix_tree_match(const struct suffix_tree *tree)
{
        return tree->rest;
}

uint32_t suffix_tree_draft(struct suffix_tree *tree, const uint32_t *text, uint32_t most,
                           uint32_t *ret_tokens)
{
        uint32_t count = 0, node = tree->active_node, behind = tree->active_length, child;

        if (!tree->rest)
                return 0;
        child = behind ? tree->table[find(tree, text, node, text[tree->active_edge])] : NONE;
        while (count < most) {
                uint32_t at;

                if (child == NONE || behind == tree->nodes[child].length) {
                        child = tree->nodes[child == NONE ? node : child].latest;
                        behind = 0;
                }
                /* Behind the text comes the draft itself: what repeats may go on repeating. */
                at = tree->nodes[child].start + behind++;
                ret_tokens[count++] = at < tree->count ? text[at] : ret_tokens[at - tree->count];
        }
        return count;
}
