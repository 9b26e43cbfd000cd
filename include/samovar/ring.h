/*
 * The token ring: a buffer in shared memory that the daemon writes and one client reads.
 *
 * A connection has one ring, which carries the records of all its streams.  The ring
 * consists of two segments, so that each side writes only to its own segment:
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
 * Positions only grow and never wrap (64 bits).  A position modulo data_bytes is an
 * offset into the records.  A record is contiguous: if it would cross the end of the
 * buffer, a PAD record fills the rest.  Records begin at multiples of 8, so the rest
 * may be only 8 bytes.  These are a PAD too, but one that has only `size` and
 * `stream`: with 8 bytes left before the end, do not read a type.
 *
 * Reading.  Load tail (acquire).  Walk the records from head to tail.  Store head
 * (release); from then on the daemon may overwrite these records.  Then load state,
 * after a full fence.  If it is STALLED, the daemon waits for free space, so send it
 * one empty frame.
 *
 * Sleeping.  When nothing is left to read, store head + n into wake_position.  n is
 * the number of bytes that may come before you want to be woken; 0: any record wakes
 * you.  Then, after a full fence, load tail again, and sleep only if it still equals
 * head.  When awake, store SMV_WAKE_NEVER.  The daemon wakes you once tail has gone
 * past wake_position.  It also wakes you for each END and each ASK, and when more than
 * a quarter of the ring waits to be read.
 *
 * The doorbell that was chosen in hello says how the daemon wakes the reader.
 *
 *      kick    An empty frame on the socket.  This works in any poll loop, which also
 *              notices the daemon's death.  Other data on the socket may come instead
 *              of the frame: whenever the socket is readable, look at the ring too.
 *      futex   FUTEX_WAKE (not private) on the low half of tail.  This is cheaper, but
 *              a daemon that dies does not wake the reader.  So sleep for at most a
 *              second, then look at the socket.
 *      none    No wake-up: the reader polls.
 *
 * Over a plain socket the same records, without PAD, travel inside frames
 * (protocol.h).  Code that reads one can read the other.
 *
 * All values are little-endian.  This is an ABI: fields are appended and never moved.
 * A reader finds the next record by `size`, and the end of a record's head by
 * `head_bytes`.
 */
#ifndef SAMOVAR_RING_H
#define SAMOVAR_RING_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/error.h>

#define SMV_RING_MAGIC  "SMVRING1"
#define SMV_RING_MAJOR  0
#define SMV_RING_MINOR  1
#define SMV_RING_HEADER 4096u
#define SMV_RING_ALIGN  8u
#define SMV_WAKE_NEVER  UINT64_MAX

/*
 * The data_bytes that a client may ask for.  If it asks for none, the daemon's setting ring_bytes
 * decides, and the ring may be larger than this.
 */
#define SMV_RING_BYTES_MIN (64u << 10)
#define SMV_RING_BYTES_MAX (1u << 20)

enum smv_ring_state {
        SMV_RING_RUN = 0,
        SMV_RING_STALLED = 1, /* the daemon waits for free space, and perhaps for answers */
        SMV_RING_ASKING = 2,  /* it waits for answers (smv_answer) */
};

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
        uint64_t tail; /* all records before it are complete; its low half is the futex word */
        uint8_t pad1[0x100 - 0x88];
        uint32_t state; /* enum smv_ring_state */
        uint8_t pad2[SMV_RING_HEADER - 0x104];
};

/* Segment C. */
struct smv_ring_control {
        uint64_t head; /* the daemon may overwrite all bytes before it */
        uint8_t pad0[0x78];
        /* The daemon wakes the client once tail is past it.  SMV_WAKE_NEVER: it is awake. */
        uint64_t wake_position;
        uint8_t pad1[0x1000 - 0x88];
};

enum smv_record_type {
        SMV_RECORD_PAD = 0,
        SMV_RECORD_TOKENS = 1,
        SMV_RECORD_LOGPROBS = 2,
        SMV_RECORD_END = 3,
        SMV_RECORD_PROGRESS = 4,
        SMV_RECORD_PROMPT_LOGPROBS = 5,
        SMV_RECORD_PARTS = 6,
        SMV_RECORD_ROW = 7,
        SMV_RECORD_ASK = 8,
};

/*
 * A reader skips a record of unknown type, unless this flag is set: then it must stop with an
 * error.
 */
#define SMV_RECORD_CRITICAL 0x01u
/* The text of a TOKENS record is not valid UTF-8. */
#define SMV_RECORD_NOT_UTF8 0x02u

/* The head of every record.  `stream` is the id that the client gave its request. */
struct smv_record {
        uint32_t size; /* head and payload; the next record begins at size rounded up to 8 */
        uint32_t stream;
        uint8_t type; /* enum smv_record_type */
        uint8_t flags;
        uint16_t head_bytes; /* 16 */
        uint32_t sequence;   /* counts the records of a stream, from 0, without gaps */
};

