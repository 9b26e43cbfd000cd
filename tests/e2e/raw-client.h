/*
 * A raw client: it sends frames and reads replies and records.
 *
 * It shares nothing with libsamovar or the daemon but the public headers, and trusts nothing. Every
 * reader here checks that a stream's records are numbered without a gap, that positions follow each
 * other, that nothing comes after an END and that the END's counts are right.
 */
#ifndef TESTS_E2E_RAW_CLIENT_H
#define TESTS_E2E_RAW_CLIENT_H

#include <msgpack.h>
#include <samovar/error.h>
#include <samovar/protocol.h>
#include <samovar/ring.h>

#include "tests/e2e/daemon-fixture.h"

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

struct token_logprob {
        uint32_t token;
        float logprob;
};

struct stream {
        uint32_t id;
        uint32_t *tokens;
        size_t token_count;
        char *text;
        size_t text_bytes;
        uint32_t *text_ends; /* by token: how many bytes of text had come when the token had */
        uint32_t sequence;   /* of the next record */
        bool ended, positioned;
        uint32_t position; /* of the next token */
        struct smv_record_end end;
        struct token_logprob *logprobs; /* log-probabilities by token, if they were asked for */
        uint32_t logprobs_each;
        /* of tokens; it may be one more than token_count: the TOKENS record comes next */
        size_t logprob_count;
        /* PROMPT_LOGPROBS: of the tokens of the prompt, from the second on */
        struct token_logprob *scores;
        uint32_t scores_each;
        size_t score_count;
        /* PROGRESS records: how many there were, and the last one */
        size_t progress_count;
        struct smv_record_progress progress;
        /* The parts of the text, if the request asked for them; those of one kind are one. */
        struct smv_record_part *parts;
        size_t part_count;
        size_t parted_bytes; /* of text; more than text_bytes: the TOKENS record comes next */
        bool parted;         /* a PARTS record has come, and its TOKENS record has not */
        /* ROW and ASK: how many there were, and the last ones */
        size_t row_count, ask_count;
        struct smv_record_row row;
        struct token_logprob row_drawn;
        struct smv_record_ask ask;
};

/* How records come: in frames, or through a ring whose news is signalled by one of two bells. */
enum raw_client_transport { RAW_CLIENT_SOCKET, RAW_CLIENT_KICK, RAW_CLIENT_FUTEX };

