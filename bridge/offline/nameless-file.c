#include "bridge/offline/nameless-file.h"

#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"

int nameless_file_make(const char *folder)
{
        return sys_open(folder, O_TMPFILE | O_RDWR, 0600);
}

int nameless_file_write(int fd, const void *bytes, size_t count, uint64_t at)
{
        size_t done = 0;

        while (done < count) {
                ssize_t n = sys_pwrite(fd, (const char *)bytes + done, count - done, at + done);

                if (n <= 0)
                        return n ? (int)n : -EIO;
                done += (size_t)n;
        }
        return 0;
}
