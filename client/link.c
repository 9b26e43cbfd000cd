#include "client/link.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <samovar/protocol.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES_MIN 4096u
#define IN_BYTES       65536u

uint64_t link_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t link_deadline(int timeout_ms)
{
        return timeout_ms < 0 ? LINK_FOREVER : link_now() + (uint64_t)timeout_ms * 1000000u;
}

/* The timeout for poll().  Rounded up, so that poll() does not return early and make us spin. */
static int left_ms(uint64_t deadline)
{
        uint64_t now, ms;

        if (deadline == LINK_FOREVER)
                return -1;
        now = link_now();
        if (now >= deadline)
                return 0;
        ms = (deadline - now + 999999u) / 1000000u;
        return ms > INT_MAX ? INT_MAX : (int)ms;
}

void link_init(struct link *link, int fd)
{
        *link = (struct link){ .fd = fd, .frame_max = SMV_FRAME_BYTES_MAX };
}

void link_deinit(struct link *link)
{
        if (link->fd >= 0)
                close(link->fd);
        link->fd = -1;
        link_drop_fds(link);
        bytes_deinit(&link->in);
        bytes_deinit(&link->out);
}

int link_connect(const char *path, uint64_t deadline)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd, left, r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;

        /*
         * EAGAIN: the daemon's backlog is full.  poll() cannot wait for free space, so try again.
         */
        for (;;) {
                if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
                        return fd;
                r = -errno;
                left = left_ms(deadline);
                if (r == -EAGAIN && left)
                        poll(NULL, 0, left < 0 || left > 10 ? 10 : left);
                else if (r == -EAGAIN)
                        r = -ETIMEDOUT;
                if (r != -EAGAIN && r != -EINTR)
                        break;
        }
        close(fd);
        return r;
}

int64_t link_peer_uid(const struct link *link)
{
        struct ucred peer;
        socklen_t bytes = sizeof(peer);

        if (getsockopt(link->fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0)
                return -errno;
        return peer.uid;
}

void link_lose(struct link *link, int error, size_t at)
{
        assert(at >= link->start && at <= link->in.count);

        link->in.count = at;
        if (link->scan > at)
                link->scan = at;
        link->out.count = link->sent = 0;
        if (link->lost)
                return;
        link->lost = error;
        /* The descriptor stays open: poll() on it returns, so the caller calls smv_next(). */
        shutdown(link->fd, SHUT_RDWR);
}

void link_drop(struct link *link, size_t at)
{
        assert(at >= link->start && at <= link->in.count);

        link->start = at;
        if (link->scan < at)
                link->scan = at;
        if (at == link->in.count)
                link->start = link->scan = link->in.count = 0;
}

void link_flush(struct link *link)
{
        ssize_t n;

        while (!link->lost && !link->mute && link->sent < link->out.count) {
                n = send(link->fd, link->out.at + link->sent, link->out.count - link->sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n >= 0)
                        link->sent += (size_t)n;
                else if (errno == EAGAIN)
                        return;
                else if (errno != EINTR)
                        link->mute = true;
        }
        link->out.count = link->sent = 0;
}

int link_kick(struct link *link)
{
        int r = bytes_add(&link->out, "\0\0\0", 4);

        if (!r)
                link_flush(link);
        return r;
}

void link_take_fds(struct link *link)
{
        link->takes_fds = true;
}

void link_drop_fds(struct link *link)
{
        link->takes_fds = false;
        while (link->fd_count)
                close(link->fds[--link->fd_count]);
}

static void keep_fds(struct link *link, const struct cmsghdr *header)
{
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int fd;

        for (size_t i = 0; i < count; i++) {
                memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
                if (link->fd_count < LINK_FDS_MAX)
                        link->fds[link->fd_count++] = fd;
                else
                        close(fd);
        }
}

/*
 * The kernel has closed the descriptors for which there was no space, in the control buffer or
 * in the process's table.  It delivers the first ones that were sent.  So MSG_CTRUNC needs no
 * handling: the code that looks for a descriptor sees that it is missing.
 */
static ssize_t receive_fds(struct link *link, void *to, size_t room)
{
        union {
                struct cmsghdr first;
                char bytes[CMSG_SPACE(LINK_FDS_MAX * sizeof(int))];
        } control;
        struct iovec part = { to, room };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        n = recvmsg(link->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return n;
        for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h))
                if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
                        keep_fds(link, h);
        return n;
}

/* Without a control buffer the kernel drops the descriptors that come. */
static ssize_t receive(struct link *link, void *to, size_t room)
{
        if (link->takes_fds)
                return receive_fds(link, to, room);
        return recv(link->fd, to, room, MSG_DONTWAIT);
}

/* Makes at least READ_BYTES_MIN free at the end of `in`: by moving the bytes, else by growing. */
static int make_room(struct link *link)
{
        struct bytes *in = &link->in;

        if (in->size - in->count >= READ_BYTES_MIN)
                return 0;
        if (link->start) {
                memmove(in->at, in->at + link->start, in->count - link->start);
                in->count -= link->start;
                link->scan -= link->start;
                link->start = 0;
        }
        if (in->size - in->count >= READ_BYTES_MIN)
                return 0;
        if (in->count >= LINK_IN_MAX) {
                link_lose(link, -ENOBUFS, in->count);
                return 0;
        }
        return bytes_reserve(in, in->size ? in->size : IN_BYTES);
}

/* 1: bytes came, or the link is lost.  0: there is nothing to read.  Or -ENOMEM. */
static int fill(struct link *link)
{
        struct bytes *in = &link->in;
        ssize_t n;
        int r;

        r = make_room(link);
        if (r)
                return r;
        if (link->lost)
                return 1;

        do
                n = receive(link, in->at + in->count, in->size - in->count);
        while (n < 0 && errno == EINTR);

        if (n > 0)
                in->count += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
                return 0;
        else
                link_lose(link, n < 0 ? -errno : -ENOTCONN, in->count);
        return 1;
}

int link_turn(struct link *link, uint64_t deadline)
{
        struct pollfd pfd = { .fd = link->fd };
        int left, r;

        for (;;) {
                link_flush(link);
                r = link->lost ? 1 : fill(link);
                if (r)
                        return r;

                left = left_ms(deadline);
                if (!left)
                        return 0;
                pfd.events = (short)(POLLIN | (link->out.count ? POLLOUT : 0));
                /* EINTR and errors: the next turn handles them. */
                poll(&pfd, 1, left);
        }
}

int link_frame(struct link *link, size_t at, const char **ret_body, size_t *ret_bytes)
{
        uint32_t length;

        if (link->in.count - at < sizeof(length))
                return 0;
        memcpy(&length, link->in.at + at, sizeof(length));
        length = le32toh(length);
        if (length > link->frame_max) {
                link_lose(link, -EPROTO, at);
                return 0;
        }
        if (link->in.count - at - sizeof(length) < length)
                return 0;
        *ret_body = link->in.at + at + sizeof(length);
        *ret_bytes = length;
        return 1;
}
