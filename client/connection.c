#include "client/connection.h"

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

uint64_t monotonic_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t deadline_after(int timeout_ms)
{
        return timeout_ms < 0 ? DEADLINE_NEVER : monotonic_ns() + (uint64_t)timeout_ms * 1000000u;
}

/* The timeout for poll().  Rounded up, so that poll() does not return early and make us spin. */
static int remaining_ms(uint64_t deadline)
{
        uint64_t now, ms;

        if (deadline == DEADLINE_NEVER)
                return -1;
        now = monotonic_ns();
        if (now >= deadline)
                return 0;
        ms = (deadline - now + 999999u) / 1000000u;
        return ms > INT_MAX ? INT_MAX : (int)ms;
}

bool is_before(uint32_t ms, uint64_t deadline)
{
        return monotonic_ns() + ms * UINT64_C(1000000) < deadline;
}

void sleep_for(uint32_t ms)
{
        uint64_t end = monotonic_ns() + ms * UINT64_C(1000000);
        int left;

        while ((left = remaining_ms(end)))
                poll(NULL, 0, left);
}

void connection_init(struct connection *connection, int fd)
{
        *connection = (struct connection){ .fd = fd, .frame_max = SMV_FRAME_BYTES_MAX };
}

void connection_deinit(struct connection *connection)
{
        if (connection->fd >= 0)
                close(connection->fd);
        connection->fd = -1;
        connection_close_fds(connection);
        bytes_deinit(&connection->in);
        bytes_deinit(&connection->out);
}

int connection_dial(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd, r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;

        do
                r = connect(fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
        while (r == -EINTR);
        if (!r)
                return fd;
        close(fd);
        return r;
}

int64_t connection_peer_uid(const struct connection *connection)
{
        struct ucred peer;
        socklen_t bytes = sizeof(peer);

        if (getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0)
                return -errno;
        return peer.uid;
}

void connection_set_lost(struct connection *connection, int error, size_t at)
{
        assert(at >= connection->start && at <= connection->in.count);

        connection->in.count = at;
        if (connection->scan > at)
                connection->scan = at;
        if (connection->kept > at)
                connection->kept = at;
        connection->out.count = connection->sent = 0;
        if (connection->lost)
                return;
        connection->lost = error;
        /* The descriptor stays open: poll() on it returns, so the caller calls smv_next(). */
        shutdown(connection->fd, SHUT_RDWR);
}

void connection_consume(struct connection *connection, size_t at)
{
        assert(at >= connection->start && at <= connection->in.count);

        connection->start = at;
        if (connection->kept < at)
                connection->kept = at;
        if (connection->scan < at)
                connection->scan = at;
        if (at == connection->in.count)
                connection->start = connection->kept = connection->scan = connection->in.count = 0;
}

void connection_consume_scanned(struct connection *connection)
{
        if (!connection_has_kept(connection))
                connection_consume(connection, connection->scan);
}

void connection_keep_scanned(struct connection *connection)
{
        connection->kept = connection->scan;
}

bool connection_has_kept(const struct connection *connection)
{
        assert(connection->kept >= connection->start && connection->kept <= connection->scan);

        return connection->kept > connection->start;
}

/* So that `out` does not grow although it is never empty: moves the unsent bytes to its front. */
static void drop_sent(struct connection *connection)
{
        struct bytes *out = &connection->out;

        if (connection->sent < out->count - connection->sent)
                return;
        out->count -= connection->sent;
        memmove(out->at, out->at + connection->sent, out->count);
        connection->sent = 0;
}

void connection_flush(struct connection *connection)
{
        ssize_t n;

        while (!connection->lost && !connection->mute && connection->sent < connection->out.count) {
                n = send(connection->fd, connection->out.at + connection->sent,
                         connection->out.count - connection->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n >= 0)
                        connection->sent += (size_t)n;
                else if (errno == EAGAIN)
                        return drop_sent(connection);
                else if (errno != EINTR)
                        connection->mute = true;
        }
        connection->out.count = connection->sent = 0;
}

size_t connection_unsent(const struct connection *connection)
{
        return connection->out.count - connection->sent;
}

int connection_send_empty(struct connection *connection)
{
        int r = bytes_add(&connection->out, "\0\0\0", 4);

        if (!r)
                connection_flush(connection);
        return r;
}

void connection_accept_fds(struct connection *connection)
{
        connection->takes_fds = true;
}

void connection_close_fds(struct connection *connection)
{
        connection->takes_fds = false;
        while (connection->fd_count)
                close(connection->fds[--connection->fd_count]);
}

static void store_fds(struct connection *connection, const struct cmsghdr *header)
{
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int fd;

        for (size_t i = 0; i < count; i++) {
                memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
                if (connection->fd_count < CONNECTION_FDS_MAX)
                        connection->fds[connection->fd_count++] = fd;
                else
                        close(fd);
        }
}

/*
 * The kernel has closed the descriptors for which there was no space, in the control buffer or
 * in the process's table.  It delivers the first ones that were sent.  So MSG_CTRUNC needs no
 * handling: the code that looks for a descriptor sees that it is missing.
 */
static ssize_t receive_fds(struct connection *connection, void *to, size_t size)
{
        union {
                struct cmsghdr first;
                char bytes[CMSG_SPACE(CONNECTION_FDS_MAX * sizeof(int))];
        } control;
        struct iovec part = { to, size };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        n = recvmsg(connection->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return n;
        for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h))
                if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
                        store_fds(connection, h);
        return n;
}

