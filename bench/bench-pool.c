/*
 * Policies of admission to the KV pool, over the same trace and with pools of several sizes:
 *
 *      bench-pool [OPTIONS] >RESULTS
 *
 * The results are lines of CSV, one for each run, after lines that begin with "# " and describe the
 * measurement.  contrib/dev/pool.py makes a table and a picture of them.
 *
 * There is no model and no clock: the scheduler, or a simulation of vLLM's, runs with a model of
 * step costs in simulated time.  So the figures are the same on every machine.
 * docs/internals/bench.md explains them.
 */
#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pool-sched.h"
#include "bench/pool-vllm.h"

#define POOLS_MAX  8u
#define NEVER_NS   UINT64_MAX
#define LEAD_NS    UINT64_C(500000000)
#define PROMOTE_NS UINT64_C(30000000000)

enum pool_policy {
        POLICY_RESERVE, /* the scheduler; requests ask for many tokens, and all are promised */
        POLICY_LEARNED, /* the scheduler; requests ask the same, and begin by need */
        POLICY_ORACLE,  /* the scheduler; each request asks for as many as it will have */
        POLICY_VLLM,
        POLICY_N,
};

static const char *const policy_names[POLICY_N] = { "reserve", "learned", "oracle", "vllm" };

struct bench {
        /* From the command line. */
        const char *path; /* NULL: a trace that trace_make() makes */
        uint32_t first, count, slots, rows, context, users, max_tokens, gap_ms;
        double speedup, pools[POOLS_MAX];
        uint32_t pool_count;
        uint64_t seed;
        struct step_cost cost;

        /* Found at the start. */
        struct trace trace;
        uint32_t *asks;  /* max_tokens of each request */
        double need;     /* blocks */
        uint32_t longer; /* requests that were left out */
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
        va_list values;

        fputs("bench-pool: ", stderr);
        va_start(values, format);
        vfprintf(stderr, format, values);
        va_end(values);
        fputc('\n', stderr);
        exit(1);
}

/* ---- the policies ---- */

/* The scheduler as a daemon has it with its default settings, but for the sizes. */
static struct sched_conf default_conf(const struct bench *bench, uint32_t blocks)
{
        return (struct sched_conf){ .blocks = blocks,
                                    .slots = bench->slots,
                                    .rows = bench->rows,
                                    .context = bench->context,
                                    .depth = 1,
                                    .requests_max = bench->trace.count,
                                    .channels = 1,
                                    .stall_timeout_ns = NEVER_NS,
                                    .stall_preempt_ns = NEVER_NS,
                                    .preemptions_max = 8,
                                    .preempt_target = 10,
                                    .lead_ns = LEAD_NS,
                                    .promote_ns = PROMOTE_NS,
                                    .token_gap_ns = bench->gap_ms * UINT64_C(1000000) };
}

/* A client that does not know the length of its answer asks for this many tokens. */
static uint32_t cautious_ask(const struct bench *bench, uint32_t blocks,
                             const struct trace_request *request)
{
        uint64_t room = (uint64_t)blocks * BLOCK_POSITIONS, most = bench->max_tokens;

        room = (room < bench->context ? room : bench->context);
        if (request->prompt + most > room)
                most = room > request->prompt ? room - request->prompt : 0;
        return most > request->output ? (uint32_t)most : request->output;
}

/* All differences between the policies that use the scheduler: its settings and max_tokens. */
static void set_up(const struct bench *bench, enum pool_policy policy, uint32_t blocks,
                   struct pool_sched *ret_setup)
{
        *ret_setup = (struct pool_sched){ .conf = default_conf(bench, blocks),
                                          .max_tokens = bench->asks,
                                          .users = bench->users,
                                          .seed = bench->seed };
        for (int class = 0; class < REQUEST_PRIORITY_N; class ++)
                ret_setup->conf.learned[class] = policy == POLICY_LEARNED;
        for (uint32_t i = 0; i < bench->trace.count; i++) {
                const struct trace_request *request = &bench->trace.requests[i];

                bench->asks[i] = policy == POLICY_ORACLE ? request->output
                                                         : cautious_ask(bench, blocks, request);
        }
}

