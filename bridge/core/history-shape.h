/*
 * The shape of a turn, and whether the model's template lets such a turn follow what was generated.
 *
 * A template may show earlier turns differently as soon as others follow: it moves the list of
 * tools to the last message of the user, drops earlier reasoning, or leaves out the empty thought
 * with which it began an answer.  Then the tokens that the model has seen and written are not those
 * of the whole conversation.  Whether a template does so depends on the shape of the turn, and not
 * on its texts.  So it is tried with a sample: a question alone, and the same question with an
 * answer and a turn of that shape behind it.  The template is steady if the second text continues
 * the first.
 *
 * Pure functions.
 */
#ifndef BRIDGE_CORE_HISTORY_SHAPE_H
#define BRIDGE_CORE_HISTORY_SHAPE_H

#include <stdbool.h>

#include "bridge/core/conversation.h"

/* A set of these. */
enum history_shape {
        SHAPE_RESULTS = 1u << 0, /* the turn has results of tools ... */
        SHAPE_USER = 1u << 1,    /* ... or messages of the user, or first one and then the other */
        SHAPE_CONTENT = 1u << 2, /* the answer before it has a text ... */
        SHAPE_REASONING = 1u << 3, /* ... and reasoning */
        SHAPES = 1u << 4,
};

/*
 * The shape of the messages behind `last`, once the conversation has been packed.  0: they cannot
 * be appended to the answer that `last` is:
 *
 *      - it is not one turn of the assistant: an empty answer is none, and a text behind a call
 *        begins another;
 *      - there is no message, or one of the assistant, or a result behind a message of the user;
 *      - there is a result, and the answer has no call;
 *      - any turn has reasoning, and the user speaks: many templates then drop it.
 */
unsigned history_shape(const struct conversation *conversation, const struct turn *last);

/*
 * Packs the sample: the question alone, or `whole`.  It has the system message of the conversation.
 * 0, or -ENOMEM.
 */
int history_shape_pack(const struct conversation *conversation, unsigned shape, bool whole,
                       struct smv_packed *ret_messages);

/* The template has made these texts of the question and of the whole sample. */
bool history_shape_is_steady(unsigned shape, struct text question, struct text whole);

#endif
