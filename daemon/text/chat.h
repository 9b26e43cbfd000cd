/*
 * The chat templates of a model, and the variables that they see.
 *
 * A model has one template, and possibly a second one for conversations with tools.  chat_open()
 * parses them.  A model without a usable template is served all the same: chat_refusal() returns
 * the sentence with which a conversation is refused.
 *
 * A template sees the same variables as under transformers' apply_chat_template(): messages,
 * tools, documents (none), add_generation_prompt, bos_token and eos_token where the model has
 * them, and the variables that the client sets.  bos_token, eos_token and the role of a message
 * are TEXT_OURS (template.h), the role only if it is a well-known one.  Everything else that the
 * client sent is TEXT_GIVEN.
 *
 * The arguments of earlier tool calls may be an object or its text.  The template gets the form
 * that it wants (chat-calls.h).
 *
 * Read-only after it is opened; any thread may use it.
 */
#ifndef DAEMON_TEXT_CHAT_H
#define DAEMON_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "daemon/text/template.h"

/* NUL-ended texts; NULL: the model has none. */
struct chat_conf {
        /* templates; `tools` is used instead of `plain` for a conversation with tools */
        const char *plain, *tools;
        const char *bos, *eos; /* the spelling of these tokens in a text */
        const char *fault;     /* why the files could not be read */
};

struct chat;

/* 0 or -ENOMEM. */
int chat_open(const struct chat_conf *conf, struct chat **ret_chat);
struct chat *chat_close(struct chat *chat); /* takes NULL */

/*
 * NULL: it can render conversations.  Else one sentence that says why not.  NULL instead of a chat
 * counts as a model without a template.
 */
const char *chat_refusal(const struct chat *chat);
/* The model has no template, and no error hides one. */
bool chat_is_absent(const struct chat *chat);

/* True if we set the variable of that name, so that a client may not set it. */
bool chat_sets_variable(const char *name, size_t bytes);

/* `vars` has no name for which chat_sets_variable() is true. */
struct conversation {
        struct value messages, tools, vars; /* a list, a list or none, a map or none */
        bool add_generation_prompt;
        /*
         * The messages follow an answer of the model that is in a history already.  Only the text
         * behind that answer is made: how the template ends an answer, and the new messages.
         */
        bool continues;
        /*
         * The last message is the assistant's, and its text goes on: the prompt ends exactly where
         * that text ends, and add_generation_prompt is not used.  May come with `continues`.
         */
        bool continue_final_message;
        uint64_t nonce;               /* for these two: a random number */
        size_t bytes;                 /* length of everything that the client sent */
        bool (*cancelled)(void *arg); /* as in struct template_limits */
        void *arg;
};

/* Room in the arena for the texts by which we find where to cut. */
#define CHAT_TURN_BYTES 4096u
/* ... and for arguments in another form. */
#define CHAT_CALLS_BYTES (16u << 20)

/*
 * As template_render().  The arena must have room for a second copy of the messages, and for
 * CHAT_TURN_BYTES and CHAT_CALLS_BYTES.  It returns -EINVAL, too, if
 *
 *      - the template wants arguments as objects, and those of a call are no JSON object
 *      - the text cannot be cut as the conversation asks: the template does not show earlier
 *        answers, or not the end of the last message
 *      - the last message should go on, and has no text of the assistant that could
 */
int chat_render(const struct chat *chat, struct arena *arena, const struct conversation *about,
                const struct tm *now, struct rendered *ret_rendered, char *why, size_t why_bytes);

#endif
