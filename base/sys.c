#include "base/sys.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define SEND_FDS_MAX 4u
/* Enough for an entry of the table of users. */
#define SYS_USER_BYTES       4096u
#define DEFAULT_OVERFLOW_UID 65534u

static sys_fault fault_hook;
static void *fault_arg;

void sys_set_fault(sys_fault hook, void *arg)
{
        fault_hook = hook;
        fault_arg = arg;
}

static int fault(const char *call)
{
        int r = fault_hook ? fault_hook(call, fault_arg) : 0;

        assert(r <= 0);
        return r;
}

int sys_injected_fault(const char *call)
{
        return fault(call);
}

/* Every call below asks the hook first, and then repeats while it is interrupted. */
#define CALL(name, expression)                                                                     \
        ({                                                                                         \
                long call_result = fault(name);                                                    \
                if (!call_result) {                                                                \
                        do                                                                         \
                                call_result = (expression);                                        \
                        while (call_result < 0 && errno == EINTR);                                 \
                        if (call_result < 0)                                                       \
                                call_result = -errno;                                              \
                }                                                                                  \
                call_result;                                                                       \
        })

uint64_t sys_clock_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sys_wall_clock_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sys_local_time(struct tm *ret_now)
{
        time_t now = time(NULL);

        if (!localtime_r(&now, ret_now))
                *ret_now = (struct tm){ .tm_mday = 1, .tm_year = 70 };
}

int sys_random(void *bytes, size_t count)
{
        uint8_t *to = bytes;

        while (count) {
                ssize_t r = CALL("getrandom", getrandom(to, count, 0));

                if (r < 0)
                        return (int)r;
                to += r;
                count -= (size_t)r;
        }
        return 0;
}

int sys_random_number(uint64_t *ret_number)
{
        int r;

        do
                r = sys_random(ret_number, sizeof(*ret_number));
        while (!r && !*ret_number);
        return r;
}

int sys_open(const char *path, int flags, unsigned mode)
{
        return (int)CALL("open", open(path, flags | O_CLOEXEC, (mode_t)mode));
}

int sys_open_at(int folder, const char *path, int flags)
{
        return (int)CALL("openat", openat(folder, path, flags | O_CLOEXEC));
}

int sys_create_at(int folder, const char *path, int flags, unsigned mode)
{
        return (int)CALL("openat", openat(folder, path, flags | O_CREAT | O_CLOEXEC, (mode_t)mode));
}

/* By the path in /proc, because AT_EMPTY_PATH needs a privilege. */
int sys_link_at(int fd, int folder, const char *path)
{
        char from[32];

        snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
        return (int)CALL("linkat", linkat(AT_FDCWD, from, folder, path, AT_SYMLINK_FOLLOW));
}

int sys_rename_at(int folder, const char *from, const char *to)
{
        return (int)CALL("renameat", renameat(folder, from, folder, to));
}

int sys_unlink_at(int folder, const char *path)
{
        return (int)CALL("unlinkat", unlinkat(folder, path, 0));
}

int sys_list(int folder, int (*each)(void *arg, const char *name), void *arg)
{
        int fd = sys_open_at(folder, ".", O_RDONLY | O_DIRECTORY), r = 0;
        struct dirent *entry;
        DIR *directory;

        if (fd < 0)
                return fd;
        directory = fdopendir(fd);
        if (!directory) {
                r = -errno;
                sys_close(fd);
                return r;
        }
        while (!r && (errno = 0, entry = readdir(directory)))
                if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
                        r = each(arg, entry->d_name);
        if (!r && errno)
                r = -errno;
        closedir(directory);
        return r;
}

/*
 * Linux frees the descriptor even if close is interrupted: a second close might close another file
 * that got the same number.
 */
int sys_close(int fd)
{
        if (fd >= 0)
                close(fd);
        return -1;
}

ssize_t sys_read(int fd, void *bytes, size_t count)
{
        return CALL("read", read(fd, bytes, count));
}

ssize_t sys_pread(int fd, void *bytes, size_t count, uint64_t offset)
{
        if (offset > INT64_MAX)
                return -EINVAL;
        return CALL("pread", pread(fd, bytes, count, (off_t)offset));
}

