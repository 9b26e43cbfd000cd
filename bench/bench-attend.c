/*
 * How fast attention is on the cpu, and how fast it could be:
 *
 *      bench-attend [--isa NAME] [--threads N] [--kv TYPE] [-r ROUNDS] [SHAPE]
 *
 * All layers of a model's attention run one after the other, so that K and V come from memory.
 * Pages are as in the product: permuted, with all layers and heads of 16 positions in each.
 * Right before each figure the machine's peak is measured: of reading for streams, of products
 * of floats for prompts.  A shape with 17 layers is there for its strides, since those of 16
 * are powers of two.  SHAPE selects the shapes whose names contain it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peaks.h"
#include "bench/table.h"
#include "base/sys.h"
#include "kernels/backends.h"
#include "kernels/convert.h"
#include "kernels/kv.h"

#define ROWS    512u
#define STREAMS 8u
#define DEPTH   16384u
#define PAGES   (DEPTH / PAGE_POSITIONS)
#define STEPS   4u /* that are timed together, of one row each */

static const struct shape {
        const char *name;
        uint32_t layers, heads, kv_heads, head_dim;
} shapes[] = {
        { "heads of 64, 4 to one", 16, 32, 8, 64 },
        { "heads of 64, 4 to one, 17 layers", 17, 32, 8, 64 },
        { "heads of 128, 7 to one", 8, 28, 4, 128 },
        { "heads of 128, 2 to one", 8, 16, 8, 128 },
        { "heads of 128, each its own", 4, 16, 16, 128 },
};

static struct bench {
        struct kernels_conf conf;
        enum kv_type type;
        struct peaks *peaks;
        struct kernels *kernels;
        const struct shape *shape;
        struct kv *kv;
        float *q, *out;
        uint64_t number;
        uint32_t random;
} b;

static void must(bool holds, const char *what)
{
        if (holds)
                return;
        fprintf(stderr, "bench-attend: %s\n", what);
        exit(1);
}

static float random_one(void)
{
        b.random = b.random * 1664525 + 1013904223;
        return (float)(b.random >> 8) / (1 << 23) - 1;
}

/* Numbers of about 1, whatever the type. */
static void pool_fill(void)
{
        size_t tile = kv_tile_bytes(&b.kv->shape), tiles = b.kv->page_bytes / tile;

        for (uint32_t page = 0; page < b.kv->shape.pages; page++) {
                for (size_t t = 0; t < tiles; t++) {
                        uint8_t *at = b.kv->pages + page * b.kv->page_bytes + t * tile;
                        uint32_t numbers = PAGE_POSITIONS * b.shape->head_dim;

                        for (uint32_t i = 0; i < numbers; i++) {
                                float x = random_one();

                                if (b.type == KV_F16)
                                        ((uint16_t *)at)[i] = float_to_half(x);
                                else if (b.type == KV_BF16)
                                        ((uint16_t *)at)[i] = float_to_bfloat(x);
                                else if (b.type == KV_INT8)
                                        ((int8_t *)at)[i] = (int8_t)(x * 127);
                                else if (b.type == KV_FP8)
                                        at[i] = float_to_e4m3(x * 448);
                                else
                                        ((float *)at)[i] = x;
                        }
                        for (uint32_t i = 0; KV_HAS_SCALES(b.type) && i < PAGE_POSITIONS; i++)
                                kv_scales(b.kv, at)[i] = 1.0f / (b.type == KV_FP8 ? 448 : 127);
                }
        }
}

/* Every slot has the same pages, in its own order: more would be memory alone. */
static void slots_fill(void)
{
        static struct step_page pages[PAGES * STREAMS];
        static const struct step_row rows[1] = { { .from_row = STEP_TOKEN } };
        static const struct step_run runs[1] = { { 0, 1 } };
        const struct step step = { .number = ++b.number,
                                   .row_count = 1,
                                   .run_count = 1,
                                   .page_count = PAGES * STREAMS,
                                   .rows = rows,
                                   .runs = runs,
                                   .pages = pages };

        for (uint32_t i = 0; i < PAGES * STREAMS; i++)
                pages[i] = (struct step_page){ i / PAGES, i % PAGES,
                                               (i % PAGES * 389 + i / PAGES * 67) % PAGES };
        must(b.kernels->step_begin(b.kernels, KV_ALONE(b.kv), &step) >= 0, "step_begin() failed");
        b.kernels->step_end(b.kernels);
}

/* `streams` of `count` rows each, the last at `depth`, through all layers; returns seconds. */
static double step_time(uint32_t streams, uint32_t count, uint32_t depth)
{
        static struct step_row rows[ROWS];
        struct step_run runs[STREAMS];
        const struct shape *s = b.shape;
        const struct step step = { .number = ++b.number,
                                   .row_count = streams * count,
                                   .run_count = streams,
                                   .rows = rows,
                                   .runs = runs };
        struct attend op = { .kv = b.kv,
                             .heads = s->heads,
                             .kv_heads = s->kv_heads,
                             .head_dim = s->head_dim,
                             .scale = 0.1f };
        uint64_t began;
        double seconds;

        for (uint32_t i = 0; i < streams; i++) {
                runs[i] = (struct step_run){ i * count, count };
                for (uint32_t r = 0; r < count; r++)
                        rows[i * count + r] = (struct step_row){ .slot = i,
                                                                 .position = depth - count + r,
                                                                 .from_row = STEP_TOKEN };
        }
        must(b.kernels->step_begin(b.kernels, KV_ALONE(b.kv), &step) >= 0, "step_begin() failed");
        began = sys_clock_ns();
        for (op.layer = 0; op.layer < s->layers; op.layer++)
                must(!b.kernels->attend(b.kernels, &op, b.out, b.q), "attend() failed");
        seconds = (double)(sys_clock_ns() - began) / 1e9;
        b.kernels->step_end(b.kernels);
        return seconds;
}

