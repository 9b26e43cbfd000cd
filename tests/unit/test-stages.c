/*
 * A model in two stages has its first layers on one backend and the others on another.  It
 * gives the same bits as in one stage, for any kind of steps.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define LEN     30u
#define CONTEXT 64u
#define VOCAB   258u
#define LAYERS  4u
#define CHUNK   13u
#define TOLD    3u
#define MAD     7u
#define SMALL   "--layers 4 --width 48 --heads 6 --kv-heads 2 --head-dim 10 --ffn 80 "

static char folder[] = "/tmp/test-stages-XXXXXX";
static char path[128];
static uint32_t texts[RIG_SLOTS][LEN];

static void make(const char *arguments)
{
        char command[1024];

        snprintf(command, sizeof(command), "'%s' '%s' %s", getenv("TOY_MODEL_MAKER"), path,
                 arguments);
        assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
        (void)state;
        if (!getenv("TOY_MODEL_MAKER") || !mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/model.gguf", folder);
        for (uint32_t s = 0; s < RIG_SLOTS; s++)
                for (uint32_t i = 0; i < LEN; i++)
                        texts[s][i] = (i * 31 + s * 97 + i * i * 7) % VOCAB;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        unlink(path);
        return rmdir(folder);
}

static void open_split(struct rig *rig, const char *host, uint32_t host_layers, const char *backend)
{
        int r = rig_open_split(rig, path, host, host_layers, backend, 2, CONTEXT, KV_F32);

        if (r)
                fail_msg("%u layers with %s: %d: %s", host_layers, host ? host : backend, r,
                         rig->why);
}

/* All texts side by side, some rows of each in a step. */
static void run_all(struct rig *rig, float (*ret_logits)[LEN][VOCAB])
{
        static float logits[RIG_ROWS][VOCAB];
        uint32_t tokens[RIG_ROWS], n;

        for (uint32_t at = 0; at < LEN; at += n) {
                struct rig_part parts[RIG_SLOTS];

                n = LEN - at < CHUNK ? LEN - at : CHUNK;
                for (uint32_t s = 0; s < RIG_SLOTS; s++)
                        parts[s] = (struct rig_part){ s, at, n, texts[s] + at };
                assert_int_equal(rig_run(rig, parts, RIG_SLOTS, tokens, logits[0]), 0);
                for (uint32_t s = 0; s < RIG_SLOTS; s++)
                        memcpy(ret_logits[s][at], logits[s * n], n * sizeof(logits[0]));
        }
}

static void every_split_gives_the_bits_of_the_whole_model(void **state)
{
        static const char *const backends[] = { "ref", "cpu" };
        static const char *const kinds[] = { SMALL, SMALL "--tied --type bf16", SMALL "--extras" };
        static float whole[RIG_SLOTS][LEN][VOCAB], split[RIG_SLOTS][LEN][VOCAB];

        (void)state;
        for (uint32_t i = 0; i < 6; i++) {
                const char *backend = backends[i % 2];
                struct rig rig;

                make(kinds[i / 2]);
                open_split(&rig, NULL, 0, backend);
                run_all(&rig, whole);
                rig_close(&rig);
                for (uint32_t layers = 1; layers < LAYERS; layers++) {
                        open_split(&rig, backend, layers, backend);
                        run_all(&rig, split);
                        rig_close(&rig);
                        assert_memory_equal(whole, split, sizeof(whole));
                }
        }
}

/* Behind the third layer a row sees its last few positions only. */
static void attention_windows_stay_with_their_layers(void **state)
{
        static float whole[RIG_SLOTS][LEN][VOCAB], split[RIG_SLOTS][LEN][VOCAB];
        struct rig rig;

        (void)state;
        make(SMALL);
        for (uint32_t layers = 0; layers < LAYERS; layers++) {
                open_split(&rig, "cpu", layers, "cpu");
                if (!layers)
                        run_all(&rig, split);
                for (uint32_t i = 3; i < LAYERS; i++)
                        rig.traits.layer[i].window = 5;
                assert_int_equal(rig_reopen(&rig, layers, KV_F32, 0), 0);
                assert_int_equal(rig_load(&rig), 0);
                run_all(&rig, layers ? split : whole);
                rig_close(&rig);
                if (layers)
                        assert_memory_equal(whole, split, sizeof(whole));
                else
                        assert_memory_not_equal(whole, split, sizeof(whole));
        }
}