ssize_t sys_pread_cached(int fd, void *bytes, size_t count, uint64_t offset)
{
        const struct iovec part = { .iov_base = bytes, .iov_len = count };

        if (offset > INT64_MAX)
                return -EINVAL;
        return CALL("preadv2", preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT));
}

int sys_read_ahead(int fd, uint64_t offset, size_t count)
{
        int r = fault("fadvise");

        if (r < 0)
                return r;
        return -posix_fadvise(fd, (off_t)offset, (off_t)count, POSIX_FADV_WILLNEED);
}

ssize_t sys_write(int fd, const void *bytes, size_t count)
{
        return CALL("write", write(fd, bytes, count));
}

ssize_t sys_pwrite(int fd, const void *bytes, size_t count, uint64_t offset)
{
        if (offset > INT64_MAX)
                return -EINVAL;
        return CALL("pwrite", pwrite(fd, bytes, count, (off_t)offset));
}

int sys_truncate(int fd, uint64_t bytes)
{
        if (bytes > INT64_MAX)
                return -EINVAL;
        return (int)CALL("ftruncate", ftruncate(fd, (off_t)bytes));
}

int sys_sync(int fd)
{
        return (int)CALL("fsync", fsync(fd));
}

ssize_t sys_send(int fd, const void *bytes, size_t count)
{
        return CALL("send", send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT));
}

ssize_t sys_send_fds(int fd, const void *bytes, size_t count, const int *fds, unsigned fd_count)
{
        struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = count };
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
        } rights = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &rights,
                                  .msg_controllen = CMSG_SPACE(fd_count * sizeof(int)) };

        assert(fd_count && fd_count <= SEND_FDS_MAX);
        rights.head.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(&rights.head), fds, fd_count * sizeof(int));
        return CALL("sendmsg", sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

int sys_shutdown(int fd)
{
        return shutdown(fd, SHUT_RDWR) < 0 ? -errno : 0;
}

int sys_shutdown_sending(int fd)
{
        return shutdown(fd, SHUT_WR) < 0 ? -errno : 0;
}

int sys_hung_up(int fd)
{
        struct pollfd ask = { .fd = fd, .events = POLLRDHUP };

        return (int)CALL("poll", poll(&ask, 1, 0));
}

int sys_writable(int fd)
{
        struct pollfd ask = { .fd = fd, .events = POLLOUT };

        return (int)CALL("poll", poll(&ask, 1, 0));
}

int sys_file_mark(int fd, struct sys_mark *ret_mark)
{
        struct stat st;
        int r = (int)CALL("fstat", fstat(fd, &st));

        if (r < 0)
                return r;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        *ret_mark = (struct sys_mark){ .bytes = (uint64_t)st.st_size,
                                       .device = st.st_dev,
                                       .inode = st.st_ino,
                                       .changed_s = (uint64_t)st.st_mtim.tv_sec,
                                       .changed_ns = (uint64_t)st.st_mtim.tv_nsec };
        return 0;
}

int sys_file_size(int fd, uint64_t *ret_bytes)
{
        struct sys_mark mark;
        int r = sys_file_mark(fd, &mark);

        if (!r)
                *ret_bytes = mark.bytes;
        return r;
}

int sys_socket_unix(void)
{
        return (int)CALL("socket", socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static int address(const char *path, struct sockaddr_un *ret_address)
{
        size_t bytes = strlen(path);

        if (!bytes || bytes >= sizeof(ret_address->sun_path))
                return bytes ? -ENAMETOOLONG : -EINVAL;
        *ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
        memcpy(ret_address->sun_path, path, bytes);
        return 0;
}

/*
 * If the socket were created with a wide mode and restricted later, a client could connect in
 * between.  So the umask sets the mode from the start.  The umask belongs to the whole process:
 * call this before any thread starts.
 */
int sys_bind_unix(int fd, const char *path, unsigned mode)
{
        struct sockaddr_un to;
        mode_t before;
        int r;

        r = address(path, &to);
        if (r < 0)
                return r;
        before = umask((mode_t)(~mode & 0777u));
        r = (int)CALL("bind", bind(fd, (struct sockaddr *)&to, sizeof(to)));
        umask(before);
        return r;
}

int sys_connect_unix(int fd, const char *path)
{
        struct sockaddr_un to;
        int r;

        r = address(path, &to);
        if (r < 0)
                return r;
        return (int)CALL("connect", connect(fd, (struct sockaddr *)&to, sizeof(to)));
}

int sys_listen(int fd, int backlog)
{
        return (int)CALL("listen", listen(fd, backlog));
}

int sys_accept(int fd)
{
        return (int)CALL("accept", accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int sys_peer_cred(int fd, uint32_t *ret_uid, uint32_t *ret_gid, int32_t *ret_pid)
{
        struct ucred cred;
        socklen_t bytes = sizeof(cred);
        int r = (int)CALL("getsockopt", getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes));

        if (r < 0)
                return r;
        *ret_uid = cred.uid;
        *ret_gid = cred.gid;
        *ret_pid = cred.pid;
        return 0;
}

int sys_peer_groups(int fd, uint32_t *ret_gids, uint32_t max)
{
        gid_t gids[1024];
        socklen_t bytes = sizeof(gids);
        int r = (int)CALL("getsockopt", getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &bytes));
        uint32_t count = 0;

        if (r == -ERANGE)
                return 0;
        if (r < 0)
                return r;
        for (; count < bytes / sizeof(*gids) && count < max; count++)
                ret_gids[count] = gids[count];
        return (int)count;
}

int sys_set_nonblocking(int fd)
{
        int flags = (int)CALL("fcntl", fcntl(fd, F_GETFL));

        if (flags < 0)
                return flags;
        return (int)CALL("fcntl", fcntl(fd, F_SETFL, flags | O_NONBLOCK));
}

int sys_set_close_on_exec(int fd)
{
        return (int)CALL("fcntl", fcntl(fd, F_SETFD, FD_CLOEXEC));
}

int sys_unix_listener(int fd, char *ret_path, size_t path_bytes)
{
        struct sockaddr_un at = { 0 };
        socklen_t bytes = sizeof(int), at_bytes = sizeof(at) - 1; /* the last byte stays NUL */
        int domain = 0, type = 0, listens = 0, r;

        r = (int)CALL("getsockopt", getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes));
        if (!r)
                r = (int)CALL("getsockopt", getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes));
        if (!r)
                r = (int)CALL("getsockopt",
                              getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes));
        if (!r)
                r = (int)CALL("getsockname", getsockname(fd, (struct sockaddr *)&at, &at_bytes));
        if (r)
                return r;
        if (domain != AF_UNIX || type != SOCK_STREAM || !listens || !at.sun_path[0] ||
            strlen(at.sun_path) >= path_bytes)
                return -EINVAL;
        memcpy(ret_path, at.sun_path, strlen(at.sun_path) + 1);
        return 0;
}

