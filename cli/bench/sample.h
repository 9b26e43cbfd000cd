/*
 * What happened to one request, in seconds after the measured part of its run began.
 *
 * `due` is the time at which it had to be sent.  If the program or a limit delayed it, `sent` is
 * later.  Latencies count from `due`: otherwise a slow server would be measured less often just
 * when it is slow (coordinated omission).
 */
#ifndef CLI_BENCH_SAMPLE_H
#define CLI_BENCH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct sample {
        uint32_t number;
        double due, sent;
        double first, last; /* tokens; both 0: none has come */
        double ended;       /* the answer was complete, or the request failed */
        bool has_usage;
        uint32_t input, output, cached; /* tokens, as the server counts them */
        uint32_t drafted, drafts_right; /* guesses at its tokens, if the server tells; of these */
        uint32_t wanted_output;         /* 0: any; the model may end the answer */
        uint32_t pieces;                /* events with tokens */
        /* The times between them: pieces - 1. */
        double *gaps;
        uint32_t gap_size;
        char error[32]; /* "busy", "lost", "http 503" ...; "": it is good */
};

struct samples {
        struct sample **at;
        uint32_t count, size;
        char why[256]; /* the words of the first error */
};

/* NULL: out of memory.  The sample stays where it is until samples_deinit(). */
struct sample *samples_add(struct samples *samples);
void samples_deinit(struct samples *samples);

/* Tokens have come.  0 or -ENOMEM. */
int sample_piece(struct sample *sample, double now);

#endif
