/*
 * The text that a command works on: its words, or stdin.
 *
 * `ask` and `template` take both: input follows the question.  For all other commands it is one or
 * the other, so that a program that gives words always sends just these words, whatever its stdin
 * is.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 2000 /* then the command says that it waits for stdin */

static int out_of_memory(void)
{
        say("out of memory");
        return CLI_FAILED;
}

int input_read(int fd, const char *name, struct bytes *text)
{
        ssize_t n;

        for (;;) {
                if (bytes_reserve(text, 65536))
                        return out_of_memory();
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

int input_file(const char *path, struct bytes *text)
{
        int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
        int r;

        if (fd < 0) {
                say("%s: %s", path, strerror(errno));
                return CLI_FAILED;
        }
        r = input_read(fd, path, text);
        if (fd != STDIN_FILENO)
                close(fd);
        return r;
}

static int join_words(const struct cli *cli, int words, struct bytes *text)
{
        for (int i = 0; i < words; i++)
                if ((i && bytes_add(text, " ", 1)) ||
                    bytes_add(text, cli->arguments[i], strlen(cli->arguments[i])))
                        return out_of_memory();
        if (bytes_add(text, "", 1))
                return out_of_memory();
        text->count--;
        return 0;
}

/*
 * True if stdin is to be appended to words.  A pipe or a file was most likely given on purpose.  A
 * terminal and /dev/null have nothing to append.  A socket is stdin of a command that ssh or
 * another program started, and often stays open although nothing is ever written to it.
 */
static bool has_input(void)
{
        struct stat file;

        return !fstat(STDIN_FILENO, &file) && (S_ISFIFO(file.st_mode) || S_ISREG(file.st_mode));
}

/* A pipe that this command has only inherited may stay open for ever: say what it waits for. */
static void wait_for_input(void)
{
        struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

        if (!poll(&input, 1, PATIENCE_MS))
                say("waiting for the rest of the question on stdin; </dev/null gives none");
}

/* The input follows the question, after an empty line.  Without input there is no such line. */
static int append_input(struct bytes *text)
{
        size_t question = text->count;
        int r;

        wait_for_input();
        if (bytes_add(text, "\n\n", 2))
                return out_of_memory();
        r = input_read(STDIN_FILENO, "stdin", text);
        if (!r && text->count == question + 2) {
                text->count = question;
                text->at[question] = '\0';
        }
        return r;
}

int cli_input(struct cli *cli)
{
        bool appends = cli->command & (CLI_ASK | CLI_TEMPLATE | CLI_CHAT);
        bool dash = cli->argument_count && !strcmp(cli->arguments[cli->argument_count - 1], "-") &&
                    (appends || cli->argument_count == 1);
        int words = cli->argument_count - dash, r;

        if (!words && !dash && isatty(STDIN_FILENO)) {
                say("%s needs a text, as arguments or on stdin; see samovar %s --help", cli->name,
                    cli->name);
                return CLI_USAGE;
        }
        if (!words)
                r = input_read(STDIN_FILENO, "stdin", &cli->input);
        else
                r = join_words(cli, words, &cli->input);
        if (!r && words && appends && (dash || has_input()))
                r = append_input(&cli->input);
        if (r || cli->input.count || !(cli->command & (CLI_ASK | CLI_COMPLETE | CLI_CHAT)))
                return r;
        if (words && cli->command == CLI_COMPLETE)
                return 0;
        say("%s needs a text, but %s is empty; see samovar %s --help", cli->name,
            words ? "the question" : "stdin", cli->name);
        return CLI_USAGE;
}
