#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sys.h"
#include "tests/unit/model-rig.h"

#define LEN     40u
#define CONTEXT 64u
#define VOCAB   258u
#define SMALL   "--layers 2 --width 48 --heads 6 --kv-heads 2 --head-dim 10 --ffn 80 "

static const char *const backends[] = { "ref", "cpu" };

static char folder[] = "/tmp/test-model-XXXXXX";
static char path[128], other[128];
static uint32_t texts[RIG_SLOTS][LEN];

/* A model file at `to`, made by the generator with these arguments. */
static void make(const char *to, const char *arguments)
{
        const char *maker = getenv("TOY_MODEL_MAKER");
        char command[1024];

        snprintf(command, sizeof(command), "'%s' '%s' %s", maker, to, arguments);
        assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
        (void)state;
        if (!getenv("TOY_MODEL_MAKER")) {
                print_error("TOY_MODEL_MAKER does not say where the generator is\n");
                return -1;
        }
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/model.gguf", folder);
        snprintf(other, sizeof(other), "%s/other.gguf", folder);
        for (uint32_t s = 0; s < RIG_SLOTS; s++)
                for (uint32_t i = 0; i < LEN; i++)
                        texts[s][i] = (i * 31 + s * 97 + i * i * 7) % VOCAB;
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        unlink(path);
        unlink(other);
        return rmdir(folder);
}

static void open_rig(struct rig *rig, const char *backend, uint32_t threads)
{
        int r = rig_open(rig, path, backend, threads, CONTEXT);

        if (r)
                fail_msg("%s: %d: %s", backend, r, rig->why);
}

/* The logits of all rows of one text, `chunk` rows a step, alone on a fresh backend. */
static float *run_alone(const char *backend, uint32_t threads, uint32_t text, uint32_t count,
                        uint32_t chunk)
{
        float *logits = calloc((size_t)count * VOCAB, sizeof(*logits));
        uint32_t tokens[RIG_ROWS], n;
        struct rig rig;

        open_rig(&rig, backend, threads);
        for (uint32_t at = 0; at < count; at += n) {
                struct rig_part part = { text, at, n = count - at < chunk ? count - at : chunk,
                                         texts[text] + at };

                assert_int_equal(rig_run(&rig, &part, 1, tokens, logits + (size_t)at * VOCAB), 0);
        }
        rig_close(&rig);
        return logits;
}

static void a_batched_row_equals_the_row_alone_bit_for_bit(void **state)
{
        static const uint32_t counts[RIG_SLOTS] = { 21, 33, 7 };
        static float batched[RIG_ROWS][VOCAB];
        uint32_t tokens[RIG_ROWS];

        (void)state;
        make(path, SMALL);
        for (size_t b = 0; b < sizeof(backends) / sizeof(*backends); b++) {
                struct rig_part parts[RIG_SLOTS];
                uint32_t row = 0;
                struct rig rig;

                for (uint32_t s = 0; s < RIG_SLOTS; s++)
                        parts[s] = (struct rig_part){ s, 0, counts[s], texts[s] };
                open_rig(&rig, backends[b], 1);
                assert_int_equal(rig_run(&rig, parts, RIG_SLOTS, tokens, batched[0]), 0);
                rig_close(&rig);
                for (uint32_t s = 0; s < RIG_SLOTS; row += counts[s++]) {
                        float *alone = run_alone(backends[b], 1, s, counts[s], RIG_ROWS);

                        assert_memory_equal(alone, batched[row], counts[s] * sizeof(*batched));
                        free(alone);
                }
        }
}

static void a_chunked_prefill_equals_a_whole_one_bit_for_bit(void **state)
{
        static const uint32_t chunks[] = { 1, 3, 16, 17 };

        (void)state;
        make(path, SMALL);
        for (size_t b = 0; b < sizeof(backends) / sizeof(*backends); b++) {
                float *whole = run_alone(backends[b], 1, 0, LEN, LEN);

                for (size_t c = 0; c < sizeof(chunks) / sizeof(*chunks); c++) {
                        float *chunked = run_alone(backends[b], 1, 0, LEN, chunks[c]);

                        assert_memory_equal(whole, chunked, LEN * VOCAB * sizeof(*whole));
                        free(chunked);
                }
                free(whole);
        }
}

