/*
 * The terminal of a chat: signals become bits that the loop asks for, so that no signal ends a
 * program with the terminal in a strange mode.  There is one terminal.
 */
#ifndef CLI_CHAT_TERMINAL_H
#define CLI_CHAT_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

enum terminal_signal {
        TERMINAL_INTERRUPT = 1 << 0, /* ^C */
        TERMINAL_STOP = 1 << 1,      /* ^Z */
        TERMINAL_RESIZE = 1 << 2,
        TERMINAL_END = 1 << 3, /* hung up, told to end, or nothing reads the output */
};

struct terminal {
        int news;   /* readable if terminal_take() returns something new */
        int out;    /* where prompts go: stderr, or stdout if only that is a terminal */
        bool quiet; /* terminal_quiet() is in force */
        bool plain; /* a plain reader reads, so the terminal itself makes lines */
        bool colours;
        bool status;  /* terminal_status() shows a text */
        int ended_by; /* the signal of TERMINAL_END; 0: it did not come */
        struct termios usual;
};

/* 0, or a negative errno.  From now on ^C does not end the process. */
int terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);

/* The signals that came since the last call, and TERMINAL_END if it ever came. */
unsigned terminal_take(struct terminal *terminal);
/*
 * Waits until `fd` (-1: none) has one of the events of poll(2) or the news are readable, for
 * timeout_ms at most (-1: no limit).  True if `fd` has.
 */
bool terminal_wait(struct terminal *terminal, int fd, short events, int timeout_ms);

/*
 * Except at a prompt: what is typed is not shown in the middle of an answer, but waits for the
 * prompt, and so does ^D.
 */
void terminal_quiet(struct terminal *terminal);
void terminal_usual(struct terminal *terminal);

/* After TERMINAL_STOP: stops this process as ^Z does.  Returns when it continues. */
void terminal_suspend(struct terminal *terminal);

/* Shows a text on the line of the cursor until another one comes; "" removes it. */
void terminal_status(struct terminal *terminal, const char *text);

size_t terminal_columns(const struct terminal *terminal);
size_t terminal_rows(const struct terminal *terminal);

/* A remark to the user, a line on stderr.  Control characters in it become question marks. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A row of a list: `left`, and `text` behind it from column `indent` on, in lines that end between
 * words.  A longer `left` has a line of its own.
 */
void note_row(const struct terminal *terminal, const char *left, size_t indent, const char *text);

#endif