/* A restarted server must get its port while old connections are still in TIME_WAIT. */
int sys_socket_tcp(int family)
{
        int fd = (int)CALL("socket", socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const int on = 1;
        int r = 0;

        if (fd < 0)
                return fd;
        r = (int)CALL("setsockopt", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
        if (!r && family == AF_INET6)
                r = (int)CALL("setsockopt",
                              setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)));
        if (!r)
                return fd;
        sys_close(fd);
        return r;
}

int sys_bind(int fd, const struct sockaddr_storage *to)
{
        socklen_t bytes =
                to->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

        return (int)CALL("bind", bind(fd, (const struct sockaddr *)to, bytes));
}

int sys_set_no_delay(int fd)
{
        const int on = 1;

        return (int)CALL("setsockopt", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
}

int sys_socket_ends(int fd, struct sockaddr_storage *ret_ours, struct sockaddr_storage *ret_peer)
{
        socklen_t bytes = sizeof(*ret_ours);
        int r;

        *ret_ours = (struct sockaddr_storage){ 0 };
        r = (int)CALL("getsockname", getsockname(fd, (struct sockaddr *)ret_ours, &bytes));
        if (r || !ret_peer)
                return r;
        bytes = sizeof(*ret_peer);
        *ret_peer = (struct sockaddr_storage){ 0 };
        return (int)CALL("getpeername", getpeername(fd, (struct sockaddr *)ret_peer, &bytes));
}

int sys_socket_network(int fd, uint64_t *ret_number)
{
        socklen_t bytes = sizeof(*ret_number);

        return (int)CALL("getsockopt",
                         getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, ret_number, &bytes));
}

