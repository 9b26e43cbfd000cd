/*
 * samovar chat: a conversation in the terminal.
 *
 * The daemon holds the history in a handle, so a question sends only itself, and nothing is read
 * twice.  loop.c reads an input, and asks it or runs it as a command.
 *
 *      terminal     signals, the modes of the terminal, and remarks to the user
 *      line-editor  a line with libedit; the only file that includes it
 *      plain-reader a line without libedit, as the terminal edits it
 *      history      the file of inputs that were typed before
 *      reading      an input: one line, or several
 *      message      one message of a conversation
 *      branch       a conversation, and the handle that the daemon has of it
 *      link         the connection: replies, interruptions, a daemon that died
 *      session      all branches: opens handles, appends, truncates, forks
 *      answer       shows an answer as it comes
 *      turn         a question and its answers: tool calls, a full context
 *      commands     the table of commands such as /help
 *      facts, files, settings, branching   what the commands do
 *
 * ^C stops the answer, or clears the line; the process stays.  Without a terminal as stdin, all of
 * stdin is one question, whose answer goes to stdout as that of `ask` does.
 */
#ifndef CLI_CHAT_CHAT_H
#define CLI_CHAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

struct chat_options {
        bool no_history;
};

/* A row of the table of commands: for /help, for completion, and for a page of reference. */
struct chat_row {
        const char *name, *arguments, *help;
};

/* Row `index`; false after the last one. */
bool chat_describe_command(size_t index, struct chat_row *ret_row);

#endif
