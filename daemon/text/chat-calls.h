/*
 * Chat calls: the arguments of earlier tool calls, in the form that a chat template wants.
 *
 * Clients send the arguments as an object, or as its text.  Most templates want an object: they
 * walk through its members, or write it by tojson.  Others want the text.  A template is asked
 * once, by rendering the same call in both forms.
 */
#ifndef DAEMON_TEXT_CHAT_CALLS_H
#define DAEMON_TEXT_CHAT_CALLS_H

#include "daemon/text/template.h"

enum calls_form {
        CALLS_AS_GIVEN, /* both forms become the same text, or neither can be rendered */
        CALLS_AS_OBJECTS,
        CALLS_AS_TEXTS,
};

/* Room in the arena for the conversation to ask with. */
#define CHAT_CALLS_SAMPLE_BYTES (64u << 10)

/* A conversation with a call in this form, and its tool: 0 or -ENOMEM. */
int chat_calls_sample(struct arena *arena, enum calls_form form, struct value *ret_messages,
                      struct value *ret_tools);
/* What became of it in both forms; NULL: that form was refused. */
enum calls_form chat_calls_judge(const struct rendered *objects, const struct rendered *texts);

/*
 * Replaces the messages by copies in which arguments have this form.  `bytes`: of everything that
 * the client sent.  0, -ENOMEM; -EINVAL and *why: arguments are no JSON object.
 */
int chat_calls_convert(struct arena *arena, enum calls_form form, size_t bytes,
                       struct value *messages, char *why, size_t why_bytes);

#endif
