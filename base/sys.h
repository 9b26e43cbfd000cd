/*
 * The only interface to the operating system.
 *
 * Every system call of the daemon that can fail goes through here.  Each function is the plain
 * call, except that it returns a negative errno instead of -1.  A test can make the n-th call fail:
 * while a sys_fault hook is set, each call asks it first.  Interrupted calls are restarted here and
 * nowhere else.
 *
 * Time and randomness also come from here.  Code that must be replayable gets them as arguments
 * instead.
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Called before each system call; a negative errno is returned in its place. */
typedef int (*sys_fault)(const char *call, void *arg);
void sys_set_fault(sys_fault hook, void *arg); /* NULL: no hook; call it before any thread starts */
/*
 * Asks the hook about a call that a library makes for us: 0, or the value to return instead of
 * calling.
 */
int sys_injected_fault(const char *call);

uint64_t sys_clock_ns(void);      /* CLOCK_MONOTONIC */
uint64_t sys_wall_clock_ns(void); /* since 1970, UTC; it may jump */
struct tm;
void sys_local_time(struct tm *ret_now); /* local wall-clock time, for people */
int sys_random(void *bytes, size_t count);
int sys_random_number(uint64_t *ret_number); /* never 0 */

int sys_open(const char *path, int flags, unsigned mode);
/* AT_FDCWD: relative to the working directory */
int sys_open_at(int folder, const char *path, int flags);
int sys_create_at(int folder, const char *path, int flags, unsigned mode);
/* Gives an open file another name, also one that was made without a name (O_TMPFILE). */
int sys_link_at(int fd, int folder, const char *path);
int sys_rename_at(int folder, const char *from, const char *to); /* replaces `to` */
int sys_unlink_at(int folder, const char *path);
/*
 * Calls each() with the names in a folder, in no order, without those of the folder itself and its
 * parent.  If it returns a number other than 0, that ends the list and is returned.
 */
int sys_list(int folder, int (*each)(void *arg, const char *name), void *arg);
int sys_close(int fd); /* returns -1, for `fd = sys_close(fd)`; takes -1 */
ssize_t sys_read(int fd, void *bytes, size_t count);
ssize_t sys_pread(int fd, void *bytes, size_t count, uint64_t offset);
/* Reads only from the page cache: -EAGAIN if none of the range is there. */
ssize_t sys_pread_cached(int fd, void *bytes, size_t count, uint64_t offset);
int sys_read_ahead(int fd, uint64_t offset, size_t count); /* starts reading and does not wait */
ssize_t sys_write(int fd, const void *bytes, size_t count);
ssize_t sys_pwrite(int fd, const void *bytes, size_t count, uint64_t offset);
int sys_truncate(int fd, uint64_t bytes);
int sys_sync(int fd); /* of a file or folder: returns when it is on the disk */
ssize_t sys_send(int fd, const void *bytes, size_t count); /* never blocks, never raises SIGPIPE */
/*
 * Like sys_send(), and sends descriptors with the first byte: -ETOOMANYREFS when too many are under
 * way.
 */
ssize_t sys_send_fds(int fd, const void *bytes, size_t count, const int *fds, unsigned fd_count);
int sys_shutdown(int fd);         /* both directions: the peer sees the end at once */
int sys_shutdown_sending(int fd); /* the peer sees the end behind what was sent */
/* 1: the peer has closed, or does not send any more, whatever is unread before that; 0: no. */
int sys_hung_up(int fd);
int sys_writable(int fd);                       /* 1: a write now would not block; 0: it might */
int sys_file_size(int fd, uint64_t *ret_bytes); /* -EINVAL: not a regular file */
/* Identifies the state of a file: if the mark differs, the file was changed. */
struct sys_mark {
        uint64_t bytes, device, inode, changed_s, changed_ns;
};
int sys_file_mark(int fd, struct sys_mark *ret_mark); /* errors as for sys_file_size() */

int sys_socket_unix(void); /* stream, close-on-exec, non-blocking */
int sys_bind_unix(int fd, const char *path, unsigned mode); /* call it before any thread starts */
int sys_connect_unix(int fd, const char *path);
int sys_listen(int fd, int backlog);
int sys_accept(int fd);
int sys_peer_cred(int fd, uint32_t *ret_uid, uint32_t *ret_gid, int32_t *ret_pid);
/*
 * The supplementary groups that the peer had when it connected, up to `max` of at most 1024.
 * Returns their count, 0 if the peer has more than 1024, or a negative errno.
 */
