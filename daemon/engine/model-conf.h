/*
 * The sizes that a model is opened for, as its stages and its memory estimate need them, too.
 */
#ifndef DAEMON_ENGINE_MODEL_CONF_H
#define DAEMON_ENGINE_MODEL_CONF_H

#include <stdint.h>

#include "kernels/kernels.h"

/* The groups of layers, of which each has page tables of its own (kernels/page.h). */
enum kv_group {
        GROUP_BLOCKS,  /* layers without a window; all layers, if there are no window pages */
        GROUP_WINDOWS, /* layers with a window */
};

struct model_conf {
        uint32_t context;     /* positions of a sequence, at most */
        uint32_t rows_max;    /* rows of a step, at most */
        uint32_t wants_max;   /* wanted rows (rows with logits) of a step, at most */
        uint32_t blocks;      /* of the KV pool */
        uint32_t windows;     /* window pages; 0: blocks have the KV of all layers */
        uint32_t swap_blocks; /* of the swap, in the host's memory */
        enum kv_type kv;
        uint32_t host_layers; /* number of first layers on the host; fewer than all; 0: none */
        /* the backend of these layers when the model is opened; its memory is the host's */
        struct kernels *host;
};

#endif
