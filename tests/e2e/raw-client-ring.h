/*
 * The ring of a raw client: a reader written from ring.md alone, so that it and shm/ring.c are
 * two independent implementations of one text.
 *
 * It is stricter than a client has to be: segments must be sealed and of exactly the announced
 * size, the ring's segment must not be writable, a PAD must extend to the end, a sleeper's bell
 * must ring.
 */
#ifndef TESTS_E2E_RAW_CLIENT_RING_H
#define TESTS_E2E_RAW_CLIENT_RING_H

#include "tests/e2e/raw-client.h"

/* Maps the ring that hello's reply describes, from the descriptors that came with it, and closes
 * those. */
void raw_client_ring_open(struct raw_client *client, const struct reply *reply);
void raw_client_ring_close(struct raw_client *client);

/* Takes every record that is there; true: there were some. */
bool raw_client_ring_take(struct raw_client *client);

/* Tells the daemon that there is room, if it waits for that.  Call this between two frames only. */
void raw_client_ring_resume(struct raw_client *client);

/*
 * raw_client_ring_announce_sleep() returns true if nothing is there and the bell will ring.  At
 * raw_client_ring_wake() the bell must have rung for the records that are there now, or be ringing.
 */
bool raw_client_ring_announce_sleep(struct raw_client *client);
void raw_client_ring_wake(struct raw_client *client);
/* If the reader has announced sleep: sleeps on the futex, for at most SLICE_MS. */
void raw_client_ring_sleep(struct raw_client *client, int timeout_ms);

#endif
