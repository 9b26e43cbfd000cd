/*
 * The ring of a talk: a reader written from docs/ipc.md alone, so that it and shm/ring.c are two
 * independent implementations of one text.
 *
 * It is stricter than a client has to be: segments must be sealed and of exactly the announced
 * size, the ring's segment must not be writable, a PAD must extend to the end, a sleeper's bell
 * must ring.
 */
#ifndef TESTS_E2E_TALK_RING_H
#define TESTS_E2E_TALK_RING_H

#include "tests/e2e/talk.h"

/* Maps the ring that hello's reply describes, from the descriptors that came with it, and closes
 * those. */
void talk_ring_open(struct talk *talk, const struct reply *reply);
void talk_ring_close(struct talk *talk);

/* Takes every record that is there; true: there were some. */
bool talk_ring_take(struct talk *talk);

/* Tells the daemon that there is room, if it waits for that.  Call this between two frames only. */
void talk_ring_resume(struct talk *talk);

/*
 * lie_down() announces sleep; true: nothing is there, and the bell will ring.  At get_up() the bell
 * must have rung for the records that are there now, or be ringing.
 */
bool talk_ring_lie_down(struct talk *talk);
void talk_ring_get_up(struct talk *talk);
/* If the reader lies down: sleeps on the futex, for at most SLICE_MS. */
void talk_ring_sleep(struct talk *talk, int timeout_ms);

#endif
