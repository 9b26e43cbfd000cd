/*
 * The edge: everything the loop thread owns.
 *
 * Peers come in through the listener.  Their texts go through the scribe, their requests go down to
 * the engine, and retired requests come back up.  The edge ends in order: edge_drain() refuses new
 * work and lets running requests finish, for drain_ms at most.  Then every stream is ended.  The
 * ENDs are flushed to clients that read; clients that do not read have a second.  Every channel
 * retires, and edge_run() returns.  A second edge_drain() skips the waiting for running requests.
 */
#ifndef DAEMON_EDGE_EDGE_H
#define DAEMON_EDGE_EDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/board.h"
#include "daemon/channel.h"
#include "daemon/config.h"
#include "daemon/edge/admit.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/loop.h"
#include "daemon/edge/quota.h"
#include "daemon/mailbox.h"
#include "daemon/served.h"
#include "daemon/stats.h"
#include "daemon/sys.h"

struct anchors;
struct peer;
struct listener;
struct keeper;
struct shelf;

struct edge_conf {
        const struct config *config;
        struct loop *loop; /* main's; it outlives the edge */
        struct admit_conf admit;
        struct served *served;
        struct stats *stats;
        struct board *board;         /* read by the loop */
        int bell;                    /* rung by the waker's mailbox and the scribe's */
        struct mailbox *to_engine;   /* SUBMIT, CANCEL, ROOM, HANGUP, STOP */
        struct mailbox *from_engine; /* RETIRED, which does not ring the bell: a WAKE follows */
        struct mailbox *from_waker;  /* WAKE, CHANNEL_GONE, FAILED, STOPPED */
        struct mailbox *to_scribe;   /* JOB, STOP */
        struct mailbox *from_scribe; /* JOB_DONE */
        uint64_t started_ns;
};

/* How far the edge has come on its way out.  The phase only increases. */
enum edge_phase {
        EDGE_SERVING,
        EDGE_DRAINING, /* nothing new is accepted; running requests may finish */
        EDGE_ENDING,   /* every stream was told to end; the loop waits for them to retire */
        EDGE_FLUSHING, /* all have retired; clients have a second to read the rest */
        EDGE_STOPPING, /* STOP is posted */
};

struct edge {
        struct edge_conf conf;
        uint64_t pid, uid; /* of the daemon itself, for replies */
        struct loop *loop;
        struct quota *quota;
        struct admit *admit;
        struct handles *handles;
        struct anchors *anchors;
        struct shelf *shelves;
        struct keeper *keeper;
        struct loop_watch *bell_watch;
        struct loop_timer *drain_timer;
        struct peer *peers;
        uint32_t peer_count;
        struct channel **channels; /* by number; NULL: the number is free */
        uint32_t channel_count;    /* size of `channels` */
        uint32_t channels_open;
        /* Channels that all threads have let go; each turn of gone_timer frees one. */
        struct channel *gone;
        struct loop_timer *gone_timer;
        uint32_t live_count;       /* requests that are with the engine */
        uint32_t jobs_out;         /* jobs that are with the scribe */
        struct listener *listener; /* main's; NULL if there is none */
        /* Counts the turns of peers.  Several status requests in one turn read /proc once. */
        uint64_t turn;
        struct edge_holds {
                uint64_t turn;
                int result;
                struct sys_holds counts;
        } holds;
        enum edge_phase phase;
        bool alone; /* a single connection; the daemon ends with it */
        int result;
        /* What late clients are told: that the daemon stops, or how the engine failed. */
        const char *late;
};

int edge_new(const struct edge_conf *conf, struct edge **ret_edge);
struct edge *edge_free(struct edge *edge); /* takes NULL */

/*
 * Runs until everything has ended in order.  Returns 0, or the error that the engine failed with.
 */
int edge_run(struct edge *edge);

/* Called on SIGTERM, on SIGINT, or when the only connection has closed. */
void edge_drain(struct edge *edge);

/* A connected socket has come in: makes it a peer or refuses it.  Takes fd. */
void edge_arrive(struct edge *edge, int fd);

/* Tells a client why it is not let in, if it listens, and closes.  Takes fd. */
void edge_refuse(struct edge *edge, int fd, enum smv_code code, const char *message);

/*
 * A channel that belongs to no peer: 0, WIRE_E_REFUSED, or a negative errno.  HANGUP gives it back.
 */
int edge_new_channel(struct edge *edge, enum channel_bell bell, uint64_t ring_bytes, uint32_t id,
                     struct wire_problem *ret_problem, struct channel **ret_channel);

/*
 * A ring for this peer, charged to its uid: 0, WIRE_E_REFUSED, or a negative errno. streams_leave()
 * gives it back; or edge_close_channel(), while the engine has not heard of it.
 */
int edge_open_channel(struct edge *edge, struct peer *peer, enum channel_bell bell,
                      uint64_t ring_bytes, uint32_t id, struct wire_problem *ret_problem);
void edge_close_channel(struct edge *edge, struct peer *peer);

/*
 * Takes all RETIRED mails.  A client may have seen an END before we took its RETIRED.  So this is
 * called before any decision that depends on which requests are alive.  It frees only requests that
 * no other thread holds.
 */
void edge_catch_up(struct edge *edge);

/* Something has ended: starts the next phase if it is time.  Called after every turn. */
void edge_go_on(struct edge *edge);

/* The served model of that name; "" is the default model.  NULL: there is none. */
struct served *edge_model(struct edge *edge, const char *name, uint32_t bytes);

#endif
