#include "bridge/offline/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errtext.h"
#include "base/sys.h"
#include "bridge/offline/nameless-file.h"

#define PIECE_BYTES 65536u

static void on_readable(void *arg, unsigned mask)
{
        struct input *input = arg;

        (void)mask;
        loop_watch_set(input->watch, 0);
        loop_timer_set(input->step, 0);
}

static int begin_copy(struct input *input, const char *folder, struct loop *loop)
{
        struct sys_owner owner = { 0 };

        input->from = input->fd;
        input->fd = nameless_file_make(folder);
        if (input->fd < 0)
                return input->fd;
        sys_owner(input->from, &owner);
        if (!S_ISFIFO(owner.mode) && !S_ISSOCK(owner.mode) && isatty(input->from) != 1)
                return 0;
        return loop_watch_new(loop, input->from, 0, on_readable, input, &input->watch);
}

int input_open(struct input *input, const char *path, const char *folder, struct loop *loop,
               struct loop_timer *step, char *why, size_t why_bytes)
{
        int r;

        *input = (struct input){ .from = -1, .step = step };
        input->fd = strcmp(path, "-") ? sys_open(path, O_RDONLY, 0) : STDIN_FILENO;
        if (input->fd < 0)
                return errtext_set(why, why_bytes, input->fd, "%s: %s", path, strerror(-input->fd));
        r = sys_file_size(input->fd, &input->bytes);
        input->ready = !r;
        if (r == -EINVAL)
                r = begin_copy(input, folder, loop);
        if (!r)
                return loop_timer_set(step, 0);
        input_close(input);
        return errtext_set(why, why_bytes, r, "%s: %s", path, strerror(-r));
}

void input_close(struct input *input)
{
        input->watch = loop_watch_free(input->watch);
        input->from = sys_close(input->from);
        if (input->fd >= 0)
                input->fd = sys_close(input->fd);
}

/* 1: so much was read; 0: it has ended; -EAGAIN: not now. */
static ssize_t read_piece(struct input *input, char *to)
{
        struct pollfd ask = { .fd = input->from, .events = POLLIN };

        if (input->watch && !poll(&ask, 1, 0))
                return -EAGAIN;
        return sys_read(input->from, to, PIECE_BYTES);
}

int input_step(struct input *input)
{
        char piece[PIECE_BYTES];
        ssize_t n;
        int r;

        if (input->ready)
                return 0;
        n = read_piece(input, piece);
        if (n == -EAGAIN)
                return loop_watch_set(input->watch, LOOP_READ);
        if (n < 0)
                return (int)n;
        r = nameless_file_write(input->fd, piece, (size_t)n, input->bytes);
        if (r)
                return r;
        input->bytes += (size_t)n;
        input->ready = !n;
        return loop_timer_set(input->step, 0);
}
