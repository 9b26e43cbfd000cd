/*
 * A batch: samovar-http has the dialects, so it also runs batches without HTTP (bridge/offline).
 * This command finds the daemon, or starts a private one, and then becomes samovar-http.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLAGS_MAX  16u
#define SLOTS      64u /* of a private daemon; as many as samovard has by default */
#define FD_LEAST   3
#define FLAG_BYTES (PATH_MAX + 32)

struct command_line {
        char *at[FLAGS_MAX + 1]; /* NULL-ended */
        unsigned count;
        bool failed; /* out of memory */
};

__attribute__((format(printf, 2, 3))) static void add(struct command_line *line, const char *format,
                                                      ...)
{
        char flag[FLAG_BYTES];
        va_list values;

        va_start(values, format);
        vsnprintf(flag, sizeof(flag), format, values);
        va_end(values);
        line->at[line->count] = strdup(flag);
        line->failed = line->failed || !line->at[line->count++];
}

static void make_line(const struct cli *cli, const char *program, int daemon,
                      struct command_line *line)
{
        const char *folder = getenv("TMPDIR");

        add(line, "%s", program);
        add(line, "--batch=%s", cli->argument_count ? cli->arguments[0] : "-");
        add(line, "--output=%s", cli->batch.output ? cli->batch.output : "-");
        add(line, "--log-level=error");
        if (cli->batch.resume)
                add(line, "--resume");
        if (cli->batch.parallel)
                add(line, "--parallel=%u", cli->batch.parallel);
        if (cli->socket)
                add(line, "--socket=%s", cli->socket);
        if (daemon >= 0)
                add(line, "--daemon-fd=%d", daemon);
        else if (cli->model)
                add(line, "--batch-model=%s", cli->model);
        if (folder && *folder)
                add(line, "--spool=%s", folder);
}

/* The descriptor stays open in samovar-http, and is none of stdin, stdout and stderr. */
static int start_daemon(struct cli *cli, int *ret_fd)
{
        int fd, r = daemon_start(cli->model, cli->batch.parallel ? cli->batch.parallel : SLOTS, &fd,
                                 &cli->child);

        if (r)
                return r;
        *ret_fd = fcntl(fd, F_DUPFD, FD_LEAST);
        close(fd);
        if (*ret_fd >= 0)
                return 0;
        say("cannot pass the private samovard on: %s", strerror(errno));
        return CLI_FAILED;
}

static int become(const struct cli *cli, int daemon)
{
        static const struct program_names samovar_http = { "SAMOVAR_HTTP", "samovar-http",
                                                           "../bridge/samovar-http" };
        struct command_line line = { .count = 0 };
        char program[FLAG_BYTES];

        program_find(&samovar_http, program, sizeof(program));
        make_line(cli, program, daemon, &line);
        if (line.failed)
                say("out of memory");
        else if (execvp(program, line.at))
                say("cannot run %s: %s; it is part of samovar, and runs batches", program,
                    strerror(errno));
        for (unsigned i = 0; i < line.count; i++)
                free(line.at[i]);
        return CLI_FAILED;
}

int cli_batch(struct cli *cli)
{
        int fd = -1, r = 0;

        if (cli->client && cli->model && !cli_serves(cli->client, cli->model)) {
                say("--model %s: the daemon serves no such model; samovar models lists what there "
                    "is",
                    cli->model);
                return CLI_USAGE;
        }
        if (!cli->client)
                r = start_daemon(cli, &fd);
        cli->client = smv_close(cli->client);
        return r ? r : become(cli, fd);
}
