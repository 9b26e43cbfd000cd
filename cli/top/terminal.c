#include "cli/top/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* The alternate screen, no cursor, and no wrapping of long lines; and all of it back. */
static const char enter[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
static const char leave[] = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l";

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* For the handler of a crash, too. */
static struct {
        struct termios before;
        volatile sig_atomic_t entered;
} screen;

static void put(const char *bytes, size_t count)
{
        /* Ignore the result: a terminal that has gone shows nothing any more. */
        while (count) {
                ssize_t n = write(STDOUT_FILENO, bytes, count);

                if (n < 0 && errno != EINTR)
                        return;
                bytes += n > 0 ? n : 0;
                count -= n > 0 ? (size_t)n : 0;
        }
}

/* Only calls that a handler of signals may make. */
static void go_back(void)
{
        if (!screen.entered)
                return;
        screen.entered = 0;
        put(leave, sizeof(leave) - 1);
        tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

static void on_crash(int signal)
{
        go_back();
        raise(signal); /* the handler was for once, so this ends the process */
}

static int go_raw(void)
{
        struct termios raw;

        if (tcgetattr(STDIN_FILENO, &screen.before))
                return -errno;
        raw = screen.before;
        raw.c_iflag &= ~(tcflag_t)(BRKINT | ICRNL | INPCK | ISTRIP | IXON);
        raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN | ISIG);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
                return -errno;
        screen.entered = 1;
        put(enter, sizeof(enter) - 1);
        return 0;
}

bool top_terminal_is_usable(void)
{
        const char *kind = getenv("TERM");

        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && kind && *kind &&
               strcmp(kind, "dumb") != 0;
}

static void watched_signals(sigset_t *set)
{
        sigemptyset(set);
        for (size_t i = 0; i < LENGTH(ending); i++)
                sigaddset(set, ending[i]);
        sigaddset(set, SIGWINCH);
        sigaddset(set, SIGTSTP);
        sigaddset(set, SIGCONT);
}

int top_terminal_open(struct terminal *terminal)
{
        struct sigaction action = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };
        sigset_t set;
        int r;

        *terminal = (struct terminal){ 0 };
        watched_signals(&set);
        sigprocmask(SIG_BLOCK, &set, NULL);
        terminal->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (terminal->signals < 0)
                return -errno;
        for (size_t i = 0; i < LENGTH(crashes); i++)
                sigaction(crashes[i], &action, NULL);
        r = go_raw();
        if (r)
                close(terminal->signals);
        return r;
}

void top_terminal_close(struct terminal *terminal)
{
        go_back();
        close(terminal->signals);
}

/* Lets a blocked signal do what it does by default. */
static void let_through(int signal)
{
        struct sigaction action = { .sa_handler = SIG_DFL };
        sigset_t set;

        sigaction(signal, &action, NULL);
        sigemptyset(&set);
        sigaddset(&set, signal);
        raise(signal);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void top_terminal_die(struct terminal *terminal, int signal)
{
        top_terminal_close(terminal);
        let_through(signal);
        _exit(128 + signal);
}

/* Returns when the program is continued. */
static void suspend(void)
{
        sigset_t set;

        go_back();
        let_through(SIGTSTP);
        sigemptyset(&set);
        sigaddset(&set, SIGTSTP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        (void)go_raw(); /* if the terminal has gone, the next read says so */
}

struct terminal_size top_terminal_size(void)
{
        struct winsize size;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
                return (struct terminal_size){ .rows = 24, .columns = 80 };
        return (struct terminal_size){ .rows = size.ws_row, .columns = size.ws_col };
}

static enum terminal_event read_signal(struct terminal *terminal)
{
        struct signalfd_siginfo info;

        if (read(terminal->signals, &info, sizeof(info)) != sizeof(info))
                return TERMINAL_NOTHING;
        terminal->signal = (int)info.ssi_signo;
        for (size_t i = 0; i < LENGTH(ending); i++)
                if (ending[i] == terminal->signal)
                        return TERMINAL_SIGNAL;
        if (terminal->signal == SIGTSTP)
                suspend();
        return TERMINAL_RESIZED;
}

/* False: nobody types any more. */
static bool read_keys(struct terminal *terminal)
{
        char bytes[sizeof(terminal->keys.bytes)];
        ssize_t n = read(STDIN_FILENO, bytes, keys_room(&terminal->keys));

        if (n > 0)
                keys_add(&terminal->keys, bytes, (size_t)n);
        return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static bool next_key(struct terminal *terminal)
{
        return keys_next(&terminal->keys, &terminal->key);
}

enum terminal_event top_terminal_wait(struct terminal *terminal, int fd, bool writable, int ms)
{
        struct pollfd polls[] = { { .fd = terminal->signals, .events = POLLIN },
                                  { .fd = STDIN_FILENO, .events = POLLIN },
                                  { .fd = fd,
                                    .events = (short)(POLLIN | (writable ? POLLOUT : 0)) } };
        bool unfinished;
        int n;

        if (next_key(terminal))
                return TERMINAL_KEY;
        unfinished = terminal->keys.count > 0;
        n = poll(polls, LENGTH(polls), unfinished && ms > KEYS_WAIT_MS ? KEYS_WAIT_MS : ms);
        if (n > 0 && polls[0].revents)
                return read_signal(terminal);
        if (n > 0 && polls[1].revents && !read_keys(terminal))
                return TERMINAL_GONE;
        if (next_key(terminal))
                return TERMINAL_KEY;
        if (n == 0 && unfinished && keys_give_up(&terminal->keys)) {
                terminal->key = KEY_ESCAPE;
                return TERMINAL_KEY;
        }
        return n > 0 && polls[2].revents ? TERMINAL_READY : TERMINAL_NOTHING;
}
