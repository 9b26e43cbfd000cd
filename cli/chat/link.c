#include "cli/chat/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define SILENT_MS 1000 /* then the user is told what is waited for */
#define SLICE_MS  500  /* of a wait for a connection; ^C is noticed between two */

/* The model that the chat uses; the daemon's default if the user has named none. */
static void find_model(struct link *link)
{
        const char *name = link->cli->model;

        for (size_t i = 0;; i++) {
                struct smv_model model = { SMV_SIZE(smv_model) };

                if (smv_model(link->cli->client, i, &model))
                        return;
                if (!i || (name ? !strcmp(model.name, name) : model.is_default))
                        link->model = model;
        }
}

static void note_connection(struct link *link)
{
        const char *socket = smv_socket_used(link->cli->client);

        link->connections++;
        snprintf(link->place, sizeof(link->place), "%s", socket ? socket : "");
        find_model(link);
}

void link_begin(struct link *link, struct cli *cli, struct terminal *terminal)
{
        link->cli = cli;
        link->terminal = terminal;
        note_connection(link);
}

static void reap(struct cli *cli)
{
        char how[64];

        if (!cli->child)
                return;
        daemon_end(cli->child, how, sizeof(how));
        cli->child = 0;
        if (*how && strcmp(how, "it ended with status 0"))
                note("The private samovard has ended: %s.", how);
}

void link_close(struct link *link)
{
        struct cli *cli = link->cli;

        cli->client = smv_close(cli->client);
        memset(&link->model, 0, sizeof(link->model)); /* its texts were the client's */
        reap(cli);
}

static enum outcome connect_service(struct link *link)
{
        char message[256];
        int r = -ETIMEDOUT;

        for (uint32_t ms = 0; r == -ETIMEDOUT && ms < link->cli->wait_s * 1000; ms += SLICE_MS) {
                r = cli_redial(link->cli, SLICE_MS, message, sizeof(message));
                if (r && terminal_take(link->terminal) & (TERMINAL_INTERRUPT | TERMINAL_END))
                        return OUTCOME_INTERRUPTED;
        }
        if (!r)
                return OUTCOME_DONE;
        note("There is no daemon now: %s", message);
        return OUTCOME_FAILED;
}

enum outcome link_connect(struct link *link)
{
        struct cli *cli = link->cli;
        enum outcome o;

        if (cli->client)
                return OUTCOME_DONE;
        if (cli->model_file) {
                cli->model = cli->model_file;
                o = cli_connect(cli) ? OUTCOME_FAILED : OUTCOME_DONE;
                cli->model = NULL;
        } else {
                o = connect_service(link);
        }
        if (o == OUTCOME_DONE) {
                note_connection(link);
                note("Connected again; the daemon reads the conversation anew.");
        }
        return o;
}

/* Keeps what the client says about a failure. */
static void keep_problem(struct link *link)
{
        link->problem = (struct smv_problem){ SMV_SIZE(smv_problem) };
        smv_error(link->cli->client, &link->problem);
        snprintf(link->message, sizeof(link->message), "%s", link->problem.message);
        link->problem.message = link->message;
}

enum outcome link_failure(struct link *link, int r)
{
        keep_problem(link);
        if (r == -ENOTCONN || r == -EPIPE || r == -ETIMEDOUT || link->problem.code == SMV_LOST) {
                link_close(link);
                return OUTCOME_LOST;
        }
        if (link->problem.code == SMV_TOO_LONG || link->problem.code == SMV_TOO_LARGE)
                return OUTCOME_TOO_LONG;
        return OUTCOME_REFUSED;
}

void link_say(const struct link *link)
{
        const struct smv_problem *problem = &link->problem;
        char flag[128];

        if (*problem->field && cli_name_flag(link->cli, problem->field, flag, sizeof(flag)))
                note("%s: %s (%s)", flag, problem->message, problem->name);
        else
                note("%s (%s)", problem->message, problem->name);
}

enum outcome link_next(struct link *link, struct smv_event *ret_event, int timeout_ms)
{
        struct smv_client *client = link->cli->client;
        bool waited = false;

        for (;;) {
                unsigned signals = terminal_take(link->terminal);
                int r;

                if (signals & (TERMINAL_INTERRUPT | TERMINAL_END))
                        return OUTCOME_INTERRUPTED;
                if (signals & TERMINAL_STOP)
                        terminal_suspend(link->terminal);
                r = smv_next(client, ret_event, 0);
                if (r < 0)
                        return link_failure(link, r);
                if (r)
                        return OUTCOME_DONE;
                if (waited)
                        return OUTCOME_NOTHING;
                waited = !terminal_wait(link->terminal, smv_fd(client),
                                        smv_wants_write(client) ? POLLIN | POLLOUT : POLLIN,
                                        timeout_ms) &&
                         timeout_ms >= 0;
        }
}

enum outcome link_reply(struct link *link, int r, uint32_t request, struct smv_event *ret_reply)
{
        enum outcome o;

        if (r)
                return link_failure(link, r);
        do {
                o = link_next(link, ret_reply, SILENT_MS);
                if (o == OUTCOME_NOTHING)
                        terminal_status(link->terminal, "waiting for the daemon; ^C gives up");
        } while (o == OUTCOME_NOTHING ||
                 (o == OUTCOME_DONE &&
                  (ret_reply->kind != SMV_EVENT_REPLY || ret_reply->stream != request)));
        terminal_status(link->terminal, "");
        if (o == OUTCOME_INTERRUPTED)
                link_close(link);
        if (o == OUTCOME_DONE && ret_reply->code != SMV_OK)
                return link_failure(link, 0);
        return o;
}
