/*
 * The edge: everything the loop thread owns.
 *
 * Peers come in through the listener, their texts go through the scribe, their
 * requests down to the engine, and what retires comes back up.  It ends in
 * order: edge_drain() refuses what is new and lets what runs finish, at most
 * for drain_ms; then every stream is ended, its last words are flushed to clients
 * that read (those that do not have a second), every channel retires, and
 * edge_run() returns.
 * A second edge_drain() skips the waiting for what runs.
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
        struct board *board;         /* the loop reads it */
        int bell;                    /* rung by the waker's mailbox and the scribe's */
        struct mailbox *to_engine;   /* SUBMIT, CANCEL, ROOM, HANGUP, STOP */
        struct mailbox *from_engine; /* RETIRED, which rings nothing: a WAKE follows */
        struct mailbox *from_waker;  /* WAKE, CHANNEL_GONE, FAILED, STOPPED */
        struct mailbox *to_scribe;   /* JOB, STOP */
        struct mailbox *from_scribe; /* JOB_DONE */
        uint64_t started_ns;
};

/* How far it has come on its way out; it only goes on. */
enum edge_phase {
        EDGE_SERVING,
        EDGE_DRAINING, /* nothing new; what runs may finish */
        EDGE_ENDING,   /* every stream was ended, on its way back from the engine */
        EDGE_FLUSHING, /* all have retired; last words are read, for a second */
        EDGE_STOPPING, /* STOP is posted */
};

struct edge {
        struct edge_conf conf;
        uint64_t pid, uid; /* ours, for replies */
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
        struct channel **channels; /* by number; NULL: it is free */
        uint32_t channel_count;    /* numbers there are */
        uint32_t channels_open;
        struct channel *gone; /* of these, let go by everybody, one of them freed a turn ... */
        struct loop_timer *gone_timer; /* ... of this */
        uint32_t live_count;           /* requests with the engine */
        uint32_t jobs_out;             /* jobs with the scribe */
        struct listener *listener;     /* main's; NULL if there is none */
        uint64_t turn; /* of a peer; many a status in one of them count /proc once */
        struct edge_holds {
                uint64_t turn;
                int result;
                struct sys_holds counts;
        } holds;
        enum edge_phase phase;
        bool alone; /* one connection, ends with it */
        int result;
        const char *
                late; /* what is said to those who come when it stops: that, or how the engine failed */
};

int edge_new(const struct edge_conf *conf, struct edge **ret_edge);
struct edge *edge_free(struct edge *edge); /* takes NULL */

/* Until everything has ended in order: 0, or why the engine failed. */
int edge_run(struct edge *edge);

/* SIGTERM, SIGINT, or the only connection closed. */
void edge_drain(struct edge *edge);

/* A connected socket has come in: makes it a peer or refuses it.  Takes fd. */
void edge_arrive(struct edge *edge, int fd);

/* Tells a stranger why he is not let in, if he listens, and closes.  Takes fd. */
void edge_refuse(struct edge *edge, int fd, enum smv_code code, const char *message);

/* A ring of nobody's: 0, WIRE_E_REFUSED, or a negative errno.  HANGUP gives it back. */
int edge_new_channel(struct edge *edge, enum channel_bell bell, uint64_t ring_bytes, uint32_t id,
                     struct wire_problem *ret_problem, struct channel **ret_channel);

/*
 * A ring for this peer, charged to its uid: 0, WIRE_E_REFUSED, or a negative errno.
 * It is given back by streams_leave(), or by edge_close_channel() while the engine has
 * not heard of it.
 */
int edge_open_channel(struct edge *edge, struct peer *peer, enum channel_bell bell,
                      uint64_t ring_bytes, uint32_t id, struct wire_problem *ret_problem);
void edge_close_channel(struct edge *edge, struct peer *peer);

/*
 * Hears which requests have retired.  A client may have seen the END already: so
 * before anything is judged by what is alive, this is asked.  Nothing is freed but
 * requests that nobody else holds.
 */
void edge_catch_up(struct edge *edge);

/* Something is gone: is it time for the next phase?  Called after every turn. */
void edge_go_on(struct edge *edge);

/* The served model of that name; "" is the default one.  NULL: none. */
struct served *edge_model(struct edge *edge, const char *name, uint32_t bytes);

#endif
