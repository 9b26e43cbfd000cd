/*
 * How long the loop works in one turn under attack.
 *
 * A turn is the work of the loop's thread from one epoll_wait() to the next.  Its length is the
 * CPU time of that thread, so other work on the machine is not included.  The attackers are
 * separate processes, and honest streams run all the while.
 */
#include <samovar/client.h>
#include <samovar/ring.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/table.h"
#include "daemon/edge/buffer.h"
#include "daemon/edge/wire.h"

#define TURNS_MAX (4u << 20)
#define LONG      100000u /* tokens: more than any client waits for */
#define FRAME_MAX (8u << 20)
#define MANY      400u
#define AT_ONCE   64u
#define OVER_NS   1000000u
#define SETTLE_US 300000u
#define ATTACK_US 1000000u

struct shared {
        struct pipeline_facts pipeline;
        counter count;
        uint32_t ns[TURNS_MAX];
};

static struct shared *watched; /* NULL: turns are not measured */

/* ---- the loop's turns ---- */

static uint64_t thread_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Instead of the C library's, which libevent calls for the one loop of a pipeline. */
int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
        static uint64_t since_ns;
        uint64_t n;
        int r;

        if (watched && since_ns) {
                n = counter_get(&watched->count);
                watched->ns[n % TURNS_MAX] = (uint32_t)(thread_ns() - since_ns);
                counter_set(&watched->count, n + 1);
        }
        r = (int)syscall(SYS_epoll_pwait, fd, events, most, timeout_ms, NULL, 8);
        if (watched)
                since_ns = thread_ns();
        return r;
}

/* ---- frames ---- */

static void begin(struct wire_writer *writer, struct buffer *to, const char *op, uint32_t id,
                  uint32_t more)
{
        wire_begin(writer, to);
        wire_put_map(writer, 2 + more);
        wire_put_text(writer, "op");
        wire_put_text(writer, op);
        wire_put_text(writer, "id");
        wire_put_uint(writer, id);
}

static void end(struct wire_writer *writer)
{
        bench_must(!wire_end(writer), "a frame");
}

static void put_hello(struct buffer *to, const char *transport)
{
        struct wire_writer writer;

        begin(&writer, to, "hello", 1, 2);
        wire_put_text(&writer, "versions");
        wire_put_array(&writer, 2);
        wire_put_uint(&writer, 0);
        wire_put_uint(&writer, 0);
        wire_put_text(&writer, "transport");
        wire_put_text(&writer, transport);
        end(&writer);
}

static void put_large_ring(struct buffer *to)
{
        struct wire_writer writer;

        begin(&writer, to, "hello", 1, 3);
        wire_put_text(&writer, "versions");
        wire_put_array(&writer, 2);
        wire_put_uint(&writer, 0);
        wire_put_uint(&writer, 0);
        wire_put_text(&writer, "transport");
        wire_put_text(&writer, "ring");
        wire_put_text(&writer, "ring_bytes");
        wire_put_uint(&writer, SMV_RING_BYTES_MAX);
        end(&writer);
}

static void put_plain(struct buffer *to, const char *op, uint32_t id)
{
        struct wire_writer writer;

        begin(&writer, to, op, id, 0);
        end(&writer);
}

static void put_cancel(struct buffer *to, uint32_t id, uint32_t stream)
{
        struct wire_writer writer;

        begin(&writer, to, "cancel", id, 1);
        wire_put_text(&writer, "stream");
        wire_put_uint(&writer, stream);
        end(&writer);
}

/* Ids of `width` bytes each in the frame, which are all the letter x. */
static void put_ids(struct buffer *to, const char *op, uint32_t id, uint32_t count, uint32_t width)
{
        static const uint8_t wide[5] = { 0xce, 0, 0, 0, 'x' };
        struct wire_writer writer;

        begin(&writer, to, op, id, 1);
        wire_put_text(&writer, "tokens");
        wire_put_array(&writer, count);
        for (uint32_t i = 0; i < count; i++)
                bench_must(!buffer_append(to, width == 1 ? &wide[4] : wide, width), "memory");
        end(&writer);
}

static void put_text(struct buffer *to, uint32_t id, size_t bytes)
{
        static char text[FRAME_MAX];
        struct wire_writer writer;

        memset(text, 'x', bytes);
        begin(&writer, to, "tokenize", id, 1);
        wire_put_text(&writer, "text");
        wire_put_bytes(&writer, text, bytes);
        end(&writer);
}

/* ---- messages that an attacker repeats ---- */

static void put_nothing(struct buffer *to)
{
        for (uint32_t i = 0; i < 16 * MANY; i++)
                bench_must(!buffer_append(to, "\0\0\0\0", 4), "memory");
}