struct raw_client {
        int fd;
        enum raw_client_transport transport;
        struct raw_client_ring *ring; /* NULL: records come in frames */
        bool leaves_ring;             /* leaves the ring to a test that reads it in its own way */
        bool bells_must_ring;         /* no send() of the daemon fails by design */
        uint32_t passed; /* so many descriptors have come in `fds`, and are not mapped yet */
        int fds[4];
        bool in_frame; /* a frame is half sent: nothing else may be sent in between */
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

struct raw_client *raw_client_adopt(int fd);
struct raw_client *
raw_client_connect(const struct daemon_fixture *fixture); /* connected, nothing sent */
struct raw_client *
raw_client_greet(const struct daemon_fixture *fixture);         /* hello sent and answered */
struct raw_client *raw_client_close(struct raw_client *client); /* NULL is fine */
int fixture_connect(const struct daemon_fixture *fixture); /* a socket, or -1; asserts nothing */

/*
 * A greeting asks for the transport in SMV_TEST_TRANSPORT: socket, ring (with kicks) or futex, so
 * that the same tests run over all of them.  If it is unset, the transport is the socket.
 */
enum raw_client_transport raw_client_transport(void);
struct raw_client *raw_client_greet_over(const struct daemon_fixture *fixture,
                                         enum raw_client_transport transport);
struct reply *raw_client_hello(struct raw_client *client, enum raw_client_transport transport);

/*
 * Appends to `to` one frame of fields "op=s id=u": s text, t text and size_t, b binary and size_t,
 * u unsigned, q uint64_t, i int, f double, y bool, n nil, I ids and size_t, S texts and size_t, x
 * raw msgpack and size_t.
 */
void frame_vput(struct bytes_out *to, const char *format, va_list values);
void frame_put(struct bytes_out *to, const char *format, ...);
void bytes_put(struct bytes_out *to, const void *bytes, size_t count);

/* Sends all bytes and meanwhile reads whatever comes; false once the daemon has hung up. */
bool raw_client_send(struct raw_client *client, const void *bytes, size_t count);
bool raw_client_send_frame(struct raw_client *client, const char *format, ...);
/* Reads the bytes that are there, waiting at most `timeout_ms`; false: nothing came. */
bool raw_client_poll(struct raw_client *client, int timeout_ms);
/* The same for several clients. */
void raw_clients_poll(struct raw_client *const *clients, size_t count, int timeout_ms);

/* Takes the record at `at`, of at most `count` bytes; returns how many bytes it took. */
size_t raw_client_take_record(struct raw_client *client, const uint8_t *at, size_t count);

/* Waits for the reply to this id that was not taken yet. */
struct reply *raw_client_await_reply(struct raw_client *client, uint64_t id);
/* Sends a request with an id of its own, and waits for the reply. */
struct reply *raw_client_call(struct raw_client *client, const char *format, ...);
/* Waits for the stream's END. */
struct stream *raw_client_await_end(struct raw_client *client, uint32_t id);
/* its latest stream; NULL: no record */
struct stream *raw_client_stream(const struct raw_client *client, uint32_t id);
/* Waits until the daemon has hung up, after it sent everything that it had to send. */
void raw_client_await_hangup(struct raw_client *client);
/* The reply to this id, if it has come already; NULL otherwise. */
struct reply *raw_client_find_reply(const struct raw_client *client, uint64_t id);

/* A value in a reply by its path, "status.blocks.in_use"; NULL: there is none. */
const msgpack_object *reply_at(const struct reply *reply, const char *path);
uint64_t reply_uint(const struct reply *reply, const char *path); /* fails if there is none */
/* Of a status reply: do users other than the first in `charges` show more than what is cached? */
bool reply_shows_others(const struct reply *reply);
/* Asks for status; returns one number of it. */
uint64_t raw_client_status(struct raw_client *client, const char *path);
/* The same over a connection of its own. */
uint64_t fixture_status(const struct daemon_fixture *fixture, const char *path);
/* Waits until one number of status has this value. */
void fixture_await_status(const struct daemon_fixture *fixture, const char *path, uint64_t value);

struct want {
        const char *prompt;
        size_t prompt_bytes; /* 0: up to its NUL */
        bool as_ids;         /* the same prompt, but as ids */
        uint32_t max_tokens; /* 0: not sent */
        double temperature;
        uint32_t top_k;
        double top_p, min_p; /* 0: not sent */
        uint64_t seed;
        const char *stop; /* NULL: none */
        bool ignore_eos;
        const char *priority; /* NULL: not sent */
        /* log-probabilities of this many tokens, the chosen token included; 0: not sent */
        uint32_t logprobs;
        bool penalised; /* with penalties and bans of all kinds */
};

/* With LOGPROBS_MOST log-probabilities a token takes 320 bytes.  LONG_LOGPROBS tokens of one stream
 * are more than the smallest ring and a socket hold together without a reader. */
#define LOGPROBS_MOST 33u
#define LONG_LOGPROBS 1500u

/* Sends without waiting; returns the id. */
uint32_t raw_client_generate(struct raw_client *client, const struct want *want);
/* Sends and waits for the end.  The caller may use the stream as long as the client exists. */
struct stream *raw_client_complete(struct raw_client *client, const struct want *want);

/* Ids, text and END are the same, apart from times. */
void assert_same_stream(const struct stream *a, const struct stream *b);
/* The ids and text of a are the beginning of b's. */
void assert_prefix_stream(const struct stream *a, const struct stream *b);
struct stream *stream_copy(const struct stream *stream);
struct stream *stream_free(struct stream *stream);

#endif
