/* The state of a chat, which its commands share. */
#ifndef CLI_CHAT_STATE_H
#define CLI_CHAT_STATE_H

#include "cli/chat/link.h"
#include "cli/chat/reading.h"
#include "cli/chat/session.h"
#include "cli/chat/terminal.h"

/* A text that a flag of `cli` points at; it lives as long as the chat. */
struct kept_text {
        struct kept_text *next;
        char text[];
};

struct chat {
        struct cli *cli;
        struct terminal terminal;
        struct link link;
        struct session session;
        struct reading reading;
        struct kept_text *texts;
        /* The last answer; without one, end.reason is 0. */
        struct smv_event end;
        struct smv_accepted accepted;
        uint32_t tries;         /* how often its question was asked again */
        struct bytes withdrawn; /* a question without an answer, which is no part of it any more */
        struct bytes saved_as;  /* the file of the last /save or /load, NUL-ended */
        bool leave;
};

#endif
