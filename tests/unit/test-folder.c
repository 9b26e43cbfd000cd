/*
 * A model in a folder gives the same results as in one file: the same tensors, copied byte for
 * byte into shards, give the same logits to the last bit.  The embedding and the head may be
 * stored in every way that files use.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define CONTEXT 64u
#define VOCAB   258u
#define ROWS    12u
#define SMALL   "--layers 2 --width 48 --heads 6 --kv-heads 2 --head-dim 10 --ffn 80 "
#define ENDS    2u

static char folder[] = "/tmp/test-folder-XXXXXX";
static char path[256];

static const char *in_folder(const char *name)
{
        static char at[256];

        snprintf(at, sizeof(at), "%s/%s", folder, name);
        return at;
}

static void write_file(const char *name, const void *head, size_t head_bytes, const void *rest,
                       size_t rest_bytes)
{
        FILE *out = fopen(in_folder(name), "wb");

        assert_non_null(out);
        assert_int_equal(fwrite(head, 1, head_bytes, out), head_bytes);
        assert_int_equal(fwrite(rest, 1, rest_bytes, out), rest_bytes);
        assert_int_equal(fclose(out), 0);
}

/* A shard under way: its header, its data, and its lines of the index. */
struct shard {
        char text[16384], index[16384];
        size_t text_bytes, index_bytes, data_bytes;
        uint8_t *data;
};

