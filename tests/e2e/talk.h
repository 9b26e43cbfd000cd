/*
 * A client in the raw: frames out, replies and records in.
 *
 * It shares nothing with libsamovar or the daemon but the public headers, and believes nothing:
 * every reader here checks that a stream's records are numbered without a gap, that positions
 * follow each other, that nothing comes after an END and that the END's counts are right.
 */
#ifndef TESTS_E2E_TALK_H
#define TESTS_E2E_TALK_H

#include <msgpack.h>
#include <samovar/error.h>
#include <samovar/protocol.h>
#include <samovar/ring.h>

#include "tests/e2e/harness.h"

struct bytes_out {
        uint8_t *at;
        size_t count, size;
};

struct reply {
        uint64_t id, code;
        bool ok, taken;
        char error[32], field[64], message[300]; /* "" if absent */
        uint8_t *body;                           /* `map` points into it */
        msgpack_unpacked map;
};

struct told {
        uint32_t token;
        float logprob;
};

struct stream {
        uint32_t id;
        uint32_t *tokens;
        size_t token_count;
        char *text;
        size_t text_bytes;
        uint32_t *text_ends; /* by token: how much text had come when it had */
        uint32_t sequence;   /* of its next record */
        bool ended, positioned;
        uint32_t position; /* of its next token */
        struct smv_record_end end;
        struct told *told; /* token by token, if they were asked for */
        uint32_t told_each;
        size_t told_count; /* of tokens; one more than token_count: its TOKENS come next */
};

/* How records come: in frames, or through a ring, of which news comes by one bell or another. */
enum talk_transport { TALK_SOCKET, TALK_KICK, TALK_FUTEX };

struct talk {
        int fd;
        enum talk_transport transport;
        struct talk_ring *ring; /* NULL: records come in frames */
        bool leaves_ring;       /* to a test that reads it in its own way */
        bool bells_must_ring;   /* no send() of the daemon's fails by design */
        bool passed;            /* `fds` have come, and are not mapped yet */
        int fds[2];
        bool in_frame; /* one is half sent: nothing may come between */
        bool hung_up;
        uint32_t last_id;
        uint8_t *in;
        size_t in_count, in_size;
        struct reply **replies;
        size_t reply_count;
        struct stream **streams; /* in the order of their first records */
        size_t stream_count;
        size_t doorbells;
};

struct talk *talk_take(int fd);
struct talk *talk_open(const struct house *house);  /* connected, nothing said */
struct talk *talk_greet(const struct house *house); /* hello said and answered */
struct talk *talk_close(struct talk *talk);         /* takes NULL */
int connect_raw(const struct house *house);         /* a socket, or -1; asserts nothing */

/*
 * A greeting asks for what SMV_TEST_TRANSPORT says, socket, ring (with kicks) or futex, so that
 * the same stories are told over all of them; unset, it is the socket.
 */
enum talk_transport talk_transport(void);
struct talk *talk_greet_by(const struct house *house, enum talk_transport transport);
struct reply *talk_hello(struct talk *talk, enum talk_transport transport);

/*
 * One frame of fields "op=s id=u": s text, t text and size_t, b binary and size_t, u unsigned,
 * q uint64_t, i int, f double, y bool, n nil, I ids and size_t, S texts and size_t, x raw msgpack
 * and size_t.  Appended to `to`.
 */
void frame_vput(struct bytes_out *to, const char *format, va_list values);
void frame_put(struct bytes_out *to, const char *format, ...);
void bytes_put(struct bytes_out *to, const void *bytes, size_t count);

/* All of it, reading meanwhile what comes; false once the daemon has hung up. */
bool talk_send(struct talk *talk, const void *bytes, size_t count);
bool talk_say(struct talk *talk, const char *format, ...);
/* Reads what is there, waiting for at most so long; false: nothing came. */
bool talk_turn(struct talk *talk, int timeout_ms);
/* The same with many. */
void talks_turn(struct talk *const *talks, size_t count, int timeout_ms);

/* Takes the record at `at`, of at most `count` bytes: how many it took. */
size_t talk_record(struct talk *talk, const uint8_t *at, size_t count);

/* Waits for the reply to this id that was not taken yet. */
struct reply *talk_reply(struct talk *talk, uint64_t id);
/* Asks with an id of its own; waits for the reply. */
struct reply *talk_ask(struct talk *talk, const char *format, ...);
/* Waits for the stream's END. */
struct stream *talk_end(struct talk *talk, uint32_t id);
struct stream *talk_stream(const struct talk *talk, uint32_t id); /* its latest; NULL: no record */
/* Waits until the daemon has hung up, having said all it had to say. */
void talk_hangup(struct talk *talk);
/* Is there a reply to this id now? */
struct reply *talk_replied(const struct talk *talk, uint64_t id);

/* A value in a reply by its path, "status.blocks.held"; NULL: there is none. */
const msgpack_object *reply_at(const struct reply *reply, const char *path);
uint64_t reply_uint(const struct reply *reply, const char *path); /* fails if it is none */
/* Of a status: do others than the first in `charges` have more there than what is cached? */
bool reply_shows_others(const struct reply *reply);
/* Asks for status; one number of it. */
uint64_t talk_status(struct talk *talk, const char *path);
/* The same by a connection of its own. */
uint64_t house_status(const struct house *house, const char *path);

struct want {
        const char *prompt;
        size_t prompt_bytes; /* 0: up to its NUL */
        bool as_ids;         /* the same prompt, but as ids */
        uint32_t max_tokens; /* 0: not said */
        double temperature;
        uint32_t top_k;
        double top_p, min_p; /* 0: not said */
        uint64_t seed;
        const char *stop; /* NULL: none */
        bool ignore_eos;
        const char *class; /* NULL: not said */
        uint32_t told; /* logprobs of so many tokens, the one that comes among them; 0: not said */
};

/* With so much told a token takes 320 bytes: LONG_TOLD of them, each stream alone, are more than the
 * smallest ring and a socket take without a reader. */
#define TOLD_MOST 33u
#define LONG_TOLD 1500u

/* Sends and does not wait: the id. */
uint32_t talk_generate(struct talk *talk, const struct want *want);
/* Sends, waits for the end, which the caller may keep as long as the talk. */
struct stream *talk_whole(struct talk *talk, const struct want *want);

/* Ids, text and END are the same, times aside. */
void assert_same_stream(const struct stream *a, const struct stream *b);
/* a's ids and text are the beginning of b's. */
void assert_prefix_stream(const struct stream *a, const struct stream *b);
struct stream *stream_copy(const struct stream *stream);
struct stream *stream_free(struct stream *stream);

#endif