/* Runs the trace; the log must be freed. */
static struct pool_figures run(const struct bench *bench, enum pool_policy policy, uint32_t blocks,
                               struct pool_log *log)
{
        const struct pool_world world = { .trace = &bench->trace,
                                          .cost = bench->cost,
                                          .blocks = blocks,
                                          .slots = bench->slots,
                                          .rows = bench->rows };
        struct pool_figures figures;
        struct pool_sched setup;
        int r = pool_log_init(log, bench->trace.count);

        if (!r && policy == POLICY_VLLM) {
                r = pool_vllm_run(&world, log);
        } else if (!r) {
                set_up(bench, policy, blocks, &setup);
                r = pool_sched_run(&world, &setup, log);
        }
        if (!r)
                r = pool_log_figures(log, &world, &figures);
        if (r)
                die("out of memory");
        return figures;
}

/* ---- the trace and the pools ---- */

static uint32_t pool_blocks(const struct bench *bench, uint32_t pool)
{
        double blocks = bench->need * bench->pools[pool];

        return blocks < 1 ? 1 : (uint32_t)(blocks + 0.5);
}

/* Leaves out requests that need more positions; returns how many. */
static uint32_t leave_out(struct trace *trace, uint64_t positions)
{
        uint32_t left = 0, out;

        for (uint32_t i = 0; i < trace->count; i++)
                if ((uint64_t)trace->requests[i].prompt + trace->requests[i].output <= positions)
                        trace->requests[left++] = trace->requests[i];
        out = trace->count - left;
        trace->count = left;
        if (!left)
                die("no request has at most %" PRIu64 " tokens, which the context or the smallest "
                    "pool allows; give a larger --context or larger --pools",
                    positions);
        for (uint32_t i = left; i > 0; i--)
                trace->requests[i - 1].at -= trace->requests[0].at;
        return out;
}

static void find_trace(struct bench *bench)
{
        char why[256] = "out of memory";
        int r = bench->path ? trace_read(bench->path, bench->first, bench->count, &bench->trace,
                                         why, sizeof(why))
                            : trace_make(bench->seed, bench->count, &bench->trace);

        if (r)
                die("%s: %s", bench->path ? bench->path : "the trace", why);
        trace_shrink(&bench->trace, 1); /* no length is 0 */
        for (uint32_t i = 0; i < bench->trace.count; i++)
                bench->trace.requests[i].at /= bench->speedup;
        bench->longer = leave_out(&bench->trace, bench->context);
        bench->asks = calloc(bench->trace.count, sizeof(*bench->asks));
        if (!bench->asks)
                die("out of memory");
}

/* The mean need: the blocks in use if the pool has a full context for each slot. */
static void find_need(struct bench *bench)
{
        uint64_t blocks = (uint64_t)bench->slots * blocks_for(bench->context);
        uint32_t smallest = 0;
        struct pool_log log;

        if (blocks > UINT32_MAX / BLOCK_POSITIONS)
                die("--slots %u with --context %u make a pool of %" PRIu64 " blocks, and the "
                    "limit is %u; give smaller ones",
                    bench->slots, bench->context, blocks, UINT32_MAX / BLOCK_POSITIONS);
        bench->need = run(bench, POLICY_ORACLE, (uint32_t)blocks, &log).blocks_mean;
        pool_log_deinit(&log);
        for (uint32_t i = 1; i < bench->pool_count; i++)
                if (bench->pools[i] < bench->pools[smallest])
                        smallest = i;
        bench->longer +=
                leave_out(&bench->trace, (uint64_t)pool_blocks(bench, smallest) * BLOCK_POSITIONS);
}

