/*
 * The inputs that were typed before, in $XDG_STATE_HOME/samovar/chat-history (mode 0600).  Each is
 * written when it is typed, so several chats may use the file at a time.
 */
#ifndef CLI_CHAT_HISTORY_H
#define CLI_CHAT_HISTORY_H

#include <stdbool.h>

struct history {
        int fd;        /* -1: nothing is kept */
        char last[64]; /* the beginning of the last input, to leave out repetitions */
};

/*
 * Opens the file, and calls `remember` for each input in it, the oldest first.  If that fails, the
 * user is told, and nothing is kept.
 */
void history_open(struct history *history, void (*remember)(void *arg, const char *text),
                  void *arg);
/* For a chat that keeps nothing. */
void history_none(struct history *history);
/* False: nothing was added; the input is blank, or the same as the last. */
bool history_add(struct history *history, const char *text);
void history_close(struct history *history);

#endif
