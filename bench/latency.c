/*
 * The time from the moment the engine has a token to the moment its reader has it.
 *
 * The token goes through the pipeline: the null model stamps its position, and the client subtracts
 * when smv_next() has returned.  Three other transports are measured in the same way: a ring
 * whose writer rings the doorbell itself, without a waker between; a Unix stream; and TCP with
 * as many bytes as a line of an event stream.
 */
#include <samovar/client.h>

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/reader.h"
#include "bench/table.h"
#include "base/sys.h"

#define COUNT_MAX 32768u

enum kind { PIPELINE, WRITER, WIRE };

struct path {
        const char *name;
        enum kind kind;
        enum smv_transport transport;
        enum smv_doorbell doorbell;
        uint32_t spin_us;
        enum bench_wire wire;
};

struct pace {
        const char *name;
        uint64_t period_ns;
        uint32_t count;
        bool awake; /* the processors are kept from going to sleep */
        const char *target;
};

struct shared {
        struct pipeline_facts pipeline;
        counter ready;
        counter stamps[COUNT_MAX];
        uint32_t samples[COUNT_MAX];
        uint32_t count;
};

static const struct path spinning = { "ring, smv_next() spins", PIPELINE, SMV_TRANSPORT_RING,
                                      SMV_DOORBELL_NONE,        1000000,  0 };
static const struct path sleeping[] = {
        { "ring, kick", PIPELINE, SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, 0, 0 },
        { "ring, futex", PIPELINE, SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX, 0, 0 },
        { "socket", PIPELINE, SMV_TRANSPORT_SOCKET, SMV_DOORBELL_KICK, 0, 0 },
        { "(ring, its writer wakes by futex)", WRITER, 0, 0, 0, 0 },
        { "(Unix send, read)", WIRE, 0, 0, 0, BENCH_UNIX },
        { "(TCP send, read, 200 bytes)", WIRE, 0, 0, 0, BENCH_TCP },
};
#define PATHS (sizeof(sleeping) / sizeof(*sleeping))

static const struct pace spins = { "latency, us: reader spins, a token every 20 us", 20000, 20000,
                                   false, "0.5; p99 2" };
static const struct pace paces[] = {
        { "latency, us: reader sleeps, every 50 us", 50000, 6000, false, "" },
        { "latency, us: reader sleeps, every 20 us, cores awake", 20000, 10000, true,
          "18; p99 30" },
        { "latency, us: reader sleeps, every 5 ms", 5000000, 200, false, "45; p99 100" },
};
#define PACES (sizeof(paces) / sizeof(*paces))

static void note(struct shared *shared, uint32_t at, uint64_t sent)
{
        uint64_t now = sys_clock_ns();

        if (at < COUNT_MAX)
                shared->samples[at] = (uint32_t)(now - sent);
}

/* ---- the pipeline ---- */

static void read_road(struct shared *shared, const struct path *path)
{
        const struct smv_connect options = { SMV_SIZE(smv_connect), .socket = bench_socket(),
                                             .transport = path->transport,
                                             .doorbell = path->doorbell, .spin_us = path->spin_us };
        const uint32_t prompt = 0;
        const struct smv_generate ask = { SMV_SIZE(smv_generate), .tokens = &prompt,
                                          .token_count = 1,       .max_tokens = shared->count,
                                          .set = SMV_SET_SEED,    .seed = 1 };
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint32_t stream;

        bench_must(!smv_connect(&options, &client), "smv_connect");
        bench_must(!smv_generate(client, &ask, &stream), "smv_generate");
        do {
                bench_must(smv_next(client, &e, 10000) == 1, "smv_next");
                if (e.kind == SMV_EVENT_TOKENS && e.token_count)
                        note(shared, e.position - 1,
                             counter_get(&shared->stamps[e.position % COUNT_MAX]));
        } while (e.kind != SMV_EVENT_END);
        smv_close(client);
}

static void go_road(struct shared *shared, const struct path *path, const struct pace *pace)
{
        const struct pipeline_conf conf = {
                .socket = bench_socket(),
                .connections = 4,
                .requests = 4,
                .context = 2 * COUNT_MAX,
                .depth = 1,
                .model = { .period_ns = pace->period_ns,
                           .cpu = BENCH_SENDER_CPU,
                           .stamps = shared->stamps,
                           .stamp_count = COUNT_MAX },
                .facts = &shared->pipeline,
        };
        int daemon = pipeline_fork(&conf), reader, status = -1;

        bench_must(daemon > 0, "a pipeline");
        reader = fork();
        if (reader == 0) {
                null_pin(BENCH_READER_CPU);
                read_road(shared, path);
                _exit(0);
        }
        waitpid(reader, &status, 0);
        bench_must(status == 0, "a reader");
        bench_must(pipeline_stop(daemon) == 0, "the pipeline's end");
}

/* ---- the others ---- */

static void wait_until_ready(struct shared *shared)
{
        while (!counter_get(&shared->ready))
                usleep(1000);
        usleep(20000);
}

