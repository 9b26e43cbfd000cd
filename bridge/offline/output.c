#include "bridge/offline/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errtext.h"
#include "base/sys.h"

#define PIECE_BYTES 4096u /* a pipe that can be written takes so much without waiting */

static void on_writable(void *arg, unsigned mask)
{
        struct output *output = arg;

        (void)mask;
        loop_watch_set(output->watch, 0);
        loop_timer_set(output->step, 0);
}

static int open_regular(struct output *output, const char *path, bool resume, char *why,
                        size_t why_bytes)
{
        int r = sys_flock(output->file.fd);

        if (r == -EWOULDBLOCK)
                return errtext_set(why, why_bytes, -EBUSY, "%s: another process writes it", path);
        if (output->file.bytes && !resume)
                return errtext_set(why, why_bytes, -EEXIST,
                                   "%s has answers already: --resume continues it; remove it to "
                                   "begin anew",
                                   path);
        return 0;
}

/* A file of another kind: only pipes and sockets let a writer wait for long. */
static int open_other(struct output *output, const char *path, bool resume, char *why,
                      size_t why_bytes)
{
        struct sys_owner owner = { 0 };

        if (resume)
                return errtext_set(why, why_bytes, -EINVAL,
                                   "--resume needs a regular file as output, and %s is none",
                                   strcmp(path, "-") ? path : "stdout");
        output->file.bytes = 0;
        sys_owner(output->file.fd, &owner);
        if (!S_ISFIFO(owner.mode) && !S_ISSOCK(owner.mode))
                return 0;
        return loop_watch_new(output->loop, output->file.fd, LOOP_WRITE, on_writable, output,
                              &output->watch);
}

int output_open(struct output *output, const char *path, bool resume, struct loop *loop,
                struct loop_timer *step, char *why, size_t why_bytes)
{
        int r;

        *output = (struct output){ .loop = loop, .step = step };
        output->file.fd =
                strcmp(path, "-") ? sys_open(path, O_RDWR | O_CREAT, 0666) : STDOUT_FILENO;
        if (output->file.fd < 0)
                return errtext_set(why, why_bytes, output->file.fd, "%s: %s", path,
                                   strerror(-output->file.fd));
        /* Stdout may be in the middle of a file of others, and may be opened for appending. */
        r = strcmp(path, "-") ? sys_file_size(output->file.fd, &output->file.bytes) : -EINVAL;
        output->regular = !r;
        r = output->regular ? open_regular(output, path, resume, why, why_bytes)
                            : open_other(output, path, resume, why, why_bytes);
        if (r)
                output->file.fd = sys_close(output->file.fd);
        return r;
}

int output_close(struct output *output)
{
        int r = output->regular && output->file.fd >= 0 ? sys_sync(output->file.fd) : 0;

        output->watch = loop_watch_free(output->watch);
        output->file.fd = sys_close(output->file.fd);
        return r;
}

/* Writes a piece when it can be written without waiting; what cannot be watched never waits. */
static int write_piece(struct output *output, struct text line)
{
        size_t left = line.bytes - output->sent;
        ssize_t n;
        int r;

        if (output->watch) {
                left = left < PIECE_BYTES ? left : PIECE_BYTES;
                r = sys_writable(output->file.fd);
                if (!r)
                        r = loop_watch_set(output->watch, LOOP_WRITE);
                if (r <= 0)
                        return r;
        }
        n = sys_write(output->file.fd, line.at + output->sent, left);
        if (n <= 0)
                return n ? (int)n : -EIO;
        output->sent += (size_t)n;
        return 1;
}

int output_write(struct output *output, struct text line)
{
        const struct bytes whole = { .at = (char *)(uintptr_t)line.at, .count = line.bytes };
        int r = 1;

        if (output->regular) {
                r = batch_answers_append(&output->file, &whole);
                return r ? r : 1;
        }
        while (r > 0 && output->sent < line.bytes)
                r = write_piece(output, line);
        if (r > 0)
                output->sent = 0;
        return r;
}