/*
 * A step has rows of at most CHUNK positions and a window before them, which are in two pages.  The
 * texts have three blocks, so the third one takes the page of the first.
 */
static void layers_with_a_window_need_the_pages_of_their_window_only(void **state)
{
        static const char *const backends[] = { "ref", "cpu" };
        static float whole[RIG_SLOTS][LEN][VOCAB], windows[RIG_SLOTS][LEN][VOCAB];
        struct rig rig;

        (void)state;
        make(SMALL);
        for (uint32_t i = 0; i < 2 * LAYERS; i++) {
                open_split(&rig, backends[i % 2], i / 2, backends[i % 2]);
                for (uint32_t layer = 0; layer < LAYERS; layer += 2)
                        rig.traits.layer[layer].window = 5;
                assert_int_equal(rig_reopen(&rig, i / 2, KV_F32, 0), 0);
                assert_int_equal(rig_load(&rig), 0);
                run_all(&rig, whole);
                assert_int_equal(rig_reopen(&rig, i / 2, KV_F32, 2), 0);
                assert_int_equal(rig_load(&rig), 0);
                run_all(&rig, windows);
                assert_memory_equal(whole, windows, sizeof(whole));
                rig_close(&rig);
        }
}

static void a_model_may_have_windows_in_all_layers(void **state)
{
        static float whole[RIG_SLOTS][LEN][VOCAB], windows[RIG_SLOTS][LEN][VOCAB];
        struct rig rig;

        (void)state;
        make(SMALL);
        open_split(&rig, NULL, 0, "cpu");
        for (uint32_t layer = 0; layer < LAYERS; layer++)
                rig.traits.layer[layer].window = 5;
        assert_int_equal(rig_reopen(&rig, 0, KV_F32, 0), 0);
        assert_int_equal(rig_load(&rig), 0);
        run_all(&rig, whole);
        assert_int_equal(rig_reopen(&rig, 0, KV_F32, 2), 0);
        assert_int_equal(rig_load(&rig), 0);
        run_all(&rig, windows);
        assert_memory_equal(whole, windows, sizeof(whole));
        rig_close(&rig);
}

static void two_different_backends_agree_with_one(void **state)
{
        static float whole[RIG_SLOTS][LEN][VOCAB], split[RIG_SLOTS][LEN][VOCAB];
        const float *a = whole[0][0], *b = split[0][0];
        double worst = 0;
        struct rig rig;

        (void)state;
        make(SMALL);
        open_split(&rig, NULL, 0, "ref");
        run_all(&rig, whole);
        rig_close(&rig);
        open_split(&rig, "cpu", 2, "ref");
        run_all(&rig, split);
        rig_close(&rig);
        for (size_t i = 0; i < sizeof(whole) / sizeof(*a); i++)
                worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        if (!(worst > 0 && worst <= 1e-4))
                fail_msg("logits differ by %g", worst);
}

/* ---- steps that are fed by others ---- */

/* A row of a slot at a position: a token, or the pick of a row of an earlier step. */
struct fed {
        uint32_t slot, position, token, from_row;
        uint64_t from_step;
};