int sys_is_listening(int fd)
{
        socklen_t bytes = sizeof(int);
        int type = 0, listens = 0, r;

        r = (int)CALL("getsockopt", getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes));
        if (!r)
                r = (int)CALL("getsockopt",
                              getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes));
        return r < 0 ? r : type == SOCK_STREAM && listens;
}

int sys_socket_datagram(void)
{
        return (int)CALL("socket", socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

int sys_socket_diag(void)
{
        return (int)CALL("socket", socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                          NETLINK_SOCK_DIAG));
}

/* An abstract name begins with a NUL and ends with its length, without a NUL behind it. */
ssize_t sys_send_to(int fd, const char *at, const void *bytes, size_t count)
{
        struct sockaddr_un to;
        size_t to_bytes = offsetof(struct sockaddr_un, sun_path) + strlen(at) + (at[0] != '@');
        int r = address(at, &to);

        if (r < 0)
                return r;
        if (at[0] == '@')
                to.sun_path[0] = '\0';
        return CALL("sendto", sendto(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL,
                                     (struct sockaddr *)&to, (socklen_t)to_bytes));
}

int sys_process(int pid)
{
        return (int)CALL("pidfd_open", syscall(SYS_pidfd_open, pid, 0));
}

int sys_process_signal(int process, int number)
{
        return (int)CALL("pidfd_send_signal",
                         syscall(SYS_pidfd_send_signal, process, number, NULL, 0));
}

int sys_process_wait(int process, uint64_t deadline_ns)
{
        struct pollfd ended = { .fd = process, .events = POLLIN };

        for (;;) {
                uint64_t now = sys_clock_ns();
                uint64_t left_ms = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;
                int r = (int)CALL("poll",
                                  poll(&ended, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX));

                if (r)
                        return r < 0 ? r : 0;
                if (sys_clock_ns() >= deadline_ns)
                        return -ETIMEDOUT;
        }
}

void sys_sleep_ns(uint64_t ns)
{
        struct timespec left = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

        while (nanosleep(&left, &left) && errno == EINTR)
                ;
}

int sys_flock(int fd)
{
        return (int)CALL("flock", flock(fd, LOCK_EX | LOCK_NB));
}

int sys_unlink(const char *path)
{
        return (int)CALL("unlink", unlink(path));
}

int sys_identity(const char *path, uint64_t ret_identity[2])
{
        struct stat file;
        int r = (int)CALL("lstat", lstat(path, &file));

        if (r < 0)
                return r;
        ret_identity[0] = file.st_dev;
        ret_identity[1] = file.st_ino;
        return 0;
}

int sys_fd_identity(int fd, uint64_t ret_identity[2])
{
        struct stat file;
        int r = (int)CALL("fstat", fstat(fd, &file));

        if (r < 0)
                return r;
        ret_identity[0] = file.st_dev;
        ret_identity[1] = file.st_ino;
        return 0;
}

int sys_program(char *ret_path, size_t bytes)
{
        long n = CALL("readlink", readlink("/proc/self/exe", ret_path, bytes));

        if (n >= 0 && (size_t)n == bytes)
                return -ENAMETOOLONG;
        if (n >= 0)
                ret_path[n] = '\0';
        return n < 0 ? (int)n : 0;
}

int sys_mkdir(const char *path, unsigned mode)
{
        return (int)CALL("mkdir", mkdir(path, (mode_t)mode));
}

int sys_owner(int fd, struct sys_owner *ret_owner)
{
        struct stat file;
        int r = (int)CALL("fstat", fstat(fd, &file));

        if (r < 0)
                return r;
        *ret_owner =
                (struct sys_owner){ .uid = file.st_uid, .gid = file.st_gid, .mode = file.st_mode };
        return 0;
}

int sys_set_group(int fd, uint32_t gid)
{
        return (int)CALL("fchownat", fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH));
}

/* Uses the path in /proc, because fchmod() does not accept an O_PATH descriptor. */
int sys_set_mode(int fd, unsigned mode)
{
        char path[32];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return (int)CALL("chmod", chmod(path, (mode_t)mode));
}

/* If there is no such group, errno is 0 or one of five other values, depending on the source. */
int sys_group(const char *name, uint32_t *ret_gid)
{
        const struct group *group;
        int r = fault("getgrnam");

        if (r)
                return r;
        do {
                errno = 0;
                group = getgrnam(name);
        } while (!group && errno == EINTR);
        if (group)
                *ret_gid = group->gr_gid;
        else if (errno == ENOMEM || errno == EMFILE || errno == ENFILE || errno == EIO)
                return -errno;
        return group ? 0 : -ENOENT;
}

