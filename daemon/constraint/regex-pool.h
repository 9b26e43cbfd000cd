/*
 * Regular expressions over bytes, as terms that can be derived.
 *
 * An expression is a number in a pool.  Equal expressions have equal numbers, because every term is
 * made once.  The derivative of an expression by a byte matches what may follow that byte, so
 * reading a text is deriving once a byte.  There are no capture groups and no look-around, but
 * there are intersection and complement.
 *
 * A pool has a fixed budget of terms, and a limit of work (`fuel`).  When one is spent, the pool
 * says so in `spent` and every result from then on is REGEX_NONE: callers look once, at the end.  A
 * pool belongs to one thread at a time.
 */
#ifndef CONSTRAINT_REGEX_POOL_H
#define CONSTRAINT_REGEX_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/number-range.h"

#define REGEX_NONE    0u /* matches nothing */
#define REGEX_EMPTY   1u /* matches the empty text */
#define REGEX_BYTE    2u /* matches every byte */
#define REGEX_ANY     3u /* matches every text, also one that is not UTF-8 */
#define REGEX_FOREVER UINT32_MAX

enum regex_spent {
        REGEX_FINE,
        REGEX_TERMS_SPENT, /* the budget of terms */
        REGEX_FUEL_SPENT,  /* the budget of work, until the next regex_refuel() */
        REGEX_TOO_DEEP,    /* terms are nested too deeply */
};

struct byte_set {
        uint64_t word[4];
};

static inline bool byte_set_has(const struct byte_set *set, uint8_t byte)
{
        return set->word[byte >> 6] >> (byte & 63) & 1;
}

static inline void byte_set_add(struct byte_set *set, uint8_t from, uint8_t to)
{
        for (unsigned byte = from; byte <= to; byte++)
                set->word[byte >> 6] |= 1ull << (byte & 63);
}

struct regex_pool;

/* NULL: out of memory.  Memory that is not used is not touched. */
struct regex_pool *regex_pool_new(uint32_t terms_max);
/* From now on it may take so many more terms, if its limit was not lower. */
void regex_pool_limit(struct regex_pool *pool, uint32_t more);
struct regex_pool *regex_pool_free(struct regex_pool *pool); /* takes NULL */

enum regex_spent regex_spent(const struct regex_pool *pool);
/* Forgets that fuel was spent.  Terms that are spent, or too deep, stay so. */
void regex_refuel(struct regex_pool *pool, uint64_t fuel);
uint64_t regex_fuel(const struct regex_pool *pool); /* what is left */
/* Takes fuel for work that is done outside of the pool; false: it is spent. */
bool regex_burn(struct regex_pool *pool, uint64_t amount);
uint32_t regex_terms(const struct regex_pool *pool);
/* Is more than half used of what it may take since regex_pool_limit()? */
bool regex_is_crowded(const struct regex_pool *pool);
size_t regex_pool_bytes(const struct regex_pool *pool); /* all memory that it may take */

uint32_t regex_set(struct regex_pool *pool, const struct byte_set *set); /* one byte */
uint32_t regex_range(struct regex_pool *pool, uint8_t from, uint8_t to); /* one byte */
uint32_t regex_literal(struct regex_pool *pool, const char *bytes, size_t count);
uint32_t regex_concat(struct regex_pool *pool, uint32_t first, uint32_t second);
uint32_t regex_or(struct regex_pool *pool, const uint32_t *terms, uint32_t count);
uint32_t regex_and(struct regex_pool *pool, const uint32_t *terms, uint32_t count);
uint32_t regex_or2(struct regex_pool *pool, uint32_t one, uint32_t other);
uint32_t regex_and2(struct regex_pool *pool, uint32_t one, uint32_t other);
uint32_t regex_not(struct regex_pool *pool, uint32_t term);
uint32_t regex_repeat(struct regex_pool *pool, uint32_t term, uint32_t min, uint32_t max);
/* The digits of a number within a range, without its sign; the range is copied. */
uint32_t regex_number(struct regex_pool *pool, const struct number_range *range);

/*
 * One of these texts, which are sorted by memcmp() and differ.  Equal tails are shared, so it takes
 * time and terms linear in all bytes.
 */
struct regex_text {
        const char *bytes;
        uint32_t count;
};
uint32_t regex_one_of(struct regex_pool *pool, const struct regex_text *texts, uint32_t count);

bool regex_nullable(const struct regex_pool *pool, uint32_t term); /* matches the empty text */
uint32_t regex_derive(struct regex_pool *pool, uint32_t term, uint8_t byte);
/* False if no text matches.  Complements and intersections are searched, as far as fuel goes. */
bool regex_alive(struct regex_pool *pool, uint32_t term);

/*
 * How many characters may follow at least, whatever they are, except for quotes, backslashes and
 * controls; REGEX_FOREVER: any number.  It knows repetitions only, and may say less than is true.
 */
uint32_t regex_plain(struct regex_pool *pool, uint32_t term);

/*
 * Groups bytes that all terms of the pool treat alike: class_of[byte] < the number returned.
 * Derivatives keep to these classes.
 */
unsigned regex_classes(struct regex_pool *pool, uint8_t class_of[256]);

#endif
