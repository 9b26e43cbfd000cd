/*
 * The exercises: each run has a private daemon that has seen no request but those to warm up.
 *
 *      batch-sizes     a set of requests that is there from the start (offline), with daemons of
 *                      1, 2, 4, ... slots: how throughput grows with the batch, and latency too
 *      batching        the same arrivals for daemons that batch continuously, dynamically and
 *                      statically, at shares of the rate that continuous batching can keep up with
 */
#include <stdio.h>
#include <string.h>

#include "cli/bench/bench.h"

#define FLAGS_MAX      16u
#define BATCH          16u
#define DYNAMIC_MS     50u
#define STATIC_MS      "60000" /* every batch becomes full before */
#define ALIVE_MAX      "65536"
#define WAIT_S         60
#define BATCHES_EACH   4u /* requests for each slot */
#define BATCHES_STATIC 8u

static const char *const policies[] = { "continuous", "dynamic", "static" };

struct flags {
        const char *at[FLAGS_MAX];
        uint32_t count;
        char slots[16], window[16];
};

static void add(struct flags *flags, const char *name, const char *value)
{
        flags->at[flags->count++] = name;
        flags->at[flags->count++] = value;
        flags->at[flags->count] = NULL;
}

/* Limits that are never reached: all requests of an exercise may wait at once. */
static void make_flags(struct flags *flags, uint32_t slots, const char *policy, uint32_t window_ms)
{
        *flags = (struct flags){ .count = 0 };
        snprintf(flags->slots, sizeof(flags->slots), "%u", slots);
        snprintf(flags->window, sizeof(flags->window), "%u", window_ms);
        add(flags, "--max-seqs", flags->slots);
        add(flags, "--requests", ALIVE_MAX);
        add(flags, "--uid-requests", ALIVE_MAX);
        add(flags, "--uid-prompt-bytes", "16G");
        if (!policy)
                return;
        add(flags, "--batching", policy);
        add(flags, "--batch-size", flags->slots);
        if (strcmp(policy, "continuous"))
                add(flags, "--batch-window-ms",
                    strcmp(policy, "static") ? flags->window : STATIC_MS);
}

/* ---- a private daemon for one run ---- */

struct server {
        struct smv_client *client;
        struct target *target;
        pid_t pid;
};

static void stop(struct server *server)
{
        char how[64];

        target_close(server->target);
        smv_close(server->client);
        if (server->pid)
                daemon_end(server->pid, how, sizeof(how));
        *server = (struct server){ .pid = 0 };
}

static int start(struct bench *bench, const struct flags *flags, struct server *server)
{
        char why[256] = "";
        struct smv_connect connect = { SMV_SIZE(smv_connect),
                                       .use_fd = 1,
                                       .timeout_ms = WAIT_S * 1000,
                                       .message = why,
                                       .message_bytes = sizeof(why),
                                       .ring_bytes = 1u << 20,
                                       .transport = bench->cli->transport };
        struct target_options options;
        int r;

        *server = (struct server){ .pid = 0 };
        r = daemon_start_with(bench->cli->model, flags->at, &connect.fd, &server->pid);
        if (r)
                return r;
        r = smv_connect(&connect, &server->client);
        bench_target_options(bench, &options);
        options.model = NULL; /* it has one */
        if (!r)
                r = target_open_socket(&options, server->client, NULL, &server->target, why,
                                       sizeof(why));
        if (!r) {
                bench->report.servers[0] = server->target->facts;
                bench->report.server_count = 1;
                return 0;
        }
        stop(server);
        say("the private samovard did not start: %s", why);
        return CLI_NO_DAEMON;
}

/* Starts a daemon, runs the load, stops the daemon. */
static int run(struct bench *bench, const struct flags *flags, const struct load *load,
               uint32_t level, const char *label, uint32_t round)
{
        struct server server;
        int r = start(bench, flags, &server);

        if (!r)
                r = bench_run(bench, server.target, load, level, label, 0, round);
        stop(&server);
        return r;
}

/* ---- batch sizes ---- */

/*
 * All requests are given at once, and the daemon has as many slots as the batch: the concurrency is
 * not that of clients.
 */
static int run_batch_size(struct bench *bench, uint32_t level, uint32_t round)
{
        struct load load = plan_load(&bench->plan, level, round);
        uint32_t slots = load.concurrency;
        struct flags flags;

        make_flags(&flags, slots > 1024 ? 1024 : slots, NULL, 0);
        if (!bench->plan.load.requests && !load.seconds)
                load.requests = slots * BATCHES_EACH < 8 ? 8 : slots * BATCHES_EACH;
        if (!load.seconds)
                load.concurrency = load.requests;
        return run(bench, &flags, &load, slots, "", round);
}

