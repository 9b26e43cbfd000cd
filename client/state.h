/*
 * The state of a client, below everything else: its last failure, its ids, its streams, and its
 * requests whose replies are events.
 *
 * client.c makes and closes the client.  request.c sends requests, and calls.c those with one
 * reply.  options.c sends the options of a generate; streams.c begins streams with them, and
 * fork.c forks streams.  attach.c handles resumable streams, and handle.c handles histories
 * (handles).  beam.c does beam search with all of these.  events.c reads the records of the
 * streams, and the replies that no call waits for.  answers.c answers the questions of streams.
 *
 * Records, and replies that are events, stay in the ring or in the connection's buffer until
 * smv_next() reads them.  So events keep their order, whichever call received them.
 */
#ifndef CLIENT_STATE_H
#define CLIENT_STATE_H

#include <samovar/protocol.h>
#include <stdarg.h>
#include <stdbool.h>

#include "json/bytes.h"
#include "client/codec.h"
#include "client/connection.h"
#include "client/daemon-address.h"
#include "client/public.h"
#include "client/shared-ring.h"
#include "client/slots.h"
#include "client/stream-table.h"

/* If a daemon is alive but does not answer for this long, the client gives up. */
#define CLIENT_REPLY_MS 60000
/* No more is asked while this many replies are outstanding, or this many bytes are not sent yet. */
#define CLIENT_PENDING_MAX 4096u
#define CLIENT_UNSENT_MAX  ((size_t)64 << 20)

struct client_pending;

/*
 * Takes what the ok reply to a request says: into the state of the client, and into the members of
 * *ret_answer, which stays valid until the next call.  0, -ENOMEM, or -EPROTO: the reply lacks
 * something, as client_bad_reply() has recorded.  After a failure nothing has changed.
 */
typedef int client_take_fn(struct smv_client *client, const struct client_pending *pending,
                           const struct codec_frame *frame, struct smv_event *ret_answer);

/* A request whose reply was not taken yet. */
struct client_pending {
        uint32_t id;
        uint32_t streams; /* how many it begins: those with the ids `id`, `id` + 1, ... */
        bool keeps;       /* its stream outlives the connection */
        bool lost;        /* the connection is lost, and the REPLY said so */
        uint32_t ask;     /* enum smv_ask of its stream */
        /* NULL: an ok reply says nothing more.  The union is for it. */
        client_take_fn *take;
        union {
                struct {
                        size_t least, most;
                } pieces;
                struct {
                        uint64_t resume_id;
                        uint32_t from;
                } attach;
                uint32_t detached;   /* the stream */
                size_t handle_count; /* of a fork */
        };
};

/* A model, as the reply to hello describes it. */
struct client_model {
        char name[SMV_NAME_BYTES_MAX + 1], architecture[32], quantisation[16], digest[65],
                tool_dialect[32], format[16];
        uint32_t ends[SMV_LOGPROBS_MAX]; /* its end tokens */
        struct smv_model about;          /* as smv_model() gives it: points at the members above */
};
#define CLIENT_MODELS_MAX 16u

/* A failure, as smv_error() reports it. */
struct client_failure {
        enum smv_code code; /* OK: `name` is that of an errno */
        uint32_t retry_ms;  /* 0: the daemon did not say when to try again */
        char name[32], field[32], message[256];
};

struct smv_client {
        struct connection connection;
        char socket[DAEMON_PATH_BYTES]; /* the path that it has connected to; "": it was given fd */
        struct shared_ring ring;        /* the ring, if there is one */
        struct slots slots;             /* for answers, if hello asked for any */
        struct codec codec;
        size_t request_max; /* the longest body that the daemon accepts */
        int reply_ms;
        uint64_t spin_ns;
        uint32_t last_id;
        bool ring_failed; /* hello promised a ring, but the client could not use it */

        struct client_model models[CLIENT_MODELS_MAX];
        size_t model_count;

        struct stream_table streams;
        size_t resumable_count, detached_count; /* how many of them are so */
        size_t asks_first_count;                /* ... `asks_first` */

        /* The requests whose replies are events, in the order in which they were asked. */
        struct client_pending *pending;
        size_t pending_count, pending_size;
        size_t pending_streams; /* that they begin; `streams` has space for them */

        /* The frame of records that is being read; the offsets count from connection.start. */
        size_t frame_bytes; /* 0: none */
        size_t record_at, record_end;
        /*
         * The streams whose replies the next record waits for, in this frame and in the ring; 0:
         * it does not wait.
         */
        uint32_t frame_waits, ring_waits;
        size_t searched;        /* up to here, also from connection.start, no frame is that reply */
        unsigned socket_unread; /* calls of smv_next() since it has last looked at the socket */

        struct smv_accepted accepted; /* describes the stream that began last */

