#include "daemon/edge/record-frames.h"

#include "daemon/edge/connection.h"
#include "base/error.h"

#define FRAME_RECORDS (32u << 10) /* bytes of records in one frame, about */

bool record_frame_is_full(const struct buffer *frame)
{
        return buffer_count(frame) >= FRAME_RECORDS;
}

int record_frame_add(struct buffer *frame, const struct smv_record *record, uint32_t stream)
{
        static const uint8_t zeros[SMV_RING_ALIGN];
        size_t padding = -record->size % SMV_RING_ALIGN;
        size_t at = buffer_count(frame);
        struct smv_record *copy;
        int r;

        r = buffer_append(frame, record, record->size);
        if (!r)
                r = buffer_append(frame, zeros, padding);
        if (r)
                return error_pass(r);
        copy = (struct smv_record *)(void *)(frame->bytes + frame->start + at);
        copy->stream = stream;
        return 0;
}

void record_frame_put(struct peer *peer, const void *records, size_t bytes)
{
        struct wire_writer writer;

        wire_begin(&writer, &peer->out);
        wire_put_map(&writer, 1);
        wire_put_text(&writer, "records");
        wire_put_bin(&writer, records, bytes);
        connection_replied(peer, &writer);
}
