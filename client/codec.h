/*
 * Codec: requests to frames, frames to replies.  msgpack's only door here.
 *
 * The daemon is not trusted more than it must be: a frame is scanned without
 * recursion or allocation (depth, elements against bytes left, no ext types)
 * before msgpack-c sees it, so that what it allocates is bounded by the frame's
 * size.  Objects live in one zone that is emptied for each frame and never
 * given back, so decoding a frame of records allocates nothing.
 */
#ifndef CLIENT_CODEC_H
#define CLIENT_CODEC_H

#include <samovar/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/bytes.h"
#include "client/public.h"

struct msgpack_object;
struct msgpack_zone;

struct codec {
        struct msgpack_zone *zone;
};

/* What a frame holds; texts point into its bytes. */
struct codec_frame {
        const char *records; /* NULL: it is a reply */
        size_t records_bytes;
        uint64_t id; /* 0: none */
        bool ok;
        uint64_t code; /* of a refusal */
        const struct msgpack_object *map;
};

struct codec_text {
        const char *bytes;
        size_t count;
};

int codec_init(struct codec *codec);
void codec_deinit(struct codec *codec);

/* 0, -EPROTO for what is no frame of ours, or -ENOMEM.  Valid until the next one. */
int codec_decode(struct codec *codec, const char *body, size_t count,
                 struct codec_frame *ret_frame);

/* A field of a reply.  0, or -EPROTO: missing or of another type. */
int codec_get_uint(const struct codec_frame *frame, const char *name, uint64_t *ret_value);
/* An array of exactly so many integers. */
int codec_get_uints(const struct codec_frame *frame, const char *name, uint64_t *ret_values,
                    size_t count);
int codec_get_text(const struct codec_frame *frame, const char *name, struct codec_text *ret_text);
int codec_get_ids(const struct codec_frame *frame, const char *name, struct bytes *to);
/* The entry of the array `segments` that has this kind. */
int codec_get_segment(const struct codec_frame *frame, const char *kind, uint64_t *ret_fd,
                      uint64_t *ret_bytes);
/* The entry of the array `models` at this index: -ENOENT behind the last. */
int codec_get_model(const struct codec_frame *frame, size_t index, struct codec_text *ret_name,
                    bool *ret_default, uint64_t *ret_context, struct bytes *ends);
int codec_get_json(const struct codec_frame *frame, const char *name, struct bytes *to);

/*
 * A request: begin, puts, end.  It is appended to `to`; the first failure sticks
 * until the end returns it and takes the frame back: -ENOMEM, -EMSGSIZE when
 * the frame's body would be longer than `limit`, or -EPROTO.
 */
struct codec_writer {
        struct bytes *to;
        size_t frame; /* where its length word is */
        size_t limit;
        unsigned pairs;
        int result;
};

void codec_begin(struct codec_writer *writer, struct bytes *to, size_t limit, const char *op,
                 uint32_t id);
void codec_put_text(struct codec_writer *writer, const char *name, const char *text, size_t bytes);
void codec_put_texts(struct codec_writer *writer, const char *name, const char *const *texts,
                     size_t count);
void codec_put_ids(struct codec_writer *writer, const char *name, const uint32_t *ids,
                   size_t count);
void codec_put_uint(struct codec_writer *writer, const char *name, uint64_t value);
void codec_put_float(struct codec_writer *writer, const char *name, double value);
void codec_put_bool(struct codec_writer *writer, const char *name, bool value);
void codec_put_messages(struct codec_writer *writer, const char *name,
                        const struct smv_message *messages, size_t count);
/* One value as it is; -EPROTO in the end, if it is not one. */
void codec_put_packed(struct codec_writer *writer, const char *name,
                      const struct smv_packed *packed);
int codec_end(struct codec_writer *writer);

#endif