/*
 * TOKENS: after this come `token_count` ids (u32), then `text_bytes` of text.
 *
 * The text is what the client may show now.  The daemon holds back the bytes of a
 * character that is not complete yet, and text that may be the beginning of a stop
 * string.  So a record may have ids without text, and the last record may have text
 * without ids.
 */
struct smv_record_tokens {
        uint32_t position; /* of the first id in the sequence, the prompt counted */
        uint16_t token_count;
        uint16_t text_bytes;
};

/*
 * LOGPROBS: the log-probabilities of the ids in the next TOKENS record of this stream.  Such
 * records come only if the request asked for them.  For each id there are 1 + top_count entries:
 * that of the id itself, then those of the likeliest tokens at its place.
 */
struct smv_record_logprobs {
        uint32_t position;
        uint16_t token_count;
        uint16_t top_count;
};

/*
 * PROMPT_LOGPROBS: the same for tokens of the prompt, which have no TOKENS record: the first entry
 * of each has its id.  Such records come only if the request asked for them, before its first
 * TOKENS, in the order of positions, from position 1 on.  The head is a smv_record_logprobs.
 */
struct smv_record_logprob {
        uint32_t token;
        /* The bits of a float: the logarithm of the token's probability among all tokens. */
        uint32_t logprob;
};

/*
 * PROGRESS: how much of the prompt is read.  Such records come only if the request asked for them,
 * before its first TOKENS, at most one for each step that read a part of the prompt.  Some are left
 * out if the ring has little free space.
 */
struct smv_record_progress {
        uint32_t prompt_tokens;
        uint32_t cached_tokens; /* those of the prompt that need not be read */
        uint32_t prefilled;     /* tokens of the prompt that are read or cached; it only grows */
};

/*
 * PARTS: divides the text of the next TOKENS record of this stream.  Such records come only if the
 * request asked for them, before each TOKENS record.  After this come `part_count` entries, whose
 * bytes together are the text.
 */
struct smv_record_parts {
        uint32_t part_count;
        uint32_t pad;
};

struct smv_record_part {
        uint32_t kind;  /* enum smv_part_kind */
        uint32_t bytes; /* of the text */
        uint32_t call;  /* CALL, ARGUMENTS, CALL_END: the number of the call, from 0; else 0 */
        uint32_t flags; /* enum smv_parts_flag */
};

/*
 * ROW: what the model says of the token at `position`, before all rules and cuts of the request.
 * Such records come only if the request asked for them, before the TOKENS record with that
 * position, or before the ASK for it.  After this come 1 + top_count entries (smv_record_logprob):
 * that of the token that the daemon has drawn, then those of the likeliest tokens.  The logit of an
 * entry is its logprob plus log_sum.
 */
struct smv_record_row {
        uint32_t position;
        uint32_t log_sum; /* the bits of a float: log(sum(exp(logit))) over all tokens */
        uint16_t top_count;
        uint16_t is_whole; /* 1: the whole row is in the stream's slot (smv_shown_row) */
        uint32_t pad;
};

/*
 * ASK: the daemon waits for an answer of the client about the token at `position`.  Such records
 * come only if the request said so.  The first mask of a stream is asked for by the reply to its
 * request instead.
 */
struct smv_record_ask {
        uint32_t position;
        uint32_t kind; /* enum smv_ask */
};

/*
 * Slots.  A stream that asks its client has a slot, which the reply to its request names, together
 * with a ticket: a number that no other stream of the connection gets.  The answers are in a
 * segment that the client writes: slot n begins at n * SMV_ANSWER_STRIDE(vocab).  Whole rows are in
 * a segment that the daemon writes: slot n begins at n * SMV_SHOWN_ROW_STRIDE(vocab).
 *
 * Answering.  Write token or mask, then store `of` (release).  Then, after a full fence, load the
 * ring's state: if it is not RUN, the daemon sleeps, so send it one empty frame.  The daemon
 * reads an answer once, after it has asked.  It takes no notice of one that has another `of`.
 */
#define SMV_OF(ticket, position) ((uint64_t)(ticket) << 32 | (position))

struct smv_answer {
        uint64_t of; /* SMV_OF() of the question */
        /* SMV_ASK_TOKEN: the token, or SMV_TOKEN_AS_DRAWN: the one that the daemon has drawn. */
        uint32_t token;
        uint32_t pad[13];
        /*
         * SMV_ASK_MASK: behind this struct, (vocab + 31) / 32 numbers.  Bit n % 32 of number n / 32
         * says that token n is legal.
         */
};

/* Behind this struct, `vocab` floats: the logits. */
struct smv_shown_row {
        uint64_t of; /* SMV_OF() of the token that the row is for; 0 while it is being written */
        uint32_t pad[14];
};

