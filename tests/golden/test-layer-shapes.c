/*
 * Models whose layers differ give the same bits in every place that their layers can be in.
 *
 * The golden models of Gemma 3 and 4 have layers with a window and layers without one.  In Gemma 4
 * these have heads of two shapes, so a group of pages has two pools.  In `gemma4-e` the last layers
 * share keys and values, and every layer has an input of its own.  tests/golden/test-families.c
 * compares these models with transformers.  Here a model in one place, which runs each text alone
 * in large steps, is compared with the same model in other places, whose steps are small and mixed.
 *
 * SOURCES is the project's root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define LEN     100u
#define CONTEXT 112u
#define VOCAB   40u
#define WINDOW  7u
/* Rows of a slot in a step, at most: with the window before them they are in two pages. */
#define PIECE        (PAGE_POSITIONS - WINDOW + 1)
#define WINDOW_PAGES 2u
/* Where a sequence is copied: its window is in two pages, and the last one is not full. */
#define COPIED 50u

typedef float texts_logits[RIG_SLOTS][LEN][VOCAB];

static const struct golden {
        const char *name;
        /* by its config: the layers before the first one whose K and V are shared */
        uint32_t split_max;
} goldens[] = {
        { "gemma4", 5 },        { "gemma4.gguf", 5 }, { "gemma4-e", 2 },
        { "gemma4-e.gguf", 2 }, { "gemma3", 5 },      { "gemma3.gguf", 5 },
};

/* A model in one of its places. */
struct place {
        const char *name, *backend;
        uint32_t host_layers, window_pages;
};

static uint32_t texts[RIG_SLOTS][LEN];

static int set_up(void **state)
{
        (void)state;
        for (uint32_t s = 0; s < RIG_SLOTS; s++)
                for (uint32_t i = 0; i < LEN; i++)
                        texts[s][i] = (i * 31 + s * 17 + i * i * 7 + i / VOCAB) % VOCAB;
        return 0;
}

/* With window pages there is no swap. */
static void open_in(struct rig *rig, const struct place *place)
{
        char path[1024];
        int r;

        snprintf(path, sizeof(path), "%s/tests/golden/families/%s", getenv("SOURCES"), place->name);
        r = rig_open_split(rig, path, place->backend, place->host_layers, place->backend, 2,
                           CONTEXT, KV_F32);
        if (!r && place->window_pages)
                r = rig_reopen(rig, place->host_layers, KV_F32, place->window_pages);
        if (!r && place->window_pages)
                r = rig_load(rig);
        if (r)
                fail_msg("%s, %s, %u layers on the host: %d: %s", place->name, place->backend,
                         place->host_layers, r, rig->why);
        assert_int_equal(rig->traits.vocab, VOCAB);
        assert_int_equal(traits_window(&rig->traits, CONTEXT), WINDOW);
}

/* The logits of rows that were run are those of the model in one place. */
static void check_rows(const struct place *place, const struct rig_part *part,
                       const float (*logits)[VOCAB], const float (*whole)[VOCAB])
{
        for (uint32_t i = 0; i < part->count; i++)
                if (memcmp(logits[i], whole[part->position + i], sizeof(*logits)))
                        fail_msg("%s, %s, %u layers on the host, %u window pages: "
                                 "other bits in slot %u at position %u",
                                 place->name, place->backend, place->host_layers,
                                 place->window_pages, part->slot, part->position + i);
}

/* Each text alone, in steps as large as a step can be. */
static void run_whole(const struct golden *golden, const char *backend, texts_logits ret_logits)
{
        const struct place place = { golden->name, backend, 0, 0 };
        uint32_t tokens[RIG_ROWS], n;
        struct rig rig;

        open_in(&rig, &place);
        for (uint32_t s = 0; s < RIG_SLOTS; s++)
                for (uint32_t at = 0; at < LEN; at += n) {
                        struct rig_part part = { s, at, 0, texts[s] + at };

                        part.count = n = LEN - at < RIG_ROWS ? LEN - at : RIG_ROWS;
                        assert_int_equal(rig_run(&rig, &part, 1, tokens, ret_logits[s][at]), 0);
                }
        rig_close(&rig);
}

