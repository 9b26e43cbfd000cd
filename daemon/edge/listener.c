#include "daemon/edge/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <samovar/protocol.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/edge/accept.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/errtext.h"

#define BACKLOG 128
/* In one turn; then the peers have theirs. */
#define ACCEPTS_MAX 16u
/* After accept fails for another reason, the pause before it is tried again. */
#define PAUSE_NS        100000000u
#define HOLDER_PAUSE_NS 10000000u
#define NS_PER_MS       UINT64_C(1000000)
#define LOCK_SUFFIX     ".lock"
/* The size of the lock file: "%-11d\n". */
#define PID_BYTES  12
#define OWNER_ONLY 0600u
/* What chown() takes for no group. */
#define NO_GROUP     UINT32_MAX
#define SUN_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

struct listener {
        struct edge *edge;
        struct loop_watch *watch;
        struct loop_timer *pause;
        char path[SUN_PATH_MAX + 1];
        /* As the user named it; valid only while the listener opens. */
        const char *group;
        uint32_t mode, gid;
        int fd;
        int lock_fd;
        uint32_t replace_ms;
        /* Closed for a moment when no descriptor is left. */
        int spare_fd;
        bool passed;          /* the service manager made the socket and keeps it */
        bool bound;           /* we bound the socket at `path` and will remove it ... */
        uint64_t identity[2]; /* ... if it is still this file */
};

int listener_default_path(char *ret_path, size_t path_bytes)
{
        const char *directory = getenv("XDG_RUNTIME_DIR");
        int count;

        if (!directory || directory[0] != '/')
                directory = "/run";
        count = snprintf(ret_path, path_bytes, "%s/%s", directory, SMV_SOCKET_PATH);
        if (count < 0 || (size_t)count >= path_bytes)
                return error_raise(-ENAMETOOLONG);
        return 0;
}

static int fail(int r, char *why, size_t why_bytes, const char *what, const char *path)
{
        snprintf(why, why_bytes, "%s %s: %s", what, path, strerror(-r));
        return error_raise(r);
}

/* A name of digits is a group number, even if a group has that name. */
static int find_group(struct listener *listener, char *why, size_t why_bytes)
{
        const char *name = listener->group;
        uint32_t gid = 0;
        int r = 0;

        if (!name)
                return 0;
        if (name[strspn(name, "0123456789")])
                r = sys_group(name, &gid);
        else
                for (; !r && *name; name++)
                        if (__builtin_mul_overflow(gid, 10u, &gid) ||
                            __builtin_add_overflow(gid, (uint32_t)(*name - '0'), &gid) ||
                            gid == NO_GROUP)
                                r = -ENOENT;
        if (r)
                return error_raise(errtext_set(
                        why, why_bytes, r, "socket_group is %s: %s", shown(listener->group).text,
                        r == -ENOENT ? "there is no such group" : strerror(-r)));
        listener->gid = gid;
        return 0;
}

/*
 * Gives others access to what we have just made: first sets its group, then its mode.  It uses a
 * descriptor, and checks that the file is still ours: a user that may write to the directory could
 * put a link to something else there.
 */
static int let_in(const struct listener *listener, const char *path, uint32_t type, uint32_t mode,
                  char *why, size_t why_bytes)
{
        struct sys_owner owner = { 0 };
        int r = 0, fd = sys_open(path, O_PATH | O_NOFOLLOW, 0);

        if (fd < 0)
                return fail(fd, why, why_bytes, "cannot open", path);
        r = sys_owner(fd, &owner);
        if (!r && (owner.uid != geteuid() || (owner.mode & S_IFMT) != type))
                r = -ESTALE;
        if (!r && listener->group)
                r = sys_set_group(fd, listener->gid);
        if (r == -EPERM) {
                snprintf(why, why_bytes,
                         "socket_group is %s, and a daemon that is neither root's nor in that "
                         "group cannot give it %s",
                         shown(listener->group).text, path);
                error_raise(r);
        } else if (r || (r = sys_set_mode(fd, mode))) {
                fail(r, why, why_bytes, "cannot set who may use", path);
        }
        sys_close(fd);
        return error_pass(r);
}

/* ACLs, or a directory further up, may make this wrong.  So it is only a warning. */
static void warn_if_barred(const struct listener *listener, const char *directory)
{
        uint32_t gid = listener->group ? listener->gid : getegid();
        int fd = sys_open(directory, O_PATH, 0);
        struct sys_owner owner = { 0 };
        bool known = fd >= 0 && !sys_owner(fd, &owner);
        bool by_group = listener->mode == 0660u && owner.gid == gid;

        if (known && !(owner.mode & (by_group ? S_IXGRP : S_IXOTH)))
                log_warn("directory_bars_the_way directory=%s mode=%04o socket_mode=%04o",
                         directory, owner.mode & 07777u, listener->mode);
        sys_close(fd);
}

