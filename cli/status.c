/*
 * status: asks the daemon, and prints one screen, all counts, or JSON; with --watch again and
 * again.
 */
#include "cli/status.h"
#include "cli/reply.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The terminal's size, less a line for the prompt of the shell. */
static struct status_size screen_size(void)
{
        struct winsize size;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row < 2 || size.ws_col < 20)
                return (struct status_size){ .rows = 23, .columns = 80 };
        return (struct status_size){ .rows = size.ws_row - 1u, .columns = size.ws_col };
}

/* Appends the lines; before each end of a line it clears what an earlier screen left there. */
static int redraw(const struct bytes *lines, struct bytes *to)
{
        int r = bytes_add(to, "\x1b[H", 3);

        for (size_t at = 0, end; !r && at < lines->count; at = end + 1) {
                end = at + (size_t)((char *)memchr(lines->at + at, '\n', lines->count - at) -
                                    (lines->at + at));
                r = bytes_add(to, lines->at + at, end - at);
                if (!r)
                        r = bytes_add(to, "\x1b[K\n", 4);
        }
        return r ? r : bytes_add(to, "\x1b[J", 3);
}

static int print_screen(const struct cli *cli, const char *json)
{
        bool draws = cli->watch_s > 0 && isatty(STDOUT_FILENO);
        struct bytes lines = { 0 }, out = { 0 };
        struct json_document *status = NULL;
        int r;

        r = reply_parse(json, "the status", &status);
        if (r)
                return r;
        r = status_make_screen(status, screen_size(), &lines);
        if (!r && draws)
                r = redraw(&lines, &out);
        if (r)
                say("cannot show the status: %s", strerror(-r));
        r = r       ? CLI_FAILED
            : draws ? screen_raw(out.at, out.count)
                    : screen_raw(lines.at, lines.count);
        bytes_deinit(&lines);
        bytes_deinit(&out);
        json_free(status);
        return r;
}

static int print(const struct cli *cli, const char *json)
{
        int r;

        if (cli->json) {
                r = screen_raw(json, strlen(json));
                return r ? r : screen_raw("\n", 1);
        }
        if (!cli->all)
                return print_screen(cli, json);
        status_print_all(json);
        return fflush(stdout) ? CLI_FAILED : CLI_GOOD;
}

static int print_once(struct cli *cli)
{
        struct bytes json = { 0 };
        int r;

        r = reply_status(cli, &json);
        if (!r)
                r = print(cli, json.at);
        bytes_deinit(&json);
        return r;
}

int cli_status(struct cli *cli)
{
        bool draws = !cli->json && !cli->all && isatty(STDOUT_FILENO);
        int r = print_once(cli);

        if (!cli->watch_s)
                return r;
        while (!r) {
                poll(NULL, 0, (int)(cli->watch_s * 1000));
                if (!draws && !cli->json)
                        r = screen_raw("\n", 1);
                if (!r)
                        r = print_once(cli);
        }
        return r;
}
