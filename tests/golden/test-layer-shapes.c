/*
 * Models whose layers have heads of two shapes, and layers that attend to the keys and values of
 * earlier ones: where the layers are, and where their pages are, changes no bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define LEN          45u
#define CONTEXT      64u
#define VOCAB        40u
#define CHUNK        13u
#define WINDOW_PAGES 3u

static const char *const models[] = { "gemma4", "gemma4-e", "gemma4-e.gguf" };
static const char *const backends[] = { "ref", "cpu" };

static uint32_t texts[RIG_SLOTS][LEN];

#define EACH(model, backend)                                                                       \
        for (size_t model = 0; model < sizeof(models) / sizeof(*models); model++)                  \
                for (size_t backend = 0; backend < 2; backend++)

static int set_up(void **state)
{
        (void)state;
        for (uint32_t s = 0; s < RIG_SLOTS; s++)
                for (uint32_t i = 0; i < LEN; i++)
                        texts[s][i] = (i * 31 + s * 17 + i * i * 7) % VOCAB;
        return getenv("SOURCES") ? 0 : -1;
}

static void open_split(struct rig *rig, const char *model, uint32_t host_layers,
                       const char *backend)
{
        char path[256];
        int r;

        snprintf(path, sizeof(path), "%s/tests/golden/families/%s", getenv("SOURCES"), model);
        r = rig_open_split(rig, path, backend, host_layers, backend, 2, CONTEXT, KV_F32);
        if (r)
                fail_msg("%s, %u layers on the host: %d: %s", model, host_layers, r, rig->why);
        assert_int_equal(rig->traits.vocab, VOCAB);
}

/* The model again, with window pages. */
static void open_windows(struct rig *rig)
{
        assert_int_equal(rig_reopen(rig, 0, KV_F32, WINDOW_PAGES), 0);
        assert_int_equal(rig_load(rig), 0);
}

/* Rows from `from` on of slot `slot`, with the text `text`. */
static void run_one(struct rig *rig, uint32_t slot, uint32_t text, uint32_t from, uint32_t count,
                    float (*ret_logits)[VOCAB])
{
        const struct rig_part part = { slot, from, count, texts[text] + from };
        uint32_t tokens[RIG_ROWS];

        assert_int_equal(rig_run(rig, &part, 1, tokens, ret_logits ? ret_logits[0] : NULL), 0);
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
                        memcpy(ret_logits[s][at], logits[s * n], n * sizeof(*logits));
        }
}

/* gemma4-e: of 7 layers, the last 3 attend to the third and the fourth. */
static void layers_that_share_keys_are_in_one_place(void **state)
{
        struct rig rig;

        (void)state;
        open_split(&rig, "gemma4", 0, "ref");
        assert_int_equal(traits_split_max(&rig.traits), rig.traits.layers - 1);
        rig_close(&rig);
        open_split(&rig, "gemma4-e", 0, "ref");
        assert_int_equal(rig.traits.layers, 7);
        assert_int_equal(traits_kv_layer(&rig.traits, 4), 2);
        assert_int_equal(traits_kv_layer(&rig.traits, 5), 2);
        assert_int_equal(traits_kv_layer(&rig.traits, 6), 3);
        assert_int_equal(traits_split_max(&rig.traits), 2);
        rig_close(&rig);
}

static void every_split_gives_the_bits_of_the_whole_model(void **state)
{
        static float whole[RIG_SLOTS][LEN][VOCAB], split[RIG_SLOTS][LEN][VOCAB];
        struct rig rig;

        (void)state;
        EACH(model, backend)
        {
                uint32_t most;

                open_split(&rig, models[model], 0, backends[backend]);
                most = traits_split_max(&rig.traits);
                run_all(&rig, whole);
                rig_close(&rig);
                for (uint32_t layers = 1; layers <= most; layers++) {
                        open_split(&rig, models[model], layers, backends[backend]);
                        run_all(&rig, split);
                        rig_close(&rig);
                        assert_memory_equal(whole, split, sizeof(whole));
                }
        }
}

