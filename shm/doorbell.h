/*
 * The doorbell: decides when a reader may sleep and when the writer must wake it.
 *
 * A sleeping reader stores into wake_position (in segment C) the position up to
 * which it does not need to be woken.  The waker rings once the tail has gone past
 * that position, and not before.  So a burst of records costs one wake-up.  A reader
 * that wants its tokens by the hundred costs one wake-up per hundred.  A reader that
 * is awake (SMV_WAKE_NEVER) costs none.  No flag says "asleep": positions only grow,
 * so each wake_position is passed only once.
 *
 * No reader may sleep while there is something to read.  The reader stores
 * wake_position and then loads the tail again.  The waker stores the tail and then
 * loads wake_position.  Each side stores its own word and then loads the other's.
 * A full fence stands between, because release and acquire do not order a store before
 * a later load.  So at least one side sees the other's store.
 *
 * The reader is not trusted.  Its wake_position is loaded once and only compared.
 * The worst that a reader can do is to be woken each time records of its own streams
 * are published, or never.
 *
 * How to ring the bell is up to its owner (include/samovar/ring.h lists the kinds).
 */
#ifndef SHM_DOORBELL_H
#define SHM_DOORBELL_H

#include <stdbool.h>

#include "shm/ring.h"

/* The waker's half.  Only one thread may use it. */
struct doorbell {
        const struct smv_ring_control *control;
        uint64_t seen; /* the tail at the last doorbell_is_due() */
};

/* The published state, from the writer's own variables; none is read back from shared memory. */
struct doorbell_news {
        uint64_t tail;
        /*
         * The position behind the last END or ASK.  They wake the reader, whatever its
         * wake_position.
         */
        uint64_t end;
        /*
         * A tail past this position also wakes the reader: so much is unread that the writer may
         * soon have to wait for free space.
         */
        uint64_t wake_level;
};

/* Call it after the writer has published.  True: ring the bell. */
bool doorbell_is_due(struct doorbell *bell, const struct doorbell_news *news);

/* For `wake_level`: a quarter of the ring beyond the newest head that the writer knows. */
uint64_t doorbell_wake_level(const struct ring_writer *writer);

/*
 * The reader's half.  Call doorbell_may_sleep() when ring_next() has returned RING_E_EMPTY and the
 * reader has released all records.  `bytes` may come before the reader wants to be woken; 0: the
 * next record wakes it.  True: the reader may sleep.  False: there is something to read.  In both
 * cases, call doorbell_awake() afterwards.
 */
bool doorbell_may_sleep(struct ring_reader *reader, uint64_t bytes);
void doorbell_awake(struct ring_reader *reader);

/* For a futex: the word to wait on, and the value that it has while there is nothing new. */
const uint32_t *doorbell_word(const struct ring_reader *reader, uint32_t *ret_value);

#endif
