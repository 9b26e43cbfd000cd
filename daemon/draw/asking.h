/*
 * Asking: a request whose client is asked before each token, for a mask or for the token.
 *
 * The client answers in a slot of shared memory (include/samovar/ring.h), where it may also find
 * the whole row of logits.  Nothing there is trusted: an answer is copied once and then checked.
 *
 * The loop makes it at admission, and gives it a slot when the request begins.  From SUBMIT to
 * RETIRED it is the engine's.
 */
#ifndef DAEMON_DRAW_ASKING_H
#define DAEMON_DRAW_ASKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/error.h>
#include <samovar/ring.h>

struct asking {
        /* As asked for. */
        enum smv_ask kind;
        bool whole_row;   /* the client sees all logits of each row */
        bool late_draws;  /* without an answer in time the daemon draws; else the stream ends */
        uint64_t wait_ns; /* for an answer */
        uint32_t vocab;

        /* Where the client answers and reads; set when the request begins. */
        uint32_t slot, ticket;
        const struct smv_answer *answer;
        struct smv_shown_row *shown; /* if whole_row */
        uint32_t row_copy;           /* the number of the backend's copy, if whole_row */

        /* Engine only. */
        bool open; /* a question has no answer yet */
        uint32_t position;
        uint64_t until_ns;
        uint32_t drawn;       /* with SMV_ASK_TOKEN: what the daemon has drawn */
        uint32_t asked, late; /* late: how often the daemon went on without an answer */
        uint32_t *mask; /* with SMV_ASK_MASK: of the next token; all bits behind vocab are 0 */
};

/* NULL: out of memory. */
struct asking *asking_new(enum smv_ask kind, uint32_t vocab);
struct asking *asking_free(struct asking *asking); /* takes NULL */
size_t asking_bytes(const struct asking *asking);  /* takes NULL: 0 */

/* Opens the question for the token at this position. */
void asking_open(struct asking *asking, uint32_t position, uint64_t now_ns);

/* Whether the client has answered the open question. */
bool asking_is_answered(const struct asking *asking);

/*
 * Whether the client has answered the open question.  If so, the question is closed; the mask is
 * copied, or *ret_token is the token, as the client has written it.
 */
bool asking_hear(struct asking *asking, uint32_t *ret_token);

/* Closes the question without an answer.  With SMV_ASK_MASK, the mask then allows all tokens. */
void asking_give_up(struct asking *asking);

/* The mask keeps only tokens that this one has, too. */
void asking_narrow(struct asking *asking, const uint32_t *mask);

/* Copies the row of the token at this position to the slot, where the client reads it. */
void asking_show(struct asking *asking, uint32_t position, const float *logits);

#endif
