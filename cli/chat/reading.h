/*
 * Reads an input of the user, of one line or of several:
 *
 *      a backslash at the end of a line continues it on the next
 *      """ begins a block, also behind a command: all up to the next """ is one text
 *      newlines of a paste are part of the input
 */
#ifndef CLI_CHAT_READING_H
#define CLI_CHAT_READING_H

#include "cli/chat/history.h"
#include "cli/chat/plain-reader.h"

struct reading {
        struct line_editor *editor; /* NULL: the plain reader reads */
        struct plain_reader plain;
        struct history history;
};

struct input {
        struct bytes text; /* NUL-ended */
        bool block;        /* it was in a block, so it is no command */
};

void reading_open(struct reading *reading, struct terminal *terminal, bool with_history,
                  line_complete_fn *complete, void *arg);
void reading_close(struct reading *reading);

/* An input for the history.  The caller frees input->text. */
enum line_result reading_input(struct reading *reading, const char *prompt, struct input *input);

/* An answer to a question of ours: one input, which the history does not get. */
enum line_result reading_reply(struct reading *reading, const char *prompt, struct bytes *to);

/* True if the user says yes; "default" is what a mere newline means. */
bool reading_yes(struct reading *reading, const char *question, bool otherwise);

#endif