/* Every row is wanted, and told of.  Not collected yet. */
static int begin(struct rig *rig, const struct fed *fed, uint32_t count,
                 const struct step_copy *copy)
{
        struct step_row rows[RIG_ROWS];
        struct step_run runs[RIG_ROWS];
        struct step_page pages[RIG_ROWS];
        uint32_t want[RIG_ROWS];
        struct pick picks[RIG_ROWS];
        struct step step = { .number = ++rig->number,
                             .rows = rows,
                             .runs = runs,
                             .pages = pages,
                             .want = want,
                             .picks = picks,
                             .copies = copy,
                             .copy_count = !!copy };

        for (uint32_t i = 0; i < count; i++) {
                uint32_t slot = fed[i].slot, index = fed[i].position / PAGE_POSITIONS;

                rows[i] = (struct step_row){ .slot = slot,
                                             .position = fed[i].position,
                                             .token = fed[i].token,
                                             .from_row = fed[i].from_step ? fed[i].from_row
                                                                          : STEP_TOKEN,
                                             .from_step = fed[i].from_step,
                                             .write = 1 };
                if (step.run_count && rows[runs[step.run_count - 1].row].slot == slot)
                        runs[step.run_count - 1].count++;
                else
                        runs[step.run_count++] = (struct step_run){ i, 1 };
                pages[i] = (struct step_page){ slot, index, index * RIG_SLOTS + slot };
                want[i] = i;
                picks[i] = (struct pick){ .temperature = slot ? 0.8f : 0,
                                          .seed = slot,
                                          .position = fed[i].position + 1,
                                          .logprobs = TOLD };
        }
        step.row_count = step.want_count = step.page_count = count;
        return model_forward(rig->model, &step);
}

struct picked {
        uint32_t tokens[RIG_ROWS];
        struct logprob told[RIG_ROWS][TOLD];
};

static void collect(struct rig *rig, uint64_t number, uint32_t count, struct picked *ret)
{
        memset(ret, 0, sizeof(*ret));
        assert_int_equal(model_collect(rig->model, number, ret->tokens), 0);
        for (uint32_t i = 0; i < count; i++)
                if (ret->tokens[i] != PICK_NOT_FINITE)
                        model_logprobs(rig->model, number, i, ret->told[i]);
}

/* Where the last pick of a slot is. */
struct last {
        uint64_t step;
        uint32_t row, position;
};

/*
 * The rows of a step: prompts in the first one, then picks.  The second slot pauses at every
 * other step, so its picks are two steps old.
 */
static uint32_t lay_out(struct last last[RIG_SLOTS], uint64_t step, struct fed *ret_fed)
{
        uint32_t count = 0;

        for (uint32_t s = 0; s < RIG_SLOTS; s++) {
                if (step > 1 && step % 2 == 0 && s == 1)
                        continue;
                for (uint32_t i = 0; step == 1 && i < 3 + s; i++)
                        ret_fed[count++] =
                                (struct fed){ .slot = s, .position = i, .token = texts[s][i] };
                if (step == 1)
                        last[s].position = 2 + s;
                else
                        ret_fed[count++] = (struct fed){ .slot = s,
                                                         .position = ++last[s].position,
                                                         .from_row = last[s].row,
                                                         .from_step = last[s].step };
                last[s].step = step;
                last[s].row = count - 1;
        }
        return count;
}

#define STEPS 12u

/* Picks are collected while the next step is under way. */
static void feed(struct rig *rig, struct picked ret[STEPS])
{
        struct last last[RIG_SLOTS];
        struct fed fed[RIG_ROWS];
        uint32_t before = 0, count;

        for (uint32_t step = 1; step <= STEPS; step++) {
                count = lay_out(last, step, fed);
                assert_int_equal(begin(rig, fed, count, NULL), 0);
                if (step > 1)
                        collect(rig, step - 1, before, &ret[step - 2]);
                before = count;
        }
        collect(rig, STEPS, before, &ret[STEPS - 1]);
}

static void uncollected_picks_feed_the_next_step_in_both_stages(void **state)
{
        static struct picked whole[STEPS], split[STEPS];
        struct rig rig;

        (void)state;
        make(SMALL);
        for (uint32_t layers = 0; layers < LAYERS; layers++) {
                open_split(&rig, "cpu", layers, "cpu");
                feed(&rig, layers ? split : whole);
                rig_close(&rig);
                if (layers)
                        assert_memory_equal(whole, split, sizeof(whole));
        }
        assert_memory_not_equal(&whole[STEPS - 1], &whole[STEPS - 3], sizeof(*whole));
}

