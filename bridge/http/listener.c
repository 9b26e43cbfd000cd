#include "bridge/http/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/sys.h"
#include "bridge/http/answer.h"
#include "bridge/http/authority.h"
#include "bridge/http/connection.h"
#include "bridge/http/policy.h"

#define BACKLOG 128
/* In one turn; then the connections have theirs. */
#define ACCEPTS_MAX 16u
/* After accept fails for another reason, the pause before it is tried again. */
#define PAUSE_NS     100000000u
#define LOCK_SUFFIX  ".lock"
#define SUN_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

struct http_listener {
        struct http_server *server;
        struct list_head link;
        struct loop_watch *watch;
        struct loop_timer *pause;
        int fd;
        int spare_fd; /* closed for a moment when no descriptor is left */
        int lock_fd;
        bool is_unix;
        char path[SUN_PATH_MAX + 1]; /* "": we made no file */
        uint64_t identity[2];        /* of the file at `path`, while it is ours */
};

/*
 * No descriptor is left, so the kernel does not even look for a connection.  With the spare one it
 * does: 0, or what accept says, as -EAGAIN.
 */
static int refuse_one(struct http_listener *listener)
{
        char text[256], rest[4096];
        int fd;

        listener->spare_fd = sys_close(listener->spare_fd);
        fd = sys_accept(listener->fd);
        if (fd >= 0) {
                listener->server->counts.refusals[HTTP_OUT_OF_RESOURCES]++;
                (void)sys_send(fd, text, http_answer_busy(text, sizeof(text)));
                (void)sys_shutdown_sending(fd);
                (void)sys_read(fd, rest, sizeof(rest)); /* else the answer may be lost */
                sys_close(fd);
        }
        listener->spare_fd = sys_open("/dev/null", O_RDONLY, 0);
        return fd < 0 ? fd : 0;
}

static void pause_accepting(struct http_listener *listener, int r)
{
        log_limited(LOG_WARN, "http_accept_pauses error=%s", strerror(-r));
        (void)loop_watch_set(listener->watch, 0);
        if (loop_timer_set(listener->pause, PAUSE_NS))
                (void)loop_watch_set(listener->watch, LOOP_READ);
}

static void on_pause_over(void *arg)
{
        struct http_listener *listener = arg;

        if (listener->spare_fd < 0)
                listener->spare_fd = sys_open("/dev/null", O_RDONLY, 0);
        if (loop_watch_set(listener->watch, LOOP_READ))
                loop_timer_set(listener->pause, PAUSE_NS);
}

/* An error of one connection, or of the network below it: the next one may be good. */
static bool is_of_connection(int r)
{
        return r == -ECONNABORTED || r == -EPROTO || r == -EPERM || r == -ENETDOWN ||
               r == -EHOSTDOWN || r == -EHOSTUNREACH || r == -ENETUNREACH || r == -ENOPROTOOPT;
}

/* 0: go on; -EAGAIN: none is there; another error: accepting must pause. */
static int accept_one(struct http_listener *listener)
{
        int fd = sys_accept(listener->fd), r;

        if ((fd == -EMFILE || fd == -ENFILE) && listener->spare_fd >= 0)
                return refuse_one(listener);
        if (fd < 0)
                return is_of_connection(fd) ? 0 : fd;
        r = http_connection_new(listener->server, fd, listener->is_unix);
        if (r)
                log_limited(LOG_WARN, "http_connection_lost error=%s at=%s", strerror(-r),
                            error_trail());
        return 0;
}

static void on_connection(void *arg, unsigned mask)
{
        struct http_listener *listener = arg;
        int r = 0;

        (void)mask;
        for (uint32_t i = 0; i < ACCEPTS_MAX && !r; i++)
                r = accept_one(listener);
        if (r && r != -EAGAIN)
                pause_accepting(listener, r);
}

static void close_one(struct http_listener *listener)
{
        uint64_t there[2];

        list_remove(&listener->link);
        loop_watch_free(listener->watch);
        loop_timer_free(listener->pause);
        if (listener->identity[1] && !sys_identity(listener->path, there) &&
            !memcmp(there, listener->identity, sizeof(there)))
                sys_unlink(listener->path);
        sys_close(listener->fd);
        sys_close(listener->spare_fd);
        sys_close(listener->lock_fd);
        free(listener);
}

static int make(struct http_server *server, struct http_listener **ret_listener, char *why,
                size_t why_bytes)
{
        struct http_listener *listener = calloc(1, sizeof(*listener));

        if (!listener)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "there is no memory to listen"));
        listener->server = server;
        listener->fd = listener->spare_fd = listener->lock_fd = -1;
        list_push_back(&server->listeners, &listener->link);
        *ret_listener = listener;
        return 0;
}

