/*
 * Segments: shared memory that the daemon makes and this client maps.
 *
 * The daemon wrote all of this memory and may still write it.  So the library maps a segment only
 * if the segment cannot shrink: touching memory that is gone would kill the program.
 */
#ifndef CLIENT_SHARED_SEGMENT_H
#define CLIENT_SHARED_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

struct shared_segment {
        int fd; /* the caller keeps owning it */
        uint64_t bytes;
};

/* NULL; or why it must not be mapped, worded as the end of a sentence. */
const char *shared_segment_fault(const struct shared_segment *segment);

/* Maps the first `bytes` of it: 0 or a negative errno. */
int shared_segment_map(const struct shared_segment *segment, uint64_t bytes, bool writes,
                       void **ret_at);

#endif
