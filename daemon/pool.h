/*
 * How many blocks the KV pool has: by the settings, and by the memory that it will lie in.  Pure.
 *
 * In the host's memory it is a quarter of the machine at most, and as much as a quarter of the
 * sequences need at full length.  A backend with memory of its own has nothing else to do with
 * it: there the pool is what weights, activations and scratch leave, less a spare part
 * (1/16, 1 GiB at most) for what nobody can count: what the driver makes as it goes along.  More than all
 * sequences need at full length is not taken.
 */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool_conf {
        uint64_t asked;      /* bytes, by the settings; 0: it is for us to say */
        uint64_t block;      /* bytes of one */
        uint32_t blocks_one; /* of a sequence at full length */
        uint32_t sequences;  /* at once */
        uint64_t machine;    /* bytes of the host's memory */
        const char *backend; /* that has memory of its own; or NULL, and none of these counts: */
        uint64_t left;       /* bytes there */
        uint64_t weights, activations, scratch; /* that are going to be taken */
};

uint64_t pool_spare(uint64_t left);

/* -EINVAL and *why: there is no room for a block, or not for as many as were asked for. */
int pool_plan(const struct pool_conf *conf, uint32_t *ret_blocks, char *why, size_t why_bytes);

#endif