static void read_ring(struct shared *shared, const struct channel *channel)
{
        struct reader reader;

        bench_must(!reader_open(&reader, channel, -1), "a reader");
        counter_set(&shared->ready, 1);
        for (uint32_t i = 0; i < shared->count; i++) {
                const struct smv_record *record = reader_next(&reader);

                bench_must(record != NULL, "a record");
                note(shared, record->sequence, counter_get(&shared->stamps[record->sequence]));
        }
}

static void write_ring(struct shared *shared, struct channel *channel, const struct pace *pace)
{
        uint64_t due = sys_clock_ns();
        void *payload;

        for (uint32_t i = 0; i < shared->count; i++) {
                null_spin_until(due += pace->period_ns);
                counter_set(&shared->stamps[i], sys_clock_ns());
                bench_must(!ring_put(&channel->writer, SMV_RECORD_TOKENS, 0, 1, i, 13, &payload),
                           "room");
                memset(payload, 0, 13);
                ring_publish(&channel->writer);
                channel_show(channel);
                if (channel_is_due(channel))
                        (void)sys_futex_wake_shared((const uint32_t *)&channel->writer.page->tail);
        }
}

static void read_wire(struct shared *shared, int fd, size_t bytes)
{
        char message[200];

        counter_set(&shared->ready, 1);
        for (uint32_t i = 0; i < shared->count; i++) {
                for (size_t have = 0; have < bytes;) {
                        ssize_t n = read(fd, message + have, bytes - have);

                        bench_must(n > 0, "read");
                        have += (size_t)n;
                }
                note(shared, i, counter_get(&shared->stamps[i]));
        }
}

static void write_wire(struct shared *shared, int fd, size_t bytes, const struct pace *pace)
{
        const char message[200] = { 0 };
        uint64_t due = sys_clock_ns();

        for (uint32_t i = 0; i < shared->count; i++) {
                null_spin_until(due += pace->period_ns);
                counter_set(&shared->stamps[i], sys_clock_ns());
                bench_must(send(fd, message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes, "send");
        }
}

static void go_plain(struct shared *shared, const struct path *path, const struct pace *pace)
{
        size_t bytes = bench_wire_bytes(path->wire);
        struct channel *channel = NULL;
        int fds[2] = { -1, -1 }, pids[2], status;

        if (path->kind == WIRE)
                bench_pair(path->wire, fds);
        else
                bench_must(!channel_new_shared(0, 1 << 20, CHANNEL_FUTEX, &channel), "a channel");
        for (int i = 0; i < 2; i++) {
                pids[i] = fork();
                if (pids[i])
                        continue;
                null_pin(i ? BENCH_SENDER_CPU : BENCH_READER_CPU);
                if (i)
                        wait_until_ready(shared);
                if (channel)
                        i ? write_ring(shared, channel, pace) : read_ring(shared, channel);
                else
                        i ? write_wire(shared, fds[0], bytes, pace)
                          : read_wire(shared, fds[1], bytes);
                _exit(0);
        }
        for (int i = 0; i < 2; i++) {
                waitpid(pids[i], &status, 0);
                bench_must(status == 0, "a sender and a reader");
        }
        channel_free(channel, false);
        sys_close(fds[0]);
        sys_close(fds[1]);
}

/* ---- rounds ---- */

/* Runs only when the processor would be idle, and so keeps it from sleeping. */
static int stay_awake(int cpu)
{
        const struct sched_param none = { 0 };
        int pid = fork();

        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        null_pin(cpu);
        (void)sched_setscheduler(0, SCHED_IDLE, &none);
        null_spin_until(UINT64_MAX);
        _exit(0);
}

static void go(const struct path *path, const struct pace *pace, double scale, const char *target)
{
        struct shared *shared = bench_shared(sizeof(*shared));
        int spinners[2] = { 0 };

        shared->count = (uint32_t)(pace->count * scale) + 20;
        if (shared->count > COUNT_MAX)
                shared->count = COUNT_MAX;
        for (int i = 0; pace->awake && i < 2; i++)
                spinners[i] = stay_awake(i);
        if (path->kind == PIPELINE)
                go_road(shared, path, pace);
        else
                go_plain(shared, path, pace);
        for (int i = 0; i < 2; i++) {
                if (spinners[i] > 0) {
                        kill(spinners[i], SIGKILL);
                        waitpid(spinners[i], NULL, 0);
                }
        }
        table_add(pace->name, path->name, target, shared->samples, shared->count);
        bench_unshare(shared, sizeof(*shared));
}

void bench_latency(double scale)
{
        go(&spinning, &spins, scale, spins.target);
        for (size_t i = 0; i < PACES; i++)
                for (size_t j = 0; j < PATHS; j++)
                        go(&sleeping[j], &paces[i], scale,
                           sleeping[j].transport == SMV_TRANSPORT_RING ? paces[i].target : "");
}
