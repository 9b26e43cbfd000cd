/*
 * How fast the cpu backend is, and how fast it could be:
 *
 *      bench-cpu [--isa NAME] [--threads N] [-n TOKENS] [-r ROUNDS] [--rows PART] [--batch N] FILE
 *
 * It runs whole steps of a model, as the engine does.  Right before each it measures the
 * machine's current peak: memory reads and products.  From these follows how long the step
 * would take if it did nothing but read its bytes, or nothing but multiply.  The longer time
 * gives the ceiling.  docs/internals/bench.md explains the table.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "bench/cpu-model.h"
#include "bench/peaks.h"
#include "bench/table.h"
#include "bench/thread-pool-wake.h"
#include "base/sys.h"

#define MEMORY_MIN                                                                                 \
        ((uint64_t)64 << 20) /* that is read for a ceiling: the weights' size, but so much ... */
#define MEMORY_MAX ((uint64_t)4 << 30) /* ... at least and at most */
#define WAKES      20000u
#define BATCH_S    1.0 /* how long --batch decodes at least */

static const char rates[] = "tokens/s, and percent of what the machine gives";

/* The work of a step, of each row, and of each row that is wanted. */
struct work {
        double weights;      /* bytes, once */
        double kv;           /* bytes, for each position before a row's */
        double row[PEAK_N];  /* operations */
        double want[PEAK_N]; /* likewise */
        double position;     /* in floats, for each position before a row's */
};

static struct bench {
        struct cpu_model *model;
        struct peaks *peaks;
        struct work work;
        uint32_t tokens;
        const char *part; /* of the name of each row that is measured; NULL: all are */
        uint32_t batch;   /* the size of the only batch that is measured; 0: see part */
        double read, multiply[PEAK_N]; /* a second, just now */
} b;

/* ---- ceilings ---- */

static enum peak_kind kind_of(enum row_type type)
{
        switch (type) {
        case ROW_F32:
        case ROW_F16:
        case ROW_F8_E4M3:
                return PEAK_FLOATS;
        case ROW_BF16:
                return PEAK_BFLOATS;
        default:
                return PEAK_BYTES;
        }
}

/* The table of tokens is not read, except for one row, if the head is another matrix. */
static void learn_work(const struct checkpoint *checkpoint, const struct traits *t)
{
        const struct tensor_table *table = checkpoint_tensors(checkpoint);
        const struct tensor *head = checkpoint_tensor(checkpoint, "output.weight");
        const struct tensor *embedding = checkpoint_tensor(checkpoint, "token_embd.weight");
        struct work *w = &b.work;

        if (!head)
                head = embedding;
        for (uint32_t i = 0; i < table->count; i++) {
                const struct tensor *tensor = &table->tensors[i];
                double operations = 2.0 * tensor->rows * tensor->columns;

                if (tensor->rows == 1 || (tensor == embedding && tensor != head))
                        continue;
                w->weights += (double)tensor->bytes;
                if (tensor == head)
                        w->want[kind_of(tensor->type)] += operations;
                else
                        w->row[kind_of(tensor->type)] += operations;
        }
        w->kv = 4.0 * t->layers * t->kv_heads * t->head_dim;
        w->position = 4.0 * t->layers * t->heads * t->head_dim;
}

static void look_at_machine(void)
{
        b.read = peaks_read(b.peaks);
        for (int kind = 0; kind < PEAK_N; kind++)
                b.multiply[kind] = peaks_multiply(b.peaks, (enum peak_kind)kind);
}

/* Bfloats may be multiplied as floats, which is faster on some processors. */
static double rate_of(int kind)
{
        bool as_floats = kind == PEAK_BFLOATS && b.multiply[kind] < b.multiply[PEAK_FLOATS];

        return b.multiply[as_floats ? PEAK_FLOATS : kind];
}

/*
 * The least seconds that a step needs; `positions`: the positions that all rows attend to,
 * added up.
 */
static double least(double rows, double wants, double positions, double kv_bytes,
                    const char **ret_what)
{
        const struct work *w = &b.work;
        double reading = (w->weights + kv_bytes) / b.read;
        double multiplying = positions * w->position / b.multiply[PEAK_FLOATS];

        for (int kind = 0; kind < PEAK_N; kind++)
                multiplying += (rows * w->row[kind] + wants * w->want[kind]) / rate_of(kind);
        *ret_what = reading > multiplying ? "reading" : "multiplying";
        return reading > multiplying ? reading : multiplying;
}

