/*
 * A client, from the inside.
 *
 * client.c makes and ends it, ask.c makes its requests, streams.c begins streams, fork.c those that
 * go on from others, kept.c has those that outlive it, handle.c asks about handles, beam.c searches
 * with all of these, events.c reads what they bring.  Records stay where they are, in the ring or in
 * the link's buffer, until smv_next() walks them, so events keep their order whichever call received
 * them.
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

/* A daemon that is alive and does not answer for this long is given up. */
#define CLIENT_REPLY_MS 60000

/* Accepted, and its END has not been handed out. */
struct client_stream {
        uint32_t id;
        uint32_t sequence; /* of its next record */
        uint64_t kept;     /* the number by which it outlives us; 0: it does not */
        bool left;         /* let go of: what has come of it meanwhile is stepped over */
};

/* What the daemon has told of a model. */
struct client_model {
        char name[SMV_NAME_BYTES_MAX + 1];
        bool is_default;
        uint32_t context;                           /* tokens of a sequence, at most */
        uint32_t end_count, ends[SMV_LOGPROBS_MAX]; /* tokens that end what it says */
};
#define CLIENT_MODELS_MAX 16u

/* What smv_error() tells. */
struct client_failure {
        enum smv_code code;
        char name[32], field[32], message[256];
};

struct smv_client {
        struct link link;
        struct shared shared; /* the ring, if there is one */
        struct codec codec;
        size_t request_max; /* the longest body the daemon takes */
        int reply_ms;
        uint64_t spin_ns;
        uint32_t last_id;
        bool ring_failed; /* hello promised a ring that we could not have */

        struct client_model models[CLIENT_MODELS_MAX];
        size_t model_count;

        struct client_stream *streams;
        size_t stream_count, stream_size;

        /* The records frame being walked; offsets from link.start. */
        size_t frame_bytes; /* 0: none */
        size_t record_at, record_end;
        size_t records_ahead; /* frames of records between link.start and link.scan */

        struct smv_accepted accepted; /* of the last stream */

        struct client_logprobs {
                struct bytes at; /* as the last LOGPROBS record had them ... */
                size_t top_count;
                uint32_t stream; /* ... of this one, whose TOKENS are next; 0: none */
        } logprobs[2];           /* of the ring, and of frames: each has its own order */

        struct bytes ids, text, beam; /* what the last answer or event points at */

        /* smv_error() */
        enum smv_code code;
        bool condemned; /* the connection itself was refused: what the daemon said is kept */
        char name[32], field[32], message[256];
};

/* To tell of a failure after calls that have forgotten it. */
struct client_failure client_failure(const struct smv_client *client);
void client_set_failure(struct smv_client *client, const struct client_failure *failure);

/* What the last failure said is forgotten, unless it still holds. */
void client_forget(struct smv_client *client);

/* Every call begins with it: what an older call left is forgotten.  0, or -ENOTCONN. */
int client_begin(struct smv_client *client);

/* A failure that is not the daemon's refusal: its words, and `error` back. */
int client_fail(struct smv_client *client, int error, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* The link is lost: says why; -ENOTCONN. */
int client_lost(struct smv_client *client);

/* Keeps what an error reply says. */
void client_refused(struct smv_client *client, const struct codec_frame *frame);

/* A reply that nobody waits for.  One without an id refuses the connection itself. */
void client_stray(struct smv_client *client, const struct codec_frame *frame);

/* Ids in a row that no living stream has, so many; the first.  Never 0. */
uint32_t client_new_ids(struct smv_client *client, uint32_t count);
struct client_stream *client_stream(struct smv_client *client, uint32_t id);

/*
 * Reads a struct of the application, which may be shorter or longer than ours:
 * -EINVAL without a size, -E2BIG if it sets what we do not know.
 */
int client_take(void *ours, size_t our_bytes, const void *theirs);
/* The other way round: `size` is the caller's and stays; what only he knows is zero. */
void client_give(void *theirs, void *ours, size_t our_bytes);

/* hello, after the link is there: sent, answered, and the ring mapped if it brought one. */
int client_hello(struct smv_client *client, const struct smv_connect *options, uint64_t deadline);

/*
 * A request: begun, filled with the codec's puts, then sent, and its reply waited for: 0, -EREMOTEIO
 * or another error.
 */
void client_ask_begin(struct smv_client *client, struct codec_writer *writer, const char *op,
                      uint32_t *ret_id);
int client_ask(struct smv_client *client, struct codec_writer *writer, uint32_t id,
               struct codec_frame *ret_frame);
/*
 * The same of a request that begins streams: there is room for them, whose ids are *ret_id and those
 * that follow; and after the ok reply they are alive.
 */
int client_ask_begin_streams(struct smv_client *client, struct codec_writer *writer, const char *op,
                             uint32_t count, uint32_t *ret_id);
int client_ask_streams(struct smv_client *client, struct codec_writer *writer, uint32_t id,
                       uint32_t count, struct codec_frame *ret_frame);
/* An ok reply without the field that it is for: `error` is the codec's. */
int client_bad_answer(struct smv_client *client, int error, const char *field);

/* A call that takes these options begins: as client_begin(), and what of them can not be sent. */
int client_take_generate(struct smv_client *client, const struct smv_generate *options,
                         struct smv_generate *ret_options);
/* How tokens are drawn, where that is said; who goes first. */
void client_put_drawing(struct codec_writer *writer, const struct smv_generate *o);
void client_put_class(struct codec_writer *writer, enum smv_class priority);
void client_put_model(struct codec_writer *writer, const char *model); /* NULL: the default one */
/* The conversation. */
void client_put_talk(struct codec_writer *writer, const struct smv_generate *o);
/* What of them says where a sequence starts, and of which model. */
void client_put_start(struct codec_writer *writer, const struct smv_generate *o);

size_t client_kept_count(const struct smv_client *client); /* of the living */
/* Those that were let go of, as soon as nothing of them is left to be stepped over. */
void client_forget_left(struct smv_client *client);

/* As codec_decode(); with a ring, records in frames are only those of streams that are kept. */
int client_decode(struct smv_client *client, const char *body, size_t count,
                  struct codec_frame *ret_frame);

/* Gives room in the ring back (shared_release()), and says so to a daemon that waits for it. */
int client_release(struct smv_client *client, bool all);

#endif
