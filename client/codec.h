/*
 * Codec: encodes requests as frames, and decodes frames to replies.  Only this module
 * of the library uses msgpack.
 *
 * The library trusts the daemon as little as possible.  Before msgpack-c sees a frame,
 * the codec scans it without recursion or allocation.  It checks the depth, compares
 * the number of elements with the bytes left, and refuses ext types.  So the memory
 * that msgpack-c allocates is bounded by the size of the frame.  Decoded objects live
 * in one zone, which is emptied for each frame and never freed before the end.  So
 * decoding a frame of records allocates nothing.
 */
#ifndef CLIENT_CODEC_H
#define CLIENT_CODEC_H

#include <samovar/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/bytes.h"
#include "client/public.h"

struct msgpack_object;
struct msgpack_zone;

struct codec {
        struct msgpack_zone *zone;
};

/* The contents of a frame; texts point into its bytes. */
struct codec_frame {
        const char *records; /* NULL: the frame is a reply */
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

/*
 * 0, -EPROTO if the bytes are not a frame of this protocol, or -ENOMEM.  The result is valid until
 * the next decode.
 */
int codec_decode(struct codec *codec, const char *body, size_t count,
                 struct codec_frame *ret_frame);

/* These get a field of a reply.  0, or -EPROTO: the field is missing or has another type. */
int codec_get_uint(const struct codec_frame *frame, const char *name, uint64_t *ret_value);
/* An array of exactly `count` integers. */
int codec_get_uints(const struct codec_frame *frame, const char *name, uint64_t *ret_values,
                    size_t count);
int codec_get_text(const struct codec_frame *frame, const char *name, struct codec_text *ret_text);
bool codec_has(const struct codec_frame *frame, const char *name);
/* False if the field is missing or is no boolean. */
bool codec_get_flag(const struct codec_frame *frame, const char *name);
int codec_get_ids(const struct codec_frame *frame, const char *name, struct bytes *to);
/* The arrays `pieces` and `kinds`, which are equally long, as an array of struct smv_piece. */
int codec_get_pieces(const struct codec_frame *frame, struct bytes *to);
/* The entry of the array `segments` that has this kind. */
int codec_get_segment(const struct codec_frame *frame, const char *kind, uint64_t *ret_fd,
                      uint64_t *ret_bytes);
/*
 * The entry of the array `models` at this index, of which the calls above get fields; -ENOENT if
 * there are fewer.
 */
int codec_get_model(const struct codec_frame *frame, size_t index, struct codec_frame *ret_model);
/* Any number. */
int codec_get_float(const struct codec_frame *frame, const char *name, float *ret_value);
int codec_get_json(const struct codec_frame *frame, const char *name, struct bytes *to);

/*
 * Writes a request: call begin, any number of puts, then end.  The request is appended
 * to `to`.  The first failure is remembered; codec_end() returns it and removes the
 * frame again: -ENOMEM; or -EMSGSIZE if the frame's body would be longer than `limit`.
 */
struct codec_writer {
        struct bytes *to;
        size_t frame; /* the offset of its length word */
        size_t limit;
        unsigned pairs;
        int result;
};

void codec_begin(struct codec_writer *writer, struct bytes *to, size_t limit, const char *op,
                 uint32_t id);
/* A text of the caller, whose length is 0 if it ends at its NUL. */
void codec_put_given(struct codec_writer *writer, const char *name, const char *text, size_t count);
void codec_put_text(struct codec_writer *writer, const char *name, const char *text, size_t bytes);
void codec_put_texts(struct codec_writer *writer, const char *name, const char *const *texts,
                     size_t count);
void codec_put_ids(struct codec_writer *writer, const char *name, const uint32_t *ids,
                   size_t count);
void codec_put_biases(struct codec_writer *writer, const char *name, const struct smv_bias *biases,
                      size_t count);
void codec_put_uint(struct codec_writer *writer, const char *name, uint64_t value);
void codec_put_float(struct codec_writer *writer, const char *name, double value);
void codec_put_bool(struct codec_writer *writer, const char *name, bool value);
void codec_put_messages(struct codec_writer *writer, const char *name,
                        const struct smv_message *messages, size_t count);
/* True if the bytes are exactly one value, within the limits of a frame. */
bool codec_is_value(const struct smv_packed *packed);
/* One value, copied as it is. */
void codec_put_packed(struct codec_writer *writer, const char *name,
                      const struct smv_packed *packed);
int codec_end(struct codec_writer *writer);
/* In place of codec_end(): removes the frame. */
void codec_abort(struct codec_writer *writer);

#endif