static void the_number_of_threads_changes_no_bit(void **state)
{
        float *one, *three;

        (void)state;
        make(path, SMALL);
        one = run_alone("cpu", 1, 0, LEN, 13);
        three = run_alone("cpu", 3, 0, LEN, 13);
        assert_memory_equal(one, three, LEN * VOCAB * sizeof(*one));
        free(one);
        free(three);
}

/* How far the cpu backend is from ref on a model of these arguments, of the largest logit. */
static double apart(const char *arguments)
{
        double worst = 0, largest = 0;
        float *ref, *cpu;

        make(path, arguments);
        ref = run_alone("ref", 1, 1, LEN, LEN);
        cpu = run_alone("cpu", 2, 1, LEN, LEN);
        for (uint32_t n = 0; n < LEN * VOCAB; n++) {
                assert_true(isfinite(ref[n]) && isfinite(cpu[n]));
                worst = fmax(worst, fabs((double)ref[n] - (double)cpu[n]));
                largest = fmax(largest, fabs((double)ref[n]));
        }
        free(ref);
        free(cpu);
        return worst / largest;
}

static void ref_and_cpu_agree(void **state)
{
        static const char *const kinds[] = {
                SMALL,
                SMALL "--type f16",
                SMALL "--tied",
                "--seed 9",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                double is = apart(kinds[i]);

                if (!(is <= 3e-6))
                        fail_msg("'%s': logits differ by %g of the largest", kinds[i], is);
        }
}

/*
 * From the file to the logits; the cpu backend rounds the numbers that it multiplies with such
 * weights.
 */
static void ref_and_cpu_are_close_for_types_with_quantised_activations(void **state)
{
        static const char *const types[] = { "bf16", "q4_0",  "q4_1",   "q5_0",  "q5_1",
                                             "q8_0", "q2_k",  "q3_k",   "q4_k",  "q5_k",
                                             "q6_k", "mxfp4", "iq4_nl", "iq4_xs" };

        (void)state;
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
                char arguments[128];
                double is;

                snprintf(arguments, sizeof(arguments),
                         "--layers 2 --width 256 --heads 4 --kv-heads 2 --head-dim 64 --ffn 256 "
                         "--type %s",
                         types[i]);
                is = apart(arguments);
                print_message("# %s: logits differ by %.2g of the largest\n", types[i], is);
                if (!(is > 0 && is <= 6e-2))
                        fail_msg("%s: logits differ by %g of the largest", types[i], is);
        }
}

static void logits_depend_on_earlier_tokens(void **state)
{
        uint32_t last = texts[0][LEN - 1], tokens[RIG_ROWS];
        float *whole, alone[VOCAB];
        struct rig_part part = { 0, 0, 1, &last };
        struct rig rig;
        double differ = 0;

        (void)state;
        make(path, "");
        whole = run_alone("ref", 1, 0, LEN, LEN);
        open_rig(&rig, "ref", 1);
        assert_int_equal(rig_run(&rig, &part, 1, tokens, alone), 0);
        rig_close(&rig);
        for (uint32_t i = 'a'; i <= 'z'; i++)
                differ =
                        fmax(differ, fabs((double)whole[(LEN - 1) * VOCAB + i] - (double)alone[i]));
        assert_true(differ > 0.01);
        free(whole);
}