int sys_user(const char *name, uint32_t *ret_uid)
{
        char bytes[SYS_USER_BYTES];
        struct passwd user, *found = NULL;
        int r = fault("getpwnam");

        if (r)
                return r;
        do
                r = getpwnam_r(name, &user, bytes, sizeof(bytes), &found);
        while (r == EINTR);
        if (found)
                *ret_uid = found->pw_uid;
        else if (r == ENOMEM || r == EMFILE || r == ENFILE || r == EIO)
                return -r;
        return found ? 0 : -ENOENT;
}

int sys_is_stream_unix(int fd)
{
        struct sockaddr_un peer;
        socklen_t bytes = sizeof(int);
        int domain = 0, type = 0, r;

        r = (int)CALL("getsockopt", getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes));
        if (r >= 0)
                r = (int)CALL("getsockopt", getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes));
        if (r < 0)
                return r;
        if (domain != AF_UNIX || type != SOCK_STREAM)
                return -EPROTOTYPE;
        bytes = sizeof(peer);
        r = (int)CALL("getpeername", getpeername(fd, (struct sockaddr *)&peer, &bytes));
        return r < 0 ? r : 0;
}

static ssize_t read_text(const char *path, char *text, size_t bytes)
{
        int fd = sys_open(path, O_RDONLY, 0);
        ssize_t n = fd < 0 ? fd : sys_read(fd, text, bytes - 1);

        if (fd >= 0)
                sys_close(fd);
        text[n > 0 ? n : 0] = '\0';
        return n;
}

/* Outside of containers every user has a number, so no number stands for all the others. */
static bool has_all_users(void)
{
        char text[256];
        unsigned first, outside;
        unsigned long count;

        return read_text("/proc/self/uid_map", text, sizeof(text)) > 0 &&
               sscanf(text, "%u %u %lu", &first, &outside, &count) == 3 && !first &&
               count == UINT32_MAX;
}

uint32_t sys_overflow_uid(void)
{
        char text[16];

        if (has_all_users())
                return UINT32_MAX;
        return read_text("/proc/sys/kernel/overflowuid", text, sizeof(text)) > 0
                       ? (uint32_t)strtoul(text, NULL, 10)
                       : DEFAULT_OVERFLOW_UID;
}

int sys_eventfd(void)
{
        return (int)CALL("eventfd", eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void *sys_map(size_t bytes)
{
        void *memory;

        if (fault("mmap"))
                return NULL;
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return memory == MAP_FAILED ? NULL : memory;
}

void *sys_map_file(int fd, size_t bytes, bool writable)
{
        void *memory;

        if (fault("mmap"))
                return NULL;
        memory = mmap(NULL, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
        return memory == MAP_FAILED ? NULL : memory;
}

/*
 * MFD_NOEXEC_SEAL needs Linux 6.3.  Without it the kernel may log a warning, with no other effect.
 */
static int make_memory(const char *name)
{
        int fd = (int)CALL("memfd_create",
                           memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));

        if (fd == -EINVAL)
                fd = (int)CALL("memfd_create", memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
        return fd;
}

int sys_memory(const char *name, uint64_t bytes, unsigned mode)
{
        int fd = make_memory(name), r;

        if (fd < 0)
                return fd;
        r = (int)CALL("ftruncate", ftruncate(fd, (off_t)bytes));
        if (r >= 0)
                r = (int)CALL("fallocate", fallocate(fd, 0, 0, (off_t)bytes));
        if (r >= 0)
                r = (int)CALL("fchmod", fchmod(fd, (mode_t)mode));
        if (r >= 0)
                r = (int)CALL("fcntl",
                              fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
        if (r >= 0)
                return fd;
        sys_close(fd);
        return r;
}

int sys_reopen(int fd, int flags)
{
        char path[32];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return (int)CALL("reopen", open(path, flags | O_CLOEXEC));
}

int sys_release_pages(int fd, uint64_t bytes)
{
        return (int)CALL("fallocate", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                                (off_t)bytes));
}

void sys_unmap(void *memory, size_t bytes)
{
        if (memory)
                munmap(memory, bytes);
}

/* Only the loop thread handles signals: a new thread inherits a mask that blocks all. */
int sys_thread(pthread_t *ret_thread, const char *name, void *(*main)(void *), void *arg)
{
        char shown[16] = { 0 }; /* the kernel keeps 15 bytes of a name */
        sigset_t all, before;
        pthread_t thread;
        int r = fault("thread");

        if (r < 0)
                return r;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, NULL, main, arg);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r)
                return -r;

        memcpy(shown, name, strnlen(name, sizeof(shown) - 1));
        pthread_setname_np(thread, shown);
        *ret_thread = thread;
        return 0;
}

int sys_cpu(void)
{
        return sched_getcpu();
}

/*
 * Starts from the main thread's affinity, which stands for the process.  So a processor that was
 * taken from the process from outside is not used here either.
 */
int sys_avoid_cpu(int cpu)
{
        cpu_set_t set;
        int r = fault("affinity");

        if (r < 0)
                return r;
        if (sched_getaffinity(getpid(), sizeof(set), &set) < 0)
                return -errno;
        if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_COUNT(&set) > 1)
                CPU_CLR((size_t)cpu, &set);
        return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

/*
 * Does not ask the hook: a failure here is a bug in an argument, not a failure of the environment.
 */
int sys_futex_wait(const uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
        struct timespec until = {
                .tv_sec = (time_t)(deadline_ns / 1000000000u),
                .tv_nsec = (long)(deadline_ns % 1000000000u),
        };

        if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value,
                    deadline_ns == UINT64_MAX ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY) < 0 &&
            errno != EAGAIN && errno != ETIMEDOUT && errno != EINTR)
                return -errno;
        return 0;
}

