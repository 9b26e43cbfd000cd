/*
 * A bar on stderr, if that is a terminal: how many bytes are there, how fast they come, and how
 * long it will take.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRESS_SAMPLES 16

struct progress {
        bool terminal, drawn;
        const char *what; /* "pulling" */
        uint64_t total;   /* bytes; 0: not known */
        uint64_t last_ms; /* when it was drawn */
        struct {
                uint64_t ms, bytes;
        } samples[PROGRESS_SAMPLES]; /* of the last seconds, for the rate */
        unsigned sample_count, sample_at;
};

void progress_begin(struct progress *progress, const char *what, uint64_t total);
/* Draws the bar for `bytes`, a few times a second. */
void progress_show(struct progress *progress, uint64_t bytes);
/* Removes the bar, so that something else can be written. */
void progress_clear(struct progress *progress);

#endif