/* ---- rows of the table ---- */

static bool is_asked(const char *name)
{
        return !b.part || strstr(name, b.part);
}

static void tell(const char *name, const char *what, double tokens, double seconds,
                 double least_seconds)
{
        if (seconds <= 0) {
                fprintf(stderr, "bench-cpu: %s: a logit was not finite\n", name);
                exit(1);
        }
        table_add_share(rates, name, what, tokens / seconds, least_seconds / seconds * 100);
}

static void measure_decode(const char *name, uint32_t batch, uint32_t depth, double seconds)
{
        double positions = (double)batch * (depth + b.tokens / 2.0), floor;
        const char *what;

        floor = least(batch, batch, positions, positions * b.work.kv, &what) * b.tokens;
        tell(name, what, (double)batch * b.tokens, seconds, floor);
}

/* A row of a prompt sees those before it, which lie in a cache near by. */
static void measure_prompt(void)
{
        double positions = CPU_PROMPT * (CPU_PROMPT / 2.0), floor;
        const char *name = "prompt of 512", *what;

        if (!is_asked(name))
                return;
        look_at_machine();
        floor = least(CPU_PROMPT, 1, positions, CPU_PROMPT * b.work.kv, &what);
        tell(name, what, CPU_PROMPT, cpu_model_prompt(b.model), floor);
}

static void measure_picks(void)
{
        static const struct {
                const char *name;
                struct pick pick;
                uint32_t rows;
        } picks[] = {
                { "sampler, the likeliest", { .top_p = 1 }, 1 },
                { "sampler, of 40", { .temperature = 0.8f, .top_p = 0.95f, .top_k = 40 }, 1 },
                { "sampler, of all", { .temperature = 1, .top_p = 1 }, 1 },
                { "sampler, of 95%", { .temperature = 1, .top_p = 0.95f }, 1 },
                { "sampler, of 5% of the likeliest",
                  { .temperature = 1, .top_p = 1, .min_p = 0.05f },
                  1 },
                { "sampler, of 40, 32 at once",
                  { .temperature = 0.8f, .top_p = 0.95f, .top_k = 40 },
                  CPU_BATCH_MAX },
        };
        double bytes = 4.0 * cpu_model_traits(b.model)->vocab;

        look_at_machine();
        for (size_t i = 0; i < sizeof(picks) / sizeof(*picks); i++) {
                if (!is_asked(picks[i].name))
                        continue;
                tell(picks[i].name, "reading the logits once", picks[i].rows,
                     cpu_model_pick(b.model, &picks[i].pick, picks[i].rows),
                     picks[i].rows * bytes / b.read);
        }
}

static void measure_thread_pool(void)
{
        static const char group[] = "until all threads are at work, us";
        static uint32_t samples[WAKES];
        const struct {
                const char *name;
                uint32_t rest_us, count;
        } rests[] = { { "thread pool, awake", 0, WAKES },
                      { "thread pool, asleep", 5000, WAKES / 100 } };

        for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++) {
                if (!is_asked(rests[i].name))
                        continue;
                if (thread_pool_wake_measure(peaks_threads(b.peaks), rests[i].rest_us,
                                             rests[i].count, samples)) {
                        fprintf(stderr, "bench-cpu: cannot start the threads\n");
                        exit(1);
                }
                table_add(group, rests[i].name, "", samples, rests[i].count);
        }
}

/*
 * Only a batch of the size that was asked for.  The mean of a second and more, because what it is
 * compared with takes as long, and other programs disturb both.
 */
static void measure_batch(void)
{
        double seconds = 0, once;
        uint32_t times = 0;
        static char name[32]; /* the table keeps it */

        snprintf(name, sizeof(name), "batch of %u", b.batch);
        look_at_machine();
        do {
                once = cpu_model_batch(b.model, b.batch);
                seconds += once;
                times++;
        } while (once > 0 && seconds < BATCH_S);
        measure_decode(name, b.batch, CPU_CONTEXT, once > 0 ? seconds / times : 0);
}

