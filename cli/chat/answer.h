/*
 * Shows an answer while it comes: text on stdout, reasoning on stderr and dim, a tool call as
 * NAME(ARGUMENTS).  While nothing comes, a line on the terminal says what the daemon does.
 */
#ifndef CLI_CHAT_ANSWER_H
#define CLI_CHAT_ANSWER_H

#include "cli/chat/link.h"
#include "cli/chat/message.h"

#define ANSWER_CALLS_MAX 64u

struct answer {
        struct bytes text, reasoning; /* NUL-ended if not empty */
        struct message_call calls[ANSWER_CALLS_MAX];
        size_t call_count;
        bool cut;         /* the last call is not whole */
        bool interrupted; /* by ^C */
        struct smv_event end;
        struct smv_accepted accepted;
};

/*
 * Generates an answer.  DONE: it has ended, as answer->end says.  LOST: what has come of it is in
 * the answer.  INTERRUPTED: a second ^C did not wait for the end.  After these two and FAILED there
 * is no connection.
 */
enum outcome answer_run(struct link *link, const struct smv_generate *options,
                        struct answer *answer);
void answer_deinit(struct answer *answer);

#endif
