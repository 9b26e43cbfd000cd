/*
 * The notes that a client takes of a stream, in memory that outlives the client; and the steps that
 * a client takes to have a stream kept.
 */
#ifndef TESTS_E2E_NOTES_H
#define TESTS_E2E_NOTES_H

#include <samovar/client.h>
#include <stdatomic.h>

#include "tests/e2e/honest.h"

#define RECORDS_MAX 400u
#define TEXT_MAX    64u
#define KEEP_MS     20000u

#define MANY "--ring-bytes", "64K", "--uid-kept", "4096", "--kept", "4096", "--uid-kept-bytes", "1G"

struct note {
        uint32_t token_count, tokens[4], text_bytes;
        char text[TEXT_MAX];
};

struct notes {
        _Atomic uint64_t kept;  /* 0: the daemon has not told the number yet */
        _Atomic uint32_t count; /* records noted, the END included */
        _Atomic bool ended;
        bool wrong; /* a record differs from the one that was noted before */
        struct smv_event end;
        struct note at[RECORDS_MAX];
};

struct notes *notes_new(void);
struct notes *notes_free(struct notes *notes);
/* Asserts nothing, because it also runs in children. */
void notes_take(struct notes *notes, const struct smv_event *event);
/* Reads at most `most` events; true: the END was one of them. */
bool notes_read(struct smv_client *client, struct notes *notes, uint32_t most);
/* Reads a whole stream at once; the stream is not kept. */
void notes_read_whole(struct smv_client *client, const struct smv_generate *ask,
                      struct notes *notes);
void notes_assert_same(const struct notes *a, const struct notes *b);

/* A house with a fast model, so that there is time for many streams. */
#define QUICK(house, ...)                                                                          \
        HOUSE(house, FAST, "--threads", "1", "--model", quick_model(house, "2048"), __VA_ARGS__)

/* The same with streams that do not end; the records of some of them may take 1 GiB. */
#define QUICK_ENDLESS(house, ...)                                                                  \
        ENDLESS_HOUSE(house, FAST, "--threads", "1", "--uid-kept-bytes", "1G", __VA_ARGS__)

struct smv_client *kept_meet(const struct house *house, enum smv_doorbell doorbell); /* or NULL */
struct smv_client *kept_connect(const struct house *house);
struct smv_generate kept_draw(void); /* any request, drawn at random */
uint64_t kept_begin(struct smv_client *client, const struct smv_generate *ask);
void kept_drop(struct smv_client *client, uint64_t kept);
/* Asserts that r is a refusal with this code and these words. */
void kept_refused(struct smv_client *client, int r, enum smv_code code, const char *said);
void kept_wait_status(const struct house *house, const char *path, uint64_t value);

#endif
