#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/backends.h"
#include "kernels/cpu/tiles.h"
#include "kernels/memory.h"

#define TOUCH_PIECE   ((size_t)2 << 20)
#define TOUCH_AT_ONCE (8 * TOUCH_PIECE)
#define TOUCH_EACH    4096u /* no system has smaller pages */
#define LONE_AHEAD    2048u /* bytes */

int cpu_scratch_grow(void *scratch, size_t *max, size_t count, size_t bytes)
{
        void **at = scratch, *more;

        if (count <= *max)
                return 0;
        more = memory_new(count, bytes);
        if (!more)
                return -ENOMEM;
        memory_free(*at);
        *at = more;
        *max = count;
        return 0;
}

/* The memory to touch; no other thread writes to it. */
struct touch_job {
        uint8_t *memory;
        size_t bytes;
};

static void touch_piece(void *arg, uint32_t thread, uint32_t item)
{
        const struct touch_job *all = arg;
        size_t at = item * TOUCH_PIECE;

        (void)thread;
        for (size_t end = at + TOUCH_PIECE; at < end && at < all->bytes; at += TOUCH_EACH) {
                volatile uint8_t *byte = all->memory + at;

                *byte = *byte;
        }
}

/*
 * The kernel allocates memory when it is first written to. On a virtual machine this can take up to
 * 10 ms for 2 MiB, and a step of a few rows would have to wait in the middle. So all threads touch
 * the memory before it is needed. If parts of the machine have memory of their own, each part's
 * threads get some of it there.
 */
static void touch(struct cpu *cpu, void *memory, size_t bytes)
{
        struct touch_job all = { memory, bytes };

        thread_pool_run(cpu->thread_pool, touch_piece, &all,
                        (uint32_t)((bytes + TOUCH_PIECE - 1) / TOUCH_PIECE));
}

static int cpu_floats_new(struct kernels *k, size_t count, float **ret_floats)
{
        float *floats = memory_new(count, sizeof(*floats));

        if (!floats)
                return -ENOMEM;
        touch(cpu_of(k), floats, count * sizeof(*floats));
        *ret_floats = floats;
        return 0;
}

static void cpu_floats_free(struct kernels *k, float *floats)
{
        (void)k;
        memory_free(floats);
}

static int cpu_put(struct kernels *k, float *to, const float *host, size_t count)
{
        logit_summary_invalidate(&cpu_of(k)->logit_summary);
        memcpy(to, host, count * sizeof(*to));
        return 0;
}

static void cpu_get(struct kernels *k, float *host, const float *from, size_t count)
{
        (void)k;
        memcpy(host, from, count * sizeof(*host));
}

static int cpu_kv_new(struct kernels *k, const struct kv_shape *shape, struct kv **ret_kv)
{
        struct cpu *cpu = cpu_of(k);
        int r;

        r = cpu_attend_init(cpu, shape->head_dim);
        if (r < 0)
                return r;
        r = cpu_scratch_grow(&cpu->rope_tables, &cpu->rope_tables_max,
                             (size_t)cpu->steps.rows_max * shape->head_dim,
                             ROPE_TABLES * sizeof(float));
        if (r < 0)
                return r;
        return kv_pool_new(shape, ret_kv);
}

static bool cpu_kv_back(struct kernels *k, struct kv *kv, size_t *at)
{
        size_t bytes = kv->page_bytes * kv_all_pages(&kv->shape), left = bytes - *at;
        struct cpu *cpu = cpu_of(k);

        if (left > TOUCH_AT_ONCE)
                left = TOUCH_AT_ONCE;
        thread_pool_adopt_caller(cpu->thread_pool);
        touch(cpu, (uint8_t *)kv->pages + *at, left);
        *at += left;
        return *at < bytes;
}

static uint64_t cpu_kv_copy_ns(struct kernels *k, struct kv *kv)
{
        (void)k;
        return kv_copy_time(kv);
}

static void cpu_kv_free(struct kernels *k, struct kv *kv)
{
        (void)k;
        kv_pool_free(kv);
}

