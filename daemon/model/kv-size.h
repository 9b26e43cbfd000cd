/*
 * How many blocks the KV pool has, computed from the settings and from the size of its memory.
 * Pure.
 *
 * In the host's memory there are two limits: a quarter of the memory that we may use, and the
 * blocks that a quarter of the sequences need at full length.  A backend with its own memory uses
 * that memory for nothing else.  There the pool takes all that weights, activations and scratch
 * leave, less a reserve of 1/16, at most 1 GiB.  The reserve is for memory that cannot be counted,
 * such as the driver's later allocations.  The pool never takes more than all sequences need at
 * full length.
 *
 * Window pages (../core/prefix-windows.h) share this memory with blocks.  A sequence of any length
 * needs the window pages of one window, so the memory is divided as follows.  There are at least as
 * many window pages as four sequences need, and one for four blocks; both parts take what the other
 * leaves.  There are none if that does not give a quarter more blocks than there would be without
 * window pages: then blocks have the keys and values of all layers.
 *
 * The swap is in the host's memory, with all layers of its blocks, wherever the layers are.  It
 * takes its memory before the pool does.
 *
 * If a model's layers are in both memories, each block has a part in both.  So the number of blocks
 * is what fits in the smaller of the two.
 */
#ifndef DAEMON_MODEL_KV_SIZE_H
#define DAEMON_MODEL_KV_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sizes in bytes for one memory. */
struct kv_size_memory {
        /*
         * bytes of one block there; 0, as `window`: this memory has no part in the pool, and other
         * fields do not matter
         */
        uint64_t block;
        uint64_t shadow; /* bytes of a block's page of the draft model; the swap has none */
        /* bytes of one window page there, for layers with a window, whose part `block` has not */
        uint64_t window;
        /* available to us: in the machine, or free in the backend's own memory */
        uint64_t available;
        uint64_t weights, activations, scratch; /* bytes that will be allocated */
};

struct kv_size_conf {
        uint64_t requested;           /* bytes set by the user; 0: choose automatically */
        uint64_t swap;                /* bytes of the swap, as set by the user; 0: no swap */
        uint64_t drafts;              /* bytes of the host's memory for guesses at tokens */
        uint32_t blocks_per_sequence; /* blocks of one sequence at full length */
        uint32_t sequences;           /* sequences that run at once */
        uint32_t windows_least;       /* window pages that there must be, if there are any */
        struct kv_size_memory host;
        const char *backend; /* name of the backend that has the memory `own` */
        struct kv_size_memory own;
};

uint64_t kv_size_reserve(uint64_t left);

/*
 * The number of whole blocks that the swap has space for.  -EINVAL and *why: it has space for none,
 * or the host's memory has no space for it.
 */
int kv_size_swap(const struct kv_size_conf *conf, uint32_t *ret_blocks, char *why,
                 size_t why_bytes);

struct kv_size {
        uint32_t blocks;
        uint32_t windows; /* window pages; 0: none, blocks have all layers */
};

/* -EINVAL and *why: one block does not fit, or not as many as were asked for. */
int kv_size_plan(const struct kv_size_conf *conf, struct kv_size *ret_size, char *why,
                 size_t why_bytes);

/*
 * Returns 0 if the backend's own memory holds everything planned for it and a usable pool.  Usable
 * means the size that was asked for, or one sequence at full length (8192 positions are enough).
 * Otherwise returns -EINVAL and *why.
 */
int kv_size_fits_backend(const struct kv_size_conf *conf, char *why, size_t why_bytes);

#endif
