/*
 * How a model is spoken to: its chat templates, and what they are given.
 *
 * A model has one template, or one more for conversations with tools.  Whether they can be
 * parsed is known once it is opened; a model without one that can is served all the same, and
 * chat_missing() says what a conversation is refused with.
 *
 * A template sees what transformers' apply_chat_template() shows it: messages, tools,
 * documents (none), add_generation_prompt, bos_token and eos_token where the model has
 * them, and what the client sets.  bos, eos and a message's role are our own text (template.h),
 * the role if it is a usual one; all else that a client sent is given.
 *
 * Read-only after it is opened; any thread.
 */
#ifndef DAEMON_TEXT_CHAT_H
#define DAEMON_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "daemon/text/template.h"

/* NUL-ended texts; NULL: the model has none. */
struct chat_conf {
        const char *plain,
                *tools;        /* templates; tools: instead of the other, where tools are given */
        const char *bos, *eos; /* as they are written */
        const char *fault;     /* the files could not be read: why not */
};

struct chat;

/* 0 or -ENOMEM. */
int chat_open(const struct chat_conf *conf, struct chat **ret_chat);
struct chat *chat_close(struct chat *chat); /* takes NULL */

/* NULL: it can render conversations.  Else one sentence: why not.  No chat has no template. */
const char *chat_missing(const struct chat *chat);
/* The model has none, and nothing is wrong with it. */
bool chat_is_absent(const struct chat *chat);

/* What a template gets by that name is not for a client to set. */
bool chat_sets(const char *name, size_t bytes);

/* `vars` sets none of those. */
struct conversation {
        struct value messages, tools, vars; /* a list, a list or none, a map or none */
        bool add_generation_prompt;
        size_t bytes;                 /* of all that was sent */
        bool (*cancelled)(void *arg); /* as template_limits' */
        void *arg;
};

/* As template_render(); the arena has room left for the maps of messages once more. */
int chat_render(const struct chat *chat, struct arena *arena, const struct conversation *about,
                const struct tm *now, struct rendered *ret_rendered, char *why, size_t why_bytes);

#endif
