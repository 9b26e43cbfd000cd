/*
 * Static, dynamic and continuous batching, over the same hour of a production trace:
 *
 *      bench-batching [OPTIONS] SAMOVARD MODEL TRACE [FLAG OF SAMOVARD ...] > RESULTS
 *
 * Results are lines of CSV, one for each request of each run, below lines `# name: value` that
 * describe the measurement.  contrib/dev/batching.py makes a table and a picture of them;
 * docs/internals/bench.md explains both.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/own-daemon.h"
#include "bench/replay.h"

#define LOADS_MAX      8u
#define FLAGS_MAX      48u
#define FLAG_BYTES     32u
#define WARM_PROMPT    16u
#define ALIVE_MAX      "65536"
#define FULL_WINDOW_MS 60000u /* static batching's; every batch becomes full before */

static const char *const policies[] = { "continuous", "dynamic", "static" };
#define POLICIES 3u

struct bench {
        /* From the command line. */
        const char *program, *model, *path;
        char **more; /* flags for samovard, NULL-ended */
        uint32_t first, count, rounds, batch, window_ms, load_count;
        double loads[LOADS_MAX], divisor, capacity;
        uint64_t seed;

        /* Found at the start. */
        uint32_t policy_count, context, vocab;
        char kv_bytes[FLAG_BYTES];
        struct trace trace;
        struct replay_times *times;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
        va_list values;

        fputs("bench-batching: ", stderr);
        va_start(values, format);
        vfprintf(stderr, format, values);
        va_end(values);
        fputc('\n', stderr);
        own_daemon_stop();
        exit(1);
}

/* ---- a daemon for one run ---- */

struct flags {
        const char *at[FLAGS_MAX + 1];
        char batch[FLAG_BYTES], window[FLAG_BYTES];
        uint32_t count;
};

static void add_flag(struct flags *flags, const char *name, const char *value)
{
        if (flags->count + 2 > FLAGS_MAX)
                die("too many flags for samovard");
        flags->at[flags->count++] = name;
        if (value)
                flags->at[flags->count++] = value;
        flags->at[flags->count] = NULL;
}

static void add_policy(const struct bench *bench, uint32_t policy, struct flags *flags)
{
        add_flag(flags, "--batching", policies[policy]);
        add_flag(flags, "--batch-size", flags->batch);
        snprintf(flags->window, sizeof(flags->window), "%u",
                 strcmp(policies[policy], "static") ? bench->window_ms : FULL_WINDOW_MS);
        add_flag(flags, "--batch-window-ms", flags->window);
}

/* The same number of slots for all policies, and limits that are never reached. */
static void make_flags(const struct bench *bench, uint32_t policy, struct flags *flags)
{
        *flags = (struct flags){ .count = 0 };
        snprintf(flags->batch, sizeof(flags->batch), "%u", bench->batch);
        add_flag(flags, "--model", bench->model);
        add_flag(flags, "--max-seqs", flags->batch);
        add_flag(flags, "--requests", ALIVE_MAX);
        add_flag(flags, "--uid-requests", ALIVE_MAX);
        add_flag(flags, "--uid-prompt-bytes", "16G");
        add_flag(flags, "--log-level", "warn");
        if (*bench->kv_bytes)
                add_flag(flags, "--kv-bytes", bench->kv_bytes);
        for (char **more = bench->more; *more; more++)
                add_flag(flags, *more, NULL);
        if (bench->policy_count == POLICIES)
                add_policy(bench, policy, flags);
}

static struct smv_client *start(const struct bench *bench, uint32_t policy)
{
        struct smv_client *client;
        struct flags flags;
        char why[256] = "";

        make_flags(bench, policy, &flags);
        if (own_daemon_start(bench->program, flags.at, &client, why, sizeof(why)))
                die("%s", why);
        return client;
}

static void run_trace(const struct bench *bench, const struct trace *trace,
                      struct smv_client *client, uint32_t salt)
{
        struct replay replay = {
                .client = client,
                .trace = trace,
                .times = bench->times,
                .seed = bench->seed,
                .vocab = bench->vocab,
                .salt = salt,
        };

