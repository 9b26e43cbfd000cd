#include "daemon/core/prefix-owners.h"
#include "daemon/core/prefix-leaves.h"
#include "daemon/core/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int owners_init(struct prefix *prefix, uint32_t blocks)
{
        prefix->owners = calloc(blocks, sizeof(*prefix->owners));
        prefix->givers = calloc(blocks, sizeof(*prefix->givers));
        prefix->owner_buckets =
                malloc(((size_t)prefix->bucket_mask + 1) * sizeof(*prefix->owner_buckets));
        if (!prefix->owners || !prefix->givers || !prefix->owner_buckets)
                return -ENOMEM;
        for (uint32_t i = 0; i <= prefix->bucket_mask; i++)
                prefix->owner_buckets[i] = NO_OWNER;
        for (uint32_t i = 0; i < blocks; i++)
                prefix->owners[i].next = i + 1 < blocks ? i + 1 : NO_OWNER;
        prefix->owner_unused = 0;
        return 0;
}

void owners_deinit(struct prefix *prefix)
{
        free(prefix->owners);
        free(prefix->givers);
        free(prefix->owner_buckets);
}

static uint32_t *bucket_of(const struct prefix *prefix, uint64_t domain)
{
        uint64_t hash[2];

        siphash(prefix->conf.key, &domain, sizeof(domain), hash);
        return &prefix->owner_buckets[hash[0] & prefix->bucket_mask];
}

static uint32_t find(const struct prefix *prefix, uint64_t domain)
{
        uint32_t at = *bucket_of(prefix, domain);

        while (at != NO_OWNER && prefix->owners[at].domain != domain)
                at = prefix->owners[at].next;
        return at;
}

static uint32_t find_or_make(struct prefix *prefix, uint64_t domain)
{
        uint32_t number = find(prefix, domain), *bucket = bucket_of(prefix, domain);

        if (number != NO_OWNER)
                return number;
        number = prefix->owner_unused;
        assert(number != NO_OWNER);
        prefix->owner_unused = prefix->owners[number].next;
        prefix->owners[number] = (struct owner){
                .domain = domain,
                .leaves = BLOCK_NONE,
                .giver_at = NO_GIVER,
                .next = *bucket,
        };
        *bucket = number;
        return number;
}

static void forget(struct prefix *prefix, uint32_t number)
{
        struct owner *owner = &prefix->owners[number];
        uint32_t *at = bucket_of(prefix, owner->domain);

        assert(owner->leaves == BLOCK_NONE && owner->giver_at == NO_GIVER);
        while (*at != number) {
                assert(*at != NO_OWNER);
                at = &prefix->owners[*at].next;
        }
        *at = owner->next;
        *owner = (struct owner){ .next = prefix->owner_unused };
        prefix->owner_unused = number;
}

void owners_take(struct prefix *prefix, block_t block, uint64_t domain)
{
        prefix->named[block].domain = domain;
        prefix->named[block].owner = find_or_make(prefix, domain);
        prefix->owners[prefix->named[block].owner].held++;
}

void owners_hold(struct prefix *prefix, block_t block)
{
        struct owner *owner = &prefix->owners[prefix->named[block].owner];

        assert(owner->kept);
        owner->kept--;
        owner->held++;
        leaves_settle(prefix, prefix->named[block].owner);
}

void owners_keep(struct prefix *prefix, block_t block)
{
        struct owner *owner = &prefix->owners[prefix->named[block].owner];

        assert(owner->held);
        owner->held--;
        owner->kept++;
        leaves_settle(prefix, prefix->named[block].owner);
}

void owners_give_up(struct prefix *prefix, block_t block)
{
        uint32_t number = prefix->named[block].owner;
        struct owner *owner = &prefix->owners[number];

        assert(owner->kept);
        owner->kept--;
        leaves_settle(prefix, number);
        if (!owner->kept && !owner->held)
                forget(prefix, number);
}

uint32_t prefix_held_by(const struct prefix *prefix, uint64_t domain)
{
        uint32_t number = find(prefix, domain);

        return number == NO_OWNER ? 0 : prefix->owners[number].held;
}

uint32_t prefix_kept_by(const struct prefix *prefix, uint64_t domain)
{
        uint32_t number = find(prefix, domain);

        return number == NO_OWNER ? 0 : prefix->owners[number].kept;
}

/* The counts of all owners together must be the counts of the pool. */
void owners_check(const struct prefix *prefix)
{
        uint32_t held = 0, kept = 0;

        for (uint32_t i = 0; i <= prefix->bucket_mask; i++) {
                for (uint32_t at = prefix->owner_buckets[i]; at != NO_OWNER;
                     at = prefix->owners[at].next) {
                        const struct owner *owner = &prefix->owners[at];

                        assert(owner->held || owner->kept);
                        assert(find(prefix, owner->domain) == at);
                        held += owner->held;
                        kept += owner->kept;
                }
        }
        assert(held == kvpool_held(&prefix->pool) && kept == prefix->pool.kept_count);
}
