#include "store/text-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

int text_file_read(const char *path, size_t max, struct bytes *text)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
        ssize_t n = 1;

        if (fd < 0)
                return -errno;
        while (!r && n) {
                r = bytes_reserve(text, 4096);
                n = r ? 0 : read(fd, text->at + text->count, text->size - text->count - 1);
                if (n < 0)
                        r = -errno;
                else
                        text->count += (size_t)n;
                if (!r && text->count > max)
                        r = -EFBIG;
        }
        if (!r)
                text->at[text->count] = '\0';
        close(fd);
        return r;
}

static int write_all(int fd, const char *text, size_t bytes)
{
        while (bytes) {
                ssize_t n = write(fd, text, bytes);

                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0) {
                        text += n;
                        bytes -= (size_t)n;
                }
        }
        return 0;
}

int text_file_write(const char *path, const char *text, size_t bytes)
{
        char fresh[PATH_MAX];
        int fd, r;

        if ((size_t)snprintf(fresh, sizeof(fresh), "%s~", path) >= sizeof(fresh))
                return -ENAMETOOLONG;
        fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, bytes);
        if (!r && fdatasync(fd) < 0)
                r = -errno;
        close(fd);
        if (!r && rename(fresh, path) < 0)
                r = -errno;
        if (r)
                unlink(fresh);
        return r;
}
