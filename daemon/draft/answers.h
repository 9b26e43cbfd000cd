/*
 * Finished answers: drafts of later requests of the same user are taken from them.
 *
 * Each domain has a ring of tokens (places.h); a domain is one of the prefix index (core/prefix.h)
 * that belongs to one user.  A request finds places in the ring of its own domain only: what a
 * draft costs and saves can be measured, and must tell nobody what other users were answered.
 *
 * There are rings for ANSWERS_DOMAINS domains.  If another one comes, it takes the ring of the
 * domain that was least recently used.  Positions are never used twice, in whichever ring: a
 * position of another domain, or one whose token gave way, is found to be stale.
 *
 * All memory is allocated at the start.  The engine uses it.
 */
#ifndef DAEMON_DRAFT_ANSWERS_H
#define DAEMON_DRAFT_ANSWERS_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/draft/places.h"

#define ANSWERS_DOMAINS 8u

struct answers;

/* `tokens` for each domain; rounded up to a power of two. */
size_t answers_bytes(uint32_t tokens);
/* 0 or -ENOMEM; tokens is at least 1. */
int answers_new(uint32_t tokens, struct answers **ret_answers);
struct answers *answers_free(struct answers *answers); /* takes NULL */

/* Copies an answer: its end, if it is longer than the ring. */
void answers_add(struct answers *answers, uint64_t domain, const uint32_t *tokens, uint32_t count);
/* Indexes up to `most` tokens of answers that were added.  Returns how many it did. */
uint32_t answers_index(struct answers *answers, uint32_t most);

/* The answers of a domain, which are used now, until the next is added; NULL: it has none. */
const struct places *answers_of(struct answers *answers, uint64_t domain);

#endif