static void window_pages_change_no_bit(void **state)
{
        static float whole[RIG_SLOTS][LEN][VOCAB], windows[RIG_SLOTS][LEN][VOCAB];
        struct rig rig;

        (void)state;
        EACH(model, backend)
        {
                open_split(&rig, models[model], 0, backends[backend]);
                run_all(&rig, whole);
                open_windows(&rig);
                run_all(&rig, windows);
                rig_close(&rig);
                assert_memory_equal(whole, windows, sizeof(whole));
        }
}

/*
 * Slot 2 has another first block than slot 0, until this is replaced by a copy.  Then both go on
 * with the same text.
 */
static void go_on_from_a_copy(struct rig *rig)
{
        static float own[LEN][VOCAB], copied[LEN][VOCAB], other[LEN][VOCAB];
        const uint32_t rest = LEN - PAGE_POSITIONS;
        const uint32_t from = rig_page(rig, 0, 0), to = rig_page(rig, 2, 0);

        run_one(rig, 0, 0, 0, PAGE_POSITIONS, NULL);
        run_one(rig, 2, 1, 0, PAGE_POSITIONS, NULL);
        run_one(rig, 2, 0, PAGE_POSITIONS, rest, other);
        rig->copies[rig->copy_count++] = (struct step_copy){ from, to, GROUP_BLOCKS };
        if (rig->window_pages)
                rig->copies[rig->copy_count++] = (struct step_copy){ 0, 2, GROUP_WINDOWS };
        run_one(rig, 2, 0, PAGE_POSITIONS, rest, copied);
        run_one(rig, 0, 0, PAGE_POSITIONS, rest, own);
        assert_memory_equal(own, copied, rest * sizeof(*own));
        assert_memory_not_equal(own, other, rest * sizeof(*own));
}

static void a_copy_has_the_keys_of_both_shapes(void **state)
{
        struct rig rig;

        (void)state;
        EACH(model, backend)
        {
                open_split(&rig, models[model], 0, backends[backend]);
                go_on_from_a_copy(&rig);
                open_windows(&rig);
                go_on_from_a_copy(&rig);
                rig_close(&rig);
        }
}

/* A block goes to the swap; its page gets another text; and the block comes back. */
static void a_swapped_block_has_the_keys_of_both_shapes(void **state)
{
        static float own[LEN][VOCAB], back[LEN][VOCAB];
        const uint32_t rest = LEN - PAGE_POSITIONS;
        struct rig rig;

        (void)state;
        EACH(model, backend)
        {
                uint32_t page, swap;

                open_split(&rig, models[model], 0, backends[backend]);
                page = rig_page(&rig, 0, 0);
                swap = rig.pages * RIG_SLOTS + 1;
                run_one(&rig, 0, 0, 0, PAGE_POSITIONS, NULL);
                run_one(&rig, 0, 0, PAGE_POSITIONS, rest, own);
                rig.copies[rig.copy_count++] = (struct step_copy){ page, swap, GROUP_BLOCKS };
                run_one(&rig, 0, 1, 0, PAGE_POSITIONS, NULL);
                rig.copies[rig.copy_count++] = (struct step_copy){ swap, page, GROUP_BLOCKS };
                run_one(&rig, 0, 0, PAGE_POSITIONS, rest, back);
                rig_close(&rig);
                assert_memory_equal(own, back, rest * sizeof(*own));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(layers_that_share_keys_are_in_one_place),
                cmocka_unit_test(every_split_gives_the_bits_of_the_whole_model),
                cmocka_unit_test(window_pages_change_no_bit),
                cmocka_unit_test(a_copy_has_the_keys_of_both_shapes),
                cmocka_unit_test(a_swapped_block_has_the_keys_of_both_shapes),
        };

        return cmocka_run_group_tests(tests, set_up, NULL);
}
