#include "bridge/openai/batch-ids.h"

#include <stdlib.h>

#include "base/siphash.h"
#include "base/sys.h"
#include "bridge/openai/batch-record.h"

#define SIZE     (1u << 17) /* more than twice BATCH_LINES_MAX */
#define ANSWERED UINT64_C(1)
#define TAKEN    UINT64_C(2) /* so that no hash is 0, a free place */

struct batch_ids {
        uint64_t key[2];
        uint32_t count;
        uint64_t at[SIZE];
};

struct batch_ids *batch_ids_new(void)
{
        struct batch_ids *ids = calloc(1, sizeof(*ids));

        if (ids)
                sys_random(ids->key, sizeof(ids->key));
        return ids;
}

struct batch_ids *batch_ids_free(struct batch_ids *ids)
{
        free(ids);
        return NULL;
}

/* Its place, or the free one where it would be. */
static uint32_t place(const struct batch_ids *ids, struct text id, uint64_t *ret_hash)
{
        uint64_t hash = siphash_short(ids->key, id.at, id.bytes);
        uint32_t at = (uint32_t)(hash >> 32) % SIZE;

        *ret_hash = (hash & ~ANSWERED) | TAKEN;
        while (ids->at[at] && (ids->at[at] & ~ANSWERED) != *ret_hash)
                at = (at + 1) % SIZE;
        return at;
}

bool batch_ids_add(struct batch_ids *ids, struct text id)
{
        uint64_t hash;
        uint32_t at = place(ids, id, &hash);

        if (ids->at[at] || ids->count > BATCH_LINES_MAX)
                return false;
        ids->at[at] = hash;
        ids->count++;
        return true;
}

bool batch_ids_answer(struct batch_ids *ids, struct text id)
{
        uint64_t hash;
        uint32_t at = place(ids, id, &hash);

        if (!ids->at[at] || ids->at[at] & ANSWERED)
                return false;
        ids->at[at] |= ANSWERED;
        return true;
}

bool batch_ids_is_answered(const struct batch_ids *ids, struct text id)
{
        uint64_t hash;

        return ids->at[place(ids, id, &hash)] & ANSWERED;
}
