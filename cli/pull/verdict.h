/* What samovard says about a model: whether it can be served here, and what memory it needs. */
#ifndef CLI_PULL_VERDICT_H
#define CLI_PULL_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

struct verdict {
        bool known; /* false: samovard could not be asked */
        bool served;
        char why[512]; /* if it is not */
        bool measured; /* the numbers below are known */
        uint64_t parameters, context;
        uint64_t weights, activations, drafts;
        uint64_t sequence;  /* KV of one sequence of `context` positions */
        uint64_t available; /* the memory that samovard may have here */
};

/* Asks samovard; a failure has been said, and is a verdict that is not known. */
void verdict_ask(const char *model, struct verdict *ret_verdict);

enum fit { FIT_WHOLE, FIT_SHORTER, FIT_NOT };
/*
 * Whether weights of so many bytes fit with one sequence of full length, a shorter one of
 * *ret_positions, or not at all.
 */
enum fit verdict_fit(const struct verdict *verdict, uint64_t weights, uint64_t *ret_positions);

#endif
