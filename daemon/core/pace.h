/*
 * Pace: how many rows of prompts a step may have, so that decodes are not held up.
 *
 * Whoever reads a stream feels the longest gap between two of its tokens, and a gap
 * is a step.  A step of decodes alone takes some time whatever we do; rows of
 * prompts beside them make it longer, each by about the same.  Both are learnt
 * from the steps that were, a quarter of the way with each, or less where few rows
 * tell: what a step of so many decodes takes alone (a number for each power of two),
 * and what a row of a prompt adds.  That grows slowly along a prompt, for attention
 * looks back on all of it.
 *
 * Where prompts never cease, no step is one of decodes alone.  So each sixteenth
 * step that has both has one row of a prompt only, which is as good as none.
 *
 * The gap that is kept is gap_ns, or twice what a step takes alone, if that is more:
 * less than a row would fit in else.  What was never seen is guessed low, so the
 * first chunk is small.  Nothing here knows the clock.
 */
#ifndef DAEMON_CORE_PACE_H
#define DAEMON_CORE_PACE_H

#include <stdint.h>

#define PACE_SIZES 16u

struct pace {
        uint64_t gap_ns;            /* 0: no bound */
        uint64_t alone[PACE_SIZES]; /* ns of a step of 2^i decodes and more; 0: not seen yet */
        uint64_t row;               /* ns that a row of a prompt adds; 0: not seen yet */
        uint32_t mixed;             /* steps of both, since one told of decodes alone */
};

/* A step that had these rows took so long. */
void pace_note(struct pace *pace, uint32_t decodes, uint32_t prompts, uint64_t ns);

/* Rows of prompts beside so many decodes: 1 to most. */
uint32_t pace_rows(const struct pace *pace, uint32_t decodes, uint32_t most);

#endif
