/*
 * A fake daemon: bytes that are written before the client asks for them.
 *
 * The library numbers its requests 1 (hello), 2, 3, ..., so a whole conversation can be
 * scripted as one run of bytes.  The encoder here is written by hand on purpose, so that the
 * library's encoder does not check itself.
 */
#ifndef TESTS_UNIT_FAKE_DAEMON_H
#define TESTS_UNIT_FAKE_DAEMON_H

#include <assert.h>
#include <endian.h>
#include <samovar/ring.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_MAX (1u << 20)

struct script {
        uint8_t at[SCRIPT_MAX];
        size_t count;
        size_t frame, bin; /* the frame and the bin that are being written */
};

static inline void raw(struct script *s, const void *bytes, size_t count)
{
        assert(count <= SCRIPT_MAX - s->count);
        memcpy(s->at + s->count, bytes, count);
        s->count += count;
}

static inline void byte(struct script *s, unsigned value)
{
        raw(s, &(uint8_t){ (uint8_t)value }, 1);
}

static inline void text(struct script *s, const char *value)
{
        byte(s, 0xd9);
        byte(s, (unsigned)strlen(value));
        raw(s, value, strlen(value));
}

static inline void number(struct script *s, uint32_t value)
{
        byte(s, 0xce);
        raw(s, &(uint32_t){ htobe32(value) }, 4);
}

static inline void frame_begin(struct script *s, unsigned pairs)
{
        s->frame = s->count;
        raw(s, "\0\0\0", 4);
        byte(s, 0x80 | pairs);
}

static inline void frame_end(struct script *s)
{
        uint32_t length = htole32((uint32_t)(s->count - s->frame - 4));

        memcpy(s->at + s->frame, &length, 4);
}

static inline void ok_begin(struct script *s, uint32_t id, unsigned more)
{
        frame_begin(s, 2 + more);
        text(s, "id");
        number(s, id);
        text(s, "ok");
        byte(s, 0xc3);
}

static inline void ok(struct script *s, uint32_t id)
{
        ok_begin(s, id, 0);
        frame_end(s);
}

static inline void hello(struct script *s)
{
        ok_begin(s, 1, 2);
        text(s, "version");
        number(s, 0);
        text(s, "frame_bytes");
        number(s, 8u << 20);
        frame_end(s);
}

/* The same, from a daemon that serves one model without end tokens. */
static inline void hello_with_model(struct script *s)
{
        ok_begin(s, 1, 3);
        text(s, "version");
        number(s, 0);
        text(s, "frame_bytes");
        number(s, 8u << 20);
        text(s, "models");
        byte(s, 0x91);
        byte(s, 0x83);
        text(s, "name");
        text(s, "toy");
        text(s, "default");
        byte(s, 0xc3);
        text(s, "context");
        number(s, 4096);
        frame_end(s);
}

static inline void refusal(struct script *s, uint32_t id, const char *error, uint32_t code,
                           const char *field, const char *message)
{
        frame_begin(s, field ? 5 : 4);
        text(s, "id");
        number(s, id);
        text(s, "error");
        text(s, error);
        text(s, "code");
        number(s, code);
        text(s, "message");
        text(s, message);
        if (field) {
                text(s, "field");
                text(s, field);
        }
        frame_end(s);
}

static inline void doorbell(struct script *s)
{
        raw(s, "\0\0\0", 4);
}

static inline void records_begin(struct script *s)
{
        frame_begin(s, 1);
        text(s, "records");
        byte(s, 0xc6);
        raw(s, "\0\0\0", 4);
        s->bin = s->count;
}

static inline void records_end(struct script *s)
{
        uint32_t bytes = htobe32((uint32_t)(s->count - s->bin));

        memcpy(s->at + s->bin - 4, &bytes, 4);
        frame_end(s);
}

static inline void record_head(struct script *s, unsigned type, unsigned flags, uint32_t stream,
                               uint32_t sequence, size_t payload)
{
        struct smv_record head = {
                .size = htole32((uint32_t)(16 + payload)),
                .stream = htole32(stream),
                .type = (uint8_t)type,
                .flags = (uint8_t)flags,
                .head_bytes = htole16(16),
                .sequence = htole32(sequence),
        };

        while ((s->count - s->bin) % 8)
                byte(s, 0);
        raw(s, &head, sizeof(head));
}

/* `count` ids from `first` on, and a text. */
static inline void tokens_record(struct script *s, uint32_t stream, uint32_t sequence,
                                 uint32_t first, unsigned count, const char *words)
{
        struct smv_record_tokens t = {
                .position = htole32(10 + first),
                .token_count = htole16((uint16_t)count),
                .text_bytes = htole16((uint16_t)strlen(words)),
        };

        record_head(s, SMV_RECORD_TOKENS, 0, stream, sequence,
                    sizeof(t) + 4 * count + strlen(words));
        raw(s, &t, sizeof(t));
        for (unsigned i = 0; i < count; i++)
                raw(s, &(uint32_t){ htole32(first + i) }, 4);
        raw(s, words, strlen(words));
}

/*
 * An END record of which `bytes` bytes are sent: an older daemon's is shorter, a newer one's
 * longer.
 */
static inline void end_record_of(struct script *s, uint32_t stream, uint32_t sequence,
                                 unsigned reason, uint32_t code, size_t bytes)
{
        const struct {
                struct smv_record_end end;
                uint8_t newer[8];
        } all = {
                .end = { .reason = (uint8_t)reason,
                         .stopped_by = reason == SMV_END_STOP ? SMV_STOPPED_BY_STRING : 0,
                         .stop_index = reason == SMV_END_STOP ? 9 : 0,
                         .code = htole32(code),
                         .prompt_tokens = htole32(3),
                         .cached_tokens = htole32(1),
                         .output_tokens = htole32(7),
                         .diverged_at = htole32(2),
                         .queued_ns = htole64(11),
                         .prefill_ns = htole64(12),
                         .decode_ns = htole64(13),
                         .diverged_cached_token = htole32(14),
                         .diverged_prompt_token = htole32(15),
                         .preemptions = htole32(16),
                         .blocks_lost = htole32(17),
                         .recomputed = htole32(18),
                         .restored = htole32(19) },
                .newer = "newer",
        };

        record_head(s, SMV_RECORD_END, 0, stream, sequence, bytes);
        raw(s, &all, bytes);
}

static inline void end_record(struct script *s, uint32_t stream, uint32_t sequence, unsigned reason,
                              uint32_t code)
{
        end_record_of(s, stream, sequence, reason, code, sizeof(struct smv_record_end));
}

static inline void tokens_frame(struct script *s, uint32_t stream, uint32_t sequence,
                                uint32_t first, unsigned count, const char *words)
{
        records_begin(s);
        tokens_record(s, stream, sequence, first, count, words);
        records_end(s);
}

static inline void end_frame(struct script *s, uint32_t stream, uint32_t sequence, unsigned reason)
{
        records_begin(s);
        end_record(s, stream, sequence, reason, 0);
        records_end(s);
}

#endif
