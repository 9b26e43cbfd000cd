#include "client/slots.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static int open_segment(const struct shared_segment *segment, uint64_t bytes, bool writes,
                        void **ret_at, const char **ret_why)
{
        int r;

        *ret_why = shared_segment_fault(segment);
        if (!*ret_why && segment->bytes < bytes)
                *ret_why = "a segment of it has an impossible size";
        if (*ret_why)
                return -EPROTO;
        r = shared_segment_map(segment, bytes, writes, ret_at);
        if (r)
                *ret_why = strerror(-r);
        return r;
}

int slots_open(struct slots *slots, uint32_t count, const struct shared_segment *answers,
               const struct shared_segment *rows, uint32_t vocab, const char **ret_why)
{
        struct slots new = { .vocab = vocab, .count = count };
        int r;

        assert(count && count <= SMV_ASK_SLOTS_MAX);
        r = open_segment(answers, count * SMV_ANSWER_STRIDE(vocab), true, &new.answers, ret_why);
        if (!r && rows)
                r = open_segment(rows, count * SMV_SHOWN_ROW_STRIDE(vocab), false, &new.rows,
                                 ret_why);
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
                munmap(slots->rows, slots->count * SMV_SHOWN_ROW_STRIDE(slots->vocab));
        *slots = (struct slots){ 0 };
}

bool slots_give(struct slots *slots, uint32_t slot, uint32_t ticket)
{
        if (slot >= slots->count)
                return false;
        slots->tickets[slot] = ticket;
        return true;
}

bool slots_has(const struct slots *slots, uint32_t slot, uint32_t ticket)
{
        return slot < slots->count && slots->tickets[slot] == ticket;
}

static struct smv_answer *answer_at(struct slots *slots, uint32_t slot)
{
        char *at = slots->answers;

        assert(slot < slots->count);
        return (struct smv_answer *)(void *)(at + slot * SMV_ANSWER_STRIDE(slots->vocab));
}

/* The caller's next load of the ring's state comes after it. */
static void say(const struct slots *slots, uint32_t slot, uint32_t position,
                struct smv_answer *answer)
{
        __atomic_store_n(&answer->of, SMV_OF(slots->tickets[slot], position), __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void slots_answer_mask(struct slots *slots, uint32_t slot, uint32_t position, const uint32_t *mask)
{
        struct smv_answer *answer = answer_at(slots, slot);
        size_t bytes = slots_mask_count(slots) * sizeof(*mask);

        if (mask)
                memcpy(answer + 1, mask, bytes);
        else
                memset(answer + 1, 0xff, bytes);
        say(slots, slot, position, answer);
}

void slots_answer_token(struct slots *slots, uint32_t slot, uint32_t position, uint32_t token)
{
        struct smv_answer *answer = answer_at(slots, slot);

        __atomic_store_n(&answer->token, token, __ATOMIC_RELAXED);
        say(slots, slot, position, answer);
}

const float *slots_row(const struct slots *slots, uint32_t slot, uint32_t ticket, uint32_t position)
{
        const char *at = slots->rows;
        const struct smv_shown_row *row;

        if (!at || !slots_has(slots, slot, ticket))
                return NULL;
        at += slot * SMV_SHOWN_ROW_STRIDE(slots->vocab);
        row = (const struct smv_shown_row *)(const void *)at;
        if (__atomic_load_n(&row->of, __ATOMIC_ACQUIRE) != SMV_OF(ticket, position))
                return NULL;
        return (const float *)(const void *)(row + 1);
}
