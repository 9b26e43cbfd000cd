/*
 * The one door to the operating system.
 *
 * Every system call of the daemon that can fail passes here, as the plain call
 * with negative errno for -1, so that a test can make the n-th one fail: while
 * a sys_fault hook is set, each call asks it first.  Interrupted calls are
 * begun again here and nowhere else.
 *
 * Time and randomness come from here too; code that must be replayable gets
 * them as arguments instead.
 */
#ifndef DAEMON_SYS_H
#define DAEMON_SYS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Called before each system call; a negative errno is returned in its place. */
typedef int (*sys_fault)(const char *call, void *arg);
void sys_set_fault(sys_fault hook, void *arg); /* NULL: none; before any thread starts */
/* What the hook says of a call that a library makes for us: 0, or what to return in its place. */
int sys_asked(const char *call);

uint64_t sys_clock_ns(void); /* CLOCK_MONOTONIC */
struct tm;
void sys_local_time(struct tm *ret_now); /* the wall's, for people */
int sys_random(void *bytes, size_t count);

int sys_open(const char *path, int flags, unsigned mode);
int sys_open_at(int folder, const char *path, int flags); /* AT_FDCWD: where we stand */
int sys_close(int fd); /* returns -1, so that `fd = sys_close(fd)`; takes -1 */
ssize_t sys_read(int fd, void *bytes, size_t count);
ssize_t sys_pread(int fd, void *bytes, size_t count, uint64_t offset);
/* The same of what lies in memory already: -EAGAIN, if none of it does. */
ssize_t sys_pread_cached(int fd, void *bytes, size_t count, uint64_t offset);
int sys_read_ahead(int fd, uint64_t offset, size_t count); /* begins to, and does not wait */
ssize_t sys_write(int fd, const void *bytes, size_t count);
ssize_t sys_send(int fd, const void *bytes, size_t count); /* never blocks, never a signal */
/* The same, and descriptors with the first byte: -ETOOMANYREFS when too many are on their way. */
ssize_t sys_send_fds(int fd, const void *bytes, size_t count, const int *fds, unsigned fd_count);
int sys_shutdown(int fd); /* both directions: the other side sees the end at once */
int sys_writable(int fd); /* 1: a write now would not block; 0: it might */
int sys_file_size(int fd, uint64_t *ret_bytes); /* -EINVAL: not a regular file */
/* What a file is to be recognized by: if it differs, somebody has written to it. */
struct sys_mark {
        uint64_t bytes, device, inode, changed_s, changed_ns;
};
int sys_file_mark(int fd, struct sys_mark *ret_mark); /* as sys_file_size() */

int sys_socket_unix(void); /* stream, close-on-exec, non-blocking */
int sys_bind_unix(int fd, const char *path, unsigned mode); /* before any thread starts */
int sys_connect_unix(int fd, const char *path);
int sys_listen(int fd, int backlog);
int sys_accept(int fd);
int sys_peer_cred(int fd, uint32_t *ret_uid, uint32_t *ret_gid, int32_t *ret_pid);
/* The first so many of the other groups that the peer was in when it connected, of 1024 at most: their
 * count, 0 if there are more than that, or a negative errno. */
int sys_peer_groups(int fd, uint32_t *ret_gids, uint32_t max);
int sys_set_nonblocking(int fd);
int sys_flock(int fd); /* exclusive, does not wait: -EWOULDBLOCK */
int sys_unlink(const char *path);
int sys_identity(const char *path,
                 uint64_t ret_identity[2]);    /* of the file itself, not of a link's target */
int sys_program(char *ret_path, size_t bytes); /* where the program that runs lies */
int sys_mkdir(const char *path, unsigned mode);
/* Whose a file is, what it is and who may touch it; here and below, fd may be one of O_PATH. */
struct sys_owner {
        uint32_t uid, gid, mode; /* mode with its type */
};
int sys_owner(int fd, struct sys_owner *ret_owner);
int sys_set_group(int fd, uint32_t gid);
int sys_set_mode(int fd, unsigned mode);
/* Of a group's name: -ENOENT: there is none.  Before any thread starts. */
int sys_group(const char *name, uint32_t *ret_gid);
int sys_eventfd(void);

void *sys_map(size_t bytes);                             /* zeroed pages of our own, or NULL */
void *sys_map_file(int fd, size_t bytes, bool writable); /* shared, or NULL */
void sys_unmap(void *memory, size_t bytes);

/* Memory with a descriptor, for sharing: of this size for ever, its pages there already. */
int sys_memory(const char *name, uint64_t bytes, unsigned mode);
int sys_reopen(int fd, int flags);     /* a description of its own of the same file */
int sys_punch(int fd, uint64_t bytes); /* its pages go, whoever maps them; they read as zero */

int sys_thread(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *arg);

int sys_cpu(void);        /* that this thread is on just now, or -1 */
int sys_run_off(int cpu); /* this thread keeps off it, where it may run on others; -1: on any */

/* Sleeps while *word == value, at most until the deadline; 0 whatever the reason to go on. */
int sys_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns);
int sys_futex_wake(const uint32_t *word);
int sys_futex_wake_shared(const uint32_t *word); /* in memory that another process waits on */

/* As many descriptors as `wanted`, or as many as we may have: how many that is.  -errno: unknown. */
int64_t sys_want_descriptors(uint64_t wanted);

/* What this process holds, as /proc tells: for status, and the tests that look for leaks. */
struct sys_holds {
        uint32_t descriptors, mappings, threads;
};
int sys_holds(struct sys_holds *ret_holds);

#endif
