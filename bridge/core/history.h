/*
 * Histories: handles of the daemon for the conversations of answers that clients may continue.
 *
 * An answer that is stored is generated on a handle, so the daemon has it in the tokens that the
 * model wrote, with its reasoning and its calls.  A request that continues the answer forks the
 * handle, appends its messages, and generates on the fork, which becomes the history of the next
 * answer.  So an answer may be continued many times, also at the same time.
 *
 * The result must be the conversation that its messages make.  So they are all rendered, into a new
 * handle, instead of being continued:
 *
 *      - if the model, the system message, the tools or the variables of the template have changed;
 *      - if the shape of the turn does not allow it, or the template is not steady with it
 *        (history-shape.h), which the daemon is asked once for a conversation and shape;
 *      - if the daemon has the handle no longer, or refuses to fork it or to append to it.
 *
 * The caller keeps no history of an answer whose messages say something else than its tokens: it
 * was cut within a call or a thought, a call in it was not shown, or it has end tokens that end
 * nothing.  Some differences are wanted: blanks that a template cuts, the date at the head, which
 * stays that of the beginning, and spellings of a text in other tokens.
 *
 * If the daemon refuses a new handle, too, there is no history, and the caller asks with all
 * messages, as if there were no handles.  So no request fails because of them.
 *
 * Of each principal there are at most HISTORIES_MAX, with HISTORY_TOKENS_MAX: of those that are
 * kept, the one not used for the longest time goes first.  Both are well below what the daemon
 * allows a user (256 handles, 64 MiB), because other requests of the principal need the rest.  The
 * daemon itself closes a handle that is not used for HISTORY_KEEP_MS_MAX, so one that this program
 * loses by its death does not stay.
 *
 * Loop thread only.
 */
#ifndef BRIDGE_CORE_HISTORY_H
#define BRIDGE_CORE_HISTORY_H

#include <samovar/client.h>
#include <stdint.h>

#include "bridge/core/call.h"
#include "bridge/core/conversation.h"

#define HISTORIES_MAX       64u
#define HISTORY_TOKENS_MAX  (UINT64_C(2) << 20) /* 8 MiB */
#define HISTORY_KEEP_MS_MAX 600000u

struct histories;
int histories_new(struct histories **ret_histories);
/* Closes all handles; the links must still be there, and no call. */
struct histories *histories_free(struct histories *histories); /* takes NULL */

/* The conversation that a history is to have.  It must live as long as the call. */
struct history_plan {
        struct text model;                       /* its name, also if it is the default */
        const struct conversation *conversation; /* packed */
        const struct smv_generate *options;      /* with the model and the whole conversation */
        const struct turn *last;                 /* the answer that it continues; NULL: it begins */
        uint32_t keep_ms;                        /* it is not wanted for longer */
};

/*
 * Makes a history for the call, and calls ready(), perhaps at once.  *ret_history is set before: it
 * is the caller's until history_drop() or history_keep(), and NULL if there is none.  It must live
 * as long as the call does, which drops the history when it is cleaned; that may be at any moment.
 *
 * `before`: of the answer that is continued, or NULL.  It is not needed after the return.
 */
struct history;
void history_make(struct call *call, const struct history_plan *plan, struct history *before,
                  struct history **ret_history, void (*ready)(struct call *call));

/* The handle to generate on. */
uint64_t history_handle(const struct history *history);

/*
 * The answer has ended, with so many tokens in the history.  From now on it is *place, which
 * becomes NULL if the history has to go for others.
 */
void history_keep(struct history *history, struct history **place, uint64_t tokens);

/* Closes the handle, and sets the place to NULL.  Takes NULL. */
void history_drop(struct history *history);

#endif
