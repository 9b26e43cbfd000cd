/*
 * Finds which part of a prompt kept the rest of it out of the cache: tools, system or messages.
 *
 * The daemon says at which token the prompt differs from what it has cached.  The prompt is
 * rendered again, the bytes of the tokens before that one are counted, and the place is compared
 * with those of the texts in the prompt.  So it costs two requests, and only a client that wants it
 * should get it.  The part is counted in the metrics.
 */
#ifndef BRIDGE_CORE_CACHE_MISS_H
#define BRIDGE_CORE_CACHE_MISS_H

#include <samovar/client.h>

#include "bridge/core/call.h"
#include "bridge/core/conversation.h"

enum cache_miss_part {
        CACHE_MISS_UNKNOWN, /* it could not be found out */
        CACHE_MISS_TOOLS,
        CACHE_MISS_SYSTEM,
        CACHE_MISS_MESSAGES,
};

struct cache_miss {
        struct text system, first; /* of the conversation; at NULL: there is none */
        bool tools;
        uint32_t diverged_at;
        const char *model;
        struct text prompt; /* as it was rendered */
        enum cache_miss_part part;
        void (*done)(struct call *call);
};

/* Remembers the texts of a conversation that has been packed. */
struct cache_miss cache_miss_of(const struct conversation *conversation);
/*
 * Finds the part for a prompt of these options, which differs at token `diverged_at`; calls done().
 * One at a time in a call, and `miss` must live as long as the call.
 */
void cache_miss_find(struct call *call, struct cache_miss *miss, const struct smv_generate *options,
                     uint32_t diverged_at, void (*done)(struct call *call));
/* Where byte `at` of the rendered prompt lies. */
enum cache_miss_part cache_miss_part(const struct cache_miss *miss, size_t at);

#endif
