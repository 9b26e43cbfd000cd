/* The environment of fuzz-conn: one edge, its clients, and stand-ins for the rest of the daemon. */
#ifndef TESTS_FUZZ_CONN_RIG_H
#define TESTS_FUZZ_CONN_RIG_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/edge/accept.h"
#include "daemon/edge/edge.h"
#include "daemon/engine/publish.h"

#define CLIENTS      3u
#define REQUESTS     16u
#define CHANNELS     8u
#define ANCHORS      2u
#define VOCAB        300u
#define BOS          256u
#define MAILS        128u
#define FRAMES_MAX   120u
#define PENDING_MAX  (16u << 10)
#define READ_MAX     65536u
#define STREAMS      16u   /* ids whose sequence a client follows */
#define SCRIPT_MAX   192u  /* bytes of a script: enough for everything that a script can express */
#define TOKENS_MAX   1400u /* of a script: two halves of a ring */
#define FLOODS_MAX   12u   /* of a script: a client that does not read that much is hung up */
#define TURNS_MAX    256u  /* until it is quiet */
#define QUIET_TURNS  2u    /* the loop has its turn between them */
#define RUNS_A_COUNT 1000u /* scripts between two checks of the descriptors */

struct script {
        const uint8_t *at, *end;
};

struct client {
        int fd;
        bool ring; /* it was given a ring */
        struct buffer out, in;
        uint32_t sequences[STREAMS];
};

struct world {
        /* for all scripts */
        struct config config;
        struct stats stats;
        struct usage_snapshot *usage_snapshot;
        struct served served;
        int bell;
        struct loop *loop;
        struct loop_timer *tick;
        struct publish *publish; /* the engine's */
        struct mailbox *to_engine, *from_engine, *to_waker, *from_waker, *to_text_worker,
                *from_text_worker;
        /* where the frames about handles and about resumable streams begin */
        uint32_t handle_frames, kept_frames;
        struct buffer frames[FRAMES_MAX];
        const struct buffer *flood; /* one of the frames */
        uint32_t frame_count, runs, descriptors;

        /* for one script */
        uint64_t drawn; /* the next number that getrandom() gives */
        struct edge *edge;
        struct script script;
        struct client clients[CLIENTS];
        bool cleaning, drained, failed;
        uint32_t turns, quiet, tokens, floods;

        /* the engine */
        struct request *live[REQUESTS]; /* by number */
        struct mail ends[REQUESTS];     /* how each request that is ending ends */
        bool waits[REQUESTS];           /* whether the request waits for room */
        uint32_t outputs[REQUESTS];
};

extern struct world world;

/* Clients.  A client that is not connected does nothing. */
void make_frames(void);
void connect_client(struct client *client);
void close_client(struct client *client);
void say(struct client *client, const void *bytes, size_t count); /* push() sends the bytes */
void push(struct client *client, size_t most);
void listen_to_edge(struct client *client, size_t most);

/* Each takes one mail; false: there is none. */
bool text_worker(void);
bool engine(void);
bool waker(void);

/* Actions that the engine takes by itself.  retire() is false if the END finds no room; engine()
 * tries again. */
struct request *nth_live(uint32_t n); /* NULL: none */
void emit(uint32_t n, uint32_t token, uint32_t times);
bool retire(struct request *request, enum smv_reason reason, enum smv_code code);
void fail(void);

#endif
