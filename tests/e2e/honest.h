/*
 * An honest client, who streams the same again and again while others misbehave: each time it
 * must be, bit by bit, what it was when he was alone.
 */
#ifndef TESTS_E2E_HONEST_H
#define TESTS_E2E_HONEST_H

#include "tests/e2e/talk.h"

/* For stories with more connections than a user may make so fast. */
#define FAST "--uid-connects-burst", "65536", "--uid-connects-per-s", "65536"

struct honest {
        struct talk *talk;
        struct stream *alone;
        uint32_t id, rounds;
};

/* Alone first, then his first round is under way. */
struct honest honest_begin(const struct house *house);
/*
 * What has come meanwhile; when a round is over it is judged, and the next begins. A round that is
 * refused for the quota of a user whose others misbehave is asked for again.
 */
void honest_look(struct honest *honest);
/* Looks for so long. */
void honest_look_for(struct honest *honest, uint32_t ms);
/* The round under way is the last. */
void honest_end(struct honest *honest);

#endif