/* ---- output ---- */

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void tell_settings(const struct bench *bench)
{
        const char *command = getenv("BENCH_COMMAND");
        const struct trace *trace = &bench->trace;
        double prompts = 0, outputs = 0, last = trace->requests[trace->count - 1].at;

        for (uint32_t i = 0; i < trace->count; i++) {
                prompts += trace->requests[i].prompt;
                outputs += trace->requests[i].output;
        }
        printf("# machine: none; time is simulated, so every machine has these figures\n");
        printf("# trace: %s, %u requests from number %u on, of which %u are too long and left "
               "out\n",
               bench->path ? last_part(bench->path) : "made up", bench->count, bench->first,
               bench->longer);
        printf("# load: times divided by %g, %.3g requests a second; %.0f tokens of prompt and "
               "%.0f of answer on average\n",
               bench->speedup, last > 0 ? (trace->count - 1) / last : 0, prompts / trace->count,
               outputs / trace->count);
        printf("# steps: %.4g us, %.4g us a row, %.4g ns a position; %u rows, %u slots, context "
               "%u\n",
               bench->cost.base_ns / 1e3, bench->cost.row_ns / 1e3, bench->cost.position_ns,
               bench->rows, bench->slots, bench->context);
        printf("# asked: %u tokens, or as many as fit; %u users\n", bench->max_tokens,
               bench->users);
        printf("# mean need: %.0f blocks, as an oracle uses of a pool without limit\n",
               bench->need);
        if (command)
                printf("# command: %s\n", command);
}

static void tell_figures(const struct bench *bench, uint32_t pool, enum pool_policy policy,
                         const struct pool_figures *figures)
{
        uint32_t blocks = pool_blocks(bench, pool);

        printf("%g,%u,%s,%.6g,%.6g,%.6g,%.6g,%.6g,%" PRIu64 ",%.6g,%.6g,%.6g,%.6g\n",
               bench->pools[pool], blocks, policy_names[policy], figures->requests_s,
               figures->tokens_s, figures->running_mean, figures->running_p95,
               figures->preemptions_100, figures->recomputed, figures->ttft_mean, figures->ttft_p50,
               figures->ttft_p95, figures->blocks_mean / blocks);
        fflush(stdout);
}

/* ---- the runs ---- */

static void run_pools(const struct bench *bench)
{
        puts("pool,blocks,policy,requests_s,tokens_s,running_mean,running_p95,preemptions_100,"
             "recomputed,ttft_mean,ttft_p50,ttft_p95,in_use");
        for (uint32_t i = 0; i < bench->pool_count * POLICY_N; i++) {
                uint32_t pool = i / POLICY_N;
                enum pool_policy policy = i % POLICY_N;
                struct pool_figures figures;
                struct pool_log log;

                figures = run(bench, policy, pool_blocks(bench, pool), &log);
                pool_log_deinit(&log);
                tell_figures(bench, pool, policy, &figures);
        }
}

/* ---- the command line ---- */

static int usage(void)
{
        fputs("usage: bench-pool [OPTIONS]\n"
              "  --trace FILE        in the form of Azure's traces [one is made up]\n"
              "  --first N           begin at this request of the trace [0]\n"
              "  --requests N        [2000]\n"
              "  --speedup X         times of arrival are divided by this [2.5]\n"
              "  --pools X,...       sizes, in mean needs of an oracle [0.25,0.5,1,2,4]\n"
              "  --slots N           sequences that run at once [256]\n"
              "  --rows N            of a step [2048]\n"
              "  --context N         [16384]\n"
              "  --max-tokens N      that a client asks for which does not know better [4096]\n"
              "  --users N           that the requests belong to in turns [1]\n"
              "  --gap-ms N          the scheduler's gap_ms; 0: prompts may fill a step [0]\n"
              "  --seed N            of the prompts, and of the trace if it is made up [1]\n"
              "  --base-us X, --row-us X, --position-ns X\n"
              "                      the time of a step [6000, 27, 49: 8 B of bf16 on an H100]\n",
              stderr);
        return 2;
}

