/*
 * reply.c: parses, asks for and describes replies, for the commands that print one.
 *
 * The daemon does not know the path by which a client came.  So reply_status() adds it to the
 * reply, as its first member, `socket`; the screen, the table and the JSON all show it from there.
 */
#ifndef CLI_REPLY_H
#define CLI_REPLY_H

#include "cli/cli.h"
#include "json/document.h"

/*
 * Parses a reply; `what` names it in the message: "the status".  0, or CLI_FAILED after a message.
 */
int reply_parse(const char *json, const char *what, struct json_document **ret_reply);

/*
 * Asks for the status, and replaces `json` by it, with `socket`.  0, or an exit status after a
 * message.
 */
int reply_status(struct cli *cli, struct bytes *json);

/*
 * The name of a user, or its number if it has none: "root".  A principal stands before its gateway:
 * "alice@samovar-http"; NULL or "": it is none.
 */
#define USER_NAME_BYTES 98
const char *user_name(uint64_t uid, const char *principal, char to[USER_NAME_BYTES]);

/* The daemon that sent this status.  The path belongs to the document. */
struct reply_daemon {
        const char *socket; /* NULL: the client was given a connected socket */
        uint64_t pid, uid;
};
struct reply_daemon reply_daemon(const struct json_document *status);

/* "process 77 of user root (uid 0)" */
#define REPLY_OWNER_BYTES 128
const char *reply_owner(const struct reply_daemon *daemon, char to[REPLY_OWNER_BYTES]);

#endif
