/*
 * SipHash-2-4 with 128 bits of result: a keyed hash (Aumasson and Bernstein, 2012).
 *
 * Without the key nobody can find two inputs with one hash, nor tell from outside
 * what collides.  No secret can be had back from it either, but it is no seal: who
 * finds by it compares.
 */
#ifndef DAEMON_CORE_SIPHASH_H
#define DAEMON_CORE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

void siphash(const uint64_t key[2], const void *bytes, size_t count, uint64_t ret_hash[2]);

#endif
