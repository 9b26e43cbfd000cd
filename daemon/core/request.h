/*
 * A request: one generation, from its admission to its END.
 *
 * It is made by the loop thread when it is admitted and freed there when it has
 * retired.  Between, it belongs to whoever the message that carries it was sent
 * to; the sections below say who may touch which fields, and ARCHITECTURE.md's
 * lifetime table says when.
 *
 * What was asked does not change after admission.  The core knows a request by
 * this struct and nothing else: model and channel are opaque to it.
 */
#ifndef DAEMON_CORE_REQUEST_H
#define DAEMON_CORE_REQUEST_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <samovar/error.h>
#include <samovar/protocol.h>

struct served;  /* daemon/served.h */
struct channel; /* daemon/channel.h */
struct peer;    /* daemon/edge/peer.h */
struct handle;  /* daemon/edge/handles.h */
struct family;  /* daemon/edge/family.c */
struct kept;    /* daemon/edge/keeper.h */

enum request_state {
        REQUEST_WAITING, /* in the queue, holds nothing */
        REQUEST_PREFILL, /* has a slot; its prompt is being read */
        REQUEST_DECODE,  /* has a slot; one row a step */
        REQUEST_PARKING, /* gives its slot up, once no row of it is in flight; then it waits */
        REQUEST_ENDING,  /* its END is decided; rows in flight may keep its blocks */
        REQUEST_RETIRED, /* the core has forgotten it */
        REQUEST_STATE_N,
};

#define REQUEST_GROUPS_MAX 16u

/* Who goes first. */
enum request_class {
        REQUEST_INTERACTIVE, /* somebody sits there and waits */
        REQUEST_NORMAL,
        REQUEST_BACKGROUND, /* gives its slot up to the others */
        REQUEST_CLASS_N,
};

struct sampling {
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        uint32_t logprobs; /* told with each token: its own and the likeliest; 0: none */
        uint32_t choice;   /* of those who say the same, this one: they draw otherwise */
};

/* A run of tokens with KV: the prompt, then what was generated.  One a request, today. */
struct sequence {
        struct request *request;
        uint32_t *tokens; /* room for tokens_max; the core appends */
        uint32_t token_count;
        uint32_t cached_count; /* of the prompt, found in the pool instead of computed */
        uint32_t diverged_at;  /* there, what was known then goes on otherwise; 0: nowhere */
        uint32_t known_token;  /* ... with this token */
        uint32_t slot;         /* SEQUENCE_NO_SLOT while it waits */
};
#define SEQUENCE_NO_SLOT UINT32_MAX

struct request {
        uint32_t number; /* of a table of requests_max; the engine's key for what it keeps of it */

        /* What was asked: the loop writes it, then nobody. */
        uint32_t stream; /* the client's id; what its records say */
        uint32_t uid;    /* of the peer, from the kernel */
        enum request_class class;
        uint64_t deadline_ns; /* it ends then, as it is; 0: never */
        struct served *model;
        struct channel *channel;
        uint32_t prompt_count; /* tokens, at least 1 */
        uint32_t max_tokens;   /* prompt_count + max_tokens fits the context.  0: its prompt is
                                  computed, and that is all */
        uint32_t tokens_max;   /* prompt_count + max_tokens are no more */
        uint32_t anchor;       /* of max_tokens 0: what is put there then; or 0 */
        uint64_t publish;      /* ... the public domain that it is read for; 0: its own */
        bool sees_public;      /* finds what was published to everyone, and to these */
        uint32_t group_count, groups[REQUEST_GROUPS_MAX];
        uint32_t known; /* tokens that it was submitted with */
        struct sampling sampling;
        bool ignore_eos;
        uint32_t stop_count;
        uint32_t stop_token_count;
        const char *stops[SMV_STOPS_MAX];
        uint16_t stop_bytes[SMV_STOPS_MAX];
        uint32_t stop_tokens[SMV_STOPS_MAX];
        size_t record_bytes_max; /* no TOKENS record of it is larger, in the ring */
        size_t end_bytes_max;    /* its last text and its END, in the ring */

        /*
         * Who is submitted with it, in one mail, and of a fork the stream that it begins with: the
         * engine, when it takes them, puts an end to both, and says prompt_count and, where that
         * is 0, max_tokens.  Until then the loop keeps the parent.
         */
        struct request *sibling; /* the next, or NULL */
        struct request *parent;  /* of all of them, or NULL */

        struct sequence sequence;

        /* Core only; the engine reads `state`. */
        enum request_state state;
        uint32_t room_channel; /* the number of the channel whose room its records need */
        uint64_t arrival;      /* a number in a row: its place in the line, parked or not */
        uint64_t waiting_ns;   /* since when it waits */
        uint64_t skipped;      /* the look at the line in which it was left where it stands */
        uint32_t parks;        /* how often it has given its slot up */
        uint32_t charged;      /* positions for which its user's account was charged */
        bool stalled;          /* no room for its next record ... */
        uint64_t stalled_ns;   /* ... or there is again: since when */
        bool anchored;         /* its anchor is set.  The loop's to read once RETIRED has come */

        /* Engine only; the loop's to read once RETIRED has come. */
        uint64_t accepted_ns, first_row_ns, first_token_ns, last_token_ns;
        uint32_t mails_taken; /* while it was alive: a cancel, and forks of it */

        /* Loop only. */
        struct peer *peer; /* NULL once the peer is gone */
        struct request *peer_next, *peer_prev;
        struct handle *handle; /* whose history it continues, until it has retired; or NULL */
        bool reads_only;       /* max_tokens is to be 0 */
        uint32_t keep_ms;      /* its records outlive its connection so long; 0: they do not */
        struct kept *kept;     /* from its submission until it has retired, if they do */
        size_t charged_bytes;  /* to its uid, until it retires */
        struct family *family; /* of one that has siblings, or was forked; or NULL */
        uint32_t mails_sent;   /* about it, its own SUBMIT not counted */
        uint32_t crossing;     /* of those, that will be answered; once it has retired */
        bool unwanted;         /* cancelled before it was submitted */
        bool cancel_sent;
        bool retired; /* RETIRED has come; forgotten once its END was read, too */
};

/* The only place a request changes state; asserts that it may. */
void request_move(struct request *request, enum request_state next);
const char *request_state_name(enum request_state state);

#endif
