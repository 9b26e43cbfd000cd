/* Parses, asks for and describes replies, for several commands. */
#include "cli/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "json/reader.h"
#include "json/writer.h"

#define VALUES_MAX (1u << 20) /* a thousand users have 20 each */

int reply_parse(const char *json, const char *what, struct json_document **ret_reply)
{
        char why[128];
        int r = json_parse(json, strlen(json), VALUES_MAX, ret_reply, why, sizeof(why));

        if (!r)
                return 0;
        say("cannot read %s: %s", what, r == -EINVAL ? why : strerror(-r));
        return CLI_FAILED;
}

int reply_status(struct cli *cli, struct bytes *json)
{
        struct json_writer writer = { .to = json };
        const char *socket, *reply;
        int r;

        bytes_deinit(json);
        r = smv_status(cli->client, &reply);
        if (r)
                return say_failed(cli, r);
        socket = smv_socket_used(cli->client);
        if (socket) {
                json_write_raw(&writer, "{\"socket\":");
                json_write_text(&writer, socket, strlen(socket));
                json_write_raw(&writer, ",");
                reply++; /* its opening brace; no status is empty */
        }
        json_write_raw(&writer, reply);
        if (!json_write_end(&writer))
                return 0;
        say("out of memory");
        return CLI_FAILED;
}

const char *user_name(uint64_t uid, const char *principal, char to[USER_NAME_BYTES])
{
        const char *by = principal ? principal : "", *at = *by ? "@" : "";
        const struct passwd *user = uid < UINT32_MAX ? getpwuid((uid_t)uid) : NULL;

        if (user)
                snprintf(to, USER_NAME_BYTES, "%s%s%s", by, at, user->pw_name);
        else
                snprintf(to, USER_NAME_BYTES, "%s%s%" PRIu64, by, at, uid);
        return to;
}

struct reply_daemon reply_daemon(const struct json_document *status)
{
        struct reply_daemon daemon = {
                .socket = json_string(status, json_member(status, 0, "socket"), NULL),
        };

        json_whole(status, json_member(status, 0, "pid"), &daemon.pid);
        json_whole(status, json_member(status, 0, "uid"), &daemon.uid);
        return daemon;
}

const char *reply_owner(const struct reply_daemon *daemon, char to[REPLY_OWNER_BYTES])
{
        char name[USER_NAME_BYTES];

        snprintf(to, REPLY_OWNER_BYTES, "process %" PRIu64 " of user %s (uid %" PRIu64 ")",
                 daemon->pid, user_name(daemon->uid, NULL, name), daemon->uid);
        return to;
}
