/*
 * How long the daemon makes others wait: a process of its own asks, every few milliseconds, for a
 * cancel of nothing, which the loop answers alone, and now and then for one token, which takes
 * every thread there is.  What is printed is told, never judged: machines differ.
 */
#ifndef TESTS_E2E_PROBE_H
#define TESTS_E2E_PROBE_H

#include "tests/e2e/harness.h"

struct probe;

struct probe *probe_begin(const struct house *house);
/* Ends it, and prints `# latency words: ...`. */
void probe_end(struct probe *probe, const char *words);
/* Both for so long, for the line that others are compared with. */
void probe_rest(const struct house *house, uint32_t ms);

#endif
