/*
 * A client that takes part in the draws of its streams: it answers each question by the function
 * of that stream, and keeps what has come.  It also checks what holds for each such stream: where
 * questions and rows stand among the tokens, and what END counts.
 */
#ifndef TESTS_E2E_QUESTION_CLIENT_H
#define TESTS_E2E_QUESTION_CLIENT_H

#include <samovar/client.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/honest-client.h"

#define MASK_WORDS_MOST 128u /* for vocabularies of up to 4096 tokens */

/* The ids of the toy model are the bytes; then come these.  It puts bos before a text. */
#define TOY_BOS   256u
#define TOY_EOS   257u
#define TOY_VOCAB 258u

#define QUESTION_KINDS 2u
extern const enum smv_ask question_kinds[QUESTION_KINDS];

/* A row that has come.  Its entries, and its logits if there are any, are copies. */
struct kept_row {
        uint32_t position;
        float log_sum;
        struct smv_logprob *entries;
        size_t top_count;
        float *logits; /* NULL: the row was not whole */
        size_t logit_count;
};

struct asked;
typedef void answer_fn(struct smv_client *client, struct asked *asked,
                       const struct smv_event *event);

struct asked {
        /* Set by the test.  `answer` NULL: all tokens are legal, or the token is as drawn. */
        answer_fn *answer;
        const void *arg;
        bool keeps_rows;
        /* What came of the stream. */
        uint32_t stream;
        uint32_t first; /* position of its first token; 0: not known yet, as of a fork */
        enum smv_ask ask;
        uint32_t *tokens, token_count;
        char *text;
        size_t text_bytes;
        struct kept_row *rows; /* one for each token */
        uint32_t row_count;
        struct smv_logprob *logprobs; /* `logprobs_each` for each token, if they were asked for */
        size_t logprob_count;
        uint32_t sequence;    /* of the last record */
        uint32_t score_count; /* tokens of the prompt whose logprobs have come */
        uint32_t questions;
        bool is_open; /* a question has come, and its token has not */
        bool ended;
        struct smv_event end;
};

/* Connects over a ring; slots 0: the client can be asked by no stream. */
struct smv_client *question_connect(const struct daemon_fixture *fixture, uint32_t slots,
                                    bool whole_rows);

/* A daemon with the toy model, and a client that has two slots with rows. */
struct question_rig {
        struct daemon_fixture *fixture;
        struct smv_client *client;
};

struct question_rig question_rig_start(void **state);
void question_rig_stop(struct question_rig *rig);

/* Begins a stream, whose `answer`, `arg` and `keeps_rows` are set. */
void asked_begin(struct smv_client *client, const struct smv_generate *how, struct asked *asked);
/*
 * Takes one event of one of these streams, and answers it if it is a question.  Returns the stream;
 * NULL: no event has come within timeout_ms.
 */
struct asked *asked_hear_one(struct smv_client *client, struct asked *asked, size_t count,
                             int timeout_ms);
/* Reads all of them to their ENDs. */
void asked_hear(struct smv_client *client, struct asked *asked, size_t count);
/* Begins it and reads it to its END. */
void asked_run(struct smv_client *client, const struct smv_generate *how, struct asked *asked);
/* Frees what came; what the test has set stays. */
void asked_free(struct asked *asked);

/* Tokens, text and END are the same; END apart from times and counts of questions. */
void assert_same_answer(const struct asked *a, const struct asked *b);
/* The same rows; b's may have fewer entries, which are then the first ones of a's. */
void assert_same_rows(const struct asked *a, const struct asked *b);

/* The vocabulary of the model, and the numbers of its masks. */
uint32_t question_vocab(const struct smv_client *client);
static inline size_t mask_words(uint32_t vocab)
{
        return (vocab + 31) / 32;
}
void mask_set(uint32_t *mask, uint32_t token);

/* Answers. */
answer_fn answer_nothing;    /* leaves the question open */
answer_fn answer_all_tokens; /* with a mask of ones, also behind the vocabulary */
answer_fn answer_fixed;      /* with the mask that `arg` points at */
answer_fn answer_list;       /* with the tokens of the list that `arg` points at */
answer_fn answer_likeliest;  /* with the token that the whole row says */

/*
 * A refusal with this code, about this field ("": about none).  SMV_OK: the library refuses it, not
 * the daemon.
 */
void assert_refused(struct smv_client *client, int r, enum smv_code code, const char *field);

#endif
