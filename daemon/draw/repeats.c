#include "daemon/draw/repeats.h"

#include <math.h>
#include <string.h>

#include "daemon/draw/mask.h"

#define PENALTY_MAX  1e30
#define LOG_OF_FLOAT 88.7 /* the largest float is about e to this power */

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

static bool is_breaker(const struct rules *rules, uint32_t token)
{
        size_t bytes;
        const char *piece = tokenizer_piece(rules->order->tokenizer, token, &bytes);

        for (uint32_t i = 0; i < rules->breaker_count; i++)
                if (bytes &&
                    memmem(piece, bytes, rules->breakers[i].bytes, rules->breakers[i].count))
                        return true;
        return false;
}

/*
 * The Z algorithm from the end: ret_z[i] is how many tokens before `end` equal those before
 * end - i.  It is linear, because the part [from, to) that was compared last is known to be equal
 * to the beginning.
 */
static uint32_t measure(const uint32_t *end, uint32_t count, uint16_t ret_z[SMV_WINDOW_MAX])
{
        uint32_t from = 0, to = 0, longest = 0;

        for (uint32_t i = 1; i < count; i++) {
                uint32_t z = i < to ? least(to - i, ret_z[i - from]) : 0;

                while (i + z < count && end[-1 - (int64_t)z] == end[-1 - (int64_t)(i + z)])
                        z++;
                if (i + z > to) {
                        from = i;
                        to = i + z;
                }
                ret_z[i] = (uint16_t)z;
                longest = z > longest ? z : longest;
        }
        return longest;
}

/* Lengths from this on have the same penalty, which is about the largest float. */
static uint32_t longest_that_counts(const struct penalties *p)
{
        double most = p->dry_base > 1 ? floor(LOG_OF_FLOAT / log((double)p->dry_base)) : 0;

        return p->dry_base > 1 && most < SMV_WINDOW_MAX ? p->dry_allowed + (uint32_t)most
                                                        : SMV_WINDOW_MAX;
}

double repeats_penalty(const struct penalties *p, uint32_t length)
{
        uint32_t over = least(length, longest_that_counts(p)) - p->dry_allowed;

        return fmin((double)p->dry_multiplier * pow((double)p->dry_base, over), PENALTY_MAX);
}

void repeats_find(const struct rules *rules, const uint32_t *tokens, uint32_t count,
                  repeat_found *found, void *arg)
{
        const struct penalties *p = &rules->penalties;
        const uint32_t *end = tokens + count;
        uint32_t window = least(count, p->dry_window), most, unbroken = 0;
        uint16_t z[SMV_WINDOW_MAX];

        most = least(measure(end, window, z), longest_that_counts(p));
        while (unbroken < most && !is_breaker(rules, end[-1 - (int64_t)unbroken]))
                unbroken++;
        for (uint32_t i = 1; unbroken >= p->dry_allowed && i < window; i++) {
                uint32_t length = least(z[i], unbroken);

                if (length >= p->dry_allowed && !is_breaker(rules, end[-(int64_t)i]))
                        found(arg, end[-(int64_t)i], length);
        }
}

void repeats_ban(const struct rules *rules, const uint32_t *tokens, uint32_t count, uint32_t *mask)
{
        uint32_t before = rules->penalties.no_repeat_ngram - 1;
        const uint32_t *last = tokens + count - before;

        for (uint32_t i = before; before <= count && i < count; i++)
                if (!memcmp(tokens + i - before, last, before * sizeof(*tokens)))
                        mask_clear(mask, tokens[i]);
}