/* Makes the last directory of the path only, not a whole tree. */
static int make_directory(const struct listener *listener, char *why, size_t why_bytes)
{
        const char *path = listener->path, *slash = strrchr(path, '/');
        uint32_t mode = listener->mode == 0666u ? 0755 : 0750;
        char directory[SUN_PATH_MAX + 1];
        int r;

        if (!slash || slash == path)
                return 0;
        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
        r = sys_mkdir(directory, 0700);
        if (r < 0 && r != -EEXIST)
                return fail(r, why, why_bytes, "cannot make the directory", directory);
        if (listener->mode == OWNER_ONLY)
                return 0;
        if (!r)
                return let_in(listener, directory, S_IFDIR, mode, why, why_bytes);
        warn_if_barred(listener, directory);
        return 0;
}

/* The process that holds the lock, as it has written there; 0: it has not yet. */
static int holder_of(int fd)
{
        char text[PID_BYTES + 1] = { 0 };
        long pid = sys_pread(fd, text, PID_BYTES, 0) > 0 ? strtol(text, NULL, 10) : 0;

        return pid > 0 && pid < INT_MAX ? (int)pid : 0;
}

/* Between the winner's flock and its write, one may read the pid of the earlier daemon. */
static void say_holder(int fd, const char *path, char *why, size_t why_bytes)
{
        int pid = holder_of(fd);

        if (pid > 0)
                snprintf(why, why_bytes, "%s: in use by process %d; --replace takes its place",
                         path, pid);
        else
                snprintf(why, why_bytes, "%s: in use by another samovard", path);
}

/*
 * The process that listens at the path, as the kernel knows it; 0: none listens there yet, or it is
 * not to be signalled.  The number in the lock file proves nothing: the file may be another
 * user's, and the number may be of another namespace.
 */
static int listening_process(const struct listener *listener)
{
        int fd = sys_socket_unix();
        uint32_t uid, gid;
        int32_t pid = 0;

        if (fd >= 0 && !sys_connect_unix(fd, listener->path))
                (void)sys_peer_cred(fd, &uid, &gid, &pid);
        sys_close(fd);
        return pid > 1 ? pid : 0;
}

/*
 * Asks the daemon that has the lock to stop, and waits until it has ended or `deadline_ns` has
 * passed.  The number may be of a process that has just ended, and be in use again.  So the kernel
 * is asked for the listening process once more when we have a descriptor of it.  Returns 0 if the
 * lock is ours.
 */
static int replace_holder(struct listener *listener, int fd, uint64_t deadline_ns, char *why,
                          size_t why_bytes)
{
        int pid = listening_process(listener), process = pid ? sys_process(pid) : -ESRCH;
        int r = sys_flock(fd);

        if (r == -EWOULDBLOCK && process >= 0 && listening_process(listener) == pid) {
                log_info("replacing pid=%d wait_ms=%u", pid, listener->replace_ms);
                r = sys_process_signal(process, SIGTERM);
                if (r < 0)
                        fail(r, why, why_bytes, "--replace: cannot stop the daemon at",
                             listener->path);
                else
                        r = sys_process_wait(process, deadline_ns);
                if (r == -ETIMEDOUT)
                        snprintf(why, why_bytes,
                                 "--replace: process %d at %s has not ended within %u ms", pid,
                                 listener->path, listener->replace_ms);
                r = r ? r : sys_flock(fd);
        }
        sys_close(process);
        return r;
}

/* Waits for another daemon to end, if that was asked for: 0, -EWOULDBLOCK or another error. */
static int lock(struct listener *listener, int fd, char *why, size_t why_bytes)
{
        uint64_t deadline_ns = sys_clock_ns() + listener->replace_ms * NS_PER_MS;
        int r;

        for (;;) {
                r = sys_flock(fd);
                if (r != -EWOULDBLOCK || !listener->replace_ms)
                        return r;
                r = replace_holder(listener, fd, deadline_ns, why, why_bytes);
                if (r != -EWOULDBLOCK || sys_clock_ns() >= deadline_ns)
                        return r;
                sys_sleep_ns(HOLDER_PAUSE_NS); /* it does not listen yet */
        }
}