int sys_peer_groups(int fd, uint32_t *ret_gids, uint32_t max);
/* 0: it is a connected Unix stream socket.  -ENOTSOCK, -EPROTOTYPE, -ENOTCONN ...: it is not. */
int sys_is_stream_unix(int fd);
int sys_set_nonblocking(int fd);
int sys_set_close_on_exec(int fd);
/* 0 and its path if it is a Unix stream socket that listens at a path; -EINVAL: it is not. */
int sys_unix_listener(int fd, char *ret_path, size_t path_bytes);
/* A TCP socket of AF_INET or AF_INET6 (which then takes no IPv4), as sys_socket_unix(). */
int sys_socket_tcp(int family);
int sys_bind(int fd, const struct sockaddr_storage *address);
int sys_set_no_delay(int fd); /* of TCP: sends without waiting for more */
/* The two ends of a connected socket; of a listening one, the first of them (NULL: not wanted). */
int sys_socket_ends(int fd, struct sockaddr_storage *ret_ours, struct sockaddr_storage *ret_peer);
/*
 * A number that the kernel has given to the network namespace of this socket.  -ENOPROTOOPT: the
 * kernel is older than Linux 5.14.
 */
int sys_socket_network(int fd, uint64_t *ret_number);
int sys_is_listening(int fd);  /* 1: it is a stream socket that listens; 0: it is not */
int sys_socket_datagram(void); /* Unix, close-on-exec */
int sys_socket_diag(void);     /* asks the kernel about sockets (sock_diag); non-blocking */
/* A path, or an abstract name that begins with @.  Never blocks. */
ssize_t sys_send_to(int fd, const char *address, const void *bytes, size_t count);
int sys_flock(int fd); /* exclusive, does not wait: -EWOULDBLOCK */
int sys_unlink(const char *path);
/* Of the file itself; a link is not followed. */
int sys_identity(const char *path, uint64_t ret_identity[2]);
int sys_fd_identity(int fd, uint64_t ret_identity[2]);
int sys_program(char *ret_path, size_t bytes); /* path of the running program */
int sys_mkdir(const char *path, unsigned mode);
/* Owner, type and mode of a file.  For this and the calls below, fd may be an O_PATH descriptor. */
struct sys_owner {
        uint32_t uid, gid, mode; /* mode includes the file type */
};
int sys_owner(int fd, struct sys_owner *ret_owner);
int sys_set_group(int fd, uint32_t gid);
int sys_set_mode(int fd, unsigned mode);
/* The gid of a group name; -ENOENT: no such group.  Before any thread starts. */
int sys_group(const char *name, uint32_t *ret_gid);
/* The uid of a user's name; -ENOENT: no such user. */
int sys_user(const char *name, uint32_t *ret_uid);
/*
 * The uid that SO_PEERCRED reports for every user that has no uid in our user namespace: the
 * users of containers, mostly 65534.  UINT32_MAX: all users have one.
 */
uint32_t sys_overflow_uid(void);
int sys_eventfd(void);

void *sys_map(size_t bytes);                             /* private zeroed pages, or NULL */
void *sys_map_file(int fd, size_t bytes, bool writable); /* shared, or NULL */
void sys_unmap(void *memory, size_t bytes);

/* Memory with a descriptor, for sharing: its size is fixed, and its pages are allocated at once. */
int sys_memory(const char *name, uint64_t bytes, unsigned mode);
int sys_reopen(int fd, int flags); /* a new file description of the same file */
/* frees the pages, even if they are mapped; they then read as zero */
int sys_release_pages(int fd, uint64_t bytes);

/* Other processes: a descriptor of one, a signal to it, and its end (-ETIMEDOUT: not yet). */
int sys_process(int pid);
int sys_process_signal(int process, int number);
int sys_process_wait(int process, uint64_t deadline_ns);

/*
 * Ignores the signals that reading and writing can raise: without a handler, a file that is full, a
 * reader that has left, or a terminal of another job would end or stop the program.
 */
void sys_ignore_io_signals(void);
/*
 * From now on, allocations of so many bytes and more are mappings of their own: parts that are
 * never used take no memory, and freed ones go back at once.  By itself, the C library stops to map
 * what is smaller than the largest mapping that was ever freed.
 */
void sys_map_from(uint32_t bytes);

void sys_sleep_ns(uint64_t ns);
int sys_thread(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *arg);

int sys_cpu(void); /* the cpu this thread runs on now, or -1 */
/* this thread avoids that cpu if it may run on others; -1: it may run on any */
int sys_avoid_cpu(int cpu);

/* Sleeps while *word == value, at most until the deadline; returns 0 whatever ended the sleep. */
int sys_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns);
int sys_futex_wake(const uint32_t *word);
int sys_futex_wake_shared(const uint32_t *word); /* in memory that another process waits on */

/*
 * Raises the descriptor limit to `wanted`, or as far as allowed.  Returns the resulting limit, or a
 * negative errno: unknown.
 */
int64_t sys_raise_descriptor_limit(uint64_t wanted);

/* Resources of this process, from /proc: for status, and for tests that look for leaks. */
struct sys_resources {
        uint32_t descriptors, mappings, threads;
};
int sys_resources(struct sys_resources *ret_resources);

#endif
