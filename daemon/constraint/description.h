/*
 * Descriptions: constraints as requests write them, in JSON.  An object with one of these members:
 *
 *      "json"     true: any value of JSON
 *      "schema"   a JSON Schema (json-schema.h)
 *      "regex"    a text: a regular expression, which the whole answer matches (regex-text.h)
 *      "grammar"  a text: a grammar in GBNF (gbnf.h)
 *      "choices"  a list of texts, one of which the answer is
 *      "tags"     a list of tags, which come in free text
 *
 * and, beside "json" and "schema":
 *
 *      "space"      "one" (the default), "none" or "free": see enum json_space
 *      "any_order"  true: members of objects may come in any order
 *      "only_named" true: objects have only the members that `properties` names, if the schema does
 *                   not speak of others (struct json_schema_options)
 *
 * and, beside "tags":
 *
 *      "min", "max"  so many tags come in all; by default any number
 *      "closed"      true: no text follows the last tag
 *
 * A tag is an object with "begin" and "end", which are texts, and one of the first five members
 * above for what is between them.  Where its begin is complete, a tag begins.
 */
#ifndef CONSTRAINT_DESCRIPTION_H
#define CONSTRAINT_DESCRIPTION_H

#include "daemon/constraint/structure.h"

#define DESCRIPTION_CHOICES_MAX 100000u
#define DESCRIPTION_TAGS_MAX    256u

struct description_memory;

struct description {
        struct structure root; /* valid until description_close() */
        struct description_memory *memory;
};

/*
 * The control token that is spelled so, or UINT32_MAX: "begin" and "end" of a tag may be control
 * tokens.
 */
struct description_tokens {
        uint32_t (*find)(const void *arg, const char *text, size_t bytes);
        const void *arg;
};

/* Returns 0; -EINVAL or -ENOMEM with a sentence.  It reads no schema and no grammar yet. */
int description_open(const char *text, size_t bytes, const struct description_tokens *tokens,
                     struct description *ret_description, char *why, size_t why_bytes);
void description_close(struct description *description);

/*
 * Makes a sentence of structure_compile() one about the description, which was the part at `path`
 * of what was compiled: in place of the numbers of parts it says which tag.
 */
void description_explain(const struct description *description, const char *path, char *why,
                         size_t why_bytes);

#endif
