/* The flags of samovar chat that no other command takes. */
#ifndef CLI_CHAT_OPTIONS_H
#define CLI_CHAT_OPTIONS_H

#include <stdbool.h>

struct chat_options {
        bool no_history;
};

#endif
