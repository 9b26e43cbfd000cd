/*
 * A combination: one request that uses some of all features at once, drawn from a number; and what
 * came of it.  It has two halves.  The request says which tokens come.  What happens to the stream
 * (its siblings, forks, a detach) must not change them.
 */
#ifndef TESTS_E2E_COMBINATION_H
#define TESTS_E2E_COMBINATION_H

#include <samovar/client.h>
#include <samovar/protocol.h>
#include <stdbool.h>
#include <stdint.h>

#define COMBINATION_TOKENS 100u /* of an answer, at most */
#define COMBINATION_TEXT   8000u
#define COMBINATION_SHOWN  80000u
#define COMBINATION_N      3u

/* Each member is 0 if the feature is not used. */
struct combination {
        uint32_t number;
        /* The request. */
        uint32_t question, tools, choice, begun, constraint, temperature, cuts, penalties, bans;
        uint32_t logprobs, stops, parts, control_text, min_tokens, max_tokens;
        uint32_t reasoning; /* one more than its limit */
        uint32_t allowed;   /* only some tokens may be drawn */
        uint32_t rows;      /* one more than row_top */
        /* What happens to it: siblings, and after which token. */
        uint32_t siblings, fork_at, detach_at;
        /* The kind of its questions (enum smv_ask).  The answers do not change the draws. */
        uint32_t ask, whole_row;
};

/*
 * Writes a teaspoon into this folder whose template speaks of reasoning, so that the daemon looks
 * for it in answers.  COMBINATION_MODEL names another file of models/: pinch has its tokens and its
 * template, and is eight times as fast.
 */
void combination_write_model(const char *folder, char path[256]);

#define COMBINATION_FEATURES 23u

void combination_draw(uint32_t number, struct combination *ret_combination);
/* Switches one feature off; false: it was not used. */
bool combination_without(struct combination *combination, uint32_t feature);
/* Writes the members that are not 0. */
void combination_describe(const struct combination *combination, char *to, size_t bytes);
/* The request, with `n` streams from this sample on; valid until the next call. */
struct smv_generate combination_request(const struct combination *combination, uint32_t n,
                                        uint32_t sample);

/*
 * The same request of a client that is asked, if the combination says so.  A mask then has the
 * place of the list of allowed tokens.
 */
struct smv_generate combination_asking_request(const struct combination *combination, uint32_t n,
                                               uint32_t sample);
/* Answers the last question of its stream. */
int combination_answer(const struct combination *combination, struct smv_client *client,
                       uint32_t stream);

/* What came of a stream. */
struct outcome {
        bool shows_rows; /* set by the test */
        int refused;     /* enum smv_code; the rest is empty */
        uint32_t tokens[COMBINATION_TOKENS + 1], count;
        char text[COMBINATION_TEXT];
        size_t text_bytes;
        char shown[COMBINATION_SHOWN]; /* parts, logprobs and rows, each as text */
        size_t shown_bytes;
        uint32_t first; /* the position of its first token */
        struct smv_event end;
};

void outcome_add(struct outcome *outcome, const struct smv_event *event);
/*
 * Writes what differs, or returns true.  A fork goes on where its parent was: its tokens and its
 * text are the end of those of the whole.
 */
bool outcome_same(const struct outcome *whole, const struct outcome *other, bool is_fork, char *why,
                  size_t bytes);

#endif