static int run_batch_sizes(struct bench *bench)
{
        int r = bench_begin(bench);

        bench->report.batches = true;
        snprintf(bench->report.title, sizeof(bench->report.title), "Batch sizes, offline");
        if (!bench->plan.load.requests && !(bench->plan.load.seconds > 0))
                snprintf(bench->report.load, sizeof(bench->report.load),
                         "all requests at once, %u for each slot of the daemon; seed %llu",
                         BATCHES_EACH, (unsigned long long)bench->plan.seed);
        for (uint32_t round = 0; round < bench->plan.rounds && !r; round++)
                for (uint32_t i = 0; i < plan_levels(&bench->plan) && !r && !load_interrupted; i++)
                        r = run_batch_size(bench, i, round);
        return r ? r : bench_finish(bench);
}

/* ---- policies ---- */

/* Requests a second of continuous batching, when all are there at once. */
static int find_capacity(struct bench *bench, uint32_t batch, uint32_t requests, double *ret_rate)
{
        struct load load = plan_load(&bench->plan, 0, 0);
        struct server server;
        struct load_result result = { .seconds = 0 };
        struct flags flags;
        int r;

        make_flags(&flags, batch, policies[0], 0);
        r = start(bench, &flags, &server);
        if (r)
                return r;
        load.requests = requests;
        load.concurrency = requests;
        load.times = false;
        load.seed = ~load.seed;
        r = load_run(&load, &bench->plan.workload, server.target, NULL, &result);
        stop(&server);
        *ret_rate = result.seconds > 0 ? result.samples.count / result.seconds : 0;
        if (!r && *result.samples.why) {
                say("a request failed while the capacity was measured: %s", result.samples.why);
                r = CLI_FAILED;
        } else if (r) {
                say("out of memory");
                r = CLI_FAILED;
        }
        load_result_deinit(&result);
        return r;
}

static int run_policies(struct bench *bench, uint32_t batch, double rate, uint32_t level,
                        uint32_t round)
{
        uint32_t window = bench->cli->bench.window_ms ? bench->cli->bench.window_ms : DYNAMIC_MS;
        struct load load = plan_load(&bench->plan, 0, round);
        struct flags flags;
        int r = 0;

        load.rate = rate;
        load.concurrency = 0;
        load.times = false;
        load.seed += (uint64_t)level * 7919;
        if (!bench->plan.load.requests)
                load.requests = batch * BATCHES_STATIC;
        /* So that every batch becomes full, those to warm up too. */
        load.requests = (load.requests + batch - 1) / batch * batch;
        load.warm_up = batch;
        for (uint32_t i = 0; i < 3 && !r && !load_interrupted; i++) {
                uint32_t policy = (i + round) % 3;

                make_flags(&flags, batch, policies[policy], window);
                r = run(bench, &flags, &load, 0, policies[policy], round);
        }
        return r;
}

static int run_batching(struct bench *bench)
{
        const struct plan *plan = &bench->plan;
        uint32_t batch = bench->cli->bench.batch ? bench->cli->bench.batch : BATCH;
        double capacity = 0;
        int r = bench_begin(bench);

        bench->report.by_rate = bench->report.open = true;
        snprintf(bench->report.title, sizeof(bench->report.title),
                 "Static, dynamic and continuous batching");
        if (!r)
                r = find_capacity(bench, batch, batch * BATCHES_STATIC, &capacity);
        snprintf(bench->report.load, sizeof(bench->report.load),
                 "Poisson arrivals at shares of %.3g requests a second, which is the capacity of "
                 "continuous batching; batches of %u, dynamic ones wait for %u ms",
                 capacity, batch,
                 bench->cli->bench.window_ms ? bench->cli->bench.window_ms : DYNAMIC_MS);
        for (uint32_t round = 0; round < plan->rounds && !r; round++)
                for (uint32_t i = 0; i < plan->share_count && !r && !load_interrupted; i++)
                        r = run_policies(bench, batch, capacity * plan->shares[i] / 100, i, round);
        return r ? r : bench_finish(bench);
}

int bench_exercises(struct bench *bench)
{
        enum exercise exercise = bench->plan.exercise;
        int r = cli_find_model(bench->cli);

        if (!r && exercise & EXERCISE_BATCH_SIZES)
                r = run_batch_sizes(bench);
        if (!r && exercise == EXERCISE_ALL && !bench->cli->json)
                r = screen_raw("\n", 1);
        if (!r && exercise & EXERCISE_BATCHING) {
                report_deinit(&bench->report);
                r = run_batching(bench);
        }
        return r;
}