        if (replay_run(&replay))
                die("%s", replay.why);
}

/* A batch of short requests, which waits for the weights too. */
static void warm_up(const struct bench *bench, struct smv_client *client)
{
        struct trace trace = { .requests = calloc(bench->batch, sizeof(*trace.requests)),
                               .count = bench->batch };

        if (!trace.requests)
                die("out of memory");
        for (uint32_t i = 0; i < trace.count; i++)
                trace.requests[i] = (struct trace_request){ .prompt = WARM_PROMPT, .output = 2 };
        run_trace(bench, &trace, client, bench->count);
        trace_deinit(&trace);
}

static void run(const struct bench *bench, uint32_t policy, const struct trace *trace)
{
        struct smv_client *client = start(bench, policy);

        warm_up(bench, client);
        run_trace(bench, trace, client, 0);
        own_daemon_stop();
}

/* ---- the machine's limits ---- */

static uint64_t told(const char *json, const char *name)
{
        char quoted[32];
        const char *at;

        snprintf(quoted, sizeof(quoted), "\"%s\":", name);
        at = strstr(json, quoted);
        if (!at)
                die("status does not tell %s", name);
        return strtoull(at + strlen(quoted), NULL, 10);
}

/*
 * Memory must not limit the runs: the pool has a full context for each slot.  The size
 * requested here is enough for KV of f32; the usual f16 takes half of it.
 */
static void look_at_model(struct bench *bench)
{
        const char *json, *model;
        struct smv_client *client = start(bench, 0);
        uint64_t floats;

        if (smv_status(client, &json))
                die("there is no status");
        model = strstr(json, "\"model\":");
        if (!model)
                die("status does not tell the model");
        bench->vocab = (uint32_t)told(model, "vocab");
        bench->context = (uint32_t)told(model, "context");
        floats = 2 * told(model, "layers") * told(model, "kv_heads") * told(model, "head_dim");
        snprintf(bench->kv_bytes, sizeof(bench->kv_bytes), "%llu",
                 (unsigned long long)(floats * 4 * bench->context * bench->batch));
        own_daemon_stop();
        /* Prompts do not begin alike as long as there are ids; the warm-up has some of them. */
        if (bench->count + bench->batch > bench->vocab)
                die("a vocabulary of %u allows %u requests", bench->vocab,
                    bench->vocab > bench->batch ? bench->vocab - bench->batch : 0);
}

