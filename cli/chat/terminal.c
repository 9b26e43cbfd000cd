#include "cli/chat/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

#define COLUMNS 80u
#define ROWS    24u

static const int watched[] = { SIGINT, SIGTSTP, SIGWINCH, SIGTERM, SIGHUP, SIGPIPE };
#define WATCHED_N (sizeof(watched) / sizeof(*watched))

static int news_pipe[2] = { -1, -1 };

static void on_signal(int number)
{
        unsigned char byte = (unsigned char)number;
        int saved = errno;
        ssize_t n = write(news_pipe[1], &byte, 1);

        (void)n;
        errno = saved;
}

int terminal_open(struct terminal *terminal)
{
        struct sigaction action = { .sa_handler = on_signal };

        *terminal = (struct terminal){ .out = isatty(STDERR_FILENO) ? STDERR_FILENO : STDOUT_FILENO,
                                       .colours = isatty(STDERR_FILENO) && !getenv("NO_COLOR") };
        if (tcgetattr(STDIN_FILENO, &terminal->usual) < 0 ||
            pipe2(news_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        terminal->news = news_pipe[0];
        for (size_t i = 0; i < WATCHED_N; i++)
                if (sigaction(watched[i], &action, NULL) < 0)
                        return -errno;
        return 0;
}

void terminal_close(struct terminal *terminal)
{
        terminal_usual(terminal);
        for (size_t i = 0; i < WATCHED_N; i++)
                signal(watched[i], SIG_DFL);
        close(news_pipe[0]);
        close(news_pipe[1]);
}

static unsigned bit_of(struct terminal *terminal, int number)
{
        switch (number) {
        case SIGINT:
                return TERMINAL_INTERRUPT;
        case SIGTSTP:
                return TERMINAL_STOP;
        case SIGWINCH:
                return TERMINAL_RESIZE;
        default:
                terminal->ended_by = number;
                return TERMINAL_END;
        }
}

unsigned terminal_take(struct terminal *terminal)
{
        unsigned signals = terminal->ended_by ? TERMINAL_END : 0;
        unsigned char byte;

        while (read(terminal->news, &byte, 1) == 1)
                signals |= bit_of(terminal, byte);
        return signals;
}

bool terminal_wait(struct terminal *terminal, int fd, short events, int timeout_ms)
{
        struct pollfd fds[2] = { { .fd = terminal->news, .events = POLLIN },
                                 { .fd = fd, .events = events } };

        return !terminal->ended_by && poll(fds, fd < 0 ? 1 : 2, timeout_ms) > 0 && fds[1].revents;
}

/*
 * Without the terminal's own lines, a ^D that is typed now is a character, which libedit gets.  A
 * plain reader needs these lines, and gets the end of the input.
 */
void terminal_quiet(struct terminal *terminal)
{
        struct termios mode = terminal->usual;

        mode.c_lflag &= ~(tcflag_t)ECHO;
        if (!terminal->plain) {
                mode.c_lflag &= ~(tcflag_t)ICANON;
                mode.c_cc[VMIN] = 1;
                mode.c_cc[VTIME] = 0;
        }
        tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
        terminal->quiet = true;
}

void terminal_usual(struct terminal *terminal)
{
        if (terminal->quiet)
                tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->usual);
        terminal->quiet = false;
}

void terminal_suspend(struct terminal *terminal)
{
        bool quiet = terminal->quiet;

        terminal_usual(terminal);
        raise(SIGSTOP);
        if (quiet)
                terminal_quiet(terminal);
}

void terminal_status(struct terminal *terminal, const char *text)
{
        int columns = (int)terminal_columns(terminal) - 1;

        if (!isatty(STDERR_FILENO) || (!*text && !terminal->status))
                return;
        fprintf(stderr, "\r\x1b[K%.*s", columns, text);
        terminal->status = *text;
}

static struct winsize size_of(const struct terminal *terminal)
{
        struct winsize size = { 0 };

        ioctl(terminal->out, TIOCGWINSZ, &size);
        return size;
}

size_t terminal_columns(const struct terminal *terminal)
{
        size_t columns = size_of(terminal).ws_col;

        return columns ? columns : COLUMNS;
}

size_t terminal_rows(const struct terminal *terminal)
{
        size_t rows = size_of(terminal).ws_row;

        return rows ? rows : ROWS;
}

void note(const char *format, ...)
{
        struct screen screen;
        char text[4096];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        screen_open(&screen, STDERR_FILENO);
        screen.terminal = true; /* also a log has no control characters */
        screen_text(&screen, text, strlen(text));
        screen_text(&screen, "\n", 1);
}

/* How many bytes of the text fit a line and end between words; all of a word that is too long. */
static size_t line_bytes(const char *text, size_t columns)
{
        size_t end = 0, next;

        do {
                next = end + strspn(text + end, " ");
                next += strcspn(text + next, " ");
                if (end && next > columns)
                        break;
                end = next;
        } while (text[end]);
        return end;
}

void note_row(const struct terminal *terminal, const char *left, size_t indent, const char *text)
{
        size_t columns = terminal_columns(terminal);
        size_t width = columns > indent + 20 ? columns - indent - 1 : 20;

        if (strlen(left) >= indent) {
                note("%s", left);
                left = "";
        }
        do {
                size_t bytes = line_bytes(text, width);

                note("%-*s%.*s", (int)indent, left, (int)bytes, text);
                left = "";
                text += bytes + strspn(text + bytes, " ");
        } while (*text);
}