static void measure(void)
{
        static const struct {
                const char *name;
                uint32_t batch, depth; /* batch 1: one stream, at this depth */
        } decodes[] = {
                { "one stream", 1, 0 },
                { "batch of 4", 4, CPU_CONTEXT },
                { "batch of 8", 8, CPU_CONTEXT },
                { "batch of 16", 16, CPU_CONTEXT },
                { "batch of 32", 32, CPU_CONTEXT },
                { "one stream at 4096", 1, 4096 },
                { "one stream at 16384", 1, 16384 },
        };

        for (size_t i = 0; i < sizeof(decodes) / sizeof(*decodes); i++) {
                uint32_t batch = decodes[i].batch, depth = decodes[i].depth;

                if (!is_asked(decodes[i].name) || (batch == 1 && depth > cpu_model_depth(b.model)))
                        continue;
                look_at_machine();
                measure_decode(decodes[i].name, batch, depth,
                               batch > 1 ? cpu_model_batch(b.model, batch)
                                         : cpu_model_stream(b.model, depth));
        }
        measure_prompt();
        measure_picks();
        measure_thread_pool();
}

static void tell_machine(void)
{
        static const char machine[] = "the machine";
        static const char *const names[PEAK_N] = { "products of bytes, 10^9 operations/s",
                                                   "products of bfloats", "products of floats" };

        look_at_machine();
        table_add_one(machine, "reading, GB/s", "", b.read / 1e9);
        for (int kind = 0; kind < PEAK_N; kind++)
                table_add_one(machine, names[kind], peaks_name((enum peak_kind)kind),
                              b.multiply[kind] / 1e9);
}

/* ---- the program ---- */

static void open_all(const char *path, const struct cpu_model_conf *conf)
{
        double bytes;
        char why[256];

        if (cpu_model_open(path, conf, &b.model, why, sizeof(why))) {
                fprintf(stderr, "bench-cpu: %s: %s\n", path, why);
                exit(1);
        }
        learn_work(cpu_model_checkpoint(b.model), cpu_model_traits(b.model));
        bytes = b.work.weights;
        bytes = bytes < (double)MEMORY_MIN ? (double)MEMORY_MIN : bytes;
        bytes = bytes > (double)MEMORY_MAX ? (double)MEMORY_MAX : bytes;
        if (peaks_open(conf->threads, (size_t)bytes, &b.peaks)) {
                fprintf(stderr, "bench-cpu: cannot allocate the memory or start the threads of the "
                                "peak measurement\n");
                exit(1);
        }
}

static int usage(void)
{
        fputs("usage: bench-cpu [--isa NAME] [--threads N] [-n TOKENS] [-r ROUNDS] [--rows PART] "
              "[--batch N] [--ahead BYTES] FILE\n",
              stderr);
        return 2;
}

static int parse(int argc, char **argv, struct cpu_model_conf *conf, uint32_t *rounds)
{
        static const struct option options[] = { { "isa", required_argument, NULL, 'i' },
                                                 { "threads", required_argument, NULL, 't' },
                                                 { "rows", required_argument, NULL, 'p' },
                                                 { "batch", required_argument, NULL, 'b' },
                                                 { "ahead", required_argument, NULL, 'a' },
                                                 { 0 } };
        int option;

        while ((option = getopt_long(argc, argv, "n:r:", options, NULL)) != -1) {
                uint32_t n = (uint32_t)strtoul(optarg ? optarg : "", NULL, 10);

                if (option == 'i')
                        conf->isa = optarg;
                else if (option == 'p')
                        b.part = optarg;
                else if (option == 'b' && n >= 1 && n <= CPU_BATCH_MAX)
                        b.batch = n;
                else if (option == 't' && n >= 1 && n <= 1024)
                        conf->threads = n;
                else if (option == 'n' && n >= 1 && n <= 1024)
                        conf->tokens = n;
                else if (option == 'a' && n <= 1u << 20)
                        conf->lone_ahead = n ? n : KERNELS_AHEAD_NONE;
                else if (option == 'r' && n >= 1 && n <= 30)
                        *rounds = n;
                else
                        return -1;
        }
        return optind + 1 == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
        struct cpu_model_conf conf = { .isa = "auto", .tokens = 32 };
        uint32_t rounds = 3;
        struct utsname name;

        if (parse(argc, argv, &conf, &rounds))
                return usage();
        open_all(argv[optind], &conf);
        b.tokens = conf.tokens;
        uname(&name);
        printf("# %s %s, %u threads, %s, %.0f MB of weights a step, %u tokens, %u rounds\n",
               name.sysname, name.release, peaks_threads(b.peaks), cpu_model_kernels(b.model),
               b.work.weights / 1e6, b.tokens, rounds);
        for (uint32_t i = 0; i < rounds; i++) {
                tell_machine();
                if (b.batch)
                        measure_batch();
                else
                        measure();
        }
        table_print();
        peaks_close(b.peaks);
        cpu_model_close(b.model);
        return 0;
}