static int take_lock(struct listener *listener, char *why, size_t why_bytes)
{
        char path[SUN_PATH_MAX + sizeof(LOCK_SUFFIX)], text[PID_BYTES + 1];
        ssize_t n;
        int fd, r;

        snprintf(path, sizeof(path), "%s" LOCK_SUFFIX, listener->path);
        fd = sys_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
        if (fd < 0)
                return fail(fd, why, why_bytes, "cannot open", path);
        *why = '\0';
        r = lock(listener, fd, why, why_bytes);
        if (r < 0) {
                if (r == -EWOULDBLOCK)
                        say_holder(fd, listener->path, why, why_bytes);
                else if (!*why)
                        fail(r, why, why_bytes, "cannot lock", path);
                sys_close(fd);
                return r == -EWOULDBLOCK ? LISTENER_E_HELD : error_raise(r);
        }
        /* Always writes the same number of bytes, so that nothing is left of a longer number. */
        snprintf(text, sizeof(text), "%-*d\n", PID_BYTES - 1, (int)getpid());
        n = sys_write(fd, text, PID_BYTES);
        if (n != PID_BYTES) {
                sys_close(fd);
                return fail(n < 0 ? (int)n : -ENOSPC, why, why_bytes, "cannot write", path);
        }
        listener->lock_fd = fd;
        return 0;
}

/*
 * Removes a socket that another daemon left, and nothing else. open() returns ENXIO for a socket,
 * and opens a file that was named by mistake.
 */
static int remove_stale(const char *path, char *why, size_t why_bytes)
{
        int r = sys_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);

        if (r == -ENOENT)
                return 0;
        if (r != -ENXIO) {
                if (r >= 0)
                        sys_close(r);
                return fail(-EEXIST, why, why_bytes, "there is a file that is not a socket at",
                            path);
        }
        r = sys_unlink(path);
        if (r < 0 && r != -ENOENT)
                return fail(r, why, why_bytes, "cannot remove the old socket", path);
        return 0;
}

/*
 * No descriptor is left.  The connection would stay in the queue and wake us for ever.  So the
 * spare descriptor is closed to accept it, and the client is told and closed.
 */
static int refuse_one(struct listener *listener)
{
        int fd;

        if (listener->spare_fd < 0)
                return -EMFILE;
        listener->spare_fd = sys_close(listener->spare_fd);
        fd = sys_accept(listener->fd);
        if (fd >= 0)
                accept_refuse_for_descriptors(listener->edge, fd);
        listener->spare_fd = sys_open("/dev/null", O_RDONLY, 0);
        return fd < 0 ? fd : 0;
}

static void on_pause_over(void *arg)
{
        struct listener *listener = arg;

        if (listener->spare_fd < 0)
                listener->spare_fd = sys_open("/dev/null", O_RDONLY, 0);
        if (loop_watch_set(listener->watch, LOOP_READ))
                loop_timer_set(listener->pause, PAUSE_NS);
}

static void pause_accepting(struct listener *listener, int r)
{
        log_limited(LOG_WARN, "accept_failed error=%s", strerror(-r));
        if (!loop_timer_set(listener->pause, PAUSE_NS))
                loop_watch_set(listener->watch, 0);
}

static void on_connection(void *arg, unsigned mask)
{
        struct listener *listener = arg;

        (void)mask;
        for (uint32_t i = 0; i < ACCEPTS_MAX && listener->watch; i++) {
                int r = sys_accept(listener->fd);

                if (r >= 0) {
                        accept_peer(listener->edge, r);
                        continue;
                }
                if (r == -EMFILE || r == -ENFILE)
                        r = refuse_one(listener);
                if (r == -EAGAIN)
                        return;
                if (r < 0 && r != -ECONNABORTED) {
                        pause_accepting(listener, r);
                        return;
                }
        }
}

/* Makes sure that the path is ours; nothing listens there yet. */
static int claim_path(struct listener *listener, char *why, size_t why_bytes)
{
        int r;

        r = find_group(listener, why, why_bytes);
        if (!r)
                r = make_directory(listener, why, why_bytes);
        if (!r)
                r = take_lock(listener, why, why_bytes);
        if (!r)
                r = remove_stale(listener->path, why, why_bytes);
        return r < 0 ? error_pass(r) : r;
}

static int check_passed(struct listener *listener, char *why, size_t why_bytes)
{
        int r = sys_unix_listener(listener->fd, listener->path, sizeof(listener->path));

        if (!r)
                r = sys_set_nonblocking(listener->fd);
        if (r < 0)
                snprintf(
                        why, why_bytes,
                        "descriptor %d, passed by the service manager, is not a Unix stream socket "
                        "that listens (ListenStream= with a path): %s",
                        listener->fd, strerror(-r));
        return r ? error_raise(r) : 0;
}

