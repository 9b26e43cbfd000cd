/*
 * Events that happen once in the life of a connection, and its costs for the daemon while it
 * lasts.  It measures the time from connecting until the ring can be read, the time from a
 * client's kill until its streams are out of the batch, and the CPU time of threads other than
 * the engine.
 */
#include <samovar/client.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/table.h"
#include "bench/thread-time.h"
#include "base/sys.h"

#define SAMPLES_MAX 4096u
#define CLIENTS     16u
#define LONG        100000u /* tokens: more than any client waits for */

struct shared {
        struct pipeline_facts pipeline;
        counter tokens[CLIENTS];
        uint32_t samples[SAMPLES_MAX];
};

static struct pipeline_conf pipeline_conf(struct shared *shared, uint64_t period_ns)
{
        return (struct pipeline_conf){
                .socket = bench_socket(),
                .connections = 4 * CLIENTS,
                .requests = 2 * CLIENTS,
                .context = LONG + 16,
                .depth = 1,
                .model = { .period_ns = period_ns, .cpu = BENCH_SENDER_CPU },
                .facts = &shared->pipeline,
        };
}

static uint32_t count_of(double scale, uint32_t count)
{
        count = (uint32_t)(count * scale) + 5;
        return count < SAMPLES_MAX ? count : SAMPLES_MAX;
}

/* ---- connecting ---- */

struct greeting {
        const char *name, *target;
        enum smv_transport transport;
        size_t ring_bytes;
};

static void connect_often(struct shared *shared, const struct greeting *greeting, uint32_t count)
{
        const struct smv_connect options = { SMV_SIZE(smv_connect), .socket = bench_socket(),
                                             .transport = greeting->transport,
                                             .ring_bytes = greeting->ring_bytes };

        for (uint32_t i = 0; i < count; i++) {
                struct smv_client *client;
                uint64_t from = sys_clock_ns();

                bench_must(!smv_connect(&options, &client), "smv_connect");
                shared->samples[i] = (uint32_t)(sys_clock_ns() - from);
                smv_close(client);
                usleep(500); /* the daemon clears away */
        }
        table_add("smv_connect(), us", greeting->name, greeting->target, shared->samples, count);
}

void bench_connect(double scale)
{
        static const struct greeting greetings[] = {
                { "ring, 64 KiB", "200", SMV_TRANSPORT_RING, 64 << 10 },
                { "ring, 256 KiB", "350", SMV_TRANSPORT_RING, 256 << 10 },
                { "socket", "", SMV_TRANSPORT_SOCKET, 0 },
        };
        struct shared *shared = bench_shared(sizeof(*shared));
        struct pipeline_conf conf = pipeline_conf(shared, 1000000);
        int daemon = pipeline_fork(&conf);

        bench_must(daemon > 0, "a pipeline");
        for (size_t i = 0; i < sizeof(greetings) / sizeof(*greetings); i++)
                connect_often(shared, &greetings[i], count_of(scale, 200));
        bench_must(pipeline_stop(daemon) == 0, "the pipeline's end");
        bench_unshare(shared, sizeof(*shared));
}

/* ---- clients that read until they are killed ---- */

static void read_on(struct shared *shared, uint32_t number, const struct smv_connect *options,
                    uint32_t streams)
{
        const uint32_t prompt = 0;
        const struct smv_generate ask = { SMV_SIZE(smv_generate), .tokens = &prompt,
                                          .token_count = 1, .max_tokens = LONG };
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint32_t stream;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        null_pin(BENCH_READER_CPU);
        bench_must(!smv_connect(options, &client), "smv_connect");
        for (uint32_t i = 0; i < streams; i++)
                bench_must(!smv_generate(client, &ask, &stream), "smv_generate");
        while (smv_next(client, &e, -1) == 1)
                counter_add(&shared->tokens[number], e.token_count);
        _exit(0);
}

static int start_client(struct shared *shared, uint32_t number, const struct smv_connect *options,
                        uint32_t streams)
{
        int pid = fork();

        if (pid == 0)
                read_on(shared, number, options, streams);
        return pid;
}

static void wait_for_tokens(struct shared *shared, uint32_t number, uint64_t count)
{
        while (counter_get(&shared->tokens[number]) < count)
                usleep(200);
}

/* ---- dying ---- */

struct death {
        uint32_t dead_ns; /* until the kernel has closed its descriptors */
        uint32_t out_ns;  /* until nothing runs any more */
        uint64_t steps;   /* that were begun meanwhile */
};