static void put_statuses(struct buffer *to)
{
        for (uint32_t i = 0; i < MANY; i++)
                put_plain(to, "status", 2 + i);
}

static void put_cancels(struct buffer *to)
{
        for (uint32_t i = 0; i < MANY; i++)
                put_cancel(to, 2 + i, 1000 + i);
}

static void put_many_ids(struct buffer *to)
{
        put_ids(to, "generate", 2, FRAME_MAX - 64, 1);
}

static void put_wide_ids(struct buffer *to)
{
        put_ids(to, "generate", 2, SMV_TOKENS_MAX, 5);
}

static void put_broken(struct buffer *to)
{
        put_many_ids(to);
        to->bytes[to->end - 1] = 0xc1;
}

static void put_long_text(struct buffer *to)
{
        put_text(to, 2, FRAME_MAX - 128);
}

static void put_long_ids(struct buffer *to)
{
        put_ids(to, "detokenize", 2, SMV_TOKENS_MAX, 1);
}

static void put_just_small(struct buffer *to)
{
        for (uint32_t i = 0; i < 100; i++)
                put_ids(to, "detokenize", 2, 8000, 1);
}

static void put_streams(struct buffer *to)
{
        for (uint32_t i = 0; i < AT_ONCE; i++)
                put_ids(to, "generate", 2 + i, 1, 1);
        for (uint32_t i = 0; i < AT_ONCE; i++)
                put_cancel(to, 2 + AT_ONCE + i, 2 + i);
}

/* ---- attackers ---- */

static int reach(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        strcpy(address.sun_path, bench_socket());
        bench_must(fd >= 0, "socket");
        while (connect(fd, (struct sockaddr *)&address, sizeof(address)))
                usleep(1000);
        return fd;
}

/* Sends all of it, while replies are thrown away; false: the daemon hung up. */
static bool pour(int fd, const struct buffer *all)
{
        static char waste[256 << 10];
        size_t at = all->start;

        while (at < all->end) {
                struct pollfd ask = { .fd = fd, .events = POLLIN | POLLOUT };
                ssize_t n = send(fd, all->bytes + at, all->end - at, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0 && errno != EAGAIN)
                        return false;
                if (n < 0)
                        (void)poll(&ask, 1, -1);
                at += n > 0 ? (size_t)n : 0;
                while ((n = recv(fd, waste, sizeof(waste), MSG_DONTWAIT)) > 0)
                        ;
                if (n == 0)
                        return false;
        }
        return true;
}

static int greet(const char *transport)
{
        struct buffer hello;
        int fd = reach();

        buffer_init(&hello, 4096);
        put_hello(&hello, transport);
        (void)pour(fd, &hello);
        buffer_deinit(&hello);
        return fd;
}

static void flood(void (*put)(struct buffer *to))
{
        struct buffer all;
        int fd = greet("socket");

        buffer_init(&all, 2 * FRAME_MAX);
        put(&all);
        for (;;) {
                if (pour(fd, &all))
                        continue;
                close(fd);
                fd = greet("socket");
        }
}

static void connect_and_go(void (*put)(struct buffer *to))
{
        struct buffer hello;

        buffer_init(&hello, 4096);
        if (put)
                put(&hello);
        else
                put_hello(&hello, "socket");
        for (;;) {
                char byte;
                int fd = reach();

                (void)send(fd, hello.bytes + hello.start, buffer_count(&hello), MSG_NOSIGNAL);
                (void)!read(fd, &byte, 1); /* it is answered */
                close(fd);
        }
}

/* As much as there is, or the first bytes of it only. */
static void wait_for_bytes(int fd, size_t count)
{
        static char waste[256 << 10];

        while (count) {
                ssize_t n = recv(fd, waste, count < sizeof(waste) ? count : sizeof(waste), 0);

                if (n <= 0)
                        return;
                count -= (size_t)n;
        }
}

/* A long reply is on its way, and small ones are asked for behind it. */
static void ask_behind(void (*put)(struct buffer *to))
{
        struct buffer all, small;

        buffer_init(&all, 2 * FRAME_MAX);
        buffer_init(&small, 4096);
        put(&all);
        put_plain(&small, "status", 9);
        for (int fd = greet("socket");;) {
                (void)pour(fd, &all);
                wait_for_bytes(fd, 1024);
                (void)pour(fd, &small);
        }
}

/* Requests long replies, and leaves before they are sent. */
static void ask_and_go(void (*put)(struct buffer *to))
{
        struct buffer all;

        (void)put;
        buffer_init(&all, 4 * FRAME_MAX);
        for (uint32_t i = 0; i < 8; i++)
                put_text(&all, 2 + i, 2 << 20);
        for (;;) {
                int fd = greet("socket");

                (void)send(fd, all.bytes + all.start, buffer_count(&all), MSG_NOSIGNAL);
                usleep(100000);
                close(fd);
        }
}

