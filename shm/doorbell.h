/*
 * The doorbell: when a reader sleeps, and when it has to be woken.
 *
 * A sleeping reader says up to which position it can do without news
 * (wake_position in segment C); whoever wakes it rings when the tail has gone
 * past that, and not before.  So a burst costs one wake-up, a reader that wants
 * its tokens by the hundred costs one for each hundred, and one that is awake
 * (SMV_WAKE_NEVER) costs none.  No flag says "asleep": positions only grow, so
 * a ring that is due is due once.
 *
 * Nobody may sleep through news.  The reader stores its wish and then looks at
 * the tail again; the waker, behind the tail's store, looks at the wish.  Each
 * side stores its own word and then loads the other's, with a full fence
 * between (release and acquire do not order a store before a later load): at
 * least one of them sees the other.
 *
 * The reader is not trusted: its wish is loaded once and compared, nothing more,
 * and the worst it can do is to be woken once for each publishing of its own
 * streams, or never.
 *
 * How a bell is rung is its owner's matter (include/samovar/ring.h has the kinds).
 */
#ifndef SHM_DOORBELL_H
#define SHM_DOORBELL_H

#include <stdbool.h>

#include "shm/ring.h"

/* The waker's half.  One thread. */
struct doorbell {
        const struct smv_ring_control *control;
        uint64_t seen; /* the tail when it last looked */
};

/* What the writer has shown, in its own words: none of it is read back from shared memory. */
struct doorbell_news {
        uint64_t tail;
        uint64_t end;  /* behind the last END: nobody sleeps through one, whatever it wished */
        uint64_t brim; /* nor with so much to read that the writer may soon have to wait */
};

/* After the writer has published.  True: ring. */
bool doorbell_is_due(struct doorbell *bell, const struct doorbell_news *news);

/* A quarter of the ring beyond the newest head we know. */
uint64_t doorbell_brim(const struct ring_writer *writer);

/*
 * The reader's half, when ring_next() has said RING_E_EMPTY and all was released.
 * `bytes`: how many may come before it wants to be woken; 0: the next record.  True: it
 * may sleep.  False: something is there.  doorbell_awake() after the sleep, either way.
 */
bool doorbell_may_sleep(struct ring_reader *reader, uint64_t bytes);
void doorbell_awake(struct ring_reader *reader);

/* For a futex: the word to wait on, and what it holds while there is nothing new. */
const uint32_t *doorbell_word(const struct ring_reader *reader, uint32_t *ret_value);

#endif
