#include "cli/top/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/clock.h"
#include "json/writer.h"

#define RETRY_MS 1000

struct link link_to(struct cli *cli)
{
        return (struct link){ .cli = cli };
}

void link_deinit(struct link *link)
{
        bytes_deinit(&link->status);
        bytes_deinit(&link->list);
}

static void lose(struct link *link, const char *why)
{
        snprintf(link->why, sizeof(link->why), "%s", why);
        smv_close(link->cli->client);
        link->cli->client = NULL;
        link->status_request = link->list_request = link->end_request = 0;
        link->lost_ms = clock_ms();
        link->retry_ms = link->lost_ms + RETRY_MS / 2;
}

/* The daemon that comes may be another one, so its user is checked again. */
static void reconnect(struct link *link)
{
        struct cli *cli = link->cli;
        char message[256] = "";
        struct smv_connect options = {
                SMV_SIZE(smv_connect),
                .socket = cli->socket,
                .timeout_ms = LINK_CONNECT_MS,
                .message = message,
                .message_bytes = sizeof(message),
                .any_uid = cli->any_uid,
                .principal = cli->principal,
                .transport = cli->transport,
                .while_stopping = 1,
        };
        int r = smv_connect(&options, &cli->client);

        link->retry_ms = clock_ms() + RETRY_MS;
        if (!r)
                return;
        cli->client = NULL;
        snprintf(link->why, sizeof(link->why), "%s", *message ? message : strerror(-r));
}

void link_ask(struct link *link)
{
        int r;

        if (!link->cli->client && clock_ms() >= link->retry_ms)
                reconnect(link);
        if (!link->cli->client || link->status_request || link->list_request)
                return;
        r = smv_ask_status(link->cli->client, &link->status_request);
        if (!r)
                r = smv_ask_list(link->cli->client, &link->list_request);
        if (r)
                lose(link, strerror(-r));
        link->asked_ms = clock_ms();
}

void link_end(struct link *link, uint64_t number)
{
        if (link->cli->client && !link->end_request &&
            smv_ask_end(link->cli->client, number, &link->end_request))
                link->end_request = 0;
}

/* Keeps a copy of a reply.  The daemon does not know its socket: it becomes the first member. */
static int keep(struct link *link, struct bytes *to, const struct smv_event *reply, bool is_status)
{
        const char *socket = is_status ? smv_socket_used(link->cli->client) : NULL;
        struct json_writer writer = { .to = to };
        const char *text = reply->text;

        to->count = 0;
        if (socket && reply->text_bytes > 2) {
                json_write_raw(&writer, "{\"socket\":");
                json_write_text(&writer, socket, strlen(socket));
                json_write_raw(&writer, ",");
                text++;
        }
        json_write_raw(&writer, text);
        return json_write_end(&writer);
}

static enum link_news take_end(struct link *link, const struct smv_event *reply)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        link->end_request = 0;
        if (reply->code) {
                smv_error(link->cli->client, &problem);
                snprintf(link->ended, sizeof(link->ended), "%s", problem.message);
        } else {
                snprintf(link->ended, sizeof(link->ended), "the stream is being ended");
        }
        return LINK_ENDED;
}

static enum link_news take_reply(struct link *link, const struct smv_event *reply)
{
        bool is_status = reply->stream == link->status_request;
        uint32_t *request = is_status ? &link->status_request : &link->list_request;
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        if (reply->stream == link->end_request)
                return take_end(link, reply);
        if (reply->stream != *request)
                return LINK_QUIET;
        *request = 0;
        if (reply->code) {
                smv_error(link->cli->client, &problem);
                lose(link, problem.message);
                return LINK_LOST;
        }
        if (keep(link, is_status ? &link->status : &link->list, reply, is_status)) {
                lose(link, "out of memory");
                return LINK_LOST;
        }
        return link->status_request || link->list_request ? LINK_QUIET : LINK_ANSWERED;
}

enum link_news link_take(struct link *link)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        enum link_news news = LINK_QUIET;

        while (link->cli->client && news == LINK_QUIET) {
                int r = smv_next(link->cli->client, &event, 0);

                if (r == 1 && event.kind == SMV_EVENT_REPLY)
                        news = take_reply(link, &event);
                else if (r == -ENOTCONN) {
                        lose(link, "the daemon is gone");
                        return LINK_LOST;
                } else if (r < 1)
                        return LINK_QUIET;
        }
        return news;
}

int link_fd(const struct link *link, bool *ret_writable)
{
        *ret_writable = false;
        if (!link->cli->client)
                return -1;
        *ret_writable = smv_wants_write(link->cli->client);
        return smv_fd(link->cli->client);
}

uint64_t link_silent_ms(const struct link *link)
{
        uint64_t silent = clock_ms() - link->asked_ms;

        return link->cli->client && (link->status_request || link->list_request) &&
                               silent >= LINK_SLOW_MS
                       ? silent
                       : 0;
}