/* Each is read, and used: other numbers in it are other logits. */
static void changing_any_tensor_changes_the_logits(void **state)
{
        const struct tensor *tensor;
        float *before, *after, number;
        struct checkpoint *checkpoint;
        char why[256];
        FILE *file;

        (void)state;
        make(path, SMALL "--extras");
        before = run_alone("ref", 1, 0, 6, 6);
        assert_int_equal(checkpoint_open(path, &checkpoint, why, sizeof(why)), 0);
        assert_int_equal(checkpoint_tensors(checkpoint)->count, 4 + 2 * 15);
        for (uint32_t i = 0; i < checkpoint_tensors(checkpoint)->count; i++) {
                tensor = &checkpoint_tensors(checkpoint)->tensors[i];
                make(path, SMALL "--extras");
                file = fopen(path, "r+b");
                for (uint64_t at = 0; at < tensor->bytes; at += 4) {
                        fseek(file, (long)(tensor->offset + at), SEEK_SET);
                        assert_int_equal(fread(&number, 4, 1, file), 1);
                        number = number * 2 + 0.5f;
                        fseek(file, (long)(tensor->offset + at), SEEK_SET);
                        assert_int_equal(fwrite(&number, 4, 1, file), 1);
                }
                fclose(file);
                after = run_alone("ref", 1, 0, 6, 6);
                if (!memcmp(before, after, 6 * VOCAB * sizeof(*before)))
                        fail_msg("%s does not matter", tensor->name);
                free(after);
        }
        checkpoint_close(checkpoint);
        free(before);
}

static void model_measure_counts_kv_weights_and_activations(void **state)
{
        struct model_conf conf = {
                .rows_max = 8, .wants_max = 4, .blocks = 10, .swap_blocks = 7, .kv = KV_F16
        };
        struct model_bytes bytes;
        struct rig rig;

        (void)state;
        make(path, "");
        open_rig(&rig, "ref", 1);
        model_measure(rig.checkpoint, &rig.traits, &conf, &bytes);
        assert_int_equal(bytes.block, 4 * 2 * 2 * 16 * 32 * 2);
        assert_int_equal(bytes.kv, 10 * bytes.block);
        assert_int_equal(bytes.swap, 7 * bytes.block);
        assert_int_equal(bytes.activations, 4 * (8 * (128 + 2 * 128 + 256) + 4 * VOCAB));
        assert_true(bytes.weights > 2500000 && bytes.weights < 2700000);
        rig.traits.layers = TRAITS_LAYERS_MAX;
        for (uint32_t i = 0; i < TRAITS_LAYERS_MAX; i++)
                rig.traits.layer[i] =
                        (struct layer_traits){ .kv_heads = 1024, .head_dim = 512, .ffn = 1 };
        conf.blocks = UINT32_MAX;
        model_measure(rig.checkpoint, &rig.traits, &conf, &bytes);
        assert_true(bytes.kv == UINT64_MAX);
        rig_close(&rig);
}

static uint8_t *slurp(size_t *ret_count)
{
        FILE *in = fopen(path, "rb");
        uint8_t *bytes = malloc(4 << 20);

        assert_true(in && bytes);
        *ret_count = fread(bytes, 1, 4 << 20, in);
        fclose(in);
        return bytes;
}

/* A good file with one place changed: `skip` bytes behind the end of its string `name`. */
struct damage {
        const char *name;
        int skip;
        const char *bytes;
        size_t count;
        const char *message;
};
#define AT(name, skip, literal, message)                                                           \
        {                                                                                          \
                name, skip, literal, sizeof(literal) - 1, message                                  \
        }
/* A value lies behind its key and its type. */
#define U32(name, literal, message) AT(name, 4, literal "\0\0\0", message)

