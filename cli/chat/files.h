/* Conversations and tools in files: /save, /load and /tools. */
#ifndef CLI_CHAT_FILES_H
#define CLI_CHAT_FILES_H

#include <stdbool.h>

struct chat;
struct branch;

/*
 * Adds the messages of the file to an empty branch, and its tools.  False, after saying why not.
 */
bool files_read_branch(const char *path, struct branch *branch);
/* Replaces the tools of the branch by those of the file, which has a list. */
bool files_read_tools(const char *path, struct branch *branch);

void files_save(struct chat *chat, char *arguments);
void files_load(struct chat *chat, char *arguments);
void files_tools(struct chat *chat, char *arguments);

#endif
