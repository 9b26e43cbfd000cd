/*
 * The ring of a talk: a reader written from docs/ipc.md alone, so that it and shm/ring.c are two
 * opinions of one text.
 *
 * It is stricter than a client has to be: segments must be sealed and of exactly the size that was
 * said, the ring's must not be writable, a PAD must go up to the end, a sleeper's bell must ring.
 */
#ifndef TESTS_E2E_TALK_RING_H
#define TESTS_E2E_TALK_RING_H

#include "tests/e2e/talk.h"

/* What hello's reply describes, of the descriptors that came with it, which are closed. */
void talk_ring_open(struct talk *talk, const struct reply *reply);
void talk_ring_close(struct talk *talk);

/* Every record that is there; true: there were some. */
bool talk_ring_take(struct talk *talk);

/* If the daemon waits for room that was given; between two frames only. */
void talk_ring_resume(struct talk *talk);

/*
 * Lying down: true: nothing is there, and the bell will ring.  Getting up: the bell must have rung
 * for what is there now, or be ringing.
 */
bool talk_ring_lie_down(struct talk *talk);
void talk_ring_get_up(struct talk *talk);
/* Lying down with a futex. */
void talk_ring_sleep(struct talk *talk, int timeout_ms);

#endif
