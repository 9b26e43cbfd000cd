/*
 * The token ring: bytes that the daemon writes and one client reads.
 *
 * One ring a connection carries the records of all its streams.  It lives in
 * two segments, so that each side writes only what is its own:
 *
 *      segment D, written by the daemon            segment C, written by the client
 *      +-------------------------------+ 0x000     +---------------------------+ 0x000
 *      | magic, version, sizes         |           | head: bytes consumed      |
 *      +-------------------------------+ 0x080     +---------------------------+ 0x080
 *      | tail: bytes published         |           | wake_position             |
 *      +-------------------------------+ 0x100     +---------------------------+ 0x100
 *      | state: run, stalled           |           | zero                      |
 *      +-------------------------------+ 0x1000    +---------------------------+ 0x1000
 *      | records, data_bytes of them   |
 *      +-------------------------------+
 *
 * Positions only grow and never wrap (64 bits); a position modulo data_bytes is
 * an offset into the records.  A record is contiguous: where it would cross the
 * end, a PAD record fills the rest.  Records begin at multiples of 8, so the rest
 * may be 8 bytes only: a PAD, too, but `size` and `stream` are all of it.  With 8
 * bytes left before the end, do not look for a type.
 *
 * Reading.  Load tail (acquire); walk the records from head to it; store head
 * (release) and they may be overwritten.  Then load state, after a full fence:
 * if it is STALLED, the daemon waits for room, so send it one empty frame.
 *
 * Sleeping.  With nothing left to read, store head + n into wake_position (n: how
 * many bytes may come before you want to be woken; 0: any), then, after a full
 * fence, load tail again: sleep only if it is still head.  Awake, store
 * SMV_WAKE_NEVER.  You are woken once tail has gone past wake_position, by an
 * END in any case, and when a quarter of the ring is waiting.
 *
 * Woken how: by the doorbell chosen in hello.
 *
 *      kick    an empty frame on the socket.  It tells of the daemon's death,
 *              too, and fits any poll loop.  What else has come on the socket
 *              may stand in its place: a readable socket means look at the ring.
 *      futex   FUTEX_WAKE (not private) on the low half of tail.  Cheaper; but a
 *              daemon that dies wakes nobody, so sleep a second at most and look
 *              at the socket.
 *      none    the reader polls.
 *
 * Over a plain socket the same records, without PAD, travel inside frames
 * (protocol.h); a reader of one is a reader of the other.
 *
 * Everything is little-endian.  This is ABI: fields are appended, never moved,
 * and a reader steps over a record by its `size`, over its head by `head_bytes`.
 */
#ifndef SAMOVAR_RING_H
#define SAMOVAR_RING_H

#include <stdint.h>

#define SMV_RING_MAGIC  "SMVRING1"
#define SMV_RING_MAJOR  0
#define SMV_RING_MINOR  1
#define SMV_RING_HEADER 4096u
#define SMV_RING_ALIGN  8u
#define SMV_WAKE_NEVER  UINT64_MAX

#define SMV_RING_BYTES_MIN (64u << 10) /* data_bytes that a client may ask for */
#define SMV_RING_BYTES_MAX (1u << 20)

enum smv_ring_state { SMV_RING_RUN = 0, SMV_RING_STALLED = 1 };

/* Segment D.  `tail` and `state` are loaded and stored atomically. */
struct smv_ring {
        char magic[8];
        uint16_t major, minor;
        uint32_t header_bytes; /* SMV_RING_HEADER */
        uint32_t data_offset;
        uint32_t record_align;
        uint64_t data_bytes; /* a power of two */
        uint64_t features;
        uint64_t connection;
        uint8_t pad0[0x80 - 0x30];
        uint64_t tail; /* everything before it is whole; its low half is the futex word */
        uint8_t pad1[0x100 - 0x88];
        uint32_t state; /* enum smv_ring_state */
        uint8_t pad2[SMV_RING_HEADER - 0x104];
};

/* Segment C. */
struct smv_ring_control {
        uint64_t head; /* everything before it may be overwritten */
        uint8_t pad0[0x78];
        uint64_t wake_position; /* ring once tail is past it; SMV_WAKE_NEVER: we are awake */
        uint8_t pad1[0x1000 - 0x88];
};

enum smv_record_type {
        SMV_RECORD_PAD = 0,
        SMV_RECORD_TOKENS = 1,
        SMV_RECORD_LOGPROBS = 2,
        SMV_RECORD_END = 3,
};

/* An unknown type is stepped over, unless this flag says that it must be understood. */
#define SMV_RECORD_MUST 0x01u
/* The text of a TOKENS record is not valid UTF-8. */
#define SMV_RECORD_RAW 0x02u

/* Every record begins so; `stream` is the id the client gave its request. */
struct smv_record {
        uint32_t size; /* head and payload; the next record begins at size rounded up to 8 */
        uint32_t stream;
        uint8_t type; /* enum smv_record_type */
        uint8_t flags;
        uint16_t head_bytes; /* 16 */
        uint32_t sequence;   /* per stream, from 0, no gaps */
};

/*
 * TOKENS: after this come `token_count` ids (u32), then `text_bytes` of text.
 * Text is what may be shown now: a character split over tokens, or the
 * beginning of a stop string, is held back until it is decided.  So a record
 * may have ids without text, and the last one text without ids.
 */
struct smv_record_tokens {
        uint32_t position; /* of the first id in the sequence, the prompt counted */
        uint16_t token_count;
        uint16_t text_bytes;
};

/*
 * LOGPROBS: what the model thought of the ids in the TOKENS record that comes next; for who asked.
 * For each of them come 1 + top_count entries: its own, then the likeliest tokens at its place.
 */
struct smv_record_logprobs {
        uint32_t position;
        uint16_t token_count;
        uint16_t top_count;
};

struct smv_record_logprob {
        uint32_t token;
        uint32_t logprob; /* the bits of a float: the log of its probability, of all tokens' */
};

/* END: the last record of every stream, exactly once. */
struct smv_record_end {
        uint8_t reason; /* enum smv_reason */
        uint8_t pad[3];
        uint32_t code; /* enum smv_code; OK unless reason is ERROR */
        uint32_t prompt_tokens;
        uint32_t cached_tokens;
        uint32_t output_tokens;
        uint32_t diverged_at; /* there, what is known goes on otherwise; 0: nowhere */
        uint64_t queued_ns;   /* accepted until its first row was planned */
        uint64_t prefill_ns;  /* until its first token */
        uint64_t decode_ns;   /* until its last token */
        uint32_t known_token; /* at diverged_at: what is known has this one */
        uint32_t asked_token; /* ... and the prompt that one */
};
/* Every END has so many bytes; of those behind, what is missing is 0. */
#define SMV_RECORD_END_MIN 48u

_Static_assert(sizeof(struct smv_ring) == SMV_RING_HEADER, "segment D's header is one page");
_Static_assert(sizeof(struct smv_ring_control) == 4096, "segment C is one page");
_Static_assert(sizeof(struct smv_record) == 16, "a record's head is 16 bytes");
_Static_assert(sizeof(struct smv_record_tokens) == 8, "TOKENS is 8 bytes before its ids");
_Static_assert(sizeof(struct smv_record_logprobs) == 8, "LOGPROBS is 8 bytes before its entries");
_Static_assert(sizeof(struct smv_record_logprob) == 8, "an entry is 8 bytes");
_Static_assert(sizeof(struct smv_record_end) == 56, "END is 56 bytes");

#endif
