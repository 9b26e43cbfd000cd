/*
 * A served model: weights, tokenizer, chat template, traits, as one counted object that every request carries.
 *
 * It is opened before the threads start.  Its parts are read-only from then on,
 * so any thread may read them while somebody holds it; the count itself is the
 * loop thread's, because requests are made and freed there.
 */
#ifndef DAEMON_SERVED_H
#define DAEMON_SERVED_H

#include <samovar/protocol.h>

#include "daemon/traits.h"

struct tokenizer; /* daemon/text/tokenizer.h */
struct chat;      /* daemon/text/chat.h */
struct model;     /* daemon/engine/model.h */

struct served {
        char name[SMV_NAME_BYTES_MAX + 1];
        char backend[96]; /* who computes it, and how much each, for people */
        uint32_t holds;
        uint32_t context; /* positions a sequence may have here: traits.context or --ctx */
        struct traits traits;
        struct tokenizer *tokenizer;
        struct chat *chat; /* NULL: it has no template */
        struct model *model;
};

#endif