static void shard_add(struct shard *s, const char *file, const char *name, const struct tensor *t,
                      const uint8_t *bytes, uint8_t change)
{
        static const char *const types[] = { "F32", "F16", "BF16" };
        char shape[32];

        snprintf(shape, sizeof(shape), t->rows == 1 ? "[%u]" : "[%u,%u]",
                 t->rows == 1 ? t->columns : t->rows, t->columns);
        s->text_bytes += (size_t)sprintf(
                s->text + s->text_bytes,
                "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                s->text_bytes ? "," : "{", name, types[t->type], shape, s->data_bytes,
                s->data_bytes + (size_t)t->bytes);
        s->index_bytes += (size_t)sprintf(s->index + s->index_bytes, "%s\"%s\":\"%s\"",
                                          s->index_bytes ? "," : "", name, file);
        s->data = realloc(s->data, s->data_bytes + t->bytes);
        assert_non_null(s->data);
        memcpy(s->data + s->data_bytes, bytes, t->bytes);
        s->data[s->data_bytes] ^= change;
        s->data_bytes += t->bytes;
}

static void shard_write(struct shard *s, const char *file)
{
        uint8_t head[sizeof(s->text) + 16] = { 0 };

        s->text[s->text_bytes++] = '}';
        for (unsigned i = 0; i < 8; i++)
                head[i] = (uint8_t)(s->text_bytes >> (8 * i));
        memcpy(head + 8, s->text, s->text_bytes);
        write_file(file, head, 8 + s->text_bytes, s->data, s->data_bytes);
        free(s->data);
}

/* Which names the embedding of a tied model gets; `change`: the second copy is another one. */
struct ends {
        const char *names[ENDS];
        uint8_t change;
};

/* Tensors by turns into two shards. */
static void write_folder(const struct checkpoint *from, const struct ends *ends)
{
        static const char *const files[] = { "one.safetensors", "two.safetensors" };
        static struct shard shards[2];
        static char index[40000];
        const struct tensor_table *table = checkpoint_tensors(from);

        memset(shards, 0, sizeof(shards));
        for (uint32_t i = 0; i < table->count; i++) {
                const struct tensor *t = &table->tensors[i];
                uint8_t *bytes = malloc(t->bytes);
                char why[256];

                assert_int_equal(checkpoint_read(from, t, 0, bytes, t->bytes, why, sizeof(why)), 0);
                if (strcmp(t->name, "token_embd.weight"))
                        shard_add(&shards[i % 2], files[i % 2], t->name, t, bytes, 0);
                for (unsigned e = 0; e < ENDS && !strcmp(t->name, "token_embd.weight"); e++)
                        if (ends->names[e])
                                shard_add(&shards[e], files[e], ends->names[e], t, bytes,
                                          e ? ends->change : 0);
                free(bytes);
        }
        for (unsigned i = 0; i < 2; i++)
                shard_write(&shards[i], files[i]);
        write_file("model.safetensors.index.json", index,
                   (size_t)snprintf(index, sizeof(index), "{\"weight_map\":{%s,%s}}",
                                    shards[0].index, shards[1].index),
                   "", 0);
        write_file("config.json", "{", 1, "}", 1);
}

static int set_up(void **state)
{
        char command[1024];

        (void)state;
        if (!getenv("TOY_MODEL_MAKER") || !mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s", in_folder("model.gguf"));
        snprintf(command, sizeof(command), "'%s' '%s' --tied " SMALL, getenv("TOY_MODEL_MAKER"),
                 path);
        return system(command);
}

static int tear_down(void **state)
{
        (void)state;
        unlink(path);
        unlink(in_folder("one.safetensors"));
        unlink(in_folder("two.safetensors"));
        unlink(in_folder("model.safetensors.index.json"));
        unlink(in_folder("config.json"));
        return rmdir(folder);
}

static void run(struct rig *rig, float *ret_logits)
{
        uint32_t text[ROWS], tokens[RIG_ROWS];
        struct rig_part part = { 0, 0, ROWS, text };

        for (uint32_t i = 0; i < ROWS; i++)
                text[i] = (i * 31 + 7) % VOCAB;
        assert_int_equal(rig_run(rig, &part, 1, tokens, ret_logits), 0);
}

/* The rig's model again, from the folder; the traits stay, except for `tied`. */
static int open_again(struct rig *rig, const struct ends *ends, bool tied)
{
        struct model_conf conf = { .rows_max = RIG_ROWS, .wants_max = RIG_ROWS, .kv = KV_F32 };
        int r;

        write_folder(rig->checkpoint, ends);
        rig->model = model_close(rig->model);
        rig->checkpoint = checkpoint_close(rig->checkpoint);
        rig->traits.tied = tied;
        conf.blocks = rig->pages * RIG_SLOTS;
        r = checkpoint_open(folder, &rig->checkpoint, rig->why, sizeof(rig->why));
        if (!r)
                r = model_open(rig->checkpoint, &rig->traits, rig->kernels, &conf, &rig->model,
                               rig->why, sizeof(rig->why));
        if (!r)
                r = rig_load(rig);
        return r;
}

static const struct ends embedding = { { "model.embed_tokens.weight" }, 0 };
static const struct ends head = { { "lm_head.weight" }, 0 };
static const struct ends both = { { "model.embed_tokens.weight", "lm_head.weight" }, 0 };
static const struct ends differing = { { "model.embed_tokens.weight", "lm_head.weight" }, 1 };
static const struct ends neither = { { NULL }, 0 };

static void a_folder_gives_the_logits_of_one_file_for_any_stored_head(void **state)
{
        static const struct {
                const struct ends *ends;
                bool tied, same;
        } cases[] = {
                { &embedding, true, true },  { &head, true, true },
                { &both, true, true },       { &both, false, true },
                { &differing, true, false }, { &differing, false, false },
        };
        static float before[ROWS][VOCAB], after[ROWS][VOCAB];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const char *backend = i % 2 ? "cpu" : "ref";
                struct rig rig;

                assert_int_equal(rig_open(&rig, path, backend, 2, CONTEXT), 0);
                run(&rig, before[0]);
                if (open_again(&rig, cases[i].ends, cases[i].tied))
                        fail_msg("%zu: %s", i, rig.why);
                run(&rig, after[0]);
                assert_int_equal(!memcmp(before, after, sizeof(before)), cases[i].same);
                rig_close(&rig);
        }
}

static void names_a_missing_embedding_or_head(void **state)
{
        static const struct {
                const struct ends *ends;
                bool tied;
                const char *message;
        } cases[] = {
                { &neither, true, "tensor 'token_embd.weight' is missing" },
                { &neither, false, "tensor 'token_embd.weight' is missing" },
                { &head, false, "tensor 'token_embd.weight' is missing" },
                { &embedding, false, "tensor 'output.weight' is missing" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct rig rig;

                assert_int_equal(rig_open(&rig, path, "ref", 1, CONTEXT), 0);
                assert_int_equal(open_again(&rig, cases[i].ends, cases[i].tied), -EINVAL);
                assert_string_equal(rig.why, cases[i].message);
                rig_close(&rig);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_folder_gives_the_logits_of_one_file_for_any_stored_head),
                cmocka_unit_test(names_a_missing_embedding_or_head),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
