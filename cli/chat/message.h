/*
 * One message of a conversation, as JSON: so it has all members of a message in a file, also those
 * that a chat does not know.
 */
#ifndef CLI_CHAT_MESSAGE_H
#define CLI_CHAT_MESSAGE_H

#include "json/builder.h"
#include "json/bytes.h"

enum message_role {
        MESSAGE_SYSTEM,
        MESSAGE_USER,
        MESSAGE_ASSISTANT,
        MESSAGE_TOOL,
        MESSAGE_OTHER,
};

struct message {
        enum message_role role;
        struct bytes json; /* of the whole message, NUL-ended */
        struct bytes text; /* its content; NUL-ended, "" if that is no text */
        /*
         * Of an answer: the tokens of the handle's history before it, and behind it without the end
         * token.  0: not known, because the history was made anew since.
         */
        size_t begin, end;
};

/* A tool call in an answer. */
struct message_call {
        struct bytes name, arguments; /* NUL-ended; the arguments are JSON, unless they were cut */
        char id[12];
};

/* These fill `message`: 0 or -ENOMEM, and then there is nothing to free. */
int message_make(struct message *message, enum message_role role, const char *text, size_t bytes);
int message_make_answer(struct message *message, const struct bytes *text,
                        const struct bytes *reasoning, const struct message_call *calls,
                        size_t call_count);
int message_make_result(struct message *message, const struct message_call *call, const char *text,
                        size_t bytes);
/* Of a node in a document; -EINVAL if it is no message. */
int message_read(struct message *message, const struct json_document *json, uint32_t node);
int message_copy(struct message *message, const struct message *from);

void message_deinit(struct message *message);

const char *message_role_name(enum message_role role);

#endif