/*
 * The logits of token MAD are not finite, nor are those of later positions.  Token 0 stands in
 * for a pick that failed.
 */
static void uses_token_0_after_a_pick_that_is_not_finite(void **state)
{
        const struct fed mad = { .slot = 1, .token = MAD };
        struct fed next = { .slot = 2, .from_row = 0, .from_step = 1 };
        static struct picked picked, plain;
        struct rig rig;

        (void)state;
        make(SMALL "--bad-token 7");
        for (uint32_t layers = 0; layers < LAYERS; layers++) {
                open_split(&rig, "cpu", layers, "cpu");
                assert_int_equal(begin(&rig, &mad, 1, NULL), 0);
                assert_int_equal(begin(&rig, &next, 1, NULL), 0);
                collect(&rig, 1, 1, &picked);
                assert_true(picked.tokens[0] == PICK_NOT_FINITE);
                collect(&rig, 2, 1, &picked);
                rig_close(&rig);

                open_split(&rig, "cpu", layers, "cpu");
                assert_int_equal(begin(&rig, &(struct fed){ .slot = 2 }, 1, NULL), 0);
                collect(&rig, 1, 1, &plain);
                rig_close(&rig);
                assert_true(plain.tokens[0] != PICK_NOT_FINITE);
                assert_memory_equal(&picked, &plain, sizeof(plain));
        }
}

/* A slot whose page is a copy goes on as the one that it was copied of. */
static void copies_pages_in_both_stages(void **state)
{
        const struct step_copy copy = { .from = 0, .to = 2 };
        static struct picked own, copied;
        struct fed prompt[10];
        struct rig rig;

        (void)state;
        make(SMALL);
        for (uint32_t i = 0; i < 10; i++)
                prompt[i] = (struct fed){ .slot = 0, .position = i, .token = texts[0][i] };
        for (uint32_t layers = 0; layers < LAYERS; layers++) {
                open_split(&rig, "cpu", layers, "cpu");
                assert_int_equal(begin(&rig, prompt, 10, NULL), 0);
                assert_int_equal(begin(&rig,
                                       &(struct fed){ .slot = 0, .position = 10, .token = 40 }, 1,
                                       NULL),
                                 0);
                collect(&rig, 2, 1, &own);
                assert_int_equal(begin(&rig,
                                       &(struct fed){ .slot = 2, .position = 10, .token = 40 }, 1,
                                       &copy),
                                 0);
                collect(&rig, 3, 1, &copied);
                assert_memory_equal(own.told, copied.told, sizeof(own.told));
                rig_close(&rig);
        }
}

/* ---- loading, and its failures ---- */

static const struct tensor *tensor_of(const struct rig *rig, const char *name)
{
        return checkpoint_tensor(rig->checkpoint, name);
}

/* An embedding that is the head as well is brought to both. */
static void model_to_load_counts_the_bytes_that_are_read(void **state)
{
        static const char *const kinds[] = { SMALL, SMALL "--tied" };
        uint64_t whole, split;
        struct rig rig;

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                make(kinds[i]);
                open_split(&rig, "cpu", 1, "cpu");
                assert_int_equal(model_to_load(rig.model), 0);
                assert_int_equal(rig_reopen(&rig, 0, KV_F32, 0), 0);
                whole = model_to_load(rig.model);
                assert_int_equal(rig_reopen(&rig, 1, KV_F32, 0), 0);
                split = model_to_load(rig.model);
                assert_int_equal(split - whole,
                                 i ? tensor_of(&rig, "token_embd.weight")->bytes : 0);
                assert_int_equal(rig_load(&rig), 0);
                assert_int_equal(model_to_load(rig.model), 0);
                rig_close(&rig);
        }
}

static int left;
static struct kernels real;

static int matrix_new(struct kernels *k, const struct matrix_shape *shape,
                      struct matrix **ret_matrix)
{
        return left-- ? real.matrix_new(k, shape, ret_matrix) : -ENOMEM;
}

