/*
 * The terminal while the live view has it: in raw mode, on its alternate screen, without a cursor.
 *
 * Whatever ends the program, the terminal is as before: top_terminal_close() puts it back, and so
 * do the signals that end a program, and a crash.  Signals come as events of top_terminal_wait().
 * There is one terminal in a process.
 */
#ifndef CLI_TOP_TERMINAL_H
#define CLI_TOP_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/top/keys.h"

struct terminal_size {
        unsigned rows, columns;
};

enum terminal_event {
        TERMINAL_NOTHING, /* the time has passed */
        TERMINAL_KEY,
        TERMINAL_RESIZED, /* or it has to be drawn again for another reason */
        TERMINAL_READY,   /* the descriptor that was given */
        TERMINAL_SIGNAL,  /* one that ends the program: top_terminal_die() */
        TERMINAL_GONE,    /* no more keys will come */
};

struct terminal {
        int signals; /* descriptor */
        struct keys keys;
        int key;    /* of TERMINAL_KEY */
        int signal; /* of TERMINAL_SIGNAL */
};

/* True if stdin and stdout are a terminal that knows escape sequences. */
bool top_terminal_is_usable(void);

/* 0 or -errno. */
int top_terminal_open(struct terminal *terminal);
void top_terminal_close(struct terminal *terminal);
/* Closes it and ends the process by that signal, so that whoever waits for it sees which. */
void top_terminal_die(struct terminal *terminal, int signal);

/* 24 lines of 80 cells if it does not say. */
struct terminal_size top_terminal_size(void);

/*
 * Waits for an event, `ms` at most.  `fd`: another descriptor to wait for, or -1; `writable`: also
 * until it can be written to.  ^Z is handled here: it stops the program, with the terminal as it
 * was.
 */
enum terminal_event top_terminal_wait(struct terminal *terminal, int fd, bool writable, int ms);

#endif