static const struct damage damages[] = {
        AT("general.architecture", 12, "lemma", "architecture 'lemma' is not supported yet"),
        AT("general.architecture", -1, "x", "'general.architecture' is missing"),
        AT("llama.block_count", -1, "x", "'llama.block_count' is missing"),
        AT("llama.block_count", 0, "\6", "'llama.block_count' is not a whole number"),
        U32("llama.block_count", "\0", "'llama.block_count' is 0, not 1 to 1024"),
        AT("llama.block_count", 4, "\1\4\0\0", "'llama.block_count' is 1025, not"),
        AT("llama.block_count", 4, "\xff\xff\xff\xff", "'llama.block_count' is 4294967295, not"),
        U32("llama.block_count", "\3", "tensor 'blk.2.attn_norm.weight' is missing"),
        U32("llama.block_count", "\1", "tensor 'blk.1.attn_norm.weight' is unexpected"),
        U32("llama.embedding_length", "\0", "embedding_length' is 0"),
        AT("llama.embedding_length", 4, "\1\0\x10\0", "embedding_length' is 1048577"),
        U32("llama.embedding_length", "\x40", "is 258 x 48, not 258 x 64"),
        U32("llama.feed_forward_length", "\0", "feed_forward_length' is 0"),
        U32("llama.attention.head_count", "\0", "head_count' is 0"),
        U32("llama.attention.head_count_kv", "\4", "6 heads are not a multiple of 4"),
        U32("llama.attention.key_length", "\1", "key_length' is 1, not 2 to 512"),
        AT("llama.attention.key_length", 4, "\1\2\0\0", "key_length' is 513, not 2 to 512"),
        U32("llama.rope.dimension_count", "\7", "rope rotates 7"),
        U32("llama.rope.dimension_count", "\x0c", "dimension_count' is 12, not 0 to 10"),
        AT("llama.attention.layer_norm_rms_epsilon", 4, "\0\0\xc0\x7f", "rms_epsilon' is "),
        AT("llama.attention.layer_norm_rms_epsilon", 4, "\0\0\0\0", "rms_epsilon' is 0"),
        AT("llama.attention.layer_norm_rms_epsilon", 0, "\4", "rms_epsilon' is not a real"),
        U32("llama.context_length", "\0", "context_length' is 0"),
        U32("llama.vocab_size", "\1", "vocab_size' is 1, not"),
        U32("llama.vocab_size", "\7", "bos_token_id' is 256, not 0 to 6"),
        AT("llama.vocab_size", 4, "\3\1\0\0", "'token_embd.weight' is 258 x 48, not 259 x 48"),
        AT("tokenizer.ggml.eos_token_id", 4, "\2\1\0\0", "eos_token_id' is 258, not 0 to 257"),
        AT("token_embd.weight", -1, "x", "tensor 'token_embd.weight' is missing"),
        AT("blk.1.attn_q.weight", -1, "x", "tensor 'blk.1.attn_q.weight' is missing"),
        AT("output.weight", -1, "x", "tensor 'output.weighx' is unexpected"),
        AT("blk.0.ffn_up.weight", 4, "\x50\0\0\0\0\0\0\0\x30", "'blk.0.ffn_up.weight' is 48 x 80"),
        AT("blk.0.ffn_up.weight", 20, "\x1c", "overlaps"),
        AT("blk.0.ffn_up.weight", 20, "\x1a", "type I32 is not supported"),
        AT("blk.0.ffn_up.weight", 20, "\x63", "type is unknown"),
};

static void refuses_each_malformed_model_with_its_message(void **state)
{
        uint8_t *bytes;
        unsigned bad = 0;
        size_t count;

        (void)state;
        make(path, SMALL);
        bytes = slurp(&count);
        for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
                const struct damage *d = &damages[i];
                FILE *out = fopen(other, "wb");
                uint8_t *at = NULL, saved[16];
                struct rig rig;
                int r;

                /* Of names that begin alike, the one with the right length in front. */
                for (size_t from = 8; !at && from < count; from++)
                        if (!memcmp(bytes + from, d->name, strlen(d->name)) &&
                            bytes[from - 8] == strlen(d->name))
                                at = bytes + from + strlen(d->name) + d->skip;
                assert_non_null(at);
                memcpy(saved, at, d->count);
                memcpy(at, d->bytes, d->count);
                assert_int_equal(fwrite(bytes, 1, count, out), count);
                fclose(out);
                memcpy(at, saved, d->count);

                r = rig_open(&rig, other, "ref", 1, CONTEXT);
                if (r != -EINVAL || !strstr(rig.why, d->message)) {
                        bad++;
                        print_error("%s %d: %d, \"%s\" does not say \"%s\"\n", d->name, d->skip, r,
                                    rig.why, d->message);
                }
                rig_close(&rig);
        }
        assert_int_equal(bad, 0);
        free(bytes);
}

