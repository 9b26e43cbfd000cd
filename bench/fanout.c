/*
 * The cost of a step's tokens for the engine's thread: one token for each of N streams, to
 * readers that sleep between steps.  Each reader is a separate process.
 *
 * The rings are the daemon's: publish_token() for each stream, then publish_flush(), with a
 * waker.  For comparison it also measures the work of a server without rings on that thread.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/reader.h"
#include "bench/table.h"
#include "bench/thread-time.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/waker.h"
#include "daemon/model/served.h"
#include "base/sys.h"
#include "daemon/text/tokenizer.h"

#define PERIOD_NS   5000000u
#define STEPS       100u
#define STEPS_MAX   4096u
#define STREAMS_MAX 256u
#define RING_BYTES  (256u << 10)

enum kind { RING, SENDS, SENDS_TOGETHER };

struct method {
        const char *name;
        enum kind kind;
        enum channel_bell bell;
        enum bench_wire wire;
        bool plain; /* every WAKE goes to the waker, and that runs where the kernel puts it */
};

static const struct method methods[] = {
        { "ring, futex", RING, CHANNEL_FUTEX, 0, false },
        { "(ring, futex, always a waker, anywhere)", RING, CHANNEL_FUTEX, 0, true },
        { "ring, kick", RING, CHANNEL_KICK, 0, false },
        { "(ring, kick, always a waker, anywhere)", RING, CHANNEL_KICK, 0, true },
        { "ring, none", RING, CHANNEL_NONE, 0, false },
        { "(Unix, a send for each token)", SENDS, 0, BENCH_UNIX, false },
        { "(Unix, a send for each connection)", SENDS_TOGETHER, 0, BENCH_UNIX, false },
        { "(TCP, a send for each token, 200 bytes)", SENDS, 0, BENCH_TCP, false },
};
#define METHODS (sizeof(methods) / sizeof(*methods))

struct crowd {
        uint32_t streams, connections;
        const char *target;
        const char *group, *waker, *bells, *sleeps; /* headings */
};

#define CROWD(streams, connections, what, target)                                                  \
        {                                                                                          \
                streams, connections, target,                                                      \
                        "fan-out, " what ": us of the engine's thread in a step",                  \
                        "fan-out, " what ": us of the waker's thread for a ring of the bell",      \
                        "fan-out, " what ": rings of a connection's bell in a step",               \
                        "fan-out, " what ": times that the waker slept in a step"                  \
        }

static const struct crowd crowds[] = {
        CROWD(1, 1, "1 stream", ""),
        CROWD(16, 16, "16 streams, 16 connections", ""),
        CROWD(64, 64, "64 streams, 64 connections", ""),
        CROWD(256, 256, "256 streams, 256 connections", "15"),
        CROWD(256, 16, "256 streams, 16 connections", "10"),
};
#define CROWDS (sizeof(crowds) / sizeof(*crowds))

struct shared {
        struct stats stats;
        counter ready[STREAMS_MAX];
        uint32_t samples[STEPS_MAX];
        uint32_t steps;
        uint64_t waker_ns, waker_sleeps;
};

struct engine {
        const struct method *method;
        const struct crowd *crowd;
        struct shared *shared;
        struct channel *channels[STREAMS_MAX];
        int fds[STREAMS_MAX][2], readers[STREAMS_MAX];
        struct served served;
        struct request requests[STREAMS_MAX];
        struct publish *publish;
        struct waker *waker;
        struct mailbox *to_waker, *from_waker;
        uint32_t position;
};

/* ---- readers ---- */

static void read_all(struct engine *engine, uint32_t at)
{
        struct channel *channel = engine->channels[at];
        struct reader reader;
        char bytes[16384];

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        null_pin(BENCH_READER_CPU);
        if (channel)
                bench_must(!reader_open(&reader, channel, engine->fds[at][1]), "a reader");
        counter_set(&engine->shared->ready[at], 1);
        if (channel)
                while (reader_next(&reader))
                        ;
        else
                while (recv(engine->fds[at][1], bytes, sizeof(bytes), 0) > 0)
                        ;
        _exit(0);
}

static void open_connection(struct engine *engine, uint32_t at)
{
        const struct method *method = engine->method;

        engine->fds[at][0] = engine->fds[at][1] = -1;
        if (method->kind != RING || method->bell == CHANNEL_KICK)
                bench_pair(method->wire, engine->fds[at]);
        if (method->kind != RING)
                return;
        bench_must(!channel_new_shared(at, RING_BYTES, method->bell, &engine->channels[at]),
                   "a ring");
        engine->channels[at]->socket = engine->fds[at][0];
}

static void start_readers(struct engine *engine)
{
        for (uint32_t i = 0; i < engine->crowd->connections; i++) {
                engine->readers[i] = fork();
                bench_must(engine->readers[i] >= 0, "fork");
                if (!engine->readers[i])
                        read_all(engine, i);
        }
        for (uint32_t i = 0; i < engine->crowd->connections; i++)
                while (!counter_get(&engine->shared->ready[i]))
                        usleep(1000);
        usleep(50000);
}

/* ---- the engine's half ---- */