/* Calls `check` for every model, backend and place. */
static void in_every_place(void (*check)(const struct place *place, texts_logits whole))
{
        static const char *const backends[] = { "ref", "cpu" };
        static texts_logits whole;

        for (size_t i = 0; i < 2 * sizeof(goldens) / sizeof(*goldens); i++) {
                const struct golden *golden = &goldens[i / 2];

                run_whole(golden, backends[i % 2], whole);
                for (uint32_t j = 0; j < 2 * (golden->split_max + 1); j++) {
                        const struct place place = { golden->name, backends[i % 2], j / 2,
                                                     j % 2 ? WINDOW_PAGES : 0 };

                        check(&place, whole);
                }
        }
}

static void the_first_layers_may_be_elsewhere_up_to_the_first_shared_keys(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(goldens) / sizeof(*goldens); i++) {
                const struct place place = { goldens[i].name, "ref", 0, 0 };
                struct rig rig;

                open_in(&rig, &place);
                assert_int_equal(traits_split_max(&rig.traits), goldens[i].split_max);
                rig_close(&rig);
        }
}

/*
 * The slots' pieces of each of four steps, which repeat.  The slots are at different positions of
 * their texts, and each pauses once.
 */
static const uint32_t pieces[4][RIG_SLOTS] = {
        { 1, 9, PIECE },
        { PIECE, 2, 5 },
        { 3, 0, 0 },
        { 0, PIECE, 7 },
};

static void check_mixed_steps(const struct place *place, texts_logits whole)
{
        uint32_t at[RIG_SLOTS] = { 0 }, tokens[RIG_ROWS], count;
        struct rig rig;

        open_in(&rig, place);
        for (uint32_t step = 0; at[0] < LEN || at[1] < LEN || at[2] < LEN; step++) {
                float logits[RIG_ROWS][VOCAB];
                struct rig_part parts[RIG_SLOTS];
                uint32_t row = 0;

                count = 0;
                for (uint32_t s = 0; s < RIG_SLOTS; s++) {
                        uint32_t n = pieces[step % 4][s];

                        n = LEN - at[s] < n ? LEN - at[s] : n;
                        if (n)
                                parts[count++] = (struct rig_part){ s, at[s], n, texts[s] + at[s] };
                        at[s] += n;
                }
                if (!count)
                        continue;
                assert_int_equal(rig_run(&rig, parts, count, tokens, logits[0]), 0);
                for (uint32_t p = 0; p < count; row += parts[p++].count)
                        check_rows(place, &parts[p], logits + row, whole[parts[p].slot]);
        }
        rig_close(&rig);
}

static void splits_and_window_pages_give_the_bits_of_the_whole_model(void **state)
{
        (void)state;
        in_every_place(check_mixed_steps);
}

/* ---- copies of pages ---- */

/* Positions of a text in a slot, `from` to `to`, some slots side by side. */
static void feed(struct rig *rig, const uint32_t *slots, uint32_t count, uint32_t text,
                 uint32_t from, uint32_t to, const struct place *place, texts_logits whole)
{
        float logits[RIG_ROWS][VOCAB];
        uint32_t tokens[RIG_ROWS], n;

        for (uint32_t at = from; at < to; at += n) {
                struct rig_part parts[RIG_SLOTS];

                n = to - at < PIECE ? to - at : PIECE;
                for (uint32_t i = 0; i < count; i++)
                        parts[i] = (struct rig_part){ slots[i], at, n, texts[text] + at };
                assert_int_equal(rig_run(rig, parts, count, tokens, logits[0]), 0);
                for (uint32_t i = 0; i < count; i++)
                        check_rows(place, &parts[i], logits + i * n, whole[text]);
        }
}

static void feed_one(struct rig *rig, uint32_t slot, uint32_t text, uint32_t from, uint32_t to,
                     const struct place *place, texts_logits whole)
{
        feed(rig, &slot, 1, text, from, to, place, whole);
}

static void copy(struct rig *rig, uint32_t from, uint32_t to, enum kv_group group)
{
        assert_true(rig->copy_count < RIG_ROWS);
        rig->copies[rig->copy_count++] = (struct step_copy){ from, to, group };
}

/* The page of a slot's entry in the group of windows. */
static uint32_t window_page(const struct rig *rig, uint32_t slot, uint32_t index)
{
        return index % rig->window_pages * RIG_SLOTS + slot;
}

/* The next step copies the pages that a sequence of COPIED positions uses. */
static void copy_blocks(struct rig *rig, uint32_t from, uint32_t to)
{
        for (uint32_t i = 0; i <= (COPIED - 1) / PAGE_POSITIONS; i++)
                copy(rig, rig_page(rig, from, i), rig_page(rig, to, i), GROUP_BLOCKS);
}