static int cpu_step_begin(struct kernels *k, struct kv *const *pools, const struct step *step)
{
        struct cpu *cpu = cpu_of(k);

        thread_pool_adopt_caller(cpu->thread_pool);
        steps_begin(&cpu->steps, step);
        kv_copy(pools, step->copies, step->copy_count);
        logit_summary_invalidate(&cpu->logit_summary);
        /* Positions change, and put() may have changed the frequencies. */
        cpu->rope_count = 0;
        return 0;
}

static int cpu_step_end(struct kernels *k)
{
        struct cpu *cpu = cpu_of(k);

        steps_end(&cpu->steps);
        if (cpu->isa->rest)
                cpu->isa->rest();
        return 0;
}

static void cpu_logprobs(struct kernels *k, uint64_t number, uint32_t want,
                         struct logprob *ret_logprobs)
{
        steps_logprobs(&cpu_of(k)->steps, number, want, ret_logprobs);
}

static const float *cpu_row(struct kernels *k, uint64_t number, uint32_t want)
{
        return steps_row(&cpu_of(k)->steps, number, want);
}

static int cpu_collect(struct kernels *k, uint64_t number, uint32_t *ret_tokens)
{
        steps_collect(&cpu_of(k)->steps, number, ret_tokens);
        return 0;
}

/* All memory is the host's and nothing runs asynchronously, so this backend cannot be lost. */
static const char *cpu_lost(const struct kernels *k)
{
        (void)k;
        return NULL;
}

static void cpu_close(struct kernels *k)
{
        struct cpu *cpu = cpu_of(k);

        if (!cpu)
                return;
        steps_deinit(&cpu->steps);
        for (uint32_t i = 0; i < ACT_KINDS; i++)
                memory_free(cpu->acts[i]);
        memory_free(cpu->sums);
        memory_free(cpu->normed);
        memory_free(cpu->outs);
        memory_free(cpu->rope_tables);
        memory_free(cpu->row_blocks);
        cpu_attend_deinit(cpu);
        for (uint32_t i = 0; cpu->pick_scratch && i < thread_pool_threads(cpu->thread_pool); i++)
                pick_scratch_deinit(&cpu->pick_scratch[i]);
        memory_free(cpu->pick_scratch);
        logit_summary_deinit(&cpu->logit_summary);
        if (cpu->has_thread_pool)
                thread_pool_free(cpu->thread_pool);
        memory_free(cpu);
}

static const struct kernels cpu_table = {
        .layout = KV_LAYOUT_LANES,
        .kv_types = (1u << KV_TYPES) - 1,
        .close = cpu_close,
        .floats_new = cpu_floats_new,
        .floats_free = cpu_floats_free,
        .put = cpu_put,
        .get = cpu_get,
        .matrix_new = cpu_matrix_new,
        .matrix_free = cpu_matrix_free,
        .weights_put = cpu_weights_put,
        .kv_new = cpu_kv_new,
        .kv_free = cpu_kv_free,
        .kv_back = cpu_kv_back,
        .kv_copy_ns = cpu_kv_copy_ns,
        .step_begin = cpu_step_begin,
        .embed = cpu_embed,
        .qkv = cpu_qkv,
        .attend = cpu_attend,
        .project = cpu_project,
        .renorm = cpu_renorm,
        .gate = cpu_gate,
        .head = cpu_head,
        .pick = cpu_pick,
        .step_end = cpu_step_end,
        .collect = cpu_collect,
        .logprobs = cpu_logprobs,
        .row = cpu_row,
        .lost = cpu_lost,
};

