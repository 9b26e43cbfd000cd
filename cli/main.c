#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * A private daemon answers when it has checked its model and allocated its memory.  Unless the user
 * gives another timeout, wait until then; if it dies, the wait ends.
 */
#define PRIVATE_TIMEOUT_MS INT_MAX

/* A daemon that is stopping serves these commands, too. */
#define LOOKS (CLI_STATUS | CLI_MODELS | CLI_PS | CLI_CANCEL)

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

static uint64_t clock_ms(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

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

/* Whether the machine is meant to have a daemon: there is its socket's folder, or its unit. */
static bool machine_has_daemon(void)
{
        static const char *const signs[] = { "/run/samovar",
                                             "/usr/lib/systemd/system/samovar.socket",
                                             "/lib/systemd/system/samovar.socket" };

        for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
                if (!access(signs[i], F_OK))
                        return true;
        return false;
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

static int connect_service(struct cli *cli)
{
        char message[256] = "";
        struct waiting waiting = { .limit_s = cli->wait_s, .begin_ms = clock_ms() };
        struct smv_connect options = {
                SMV_SIZE(smv_connect),
                .socket = cli->socket,
                .timeout_ms = (int)cli->wait_s * 1000,
                .message = message,
                .message_bytes = sizeof(message),
                .any_uid = cli->any_uid,
                .principal = cli->principal,
                .transport = cli->transport,
                .while_stopping = !!(cli->command & LOOKS),
                .on_wait = on_wait,
                .on_wait_arg = &waiting,
        };
        int r;

        r = smv_connect(&options, &cli->client);
        if (!r)
                return 0;
        say("%s", *message ? message : strerror(-r));
        if (r == -ETIMEDOUT)
                say("%s--timeout waits longer", waiting.said & bit_of(SMV_SHUTTING_DOWN)
                                                        ? ""
                                                        : "it may be stopped or overloaded; ");
        if (r != -ENOENT && r != -ECONNREFUSED)
                return CLI_FAILED;
        advise_start(cli);
        return CLI_NO_DAEMON;
}

/* Needs no input and no running daemon.  Returns an exit status, unless samovard replaces us. */
static int run_inspect(struct cli *cli)
{
        if (cli->argument_count == 1)
                return daemon_inspect(cli->arguments[0], cli->json);
        say("inspect takes one path: a GGUF file, a safetensors file, or a folder");
        return CLI_USAGE;
}

static int run(struct cli *cli)
{
        switch (cli->command) {
        case CLI_TOKENIZE:
                return cli_tokenize(cli);
        case CLI_DETOKENIZE:
                return cli_detokenize(cli);
        case CLI_STATUS:
                return cli_status(cli);
        case CLI_MODELS:
                return cli_models(cli);
        case CLI_PS:
                return cli_ps(cli);
        case CLI_CANCEL:
                return cli_cancel(cli);
        case CLI_TEMPLATE:
                return cli_template(cli);
        case CLI_ATTACH:
                return cli_attach(cli);
        case CLI_FORK_DEMO:
                return cli_fork_demo(cli);
        case CLI_BENCH:
                return cli_bench(cli);
        default:
                return cli_generate(cli);
        }
}

#define NO_INPUT (CLI_STATUS | CLI_MODELS | CLI_PS | CLI_CANCEL | CLI_ATTACH | CLI_BENCH)

static bool needs_input(const struct cli *cli)
{
        if (cli->command == CLI_FORK_DEMO)
                return cli->argument_count; /* without words it uses its own beginning */
        return !(cli->command & NO_INPUT) && !cli->messages;
}

/* bench: the server is another one, or a daemon of its own. */
static bool needs_no_daemon(const struct cli *cli)
{
        return cli->command == CLI_BENCH && (cli->bench.url || cli->argument_count);
}

/* Runs a command that needs a daemon: the service, or a private one. */
static int serve(struct cli *cli)
{
        int r = 0;

        if (cli->command & (CLI_ASK | CLI_TEMPLATE))
                r = cli_conversation(cli);
        if (!r && cli->command & (CLI_ASK | CLI_COMPLETE))
                r = cli_answer_form(cli);
        if (!r && !needs_no_daemon(cli))
                r = cli->model && daemon_is_file(cli->model) ? connect_private(cli)
                                                             : connect_service(cli);
        return r ? r : run(cli);
}

int main(int argc, char **argv)
{
        struct cli cli = { 0 };
        char how[64];
        int r;

        cli.arguments = calloc((size_t)argc + 1, sizeof(*cli.arguments));
        if (!cli.arguments) {
                say("out of memory");
                return CLI_FAILED;
        }

        r = cli_flags(&cli, argc, argv);
        if (!r && cli.command == CLI_INSPECT)
                r = run_inspect(&cli);
        if (!r && needs_input(&cli))
                r = cli_input(&cli);
        if (!r)
                r = cli.file ? cli_render_template(&cli) : serve(&cli);

        smv_close(cli.client);
        if (cli.child)
                daemon_end(cli.child, how, sizeof(how));
        bytes_deinit(&cli.packed);
        bytes_deinit(&cli.constraint);
        bytes_deinit(&cli.input);
        free(cli.arguments);
        return r < 0 ? CLI_GOOD : r;
}
