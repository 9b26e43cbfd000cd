/*
 * The conversations of a chat, one of them current, and the handles that hold their histories.
 */
#ifndef CLI_CHAT_SESSION_H
#define CLI_CHAT_SESSION_H

#include "cli/chat/branch.h"
#include "cli/chat/link.h"

#define SESSION_BRANCHES_MAX 64u

struct session {
        struct link *link;
        struct branch *branches[SESSION_BRANCHES_MAX];
        size_t count, current;
        unsigned opened, appended; /* handles that were opened, and turns that were appended */
};

/* Begins with one empty branch: 0 or -ENOMEM. */
int session_init(struct session *session, struct link *link);
void session_deinit(struct session *session);

struct branch *session_branch(const struct session *session);
/* By its name, or by its number from 1 on; `count`: there is none. */
size_t session_find(const struct session *session, const char *which);
/*
 * Adds a branch, and makes it current.  An empty name, or one that another branch has, becomes one
 * that no other has.  0; or -ENOSPC, and the branch is still the caller's.
 */
int session_add(struct session *session, struct branch *branch, const char *name);

/*
 * Brings the history of the current branch up to date: opens a handle if there is none, or appends
 * what it does not have.  It then ends where an answer begins.  Connects again if needed.
 */
enum outcome session_prepare(struct session *session);

/* An answer with these counts has become the last message of the current branch. */
void session_answered(struct session *session, const struct smv_event *end);

/*
 * Keeps the first `count` messages of the current branch, in the handle, too.  `again`: another
 * answer to them follows; else another question.
 */
void session_cut(struct session *session, size_t count, bool again);

/* Closes the handle of the current branch: its messages, its system message or tools change. */
void session_close_handle(struct session *session);

/* There is no connection any more, so there are no handles. */
void session_lose_handles(struct session *session);

/* Copies the current branch, and makes the copy current.  FAILED: there are too many. */
enum outcome session_fork(struct session *session, const char *name);
/* Removes a branch that is not the only one. */
void session_remove(struct session *session, size_t which);

#endif
