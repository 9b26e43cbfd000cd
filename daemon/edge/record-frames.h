/*
 * Record frames: records on their way to a socket, in frames of about 32 KiB.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_RECORD_FRAMES_H
#define DAEMON_EDGE_RECORD_FRAMES_H

#include <samovar/ring.h>

#include "daemon/edge/context.h"

/*
 * True if the record belongs to a TOKENS record that follows it.  No frame ends between them, as
 * the frame of another stream may come next.
 */
static inline bool record_frame_needs_next(const struct smv_record *record)
{
        return record->type == SMV_RECORD_LOGPROBS || record->type == SMV_RECORD_PARTS ||
               record->type == SMV_RECORD_ROW;
}

/* True if no more records should be added to this frame. */
bool record_frame_is_full(const struct buffer *frame);

/*
 * Appends a copy of the record, padded with zeros, for the reader's id of the stream: 0 or -ENOMEM.
 */
int record_frame_add(struct buffer *frame, const struct smv_record *record, uint32_t stream);

/* Puts a frame of these records for the peer. */
void record_frame_put(struct peer *peer, const void *records, size_t bytes);

#endif
