/*
 * Connects to a daemon: to the service, or to a private one that is started for it.
 */
#include "cli/cli.h"
#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/clock.h"

/*
 * A private daemon answers when it has checked its model and allocated its memory.  Unless the user
 * gives another timeout, wait until then; if it dies, the wait ends.
 */
#define PRIVATE_TIMEOUT_MS INT_MAX

/* A daemon that is stopping serves these commands, too. */
#define LOOKS (CLI_STATUS | CLI_MODELS | CLI_PS | CLI_CANCEL | CLI_TOP)

/* A wait for the service that is shorter than this is not worth a word. */
#define SILENT_MS 1000u

/*
 * The sequences that this command runs at once, for which its daemon needs memory.  A beam and its
 * successor are alive together for a moment.
 */
static uint32_t sequences_of(const struct cli *cli)
{
        uint32_t count = cli->generate.n;

        if (cli->command == CLI_FORK_DEMO)
                count = FORK_DEMO_BRANCHES;
        else if (cli->command == CLI_BENCH)
                count = cli_bench_sequences(cli);
        else if (cli->beam.width)
                count = 2 * cli->beam.width;
        return count ? count : 1;
}

/* Starts a private daemon instead of using a service.  It has one model, so requests name none. */
static int connect_private(struct cli *cli)
{
        char message[256] = "", how[64];
        struct smv_connect options = {
                SMV_SIZE(smv_connect),
                .use_fd = 1,
                .timeout_ms = cli->timeout_s ? (int)cli->timeout_s * 1000 : PRIVATE_TIMEOUT_MS,
                .message = message,
                .message_bytes = sizeof(message),
                .transport = cli->transport,
        };
        int r;

        r = daemon_start(cli->model, sequences_of(cli), &options.fd, &cli->child);
        if (r)
                return r;
        cli->model_file = cli->model;
        cli->model = NULL;
        r = smv_connect(&options, &cli->client);
        if (!r)
                return 0;

        daemon_end(cli->child, how, sizeof(how));
        cli->child = 0;
        /* If the daemon hung up, it has ended, and `how` says more than the message. */
        say("the private samovard did not start: %s", r == -ENOTCONN && *how ? how : message);
        return CLI_NO_DAEMON;
}

/* A wait for the service.  If it lasts, the user is told why, once for each reason. */
struct waiting {
        uint32_t limit_s;
        uint64_t begin_ms, said; /* said: a bit for each code */
};

static uint64_t bit_of(enum smv_code code)
{
        return (unsigned)code < 64 ? UINT64_C(1) << code : 1;
}

static void on_wait(void *arg, const struct smv_problem *why, uint32_t wait_ms)
{
        struct waiting *waiting = arg;
        uint64_t reason = bit_of(why->code);

        if (clock_ms() - waiting->begin_ms + wait_ms < SILENT_MS || waiting->said & reason)
                return;
        waiting->said |= reason;
        say("waiting up to %u s (--timeout): %s", waiting->limit_s, why->message);
}

/*
 * Whether the machine is meant to have a daemon: there is its unit; or its socket's folder, which
 * is not ours, so that we have not left it there ourselves.
 */
static bool machine_has_daemon(void)
{
        static const char *const units[] = { "/etc/systemd/system/samovar.socket",
                                             "/usr/lib/systemd/system/samovar.socket",
                                             "/lib/systemd/system/samovar.socket" };

        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
                if (!access(units[i], F_OK))
                        return true;
        return !access("/run/samovar", F_OK) && access("/run/samovar", W_OK);
}

/* No daemon is at the socket.  If --socket names no socket, the path is probably wrong. */
static void advise_start(const struct cli *cli)
{
        const char *variable = getenv("SAMOVAR_SOCKET");
        const char *named = cli->socket ? cli->socket : variable && *variable ? variable : NULL;
        struct stat file;

        if (named ? !strcmp(named, SMV_SYSTEM_SOCKET) : machine_has_daemon())
                say("the machine's daemon is not running; root can see why: systemctl status "
                    "samovar");
        else if (!cli->socket)
                say("no daemon is there: start one with  samovard%s",
                    cli_takes(cli, "--model") ? "  or give --model FILE here" : "");
        else if (!stat(cli->socket, &file) && S_ISSOCK(file.st_mode))
                say("no daemon is there: start one with  samovard --socket %s", cli->socket);
}

