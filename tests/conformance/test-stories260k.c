/*
 * Compares a model that others trained with numbers that others computed: stories260K, greedy, from
 * a forward pass in double without a KV cache.  The same model is there in llama2.c's format, plain
 * floats one after another; the test compares the tensors that the GGUF reader finds with it.
 *
 * SAMOVAR_DATA says where the files are; without it there is nothing to test.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define CONTEXT     128u
#define VOCAB       512u
#define NUMBERS_MAX 1024u
#define CASES       3u

struct story {
        double prompt[NUMBERS_MAX], greedy[NUMBERS_MAX], logits[NUMBERS_MAX];
        size_t prompt_count, greedy_count, logit_count;
};

static struct story stories[CASES];
static char model_path[1024];

/* Reads the list of numbers behind the next "key" after *at, and moves *at behind it.  False: there
 * are no more. */
static bool list_next(const char **at, const char *key, double *ret_numbers, size_t *ret_count)
{
        const char *p = strstr(*at, key);
        size_t count = 0;
        char *end;

        if (!p || !(p = strchr(p, '[')))
                return false;
        while (*p != ']') {
                assert_true(count < NUMBERS_MAX);
                ret_numbers[count++] = strtod(p + 1, &end);
                assert_true(end > p + 1);
                p = end + strspn(end, " \n");
                assert_true(*p == ',' || *p == ']');
        }
        *at = p;
        *ret_count = count;
        return true;
}

static int read_goldens(void **state)
{
        static char text[1 << 16];
        const char *data = getenv("SAMOVAR_DATA"), *at = text;
        char path[1024];
        FILE *in;

        (void)state;
        snprintf(model_path, sizeof(model_path), "%s/models/stories260K/stories260K.gguf", data);
        snprintf(path, sizeof(path), "%s/models/goldens-stories260K.json", data);
        in = fopen(path, "rb");
        if (!in) {
                perror(path);
                return -1;
        }
        assert_true(fread(text, 1, sizeof(text) - 1, in) > 0 && feof(in));
        fclose(in);
        for (unsigned i = 0; i < CASES; i++) {
                struct story *s = &stories[i];

                assert_true(list_next(&at, "\"prompt_tokens\"", s->prompt, &s->prompt_count));
                assert_true(list_next(&at, "\"greedy_tokens\"", s->greedy, &s->greedy_count));
                assert_true(list_next(&at, "\"first_logits\"", s->logits, &s->logit_count));
                assert_int_equal(s->logit_count, VOCAB);
                assert_true(s->greedy_count > 50 && s->prompt_count <= RIG_ROWS);
        }
        return 0;
}

/* Returns the error of the first logits, and how many tokens differ from the golden's.  The
 * golden's tokens are fed. */
static double run_story(struct rig *rig, const struct story *s, unsigned *ret_others)
{
        static float logits[RIG_ROWS][VOCAB];
        uint32_t prompt[RIG_ROWS], tokens[RIG_ROWS], token;
        struct rig_part part = { 0, 0, (uint32_t)s->prompt_count, prompt };
        double worst = 0;

        for (size_t i = 0; i < s->prompt_count; i++)
                prompt[i] = (uint32_t)s->prompt[i];
        assert_int_equal(rig_run(rig, &part, 1, tokens, logits[0]), 0);
        for (size_t i = 0; i < VOCAB; i++)
                worst = fmax(worst, fabs((double)logits[s->prompt_count - 1][i] - s->logits[i]));
        token = tokens[s->prompt_count - 1];
        *ret_others = 0;
        for (size_t i = 0; i < s->greedy_count; i++) {
                uint32_t given = (uint32_t)s->greedy[i];

                *ret_others += token != given;
                part = (struct rig_part){ 0, (uint32_t)(s->prompt_count + i), 1, &given };
                assert_int_equal(rig_run(rig, &part, 1, tokens, NULL), 0);
                token = tokens[0];
        }
        return worst;
}

static void check_backend(const char *backend, enum kv_type kv, double tolerance,
                          unsigned others_max)
{
        for (unsigned i = 0; i < CASES; i++) {
                struct rig rig;
                unsigned others;
                double worst;
                int r = rig_open_kv(&rig, model_path, backend, 2, CONTEXT, kv);

                if (r)
                        fail_msg("%s: %s", model_path, rig.why);
                worst = run_story(&rig, &stories[i], &others);
                rig_close(&rig);
                print_message("# %s: story %u: logits differ by %.2g, %u of %zu tokens do\n",
                              backend, i, worst, others, stories[i].greedy_count);
                assert_true(worst <= tolerance);
                assert_in_range(others, 0, others_max);
        }
}

