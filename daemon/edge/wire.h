/*
 * Wire: bytes to requests, replies to bytes.  Only this module uses msgpack in the daemon.
 *
 * Everything that comes in is hostile.  A frame is first judged by its length.  Then it is scanned
 * without recursion or allocation (depth, keys of a map, elements against bytes left, no ext
 * types).  Only then is it read.  Every field is a row of one table (fields.c): which operations
 * take it, its type, its range.  Unknown, repeated, missing, mistyped and out-of-range fields are
 * refused with the field's name and the limit.  Nothing is ignored, and nothing is coerced.
 *
 * There are two severities.  A frame that is not a frame (too long, not msgpack, no map) ends the
 * connection after its reply.  A refused field ends only the request.
 *
 * Pure functions on memory; loop thread, scribe thread and the fuzzers.
 */
#ifndef DAEMON_EDGE_WIRE_H
#define DAEMON_EDGE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/error.h>
#include <samovar/protocol.h>

#include "daemon/edge/buffer.h"

enum wire_op {
        WIRE_HELLO,
        WIRE_GENERATE,
        WIRE_CANCEL,
        WIRE_TOKENIZE,
        WIRE_DETOKENIZE,
        WIRE_STATUS,
        WIRE_TEMPLATE,
        WIRE_OPEN,
        WIRE_APPEND,
        WIRE_TRUNCATE,
        WIRE_FORK,
        WIRE_CLOSE,
        WIRE_HOLD,
        WIRE_ATTACH,
        WIRE_DETACH,
        WIRE_DROP,
        WIRE_PUBLISH,
        WIRE_REVOKE,
        WIRE_OP_N,
};

/* In the order of the table. */
enum wire_field {
        WIRE_F_OP,
        WIRE_F_ID,
        WIRE_F_VERSIONS,
        WIRE_F_FEATURES,
        WIRE_F_TRANSPORT,
        WIRE_F_DOORBELL,
        WIRE_F_RING_BYTES,
        WIRE_F_MODEL,
        WIRE_F_PROMPT,
        WIRE_F_TOKENS,
        WIRE_F_MAX_TOKENS,
        WIRE_F_TEMPERATURE,
        WIRE_F_TOP_K,
        WIRE_F_TOP_P,
        WIRE_F_MIN_P,
        WIRE_F_SEED,
        WIRE_F_STOP,
        WIRE_F_STOP_TOKENS,
        WIRE_F_IGNORE_EOS,
        WIRE_F_STREAM,
        WIRE_F_TEXT,
        WIRE_F_MESSAGES,
        WIRE_F_TOOLS,
        WIRE_F_TEMPLATE_VARS,
        WIRE_F_ADD_GENERATION_PROMPT,
        WIRE_F_TOKENIZE,
        WIRE_F_CLASS,
        WIRE_F_DEADLINE_MS,
        WIRE_F_HANDLE,
        WIRE_F_LENGTH,
        WIRE_F_COUNT,
        WIRE_F_LOGPROBS,
        WIRE_F_N,
        WIRE_F_CHOICE,
        WIRE_F_MS,
        WIRE_F_KEEP_MS,
        WIRE_F_KEPT,
        WIRE_F_FROM,
        WIRE_F_TO,
        WIRE_F_GROUP,
        WIRE_FIELD_N,
};

enum wire_transport { WIRE_SOCKET, WIRE_RING, WIRE_AUTO };
enum wire_doorbell { WIRE_KICK, WIRE_FUTEX, WIRE_NONE };
enum wire_class { WIRE_INTERACTIVE, WIRE_NORMAL, WIRE_BACKGROUND };

enum wire_to { WIRE_ALL, WIRE_GROUP };

struct wire_text {
        const char *bytes; /* into the frame */
        uint32_t count;
};

/* The elements of an array, or the pairs of a map, as they lie in the frame: see values.h. */
struct wire_values {
        const uint8_t *bytes; /* NULL: not given */
        uint32_t size, count;
};

/* A conversation. */
struct wire_talk {
        struct wire_values messages, tools, template_vars;
        uint32_t value_count; /* in all three together */
        bool add_generation_prompt;
};

/* A decoded request; fields that are not in `given` hold their defaults. */
struct wire_request {
        enum wire_op op;
        uint32_t id;
        uint64_t given; /* a bit for each enum wire_field; use wire_has() */
        uint32_t version_min, version_max;
        enum wire_transport transport;
        enum wire_doorbell doorbell;
        uint32_t ring_bytes; /* 0: the daemon chooses */
        struct wire_text model;
        /* generate, open: the prompt, unless tokens or messages are given */
        struct wire_text prompt;
        struct wire_text text;  /* tokenize, append */
        const uint32_t *tokens; /* generate, detokenize, open, append */
        uint32_t token_count;
        struct wire_talk talk; /* generate, open, template */
        bool tokenize;         /* template */
        uint32_t max_tokens;
        float temperature, top_p, min_p;
        uint32_t top_k;
        uint64_t seed;
        struct wire_text stop[SMV_STOPS_MAX];
        uint32_t stop_count;
        uint32_t stop_tokens[SMV_STOPS_MAX];
        uint32_t stop_token_count;
        bool ignore_eos;
        enum wire_class class;
        uint32_t deadline_ms; /* 0: none */
        uint32_t stream;      /* cancel, fork, detach: the stream */
        uint64_t handle;      /* the handle; generate: in place of a prompt */
        uint32_t length;      /* truncate: the new length; publish: the number of tokens */
        uint32_t count;       /* fork: the number of forks */
        uint32_t logprobs;    /* if given: the number of likeliest tokens to report */
        uint32_t n;           /* generate: the number of streams; 0: one */
        uint32_t choice;      /* of the first stream */
        uint32_t ms;          /* hold: how long; 0: no longer */
        uint32_t keep_ms;     /* generate, open, fork; 0: ends with the connection */
        uint64_t kept;        /* attach, drop: the kept stream */
        uint32_t from;        /* attach: the first record to send */
        enum wire_to to;      /* publish */
        uint32_t group;       /* ... to this group */
        /* wire_release() frees both.  A caller that takes one must clear it here. */
        uint32_t *memory;    /* of `tokens` */
        struct buffer frame; /* what the texts point into, if the request owns it */
};

