/* One of many texts: the minimal automaton of sorted texts, as terms. */
#include <assert.h>
#include <string.h>

#include "daemon/constraint/regex-terms.h"
#include "daemon/constraint/regex-pool.h"

static size_t common(const struct regex_text *one, const struct regex_text *other)
{
        size_t most = one->count < other->count ? one->count : other->count, at = 0;

        while (at < most && one->bytes[at] == other->bytes[at])
                at++;
        return at;
}

/*
 * Texts from `from` to `to` have `depth` bytes in common.  The recursion is as deep as texts
 * branch, which halves their number each time or splits one off; chains of single branches are a
 * loop.
 */
static uint32_t branch(struct regex_pool *pool, const struct regex_text *texts, uint32_t from,
                       uint32_t to, size_t depth, unsigned level)
{
        size_t shared = to - from == 1 ? texts[from].count : common(&texts[from], &texts[to - 1]);
        uint32_t base = pool->scratch_count, rest;

        if (level > DEPTH_MAX)
                return pool_fail(pool, REGEX_TOO_DEEP);
        for (uint32_t i = from; i < to;) {
                uint32_t end = i + 1;

                if (texts[i].count == shared) {
                        pool_push(pool, REGEX_EMPTY);
                        i++;
                        continue;
                }
                while (end < to && texts[end].bytes[shared] == texts[i].bytes[shared])
                        end++;
                rest = branch(pool, texts, i, end, shared, level + 1);
                pool_push(pool, rest);
                i = end;
        }
        rest = pool_combine(pool, TERM_OR, base);
        return regex_concat(pool, regex_literal(pool, texts[from].bytes + depth, shared - depth),
                            rest);
}

uint32_t regex_one_of(struct regex_pool *pool, const struct regex_text *texts, uint32_t count)
{
        return count ? branch(pool, texts, 0, count, 0, 0) : REGEX_NONE;
}