/* Begins to accept; on an error the listener is closed. */
static int start(struct http_listener *listener, const char *where, char *why, size_t why_bytes)
{
        struct loop *loop = listener->server->loop;
        int r = 0;

        listener->spare_fd = sys_open("/dev/null", O_RDONLY, 0);
        if (listener->spare_fd < 0)
                r = error_raise(listener->spare_fd);
        if (!r)
                r = loop_timer_new(loop, on_pause_over, listener, &listener->pause);
        if (!r)
                r = loop_watch_new(loop, listener->fd, LOOP_READ, on_connection, listener,
                                   &listener->watch);
        if (!r)
                return 0;
        close_one(listener);
        return error_pass(
                errtext_set(why, why_bytes, r, "cannot listen at %s: %s", where, strerror(-r)));
}

static bool is_loopback(const struct sockaddr_storage *at)
{
        const struct sockaddr_in *v4 = (const void *)at;
        const struct sockaddr_in6 *v6 = (const void *)at;

        if (at->ss_family == AF_INET)
                return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
        return at->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static uint16_t port_of(const struct sockaddr_storage *at)
{
        const struct sockaddr_in *v4 = (const void *)at;
        const struct sockaddr_in6 *v6 = (const void *)at;

        return ntohs(at->ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

/* "127.0.0.1:8080", "[::1]:8080"; no names, because those may change. */
static bool read_address(const char *text, struct sockaddr_storage *ret_at)
{
        struct http_authority authority;
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
        size_t bytes;

        *ret_at = (struct sockaddr_storage){ 0 };
        if (!http_authority_read(text, strlen(text), &authority) || authority.port < 0)
                return false;
        v4.sin_port = v6.sin6_port = htons((uint16_t)authority.port);
        if (inet_pton(AF_INET, authority.host, &v4.sin_addr) == 1) {
                memcpy(ret_at, &v4, sizeof(v4));
                return true;
        }
        bytes = strlen(authority.host);
        if (authority.host[0] != '[')
                return false;
        authority.host[bytes - 1] = '\0';
        if (inet_pton(AF_INET6, authority.host + 1, &v6.sin6_addr) != 1)
                return false;
        memcpy(ret_at, &v6, sizeof(v6));
        return true;
}

static int refuse_public(const char *where, char *why, size_t why_bytes)
{
        return error_raise(errtext_set(
                why, why_bytes, -EACCES,
                "%s is no loopback address, and there is no key file: other machines could ask "
                "without a key; name a file of keys, or listen at 127.0.0.1",
                where));
}

static int bind_tcp(struct http_listener *listener, const struct sockaddr_storage *at)
{
        int r;

        listener->fd = sys_socket_tcp(at->ss_family);
        if (listener->fd < 0)
                return error_raise(listener->fd);
        r = sys_bind(listener->fd, at);
        if (!r)
                r = sys_listen(listener->fd, BACKLOG);
        return r ? error_raise(r) : 0;
}

int http_listener_tcp(struct http_server *server, const char *address, uint16_t *ret_port,
                      char *why, size_t why_bytes)
{
        struct http_listener *listener;
        struct sockaddr_storage at;
        int r;

        if (!read_address(address, &at))
                return error_raise(errtext_set(
                        why, why_bytes, -EINVAL,
                        "'%s' is no address to listen at; it must be as 127.0.0.1:8080 or "
                        "[::1]:8080",
                        shown(address).text));
        if (!is_loopback(&at) && !http_policy_has_keys(server->policy))
                return refuse_public(address, why, why_bytes);
        r = make(server, &listener, why, why_bytes);
        if (r)
                return error_pass(r);
        r = bind_tcp(listener, &at);
        if (!r && ret_port)
                r = sys_socket_ends(listener->fd, &at, NULL);
        if (r) {
                close_one(listener);
                return error_pass(errtext_set(why, why_bytes, r, "cannot listen at %s: %s", address,
                                              strerror(-r)));
        }
        if (ret_port)
                *ret_port = port_of(&at);
        r = start(listener, address, why, why_bytes);
        return error_pass(r);
}

/*
 * Only the server that holds the lock may remove a socket that is there.  The lock file is never
 * removed: its lock is free when its process ends.
 */
static int take_lock(struct http_listener *listener, char *why, size_t why_bytes)
{
        char path[SUN_PATH_MAX + sizeof(LOCK_SUFFIX)];
        int r;

        snprintf(path, sizeof(path), "%s" LOCK_SUFFIX, listener->path);
        listener->lock_fd = sys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
        if (listener->lock_fd < 0)
                return error_raise(errtext_set(why, why_bytes, listener->lock_fd,
                                               "cannot open %s: %s", path,
                                               strerror(-listener->lock_fd)));
        r = sys_flock(listener->lock_fd);
        if (r == -EWOULDBLOCK)
                return error_raise(errtext_set(why, why_bytes, -EADDRINUSE,
                                               "%s is in use by another server", listener->path));
        return r ? error_raise(
                           errtext_set(why, why_bytes, r, "cannot lock %s: %s", path, strerror(-r)))
                 : 0;
}

/* open() returns ENXIO for a socket, and opens a file that was named by mistake. */
static int remove_stale(const char *path, char *why, size_t why_bytes)
{
        int fd = sys_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0), r;

        if (fd == -ENOENT)
                return 0;
        if (fd != -ENXIO) {
                if (fd >= 0)
                        sys_close(fd);
                return error_raise(errtext_set(why, why_bytes, -EEXIST,
                                               "there is a file that is not a socket at %s", path));
        }
        r = sys_unlink(path);
        if (!r || r == -ENOENT)
                return 0;
        return error_raise(errtext_set(why, why_bytes, r, "cannot remove the old socket %s: %s",
                                       path, strerror(-r)));
}

static int bind_unix(struct http_listener *listener, unsigned mode, char *why, size_t why_bytes)
{
        int r = take_lock(listener, why, why_bytes);

        if (!r)
                r = remove_stale(listener->path, why, why_bytes);
        if (r)
                return error_pass(r);
        listener->fd = sys_socket_unix();
        r = listener->fd < 0 ? listener->fd : sys_bind_unix(listener->fd, listener->path, mode);
        if (!r)
                r = sys_identity(listener->path, listener->identity);
        if (!r)
                r = sys_listen(listener->fd, BACKLOG);
        return r ? error_raise(errtext_set(why, why_bytes, r, "cannot listen at %s: %s",
                                           listener->path, strerror(-r)))
                 : 0;
}

int http_listener_unix(struct http_server *server, const char *path, unsigned mode, char *why,
                       size_t why_bytes)
{
        struct http_listener *listener;
        int r;

        if (!*path || strlen(path) > SUN_PATH_MAX)
                return error_raise(
                        errtext_set(why, why_bytes, -ENAMETOOLONG,
                                    "the path of a socket has %zu bytes; it must have 1 to %zu",
                                    strlen(path), SUN_PATH_MAX));
        r = make(server, &listener, why, why_bytes);
        if (r)
                return error_pass(r);
        listener->is_unix = true;
        snprintf(listener->path, sizeof(listener->path), "%s", path);
        r = bind_unix(listener, mode, why, why_bytes);
        if (r) {
                close_one(listener);
                return error_pass(r);
        }
        r = start(listener, path, why, why_bytes);
        return error_pass(r);
}

/* A kernel that does not say it counts as the same network. */
static bool is_of_another_network(int fd)
{
        uint64_t ours = 0, theirs = 0;
        int own = sys_socket_datagram(), r;

        if (own < 0)
                return false;
        r = sys_socket_network(own, &ours);
        if (!r)
                r = sys_socket_network(fd, &theirs);
        sys_close(own);
        return !r && ours != theirs;
}

/* Is a peer over TCP let in by its user?  Then we must be where its socket can be found. */
static int check_network(const struct http_listener *listener, char *why, size_t why_bytes)
{
        if (!http_policy_asks_for_users(listener->server->policy) ||
            !is_of_another_network(listener->fd))
                return 0;
        return error_raise(errtext_set(
                why, why_bytes, -EACCES,
                "the passed socket is of another network namespace (PrivateNetwork=), where the "
                "users of its clients cannot be found: name a file of keys with the setting keys, "
                "or let all users of the machine in with any_local_user"));
}

/* 0: it is a socket that we can serve. */
static int check_passed(struct http_listener *listener, char *why, size_t why_bytes)
{
        struct sockaddr_storage at;
        int r = sys_is_listening(listener->fd);

        if (r > 0)
                r = sys_socket_ends(listener->fd, &at, NULL);
        else if (!r)
                r = -EINVAL;
        if (!r && at.ss_family != AF_UNIX && at.ss_family != AF_INET && at.ss_family != AF_INET6)
                r = -EINVAL;
        if (!r)
                r = sys_set_nonblocking(listener->fd);
        if (!r)
                r = sys_set_close_on_exec(listener->fd);
        if (r)
                return error_raise(
                        errtext_set(why, why_bytes, r,
                                    "descriptor %d is no TCP or Unix stream socket that listens",
                                    listener->fd));
        listener->is_unix = at.ss_family == AF_UNIX;
        if (!listener->is_unix && !is_loopback(&at) &&
            !http_policy_has_keys(listener->server->policy))
                return refuse_public("the address of the passed socket", why, why_bytes);
        return listener->is_unix ? 0 : check_network(listener, why, why_bytes);
}

int http_listener_fd(struct http_server *server, int fd, char *why, size_t why_bytes)
{
        struct http_listener *listener;
        int r = make(server, &listener, why, why_bytes);

        if (r) {
                sys_close(fd);
                return error_pass(r);
        }
        listener->fd = fd;
        r = check_passed(listener, why, why_bytes);
        if (r) {
                close_one(listener);
                return error_pass(r);
        }
        r = start(listener, "the passed socket", why, why_bytes);
        return error_pass(r);
}

void http_listeners_close(struct http_server *server)
{
        while (!list_is_empty(&server->listeners))
                close_one(LIST_ENTRY(list_first(&server->listeners), struct http_listener, link));
}