/* Connects to the service.  waiting: NULL, or the user is told why it takes long. */
static int dial(struct cli *cli, int timeout_ms, struct waiting *waiting, char *message,
                size_t message_bytes)
{
        struct smv_connect options = {
                SMV_SIZE(smv_connect),
                .socket = cli->socket,
                .timeout_ms = timeout_ms,
                .message = message,
                .message_bytes = message_bytes,
                .any_uid = cli->any_uid,
                .principal = cli->principal,
                .transport = cli->transport,
                .while_stopping = !!(cli->command & LOOKS),
                .on_wait = waiting ? on_wait : NULL,
                .on_wait_arg = waiting,
        };
        int r = smv_connect(&options, &cli->client);

        if (r && !*message)
                snprintf(message, message_bytes, "%s", strerror(-r));
        return r;
}

/* True: no daemon is at the socket. */
static bool is_absent(int r)
{
        return r == -ENOENT || r == -ECONNREFUSED;
}

/* 0; or a negative errno, after a message.  silent: without one if no daemon is there. */
static int try_service(struct cli *cli, bool silent)
{
        char message[256] = "";
        struct waiting waiting = { .limit_s = cli->wait_s, .begin_ms = clock_ms() };
        int r = dial(cli, (int)cli->wait_s * 1000, &waiting, message, sizeof(message));

        if (!r || (silent && is_absent(r)))
                return r;
        say("%s", message);
        if (r == -ETIMEDOUT)
                say("%s--timeout waits longer", waiting.said & bit_of(SMV_SHUTTING_DOWN)
                                                        ? ""
                                                        : "it may be stopped or overloaded; ");
        return r;
}

static int connect_service(struct cli *cli)
{
        int r = try_service(cli, false);

        if (!r || !is_absent(r))
                return r ? CLI_FAILED : 0;
        advise_start(cli);
        return CLI_NO_DAEMON;
}

bool cli_serves(const struct smv_client *client, const char *name)
{
        struct smv_model model = { SMV_SIZE(smv_model) };

        for (size_t i = 0; !smv_model(client, i, &model); i++)
                if (!strcmp(model.name, name))
                        return true;
        return false;
}

int cli_find_model(struct cli *cli)
{
        char path[STORE_PATH_BYTES];

        if (!cli->model || daemon_is_file(cli->model) || store_path(cli->model, path, sizeof(path)))
                return 0;
        cli->model = cli->found_model = strdup(path);
        if (cli->model)
                return 0;
        say("out of memory");
        return CLI_FAILED;
}

/* A private daemon takes one connection, and batch leaves it to the program that it becomes. */
static int connect_file(struct cli *cli)
{
        return cli->command == CLI_BATCH ? 0 : connect_private(cli);
}

/*
 * A name of the folder of models: the service may serve it; if it does not, or if there is none, a
 * private daemon does.  With --socket, only that daemon is meant.
 */
static int connect_named(struct cli *cli)
{
        char path[STORE_PATH_BYTES];
        int r;

        if (cli->socket || store_path(cli->model, path, sizeof(path)))
                return connect_service(cli);
        r = try_service(cli, true);
        if (!r && !cli_serves(cli->client, cli->model)) {
                cli->client = smv_close(cli->client);
                r = -ENOENT;
        }
        if (!r || !is_absent(r))
                return r ? CLI_FAILED : 0;
        r = cli_find_model(cli);
        return r ? r : connect_file(cli);
}

/*
 * models shows the folder of models, too, so it can do without a daemon, if the user has not named
 * one.
 */
static int connect_if_there(struct cli *cli)
{
        int r = cli->socket ? connect_service(cli) : try_service(cli, true);

        return cli->socket ? r : r && !is_absent(r) ? CLI_FAILED : 0;
}

/* bench: the server is another one, or a daemon of its own. */
static bool needs_no_daemon(const struct cli *cli)
{
        return cli->command == CLI_BENCH && (cli->bench.url || cli->argument_count);
}

int cli_connect(struct cli *cli)
{
        if (needs_no_daemon(cli))
                return 0;
        if (cli->command == CLI_MODELS)
                return connect_if_there(cli);
        if (!cli->model)
                return connect_service(cli);
        return daemon_is_file(cli->model) ? connect_file(cli) : connect_named(cli);
}

int cli_redial(struct cli *cli, int timeout_ms, char *message, size_t message_bytes)
{
        *message = '\0';
        return dial(cli, timeout_ms, NULL, message, message_bytes);
}
