/*
 * How many blocks the KV pool has: by the settings, and by the memory that it will lie in.  Pure.
 *
 * In the host's memory it is a quarter of what we may have at most, and as much as a quarter of the
 * sequences need at full length.  A backend with memory of its own has nothing else to do with
 * it: there the pool is what weights, activations and scratch leave, less a spare part
 * (1/16, 1 GiB at most) for what nobody can count: what the driver makes as it goes along.  More than all
 * sequences need at full length is not taken.
 *
 * A model whose layers lie in both has each block in both, in parts: so there are as many as either of
 * them has room for.
 */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of one memory. */
struct pool_memory {
        uint64_t block; /* what one takes there; 0: it has no part in it, and nothing else counts */
        uint64_t there; /* for us: in the machine, or left of a backend's own */
        uint64_t weights, activations, scratch; /* that are going to be taken */
};

struct pool_conf {
        uint64_t asked;      /* bytes, by the settings; 0: it is for us to say */
        uint32_t blocks_one; /* of a sequence at full length */
        uint32_t sequences;  /* at once */
        struct pool_memory host;
        const char *backend; /* whose is: */
        struct pool_memory own;
};

uint64_t pool_spare(uint64_t left);

/* -EINVAL and *why: there is no room for a block, or not for as many as were asked for. */
int pool_plan(const struct pool_conf *conf, uint32_t *ret_blocks, char *why, size_t why_bytes);

/*
 * Whether the backend's own memory holds what it is to hold, with a pool to work with: the one that was
 * asked for, or one for a sequence at full length, of which 8192 positions are enough.  -EINVAL and
 * *why if not.
 */
int pool_fits_backend(const struct pool_conf *conf, char *why, size_t why_bytes);

#endif
