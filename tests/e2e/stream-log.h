/*
 * A log of the records that a client has read from a stream, in memory that outlives the client;
 * and the steps of a client that works with resumable streams.
 */
#ifndef TESTS_E2E_STREAM_LOG_H
#define TESTS_E2E_STREAM_LOG_H

#include <samovar/client.h>
#include <stdatomic.h>

#include "tests/e2e/honest-client.h"

#define RECORDS_MAX 400u
#define TEXT_MAX    64u
#define KEEP_MS     20000u

#define MANY_RESUMABLE                                                                             \
        "--ring-bytes", "64K", "--uid-resumable", "4096", "--resumable", "4096",                   \
                "--uid-resumable-bytes", "1G"

struct stream_log_entry {
        uint32_t token_count, tokens[4], text_bytes;
        char text[TEXT_MAX];
};

struct stream_log {
        _Atomic uint64_t resume_id; /* 0: the daemon has not sent it yet */
        _Atomic uint32_t count;     /* records in the log, the END included */
        _Atomic bool ended;
        bool wrong; /* a record differs from the one in the log */
        struct smv_event end;
        struct stream_log_entry at[RECORDS_MAX];
};

struct stream_log *stream_log_new(void);
struct stream_log *stream_log_free(struct stream_log *log);
/* Asserts nothing, because it also runs in children. */
void stream_log_add(struct stream_log *log, const struct smv_event *event);
/* Reads at most `most` events; true: the END was one of them. */
bool stream_log_read(struct smv_client *client, struct stream_log *log, uint32_t most);
/* Reads a whole stream at once; the stream is not resumable. */
void stream_log_read_whole(struct smv_client *client, const struct smv_generate *ask,
                           struct stream_log *log);
void assert_same_log(const struct stream_log *a, const struct stream_log *b);

/* Starts a daemon with a fast model, so that there is time for many streams. */
#define START_QUICK_FOR_RESUMING(fixture, ...)                                                     \
        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--model",                          \
                     make_quick_model(fixture, "2048"), __VA_ARGS__)

/* The same with streams that do not end; the records of some of them may take 1 GiB. */
#define START_ENDLESS_FOR_RESUMING(fixture, ...)                                                   \
        START_ENDLESS_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--uid-resumable-bytes",    \
                             "1G", __VA_ARGS__)

struct smv_client *resumable_try_connect(const struct daemon_fixture *fixture,
                                         enum smv_doorbell doorbell); /* or NULL */
struct smv_client *resumable_connect(const struct daemon_fixture *fixture);
struct smv_generate resumable_draw(void); /* any request, drawn at random */
uint64_t resumable_stream_begin(struct smv_client *client, const struct smv_generate *ask);
void resumable_stream_drop(struct smv_client *client, uint64_t resume_id);
/* Asserts that r is a refusal with this code and these words. */
void assert_client_refused(struct smv_client *client, int r, enum smv_code code, const char *said);

#endif
