#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/utf8.h"
#include "json/writer.h"

void say(const char *format, ...)
{
        char text[1024];
        size_t at, length, n = 0;
        int32_t point;
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);

        for (at = 0; text[at]; at += length) {
                point = utf8_next(text + at, strlen(text + at), &length);
                if (point < 0 || utf8_is_control(point)) {
                        text[n++] = '?';
                } else {
                        memmove(text + n, text + at, length);
                        n += length;
                }
        }
        fprintf(stderr, "samovar: %.*s\n", (int)n, text);
}

int say_failed(const struct cli *cli, int error)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        char flag[128];

        smv_error(cli->client, &problem);
        if (*problem.field && cli_name_flag(cli, problem.field, flag, sizeof(flag)))
                say("%s: %s (%s)", flag, problem.message, problem.name);
        else if (*problem.name)
                say("%s (%s)", problem.message, problem.name);
        else
                say("%s", *problem.message ? problem.message : strerror(-error));
        return CLI_FAILED;
}

static int write_all(int fd, const char *bytes, size_t count)
{
        ssize_t n;

        while (count) {
                n = write(fd, bytes, count);
                if (n >= 0) {
                        bytes += n;
                        count -= (size_t)n;
                } else if (errno == EPIPE) {
                        return CLI_FAILED;
                } else if (errno != EINTR) {
                        say("cannot write: %s", strerror(errno));
                        return CLI_FAILED;
                }
        }
        return 0;
}

int screen_raw(const char *bytes, size_t count)
{
        return write_all(STDOUT_FILENO, bytes, count);
}

void screen_open(struct screen *screen, int fd)
{
        *screen = (struct screen){ .fd = fd, .terminal = isatty(fd) };
}

/*
 * Writes the character at `at` to `safe`, in a form that is safe for a terminal.  Returns the
 * number of bytes read; 0 if the end of the character is missing.
 */
static size_t make_safe(const char *at, size_t left, char *safe, size_t *ret_safe)
{
        size_t length;
        int32_t point = utf8_next(at, left, &length);

        if (point == -2)
                return 0;
        if (point < 0 || utf8_is_control(point)) {
                safe[0] = '?';
                *ret_safe = 1;
        } else {
                memcpy(safe, at, length);
                *ret_safe = length;
        }
        return length;
}

int screen_text(struct screen *screen, const char *text, size_t bytes)
{
        struct bytes all = { 0 };
        size_t at = 0, length, safe;
        char *out;
        int r;

        if (!screen->terminal)
                return write_all(screen->fd, text, bytes);

        /* No character grows, so the second half of the buffer is large enough for the output. */
        if (bytes_add(&all, screen->held, screen->held_bytes) || bytes_add(&all, text, bytes) ||
            bytes_reserve(&all, all.count)) {
                bytes_deinit(&all);
                say("out of memory");
                return CLI_FAILED;
        }

        out = all.at + all.count;
        while (at < all.count) {
                length = make_safe(all.at + at, all.count - at, out, &safe);
                if (!length)
                        break;
                at += length;
                out += safe;
        }
        screen->held_bytes = all.count - at;
        memcpy(screen->held, all.at + at, screen->held_bytes);
        r = write_all(screen->fd, all.at + all.count, (size_t)(out - (all.at + all.count)));
        bytes_deinit(&all);
        return r;
}

int screen_close(struct screen *screen)
{
        int r = 0;

        if (!screen->terminal)
                return 0;
        if (screen->held_bytes)
                r = write_all(screen->fd, "?", 1);
        return r ? r : write_all(screen->fd, "\n", 1);
}
