/*
 * Measures how long the daemon makes other clients wait.  Every few milliseconds a process of its
 * own sends a cancel of nothing, which the loop answers alone.  Now and then it asks for one token,
 * which needs every thread.  The numbers are printed and never judged, because machines differ.
 */
#ifndef TESTS_E2E_LATENCY_PROBE_H
#define TESTS_E2E_LATENCY_PROBE_H

#include "tests/e2e/daemon-fixture.h"

struct latency_probe;

struct latency_probe *latency_probe_start(const struct daemon_fixture *fixture);
/* Ends the probe, and prints `# latency words: ...`. */
void latency_probe_stop(struct latency_probe *probe, const char *words);
/* Begins and ends a probe of this length, for the line that other lines are compared with. */
void latency_probe_baseline(const struct daemon_fixture *fixture, uint32_t ms);

#endif
