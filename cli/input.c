#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int input_read(int fd, const char *name, struct bytes *text)
{
        ssize_t n;

        for (;;) {
                if (bytes_reserve(text, 65536)) {
                        say("out of memory");
                        return CLI_FAILED;
                }
                n = read(fd, text->at + text->count, text->size - text->count - 1);
                if (n > 0) {
                        text->count += (size_t)n;
                } else if (!n) {
                        text->at[text->count] = '\0';
                        return 0;
                } else if (errno != EINTR) {
                        say("cannot read %s: %s", name, strerror(errno));
                        return CLI_FAILED;
                }
        }
}

static int join_words(const struct cli *cli, struct bytes *text)
{
        int r = 0;

        for (int i = 0; i < cli->argument_count && !r; i++) {
                r = i ? bytes_add(text, " ", 1) : 0;
                if (!r)
                        r = bytes_add(text, cli->arguments[i], strlen(cli->arguments[i]));
        }
        if (r || bytes_add(text, "", 1)) {
                say("out of memory");
                return CLI_FAILED;
        }
        text->count--;
        return 0;
}

int cli_input(struct cli *cli)
{
        bool dash = cli->argument_count == 1 && !strcmp(cli->arguments[0], "-");

        if (cli->argument_count && !dash)
                return join_words(cli, &cli->input);
        if (!dash && isatty(STDIN_FILENO)) {
                say("%s needs a text, as arguments or on stdin; see samovar %s --help", cli->name,
                    cli->name);
                return CLI_USAGE;
        }
        return input_read(STDIN_FILENO, "stdin", &cli->input);
}
