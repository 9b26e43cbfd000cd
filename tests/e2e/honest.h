/*
 * An honest client, which streams the same request again and again while other clients misbehave.
 * Each time the stream must be, bit by bit, the same as when the client was alone.
 */
#ifndef TESTS_E2E_HONEST_H
#define TESTS_E2E_HONEST_H

#include "tests/e2e/talk.h"

/* For stories with more connections than the default limits let a user make in that time. */
#define FAST "--uid-connects-burst", "65536", "--uid-connects-per-s", "65536"

struct honest {
        struct talk *talk;
        struct stream *alone;
        uint32_t id, rounds;
};

/* Streams once alone, then starts the first round. */
struct honest honest_begin(const struct house *house);
/*
 * Reads the records that have come meanwhile.  When a round is over it is judged, and the next one
 * begins.  If a round is refused because misbehaving clients of the same user used up the quota,
 * the client asks again.
 */
void honest_look(struct honest *honest);
/* Repeats honest_look() for `ms` milliseconds. */
void honest_look_for(struct honest *honest, uint32_t ms);
/* The round under way is the last. */
void honest_end(struct honest *honest);

#endif
