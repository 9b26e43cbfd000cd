/*
 * A branch: one conversation, and the handle in which the daemon holds its history.
 *
 * The conversation is complete without the handle.  If the handle is gone, the next question opens
 * another one with all messages.
 */
#ifndef CLI_CHAT_BRANCH_H
#define CLI_CHAT_BRANCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/chat/message.h"

#define BRANCH_NAME_MAX 32u

struct branch {
        char name[BRANCH_NAME_MAX + 1];
        struct message *messages;
        size_t count, size;
        struct bytes tools, vars; /* JSON: the list of tools and the variables of the template */
        uint64_t handle;          /* 0: there is none */
        size_t sent;              /* so many messages are in its history ... */
        size_t length;            /* ... which has so many tokens */
};

/* Adds the message, which now belongs to the branch.  0 or -ENOMEM; then it is freed. */
int branch_add(struct branch *branch, struct message *message);
/* Keeps the first `count` messages. */
void branch_cut(struct branch *branch, size_t count);
/* Removes `count` messages from `at` on. */
void branch_remove(struct branch *branch, size_t at, size_t count);
/* The handle is gone, and with it what is known about the lengths of its history. */
void branch_lose_handle(struct branch *branch);

/* The system message, or NULL. */
const struct message *branch_system(const struct branch *branch);
/* Replaces it; an empty text removes it. */
int branch_set_system(struct branch *branch, const char *text, size_t bytes);

/* Turns: a question, and all up to the next one. */
size_t branch_turns(const struct branch *branch);
/* Where turn `turn` begins, counted from 0; `count` if there is no such turn. */
size_t branch_turn(const struct branch *branch, size_t turn);

/* A new branch with the same messages and tools, and without a handle; NULL: out of memory. */
struct branch *branch_copy(const struct branch *branch);
struct branch *branch_free(struct branch *branch); /* takes NULL */

/* The messages from `from` on as a JSON array; 0 or -ENOMEM. */
int branch_messages(const struct branch *branch, size_t from, struct bytes *to);
/* The whole as a file that `ask --messages` takes: 0 or -ENOMEM. */
int branch_write(const struct branch *branch, struct bytes *to);
/*
 * Fills an empty branch from such a file.  0, or a negative errno with what is wrong in `why`; then
 * the branch may have a part of it.
 */
int branch_read(struct branch *branch, const struct bytes *text, char *why, size_t why_bytes);

#endif
