#include "daemon/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/sys.h"

#define POINTER_BYTES_MAX 1024u

/* Refuses the short texts by which Git LFS or Xet replaces a file that is kept elsewhere. */
static int refuse_pointer(int fd, const struct sys_mark *mark, char *why, size_t why_bytes)
{
        static const char *const firsts[] = { "version https://git-lfs.github.com/spec/",
                                              "version https://hawser.github.com/spec/",
                                              "# xet version " };
        char begin[48] = { 0 };
        ssize_t n;

        if (mark->bytes > POINTER_BYTES_MAX)
                return 0;
        n = sys_pread(fd, begin, sizeof(begin) - 1, 0);
        if (n < 0)
                return error_raise(errtext_set(why, why_bytes, (int)n, "%s", strerror((int)-n)));
        for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++)
                if (!strncmp(begin, firsts[i], strlen(firsts[i])))
                        return error_raise(
                                errtext_set(why, why_bytes, -EINVAL,
                                            "it is a pointer to a file that was not fetched: run "
                                            "'git lfs pull' in its folder, or download the file"));
        return 0;
}

int file_open(int folder, const char *name, int *ret_fd, struct sys_mark *ret_mark, char *why,
              size_t why_bytes)
{
        /* Non-blocking: if the file is a pipe by mistake, do not wait for its writer. */
        int fd = sys_open_at(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY), r;

        if (fd == -ENOENT) {
                errtext_set(why, why_bytes, fd, "%s", strerror(ENOENT));
                return FILE_E_ABSENT;
        }
        if (fd < 0)
                return error_raise(errtext_set(why, why_bytes, fd, "%s", strerror(-fd)));
        r = sys_file_mark(fd, ret_mark);
        if (!r)
                r = refuse_pointer(fd, ret_mark, why, why_bytes);
        else if (r == -EINVAL)
                errtext_set(why, why_bytes, r, "not a regular file");
        else
                errtext_set(why, why_bytes, r, "%s", strerror(-r));
        if (r) {
                sys_close(fd);
                return error_pass(r);
        }
        *ret_fd = fd;
        return 0;
}

int file_check_unchanged(int fd, const struct sys_mark *mark, char *why, size_t why_bytes)
{
        struct sys_mark now = { 0 };
        int r = sys_file_mark(fd, &now);

        if (r)
                return error_raise(errtext_set(why, why_bytes, r, "%s", strerror(-r)));
        if (memcmp(&now, mark, sizeof(now)))
                return error_raise(errtext_set(why, why_bytes, -EIO,
                                               "the file was changed while it was read"));
        return 0;
}

int file_read(int fd, uint64_t offset, void *ret_bytes, size_t bytes, char *why, size_t why_bytes)
{
        ssize_t n;

        for (size_t at = 0; at < bytes; at += (size_t)n) {
                n = sys_pread(fd, (char *)ret_bytes + at, bytes - at, offset + at);
                if (n < 0)
                        return error_raise(errtext_set(why, why_bytes, (int)n,
                                                       "reading failed at byte %" PRIu64 ": %s",
                                                       offset + at, strerror((int)-n)));
                if (!n)
                        return error_raise(errtext_set(
                                why, why_bytes, -EIO, "the file became shorter while it was read"));
        }
        return 0;
}

static int read_whole(int fd, uint64_t bytes, uint64_t bytes_max, char **ret_text, char *why,
                      size_t why_bytes)
{
        char *text;
        int r;

        if (bytes > bytes_max)
                return error_raise(errtext_set(
                        why, why_bytes, -EINVAL,
                        "the file has %" PRIu64 " bytes, the limit is %" PRIu64, bytes, bytes_max));
        text = malloc(bytes + 1);
        if (!text)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "out of memory for the file's text"));
        r = file_read(fd, 0, text, bytes, why, why_bytes);
        if (r) {
                free(text);
                return error_pass(r);
        }
        text[bytes] = '\0';
        *ret_text = text;
        return 0;
}

int file_read_all(int folder, const char *name, uint64_t bytes_max, char **ret_text,
                  size_t *ret_bytes, char *why, size_t why_bytes)
{
        struct sys_mark mark;
        int fd, r;

        r = file_open(folder, name, &fd, &mark, why, why_bytes);
        if (r)
                return error_pass(r);
        r = read_whole(fd, mark.bytes, bytes_max, ret_text, why, why_bytes);
        sys_close(fd);
        *ret_bytes = mark.bytes;
        return error_pass(r);
}

int file_read_json(int folder, const char *name, uint64_t bytes_max, uint32_t nodes_max,
                   struct json_document **ret_json, char *why, size_t why_bytes)
{
        size_t bytes;
        char *text;
        int r;

        r = file_read_all(folder, name, bytes_max, &text, &bytes, why, why_bytes);
        if (!r) {
                r = error_raise(
                        json_parse_python(text, bytes, nodes_max, ret_json, why, why_bytes));
                free(text);
        }
        return r ? error_pass(errtext_prefix(why, why_bytes, r, name)) : 0;
}