static void kill_one(struct shared *shared, struct death *ret_death)
{
        const struct smv_connect options = { SMV_SIZE(smv_connect), .socket = bench_socket(),
                                             .transport = SMV_TRANSPORT_RING };
        struct stats *stats = &shared->pipeline.stats;
        uint64_t from, steps;
        int pid, ends[2];
        char byte;

        bench_must(!pipe(ends), "pipe");
        counter_set(&shared->tokens[0], 0);
        pid = start_client(shared, 0, &options, 4);
        close(ends[1]);
        wait_for_tokens(shared, 0, 40);

        steps = counter_get(&stats->steps);
        from = sys_clock_ns();
        kill(pid, SIGKILL);
        (void)!read(ends[0], &byte, 1);
        ret_death->dead_ns = (uint32_t)(sys_clock_ns() - from);
        /* spinning would take a processor from the threads that are measured */
        while (counter_get(&stats->running))
                usleep(5);
        ret_death->out_ns = (uint32_t)(sys_clock_ns() - from);
        ret_death->steps = counter_get(&stats->steps) - steps;

        waitpid(pid, NULL, 0);
        close(ends[0]);
        while (counter_get(&stats->channels_open) || counter_get(&stats->ending))
                usleep(200);
}

static void kill_often(const char *name, uint64_t period_ns, double scale)
{
        struct shared *shared = bench_shared(sizeof(*shared));
        struct pipeline_conf conf = pipeline_conf(shared, period_ns);
        uint32_t count = count_of(scale, 20), dead[SAMPLES_MAX];
        uint64_t steps_most = 0;
        struct death death;
        int daemon = pipeline_fork(&conf);

        bench_must(daemon > 0, "a pipeline");
        (void)prctl(PR_SET_TIMERSLACK, 1);
        for (uint32_t i = 0; i < count; i++) {
                kill_one(shared, &death);
                shared->samples[i] = death.out_ns;
                dead[i] = death.dead_ns;
                steps_most = death.steps > steps_most ? death.steps : steps_most;
        }
        bench_must(pipeline_stop(daemon) == 0, "the pipeline's end");
        table_add("kill -9 of a client until its 4 streams are out, us", name, "a step and 1000",
                  shared->samples, count);
        table_add("... of this, until what it held is closed", name, "", dead, count);
        table_add_one("... and steps begun meanwhile, at most", name, "", (double)steps_most);
        bench_unshare(shared, sizeof(*shared));
}

void bench_kill(double scale)
{
        kill_often("a step every 100 us", 100000, scale);
        kill_often("a step every 5 ms", 5000000, scale);
}

/* ---- living ---- */

static void measure_threads(const char *name, const char *target, enum smv_transport transport,
                            enum smv_doorbell doorbell, double scale)
{
        const struct smv_connect options = { SMV_SIZE(smv_connect), .socket = bench_socket(),
                                             .transport = transport, .doorbell = doorbell };
        struct shared *shared = bench_shared(sizeof(*shared));
        struct pipeline_conf conf = pipeline_conf(shared, 5000000);
        uint64_t count = count_of(scale, 200), steps, ns;
        int daemon = pipeline_fork(&conf), pids[CLIENTS];

        bench_must(daemon > 0, "a pipeline");
        for (uint32_t i = 0; i < CLIENTS; i++)
                pids[i] = start_client(shared, i, &options, 1);
        for (uint32_t i = 0; i < CLIENTS; i++)
                wait_for_tokens(shared, i, 10);
        steps = counter_get(&shared->pipeline.stats.steps);
        ns = thread_time_ns(daemon, "waker") + thread_time_ns(daemon, "bench-ring");
        usleep((unsigned)(count * 5000));
        ns = thread_time_ns(daemon, "waker") + thread_time_ns(daemon, "bench-ring") - ns;
        steps = counter_get(&shared->pipeline.stats.steps) - steps;
        for (uint32_t i = 0; i < CLIENTS; i++) {
                kill(pids[i], SIGKILL);
                waitpid(pids[i], NULL, 0);
        }
        bench_must(pipeline_stop(daemon) == 0, "the pipeline's end");
        table_add_one("16 streams, 16 clients: us of waker and loop a step", name, target,
                      (double)ns / 1e3 / (double)(steps ? steps : 1));
        bench_unshare(shared, sizeof(*shared));
}

void bench_threads(double scale)
{
        measure_threads("ring, futex", "0.7 of socket", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX,
                        scale);
        measure_threads("ring, kick", "0.7 of socket", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK,
                        scale);
        measure_threads("socket", "", SMV_TRANSPORT_SOCKET, SMV_DOORBELL_KICK, scale);
}