        /* One for the ring, one for frames, because each has its own order of records. */
        struct client_logprobs {
                struct bytes at; /* the entries of the last LOGPROBS record */
                size_t top_count;
                uint32_t stream; /* its stream, whose TOKENS record comes next; 0: none */
        } logprobs[2];

        struct client_row {
                struct bytes at; /* the entries of the last ROW record */
                struct smv_row row;
                bool is_whole;
                uint32_t stream; /* as above */
        } rows[2];

        /* One for each way again; each is read before the record that it divides. */
        struct client_parts {
                struct bytes at; /* the entries of the last PARTS record */
                uint32_t stream; /* as above */
        } parts[2];

        struct bytes ids, text, beam; /* the memory that the last answer or event points at */

        struct client_failure failure; /* the last one */
        /* Why the connection is lost, or was refused by the daemon; code OK: it is neither. */
        struct client_failure parting;
        bool connection_refused;
};

/* Forgets the last failure, unless it still holds (a lost connection, a refused connection). */
void client_clear_failure(struct smv_client *client);

/*
 * Every call begins with it: forgets the failure and the reply of an earlier call.  0, -ENOTCONN,
 * or -EINVAL: the client is NULL.
 */
int client_begin(struct smv_client *client);

/* Records a failure that is no refusal by the daemon.  Returns `error`.  The client may be NULL. */
int client_fail(struct smv_client *client, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* The same for an argument, or a member of a struct, that the library refuses. */
int client_refuse(struct smv_client *client, int error, const char *member, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
/* A struct that client_copy_in() refused: `what` is its name. */
int client_refuse_struct(struct smv_client *client, int error, const char *what);

/* Records why the connection was lost.  Returns -ENOTCONN. */
int client_lost(struct smv_client *client);
/*
 * The connection was given up because no reply came within `ms`, which `setting` of struct
 * smv_connect sets.  Returns -ETIMEDOUT.
 */
int client_timed_out(struct smv_client *client, int ms, const char *setting);

/* Records the failure that an error reply reports. */
void client_refused(struct smv_client *client, const struct codec_frame *frame);

/*
 * Handles a reply that no call waits for.  An error reply without an id means that the daemon
 * refuses the connection itself.
 */
void client_unexpected_reply(struct smv_client *client, const struct codec_frame *frame);

/*
 * Finds `count` consecutive ids that no living stream and no pending request has.  Returns the
 * first; none of them is 0.
 */
uint32_t client_new_ids(struct smv_client *client, uint32_t count);

/*
 * The table of pending requests.  client_reserve_pending() makes space for one: 0, -ENOMEM, or
 * -EBUSY: there are too many, or too much is not sent yet.
 */
int client_reserve_pending(struct smv_client *client);
void client_add_pending(struct smv_client *client, const struct client_pending *pending);
/* The request that this reply answers; the one that begins this stream.  NULL: there is none. */
struct client_pending *client_pending_of(const struct smv_client *client,
                                         const struct codec_frame *reply);
struct client_pending *client_pending_stream(const struct smv_client *client, uint32_t stream);
void client_remove_pending(struct smv_client *client, struct client_pending *pending);

/* The table of streams.  Makes space for `count` more, besides those that are asked: 0, -ENOMEM. */
int client_reserve_streams(struct smv_client *client, uint32_t count);
/* NULL: no such stream is alive. */
struct client_stream *client_stream(const struct smv_client *client, uint32_t id);
void client_remove_stream(struct smv_client *client, struct client_stream *stream);
/* Removes detached streams when no received record of them is left to skip. */
void client_remove_detached(struct smv_client *client);

/*
 * Copies a struct of the application, which may be shorter or longer than the library's
 * struct.  -EINVAL: it has no size.  -E2BIG: it sets a field that the library does not know.
 */
int client_copy_in(void *ours, size_t our_bytes, const void *theirs);
/*
 * Copies to a struct of the application.  Its `size` does not change; fields that the library does
 * not know become zero.
 */
void client_copy_out(void *theirs, void *ours, size_t our_bytes);

/*
 * Decodes the frame at `at` of the connection's buffer, which ends at *ret_end.  1: it is complete.
 * 0: it is not, or the connection is lost, because it is no frame of this protocol.  Or -ENOMEM.
 *
 * A doorbell is an ok reply without an id, for which nothing waits.  If the client has a ring, a
 * frame of records is allowed only if there is, or is asked for, a stream with keep_ms: only such
 * streams send frames then.
 */
int client_read_frame(struct smv_client *client, size_t at, struct codec_frame *ret_frame,
                      size_t *ret_end);

/*
 * Gives back space in the ring (shared_ring_release()), and tells a daemon that waits for it.  0 or
 * -ENOMEM.
 */
int client_release_ring(struct smv_client *client, bool all);

#endif
