/*
 * The reader of JSON: one walk over the text.
 *
 * daemon/json.c makes it twice; nobody else calls it.
 *
 * Nodes lie in the order of the text, so the first child of a node is the one
 * behind it; `next` leads over a child's own children to its sibling.  Strings,
 * keys and the text of numbers lie in one piece of memory, each behind its length
 * of 32 bits and with a NUL behind it.
 */
#ifndef DAEMON_JSON_READER_H
#define DAEMON_JSON_READER_H

#include "daemon/json.h"

struct node {
        uint32_t next;
        uint32_t key;   /* where in strings; JSON_NONE: it stands in no object */
        uint32_t value; /* where in strings; true or false; how many children */
        uint8_t kind;
};

struct json {
        struct node *nodes;
        char *strings;
        uint32_t node_count, string_bytes;
};

enum expected {
        EXPECT_VALUE,
        EXPECT_FIRST, /* a value or a key, or the end of what has just been opened */
        EXPECT_KEY,
        EXPECT_MORE, /* a comma, or the end of what is open */
        EXPECT_NOTHING,
};

struct level {
        uint32_t node, last; /* last: its youngest child, or JSON_NONE */
        char end;
};

struct parser {
        const char *text;
        size_t bytes, at;
        struct json *json; /* NULL in the first pass, which only counts */
        uint32_t node_count, nodes_max, string_bytes;
        uint32_t key; /* of the next value; at first JSON_NONE */
        enum expected expected;
        struct level levels[JSON_DEPTH_MAX];
        unsigned depth;
        char *why;
        size_t why_bytes;
};

/* 0, or -EINVAL and *p->why.  node_count and string_bytes then say how much there is. */
int json_walk(struct parser *p);

#endif