static int floats_new(struct kernels *k, size_t count, float **ret_floats)
{
        return left-- ? real.floats_new(k, count, ret_floats) : -ENOMEM;
}

static int kv_new(struct kernels *k, const struct kv_shape *shape, struct kv **ret_kv)
{
        return left-- ? real.kv_new(k, shape, ret_kv) : -ENOMEM;
}

static int put(struct kernels *k, float *to, const float *host, size_t count)
{
        return left-- ? real.put(k, to, host, count) : -EIO;
}

static int weights_put(struct kernels *k, struct matrix *matrix, uint32_t part, uint32_t row,
                       uint32_t rows, const void *file_rows)
{
        return __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED)
                       ? real.weights_put(k, matrix, part, row, rows, file_rows)
                       : -EIO;
}

/* Sanitizers say what would be left behind. */
static void frees_everything_whichever_call_fails(void **state)
{
        struct rig rig;
        int r, n = 0;

        (void)state;
        make(SMALL "--tied --extras");
        open_split(&rig, "cpu", 2, "cpu");
        real = *rig.kernels;
        for (uint32_t i = 0; i < 2; i++) {
                struct kernels *k = i ? rig.host : rig.kernels;

                k->matrix_new = matrix_new;
                k->floats_new = floats_new;
                k->kv_new = kv_new;
                k->put = put;
                k->weights_put = weights_put;
        }
        do {
                struct model_conf conf = { .rows_max = RIG_ROWS,
                                           .wants_max = RIG_ROWS,
                                           .blocks = 1,
                                           .kv = KV_F32,
                                           .host_layers = 2,
                                           .host = rig.host };

                rig.model = model_close(rig.model);
                left = n++;
                r = model_open(rig.checkpoint, &rig.traits, rig.kernels, &conf, &rig.model, rig.why,
                               sizeof(rig.why));
                if (!r)
                        r = rig_load(&rig);
                assert_true(!r || (rig.why[0] && (r == -ENOMEM || r == -EIO)));
        } while (r);
        assert_true(n > 60);
        rig_close(&rig);
}

static const char *say_lost(const struct kernels *k)
{
        (void)k;
        return "it is gone";
}

static int fail_collect(struct kernels *k, uint64_t number, uint32_t *ret_tokens)
{
        (void)k;
        (void)number;
        (void)ret_tokens;
        return -EIO;
}

static void losing_one_backend_fails_the_model(void **state)
{
        struct rig rig;

        (void)state;
        make(SMALL);
        for (uint32_t i = 0; i < 2; i++) {
                open_split(&rig, "cpu", 2, "cpu");
                assert_null(model_lost(rig.model));
                (i ? rig.host : rig.kernels)->lost = say_lost;
                assert_string_equal(model_lost(rig.model), "it is gone");
                rig_close(&rig);
        }
        open_split(&rig, "cpu", 2, "cpu");
        assert_int_equal(begin(&rig, &(struct fed){ .token = 1 }, 1, NULL), 0);
        rig.kernels->collect = fail_collect;
        assert_int_equal(begin(&rig, &(struct fed){ .position = 1, .from_step = 1 }, 1, NULL),
                         -EIO);
        rig_close(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_split_gives_the_bits_of_the_whole_model),
                cmocka_unit_test(attention_windows_stay_with_their_layers),
                cmocka_unit_test(layers_with_a_window_need_the_pages_of_their_window_only),
                cmocka_unit_test(a_model_may_have_windows_in_all_layers),
                cmocka_unit_test(two_different_backends_agree_with_one),
                cmocka_unit_test(uncollected_picks_feed_the_next_step_in_both_stages),
                cmocka_unit_test(uses_token_0_after_a_pick_that_is_not_finite),
                cmocka_unit_test(copies_pages_in_both_stages),
                cmocka_unit_test(model_to_load_counts_the_bytes_that_are_read),
                cmocka_unit_test(frees_everything_whichever_call_fails),
                cmocka_unit_test(losing_one_backend_fails_the_model),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
