/* The settings of a chat: flags of the command that may change while it runs. */
#ifndef CLI_CHAT_SETTINGS_H
#define CLI_CHAT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

struct chat;

/* Row `index` of the flags: whether there is one, and its name as a setting, or NULL. */
bool settings_exists(size_t index);
const char *settings_name(size_t index);

/* Prints the settings that have not their defaults. */
void settings_print_changed(const struct chat *chat);

/* /set and /system */
void settings_set(struct chat *chat, char *arguments);
void settings_system(struct chat *chat, char *arguments);

#endif
