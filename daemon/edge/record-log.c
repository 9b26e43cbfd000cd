#include "daemon/edge/record-log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static size_t mark_count(uint32_t most)
{
        return most / RECORD_LOG_STRIDE + 1u;
}

size_t record_log_used(const struct record_log *log)
{
        return log->used + mark_count(log->count) * sizeof(*log->marks);
}

int record_log_init(struct record_log *log, size_t room, uint32_t most)
{
        assert(room >= sizeof(struct smv_record) && most);
        *log = (struct record_log){ .room = room, .most = most };
        log->bytes = malloc(room);
        log->marks = malloc(mark_count(most) * sizeof(*log->marks));
        if (log->bytes && log->marks)
                return 0;
        record_log_deinit(log);
        return error_raise(-ENOMEM);
}

void record_log_deinit(struct record_log *log)
{
        free(log->bytes);
        free(log->marks);
        *log = (struct record_log){ 0 };
}

void record_log_add(struct record_log *log, const struct smv_record *record)
{
        size_t step = record_log_step(record);

        assert(log->count < log->most && record->sequence == log->count);
        assert(step <= log->room - log->used);
        if (log->count % RECORD_LOG_STRIDE == 0)
                log->marks[log->count / RECORD_LOG_STRIDE] = log->used;
        memcpy(log->bytes + log->used, record, record->size);
        memset(log->bytes + log->used + record->size, 0, step - record->size);
        log->used += step;
        log->count++;
}

void record_log_seal(struct record_log *log)
{
        size_t *marks = realloc(log->marks, mark_count(log->count) * sizeof(*marks));
        uint8_t *bytes = realloc(log->bytes, log->used);

        assert(log->used);
        if (marks)
                log->marks = marks;
        if (bytes)
                log->bytes = bytes;
        log->room = log->used;
        log->most = log->count;
}

size_t record_log_find(const struct record_log *log, uint32_t sequence)
{
        uint32_t number = sequence - sequence % RECORD_LOG_STRIDE;
        size_t at;

        assert(sequence <= log->count);
        if (sequence == log->count)
                return log->used;
        at = log->marks[sequence / RECORD_LOG_STRIDE];
        for (; number < sequence; number++)
                at += record_log_step(record_log_at(log, at));
        return at;
}
