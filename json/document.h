/*
 * A JSON document in memory: one array of nodes, in the order of the text.
 *
 * A node is a number: 0 is the root, and JSON_NONE is no node.  Every getter accepts JSON_NONE as
 * "absent", so a caller can follow a path of members without a check at each step.  A document is
 * read-only after json_parse() (json/reader.h); then any thread may use it.  A node takes 16 bytes.
 * A string, a number or a key takes 5 bytes more than its text.
 *
 * Looking up a key walks the whole object.  A caller that wants all members of a large object
 * should walk it once.
 */
#ifndef JSON_DOCUMENT_H
#define JSON_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_NONE UINT32_MAX

enum json_kind {
        JSON_NULL,
        JSON_BOOL,
        JSON_NUMBER,
        JSON_STRING,
        JSON_ARRAY,
        JSON_OBJECT,
        JSON_ABSENT, /* the kind of JSON_NONE */
};

/*
 * The first child of a node is the next node.  `next` skips a node's own children and leads to its
 * sibling.
 */
struct json_node {
        uint32_t next;
        uint32_t key;   /* offset in strings; JSON_NONE: the node is not in an object */
        uint32_t value; /* offset in strings; true or false; or the number of children */
        uint8_t kind;
};

/*
 * Only document.c and reader.c use the members.  `strings` has the strings, the keys and the text
 * of numbers.  Each has its length (32 bits) in front and a NUL after it.
 */
struct json_document {
        struct json_node *nodes;
        char *strings;
        uint32_t node_count, string_bytes;
};

/* For reader.c: a document whose nodes are zero.  NULL: out of memory. */
struct json_document *json_new(uint32_t node_count, uint32_t string_bytes);
struct json_document *json_free(struct json_document *json); /* takes NULL */

enum json_kind json_kind(const struct json_document *json, uint32_t node);
/* Elements or members; 0 for other kinds. */
uint32_t json_count(const struct json_document *json, uint32_t node);

/* Elements of an array or values of an object, in order; JSON_NONE after the last. */
uint32_t json_first(const struct json_document *json, uint32_t node);
uint32_t json_next(const struct json_document *json, uint32_t node);

/* The key of a value in an object, NUL-ended; otherwise NULL.  ret_bytes may be NULL. */
const char *json_key(const struct json_document *json, uint32_t node, size_t *ret_bytes);

/* The value of that member.  JSON_NONE: no such member, or not an object. */
uint32_t json_member(const struct json_document *json, uint32_t object, const char *key);

/*
 * These return NULL or false if the node is absent or of another kind.  A string is NUL-ended.  A
 * caller that passes no ret_bytes wants a C string: then a string that contains a NUL gives NULL.
 */
const char *json_string(const struct json_document *json, uint32_t node, size_t *ret_bytes);
/* Finite numbers only. */
bool json_real(const struct json_document *json, uint32_t node, double *ret_real);
/* Only a number written as an integer without sign, fraction or exponent, and that fits. */
bool json_whole(const struct json_document *json, uint32_t node, uint64_t *ret_whole);
bool json_bool(const struct json_document *json, uint32_t node, bool *ret_bool);
/* The text of the number, or NULL. */
const char *json_number(const struct json_document *json, uint32_t node);

#endif
