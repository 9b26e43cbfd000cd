/*
 * The internals of a client.
 *
 * client.c makes and closes the client, and ask.c sends its requests.  streams.c begins streams,
 * and fork.c forks them.  kept.c handles streams that outlive the client, and handle.c handles
 * histories (handles).  beam.c does beam search with all of these.  events.c reads the records of
 * the streams.
 *
 * Records stay in the ring or in the link's buffer until smv_next() reads them.  So events keep
 * their order, whichever call received them.
 */
#ifndef CLIENT_PRIVATE_H
#define CLIENT_PRIVATE_H

#include <samovar/protocol.h>
#include <stdarg.h>
#include <stdbool.h>

#include "client/bytes.h"
#include "client/codec.h"
#include "client/link.h"
#include "client/public.h"
#include "client/shared.h"

/* If a daemon is alive but does not answer for this long, the client gives up. */
#define CLIENT_REPLY_MS 60000

/* A stream that was accepted, and whose END smv_next() has not returned yet. */
struct client_stream {
        uint32_t id;
        uint32_t sequence; /* of its next record */
        uint64_t kept;     /* its number if it outlives the connection; 0: it does not */
        bool left;         /* detached: records that have come meanwhile are skipped */
};

/* A model, as the reply to hello describes it. */
struct client_model {
        char name[SMV_NAME_BYTES_MAX + 1];
        bool is_default;
        uint32_t context;                           /* the most tokens of a sequence */
        uint32_t end_count, ends[SMV_LOGPROBS_MAX]; /* its end tokens */
};
#define CLIENT_MODELS_MAX 16u

/* A failure, as smv_error() reports it. */
struct client_failure {
        enum smv_code code;
        char name[32], field[32], message[256];
};

struct smv_client {
        struct link link;
        struct shared shared; /* the ring, if there is one */
        struct codec codec;
        size_t request_max; /* the longest body that the daemon accepts */
        int reply_ms;
        uint64_t spin_ns;
        uint32_t last_id;
        bool ring_failed; /* hello promised a ring, but the client could not use it */

        struct client_model models[CLIENT_MODELS_MAX];
        size_t model_count;

        struct client_stream *streams;
        size_t stream_count, stream_size;

        /* The frame of records that is being read; the offsets count from link.start. */
        size_t frame_bytes; /* 0: none */
        size_t record_at, record_end;
        size_t records_ahead; /* frames of records between link.start and link.scan */

        struct smv_accepted accepted; /* describes the stream that began last */

        /* One for the ring, one for frames, because each has its own order of records. */
        struct client_logprobs {
                struct bytes at; /* the entries of the last LOGPROBS record */
                size_t top_count;
                uint32_t stream; /* its stream, whose TOKENS record comes next; 0: none */
        } logprobs[2];

        struct bytes ids, text, beam; /* the memory that the last answer or event points at */

        /* smv_error() */
        enum smv_code code;
        /* The daemon has refused the connection itself; client_forget() keeps the reason. */
        bool condemned;
        char name[32], field[32], message[256];
};

/* Save and restore a failure around calls that would forget it. */
struct client_failure client_failure(const struct smv_client *client);
void client_set_failure(struct smv_client *client, const struct client_failure *failure);

/* Forgets the last failure, unless it still holds (a lost link, a refused connection). */
void client_forget(struct smv_client *client);

/*
 * Every call begins with it: forgets the failure and the reply of an earlier call.  0 or
 * -ENOTCONN.
 */
int client_begin(struct smv_client *client);

/* Records a failure that is not a refusal by the daemon.  Returns `error`. */
int client_fail(struct smv_client *client, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Records why the link was lost.  Returns -ENOTCONN. */
int client_lost(struct smv_client *client);

/* Records the failure that an error reply reports. */
void client_refused(struct smv_client *client, const struct codec_frame *frame);

/*
 * Handles a reply that no call waits for.  An error reply without an id means that the daemon
 * refuses the connection itself.
 */
void client_stray(struct smv_client *client, const struct codec_frame *frame);

/*
 * Finds `count` consecutive ids that no living stream has.  Returns the first; none of them is 0.
 */
uint32_t client_new_ids(struct smv_client *client, uint32_t count);
struct client_stream *client_stream(struct smv_client *client, uint32_t id);

/*
 * Copies a struct of the application, which may be shorter or longer than the library's
 * struct.  -EINVAL: it has no size.  -E2BIG: it sets a field that the library does not know.
 */
int client_take(void *ours, size_t our_bytes, const void *theirs);
/*
 * Copies to a struct of the application.  Its `size` does not change; fields that the library does
 * not know become zero.
 */
void client_give(void *theirs, void *ours, size_t our_bytes);

/* Sends hello on the new link, waits for the reply, and maps the ring if the reply brought one. */
int client_hello(struct smv_client *client, const struct smv_connect *options, uint64_t deadline);

/*
 * A request.  client_ask_begin() begins it, the codec's puts fill it, and client_ask() sends it and
 * waits for the reply: 0, -EREMOTEIO or another error.
 */
void client_ask_begin(struct smv_client *client, struct codec_writer *writer, const char *op,
                      uint32_t *ret_id);
int client_ask(struct smv_client *client, struct codec_writer *writer, uint32_t id,
               struct codec_frame *ret_frame);
/*
 * The same for a request that begins `count` streams.  client_ask_begin_streams() reserves memory
 * for them; *ret_id is the first of their consecutive ids.  After an ok reply the streams are
 * alive.
 */
int client_ask_begin_streams(struct smv_client *client, struct codec_writer *writer, const char *op,
                             uint32_t count, uint32_t *ret_id);
int client_ask_streams(struct smv_client *client, struct codec_writer *writer, uint32_t id,
                       uint32_t count, struct codec_frame *ret_frame);
/* Records that an ok reply lacks a field that it must have.  `error` is the codec's error. */
int client_bad_answer(struct smv_client *client, int error, const char *field);

/*
 * Begins a call that takes these options: client_begin(), copies the options, and refuses options
 * that cannot be sent.
 */
int client_take_generate(struct smv_client *client, const struct smv_generate *options,
                         struct smv_generate *ret_options);
/* Puts the sampling options that are set; puts the class. */
void client_put_drawing(struct codec_writer *writer, const struct smv_generate *o);
void client_put_class(struct codec_writer *writer, enum smv_class priority);
void client_put_model(struct codec_writer *writer, const char *model); /* NULL: the default one */
/* Puts the conversation. */
void client_put_talk(struct codec_writer *writer, const struct smv_generate *o);
/* Puts the model, and the conversation, prompt or tokens that the sequence starts with. */
void client_put_start(struct codec_writer *writer, const struct smv_generate *o);

size_t client_kept_count(const struct smv_client *client); /* among the living streams */
/* Removes detached streams when no received record of them is left to skip. */
void client_forget_left(struct smv_client *client);

/*
 * As codec_decode(), but -EPROTO for a frame of records if the client has a ring and no stream with
 * keep_ms: only such streams send frames then.
 */
int client_decode(struct smv_client *client, const char *body, size_t count,
                  struct codec_frame *ret_frame);

/* Gives back space in the ring (shared_release()), and tells a daemon that waits for it. */
int client_release(struct smv_client *client, bool all);

#endif
