/*
 * The connection of a chat.  A call waits for its reply, but ^C ends the wait; then the reply would
 * come at any time, so the connection is closed, and the next question connects again.
 */
#ifndef CLI_CHAT_LINK_H
#define CLI_CHAT_LINK_H

#include <samovar/client.h>

#include "cli/chat/terminal.h"

struct cli;

enum outcome {
        OUTCOME_DONE = 0,
        OUTCOME_REFUSED,     /* the daemon's refusal is `problem` */
        OUTCOME_TOO_LONG,    /* the same, because the context is full */
        OUTCOME_LOST,        /* the daemon is gone, and the connection is closed */
        OUTCOME_INTERRUPTED, /* by ^C, or by a signal to end */
        OUTCOME_NOTHING,     /* link_next(): nothing came in time */
        OUTCOME_FAILED,      /* the user has been told why */
};

struct link {
        struct cli *cli;
        struct terminal *terminal;
        char place[128]; /* the socket, for messages; "" if private */
        struct smv_problem problem;
        char message[512];    /* of the problem, which outlives the call */
        unsigned connections; /* how often it has connected */
        struct smv_model model;
};

/* Takes the connection that the command has made; it has one model at least. */
void link_begin(struct link *link, struct cli *cli, struct terminal *terminal);

/* Connects again, if there is no connection. */
enum outcome link_connect(struct link *link);
void link_close(struct link *link);

/* The next event, or INTERRUPTED, NOTHING after timeout_ms (-1: never), LOST. */
enum outcome link_next(struct link *link, struct smv_event *ret_event, int timeout_ms);

/*
 * Waits for the reply to a request that a function smv_ask_ has begun, with the result `r`.  After
 * LOST or INTERRUPTED there is no connection.
 */
enum outcome link_reply(struct link *link, int r, uint32_t request, struct smv_event *ret_reply);

/* Translates the failure of a call, or of an event; closes a connection that is lost. */
enum outcome link_failure(struct link *link, int r);

/* Says what the refusal was, naming the flag that it is about. */
void link_say(const struct link *link);

#endif
