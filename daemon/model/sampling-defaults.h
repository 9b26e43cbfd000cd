/*
 * The sampling parameters of requests that give none: the model's own, where its files have them.
 */
#ifndef DAEMON_MODEL_SAMPLING_DEFAULTS_H
#define DAEMON_MODEL_SAMPLING_DEFAULTS_H

#include <stdint.h>

struct sampling_defaults {
        float temperature, top_p, min_p;
        uint32_t top_k; /* 0: all tokens */
};

/* If the model's files say nothing: draws from all tokens, as the model has learned them. */
#define SAMPLING_DEFAULTS_PLAIN ((struct sampling_defaults){ .temperature = 1, .top_p = 1 })

#endif
