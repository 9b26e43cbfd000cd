#include "daemon/ipc/segment.h"

#include <errno.h>
#include <fcntl.h>

#include "base/error.h"
#include "base/sys.h"

int segment_new(const char *name, size_t bytes, enum segment_writer writer,
                struct segment *ret_segment)
{
        bool ours = writer == SEGMENT_DAEMON_WRITES;
        int fd = sys_memory(name, bytes, ours ? 0400 : 0600);
        void *at;

        if (fd < 0)
                return error_raise(fd);
        at = sys_map_file(fd, bytes, ours);
        if (!at) {
                sys_close(fd);
                return error_raise(-ENOMEM);
        }
        *ret_segment = (struct segment){ .at = at, .bytes = bytes, .fd = fd, .writer = writer };
        return 0;
}

int segment_new_private(size_t bytes, struct segment *ret_segment)
{
        void *at = sys_map(bytes);

        if (!at)
                return error_raise(-ENOMEM);
        *ret_segment = (struct segment){ .at = at, .bytes = bytes, .fd = -1 };
        return 0;
}

int segment_lend(const struct segment *segment)
{
        int fd = sys_reopen(segment->fd,
                            segment->writer == SEGMENT_DAEMON_WRITES ? O_RDONLY : O_RDWR);

        return fd < 0 ? error_raise(fd) : fd;
}

/* If the pages cannot be freed, the client keeps them: there is nothing else to do. */
void segment_free(struct segment *segment, bool keep)
{
        if (!segment->at)
                return;
        sys_unmap(segment->at, segment->bytes);
        if (segment->fd >= 0 && !keep)
                (void)sys_release_pages(segment->fd, segment->bytes);
        if (segment->fd >= 0)
                sys_close(segment->fd);
        *segment = (struct segment){ .fd = -1 };
}
