#include "client/slots.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static int open_segment(const struct shared_segment *segment, uint64_t stride, bool writes,
                        uint32_t *ret_count, void **ret_at, const char **ret_why)
{
        uint64_t count = segment->bytes / stride;
        int r;

        *ret_why = shared_segment_fault(segment);
        if (!*ret_why && (!count || count > UINT32_MAX))
                *ret_why = "a segment of it has an impossible size";
        if (*ret_why)
                return -EPROTO;
        r = shared_segment_map(segment, count * stride, writes, ret_at);
        if (r)
                *ret_why = strerror(-r);
        else
                *ret_count = (uint32_t)count;
        return r;
}

int slots_open(struct slots *slots, const struct shared_segment *answers,
               const struct shared_segment *rows, uint32_t vocab, const char **ret_why)
{
        struct slots new = { .vocab = vocab };
        int r = open_segment(answers, SMV_ANSWER_STRIDE(vocab), true, &new.count, &new.answers,
                             ret_why);

        if (!r && rows)
                r = open_segment(rows, SMV_SHOWN_ROW_STRIDE(vocab), false, &new.row_count,
                                 &new.rows, ret_why);
        if (r) {
                slots_close(&new);
                return r;
        }
        *slots = new;
        return 0;
}

void slots_close(struct slots *slots)
{
        if (slots->answers)
                munmap(slots->answers, slots->count * SMV_ANSWER_STRIDE(slots->vocab));
        if (slots->rows)
                munmap(slots->rows, slots->row_count * SMV_SHOWN_ROW_STRIDE(slots->vocab));
        *slots = (struct slots){ 0 };
}

static struct smv_answer *answer_at(struct slots *slots, uint32_t slot)
{
        char *at = slots->answers;

        assert(slot < slots->count);
        return (struct smv_answer *)(void *)(at + slot * SMV_ANSWER_STRIDE(slots->vocab));
}

/* The caller's next load of the ring's state comes after it. */
static void say(struct smv_answer *answer, uint64_t of)
{
        __atomic_store_n(&answer->of, of, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void slots_answer_mask(struct slots *slots, uint32_t slot, uint64_t of, const uint32_t *mask)
{
        struct smv_answer *answer = answer_at(slots, slot);
        size_t bytes = slots_mask_count(slots) * sizeof(*mask);

        if (mask)
                memcpy(answer + 1, mask, bytes);
        else
                memset(answer + 1, 0xff, bytes);
        say(answer, of);
}

void slots_answer_token(struct slots *slots, uint32_t slot, uint64_t of, uint32_t token)
{
        struct smv_answer *answer = answer_at(slots, slot);

        __atomic_store_n(&answer->token, token, __ATOMIC_RELAXED);
        say(answer, of);
}

const float *slots_row(const struct slots *slots, uint32_t slot, uint64_t of)
{
        const char *at = slots->rows;
        const struct smv_shown_row *row;

        if (slot >= slots->row_count)
                return NULL;
        at += slot * SMV_SHOWN_ROW_STRIDE(slots->vocab);
        row = (const struct smv_shown_row *)(const void *)at;
        if (__atomic_load_n(&row->of, __ATOMIC_ACQUIRE) != of)
                return NULL;
        return (const float *)(const void *)(row + 1);
}