static void copy_windows(struct rig *rig, uint32_t from, uint32_t to)
{
        uint32_t last = (COPIED - 1) / PAGE_POSITIONS;

        for (uint32_t i = last + 1 - rig->window_pages; rig->window_pages && i <= last; i++)
                copy(rig, window_page(rig, from, i), window_page(rig, to, i), GROUP_WINDOWS);
}

/* The last slot had another text of the same length. */
static void check_copy(const struct place *place, texts_logits whole)
{
        static const uint32_t both[] = { 0, 2 };
        struct rig rig;

        open_in(&rig, place);
        feed_one(&rig, 0, 0, 0, COPIED, place, whole);
        feed_one(&rig, 2, 1, 0, COPIED, place, whole);
        copy_blocks(&rig, 0, 2);
        copy_windows(&rig, 0, 2);
        feed(&rig, both, 2, 0, COPIED, LEN, place, whole);
        rig_close(&rig);
}

static void a_sequence_whose_pages_are_copies_goes_on_with_the_same_bits(void **state)
{
        (void)state;
        in_every_place(check_copy);
}

/* Without a part of the copies, the next row has other bits: each of them is needed. */
static void check_missing_copies(const struct place *place, texts_logits whole)
{
        for (uint32_t part = 0; part < (place->window_pages ? 3 : 1); part++) {
                const struct rig_part next = { 2, COPIED, 1, texts[0] + COPIED };
                float logits[VOCAB];
                uint32_t token;
                struct rig rig;

                open_in(&rig, place);
                feed_one(&rig, 0, 0, 0, COPIED, place, whole);
                feed_one(&rig, 2, 1, 0, COPIED, place, whole);
                if (part == 1)
                        copy_blocks(&rig, 0, 2);
                if (part == 2)
                        copy_windows(&rig, 0, 2);
                assert_int_equal(rig_run(&rig, &next, 1, &token, logits), 0);
                assert_memory_not_equal(logits, whole[0][COPIED], sizeof(logits));
                rig_close(&rig);
        }
}

static void a_sequence_without_a_part_of_the_copies_has_other_bits(void **state)
{
        (void)state;
        in_every_place(check_missing_copies);
}

/* The pages of the sequence are used by another one while it is in the swap. */
static void check_swap(const struct place *place, texts_logits whole)
{
        static const uint32_t slots[] = { 0, 2 };
        uint32_t swapped = CONTEXT / PAGE_POSITIONS * RIG_SLOTS;
        struct rig rig;

        if (place->window_pages)
                return;
        open_in(&rig, place);
        feed_one(&rig, 0, 0, 0, COPIED, place, whole);
        for (uint32_t i = 0; i < RIG_SWAP; i++)
                copy(&rig, rig_page(&rig, 0, i), swapped + i, GROUP_BLOCKS);
        feed_one(&rig, 0, 1, 0, COPIED, place, whole);
        feed_one(&rig, 2, 2, 0, COPIED, place, whole);
        for (uint32_t i = 0; i < RIG_SWAP; i++)
                for (uint32_t s = 0; s < 2; s++)
                        copy(&rig, swapped + i, rig_page(&rig, slots[s], i), GROUP_BLOCKS);
        feed(&rig, slots, 2, 0, COPIED, LEN, place, whole);
        rig_close(&rig);
}

static void a_sequence_that_comes_back_from_the_swap_has_the_same_bits(void **state)
{
        _Static_assert((COPIED + PAGE_POSITIONS - 1) / PAGE_POSITIONS == RIG_SWAP,
                       "it needs all swap pages");

        (void)state;
        in_every_place(check_swap);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_layers_may_be_elsewhere_up_to_the_first_shared_keys),
                cmocka_unit_test(splits_and_window_pages_give_the_bits_of_the_whole_model),
                cmocka_unit_test(a_sequence_whose_pages_are_copies_goes_on_with_the_same_bits),
                cmocka_unit_test(a_sequence_without_a_part_of_the_copies_has_other_bits),
                cmocka_unit_test(a_sequence_that_comes_back_from_the_swap_has_the_same_bits),
        };

        if (!getenv("SOURCES")) {
                puts("skipped: SOURCES does not say where the goldens are");
                return 77;
        }
        return cmocka_run_group_tests(tests, set_up, NULL);
}
