/*
 * Deals the spare rows of a step to drafts, where they are likeliest to bring a token, as long as
 * that is worth their time.
 *
 * A step of n rows takes T(n) and brings E tokens on average.  The survival of a token is the
 * chance that it and all before it are right.  A row adds it to E, and rows of a draft are taken in
 * order.  The likeliest row is taken first, and the number of rows is that with the largest E / T.
 * T need not be smooth: one row may be dearer than two.  So up to three rows more than the best
 * number are looked at.  Pure.
 */
#ifndef DAEMON_DRAFT_DEAL_H
#define DAEMON_DRAFT_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/draft/drafter.h"
#include "daemon/draft/step-costs.h"

struct deal {
        const struct draft *draft;
        uint32_t most; /* tokens of it that may have rows */
        uint32_t rows; /* out: how many have */
};

/* Are one to three more rows worth their time, if they are sure to bring tokens? */
bool deal_pays(const struct step_costs *costs, uint32_t rows, uint32_t tokens);

/*
 * `rows` and `tokens`: what the step has without drafts.  At most `spare` rows are dealt.  Returns
 * how many.
 */
uint32_t deal_rows(const struct step_costs *costs, uint32_t rows, uint32_t tokens, uint32_t spare,
                   struct deal *deals, uint32_t count);

/*
 * How many tokens of a draft, at most `most`, are worth their rows, if it is the only one and each
 * costs `extra_ns` more.  No draft: all tokens are sure.
 */
uint32_t deal_worth(const struct step_costs *costs, uint32_t rows, uint32_t tokens, float extra_ns,
                    const struct draft *draft, uint32_t most);

#endif