/* Bytes of a slot: its struct, then its numbers, up to a multiple of 64. */
#define SMV_ANSWER_STRIDE(vocab)    (64 + (((size_t)(vocab) + 31) / 32 * 4 + 63) / 64 * 64)
#define SMV_SHOWN_ROW_STRIDE(vocab) (64 + ((size_t)(vocab)*4 + 63) / 64 * 64)

/* END: the last record of every stream, exactly once. */
struct smv_record_end {
        uint8_t reason;      /* enum smv_reason */
        uint8_t stopped_by;  /* enum smv_stopped_by */
        uint8_t stop_index;  /* of that stop string, or stop token, in the request; else 0 */
        uint8_t parts_flags; /* enum smv_parts_flag */
        uint32_t code;       /* enum smv_code; OK unless reason is ERROR */
        uint32_t prompt_tokens;
        uint32_t cached_tokens;
        uint32_t output_tokens;
        /*
         * Why no more of the prompt was cached: at this position of the prompt, the cached history
         * continues with another token.  0: there is no such position.
         */
        uint32_t diverged_at;
        uint64_t queued_ns;  /* from accepting the request until its first row was planned */
        uint64_t prefill_ns; /* from then until its first token */
        uint64_t decode_ns;  /* from then until its last token */
        uint32_t diverged_cached_token; /* the token of the cached history at diverged_at */
        uint32_t diverged_prompt_token; /* the token of the prompt there */
        uint32_t preemptions;           /* how often it gave up its slot, and continued later */
        uint32_t blocks_lost;           /* ... of these, how often because the pool was full */
        uint32_t recomputed;            /* positions computed again after that */
        uint32_t restored; /* positions that came back from memory outside the pool instead */
        uint32_t reasoning_tokens; /* of output_tokens, if the text was divided: see PARTS */
        uint32_t calls;            /* calls that have begun in the text */
        uint32_t asked;            /* questions to the client: for masks, or for tokens */
        uint32_t late;    /* ... of these, how many had no answer in time, so the daemon went on */
        uint32_t drafted; /* guesses at the next tokens that were computed with the step */
        uint32_t drafts_right; /* ... of these, how many were right */
        uint32_t predicted;    /* of `drafted`: those of the prediction that the request had ... */
        uint32_t predictions_right; /* ... and those of them that were right */
        uint32_t draft_steps;       /* steps with guesses */
        uint32_t no_drafts;         /* enum smv_no_drafts: why there were none */
        /* `drafted` and `drafts_right` of the first token of a guess, of the second, ... */
        uint32_t drafted_by_depth[SMV_DRAFT_TOKENS_MAX];
        uint32_t drafts_right_by_depth[SMV_DRAFT_TOKENS_MAX];
};
/* Every END has at least this many bytes; a reader takes missing later fields as 0. */
#define SMV_RECORD_END_MIN 48u

/* C99 has no assertion of this kind, and C++ has another name for it. */
#if defined(__cplusplus)
#define SMV_ASSERT_SIZE(type, bytes, message) static_assert(sizeof(struct type) == (bytes), message)
#elif __STDC_VERSION__ >= 201112L
#define SMV_ASSERT_SIZE(type, bytes, message)                                                      \
        _Static_assert(sizeof(struct type) == (bytes), message)
#else
#define SMV_ASSERT_SIZE(type, bytes, message) struct type
#endif
SMV_ASSERT_SIZE(smv_ring, SMV_RING_HEADER, "segment D's header is one page");
SMV_ASSERT_SIZE(smv_ring_control, 4096, "segment C is one page");
SMV_ASSERT_SIZE(smv_record, 16, "a record's head is 16 bytes");
SMV_ASSERT_SIZE(smv_record_tokens, 8, "TOKENS is 8 bytes before its ids");
SMV_ASSERT_SIZE(smv_record_logprobs, 8, "LOGPROBS is 8 bytes before its entries");
SMV_ASSERT_SIZE(smv_record_logprob, 8, "an entry is 8 bytes");
SMV_ASSERT_SIZE(smv_record_progress, 12, "PROGRESS is 12 bytes");
SMV_ASSERT_SIZE(smv_record_parts, 8, "PARTS is 8 bytes before its entries");
SMV_ASSERT_SIZE(smv_record_part, 16, "an entry of PARTS is 16 bytes");
SMV_ASSERT_SIZE(smv_record_row, 16, "ROW is 16 bytes before its entries");
SMV_ASSERT_SIZE(smv_record_ask, 8, "ASK is 8 bytes");
SMV_ASSERT_SIZE(smv_answer, 64, "an answer is 64 bytes before its mask");
SMV_ASSERT_SIZE(smv_shown_row, 64, "a row in a slot is 64 bytes before its logits");
SMV_ASSERT_SIZE(smv_record_end, 240, "END is 240 bytes");
#undef SMV_ASSERT_SIZE

#endif
