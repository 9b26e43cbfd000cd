/*
 * Combinations that run: several at a time, with siblings, forks, detached and attached again.  And
 * one stream of a combination alone, which shows what has to come.
 */
#ifndef TESTS_E2E_COMBINATION_LIVE_H
#define TESTS_E2E_COMBINATION_LIVE_H

#include "tests/e2e/combination.h"
#include "tests/e2e/daemon-fixture.h"

#define LIVE_SAMPLE 1u /* the sample index of the first sibling */

/* Counts that show whether a daemon was as busy as it was meant to be. */
struct live_seen {
        uint64_t refused, preempted, forks, attached, constrained, calls, questions, no_token;
        uint64_t drafted, right, predicted, predictions_right;
};
extern struct live_seen live_seen;

/* A combination that runs. */
struct live {
        struct combination of;
        uint32_t streams, first;
        uint32_t fork; /* 0: there is none */
        struct outcome *siblings[COMBINATION_N], *forked;
        uint32_t left; /* streams that have not ended */
        uint32_t sequence;
        uint64_t resume_id; /* 0: not resumable */
        bool detached;
        bool is_asking;         /* its question has no answer yet */
        const char *prediction; /* set by the test; not looked at if it has no bytes */
        size_t prediction_bytes;
};

/* Over a ring, so many streams at a time may ask the client. */
struct smv_client *live_connect(const struct daemon_fixture *fixture, enum smv_transport transport,
                                uint32_t slots);
/* Runs them together to their ENDs. */
void live_run(struct smv_client *client, struct live *lives, uint32_t count);
void live_forget(struct live *live);
/* One stream of a combination, with nothing beside it; the caller frees what came. */
struct outcome *live_alone(struct smv_client *client, const struct combination *of,
                           uint32_t sample);
/* Whether the streams are as each of them alone; else writes what differs. */
bool live_is_same(struct outcome *const wholes[COMBINATION_N], const struct live *live, char *why,
                  size_t bytes);

#endif
