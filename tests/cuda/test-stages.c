/*
 * A model whose first layers run on the cpu and whose last layers run on a GPU.  Its results
 * are as near to the definition as those of a GPU with all layers, and it takes as much GPU
 * memory as was planned.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define LEN     40u
#define CONTEXT 64u
#define VOCAB   258u
#define LAYERS  3u
#define CHUNK   9u

static char path[] = "/tmp/test-cuda-stages-XXXXXX";
static uint32_t texts[RIG_SLOTS][LEN];

static int set_up(void **state)
{
        int fd = mkstemp(path);

        (void)state;
        if (fd < 0 || !getenv("TOY_MODEL_MAKER") || !getenv("CUDA_LIBRARY"))
                return -1;
        close(fd);
        for (uint32_t s = 0; s < RIG_SLOTS; s++)
                for (uint32_t i = 0; i < LEN; i++)
                        texts[s][i] = (i * 31 + s * 97 + i * i * 7) % VOCAB;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        return unlink(path);
}

static void make(const char *arguments)
{
        char command[1024];

        snprintf(command, sizeof(command),
                 "'%s' '%s' --layers 3 --width 64 --heads 2 --kv-heads 1 "
                 "--head-dim 32 --ffn 64 %s",
                 getenv("TOY_MODEL_MAKER"), path, arguments);
        assert_int_equal(system(command), 0);
}

static void open_split(struct rig *rig, uint32_t host_layers, const char *backend)
{
        int r = rig_open_split(rig, path, "cpu", host_layers, backend, 2, CONTEXT, KV_F16);

        if (r)
                fail_msg("%u layers with the cpu: %d: %s", host_layers, r, rig->why);
}

/* Runs one text, with `chunk` rows a step. */
static void run_alone(struct rig *rig, uint32_t slot, uint32_t chunk, float (*ret_logits)[VOCAB])
{
        uint32_t tokens[RIG_ROWS], n;

        for (uint32_t at = 0; at < LEN; at += n) {
                struct rig_part part;

                n = LEN - at < chunk ? LEN - at : chunk;
                part = (struct rig_part){ slot, at, n, texts[slot] + at };
                assert_int_equal(rig_run(rig, &part, 1, tokens, ret_logits[at]), 0);
        }
}

static double distance(float (*a)[VOCAB], float (*b)[VOCAB])
{
        double worst = 0;

        for (uint32_t i = 0; i < LEN; i++)
                for (uint32_t t = 0; t < VOCAB; t++) {
                        assert_true(isfinite(b[i][t]));
                        worst = fmax(worst, fabs((double)a[i][t] - (double)b[i][t]));
                }
        return worst;
}

static void every_split_is_as_close_to_ref_as_the_whole_model(void **state)
{
        static const char *const kinds[] = { "", "--tied --extras" };
        static float ref[LEN][VOCAB], other[LEN][VOCAB], none[LEN][VOCAB];
        double whole;
        struct rig rig;

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                make(kinds[i]);
                open_split(&rig, 0, "ref");
                run_alone(&rig, 0, CHUNK, ref);
                rig_close(&rig);
                open_split(&rig, 0, "cuda");
                run_alone(&rig, 0, CHUNK, other);
                rig_close(&rig);
                whole = distance(ref, other);
                assert_true(whole > 0 && whole < distance(ref, none) / 20);
                for (uint32_t layers = 1; layers < LAYERS; layers++) {
                        open_split(&rig, layers, "cuda");
                        run_alone(&rig, 0, CHUNK, other);
                        rig_close(&rig);
                        if (distance(ref, other) > 2 * whole)
                                fail_msg("%u layers with the cpu: %g, and %g as a whole", layers,
                                         distance(ref, other), whole);
                }
        }
}

static void a_row_has_the_same_bits_in_any_batch_and_any_chunks(void **state)
{
        static float alone[LEN][VOCAB], cut[LEN][VOCAB], together[RIG_ROWS][VOCAB];
        static const uint32_t counts[RIG_SLOTS] = { 21, 33, 7 };
        struct rig_part parts[RIG_SLOTS];
        uint32_t tokens[RIG_ROWS], row = 0;
        struct rig rig;

        (void)state;
        make("");
        for (uint32_t s = 0; s < RIG_SLOTS; s++)
                parts[s] = (struct rig_part){ s, 0, counts[s], texts[s] };
        open_split(&rig, 1, "cuda");
        assert_int_equal(rig_run(&rig, parts, RIG_SLOTS, tokens, together[0]), 0);
        rig_close(&rig);
        for (uint32_t s = 0; s < RIG_SLOTS; row += counts[s++]) {
                open_split(&rig, 1, "cuda");
                run_alone(&rig, s, LEN, alone);
                rig_close(&rig);
                assert_memory_equal(alone, together[row], counts[s] * sizeof(*alone));
                open_split(&rig, 1, "cuda");
                run_alone(&rig, s, 3, cut);
                rig_close(&rig);
                assert_memory_equal(alone, cut, sizeof(alone));
        }
}

/*
 * Between two steps of the text its pages are in the swap, and pages of another text are copied
 * over them.
 */
