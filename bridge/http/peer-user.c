#include "bridge/http/peer-user.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"

#define END_BYTES 48u

/* ---- the kernel's answer about one socket ---- */

static in_port_t port_of(const struct sockaddr_storage *end)
{
        return ((const struct sockaddr_in *)(const void *)end)->sin_port; /* v6: the same place */
}

static void write_address(uint32_t to[4], const struct sockaddr_storage *end)
{
        const struct sockaddr_in *v4 = (const void *)end;
        const struct sockaddr_in6 *v6 = (const void *)end;

        if (end->ss_family == AF_INET6)
                memcpy(to, &v6->sin6_addr, sizeof(v6->sin6_addr));
        else
                memcpy(to, &v4->sin_addr, sizeof(v4->sin_addr));
}

struct diag_question {
        struct nlmsghdr head;
        struct inet_diag_req_v2 ask;
};

struct diag_answer {
        struct nlmsghdr head;
        struct inet_diag_msg found;
};

/* The socket that has the peer's address and is connected to ours. */
static struct diag_question question(const struct sockaddr_storage *ours,
                                     const struct sockaddr_storage *peer)
{
        struct diag_question made = {
                .head = { .nlmsg_len = sizeof(made),
                          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = NLM_F_REQUEST },
                .ask = { .sdiag_family = (uint8_t)peer->ss_family,
                         .sdiag_protocol = IPPROTO_TCP,
                         .idiag_states = UINT32_MAX,
                         .id = { .idiag_sport = port_of(peer),
                                 .idiag_dport = port_of(ours),
                                 .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
        };

        write_address(made.ask.id.idiag_src, peer);
        write_address(made.ask.id.idiag_dst, ours);
        return made;
}

/* True: the kernel has said it.  Instead of a closed socket it may name one that listens. */
static bool ask_kernel(const struct sockaddr_storage *ours, const struct sockaddr_storage *peer,
                       uint32_t *ret_uid)
{
        const struct diag_question asked = question(ours, peer);
        struct {
                struct diag_answer answer;
                char more[1024]; /* attributes */
        } came;
        int fd = sys_socket_diag();
        ssize_t n;

        if (fd < 0)
                return false;
        n = sys_send(fd, &asked, sizeof(asked));
        if (n == (ssize_t)sizeof(asked))
                n = sys_read(fd, &came, sizeof(came));
        sys_close(fd);
        if (n < (ssize_t)sizeof(came.answer) ||
            came.answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            came.answer.found.id.idiag_dport != port_of(ours) || !came.answer.found.idiag_inode)
                return false;
        *ret_uid = came.answer.found.idiag_uid;
        return true;
}

/* ---- the table of all sockets ---- */

/* The ends of a line, as the kernel writes them: "0100007F:1F90 0100007F:C350 ". */
struct wanted {
        char text[2 * END_BYTES + 4];
};

/* Each word of an address is written as the number that it is in memory. */
static void write_v4(char *to, const struct in_addr *address, in_port_t port)
{
        snprintf(to, END_BYTES, "%08X:%04X", address->s_addr, ntohs(port));
}

static void write_v6(char *to, const struct in6_addr *address, in_port_t port)
{
        uint32_t words[4];

        memcpy(words, address, sizeof(words));
        snprintf(to, END_BYTES, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
                 ntohs(port));
}

static void write_mapped(char *to, const struct in_addr *address, in_port_t port)
{
        struct in6_addr mapped = { 0 };

        mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
        memcpy(mapped.s6_addr + 12, address, sizeof(*address));
        write_v6(to, &mapped, port);
}

/* One end, in the form of that table. */
static void write_end(char *to, const struct sockaddr_storage *end, bool v6_table)
{
        const struct sockaddr_in *v4 = (const void *)end;
        const struct sockaddr_in6 *v6 = (const void *)end;

        if (end->ss_family == AF_INET6)
                write_v6(to, &v6->sin6_addr, v6->sin6_port);
        else if (v6_table)
                write_mapped(to, &v4->sin_addr, v4->sin_port);
        else
                write_v4(to, &v4->sin_addr, v4->sin_port);
}

/* A line is "  12: LOCAL REMOTE STATE QUEUES TIMER RETRIES UID TIMEOUT INODE ...". */
static bool read_line(const char *line, const struct wanted *wanted, uint32_t *ret_uid)
{
        const char *at = strstr(line, ": ");
        unsigned long long inode;
        unsigned uid;

        if (!at || strncmp(at + 2, wanted->text, strlen(wanted->text)) ||
            sscanf(at + 2 + strlen(wanted->text), "%*s %*s %*s %*s %u %*s %llu", &uid, &inode) != 2)
                return false;
        *ret_uid = uid;
        return inode > 0;
}

/* Takes the whole lines off the front of the text; 1: one of them was it. */
static int read_lines(char *text, size_t *count, const struct wanted *wanted, uint32_t *ret_uid)
{
        char *line = text, *end;

        while ((end = memchr(line, '\n', *count - (size_t)(line - text)))) {
                *end = '\0';
                if (read_line(line, wanted, ret_uid))
                        return 1;
                line = end + 1;
        }
        *count -= (size_t)(line - text);
        memmove(text, line, *count);
        return 0;
}

/* 1: found. */
static int search(const char *path, const struct wanted *wanted, uint32_t *ret_uid)
{
        int fd = sys_open(path, O_RDONLY, 0), r = 0;
        size_t count = 0;
        char text[8192];

        if (fd < 0)
                return error_raise(fd);
        while (!r) {
                ssize_t n = sys_read(fd, text + count, sizeof(text) - count);

                if (n <= 0) {
                        r = n < 0 ? error_raise((int)n) : 0;
                        break;
                }
                count += (size_t)n;
                r = read_lines(text, &count, wanted, ret_uid);
        }
        sys_close(fd);
        return r;
}

static int tcp_user(int fd, uint32_t *ret_uid)
{
        static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
        struct sockaddr_storage ours, peer;
        int r = sys_socket_ends(fd, &ours, &peer);

        if (!r && ask_kernel(&ours, &peer, ret_uid))
                return 0;
        for (size_t t = peer.ss_family == AF_INET6; !r && t < 2; t++) {
                char here[END_BYTES], there[END_BYTES];
                struct wanted wanted;

                write_end(there, &peer, t);
                write_end(here, &ours, t);
                snprintf(wanted.text, sizeof(wanted.text), "%s %s ", there, here);
                r = search(tables[t], &wanted, ret_uid);
        }
        if (r < 0)
                return error_pass(r);
        return r ? 0 : -ENOENT;
}

int http_peer_user(int fd, bool is_unix, uint32_t *ret_uid)
{
        uint32_t gid;
        int32_t pid;
        int r = is_unix ? sys_peer_cred(fd, ret_uid, &gid, &pid) : tcp_user(fd, ret_uid);

        return error_pass(r);
}
