/*
 * One encoding of a text: its options, and how its work is counted and cancelled.
 */
#ifndef DAEMON_TEXT_ENCODING_H
#define DAEMON_TEXT_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_part {
        size_t begin, end;
};
static const struct text_part text_whole = { 0, SIZE_MAX };

/* Options of an encoding, and a measure of its work. */
struct encoding {
        /* The spelling of a control token is found if it lies wholly in one of these parts. */
        const struct text_part *controls; /* in order, apart, none empty */
        size_t control_count;
        bool (*cancelled)(void *arg); /* called now and then; true ends the encoding; or NULL */
        void *arg;
        uint64_t steps;  /* out: grows by the work done, for callers that check it is bounded */
        uint64_t looked; /* private: `steps` when `cancelled` was last called */
};

/* For the modules of the tokenizer: calls `cancelled` every 65536 steps; true: cancelled. */
static inline bool encoding_cancelled(struct encoding *how)
{
        if (how->steps - how->looked < 1u << 16)
                return false;
        how->looked = how->steps;
        return how->cancelled && how->cancelled(how->arg);
}

#endif
