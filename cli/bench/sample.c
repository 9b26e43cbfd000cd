#include "cli/bench/sample.h"

#include <errno.h>
#include <stdlib.h>

struct sample *samples_add(struct samples *samples)
{
        struct sample **more, *sample = calloc(1, sizeof(*sample));

        if (sample && samples->count == samples->size) {
                uint32_t size = samples->size ? 2 * samples->size : 256;

                more = realloc(samples->at, size * sizeof(*more));
                if (!more) {
                        free(sample);
                        return NULL;
                }
                samples->at = more;
                samples->size = size;
        }
        if (!sample)
                return NULL;
        sample->number = samples->count;
        samples->at[samples->count++] = sample;
        return sample;
}

void samples_deinit(struct samples *samples)
{
        for (uint32_t i = 0; i < samples->count; i++) {
                free(samples->at[i]->gaps);
                free(samples->at[i]);
        }
        free(samples->at);
        *samples = (struct samples){ .count = 0 };
}

int sample_piece(struct sample *sample, double now)
{
        double *more;

        if (sample->pieces) {
                if (sample->pieces > sample->gap_size) {
                        uint32_t size = sample->gap_size ? 2 * sample->gap_size : 64;

                        more = realloc(sample->gaps, size * sizeof(*more));
                        if (!more)
                                return -ENOMEM;
                        sample->gaps = more;
                        sample->gap_size = size;
                }
                sample->gaps[sample->pieces - 1] = now - sample->last;
        } else {
                sample->first = now;
        }
        sample->last = now;
        sample->pieces++;
        return 0;
}
