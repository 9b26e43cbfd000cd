/*
 * Streams of a world ask its draft model for guesses, and each answer is checked.
 *
 * A round is a list of asks: the test begins it and adds streams.  Each step of the draft model is
 * compared with what a model makes of all tokens of the stream and of the guesses before, without a
 * cache.  A round lives on the test's stack and owns nothing; its asks point to tokens of streams.
 */
#ifndef TESTS_UNIT_DRAFT_ASKS_H
#define TESTS_UNIT_DRAFT_ASKS_H

#include "tests/unit/draft-world.h"

struct round {
        struct draft_ask asks[SLOTS_MAX];
        struct stream *streams[SLOTS_MAX];
        bool late[SLOTS_MAX]; /* it does not ask before others have guesses */
        uint32_t most[SLOTS_MAX], count, steps, rows;
};

void round_begin(struct round *round);
/* The served model has all tokens of the stream but the newest. */
bool stream_can_ask(const struct stream *s);
/* The stream, which can ask, wants `most` guesses, or as many as fit in the context. */
void round_add(struct round *round, struct stream *s, uint32_t most);

/* One step for all that want more.  Returns its rows. */
uint32_t round_ask_once(struct round *round);
/* Steps as long as one of them wants more.  The streams have their guesses then. */
void round_ask_all(struct round *round);

#endif
