/* Commands that move in the conversations: /clear, /undo, /fork and /branches. */
#ifndef CLI_CHAT_BRANCHING_H
#define CLI_CHAT_BRANCHING_H

struct chat;

void branching_clear(struct chat *chat, char *arguments);
void branching_undo(struct chat *chat, char *arguments);
void branching_fork(struct chat *chat, char *arguments);
void branching_branches(struct chat *chat, char *arguments);

#endif
