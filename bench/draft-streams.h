/*
 * Streams for bench-drafts: a client that asks one daemon, and the texts that it predicts.
 *
 * The answers are made of words: tokens with a blank and letters, which are the same tokens again
 * when their text is tokenized.  So a prediction, which is a text, has just the tokens that are
 * wanted.  A failure ends the program.
 */
#ifndef BENCH_DRAFT_STREAMS_H
#define BENCH_DRAFT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/client.h>

#define ANSWER_MAX  512u
#define WORDS_MAX   512u
#define COURSES_MAX 32u

struct answer {
        uint32_t tokens[ANSWER_MAX];
        uint32_t count;
};

/* The times of a group of streams, and the guesses that their ENDs report. */
struct course {
        double seconds; /* all of it */
        double decode;  /* of these, behind the first token of the last stream ... */
        double step;    /* ... and for each token of one stream, until the first END */
        uint32_t tokens, drafted, right, draft_steps;
        bool may_draft; /* the daemon drafts for such streams */
};

/* Ends the program, and the daemon. */
_Noreturn void draft_die(const char *what);

struct smv_client *draft_client(const char *program, const char *const *flags);

/* From now on seconds are those that the daemon's threads ran. */
void draft_count_processor_time(void);

/* Finds the words of the model.  Ends the program if there are too few. */
void words_find(struct smv_client *client);
/* For allowed_tokens. */
const uint32_t *words_tokens(void);
uint32_t words_count(void);
/* A text that must become just these tokens.  Valid until the next call. */
const char *words_text(struct smv_client *client, const struct answer *answer);

/* Random numbers, the same in each run of the program. */
void dice_begin(uint64_t seed);
uint32_t dice_below(uint32_t n);
double dice_uniform(void);

/* `answer`: each token is replaced with the chance `wrong` by another word. */
void answer_spoil(const struct answer *answer, double wrong, struct answer *ret);
/* Every 30 to 50 tokens, 1 to 5 are inserted, removed or replaced. */
void answer_edit(const struct answer *answer, struct answer *ret);

/*
 * Runs one request (of n streams), or several at once.  `ret_answer` gets the tokens of the first
 * stream; NULL: they are not wanted.
 */
void streams_run(struct smv_client *client, const struct smv_generate *options, uint32_t count,
                 struct course *ret_course, struct answer *ret_answer);

#endif
