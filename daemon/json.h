/*
 * JSON, read once from hostile bytes into one array of nodes.
 *
 * Strictly RFC 8259: one value, UTF-8, no comments, no trailing commas, no NaN, no lone surrogates,
 * no byte order mark, and only white space after the value.  An object with a duplicate key is
 * refused.  Depth and node count are limited.  Nodes are counted before they are allocated, and
 * nothing recurses.  Strings are unescaped and may contain NULs.
 *
 * A node is a number: 0 is the root, and JSON_NONE is no node.  Every getter accepts JSON_NONE as
 * "absent", so a caller can follow a path of members without a check at each step.  Read-only after
 * parsing; then any thread may use it.  A node takes 16 bytes.  A string, a number or a key takes 5
 * bytes more than its text.
 *
 * Looking up a key walks the whole object.  A caller that wants all members of a large object
 * should walk it once.
 */
#ifndef DAEMON_JSON_H
#define DAEMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_NONE      UINT32_MAX
#define JSON_DEPTH_MAX 64u         /* nesting of arrays and objects */
#define JSON_BYTES_MAX (1ul << 30) /* so that 32 bits suffice to count nodes and string bytes */

enum json_kind {
        JSON_NULL,
        JSON_BOOL,
        JSON_NUMBER,
        JSON_STRING,
        JSON_ARRAY,
        JSON_OBJECT,
        JSON_ABSENT, /* the kind of JSON_NONE */
};

struct json;

/*
 * Returns 0, -EINVAL with the fault and its byte (or key) in *why, or -ENOMEM, also with *why.  A
 * text with more than nodes_max values is refused.  The text may be freed afterwards.
 */
int json_parse(const char *text, size_t bytes, uint32_t nodes_max, struct json **ret_json,
               char *why, size_t why_bytes);
struct json *json_free(struct json *json); /* takes NULL */

enum json_kind json_kind(const struct json *json, uint32_t node);
/* elements or members; 0 for other kinds */
uint32_t json_count(const struct json *json, uint32_t node);

/* Elements of an array or values of an object, in order; JSON_NONE after the last. */
uint32_t json_first(const struct json *json, uint32_t node);
uint32_t json_next(const struct json *json, uint32_t node);

/* The key of a value in an object, NUL-ended; otherwise NULL.  ret_bytes may be NULL. */
const char *json_key(const struct json *json, uint32_t node, size_t *ret_bytes);

/* The value of that member.  JSON_NONE: no such member, or not an object. */
uint32_t json_member(const struct json *json, uint32_t object, const char *key);

/*
 * These return NULL or false if the node is absent or of another kind.  A string is NUL-ended.  A
 * caller that passes no ret_bytes wants a C string: then a string that contains a NUL gives NULL.
 */
const char *json_string(const struct json *json, uint32_t node, size_t *ret_bytes);
bool json_real(const struct json *json, uint32_t node, double *ret_real); /* finite numbers only */
/* Only a number written as an integer without sign, fraction or exponent, and that fits. */
bool json_whole(const struct json *json, uint32_t node, uint64_t *ret_whole);
bool json_bool(const struct json *json, uint32_t node, bool *ret_bool);
/* the text of the number, or NULL */
const char *json_number(const struct json *json, uint32_t node);

#endif
