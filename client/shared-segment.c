#include "client/shared-segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/*
 * Only tmpfs is accepted: touching a page of a file on disk, or a huge page, may fail and kill the
 * program.
 */
const char *shared_segment_fault(const struct shared_segment *segment)
{
        struct statfs fs;
        struct stat st;
        int seals;

        if (fstatfs(segment->fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
                return "a segment of it is not shared memory";
        seals = fcntl(segment->fd, F_GET_SEALS);
        if (seals < 0 || !(seals & F_SEAL_SHRINK))
                return "a segment of it is not sealed against shrinking";
        if (fstat(segment->fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size < segment->bytes)
                return "a segment of it is smaller than the reply says";
        if (segment->bytes > SIZE_MAX / 2)
                return "a segment of it has an impossible size";
        return NULL;
}

int shared_segment_map(const struct shared_segment *segment, uint64_t bytes, bool writes,
                       void **ret_at)
{
        void *at = mmap(NULL, (size_t)bytes, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED,
                        segment->fd, 0);

        if (at == MAP_FAILED)
                return -errno;
        *ret_at = at;
        return 0;
}
