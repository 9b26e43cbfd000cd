/*
 * The progress of a batch, on stderr, for people: a line that shows how far it is, if stderr is a
 * terminal, and one at the end.
 */
#ifndef BRIDGE_OFFLINE_PROGRESS_H
#define BRIDGE_OFFLINE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
        bool terminal, drawn;
        uint64_t begun_ns;
        /* Since then: */
        uint64_t lines, failed;
        uint64_t prompt_tokens, tokens; /* of prompts, of answers */
        /* Before: */
        uint64_t lines_before, failed_before;
        uint64_t total; /* lines of the input */
};

void progress_init(struct progress *progress);
/* Shows what is done of a step before the answers: "checking", 0 to 1. */
void progress_prepares(struct progress *progress, const char *what, double part);
/* The answers begin now. */
void progress_begin(struct progress *progress);
/* Shows how far it is, with so many lines in flight; `waits`: what it waits for, or NULL. */
void progress_show(struct progress *progress, uint32_t in_flight, const char *waits);
/* The last line. */
void progress_end(struct progress *progress);

/* A line for people, in place of what is shown. */
void progress_say(struct progress *progress, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#endif