static void reports_a_file_that_shrinks_while_it_is_read(void **state)
{
        struct kernels_conf conf = { .threads = 1,
                                     .isa = "auto",
                                     .rows_max = 4,
                                     .slots_max = 1,
                                     .pages_max = 1,
                                     .vocab_max = VOCAB,
                                     .wants_max = 4 };
        struct model_conf model_conf = { .rows_max = 4, .wants_max = 4, .blocks = 1 };
        struct model *model = NULL;
        struct kernels *kernels;
        struct traits traits;
        struct checkpoint *checkpoint;
        char why[256];

        (void)state;
        make(path, SMALL);
        assert_int_equal(checkpoint_open(path, &checkpoint, why, sizeof(why)), 0);
        assert_int_equal(checkpoint_traits(checkpoint, &traits, why, sizeof(why)), 0);
        assert_int_equal(kernels_open("ref", &conf, &kernels), 0);
        assert_int_equal(truncate(path, 90000), 0);
        assert_int_equal(
                model_open(checkpoint, &traits, kernels, &model_conf, &model, why, sizeof(why)),
                -EIO);
        assert_non_null(strstr(why, "became shorter"));
        assert_null(model);
        kernels->close(kernels);
        checkpoint_close(checkpoint);
}

/* The call that is to fail, counted down. */
static int fail_at(const char *call, void *arg)
{
        (void)call;
        return (*(int *)arg)-- == 0 ? -EIO : 0;
}

static void returns_the_error_of_each_failing_system_call(void **state)
{
        struct rig rig;
        int left, n = 0, r;

        (void)state;
        make(path, SMALL);
        do {
                left = n++;
                sys_set_fault(fail_at, &left);
                r = rig_open(&rig, path, "ref", 1, CONTEXT);
                sys_set_fault(NULL, NULL);
                if (r) {
                        assert_true(r == -EIO || r == -ENOMEM); /* ENOMEM: a mapping */
                        assert_true(rig.why[0]);
                }
                rig_close(&rig);
        } while (left < 0);
        assert_int_equal(r, 0);
        assert_true(n > 20);
}

static void the_toy_model_is_reproducible_and_writes_words(void **state)
{
        uint8_t *once, *again;
        size_t count, count_again;
        uint32_t token, tokens[RIG_ROWS], words = 0;
        struct rig rig;

        (void)state;
        make(path, "--seed 5");
        once = slurp(&count);
        make(path, "--seed 5");
        again = slurp(&count_again);
        assert_int_equal(count, count_again);
        assert_memory_equal(once, again, count);
        free(again);
        make(path, "--seed 6");
        again = slurp(&count_again);
        assert_int_equal(count, count_again);
        assert_memory_not_equal(once, again, count);
        free(again);
        free(once);

        open_rig(&rig, "ref", 1);
        token = rig.traits.bos;
        for (uint32_t i = 0; i < CONTEXT; i++) {
                struct rig_part part = { 0, i, 1, &token };

                assert_int_equal(rig_run(&rig, &part, 1, tokens, NULL), 0);
                token = tokens[0];
                assert_true(token == ' ' || token == '.' || (token >= 'a' && token <= 'z') ||
                            token == 257);
                words += token == ' ';
        }
        assert_true(words > 3);
        rig_close(&rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_batched_row_equals_the_row_alone_bit_for_bit),
                cmocka_unit_test(a_chunked_prefill_equals_a_whole_one_bit_for_bit),
                cmocka_unit_test(the_number_of_threads_changes_no_bit),
                cmocka_unit_test(ref_and_cpu_agree),
                cmocka_unit_test(ref_and_cpu_are_close_for_types_with_quantised_activations),
                cmocka_unit_test(logits_depend_on_earlier_tokens),
                cmocka_unit_test(changing_any_tensor_changes_the_logits),
                cmocka_unit_test(model_measure_counts_kv_weights_and_activations),
                cmocka_unit_test(refuses_each_malformed_model_with_its_message),
                cmocka_unit_test(reports_a_file_that_shrinks_while_it_is_read),
                cmocka_unit_test(returns_the_error_of_each_failing_system_call),
                cmocka_unit_test(the_toy_model_is_reproducible_and_writes_words),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