int sys_futex_wake(const uint32_t *word)
{
        return syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1) < 0 ? -errno : 0;
}

int sys_futex_wake_shared(const uint32_t *word)
{
        return syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX) < 0 ? -errno : 0;
}

void sys_ignore_io_signals(void)
{
        static const int numbers[] = { SIGPIPE, SIGXFSZ, SIGIO, SIGTTIN, SIGTTOU };

        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
                signal(numbers[i], SIG_IGN);
}

void sys_map_from(uint32_t bytes)
{
        mallopt(M_MMAP_THRESHOLD, (int)bytes);
}

int64_t sys_raise_descriptor_limit(uint64_t wanted)
{
        struct rlimit limit;
        int r = (int)CALL("getrlimit", getrlimit(RLIMIT_NOFILE, &limit));

        if (r < 0)
                return r;
        if (limit.rlim_cur < wanted) {
                limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
                r = (int)CALL("setrlimit", setrlimit(RLIMIT_NOFILE, &limit));
        }
        return r < 0 ? r : (int64_t)limit.rlim_cur;
}

static int count_entries(const char *path, uint32_t *ret_count)
{
        int fd = sys_open(path, O_RDONLY | O_DIRECTORY, 0);
        struct dirent *entry;
        uint32_t count = 0;
        DIR *directory;

        if (fd < 0)
                return fd;
        directory = fdopendir(fd);
        if (!directory) {
                int r = -errno;

                sys_close(fd);
                return r;
        }
        while ((entry = readdir(directory)))
                count += entry->d_name[0] != '.';
        closedir(directory);
        *ret_count = count;
        return 0;
}

static int count_lines(const char *path, uint32_t *ret_count)
{
        int fd = sys_open(path, O_RDONLY, 0);
        uint32_t count = 0;
        char bytes[4096];
        ssize_t n;

        if (fd < 0)
                return fd;
        while ((n = sys_read(fd, bytes, sizeof(bytes))) > 0)
                for (ssize_t i = 0; i < n; i++)
                        count += bytes[i] == '\n';
        sys_close(fd);
        if (n < 0)
                return (int)n;
        *ret_count = count;
        return 0;
}

int sys_resources(struct sys_resources *ret_resources)
{
        struct sys_resources resources;
        int r;

        r = count_entries("/proc/self/fd", &resources.descriptors);
        if (!r)
                r = count_entries("/proc/self/task", &resources.threads);
        if (!r)
                r = count_lines("/proc/self/maps", &resources.mappings);
        if (r)
                return r;
        resources.descriptors--; /* the descriptor used for counting */
        *ret_resources = resources;
        return 0;
}
