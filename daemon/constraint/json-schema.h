/*
 * Compiles a JSON Schema (draft 2020-12) to a grammar of the texts that are valid.
 *
 * A keyword is enforced exactly, or refused with its name and its place, a JSON pointer.  Keywords
 * that only describe are read over, and so are those that begin with "x-" or "_"; unknown ones are
 * refused, since a typing error must not pass.
 *
 * Texts are narrower than values, on purpose:
 *
 *  - Members come in the order of `properties`, then those that are only `required`, then others.
 *  - Space is written as `space` says, and never before or behind the whole value.
 *  - A number without bounds has at most 16 digits before the point, and 16 behind it.  A number
 *    with bounds or a divisor has no exponent.  An integer has no point.
 *  - A string with a pattern, a format, an excluded value or listed values writes each character
 *    in one way (characters.h); another string may use every escape of JSON.
 *
 * A key that `properties` does not name may come twice: no other engine excludes that either.
 *
 * `format` is enforced: date, time, date-time, duration, uuid, ipv4, ipv6, email, hostname, uri.
 * Narrower than their standards: a date has no year 0; a time has no leap second and at most 9
 * digits behind the point; the name of a host has no label that is encoded (xn--...); an email has
 * no quotes.
 */
#ifndef CONSTRAINT_JSON_SCHEMA_H
#define CONSTRAINT_JSON_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/constraint/grammar.h"

enum json_space {
        JSON_SPACE_ONE, /* nothing, a blank, or a newline with at most 20 blanks or tabs */
        JSON_SPACE_NONE,
        JSON_SPACE_FREE, /* as JSON allows it: without a bound */
};

/*
 * Members of an object in tags, as some models write the arguments of a call:
 *
 *      key K key_end V value_end between key K key_end V value_end
 *
 * A string stands there as it is, any other value as JSON.  A text of JSON is that value, if the
 * schema allows values besides strings.  So a string that can be read as such is illegal then,
 * unless raw_key_end tells strings apart.  If only null is allowed besides, only null is illegal.
 *
 * Narrower than values: a string does not contain value_end, with or without the blanks before it.
 * A key that the schema does not name has no "<", ">", quotes and controls.
 */
struct json_tags {
        struct regex_text key, key_end, value_end, between;
        struct regex_text raw_key_end; /* of strings; empty: they have key_end, too */
        bool newline;                  /* no string begins with one: it would belong to the tag */
};

/*
 * Values that are not written as JSON, as some models write the arguments of a call.
 *
 *  - Python: True, False and None.  Strings are those of JSON, but for "\\/" and surrogates.  Of an
 *    object in tags, strings are in quotes as well, and keys are identifiers.
 *  - Bare: keys have no quotes, and strings stand between two texts as they are.  A key has no
 *    blanks, quotes, controls, brackets, "," and ":".
 */
struct json_surface {
        bool python;
        struct regex_text bare_quote; /* empty: not bare */
};

struct json_schema_options {
        enum json_space space;
        bool any_order; /* of members */
        /*
         * An object whose schemas have `properties`, but none of additionalProperties,
         * patternProperties and propertyNames, has no members besides those that are named.
         */
        bool only_named;
        /* NULL: all of it is JSON.  Otherwise it is an object, and these are around its members. */
        const struct json_tags *tags;
        const struct json_surface *surface; /* NULL: JSON */
};

#define JSON_SCHEMA_NODES 500000u /* values in a schema */

/*
 * Adds the rules of a schema to a grammar; *ret_symbol is the whole value.  Returns 0; -EINVAL or
 * -ENOMEM with a sentence.  The schema `true` allows every JSON value.
 */
int json_schema_add(struct grammar *grammar, const char *text, size_t bytes,
                    const struct json_schema_options *options, uint32_t *ret_symbol, char *why,
                    size_t why_bytes);

/* A grammar of this schema alone.  Returns 0; -EINVAL, -E2BIG or -ENOMEM with a sentence. */
int json_schema_compile(const char *text, size_t bytes, const struct json_schema_options *options,
                        const struct grammar_limits *limits, struct grammar **ret_grammar,
                        char *why, size_t why_bytes);

#endif
