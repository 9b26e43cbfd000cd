#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/top/top.h"

#include <stdlib.h>
#include <unistd.h>

/* Needs no input and no running daemon.  Returns an exit status, unless samovard replaces us. */
static int run_inspect(struct cli *cli)
{
        if (cli->argument_count == 1)
                return daemon_inspect(cli->arguments[0], cli->json);
        say("inspect takes one path: a GGUF file, a safetensors file, or a folder");
        return CLI_USAGE;
}

/* True: the command needs neither input nor a daemon, and *ret_result is its exit status. */
static bool run_alone(struct cli *cli, int *ret_result)
{
        switch (cli->command) {
        case CLI_INSPECT:
                *ret_result = run_inspect(cli);
                return true;
        case CLI_DOCTOR:
                *ret_result = cli_find_model(cli);
                if (!*ret_result)
                        *ret_result = cli_doctor(cli);
                return true;
        case CLI_PULL:
                *ret_result = cli_pull(cli);
                return true;
        case CLI_RM:
                *ret_result = cli_rm(cli);
                return true;
        case CLI_MODELS:
                if (cli->names)
                        *ret_result = cli_model_names();
                return cli->names;
        default:
                return false;
        }
}

static int run(struct cli *cli)
{
        switch (cli->command) {
        case CLI_CHAT:
                return cli_chat(cli);
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
        case CLI_TOP:
                return cli_top(cli);
        case CLI_TEMPLATE:
                return cli_template(cli);
        case CLI_ATTACH:
                return cli_attach(cli);
        case CLI_FORK_DEMO:
                return cli_fork_demo(cli);
        case CLI_BATCH:
                return cli_batch(cli);
        case CLI_BENCH:
                return cli_bench(cli);
        default:
                return cli_generate(cli);
        }
}

#define NO_INPUT                                                                                   \
        (CLI_STATUS | CLI_MODELS | CLI_PS | CLI_CANCEL | CLI_ATTACH | CLI_BATCH | CLI_TOP |        \
         CLI_BENCH)

static bool needs_input(const struct cli *cli)
{
        if (cli->command == CLI_FORK_DEMO)
                return cli->argument_count; /* without words it uses its own beginning */
        if (cli->command == CLI_CHAT)
                return cli->argument_count || !isatty(STDIN_FILENO); /* else the user types */
        return !(cli->command & NO_INPUT) && !cli->messages;
}

/* Runs a command that needs a daemon: the service, or a private one. */
static int serve(struct cli *cli)
{
        int r = 0;

        if (cli->command & (CLI_ASK | CLI_TEMPLATE))
                r = cli_conversation(cli);
        if (!r && cli->command & (CLI_ASK | CLI_COMPLETE))
                r = cli_answer_form(cli);
        if (!r)
                r = cli_connect(cli);
        return r ? r : run(cli);
}

/* Everything but commands that look at this machine alone. */
static int run_with_daemon(struct cli *cli)
{
        int r = needs_input(cli) ? cli_input(cli) : 0;

        if (r)
                return r;
        return cli->file ? cli_render_template(cli) : serve(cli);
}

int main(int argc, char **argv)
{
        struct cli cli = { .pull.retries = PULL_RETRIES };
        char how[64];
        int r;

        cli.arguments = calloc((size_t)argc + 1, sizeof(*cli.arguments));
        if (!cli.arguments) {
                say("out of memory");
                return CLI_FAILED;
        }

        r = cli_flags(&cli, argc, argv);
        if (!r && !run_alone(&cli, &r))
                r = run_with_daemon(&cli);

        smv_close(cli.client);
        if (cli.child)
                daemon_end(cli.child, how, sizeof(how));
        free(cli.found_model);
        bytes_deinit(&cli.packed);
        bytes_deinit(&cli.constraint);
        bytes_deinit(&cli.predicted);
        bytes_deinit(&cli.input);
        free(cli.arguments);
        return r < 0 ? CLI_GOOD : r;
}