static void run_swapped(struct rig *rig, uint32_t chunk, float (*ret_logits)[VOCAB])
{
        const uint32_t swap = rig->pages * RIG_SLOTS;
        uint32_t tokens[RIG_ROWS], n;

        for (uint32_t at = 0; at < LEN; at += n) {
                const struct rig_part beside = { 1, at / chunk, 1, texts[1] + at / chunk };
                struct rig_part part;

                n = LEN - at < chunk ? LEN - at : chunk;
                part = (struct rig_part){ 0, at, n, texts[0] + at };
                for (uint32_t i = 0; i * PAGE_POSITIONS < at; i++) {
                        uint32_t page = rig_page(rig, 0, i);

                        rig->copies[rig->copy_count++] = (struct step_copy){ page, swap + i };
                        rig->copies[rig->copy_count++] =
                                (struct step_copy){ rig_page(rig, 1, 0), page };
                }
                assert_int_equal(rig_run(rig, &beside, 1, tokens, NULL), 0);
                for (uint32_t i = 0; i * PAGE_POSITIONS < at; i++)
                        rig->copies[rig->copy_count++] =
                                (struct step_copy){ swap + i, rig_page(rig, 0, i) };
                assert_int_equal(rig_run(rig, &part, 1, tokens, ret_logits[at]), 0);
        }
}

static void blocks_go_to_the_swap_and_back_in_both_stages(void **state)
{
        static float stays[LEN][VOCAB], moves[LEN][VOCAB];
        struct rig rig;

        (void)state;
        make("");
        for (uint32_t layers = 0; layers < LAYERS; layers++) {
                open_split(&rig, layers, "cuda");
                assert_true(model_swap_copy_ns(rig.model) >= (layers ? 2 : 1));
                run_alone(&rig, 0, CHUNK, stays);
                rig_close(&rig);
                open_split(&rig, layers, "cuda");
                run_swapped(&rig, CHUNK, moves);
                rig_close(&rig);
                assert_memory_equal(moves, stays, sizeof(stays));
        }
}

static uint64_t left_of(struct kernels *k)
{
        const struct kernels_objects none = { 0 };
        struct kernels_memory memory;

        assert_int_equal(k->memory(k, &none, &memory), 0);
        return memory.left;
}

static void takes_exactly_the_planned_memory(void **state)
{
        static const char *const kinds[] = { "", "--tied" };
        struct model_bytes bytes, host;
        struct rig rig;

        (void)state;
        for (uint32_t i = 0; i < 2 * LAYERS; i++) {
                struct model_conf conf = { .rows_max = RIG_ROWS,
                                           .wants_max = RIG_ROWS,
                                           .kv = KV_F16,
                                           .swap_blocks = RIG_SWAP,
                                           .host_layers = i / 2 };
                uint64_t before, taken;

                make(kinds[i % 2]);
                open_split(&rig, i / 2, "cuda");
                taken = left_of(rig.kernels);
                rig.model = model_close(rig.model);
                before = left_of(rig.kernels);
                taken = before - taken;
                conf.blocks = rig.pages * RIG_SLOTS;
                assert_int_equal(model_measure_in(rig.checkpoint, &rig.traits, rig.kernels, &conf,
                                                  &bytes, &host, rig.why, sizeof(rig.why)),
                                 0);
                assert_int_equal(taken, bytes.weights + bytes.activations + bytes.kv);
                assert_int_equal(host.block + bytes.block,
                                 LAYERS * (uint64_t)2 * PAGE_POSITIONS * 32 * 2);
                assert_int_equal(host.swap, RIG_SWAP * (host.block + bytes.block));
                assert_int_equal(bytes.swap, 0);
                assert_true(!host.weights == !conf.host_layers);
                rig_close(&rig);
        }
}

/*
 * A step has rows of at most CHUNK positions and a window before them, which are in two pages.  The
 * text has three blocks, so the third one takes the page of the first.
 */
static void layers_with_a_window_need_the_pages_of_their_window_only(void **state)
{
        static float whole[LEN][VOCAB], windows[LEN][VOCAB];
        struct rig rig;

        (void)state;
        make("");
        for (uint32_t layers = 0; layers < LAYERS; layers++) {
                open_split(&rig, layers, "cuda");
                for (uint32_t layer = 0; layer < LAYERS; layer += 2)
                        rig.traits.layer[layer].window = 5;
                assert_int_equal(rig_reopen(&rig, layers, KV_F16, 0), 0);
                assert_int_equal(rig_load(&rig), 0);
                run_alone(&rig, 1, CHUNK, whole);
                assert_int_equal(rig_reopen(&rig, layers, KV_F16, 2), 0);
                assert_int_equal(rig_load(&rig), 0);
                run_alone(&rig, 1, CHUNK, windows);
                assert_memory_equal(whole, windows, sizeof(whole));
                rig_close(&rig);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_split_is_as_close_to_ref_as_the_whole_model),
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch_and_any_chunks),
                cmocka_unit_test(blocks_go_to_the_swap_and_back_in_both_stages),
                cmocka_unit_test(takes_exactly_the_planned_memory),
                cmocka_unit_test(layers_with_a_window_need_the_pages_of_their_window_only),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
