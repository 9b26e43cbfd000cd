/* /show and /stats: facts about the model, the conversation and the last answer. */
#ifndef CLI_CHAT_FACTS_H
#define CLI_CHAT_FACTS_H

#include <stddef.h>

struct branch;
struct chat;

void facts_show(struct chat *chat, char *arguments);
void facts_stats(struct chat *chat, char *arguments);

/* The costs of the last answer in one line, for `/set stats on`. */
void facts_line(const struct chat *chat);
/* The last `count` turns of the current branch. */
void facts_print_turns(const struct chat *chat, size_t count);
/* The names of the tools of a branch, a line each. */
void facts_print_tools(const struct branch *branch);

#endif
