/*
 * Pace: how many rows of prompts a step may have, so that decodes are not held up.
 *
 * Whoever reads a stream feels the longest gap between two of its tokens, and a gap
 * is a step.  So what is kept is no mean, but what 99 steps of 100 take: with prompts
 * beside them, decodes take gap_ns at most, or twice what they take alone, if that is
 * more: less than a row would fit in else.  A 16th of it is left for what a reader waits for
 * between steps.  A step is reckoned as
 *
 *      alone + rows of prompts * (row + far * position / PACE_FAR) + slack
 *
 * all learnt from the steps that were.  What was never seen is guessed high, so the
 * first chunks are small.
 *
 * *alone*, of so many decodes (a number for each power of two), and *row* go a quarter
 * of the way with each step, or less where few rows tell; a step that took more than half
 * as long again as was known is taken for that.  Where prompts never cease, no step is one of decodes
 * alone.  So each sixteenth step that has both has one row of a prompt only, which tells as well.
 *
 * *far*: attention looks back, so a row costs more the further on it stands; at the end of
 * a long prompt it may be five times as much.  One step tells one number, and two are
 * sought: what is wrong is put right in both, in proportion to how much each weighs in it.
 * Rows near the beginning teach the one, rows far from it the other.
 *
 * *slack*: how much longer a step may take than was reckoned.  A step that takes longer still
 * raises it at once by a 16th of the gap, however long it took; each that does not lowers it
 * by a 99th of that.  So it is at rest where one step of a hundred is late, whatever made it
 * late, and a single slow one is forgotten after 99.  It takes half of what rows might have and
 * no more: who else uses the machine uses it also where there are fewer rows, and prompts are
 * to be read all the same.
 *
 * It can not know of work on the machine before it has hit a step, and of rows of several
 * prompts it takes all for as far on as the furthest.  Nothing here knows the clock.
 */
#ifndef DAEMON_CORE_PACE_H
#define DAEMON_CORE_PACE_H

#include <stdint.h>

#define PACE_SIZES 16u
#define PACE_FAR   1024u /* positions */

struct pace {
        uint64_t gap_ns;            /* 0: no bound */
        uint64_t alone[PACE_SIZES]; /* ns of a step of 2^i decodes and more; 0: not seen yet */
        uint64_t row, far;          /* ns that a row of a prompt adds; row is 0: not seen yet */
        uint64_t slack;             /* ns */
        uint32_t mixed;             /* steps of both, since one told of decodes alone */
};

/* What a step had. */
struct pace_step {
        uint32_t decodes, prompts; /* rows */
        uint64_t before;           /* the sum of the positions of those of prompts */
};

void pace_init(struct pace *pace, uint64_t gap_ns);

/* This step took so long. */
void pace_note(struct pace *pace, const struct pace_step *step, uint64_t ns);

/* Rows of prompts from this position on, beside so many decodes: 1 to most. */
uint32_t pace_rows(const struct pace *pace, uint32_t decodes, uint32_t position, uint32_t most);

#endif
