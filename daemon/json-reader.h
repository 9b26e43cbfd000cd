/*
 * The JSON parser: one walk over the text.
 *
 * Only daemon/json.c calls it, and it does so twice: once to count and once to fill.
 *
 * Nodes are stored in the order of the text, so the first child of a node is the next node.  `next`
 * skips a node's own children and leads to its sibling.  Strings, keys and the text of numbers are
 * stored in one piece of memory.  Each has its length (32 bits) in front and a NUL after it.
 */
#ifndef DAEMON_JSON_READER_H
#define DAEMON_JSON_READER_H

#include "daemon/json.h"

struct node {
        uint32_t next;
        uint32_t key;   /* offset in strings; JSON_NONE: the node is not in an object */
        uint32_t value; /* offset in strings; true or false; or the number of children */
        uint8_t kind;
};

struct json {
        struct node *nodes;
        char *strings;
        uint32_t node_count, string_bytes;
};

enum expected {
        EXPECT_VALUE,
        EXPECT_FIRST, /* a value or a key, or the end of the container just opened */
        EXPECT_KEY,
        EXPECT_MORE, /* a comma, or the end of the open container */
        EXPECT_NOTHING,
};

struct level {
        uint32_t node, last; /* last: the newest child, or JSON_NONE */
        char end;
};

struct parser {
        const char *text;
        size_t bytes, at;
        struct json *json; /* NULL in the first pass, which only counts */
        uint32_t node_count, nodes_max, string_bytes;
        uint32_t key; /* key of the next value; at first JSON_NONE */
        enum expected expected;
        struct level levels[JSON_DEPTH_MAX];
        unsigned depth;
        char *why;
        size_t why_bytes;
};

/* 0, or -EINVAL and *p->why.  On success node_count and string_bytes have the totals. */
int json_walk(struct parser *p);

#endif
