#include "daemon/draw/asking.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* In bytes. */
static size_t mask_bytes(uint32_t vocab)
{
        return ((size_t)vocab + 31) / 32 * sizeof(uint32_t);
}

struct asking *asking_new(enum smv_ask kind, uint32_t vocab)
{
        struct asking *asking = calloc(1, sizeof(*asking));
        bool failed = !asking;

        assert(kind != SMV_ASK_NOTHING && vocab);
        if (failed)
                return NULL;
        asking->kind = kind;
        asking->vocab = vocab;
        if (kind == SMV_ASK_MASK) {
                asking->mask = malloc(mask_bytes(vocab));
                failed = !asking->mask;
        }
        return failed ? asking_free(asking) : asking;
}

struct asking *asking_free(struct asking *asking)
{
        if (asking)
                free(asking->mask);
        free(asking);
        return NULL;
}

size_t asking_bytes(const struct asking *asking)
{
        if (!asking)
                return 0;
        return sizeof(*asking) + (asking->kind == SMV_ASK_MASK ? mask_bytes(asking->vocab) : 0);
}

void asking_open(struct asking *asking, uint32_t position, uint64_t now_ns)
{
        assert(!asking->open);
        asking->open = true;
        asking->position = position;
        asking->until_ns = now_ns + asking->wait_ns;
        asking->asked++;
}

/* No bit stands behind the vocabulary, so a mask without a legal token is 0. */
static void clear_rest(struct asking *asking)
{
        if (asking->vocab % 32)
                asking->mask[asking->vocab / 32] &= (UINT32_C(1) << asking->vocab % 32) - 1;
}

bool asking_is_answered(const struct asking *asking)
{
        assert(asking->open);
        return __atomic_load_n(&asking->answer->of, __ATOMIC_ACQUIRE) ==
               SMV_OF(asking->ticket, asking->position);
}

bool asking_hear(struct asking *asking, uint32_t *ret_token)
{
        const struct smv_answer *answer = asking->answer;

        if (!asking_is_answered(asking))
                return false;
        asking->open = false;
        if (asking->kind == SMV_ASK_MASK) {
                memcpy(asking->mask, answer + 1, mask_bytes(asking->vocab));
                clear_rest(asking);
        } else {
                *ret_token = __atomic_load_n(&answer->token, __ATOMIC_RELAXED);
        }
        return true;
}

void asking_give_up(struct asking *asking)
{
        assert(asking->open);
        asking->open = false;
        if (asking->kind != SMV_ASK_MASK)
                return;
        memset(asking->mask, 0xff, mask_bytes(asking->vocab));
        clear_rest(asking);
}

void asking_narrow(struct asking *asking, const uint32_t *mask)
{
        for (size_t i = 0; i < mask_bytes(asking->vocab) / sizeof(*mask); i++)
                asking->mask[i] &= mask[i];
}

void asking_show(struct asking *asking, uint32_t position, const float *logits)
{
        struct smv_shown_row *shown = asking->shown;

        __atomic_store_n(&shown->of, 0, __ATOMIC_RELAXED);
        atomic_thread_fence(memory_order_release);
        memcpy(shown + 1, logits, asking->vocab * sizeof(*logits));
        __atomic_store_n(&shown->of, SMV_OF(asking->ticket, position), __ATOMIC_RELEASE);
}