static void open_publish(struct engine *engine)
{
        uint32_t streams = engine->crowd->streams, connections = engine->crowd->connections;
        struct publish_conf conf = { .requests_max = streams, .channels = connections };

        bench_must(!tokenizer_open_bytes(NULL_VOCAB, &engine->served.tokenizer), "a tokenizer");
        bench_must(!mailbox_new(2 * connections + 2, -1, &engine->to_waker), "a mailbox");
        bench_must(!mailbox_new(2 * connections + 2, -1, &engine->from_waker), "a mailbox");
        conf.piece_max = tokenizer_piece_max(engine->served.tokenizer);
        conf.waker = engine->to_waker;
        bench_must(!waker_start(engine->to_waker, engine->from_waker, &engine->shared->stats,
                                &engine->waker),
                   "the waker");
        if (!engine->method->plain)
                conf.wake_inline = engine->waker;
        bench_must(!publish_new(&conf, &engine->publish), "publish");
        for (uint32_t i = 0; i < streams; i++) {
                struct request *request = &engine->requests[i];

                request->number = request->stream = i;
                request->model = &engine->served;
                request->channel = engine->channels[i % connections];
                request->record_bytes_max = publish_record_bytes_max(conf.piece_max, 0, 0);
                request->end_bytes_max = publish_end_bytes_max(0);
                publish_begin(engine->publish, request, false);
        }
}

/* As the scheduler would, before the step that is measured. */
static void wait_for_room(struct engine *engine)
{
        uint64_t need = engine->crowd->streams * engine->requests[0].record_bytes_max, room;

        for (uint32_t i = 0; i < engine->crowd->connections; i++) {
                do
                        bench_must(!publish_free_bytes(engine->channels[i], &room),
                                   "a reader's head");
                while (room < need);
        }
}

static void step_ring(struct engine *engine)
{
        for (uint32_t i = 0; i < engine->crowd->streams; i++)
                (void)publish_token(engine->publish, &engine->requests[i], 'a' + i % 26, NULL,
                                    engine->position, SCHED_CONTINUE);
        publish_flush(engine->publish);
}

static void step_sends(struct engine *engine)
{
        static const char messages[STREAMS_MAX * 200];
        size_t bytes = bench_wire_bytes(engine->method->wire);
        uint32_t connections = engine->crowd->connections, count = engine->crowd->streams;

        if (engine->method->kind == SENDS_TOGETHER) {
                bytes *= count / connections;
                count = connections;
        }
        for (uint32_t i = 0; i < count; i++)
                (void)send(engine->fds[i % connections][0], messages, bytes,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void step(struct engine *engine, uint32_t *ret_ns)
{
        uint64_t from;

        if (engine->method->kind == RING)
                wait_for_room(engine);
        from = sys_clock_ns();
        if (engine->method->kind == RING)
                step_ring(engine);
        else
                step_sends(engine);
        *ret_ns = (uint32_t)(sys_clock_ns() - from);
        engine->position++;
}

static void *make_steps(void *arg)
{
        struct engine *engine = arg;
        struct shared *shared = engine->shared;
        uint64_t due;

        null_pin(BENCH_SENDER_CPU);
        due = sys_clock_ns();
        for (uint32_t i = 0; i < shared->steps; i++) {
                null_spin_until(due += PERIOD_NS);
                step(engine, &shared->samples[i]);
        }
        return NULL;
}

static void run(struct engine *engine)
{
        struct shared *shared = engine->shared;
        int self = (int)getpid();
        pthread_t thread;

        for (uint32_t i = 0; i < engine->crowd->connections; i++)
                open_connection(engine, i);
        start_readers(engine);
        if (engine->method->kind == RING)
                open_publish(engine);
        shared->waker_ns = thread_time_ns(self, "waker");
        shared->waker_sleeps = thread_sleeps(self, "waker");
        bench_must(!pthread_create(&thread, NULL, make_steps, engine), "a thread");
        pthread_join(thread, NULL);
        usleep(20000);
        shared->waker_ns = thread_time_ns(self, "waker") - shared->waker_ns;
        shared->waker_sleeps = thread_sleeps(self, "waker") - shared->waker_sleeps;
        for (uint32_t i = 0; i < engine->crowd->connections; i++)
                kill(engine->readers[i], SIGKILL);
        for (uint32_t i = 0; i < engine->crowd->connections; i++)
                waitpid(engine->readers[i], NULL, 0);
}

/* ---- rounds ---- */

static void note(const struct method *method, const struct crowd *crowd, struct shared *shared)
{
        uint64_t doorbells = counter_get(&shared->stats.doorbells);

        table_add(crowd->group, method->name, method->kind == RING ? crowd->target : "",
                  shared->samples, shared->steps);
        if (!doorbells || crowd->streams == 1)
                return;
        table_add_one(crowd->waker, method->name, method->bell == CHANNEL_KICK ? "3" : "2.5",
                      (double)shared->waker_ns / 1e3 / (double)doorbells);
        table_add_one(crowd->bells, method->name, "1",
                      (double)doorbells / crowd->connections / shared->steps);
        table_add_one(crowd->sleeps, method->name, "1",
                      (double)shared->waker_sleeps / shared->steps);
}

static void go(const struct method *method, const struct crowd *crowd, double scale)
{
        struct shared *shared = bench_shared(sizeof(*shared));
        int pid, status = -1;

        shared->steps = (uint32_t)(STEPS * scale) + 20;
        if (shared->steps > STEPS_MAX)
                shared->steps = STEPS_MAX;
        pid = fork();
        if (pid == 0) {
                static struct engine engine;

                engine.method = method;
                engine.crowd = crowd;
                engine.shared = shared;
                run(&engine);
                _exit(0);
        }
        waitpid(pid, &status, 0);
        bench_must(status == 0, "an engine");
        note(method, crowd, shared);
        bench_unshare(shared, sizeof(*shared));
}

void bench_fanout(double scale)
{
        for (size_t i = 0; i < CROWDS; i++)
                for (size_t j = 0; j < METHODS; j++)
                        if (methods[j].kind != SENDS_TOGETHER ||
                            crowds[i].streams != crowds[i].connections)
                                go(&methods[j], &crowds[i], scale);
}
