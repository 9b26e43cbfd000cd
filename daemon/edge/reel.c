#include "daemon/edge/reel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/error.h"

static size_t mark_count(uint32_t most)
{
        return most / REEL_STRIDE + 1u;
}

int reel_bytes(size_t room, uint32_t most, size_t *ret_bytes)
{
        if (__builtin_add_overflow(room, mark_count(most) * sizeof(size_t), ret_bytes))
                return error_raise(-EOVERFLOW);
        return 0;
}

int reel_init(struct reel *reel, size_t room, uint32_t most)
{
        assert(room >= sizeof(struct smv_record) && most);
        *reel = (struct reel){ .room = room, .most = most };
        reel->bytes = malloc(room);
        reel->marks = malloc(mark_count(most) * sizeof(*reel->marks));
        if (reel->bytes && reel->marks)
                return 0;
        reel_deinit(reel);
        return error_raise(-ENOMEM);
}

void reel_deinit(struct reel *reel)
{
        free(reel->bytes);
        free(reel->marks);
        *reel = (struct reel){ 0 };
}

void reel_add(struct reel *reel, const struct smv_record *record)
{
        size_t step = reel_step(record);

        assert(reel->count < reel->most && record->sequence == reel->count);
        assert(step <= reel->room - reel->used);
        if (reel->count % REEL_STRIDE == 0)
                reel->marks[reel->count / REEL_STRIDE] = reel->used;
        memcpy(reel->bytes + reel->used, record, record->size);
        memset(reel->bytes + reel->used + record->size, 0, step - record->size);
        reel->used += step;
        reel->count++;
}

size_t reel_seal(struct reel *reel)
{
        size_t *marks = realloc(reel->marks, mark_count(reel->count) * sizeof(*marks));
        uint8_t *bytes = realloc(reel->bytes, reel->used);

        assert(reel->used);
        if (marks)
                reel->marks = marks;
        if (bytes)
                reel->bytes = bytes;
        reel->room = reel->used;
        reel->most = reel->count;
        return reel->used + mark_count(reel->most) * sizeof(*reel->marks);
}

size_t reel_find(const struct reel *reel, uint32_t sequence)
{
        uint32_t number = sequence - sequence % REEL_STRIDE;
        size_t at;

        assert(sequence <= reel->count);
        if (sequence == reel->count)
                return reel->used;
        at = reel->marks[sequence / REEL_STRIDE];
        for (; number < sequence; number++)
                at += reel_step(reel_at(reel, at));
        return at;
}
