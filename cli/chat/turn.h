/*
 * A question and what follows it: its answer, the results of tool calls and the answers to them.
 * If the context is full, offers to drop the oldest turns.
 */
#ifndef CLI_CHAT_TURN_H
#define CLI_CHAT_TURN_H

#include <stddef.h>

struct chat;

void turn_ask(struct chat *chat, const char *question, size_t bytes);
/* Asks the last question again: for another answer, or because it got none. */
void turn_again(struct chat *chat);

#endif
