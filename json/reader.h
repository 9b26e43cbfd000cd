/*
 * Reads JSON from hostile bytes into a document.
 *
 * Strictly RFC 8259: one value, UTF-8, no comments, no trailing commas, no NaN, no lone surrogates,
 * no byte order mark, and only white space after the value.  An object with a duplicate key is
 * refused.  json_parse_python() is less strict in one point.  Depth and node count are limited.
 * Nodes are counted before they are allocated, and nothing recurses.  Strings are unescaped and may
 * contain NULs.
 *
 * Nothing in json/ depends on the daemon.
 */
#ifndef JSON_READER_H
#define JSON_READER_H

#include <stddef.h>
#include <stdint.h>

#include "json/document.h"

#define JSON_DEPTH_MAX 64u         /* nesting of arrays and objects */
#define JSON_BYTES_MAX (1ul << 30) /* so that 32 bits suffice to count nodes and string bytes */

/*
 * Returns 0, -EINVAL with the fault and its byte (or key) in *why, or -ENOMEM, also with *why.  A
 * text with more than nodes_max values is refused.  The text may be freed afterwards.
 */
int json_parse(const char *text, size_t bytes, uint32_t nodes_max, struct json_document **ret_json,
               char *why, size_t why_bytes);

/*
 * The same, but an object that is a member of this name may have a key more than once.  All of its
 * members are in the document.
 */
int json_parse_repeating(const char *text, size_t bytes, const char *name, uint32_t nodes_max,
                         struct json_document **ret_json, char *why, size_t why_bytes);

/*
 * The same as json_parse(), but NaN, Infinity and -Infinity are numbers, too: Python's module
 * writes them into files.  json_whole() and json_real() give no value for them.
 */
int json_parse_python(const char *text, size_t bytes, uint32_t nodes_max,
                      struct json_document **ret_json, char *why, size_t why_bytes);

#endif
