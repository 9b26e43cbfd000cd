/* The tree of a regular expression. */
#ifndef DAEMON_TEXT_EXPRESSION_TREE_H
#define DAEMON_TEXT_EXPRESSION_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text/expression/charset.h"

#define TREE_NONE            UINT32_MAX
#define TREE_PATTERN_MAX     16384u /* bytes */
#define TREE_RANGES_MAX      131072u
#define TREE_DEPTH_MAX       64u
#define TREE_QUANTIFIERS_MAX 8u    /* one behind another */
#define TREE_REPEATS_MAX     1000u /* {n,m}: the largest number */
#define TREE_LOOKS_MAX       3u

enum node_kind {
        NODE_SET,    /* one character of `set` */
        NODE_ROW,    /* its children one after another */
        NODE_CHOICE, /* of its children, the first that matches */
        NODE_REPEAT, /* `least` to `most` times its child; most TREE_NONE: any number */
        NODE_HERE,   /* a condition on this place, see enum place_kind */
};

/* Conditions on a place.  At the end of the text there is no next character. */
enum place_kind {
        PLACE_NEXT, /* the next character is in `set` */
        PLACE_LAST, /* the last character is in `set` */
        PLACE_BEGIN,
        PLACE_END,
        PLACE_LINE_BEGIN, /* at the begin, or behind a newline unless at the end */
        PLACE_LINE_END,   /* at the end, or before a newline */
        PLACE_WORD,       /* of the last and the next character, one is in `set` */
        PLACE_LOOK,       /* the look `look` matches from here on */
};

struct node {
        uint8_t kind, place;
        bool lazy;
        bool inverted; /* NODE_HERE: the condition does not hold */
        uint32_t set, look;
        uint32_t least, most;
        uint32_t child, next; /* its last child; the child of its parent before it */
};

struct tree {
        struct node *nodes;
        struct charset *sets;
        uint32_t node_count, node_capacity;
        uint32_t set_count, set_capacity;
        uint32_t range_count; /* of all sets */
        uint32_t root;
        /* Looks ahead of more than one character; one refers to earlier ones only. */
        uint32_t looks[TREE_LOOKS_MAX];
        uint32_t look_count;
};

void tree_deinit(struct tree *tree); /* all zero is fine */

#endif
