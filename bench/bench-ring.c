/*
 * The costs and savings of the ring: bench-ring [-r ROUNDS] [-s SCALE] [PART ...]
 *
 * Parts: latency, fanout, connect, kill, threads, turns, fork; all of them, if none is named.
 * docs/internals/bench.md explains its table.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/table.h"

static char directory[64], path[96];

void bench_must(int good, const char *what)
{
        if (good)
                return;
        fprintf(stderr, "bench-ring: %s: %s\n", what, strerror(errno));
        exit(1);
}

void *bench_shared(size_t bytes)
{
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        bench_must(at != MAP_FAILED, "mmap");
        return at;
}

void bench_unshare(void *memory, size_t bytes)
{
        munmap(memory, bytes);
}

const char *bench_socket(void)
{
        if (!path[0]) {
                strcpy(directory, "/tmp/bench-ring-XXXXXX");
                bench_must(mkdtemp(directory) != NULL, "mkdtemp");
                snprintf(path, sizeof(path), "%s/sock", directory);
        }
        return path;
}

void bench_cleanup(void)
{
        char lock[128];

        snprintf(lock, sizeof(lock), "%s.lock", path);
        unlink(lock);
        rmdir(directory);
}

static void tcp_pair(int ret_fds[2])
{
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t bytes = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM, 0), now = 1;

        bench_must(listener >= 0, "socket");
        bench_must(!bind(listener, (struct sockaddr *)&address, bytes), "bind");
        bench_must(!listen(listener, 1), "listen");
        bench_must(!getsockname(listener, (struct sockaddr *)&address, &bytes), "getsockname");
        ret_fds[1] = socket(AF_INET, SOCK_STREAM, 0);
        bench_must(!connect(ret_fds[1], (struct sockaddr *)&address, bytes), "connect");
        ret_fds[0] = accept(listener, NULL, NULL);
        bench_must(ret_fds[0] >= 0, "accept");
        setsockopt(ret_fds[0], IPPROTO_TCP, TCP_NODELAY, &now, sizeof(now));
        close(listener);
}

void bench_pair(enum bench_wire wire, int ret_fds[2])
{
        if (wire == BENCH_TCP)
                tcp_pair(ret_fds);
        else
                bench_must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ret_fds), "socketpair");
}

size_t bench_wire_bytes(enum bench_wire wire)
{
        return wire == BENCH_TCP ? 200 : 48;
}

static const struct {
        const char *name;
        void (*round)(double scale);
} parts[] = {
        { "latency", bench_latency }, { "fanout", bench_fanout },   { "connect", bench_connect },
        { "kill", bench_kill },       { "threads", bench_threads }, { "turns", bench_turns },
        { "fork", bench_forks },
};
#define PARTS (sizeof(parts) / sizeof(*parts))

static int wanted(int count, char **names, const char *name)
{
        for (int i = 0; i < count; i++)
                if (!strcmp(names[i], name))
                        return 1;
        return count == 0;
}

static void print_machine(const char *when)
{
        struct utsname name;
        double loads[3] = { 0 };

        uname(&name);
        (void)getloadavg(loads, 3);
        printf("%s: %s %s, %ld processors, load %.2f\n", when, name.machine, name.release,
               sysconf(_SC_NPROCESSORS_ONLN), loads[0]);
        fflush(stdout);
}

int main(int argc, char **argv)
{
        const struct rlimit files = { 4096, 4096 };
        int rounds = 5, option;
        double scale = 1;

        while ((option = getopt(argc, argv, "r:s:")) > 0) {
                if (option == 'r' && atoi(optarg) > 0 && atoi(optarg) <= 64)
                        rounds = atoi(optarg);
                else if (option == 's' && atof(optarg) > 0)
                        scale = atof(optarg);
                else
                        return fprintf(stderr, "bench-ring [-r 1..64] [-s SCALE] [PART ...]\n"), 2;
        }
        (void)setrlimit(RLIMIT_NOFILE, &files);
        print_machine("before");
        for (int round = 0; round < rounds; round++)
                for (size_t i = 0; i < PARTS; i++)
                        if (wanted(argc - optind, argv + optind, parts[i].name))
                                parts[i].round(scale);
        print_machine("after");
        table_print();
        bench_cleanup();
        return 0;
}