static int by_size(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

/*
 * Requests a second when all are there at once, by continuous batching, until nine tenths of
 * them have ended: from then on slots may be empty.
 */
static double find_capacity(const struct bench *bench)
{
        uint32_t most = bench->count - bench->count / 10;
        double *ends = calloc(bench->count, sizeof(*ends)), at;
        struct trace trace = bench->trace;

        trace.requests = calloc(trace.count, sizeof(*trace.requests));
        if (!ends || !trace.requests)
                die("out of memory");
        for (uint32_t i = 0; i < trace.count; i++) {
                trace.requests[i] = bench->trace.requests[i];
                trace.requests[i].at = 0;
        }
        fputs("all at once, to find the capacity\n", stderr);
        run(bench, 0, &trace);
        for (uint32_t i = 0; i < trace.count; i++)
                ends[i] = bench->times[i].last;
        qsort(ends, trace.count, sizeof(*ends), by_size);
        at = ends[most - 1];
        trace_deinit(&trace);
        free(ends);
        return most / at;
}

/* ---- output ---- */

static void tell_machine(void)
{
        FILE *cpus = fopen("/proc/cpuinfo", "r"), *load = fopen("/proc/loadavg", "r");
        char line[256], name[128] = "unknown";
        double busy = 0;
        struct utsname uts;

        while (cpus && fgets(line, sizeof(line), cpus))
                if (sscanf(line, "model name : %127[^\n]", name) == 1)
                        break;
        if (cpus)
                fclose(cpus);
        if (!load || fscanf(load, "%lf", &busy) != 1)
                busy = -1;
        if (load)
                fclose(load);
        uname(&uts);
        printf("# machine: %s, %ld processors, %s %s, load average %.2f before it began\n", name,
               sysconf(_SC_NPROCESSORS_ONLN), uts.sysname, uts.release, busy);
}

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static void tell_settings(const struct bench *bench)
{
        const char *command = getenv("BENCH_COMMAND");
        double prompts = 0, outputs = 0;

        for (uint32_t i = 0; i < bench->trace.count; i++) {
                prompts += bench->trace.requests[i].prompt;
                outputs += bench->trace.requests[i].output;
        }
        if (command)
                printf("# command: %s\n", command);
        printf("# model: %s, context %u\n", last_part(bench->model), bench->context);
        printf("# trace: %s, %u requests from number %u on\n", last_part(bench->path), bench->count,
               bench->first);
        printf("# lengths: divided by %.3f; then %.0f tokens of prompt and %.0f of answer on "
               "average\n",
               bench->divisor, prompts / bench->count, outputs / bench->count);
        printf("# slots: %u, and as many are a batch; dynamic batching waits for %u ms\n",
               bench->batch, bench->window_ms);
        for (char **more = bench->more; *more; more++)
                printf("# flag: %s\n", *more);
        printf("# capacity: %.4g requests a second\n", bench->capacity);
}

static void tell_run(const struct bench *bench, uint32_t policy, double load, uint32_t round,
                     const struct trace *trace)
{
        for (uint32_t i = 0; i < trace->count; i++) {
                const struct trace_request *request = &trace->requests[i];
                const struct replay_times *times = &bench->times[i];

                printf("%s,%g,%u,%u,%.6f,%.6f,%.6f,%.6f,%u,%u\n", policies[policy], load, round, i,
                       request->at, times->sent, times->first, times->last, request->prompt,
                       request->output);
        }
        fflush(stdout);
}

/* ---- the rounds ---- */

static void run_round(const struct bench *bench, uint32_t round)
{
        for (uint32_t l = 0; l < bench->load_count; l++) {
                struct trace trace = bench->trace; /* its lengths and, stretched again, its times */

                trace_stretch(&trace, bench->capacity * bench->loads[l] / 100);
                for (uint32_t k = 0; k < bench->policy_count; k++) {
                        uint32_t policy = (k + round) % bench->policy_count;

                        fprintf(stderr, "round %u, load %g%%, %s\n", round + 1, bench->loads[l],
                                policies[policy]);
                        run(bench, policy, &trace);
                        tell_run(bench, policy, bench->loads[l] / 100, round + 1, &trace);
                }
        }
}

static void tell_loads(const struct bench *bench)
{
        const struct trace *trace = &bench->trace;
        double was = trace->requests[trace->count - 1].at, seconds = 0;

        for (uint32_t l = 0; l < bench->load_count; l++) {
                double takes = (trace->count - 1) / (bench->capacity * bench->loads[l] / 100);

                printf("# load %g: times multiplied by %.4g, so that %u requests come in %.1f s\n",
                       bench->loads[l] / 100, was > 0 ? takes / was : 1, trace->count, takes);
                seconds += takes;
        }
        fprintf(stderr, "capacity: %.4g requests a second; %u runs take %.0f minutes or more\n",
                bench->capacity, bench->rounds * bench->load_count * bench->policy_count,
                seconds * bench->rounds * bench->policy_count / 60);
}

static void prepare(struct bench *bench)
{
        struct flags flags = { .batch = "1" };
        char why[256];

        add_policy(bench, 1, &flags);
        bench->policy_count = own_daemon_knows(bench->program, flags.at) ? POLICIES : 1;
        if (bench->policy_count == 1)
                puts("# note: this samovard has no batching policies; what it does is continuous");
        look_at_model(bench);
        if (trace_read(bench->path, bench->first, bench->count, &bench->trace, why, sizeof(why)))
                die("%s: %s", bench->path, why);
        if (bench->divisor == 0)
                bench->divisor = trace_divisor(&bench->trace, bench->context);
        if (bench->divisor < trace_divisor(&bench->trace, bench->context))
                die("lengths must be divided by %.3f at least to fit a context of %u",
                    trace_divisor(&bench->trace, bench->context), bench->context);
        trace_shrink(&bench->trace, bench->divisor);
        bench->times = calloc(bench->count + bench->batch, sizeof(*bench->times));
        if (!bench->times)
                die("out of memory");
        if (bench->capacity == 0)
                bench->capacity = find_capacity(bench);
}

static int usage(void)
{
        fputs("usage: bench-batching [OPTIONS] SAMOVARD MODEL TRACE [FLAG OF SAMOVARD ...]\n"
              "  -n REQUESTS  of the trace [512]; made a multiple of the batch, so that all become "
              "full\n"
              "  -f FIRST     begin at this request of the trace [0]\n"
              "  -l LOADS     in percent of the capacity [40,70,95]\n"
              "  -r ROUNDS    [3]\n"
              "  -b BATCH     sequences that run at once, under each policy [16]\n"
              "  -w MS        how long dynamic batching waits for others [50]\n"
              "  -d DIVISOR   of lengths [the least with which all fit the context]\n"
              "  -c CAPACITY  requests a second [measured at the start]\n"
              "  -s SEED      of the prompts [1]\n",
              stderr);
        return 2;
}

static int read_loads(struct bench *bench, const char *text)
{
        char *end;

        bench->load_count = 0;
        do {
                if (bench->load_count == LOADS_MAX)
                        return -ERANGE;
                bench->loads[bench->load_count] = strtod(text, &end);
                if (end == text || !(bench->loads[bench->load_count++] > 0))
                        return -EINVAL;
                text = end + 1;
        } while (*end == ',');
        return *end ? -EINVAL : 0;
}

/* One option; nonzero if it is none, or says too little or too much. */
static int read_option(struct bench *bench, int option, const char *value)
{
        char *end = NULL;
        double number = value ? strtod(value, &end) : 0;
        uint32_t *count = option == 'n'   ? &bench->count
                          : option == 'f' ? &bench->first
                          : option == 'r' ? &bench->rounds
                          : option == 'b' ? &bench->batch
                                          : &bench->window_ms;

        if (option == 'l')
                return read_loads(bench, value);
        if (!end || end == value || *end || number < 0 || number > 1e6)
                return -EINVAL;
        if (strchr("nrbcd", option) && number == 0)
                return -ERANGE;
        if (option == 'd')
                bench->divisor = number;
        else if (option == 'c')
                bench->capacity = number;
        else if (option == 's')
                bench->seed = (uint64_t)number;
        else if (strchr("nfrbw", option))
                *count = (uint32_t)number;
        else
                return -EINVAL;
        return 0;
}

int main(int argc, char **argv)
{
        struct bench bench = { .count = 512,
                               .rounds = 3,
                               .batch = 16,
                               .window_ms = 50,
                               .loads = { 40, 70, 95 },
                               .load_count = 3,
                               .seed = 1 };
        int option;

        while ((option = getopt(argc, argv, "+n:f:l:r:b:w:d:c:s:")) != -1)
                if (read_option(&bench, option, optarg))
                        return usage();
        if (argc - optind < 3 || !bench.count || !bench.rounds || !bench.batch)
                return usage();
        bench.program = argv[optind];
        bench.model = argv[optind + 1];
        bench.path = argv[optind + 2];
        bench.more = argv + optind + 3;
        bench.count = (bench.count + bench.batch - 1) / bench.batch * bench.batch;

        tell_machine();
        prepare(&bench);
        tell_settings(&bench);
        tell_loads(&bench);
        puts("policy,load,round,request,at,sent,first,last,prompt,output");
        for (uint32_t round = 0; round < bench.rounds; round++)
                run_round(&bench, round);
        trace_deinit(&bench.trace);
        free(bench.times);
        return 0;
}
