/*
 * A good model, cut short at many places and with many single bits flipped.  Every reader of
 * its files either refuses it with a printable sentence or finds nothing wrong, and keeps
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/engine/tensors.h"
#include "daemon/files/checkpoint.h"
#include "daemon/files/vocabulary.h"
#include "base/sys.h"
#include "tests/unit/good-folder.h"

/* All that is looked at before the weights are; 0 or a negative errno. */
static int look(const char *model)
{
        struct checkpoint *checkpoint = NULL;
        struct vocabulary *vocabulary = NULL;
        struct tensors found = { 0 };
        char why[256] = "";
        struct traits traits;
        int r;

        if (!(r = checkpoint_open(model, &checkpoint, why, sizeof(why))) &&
            !(r = checkpoint_traits(checkpoint, &traits, why, sizeof(why))) &&
            !(r = tensors_find(checkpoint, &traits, &found, why, sizeof(why)))) {
                tensors_deinit(&found);
                if (checkpoint_gguf(checkpoint))
                        r = vocabulary_from_gguf(checkpoint_gguf(checkpoint), NULL, &vocabulary,
                                                 why, sizeof(why));
                else
                        r = vocabulary_open(model, NULL, &vocabulary, why, sizeof(why));
        }
        vocabulary_close(vocabulary);
        checkpoint_close(checkpoint);
        if (r > 0 || (r && !why[0]))
                fail_msg("%s: %d, and nothing said", model, r);
        for (const char *c = why; *c; c++)
                if (*c < ' ' || *c > '~')
                        fail_msg("%s: said \"%s\"", model, why);
        return r;
}

static uint32_t next_random(void)
{
        static uint64_t x = 20260107;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        return (uint32_t)(x >> 16);
}

static void cut(const char *name, const char *model, const char *bytes, size_t count)
{
        for (size_t i = 0; i < count / 1024 + 200; i++) {
                size_t at = i <= (count - 1) / 1024 ? i * 1024 : next_random() % count;

                write_file(name, bytes, at);
                if (!look(model))
                        fail_msg("%s, cut at %zu, was taken", name, at);
        }
        write_file(name, bytes, count);
        assert_int_equal(look(model), 0);
}

/* A bit each time.  Some change nothing that matters; none may do harm. */
static void flip(const char *name, const char *model, const char *bytes, size_t count, size_t among)
{
        static char damaged[4u << 20];

        assert_true(count <= sizeof(damaged));
        memcpy(damaged, bytes, count);
        for (unsigned i = 0; i < 500; i++) {
                size_t at = next_random() % among;
                char bit = (char)(1 << next_random() % 8);

                damaged[at] ^= bit;
                write_file(name, damaged, count);
                (void)look(model);
                damaged[at] ^= bit;
        }
        write_file(name, bytes, count);
        assert_int_equal(look(model), 0);
}

static uint32_t descriptors(void)
{
        struct sys_resources holds;

        assert_int_equal(sys_resources(&holds), 0);
        return holds.descriptors;
}

static void survives_a_folder_with_truncated_files_or_flipped_bits(void **state)
{
        uint32_t before = descriptors();

        (void)state;
        mend();
        cut(WEIGHTS, folder, weights, weights_bytes);
        cut(TOKENS, folder, tokens, tokens_bytes);
        cut(CONFIG, folder, good_config, strlen(good_config));
        flip(WEIGHTS, folder, weights, weights_bytes, weights_header);
        flip(TOKENS, folder, tokens, tokens_bytes, tokens_bytes);
        flip(CONFIG, folder, good_config, strlen(good_config), strlen(good_config));
        assert_int_equal(descriptors(), before);
}

static size_t read_golden(const char *name, char *ret_bytes)
{
        char at[1024];
        size_t count;
        FILE *in;

        snprintf(at, sizeof(at), "%s/tests/golden/fp8/tensors/%s", getenv("SOURCES"), name);
        in = fopen(at, "rb");
        assert_non_null(in);
        count = fread(ret_bytes, 1, FILE_BYTES, in);
        fclose(in);
        assert_true(count && count < FILE_BYTES);
        if (ret_bytes[count - 1] == '\n') /* nothing is missing without it */
                count--;
        write_file(name, ret_bytes, count);
        return count;
}

/*
 * Codes, their scales and the file that describes them are three files, and a fourth says where
 * they are.
 */
static void survives_fp8_weights_with_truncated_files_or_flipped_bits(void **state)
{
        static const char *const names[] = { "model-00001-of-00002.safetensors",
                                             "model-00002-of-00002.safetensors", CONFIG, INDEX };
        static char bytes[4][FILE_BYTES];
        size_t counts[4], headers[4];

        (void)state;
        mend();
        unlink(in_folder(WEIGHTS));
        for (size_t i = 0; i < 4; i++) {
                counts[i] = headers[i] = read_golden(names[i], bytes[i]);
                if (i < 2)
                        headers[i] = 8 + (uint8_t)bytes[i][0] + ((size_t)(uint8_t)bytes[i][1] << 8);
        }
        for (size_t i = 0; i < 4; i++) {
                cut(names[i], folder, bytes[i], counts[i]);
                flip(names[i], folder, bytes[i], counts[i], headers[i]);
        }
        unlink(in_folder(names[0]));
        unlink(in_folder(names[1]));
}

static void survives_a_gguf_file_that_is_truncated_or_has_flipped_bits(void **state)
{
        static char bytes[FILE_BYTES], model[256];
        char command[1024];
        size_t count;
        FILE *in;

        (void)state;
        snprintf(model, sizeof(model), "%s", in_folder(GGUF));
        snprintf(command, sizeof(command),
                 "'%s' '%s' --layers 1 --width 32 --heads 2 --kv-heads 2 --head-dim 16 --ffn 32",
                 getenv("TOY_MODEL_MAKER"), model);
        assert_int_equal(system(command), 0);
        in = fopen(model, "rb");
        assert_non_null(in);
        count = fread(bytes, 1, sizeof(bytes), in);
        fclose(in);
        assert_true(count < sizeof(bytes));
        cut(GGUF, model, bytes, count);
        flip(GGUF, model, bytes, count, 4096);
        unlink(model);
}

static int set_up(void **state)
{
        (void)state;
        return getenv("TOY_MODEL_MAKER") && getenv("SOURCES") && good_folder() ? 0 : -1;
}

static int tear_down(void **state)
{
        (void)state;
        return remove_folder();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(survives_a_folder_with_truncated_files_or_flipped_bits),
                cmocka_unit_test(survives_fp8_weights_with_truncated_files_or_flipped_bits),
                cmocka_unit_test(survives_a_gguf_file_that_is_truncated_or_has_flipped_bits),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
