/*
 * SipHash: a keyed hash (Aumasson and Bernstein, 2012).
 *
 * Without the key, an attacker cannot find two inputs with the same hash, and cannot tell from
 * outside which inputs collide.  The hash does not reveal a secret input either.  But it
 * does not prove equality: a caller that looks up by hash must compare the content, too.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* SipHash-2-4 with 128 bits of result: two rounds for each word and four at the end. */
void siphash(const uint64_t key[2], const void *bytes, size_t count, uint64_t ret_hash[2]);

/* SipHash-1-3 with 64 bits of result: faster, for hash tables in memory. */
uint64_t siphash_short(const uint64_t key[2], const void *bytes, size_t count);

#endif
