/*
 * An honest client, which streams the same request again and again while other clients misbehave.
 * Each time the stream must be, bit by bit, the same as when the client was alone.
 */
#ifndef TESTS_E2E_HONEST_CLIENT_H
#define TESTS_E2E_HONEST_CLIENT_H

#include "tests/e2e/raw-client.h"

/* For tests with more connections than the default limits let a user make in that time. */
#define MANY_CONNECTS "--uid-connects-burst", "65536", "--uid-connects-per-s", "65536"

/* For tests that leave connections without end: a connection is charged until its ring is freed,
 * which may take the daemon as long as the machine lets it wait. */
#define CHURN MANY_CONNECTS, "--connections", "8192", "--uid-connections", "4096"

struct honest_client {
        struct raw_client *client;
        struct stream *alone;
        uint32_t id, rounds;
};

/* Streams once alone, then starts the first round. */
struct honest_client honest_client_start(const struct daemon_fixture *fixture);
/*
 * Reads the records that have come meanwhile.  When a round is over it is judged, and the next one
 * begins.  If a round is refused because misbehaving clients of the same user used up the quota,
 * the client asks again.
 */
void honest_client_check(struct honest_client *honest);
/* Repeats honest_client_check() for `ms` milliseconds. */
void honest_client_check_for(struct honest_client *honest, uint32_t ms);
/* The round under way is the last. */
void honest_client_stop(struct honest_client *honest);

#endif
