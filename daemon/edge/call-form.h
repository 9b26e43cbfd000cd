/*
 * Call form: what the tool calls of an answer look like, as a structure of constraint/structure.h.
 *
 * A *wish* says which calls an answer may have.  It is a text of JSON, in which equal wishes are
 * equal, so it is a key, too:
 *
 *      {"required": true, "max": 1, "tools": [{"name": "get", "schema": {...}}, ...]}
 *
 * The tools are those that may be called; arguments follow the schema.  If "max" is 0, any number
 * of calls may come.
 *
 * Calls are written as the template of the dialect writes them (text/parts/dialect-form.h), so
 * text/parts.h reads each text of the structure as whole calls of these tools.
 */
#ifndef DAEMON_EDGE_CALL_FORM_H
#define DAEMON_EDGE_CALL_FORM_H

#include "daemon/constraint/structure.h"
#include "daemon/edge/wire-request.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/value.h"
#include "json/bytes.h"
#include "json/document.h"

struct call_question {
        bool constrained; /* the answer has a constraint, besides which calls may come */
        enum wire_tool_choice choice;
        uint32_t max;       /* 0: any number */
        struct value tools; /* as a template gets them */
        struct value names; /* of tools that may be called, a list; a none: all of them */
};

/*
 * Writes the wish.  Nothing is written if the calls are free: the choice is auto, of all tools in
 * any number, no tool is strict, and the answer has no constraint.  With auto, the schema of a tool
 * that is not strict is only that of an object.  0; -EINVAL, with a sentence; -ENOMEM.
 */
int call_wish_put(const struct call_question *question, struct bytes *to, char *why,
                  size_t why_bytes);

struct call_form {
        bool required;
        struct structure calls;  /* as many calls as are wanted, and at least one */
        struct structure answer; /* text, and then perhaps calls; it is the last of all parts */
        const char *answer_path; /* where the calls are in the answer */
        /* Marks that are text, where a call begins: free text must not have them. */
        struct regex_text marks[MARK_N];
        uint32_t mark_count;
        struct json_document *wish;
        struct arena *arena; /* of what the structures point to */
};

/*
 * Reads a wish for a dialect that has calls.  0; -EINVAL if a tool cannot be constrained, with a
 * sentence; -ENOMEM.  The form must not be moved until it is closed.
 */
int call_form_open(const struct dialect *dialect, const char *wish, size_t bytes,
                   struct call_form *ret_form, char *why, size_t why_bytes);
void call_form_close(struct call_form *form);

/*
 * Makes a sentence of structure_compile() one about a tool; the calls were the part at `path`.
 * False: it is about another part.
 */
bool call_form_explain(const struct call_form *form, const char *path, char *why, size_t why_bytes);

#endif
