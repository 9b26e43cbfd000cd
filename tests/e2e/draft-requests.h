/*
 * Random requests whose answers repeat, more or less, so that a daemon can guess their tokens; and
 * all that a client sees of an answer.
 */
#ifndef TESTS_E2E_DRAFT_REQUESTS_H
#define TESTS_E2E_DRAFT_REQUESTS_H

#include <samovar/client.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/daemon-fixture.h"

#define DRAFT_CONTEXT "256"
#define DRAFT_STREAMS 3u /* of one request, at most */

/* A model: its context is DRAFT_CONTEXT, and its prompts are made of tokens from `least` on. */
struct draft_model {
        char path[256]; /* empty: the toy model */
        uint32_t least, tokens;
};

/* The stop of a request, which its number does not say: it is chosen from the answer. */
struct draft_stop {
        char text[16];  /* "": none */
        uint32_t token; /* UINT32_MAX: none */
};

/* The request is drawn from this number; valid until the next call. */
struct smv_generate draft_request(const struct draft_model *model, uint32_t number,
                                  const struct draft_stop *stop);

struct answer {
        int refused; /* enum smv_code */
        uint32_t *tokens, count, max;
        /* Text, and the bytes of log probabilities and rows. */
        char *text, *numbers;
        size_t text_bytes, text_max, number_bytes, number_max;
        struct smv_event end;
};

void answer_add(struct answer *answer, const struct smv_event *event);
void answer_clear(struct answer *answer);
/* Fails, naming `what` and the number, unless both are the same but for times. */
void assert_same_answer(const struct answer *a, const struct answer *b, const char *what,
                        uint32_t number);
/* `a` was cut: what came of it is the beginning of b. */
void assert_begins_answer(const struct answer *a, const struct answer *b, const char *what,
                          uint32_t number);

/* Reads events of one stream up to its END, or until it has `most` tokens. */
void answer_read(struct smv_client *client, struct answer *answer, uint32_t most);
/* The whole answer of one stream: of `ask` with n = 1 and this sample index. */
struct answer answer_alone(struct smv_client *client, const struct smv_generate *ask,
                           uint32_t sample);

/* Of streams that run together: each has its answer, up to its END. */
struct cut {
        uint32_t number, stream, most;
        bool cancelled;
        struct answer answer;
};
/* Cancels each when it has `most` tokens; it brings some more.  Returns when all have ended so. */
void run_cuts(struct smv_client *client, struct cut *cuts, uint32_t count);

struct smv_client *draft_connect(const struct daemon_fixture *fixture, enum smv_transport transport,
                                 size_t ring_bytes);

#endif
