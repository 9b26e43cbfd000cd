/*
 * contrib/dev/random-weights writes models of every type, which can be served and do not repeat one
 * token forever.
 *
 * RANDOM_WEIGHTS_MAKER is the generator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/files/vocabulary.h"
#include "daemon/text/tokenizer.h"
#include "tests/unit/model-rig.h"

#define TOKENS    40u
#define CONTEXT   48u
#define DIFFERENT 20u

static char folder[] = "/tmp/samovar-random-weights-XXXXXX";

/* A tiny one; the path is valid until the next of this name. */
static const char *random_weights(const char *name, const char *type, unsigned seed)
{
        static char path[128];
        char command[512];

        snprintf(path, sizeof(path), "%s/%s.gguf", folder, name);
        snprintf(command, sizeof(command), "'%s' '%s' tiny --type %s --seed %u",
                 getenv("RANDOM_WEIGHTS_MAKER"), path, type, seed);
        if (system(command))
                fail_msg("%s failed", command);
        return path;
}

/* Greedily, after one token in each slot; how many different ones there were. */
static uint32_t talk(struct rig *rig)
{
        bool seen[4096] = { false };
        uint32_t different = 0;

        for (uint32_t slot = 0; slot < RIG_SLOTS; slot++)
                for (uint32_t at = 0, token = 300 + slot; at < TOKENS; at++) {
                        const struct rig_part part = { slot, at, 1, &token };
                        uint32_t next;

                        assert_int_equal(rig_run(rig, &part, 1, &next, NULL), 0);
                        assert_in_range(next, 0, rig->traits.vocab - 1);
                        different += !seen[next];
                        seen[next] = true;
                        token = next;
                }
        return different;
}

static void serves_random_weights_of_every_type_with_varied_tokens(void **state)
{
        static const char *const mixtures[] = { "q4_0", "q8_0", "q4_k_m" };

        (void)state;
        for (unsigned i = 0; i < ROW_TYPE_N + sizeof(mixtures) / sizeof(*mixtures); i++) {
                const char *type =
                        i < ROW_TYPE_N ? row_type_name((enum row_type)i) : mixtures[i - ROW_TYPE_N];
                uint32_t different;
                struct rig rig;

                if (i == ROW_F8_E4M3 || i == ROW_NVFP4) /* they have scales in other tensors */
                        continue;
                if (rig_open(&rig, random_weights("one", type, 1), "cpu", 1, CONTEXT))
                        fail_msg("%s: %s", type, rig.why);
                different = talk(&rig);
                if (different < DIFFERENT)
                        fail_msg("%s: only %u tokens", type, different);
                rig_close(&rig);
        }
}

static bool same(const char *one, const char *other)
{
        char command[300];

        snprintf(command, sizeof(command), "cmp -s '%s/%s.gguf' '%s/%s.gguf'", folder, one, folder,
                 other);
        return !system(command);
}

static void the_seed_determines_the_bytes(void **state)
{
        (void)state;
        random_weights("one", "Q5_1", 1);
        random_weights("again", "Q5_1", 1);
        random_weights("other", "Q5_1", 2);
        assert_true(same("one", "again"));
        assert_false(same("one", "other"));
}

static enum row_type type_of(const struct checkpoint *checkpoint, const char *name)
{
        const struct tensor *tensor = checkpoint_tensor(checkpoint, name);

        assert_non_null(tensor);
        return tensor->type;
}

static void a_mixture_gives_the_head_and_some_layers_more_bits(void **state)
{
        struct checkpoint *c;
        char why[256];

        (void)state;
        assert_int_equal(checkpoint_open(random_weights("one", "q4_k_m", 1), &c, why, sizeof(why)),
                         0);
        assert_int_equal(type_of(c, "token_embd.weight"), ROW_Q6_K);
        assert_int_equal(type_of(c, "blk.0.ffn_down.weight"), ROW_Q4_K);
        assert_int_equal(type_of(c, "blk.1.ffn_down.weight"), ROW_Q6_K);
        assert_int_equal(type_of(c, "blk.1.attn_v.weight"), ROW_Q6_K);
        assert_int_equal(type_of(c, "blk.1.attn_q.weight"), ROW_Q4_K);
        checkpoint_close(c);
}

static void the_vocabulary_merges_letters_into_words(void **state)
{
        static const char text[] = "no one";
        struct vocabulary *vocabulary;
        struct tokenizer *tokenizer;
        uint32_t ids[64];
        struct checkpoint *c;
        size_t count, bytes;
        char why[256];

        (void)state;
        assert_int_equal(checkpoint_open(random_weights("one", "Q8_0", 1), &c, why, sizeof(why)),
                         0);
        assert_int_equal(
                vocabulary_from_gguf(checkpoint_gguf(c), NULL, &vocabulary, why, sizeof(why)), 0);
        assert_int_equal(tokenizer_open(vocabulary, 1024, &tokenizer, why, sizeof(why)), 0);
        assert_int_equal(tokenizer_encode(tokenizer, text, strlen(text), NULL, ids, &count), 0);
        assert_int_equal(count, 3);
        assert_memory_equal(tokenizer_piece(tokenizer, ids[0], &bytes), "no", 2);
        assert_memory_equal(tokenizer_piece(tokenizer, ids[1], &bytes), " o", 2);
        assert_memory_equal(tokenizer_piece(tokenizer, ids[2], &bytes), "ne", 2);
        tokenizer_close(tokenizer);
        vocabulary_close(vocabulary);
        checkpoint_close(c);
}

static int set_up(void **state)
{
        (void)state;
        return getenv("RANDOM_WEIGHTS_MAKER") && mkdtemp(folder) ? 0 : -1;
}

static int take_down(void **state)
{
        char command[64];

        (void)state;
        snprintf(command, sizeof(command), "rm -r '%s'", folder);
        return system(command);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(serves_random_weights_of_every_type_with_varied_tokens),
                cmocka_unit_test(the_seed_determines_the_bytes),
                cmocka_unit_test(a_mixture_gives_the_head_and_some_layers_more_bits),
                cmocka_unit_test(the_vocabulary_merges_letters_into_words),
        };

        return cmocka_run_group_tests(stories, set_up, take_down);
}
