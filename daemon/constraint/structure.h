/*
 * Structure: a constraint that is made of parts, such as free text in which tool calls may come.
 *
 * A structure is a tree of parts, and compiles to one grammar, so a mask treats the border of two
 * parts like any other place: a mark may begin and end inside of a token.
 *
 * Texts may contain control tokens, each as grammar_token_bytes() writes it.  All other bytes of a
 * text are UTF-8.
 *
 * A *mark* is the literal that a part of free text begins with.  Free text is any bytes in which no
 * mark is complete, so the first mark that comes begins its part.  Control tokens are illegal in
 * it, but for marks, and so are they in any constrained part that does not name them.
 *
 * Free text that may be the last of all has no end of its own, and nothing can follow it.  So it
 * stands only at the end of a structure.  Free text that must lead to a part stands anywhere: "any
 * text up to a mark" is such a text, with a literal as its only part.
 *
 * Read by structure_compile() only; the parts may be freed afterwards.
 */
#ifndef CONSTRAINT_STRUCTURE_H
#define CONSTRAINT_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/grammar.h"
#include "daemon/constraint/json-schema.h"

#define STRUCTURE_DEPTH 16u /* of parts in parts */

enum structure_kind {
        STRUCTURE_LITERAL,  /* `text` */
        STRUCTURE_REGEX,    /* the whole matches the expression `text` (regex-text.h) */
        STRUCTURE_GBNF,     /* `text` is a grammar (gbnf.h) */
        STRUCTURE_SCHEMA,   /* `text` is a JSON Schema; see `schema` */
        STRUCTURE_ONE_OF,   /* one of `choices`, of which there may be many */
        STRUCTURE_SEQUENCE, /* all of `parts`, in their order; without any: nothing */
        STRUCTURE_CHOICE,   /* one of `parts` */
        STRUCTURE_LIST,     /* the only one of `parts`, `min` to `max` times, with `text` between */
        /*
         * Free text, in which `parts` come `min` to `max` times in all.  Each part is a literal, or
         * a sequence that begins with one: its mark.  If `closed` is set, no text follows the last
         * part.
         */
        STRUCTURE_TEXT,
};

struct structure {
        enum structure_kind kind;
        struct regex_text text;
        const struct structure *parts;
        uint32_t count;
        uint32_t min, max; /* REGEX_FOREVER: no bound */
        bool closed;
        const struct regex_text *without; /* of free text: texts that it must not contain ... */
        uint32_t without_count;           /* ... besides marks */
        const struct regex_text *choices;
        uint32_t choice_count;
        struct json_schema_options schema;
};

/*
 * Returns 0; -EINVAL, -E2BIG or -ENOMEM with a sentence.  It begins with the place of the part at
 * fault, as "/2/0": the first part of the third one.  -EINVAL is also free text where something
 * follows, and a mark that can never be complete, since another one is inside of it.
 */
int structure_compile(const struct structure *structure, const struct grammar_limits *limits,
                      struct grammar **ret_grammar, char *why, size_t why_bytes);

#endif