static int check_path(const char *path, char *why, size_t why_bytes)
{
        if (path[0] && strlen(path) <= SUN_PATH_MAX)
                return 0;
        snprintf(why, why_bytes, "the path of the socket has %zu bytes; it may have 1 to %zu: %s",
                 strlen(path), SUN_PATH_MAX, path);
        return error_raise(path[0] ? -ENAMETOOLONG : -EINVAL);
}

int listener_new(const struct listener_conf *conf, struct listener **ret_listener, char *why,
                 size_t why_bytes)
{
        struct listener *listener;
        int r = conf->passed_fd < 0 ? check_path(conf->path, why, why_bytes) : 0;

        if (r)
                return error_pass(r);
        listener = calloc(1, sizeof(*listener));
        if (!listener)
                return error_raise(-ENOMEM);
        listener->fd = conf->passed_fd;
        listener->passed = conf->passed_fd >= 0;
        listener->lock_fd = listener->spare_fd = -1;
        listener->mode = conf->mode;
        listener->group = conf->group;
        listener->replace_ms = conf->replace_ms;
        if (listener->passed) {
                r = check_passed(listener, why, why_bytes);
        } else {
                snprintf(listener->path, sizeof(listener->path), "%s", conf->path);
                r = claim_path(listener, why, why_bytes);
        }
        if (r) {
                sys_close(listener->lock_fd);
                listener_close(listener);
                return r < 0 ? error_pass(r) : r;
        }
        why[0] = '\0';
        *ret_listener = listener;
        return 0;
}

static int bind_and_listen(struct listener *listener, char *why, size_t why_bytes)
{
        int r;

        listener->fd = sys_socket_unix();
        if (listener->fd < 0)
                return error_raise(listener->fd);
        r = sys_bind_unix(listener->fd, listener->path, OWNER_ONLY);
        if (r < 0)
                return fail(r, why, why_bytes, "cannot bind", listener->path);
        listener->bound = !sys_identity(listener->path, listener->identity);
        if (listener->mode != OWNER_ONLY)
                r = let_in(listener, listener->path, S_IFSOCK, listener->mode, why, why_bytes);
        if (r < 0)
                return error_pass(r);
        r = sys_listen(listener->fd, BACKLOG);
        return r < 0 ? fail(r, why, why_bytes, "cannot listen at", listener->path) : 0;
}

int listener_start(struct listener *listener, struct edge *edge, char *why, size_t why_bytes)
{
        int r = 0;

        snprintf(why, why_bytes, "cannot listen");
        listener->edge = edge;
        listener->spare_fd = sys_open("/dev/null", O_RDONLY, 0);
        if (listener->spare_fd < 0)
                return error_raise(listener->spare_fd);
        if (!listener->passed)
                r = bind_and_listen(listener, why, why_bytes);
        if (!r)
                r = loop_timer_new(edge->loop, on_pause_over, listener, &listener->pause);
        if (!r)
                r = loop_watch_new(edge->loop, listener->fd, LOOP_READ, on_connection, listener,
                                   &listener->watch);
        if (r)
                return error_pass(r);
        why[0] = '\0';
        return 0;
}

const char *listener_path(const struct listener *listener)
{
        return listener->path;
}

bool listener_is_control_of(const struct listener *listener, const struct listener *other)
{
        size_t bytes = strlen(other->path);

        return !strncmp(listener->path, other->path, bytes) &&
               !strcmp(listener->path + bytes, SMV_CONTROL_SUFFIX);
}

/* Removes the socket at the path if it is still ours. */
static void remove_ours(struct listener *listener)
{
        uint64_t there[2];

        if (listener->bound && !sys_identity(listener->path, there) &&
            !memcmp(there, listener->identity, sizeof(there)))
                sys_unlink(listener->path);
        listener->bound = false;
}

void listener_stop(struct listener *listener)
{
        listener->watch = loop_watch_free(listener->watch);
        listener->pause = loop_timer_free(listener->pause);
        remove_ours(listener);
        listener->fd = sys_close(listener->fd);
        listener->spare_fd = sys_close(listener->spare_fd);
}

void listener_drain(struct listener *listener)
{
        if (listener->passed)
                listener_stop(listener);
}

/* The descriptor of the lock stays open: the lock is free only when the process ends. */
struct listener *listener_close(struct listener *listener)
{
        if (!listener)
                return NULL;
        listener_stop(listener);
        free(listener);
        return NULL;
}