static inline bool wire_has(const struct wire_request *request, enum wire_field field)
{
        return request->given >> field & 1;
}

/* How many streams the request asks for; their numbers are id, id + 1 ... */
static inline uint32_t wire_streams(const struct wire_request *request)
{
        if (request->op == WIRE_FORK)
                return wire_has(request, WIRE_F_STREAM) ? request->count : 0;
        return request->op != WIRE_GENERATE ? 0 : request->n ? request->n : 1;
}

/* Why a request was refused: the content of an error reply. */
struct wire_problem {
        enum smv_code code;
        uint32_t id;    /* 0 if it could not be read */
        char field[32]; /* "" if no field is to blame */
        char message[224];
        bool fatal; /* the connection ends after this reply */
};

enum wire_outcome {
        WIRE_E_PARTIAL = 1, /* the frame is not whole yet */
        WIRE_E_REFUSED = 2, /* *ret_problem has the reason */
};

/*
 * Is there a whole frame at the front of these bytes?  0: *ret_bytes is its size with its length
 * word, and *ret_body its body, which may be empty (a doorbell).
 * WIRE_E_PARTIAL: *ret_bytes is the number of bytes needed, 4 if the length word is not whole.
 * WIRE_E_REFUSED: longer than frame_max; known from the length word alone.
 */
int wire_frame(const uint8_t *bytes, size_t count, size_t frame_max, size_t *ret_bytes,
               const uint8_t **ret_body, struct wire_problem *ret_problem);

/*
 * Decodes the body of one frame to a request.  Admission checks which ids the model has.
 * 0, WIRE_E_REFUSED, or -ENOMEM (then only ret_problem->id is set).  Release after 0 only; texts
 * point into `body`.
 */
int wire_decode(const uint8_t *body, size_t count, struct wire_request *ret_request,
                struct wire_problem *ret_problem);
void wire_release(struct wire_request *request);

/* The id of a request that is not decoded now, if the first 4 KiB of the frame have it; or 0. */
uint32_t wire_peek_id(const uint8_t *body, size_t count);

/* The pre-scan alone: is it one msgpack map within the limits? */
bool wire_scan(const uint8_t *body, size_t count);

/* Fills the problem and returns WIRE_E_REFUSED.  `format` is as for printf(). */
int wire_refuse(struct wire_problem *ret_problem, enum smv_code code, uint32_t id,
                const char *field, const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * The rows of the table, for docs and for tests that walk every range: NULL after the last.  A
 * number's range is [low, high].  For a text or an array, the range is that of its count.
 */
struct wire_row {
        const char *name;
        enum wire_field field;
        /* "uint", "float", "bool", "text", "ids", "uints", "texts", "maps", "map" */
        const char *type;
        double low, high;
        bool above;             /* a float's: low itself is refused */
        uint32_t member_max;    /* texts: the most bytes of one text; the least are 1 */
        uint32_t ops, required; /* 1u << enum wire_op */
};
const struct wire_row *wire_row(uint32_t index);
const char *wire_op_name(enum wire_op op);

/*
 * To write: wire_begin(), puts, wire_end().  The first failure sticks until wire_end() returns it
 * (0, BUFFER_E_FULL, -ENOMEM) and removes the frame.
 */
struct wire_writer {
        struct buffer *to;
        size_t frame; /* offset of its length word from the buffer's start */
        int result;
};

void wire_begin(struct wire_writer *writer, struct buffer *to);
void wire_put_map(struct wire_writer *writer, uint32_t pairs);
void wire_put_array(struct wire_writer *writer, uint32_t count);
void wire_put_text(struct wire_writer *writer, const char *text);
/* as msgpack str */
void wire_put_bytes(struct wire_writer *writer, const char *bytes, size_t count);
void wire_put_bin(struct wire_writer *writer, const void *bytes, size_t count);
void wire_put_uint(struct wire_writer *writer, uint64_t value);
void wire_put_float(struct wire_writer *writer, double value);
void wire_put_bool(struct wire_writer *writer, bool value);
int wire_end(struct wire_writer *writer);

/* Puts {id, ok: true, and `more` pairs that the caller puts}. */
void wire_put_ok(struct wire_writer *writer, uint32_t id, uint32_t more);

/* Writes a whole error frame. */
int wire_error(struct buffer *to, const struct wire_problem *problem);

#endif