static const struct {
        const char *name;
        void (*go)(void (*put)(struct buffer *to)); /* NULL: no attack */
        void (*put)(struct buffer *to);
} attacks[] = {
        { "nothing but streams", NULL, NULL },
        { "empty frames", flood, put_nothing },
        { "hellos", connect_and_go, NULL },
        { "status", flood, put_statuses },
        { "cancels", flood, put_cancels },
        { "generates of 8 MiB of ids", flood, put_many_ids },
        { "generates of 2^20 ids, 5 MiB", flood, put_wide_ids },
        { "8 MiB, broken at the end", flood, put_broken },
        { "tokenize of 8 MiB and its reply", flood, put_long_text },
        { "... and status behind it", ask_behind, put_long_text },
        { "... eight of 2 MiB, not read", ask_and_go, NULL },
        { "detokenize of 2^20 ids", flood, put_long_ids },
        { "frames of 8,000 ids", flood, put_just_small },
        { "the largest rings", connect_and_go, put_large_ring },
        { "64 generates and their cancels", flood, put_streams },
};
#define ATTACKS (sizeof(attacks) / sizeof(*attacks))

/* ---- the others ---- */

static void stream_on(enum smv_transport transport)
{
        const struct smv_connect options = { SMV_SIZE(smv_connect), .socket = bench_socket(),
                                             .transport = transport };
        const uint32_t prompt = 0;
        const struct smv_generate ask = { SMV_SIZE(smv_generate), .tokens = &prompt,
                                          .token_count = 1, .max_tokens = LONG };
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint32_t stream;

        bench_must(!smv_connect(&options, &client), "smv_connect");
        for (;;) {
                bench_must(!smv_generate(client, &ask, &stream), "smv_generate");
                while (smv_next(client, &e, -1) == 1 && e.kind != SMV_EVENT_END)
                        ;
        }
}

static int start(void (*go)(void (*put)(struct buffer *to)), void (*put)(struct buffer *to),
                 enum smv_transport transport)
{
        int pid = fork();

        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        null_pin(BENCH_READER_CPU);
        if (go)
                go(put);
        else
                stream_on(transport);
        _exit(0);
}

static void stop(int pid)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static void report(struct shared *shared, uint64_t first, uint64_t count, const char *name)
{
        uint32_t longest = 0, over = 0;

        bench_must(first + count <= TURNS_MAX, "fewer turns");
        for (uint64_t i = first; i < first + count; i++) {
                longest = shared->ns[i] > longest ? shared->ns[i] : longest;
                over += shared->ns[i] > OVER_NS;
        }
        table_add("one turn of the loop, us", name, "", shared->ns + first, count);
        table_add_one("... the longest, us", name, "1000", longest / 1e3);
        table_add_one("... and so many were longer than 1000 us", name, "0", over);
}

static void attack(struct shared *shared, size_t which, double scale)
{
        uint64_t first;
        int pid = attacks[which].go ? start(attacks[which].go, attacks[which].put, 0) : 0;

        counter_set(&shared->count, 0); /* if a turn puts it back, there is room */
        usleep(SETTLE_US);
        first = counter_get(&shared->count);
        usleep((unsigned)(ATTACK_US * scale));
        report(shared, first, counter_get(&shared->count) - first, attacks[which].name);
        if (pid > 0)
                stop(pid);
        usleep(SETTLE_US);
}

void bench_turns(double scale)
{
        static const enum smv_transport ways[] = { SMV_TRANSPORT_RING, SMV_TRANSPORT_SOCKET };
        struct shared *shared = bench_shared(sizeof(*shared));
        const struct pipeline_conf conf = {
                .socket = bench_socket(),
                .connections = 64,
                .requests = 4 * AT_ONCE,
                .context = LONG + 16,
                .depth = 1,
                .model = { .period_ns = 1000000, .cpu = BENCH_SENDER_CPU },
                .facts = &shared->pipeline,
        };
        int daemon, honest[2];

        watched = shared;
        daemon = pipeline_fork(&conf);
        bench_must(daemon > 0, "a pipeline");
        for (size_t i = 0; i < 2; i++)
                honest[i] = start(NULL, NULL, ways[i]);
        for (size_t i = 0; i < ATTACKS; i++)
                attack(shared, i, scale);
        for (size_t i = 0; i < 2; i++)
                stop(honest[i]);
        bench_must(pipeline_stop(daemon) == 0, "the pipeline's end");
        watched = NULL;
        bench_unshare(shared, sizeof(*shared));
}