/* Without a control buffer the kernel drops the descriptors that come. */
static ssize_t receive(struct connection *connection, void *to, size_t size)
{
        if (connection->takes_fds)
                return receive_fds(connection, to, size);
        return recv(connection->fd, to, size, MSG_DONTWAIT);
}

/* Makes at least READ_BYTES_MIN free at the end of `in`: by moving the bytes, else by growing. */
static int make_space(struct connection *connection)
{
        struct bytes *in = &connection->in;

        if (in->size - in->count >= READ_BYTES_MIN)
                return 0;
        if (connection->start) {
                memmove(in->at, in->at + connection->start, in->count - connection->start);
                in->count -= connection->start;
                connection->kept -= connection->start;
                connection->scan -= connection->start;
                connection->start = 0;
        }
        if (in->size - in->count >= READ_BYTES_MIN)
                return 0;
        if (in->count >= CONNECTION_IN_MAX) {
                connection_set_lost(connection, -ENOBUFS, in->count);
                return 0;
        }
        return bytes_reserve(in, in->size ? in->size : IN_BYTES);
}

/* 1: bytes came, or the connection is lost.  0: there is nothing to read.  Or -ENOMEM. */
static int fill(struct connection *connection)
{
        struct bytes *in = &connection->in;
        ssize_t n;
        int r;

        r = make_space(connection);
        if (r)
                return r;
        if (connection->lost)
                return 1;

        do
                n = receive(connection, in->at + in->count, in->size - in->count);
        while (n < 0 && errno == EINTR);

        if (n > 0)
                in->count += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
                return 0;
        else
                connection_set_lost(connection, n < 0 ? -errno : -ENOTCONN, in->count);
        return 1;
}

int connection_poll(struct connection *connection, uint64_t deadline)
{
        struct pollfd pfd = { .fd = connection->fd };
        int left, r;

        for (;;) {
                connection_flush(connection);
                r = connection->lost ? 1 : fill(connection);
                if (r)
                        return r;

                left = remaining_ms(deadline);
                if (!left)
                        return 0;
                pfd.events = (short)(POLLIN | (connection->out.count ? POLLOUT : 0));
                /* EINTR and errors: the next turn handles them. */
                poll(&pfd, 1, left);
        }
}

int connection_frame(struct connection *connection, size_t at, const char **ret_body,
                     size_t *ret_bytes)
{
        uint32_t length;

        if (connection->in.count - at < sizeof(length))
                return 0;
        memcpy(&length, connection->in.at + at, sizeof(length));
        length = le32toh(length);
        if (length > connection->frame_max) {
                connection_set_lost(connection, -EPROTO, at);
                return 0;
        }
        if (connection->in.count - at - sizeof(length) < length)
                return 0;
        *ret_body = connection->in.at + at + sizeof(length);
        *ret_bytes = length;
        return 1;
}