static int read_pools(struct bench *bench, const char *text)
{
        char *end;

        bench->pool_count = 0;
        do {
                if (bench->pool_count == POOLS_MAX)
                        return -1;
                bench->pools[bench->pool_count] = strtod(text, &end);
                if (end == text || !(bench->pools[bench->pool_count++] > 0))
                        return -1;
                text = end + 1;
        } while (*end == ',');
        return *end ? -1 : 0;
}

enum option_kind { OPTION_COUNT, OPTION_REAL, OPTION_SEED };

/* Reads the value of an option into the member that it names; or returns -1. */
static int read_value(enum option_kind kind, void *member, const char *text, double least)
{
        char *end = NULL;
        double number = strtod(text, &end);

        if (end == text || *end || !(number >= least && number <= 1e7))
                return -1;
        if (kind == OPTION_COUNT)
                *(uint32_t *)member = (uint32_t)number;
        else if (kind == OPTION_SEED)
                *(uint64_t *)member = (uint64_t)number;
        else
                *(double *)member = number;
        return 0;
}

static int read_options(struct bench *bench, int argc, char **argv)
{
        double base_us = bench->cost.base_ns / 1e3, row_us = bench->cost.row_ns / 1e3;
        const struct {
                const char *name;
                enum option_kind kind;
                void *member;
                double least;
        } table[] = {
                { "first", OPTION_COUNT, &bench->first, 0 },
                { "requests", OPTION_COUNT, &bench->count, 1 },
                { "speedup", OPTION_REAL, &bench->speedup, 1e-3 },
                { "slots", OPTION_COUNT, &bench->slots, 1 },
                { "rows", OPTION_COUNT, &bench->rows, 1 },
                { "context", OPTION_COUNT, &bench->context, 1 },
                { "max-tokens", OPTION_COUNT, &bench->max_tokens, 1 },
                { "users", OPTION_COUNT, &bench->users, 1 },
                { "gap-ms", OPTION_COUNT, &bench->gap_ms, 0 },
                { "seed", OPTION_SEED, &bench->seed, 0 },
                { "base-us", OPTION_REAL, &base_us, 0 },
                { "row-us", OPTION_REAL, &row_us, 0 },
                { "position-ns", OPTION_REAL, &bench->cost.position_ns, 0 },
        };
        enum { ROWS = sizeof(table) / sizeof(*table), TRACE = ROWS, POOLS, OPTIONS };
        struct option options[OPTIONS + 1] = { [TRACE] = { "trace", required_argument, NULL, 0 },
                                               [POOLS] = { "pools", required_argument, NULL, 0 } };
        int option, at = 0, r = 0;

        for (int i = 0; i < ROWS; i++)
                options[i] = (struct option){ table[i].name, required_argument, NULL, 0 };
        while (!r && (option = getopt_long(argc, argv, "", options, &at)) != -1) {
                if (option == '?')
                        r = -1;
                else if (at == TRACE)
                        bench->path = optarg;
                else if (at == POOLS)
                        r = read_pools(bench, optarg);
                else
                        r = read_value(table[at].kind, table[at].member, optarg, table[at].least);
        }
        bench->cost.base_ns = base_us * 1e3;
        bench->cost.row_ns = row_us * 1e3;
        return r || optind < argc ? -1 : 0;
}

int main(int argc, char **argv)
{
        struct bench bench = { .count = 2000,
                               .speedup = 2.5,
                               .pools = { 0.25, 0.5, 1, 2, 4 },
                               .pool_count = 5,
                               .slots = 256,
                               .rows = 2048,
                               .context = 16384,
                               .max_tokens = 4096,
                               .users = 1,
                               .seed = 1,
                               .cost = STEP_COST_8B_H100 };

        if (read_options(&bench, argc, argv))
                return usage();
        if (bench.rows < bench.slots)
                die("--rows is %u and --slots is %u; a step needs a row for each slot: give more "
                    "rows or fewer slots",
                    bench.rows, bench.slots);
        find_trace(&bench);
        find_need(&bench);
        tell_settings(&bench);
        run_pools(&bench);
        trace_deinit(&bench.trace);
        free(bench.asks);
        return 0;
}
