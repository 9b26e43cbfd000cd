/*
 * Measures how long the daemon makes other clients wait.  Every few milliseconds a process of its
 * own sends a cancel of nothing, which the loop answers alone.  Now and then it asks for one token,
 * which needs every thread.  The numbers are printed and never judged, because machines differ.
 */
#ifndef TESTS_E2E_PROBE_H
#define TESTS_E2E_PROBE_H

#include "tests/e2e/harness.h"

struct probe;

struct probe *probe_begin(const struct house *house);
/* Ends the probe, and prints `# latency words: ...`. */
void probe_end(struct probe *probe, const char *words);
/* Begins and ends a probe of this length, for the line that other lines are compared with. */
void probe_rest(const struct house *house, uint32_t ms);

#endif
