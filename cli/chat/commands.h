/* The table of the commands of a chat, such as /help. */
#ifndef CLI_CHAT_COMMANDS_H
#define CLI_CHAT_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/chat/line-editor.h"

struct chat;

/* True if the text is meant as a command: a slash and a word, and nothing that a path has. */
bool commands_is(const char *text);
/* Runs it, or says that there is no such command.  It may change the text. */
void commands_run(struct chat *chat, char *text);

/* Completes commands and their arguments; `arg` is the chat. */
line_complete_fn commands_complete;

#endif
