/*
 * The form of an answer: what its constraint describes, behind reasoning where the model reasons.
 *
 * Reasoning is free text.  It is looked for only if the answer is divided into parts: then its text
 * is not part of the answer.  The constraint holds from the first token behind its end mark.
 */
#ifndef DAEMON_EDGE_ANSWER_FORM_H
#define DAEMON_EDGE_ANSWER_FORM_H

#include <samovar/protocol.h>
#include <stddef.h>

#include "daemon/constraint/grammar.h"
#include "daemon/model/served.h"

enum answer_reasoning {
        ANSWER_WITHOUT,  /* the constraint holds from the first token on */
        ANSWER_MAY_OPEN, /* the answer may begin with the mark that opens reasoning */
        ANSWER_IS_OPEN,  /* it begins in reasoning: the prompt has the mark */
};

/* Whether such an answer may reason, if it is divided into parts and begins in reasoning or not. */
enum answer_reasoning answer_reasoning(const struct served *served, bool parts, bool is_open);

/* Returns 0; -EINVAL, -E2BIG or -ENOMEM with a sentence. */
int answer_form_compile(const struct served *served, enum answer_reasoning reasoning,
                        const char *description, size_t bytes, struct grammar **ret_grammar,
                        char *why, size_t why_bytes);

#endif