#if defined(__x86_64__)
static bool have_avx2(void)
{
        unsigned a, b, c, d;

        /* compilers do not agree on a name for f16c, so ask the processor */
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool have_avx512(void)
{
        return have_avx2() && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

static bool have_avx512bf16(void)
{
        unsigned a, b, c, d;

        return have_avx512() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVX512BF16);
}

static bool have_amx(void)
{
        return have_avx512() && tiles_ask();
}

static bool is_intel(void)
{
        return __builtin_cpu_is("intel");
}
#else
static bool have_none(void)
{
        return false;
}

static bool is_intel(void)
{
        return false;
}
#endif

static bool have_any(void)
{
        return true;
}

/*
 * Intel's processors do not get far enough ahead of one stream of weights by themselves; AMD's do.
 * docs/internals/cpu.md has the figures.
 */
static uint32_t lone_ahead_of(const struct kernels_conf *conf)
{
        if (conf->lone_ahead == KERNELS_AHEAD_NONE)
                return 0;
        return conf->lone_ahead ? conf->lone_ahead : is_intel() ? LONE_AHEAD : 0;
}

/*
 * Best first. Other architectures know the names too, so that -ENOTSUP and -EINVAL stay
 * different.
 */
static const struct {
        const char *name;
        bool (*have)(void);
        const struct isa *isa;
        bool (*is_slow)(void); /* or NULL: the next one is faster, so this one must be asked for */
} isas[] = {
        { "amx-emulated", have_any, &isa_amx_emulated, have_any }, /* for tests */
#if defined(__x86_64__)
        { "amx", have_amx, &isa_amx, NULL },
        /* On Intel FMA computes twice as many products of floats. */
        { "avx512bf16", have_avx512bf16, &isa_avx512bf16, is_intel },
        { "avx512", have_avx512, &isa_avx512 },
        { "avx2", have_avx2, &isa_avx2 },
#else
        { "amx", have_none, NULL },
        { "avx512bf16", have_none, NULL },
        { "avx512", have_none, NULL },
        { "avx2", have_none, NULL },
#endif
        { "c", have_any, &isa_portable },
};

static int isa_find(const char *name, const struct isa **ret_isa)
{
        bool automatic = !name || !strcmp(name, "auto");

        for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++) {
                if (automatic ? isas[i].is_slow && isas[i].is_slow() : strcmp(name, isas[i].name))
                        continue;
                if (isas[i].have()) {
                        *ret_isa = isas[i].isa;
                        return 0;
                }
                if (!automatic)
                        return -ENOTSUP;
        }
        return -EINVAL;
}

static int cpu_init(struct cpu *cpu, const struct kernels_conf *conf)
{
        int r = 0;

        cpu->has_thread_pool = !conf->beside;
        if (conf->beside)
                cpu->thread_pool = cpu_of(conf->beside)->thread_pool;
        else
                r = thread_pool_new(conf->threads, conf->pin, cpu->isa->rest, &cpu->thread_pool);
        if (r < 0)
                return r;
        r = steps_init(&cpu->steps, conf);
        if (r < 0)
                return r;
        r = cpu_product_init(cpu, conf->rows_max);
        if (r < 0)
                return r;
        r = logit_summary_init(&cpu->logit_summary, conf->wants_max, conf->vocab_max);
        if (r < 0)
                return r;
        cpu->row_blocks = memory_new(conf->rows_max, sizeof(*cpu->row_blocks));
        cpu->pick_scratch =
                memory_new(thread_pool_threads(cpu->thread_pool), sizeof(*cpu->pick_scratch));
        if (!cpu->row_blocks || !cpu->pick_scratch)
                return -ENOMEM;
        for (uint32_t i = 0; i < thread_pool_threads(cpu->thread_pool); i++) {
                r = pick_scratch_init(&cpu->pick_scratch[i], conf->vocab_max);
                if (r < 0)
                        return r;
        }
        return 0;
}

int cpu_open(const struct kernels_conf *conf, struct kernels **ret_kernels)
{
        const struct isa *isa;
        struct cpu *cpu;
        int r;

        r = isa_find(conf->isa, &isa);
        if (r < 0)
                return r;
        cpu = memory_new(1, sizeof(*cpu));
        if (!cpu)
                return -ENOMEM;
        cpu->table = cpu_table;
        cpu->table.name = isa->name;
        cpu->isa = isa;
        cpu->lone_ahead = lone_ahead_of(conf);
        cpu->vocab_max = conf->vocab_max;
        r = cpu_init(cpu, conf);
        if (r < 0) {
                cpu_close(&cpu->table);
                return r;
        }

        *ret_kernels = &cpu->table;
        return 0;
}
