/*
 * The form of an answer: what its constraint describes, or its tool calls, behind reasoning where
 * the model reasons.
 *
 * Reasoning is free text.  It is looked for only if the answer is divided into parts: then its text
 * is not part of the answer.  The constraint holds from the first token behind its end mark.
 *
 * With calls the answer is one of these:
 *
 *      required calls              calls, and nothing else
 *      calls and a constraint      calls, or what the constraint describes
 *      calls                       text, and then perhaps calls
 */
#ifndef DAEMON_EDGE_ANSWER_FORM_H
#define DAEMON_EDGE_ANSWER_FORM_H

#include <samovar/protocol.h>
#include <stddef.h>

#include "daemon/constraint/grammar.h"
#include "daemon/edge/wire-request.h"
#include "daemon/model/served.h"

enum answer_reasoning {
        ANSWER_WITHOUT,  /* the constraint holds from the first token on */
        ANSWER_MAY_OPEN, /* the answer may begin with the mark that opens reasoning */
        ANSWER_IS_OPEN,  /* it begins in reasoning: the prompt has the mark */
};

/* All that the grammar of an answer depends on, besides its model.  At least one text is given. */
struct answer_form {
        enum answer_reasoning reasoning;
        struct wire_text constraint; /* a description (constraint/description.h), or none */
        struct wire_text calls;      /* a wish (call-form.h), or none */
};

/* Whether such an answer may reason, if it is divided into parts and begins in reasoning or not. */
enum answer_reasoning answer_reasoning(const struct served *served, bool parts, bool is_open);

/*
 * Returns 0; -EINVAL, -E2BIG or -ENOMEM with a sentence, and the field that is to blame:
 * "constraint" or "tools".
 */
int answer_form_compile(const struct served *served, const struct answer_form *form,
                        struct grammar **ret_grammar, const char **ret_field, char *why,
                        size_t why_bytes);

#endif
