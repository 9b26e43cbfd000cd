/*
 * Context: what all modules of the edge share, the daemon's side (struct edge) and a connection
 * (struct peer).
 *
 * Only these structs are here.  Each module has a header with its contract, and its own state:
 * behind an opaque pointer, or in the members that name it.  Modules include each other downwards
 * only; edge.h has the order.
 *
 * A module that has news for a peer does not handle them itself: it marks the peer
 * (connection_mark()).  After the handlers of each turn, the loop settles all marked peers, and
 * then edge.c looks at the flags below.  So no peer is freed while a handler uses it.  Loop thread
 * only.
 */
#ifndef DAEMON_EDGE_CONTEXT_H
#define DAEMON_EDGE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/ipc/usage-snapshot.h"
#include "daemon/ipc/channel.h"
#include "daemon/start/config.h"
#include "daemon/core/request.h"
#include "daemon/core/sched.h"
#include "daemon/edge/buffer.h"
#include "base/loop.h"
#include "daemon/ipc/mailbox.h"
#include "daemon/model/served.h"
#include "daemon/ipc/stats.h"
#include "base/sys.h"

struct quota;      /* quota.c */
struct admission;  /* admission.c */
struct handles;    /* handles.c */
struct pins;       /* pins.c */
struct resumables; /* resumable.c */
struct pool_view;  /* op-pool.c */
struct subuid;     /* subuid.c */
struct principals; /* principals.c */
struct constraint; /* constraints.c */
struct constraints;
struct principal;
struct dialect; /* daemon/text/parts/dialect.h */

/* The limits that admission checks, and functions of the engine, which the edge may not include. */
struct admission_conf {
        struct sched_conf sched;
        uint32_t max_tokens;   /* for requests that do not give it */
        uint32_t requests_max; /* of the whole daemon */
        uint32_t draft_tokens; /* of a guess at the tokens that follow; 0: none is made */
        size_t (*record_bytes_max)(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs);
        size_t (*end_bytes_max)(size_t stop_bytes_max);
        size_t (*score_bytes_max)(uint32_t logprobs);
        size_t (*row_bytes_max)(uint32_t entries);
        size_t (*ask_bytes_max)(void);
        size_t (*parts_bytes_max)(const struct dialect *dialect, size_t stop_bytes_max,
                                  size_t *ret_held);
        uint64_t (*seed)(void); /* for requests that do not give it */
};

struct edge_conf {
        const struct config *config;
        struct loop *loop; /* main's; it outlives the edge */
        struct admission_conf admission;
        struct served *served;
        struct stats *stats;
        struct usage_snapshot *usage_snapshot; /* read by the loop */
        int bell;                       /* rung by the waker's mailbox and the text worker's */
        struct mailbox *to_engine;      /* SUBMIT, CANCEL, SPACE, HANGUP, POOL, STOP */
        struct mailbox *from_engine;    /* RETIRED, which does not ring the bell: a WAKE follows */
        struct mailbox *from_waker;     /* WAKE, CHANNEL_GONE, POOL_MAPPED, FAILED, STOPPED */
        struct mailbox *to_text_worker; /* JOB, STOP */
        struct mailbox *from_text_worker; /* JOB_DONE */
        uint64_t started_ns;
        /* Called once, when the edge begins to drain; it refuses new connections.  Or NULL. */
        void (*on_drain)(void *arg);
        void *on_drain_arg;
        const char *subuid_path; /* of the ranges for containers, or NULL: there are none */
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
        uint64_t pid, uid;     /* of the daemon itself */
        uint32_t overflow_uid; /* of all users that the kernel cannot tell apart for us */
        struct loop *loop;
        struct subuid *subuid;
        struct quota *quota;
        struct principals *principals;
        struct admission *admission;
        struct constraints *constraints;
        struct handles *handles;
        struct pins *pins;
        struct resumables *resumables;
        struct pool_view *pool_view;

        struct list_head peers;
        uint32_t peer_count;
        struct list_head marked; /* peers that will be settled at the end of this turn */
        /* Counts the turns of peers.  Several status requests in one turn read /proc once. */
        uint64_t turn;

        /* channels.c */
        struct channel **channels; /* by number; NULL: the number is free */
        uint32_t channel_count;    /* size of `channels` */
        uint32_t channels_open;
        struct channel *gone; /* all threads have let them go; a turn of gone_timer frees one */
        struct loop_timer *gone_timer;

        uint32_t live_count; /* streams that are with the engine */
        uint32_t jobs_out;   /* jobs that are with the text worker */
        struct edge_resources {
                uint64_t turn;
                int result;
                struct sys_resources counts;
        } resources;

        uint64_t row_copies_used; /* ask-slots.c: a bit for each of the backend's copies */

        /* edge.c and mail.c */
        struct loop_watch *bell_watch;
        struct loop_timer *drain_timer;
        enum edge_phase phase;
        bool alone;              /* a single connection; the daemon ends with it */
        unsigned drains_pending; /* edge_drain() as often, done at the end of the turn */
        int result;
        uint64_t drain_end_ns; /* draining: when the requests that still run are ended */
        const char *failure;   /* how the engine failed, or NULL */
};

enum peer_state {
        PEER_NEW,     /* has not said hello */
        PEER_OPEN,    /* may send requests */
        PEER_CLOSING, /* its streams are cancelled; it is hung up when its last reply is sent */
};

struct peer {
        struct edge *edge;
        struct list_head peers_link, marked_link;
        int fd;
        uint64_t uid; /* its user: the uid of its process, or the number of its principal */
        struct principal *principal; /* from hello on; or NULL */
        uint32_t process_uid;        /* from the kernel */
        int32_t pid;                 /* for the log only */
        /* No groups if the setting `publish` is off, or if it has a principal. */
        uint32_t group_count, groups[REQUEST_GROUPS_MAX];
        enum peer_state state;
        bool read_shut; /* the client has shut its sending side */
        bool more;      /* whole frames wait in `in` for the next turn */
        bool reading;   /* a frame is with the text worker; those behind it wait until it is read */
        bool doomed;    /* it is freed at the end of the turn */
        struct loop_watch *watch;
        struct loop_timer *again;    /* its next turn: at once, but behind all other peers */
        struct loop_timer *deadline; /* for hello, the frame under way, or the last reply */
        /* In the state PEER_OPEN: what `deadline` is set for. */
        bool frame_timed, lingers;
        bool cancels; /* it is closing; its streams will be cancelled at the end of the turn */
        uint64_t frame_charged;
        struct buffer in, out;
        /* Bytes left in `out` of a reply that the text worker made, and of all in front of it. */
        size_t long_left;
        /* From hello on; a private channel is made by the first generate. */
        struct channel *channel;
        struct list_head streams; /* with the engine, or with an END that is not drained yet */
        struct list_head jobs;    /* encode-job.c: they are with the text worker */
        /* encode-job.c: their replies are made, and sent one after another */
        struct list_head replies;
        /* The streams that it is attached to; the first one is served next. */
        struct list_head resumables;
        struct list_head handles; /* they close with it */
};

#endif