static void ref_backend_generates_the_golden_stories(void **state)
{
        (void)state;
        check_backend("ref", KV_F32, 2e-5, 0);
}

static void cpu_backend_generates_the_golden_stories(void **state)
{
        (void)state;
        check_backend("cpu", KV_F32, 2e-5, 0);
}

static void an_f16_cache_gives_nearly_the_golden_stories(void **state)
{
        (void)state;
        check_backend("ref", KV_F16, 2e-2, 2);
        check_backend("cpu", KV_F16, 2e-2, 2);
}

/* llama2.c's order: a kind of tensor, then the layers. */
static const struct plain {
        const char *name; /* blk.N: a tensor of every layer */
        uint32_t rows, columns;
} plains[] = {
        { "token_embd.weight", VOCAB, 64 },   { "blk.N.attn_norm.weight", 1, 64 },
        { "blk.N.attn_q.weight", 64, 64 },    { "blk.N.attn_k.weight", 32, 64 },
        { "blk.N.attn_v.weight", 32, 64 },    { "blk.N.attn_output.weight", 64, 64 },
        { "blk.N.ffn_norm.weight", 1, 64 },   { "blk.N.ffn_gate.weight", 172, 64 },
        { "blk.N.ffn_down.weight", 64, 172 }, { "blk.N.ffn_up.weight", 172, 64 },
        { "output_norm.weight", 1, 64 },
};

static void check_tensor(const struct checkpoint *checkpoint, const char *name,
                         const struct plain *plain, const float *numbers)
{
        static float found[VOCAB * 64];
        const struct tensor *tensor = checkpoint_tensor(checkpoint, name);
        size_t bytes = (size_t)plain->rows * plain->columns * sizeof(float);
        char why[256];

        if (!tensor || tensor->type != ROW_F32 || tensor->rows != plain->rows ||
            tensor->columns != plain->columns || tensor->bytes != bytes)
                fail_msg("%s is another one", name);
        assert_int_equal(checkpoint_read(checkpoint, tensor, 0, found, bytes, why, sizeof(why)), 0);
        if (memcmp(found, numbers, bytes))
                fail_msg("%s has other numbers", name);
}

static void the_gguf_tensors_equal_those_of_llama2_c(void **state)
{
        static float numbers[VOCAB * 64];
        struct checkpoint *checkpoint;
        char path[1024], why[256];
        int32_t header[7]; /* width, ffn, layers, heads, kv heads, vocabulary, context */
        unsigned tensors = 0;
        FILE *in;

        (void)state;
        snprintf(path, sizeof(path), "%.*sbin", (int)strlen(model_path) - 4, model_path);
        in = fopen(path, "rb");
        assert_non_null(in);
        assert_int_equal(fread(header, sizeof(header), 1, in), 1);
        assert_memory_equal(header, ((int32_t[]){ 64, 172, 5, 8, 4, VOCAB, 512 }), sizeof(header));
        assert_int_equal(checkpoint_open(model_path, &checkpoint, why, sizeof(why)), 0);
        for (size_t p = 0; p < sizeof(plains) / sizeof(*plains); p++) {
                size_t count = (size_t)plains[p].rows * plains[p].columns;
                unsigned layers = strncmp(plains[p].name, "blk", 3) ? 1 : 5;

                for (unsigned layer = 0; layer < layers; layer++, tensors++) {
                        char name[64];

                        if (layers > 1)
                                snprintf(name, sizeof(name), "blk.%u%s", layer, plains[p].name + 5);
                        else
                                snprintf(name, sizeof(name), "%s", plains[p].name);
                        assert_int_equal(fread(numbers, sizeof(float), count, in), count);
                        check_tensor(checkpoint, name, &plains[p], numbers);
                        if (!p) /* there the head is the embedding */
                                check_tensor(checkpoint, "output.weight", &plains[p], numbers);
                }
        }
        assert_int_equal(tensors + 1, checkpoint_tensors(checkpoint)->count);
        checkpoint_close(checkpoint);
        fclose(in);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ref_backend_generates_the_golden_stories),
                cmocka_unit_test(cpu_backend_generates_the_golden_stories),
                cmocka_unit_test(an_f16_cache_gives_nearly_the_golden_stories),
                cmocka_unit_test(the_gguf_tensors_equal_those_of_llama2_c),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("skipped: SAMOVAR_DATA does not say where the models are");
                return 77;
        }
        return cmocka_run_group_tests(tests, read_goldens, NULL);
}
