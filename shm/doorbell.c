#include "shm/doorbell.h"

static void fence(void)
{
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool doorbell_is_due(struct doorbell *bell, const struct doorbell_news *news)
{
        uint64_t from = bell->seen, wish;

        fence(); /* after the store of the tail; pairs with the fence in doorbell_may_sleep() */
        wish = __atomic_load_n(&bell->control->wake_position, __ATOMIC_RELAXED);

        bell->seen = news->tail;
        if (wish == SMV_WAKE_NEVER)
                return false;
        /*
         * Compare wake_level with the tail only, not with `from`: it is computed from a head that
         * may be old, so it is not a position that the tail passes only once.
         */
        return (from <= wish && wish < news->tail) || from < news->end ||
               news->wake_level < news->tail;
}

uint64_t doorbell_wake_level(const struct ring_writer *writer)
{
        return writer->head + writer->data_bytes / 4;
}

/*
 * If anything has come meanwhile, the reader must read it first, even if it is less than `bytes`:
 * it may contain an END.
 */
bool doorbell_may_sleep(struct ring_reader *reader, uint64_t bytes)
{
        __atomic_store_n(&reader->control->wake_position, reader->head + bytes, __ATOMIC_RELAXED);
        fence(); /* between the store of wake_position and the load of the tail */
        return __atomic_load_n(&reader->page->tail, __ATOMIC_ACQUIRE) == reader->head;
}

void doorbell_awake(struct ring_reader *reader)
{
        __atomic_store_n(&reader->control->wake_position, SMV_WAKE_NEVER, __ATOMIC_RELAXED);
}

const uint32_t *doorbell_word(const struct ring_reader *reader, uint32_t *ret_value)
{
        *ret_value = (uint32_t)reader->head;
        return (const uint32_t *)&reader->page->tail;
}