static void streams_time(const char *name, uint32_t streams, uint32_t depth)
{
        const struct shape *s = b.shape;
        double tile = (double)kv_tile_bytes(&b.kv->shape) / PAGE_POSITIONS;
        double bytes = 2.0 * streams * depth * s->layers * s->kv_heads * tile, seconds = 0, read;

        step_time(streams, 1, depth);
        read = peaks_read(b.peaks);
        for (uint32_t i = 0; i < STEPS; i++)
                seconds += step_time(streams, 1, depth) / STEPS;
        table_add_share(s->name, name, "reading, GB/s", bytes / seconds / 1e9,
                        bytes / seconds / read * 100);
}

static void prompt_time(const char *name, uint32_t depth)
{
        const struct shape *s = b.shape;
        double pairs = ROWS * (depth - ROWS / 2.0), seconds, peak;
        double operations = 4.0 * pairs * s->layers * s->heads * s->head_dim;

        step_time(1, ROWS, depth);
        peak = peaks_multiply(b.peaks, PEAK_FLOATS);
        seconds = step_time(1, ROWS, depth);
        table_add_share(s->name, name, "multiplying, GFLOP/s", operations / seconds / 1e9,
                        operations / seconds / peak * 100);
}

static void shape_time(const struct shape *shape)
{
        const struct kv_shape kv = { .layers = shape->layers,
                                     .kv_heads = shape->kv_heads,
                                     .head_dim = shape->head_dim,
                                     .pages = PAGES,
                                     .type = b.type };
        size_t width = (size_t)shape->heads * shape->head_dim;

        b.shape = shape;
        b.number = 0;
        must(!cpu_open(&b.conf, &b.kernels), "cannot open the cpu backend with this --isa");
        must(!b.kernels->kv_new(b.kernels, &kv, &b.kv), "no memory");
        b.q = calloc(ROWS * width, sizeof(*b.q));
        b.out = calloc(ROWS * width, sizeof(*b.out));
        must(b.q && b.out, "no memory");
        for (size_t i = 0; i < ROWS * width; i++)
                b.q[i] = random_one();
        pool_fill();
        slots_fill();
        streams_time("one stream at 4096", 1, 4096);
        streams_time("one stream at 16384", 1, 16384);
        streams_time("8 streams at 512", STREAMS, 512);
        streams_time("8 streams at 4096", STREAMS, 4096);
        prompt_time("512 rows at 0", 512);
        prompt_time("512 rows at 3584", 4096);
        free(b.q);
        free(b.out);
        b.kernels->kv_free(b.kernels, b.kv);
        b.kernels->close(b.kernels);
}

static int parse(int argc, char **argv, uint32_t *rounds)
{
        static const struct option options[] = { { "isa", required_argument, NULL, 'i' },
                                                 { "threads", required_argument, NULL, 't' },
                                                 { "kv", required_argument, NULL, 'k' },
                                                 { 0 } };
        int option;

        while ((option = getopt_long(argc, argv, "r:", options, NULL)) != -1) {
                uint32_t n = (uint32_t)strtoul(optarg ? optarg : "", NULL, 10);

                if (option == 'i')
                        b.conf.isa = optarg;
                else if (option == 't' && n >= 1 && n <= 1024)
                        b.conf.threads = n;
                else if (option == 'r' && n >= 1 && n <= 30)
                        *rounds = n;
                else if (option != 'k')
                        return -1;
                while (option == 'k' && strcmp(optarg, kv_type_name(b.type)))
                        if (++b.type == KV_TYPES)
                                return -1;
        }
        return optind + 1 >= argc ? 0 : -1;
}

int main(int argc, char **argv)
{
        uint32_t rounds = 3;

        b.conf = (struct kernels_conf){ .pin = true,
                                        .isa = "auto",
                                        .rows_max = ROWS,
                                        .slots_max = STREAMS,
                                        .pages_max = PAGES,
                                        .vocab_max = 16,
                                        .wants_max = 1 };
        if (parse(argc, argv, &rounds)) {
                fputs("usage: bench-attend [--isa NAME] [--threads N] [--kv TYPE] [-r ROUNDS] "
                      "[SHAPE]\n",
                      stderr);
                return 2;
        }
        must(!peaks_open(b.conf.threads, (size_t)256 << 20, &b.peaks),
             "cannot allocate the memory or start the threads of the peak measurement");
        printf("# %u threads, %s\n", peaks_threads(b.peaks), kv_type_name(b.type));
        for (uint32_t i = 0; i < rounds; i++)
                for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
                        if (strstr(shapes[s].name, optind < argc ? argv[optind] : ""))
                                shape_time(&shapes[s]);
        table_print();
        peaks_close(b.peaks);
        return 0;
}
