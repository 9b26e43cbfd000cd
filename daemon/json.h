/*
 * JSON, read once from hostile bytes into one array of nodes.
 *
 * By the letter of RFC 8259: one value, UTF-8, no comments, no trailing commas, no
 * NaN, no lone surrogates, no byte order mark, nothing behind the value but blanks.
 * An object that gives a key twice is refused.  Depth and nodes have limits; nodes
 * are counted before they are made; nothing recurses.  Strings are unescaped, and
 * may have NULs in them.
 *
 * A node is a number: 0 is the root, JSON_NONE is none, and every getter takes
 * JSON_NONE as "absent", so that a path of members may be asked without a check at
 * each step.  Read-only after parsing; any thread.  A node takes 16 bytes, a string
 * or a number 5 more than its text, keys too.
 *
 * It can not look a key up faster than by walking its object: who wants all members
 * of a large one walks it once.
 */
#ifndef DAEMON_JSON_H
#define DAEMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_NONE      UINT32_MAX
#define JSON_DEPTH_MAX 64u         /* arrays and objects within one another */
#define JSON_BYTES_MAX (1ul << 30) /* so that 32 bits count nodes and what strings take */

enum json_kind {
        JSON_NULL,
        JSON_BOOL,
        JSON_NUMBER,
        JSON_STRING,
        JSON_ARRAY,
        JSON_OBJECT,
        JSON_ABSENT, /* of JSON_NONE */
};

struct json;

/*
 * 0, -EINVAL with the fault and its byte (or key) in *why, or -ENOMEM, in *why too.
 * More than nodes_max values in it are a fault.  The text need not live on.
 */
int json_parse(const char *text, size_t bytes, uint32_t nodes_max, struct json **ret_json,
               char *why, size_t why_bytes);
struct json *json_free(struct json *json); /* takes NULL */

enum json_kind json_kind(const struct json *json, uint32_t node);
uint32_t json_count(const struct json *json, uint32_t node); /* elements or members; else 0 */

/* The elements of an array, the values of an object, in their order; JSON_NONE after the last. */
uint32_t json_first(const struct json *json, uint32_t node);
uint32_t json_next(const struct json *json, uint32_t node);

/* The key of a value that stands in an object, NUL-ended, else NULL.  ret_bytes may be NULL. */
const char *json_key(const struct json *json, uint32_t node, size_t *ret_bytes);

/* The value of that member.  JSON_NONE: no such member, or no object. */
uint32_t json_member(const struct json *json, uint32_t object, const char *key);

/*
 * NULL or false: it is absent or of another kind.  A string is NUL-ended; who passes
 * no ret_bytes wants a C string, and one with a NUL in it is none.
 */
const char *json_string(const struct json *json, uint32_t node, size_t *ret_bytes);
bool json_real(const struct json *json, uint32_t node, double *ret_real); /* and finite */
/* Written as a whole number, without sign, fraction or exponent, and it fits. */
bool json_whole(const struct json *json, uint32_t node, uint64_t *ret_whole);
bool json_bool(const struct json *json, uint32_t node, bool *ret_bool);
const char *json_number(const struct json *json, uint32_t node); /* as it is written, or NULL */

#endif
