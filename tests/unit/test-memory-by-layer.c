/*
 * The memory of a model whose layers differ is counted as it is made.
 *
 * The model is tests/golden/families/gemma4-e.  By its config, all layers have 4 heads and inputs
 * of 8 numbers.  Layers 0 to 2 have a window and 2 heads of 8 numbers; layer 3 has none and 2 heads
 * of 16.  Layers 4 to 6 share keys and values, and are twice as wide.  SOURCES is the project's
 * root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define WIDTH  32u
#define VOCAB  40u
#define LAYERS 7u
#define OWN    4u /* layers with keys and values of their own */
#define INPUT  8u
#define FFN    12u /* twice as wide in layers that share */
#define Q      64u /* numbers of the widest q: 4 heads of 16 */

#define ROWS       5u
#define WANTS      3u
#define BLOCKS     10u
#define WINDOWS    9u
#define SWAP       7u
#define SPLIT_MAX  2u
#define OBJECTS    64u
#define FREE_BYTES 123456789u

/* Bytes of 16 positions, in F16: K and V of one layer of each kind. */
#define WINDOW_LAYER (2u * 2 * 16 * 8 * 2)
#define FULL_LAYER   (2u * 2 * 16 * 16 * 2)

/* Floats of a row: x, q, what attention gives, hidden values, all inputs, and one. */
#define ROW_FLOATS (WIDTH + Q + Q + 2 * FFN + LAYERS * INPUT + INPUT)

static struct rig rig;

static int set_up(void **state)
{
        char path[1024];
        int r;

        (void)state;
        snprintf(path, sizeof(path), "%s/tests/golden/families/gemma4-e", getenv("SOURCES"));
        r = rig_open_split(&rig, path, "cpu", SPLIT_MAX, "cpu", 1, PAGE_POSITIONS, KV_F16);
        if (r)
                print_error("%s: %d: %s\n", path, r, rig.why);
        return r;
}

static int tear_down(void **state)
{
        (void)state;
        rig_close(&rig);
        return 0;
}

/* A model has window pages or a swap. */
static struct model_conf conf_of(uint32_t windows, uint32_t host_layers)
{
        return (struct model_conf){ .rows_max = ROWS,
                                    .wants_max = WANTS,
                                    .blocks = BLOCKS,
                                    .windows = windows,
                                    .swap_blocks = windows ? 0 : SWAP,
                                    .kv = KV_F16,
                                    .host_layers = host_layers,
                                    .host = host_layers ? rig.host : NULL };
}

/* All tensors of the file are in BF16, which are kept in pairs: so the scale counts twice. */
static uint64_t weights_of_file(void)
{
        uint64_t numbers = VOCAB * WIDTH + WIDTH;

        numbers += (VOCAB + WIDTH) * LAYERS * INPUT + INPUT;
        for (uint32_t i = 0; i < LAYERS; i++) {
                uint32_t head_dim = i == 3 || i == 6 ? 16 : 8;

                numbers += 5 * WIDTH + head_dim + 2; /* norms, that of q, the scale */
                numbers += 2 * WIDTH * 4 * head_dim; /* q, o */
                numbers += 2 * WIDTH * INPUT;        /* to the input, and back */
                numbers += 3 * WIDTH * FFN * (i < OWN ? 1 : 2);
                if (i < OWN)
                        numbers += 2 * WIDTH * 2 * head_dim + head_dim;
        }
        return 2 * numbers;
}

static void a_block_has_the_pages_of_both_pools_without_window_pages(void **state)
{
        const struct model_conf conf = conf_of(0, 0);
        struct model_bytes bytes;

        (void)state;
        model_measure(rig.checkpoint, &rig.traits, &conf, &bytes);
        assert_int_equal(bytes.block, 3 * WINDOW_LAYER + FULL_LAYER);
        assert_int_equal(bytes.window, 0);
        assert_int_equal(bytes.kv, BLOCKS * bytes.block);
        assert_int_equal(bytes.swap, SWAP * bytes.block);
        assert_int_equal(bytes.left, MODEL_BYTES_HOST);
}

static void a_block_has_the_layers_without_a_window_beside_window_pages(void **state)
{
        const struct model_conf conf = conf_of(WINDOWS, 0);
        struct model_bytes bytes;

        (void)state;
        model_measure(rig.checkpoint, &rig.traits, &conf, &bytes);
        assert_int_equal(bytes.block, FULL_LAYER);
        assert_int_equal(bytes.window, 3 * WINDOW_LAYER);
        assert_int_equal(bytes.kv, BLOCKS * FULL_LAYER + WINDOWS * 3 * WINDOW_LAYER);
}

static void activations_have_inputs_and_the_widest_layer(void **state)
{
        const struct model_conf conf = conf_of(0, 0), split = conf_of(0, SPLIT_MAX);
        struct model_bytes bytes, whole;

        (void)state;
        model_measure(rig.checkpoint, &rig.traits, &conf, &bytes);
        assert_int_equal(bytes.activations, 4 * (ROWS * ROW_FLOATS + WANTS * VOCAB));
        assert_int_equal(bytes.weights, weights_of_file());
        /* The whole model, whatever the conf says. */
        model_measure(rig.checkpoint, &rig.traits, &split, &whole);
        assert_memory_equal(&bytes, &whole, sizeof(bytes));
}

static void sums_beyond_the_range_are_its_largest_number(void **state)
{
        static struct traits large;
        struct model_conf conf = conf_of(UINT32_MAX, 0);
        struct model_bytes bytes;

        (void)state;
        large = rig.traits;
        large.layers = TRAITS_LAYERS_MAX;
        for (uint32_t i = 0; i < large.layers; i++)
                large.layer[i] = (struct layer_traits){
                        .window = 7, .kv_heads = 1024, .head_dim = 512, .ffn = 1
                };
        model_measure(rig.checkpoint, &large, &conf, &bytes);
        assert_true(bytes.kv == UINT64_MAX);
        conf.windows = 0;
        conf.blocks = UINT32_MAX;
        model_measure(rig.checkpoint, &large, &conf, &bytes);
        assert_true(bytes.kv == UINT64_MAX);
}

/* ---- a backend with a memory of its own ---- */

/* The objects that were planned for a backend, or made in it. */
struct objects {
        uint32_t matrix_count, floats_count, attend_count;
        struct matrix_shape matrices[OBJECTS];
        uint64_t weights, floats, kv;
        uint32_t heads_seen[2]; /* attends with heads of 8 and of 16 */
};

static struct objects planned, made;
static struct kernels real;

static uint64_t matrix_bytes(const struct matrix_shape *shape)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < shape->parts; i++)
                bytes += shape->rows[i] * (uint64_t)row_bytes(shape->type[i], shape->columns);
        return bytes;
}

static void note_matrix(struct objects *objects, const struct matrix_shape *shape)
{
        assert_true(objects->matrix_count < OBJECTS);
        objects->matrices[objects->matrix_count++] = *shape;
        objects->weights += matrix_bytes(shape);
}

static int memory(struct kernels *k, const struct kernels_objects *objects,
                  struct kernels_memory *ret_memory)
{
        (void)k;
        planned = (struct objects){ .floats_count = objects->floats_count,
                                    .attend_count = objects->attend_count };
        for (uint32_t i = 0; i < objects->matrix_count; i++)
                note_matrix(&planned, &objects->matrices[i]);
        for (uint32_t i = 0; i < objects->floats_count; i++)
                planned.floats += objects->floats[i];
        for (uint32_t i = 0; i < objects->attend_count; i++) {
                const struct attend *a = &objects->attends[i];

                assert_true(a->heads == 4 && a->kv_heads == 2);
                assert_true((a->head_dim == 8 && a->window == 7) ||
                            (a->head_dim == 16 && a->window == 0));
                planned.heads_seen[a->head_dim == 16]++;
        }
        *ret_memory = (struct kernels_memory){ .left = FREE_BYTES,
                                               .weights = planned.weights,
                                               .floats = 4 * planned.floats,
                                               .scratch = 321 };
        return 0;
}

static int matrix_new(struct kernels *k, const struct matrix_shape *shape,
                      struct matrix **ret_matrix)
{
        note_matrix(&made, shape);
        return real.matrix_new(k, shape, ret_matrix);
}

static int floats_new(struct kernels *k, size_t count, float **ret_floats)
{
        made.floats += count;
        return real.floats_new(k, count, ret_floats);
}

static int kv_new(struct kernels *k, const struct kv_shape *shape, struct kv **ret_kv)
{
        made.kv += kv_page_bytes(shape) * shape->pages;
        return real.kv_new(k, shape, ret_kv);
}

/* What model_open() makes in the backend. */
static void make(const struct model_conf *conf)
{
        int r;

        rig.model = model_close(rig.model);
        made = (struct objects){ 0 };
        real = *rig.kernels;
        rig.kernels->matrix_new = matrix_new;
        rig.kernels->floats_new = floats_new;
        rig.kernels->kv_new = kv_new;
        r = model_open(rig.checkpoint, &rig.traits, rig.kernels, conf, &rig.model, rig.why,
                       sizeof(rig.why));
        *rig.kernels = real;
        if (r)
                fail_msg("%d: %s", r, rig.why);
}

static void measure(const struct model_conf *conf, struct model_bytes *ret_bytes,
                    struct model_bytes *ret_host)
{
        int r;

        rig.kernels->memory = memory;
        r = model_measure_in(rig.checkpoint, &rig.traits, rig.kernels, conf, ret_bytes, ret_host,
                             rig.why, sizeof(rig.why));
        rig.kernels->memory = NULL;
        if (r)
                fail_msg("%d: %s", r, rig.why);
}

/* Every matrix that is made was planned; the tied head alone may be planned and not made. */
static void check_matrices(const struct model_conf *conf)
{
        bool taken[OBJECTS] = { false };
        uint32_t at;

        for (uint32_t i = 0; i < made.matrix_count; i++) {
                for (at = 0; at < planned.matrix_count; at++)
                        if (!taken[at] && !memcmp(&planned.matrices[at], &made.matrices[i],
                                                  sizeof(made.matrices[i])))
                                break;
                if (at == planned.matrix_count)
                        fail_msg("%u layers on the host: a matrix of %u columns was not planned",
                                 conf->host_layers, made.matrices[i].columns);
                taken[at] = true;
        }
        for (at = 0; at < planned.matrix_count; at++)
                if (!taken[at])
                        assert_true(conf->host_layers && planned.matrices[at].rows[0] == VOCAB &&
                                    planned.matrices[at].columns == WIDTH);
}

static void plans_for_a_backend_what_is_made_there(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 2 * (SPLIT_MAX + 1); i++) {
                const struct model_conf conf = conf_of(i % 2 ? WINDOWS : 0, i / 2);
                struct model_bytes bytes, host;

                measure(&conf, &bytes, &host);
                make(&conf);
                check_matrices(&conf);
                assert_int_equal(bytes.kv, made.kv);
                assert_int_equal(bytes.activations, 4 * made.floats);
                assert_int_equal(bytes.weights, planned.weights);
                assert_int_equal(bytes.left, FREE_BYTES);
                assert_int_equal(bytes.scratch, 321);
                assert_int_equal(planned.attend_count, 2);
                assert_true(planned.heads_seen[0] == 1 && planned.heads_seen[1] == 1);
        }
}

static void pages_are_counted_where_their_layers_are(void **state)
{
        (void)state;
        for (uint32_t layers = 0; layers <= SPLIT_MAX; layers++) {
                struct model_conf conf = conf_of(0, layers);
                struct model_bytes bytes, host;

                measure(&conf, &bytes, &host);
                assert_int_equal(bytes.block, (3 - layers) * WINDOW_LAYER + FULL_LAYER);
                assert_int_equal(bytes.window, 0);
                assert_int_equal(bytes.kv, BLOCKS * bytes.block);
                assert_int_equal(bytes.swap, 0);
                assert_int_equal(host.block, layers * WINDOW_LAYER);
                assert_int_equal(host.kv, BLOCKS * host.block);
                assert_int_equal(host.swap, SWAP * (bytes.block + host.block));

                conf = conf_of(WINDOWS, layers);
                measure(&conf, &bytes, &host);
                assert_int_equal(bytes.block, FULL_LAYER);
                assert_int_equal(bytes.window, (3 - layers) * WINDOW_LAYER);
                assert_int_equal(bytes.kv, BLOCKS * bytes.block + WINDOWS * bytes.window);
                assert_int_equal(host.block, 0);
                assert_int_equal(host.window, layers * WINDOW_LAYER);
                assert_int_equal(host.kv, WINDOWS * host.window);
        }
}

/* x and the inputs are there twice: they are copied to the other stage. */
static void the_host_has_the_tables_and_its_layers(void **state)
{
        (void)state;
        for (uint32_t layers = 1; layers <= SPLIT_MAX; layers++) {
                const struct model_conf conf = conf_of(0, layers);
                /* 32 columns: q, k, v, o, gate, up, down; the input and back; norms, the scale */
                const uint64_t layer = 2 * (WIDTH * (32 + 16 + 16 + 32) + 3 * WIDTH * FFN +
                                            2 * WIDTH * INPUT + 5 * WIDTH + 2 * 8 + 2);
                struct model_bytes bytes, host;

                measure(&conf, &bytes, &host);
                assert_int_equal(host.activations,
                                 4 * ROWS * (ROW_FLOATS + WIDTH + LAYERS * INPUT));
                assert_int_equal(host.weights,
                                 2 * (VOCAB * WIDTH + (VOCAB + WIDTH) * LAYERS * INPUT) +
                                         layers * layer);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_block_has_the_pages_of_both_pools_without_window_pages),
                cmocka_unit_test(a_block_has_the_layers_without_a_window_beside_window_pages),
                cmocka_unit_test(activations_have_inputs_and_the_widest_layer),
                cmocka_unit_test(sums_beyond_the_range_are_its_largest_number),
                cmocka_unit_test(plans_for_a_backend_what_is_made_there),
                cmocka_unit_test(pages_are_counted_where_their_layers_are),
                cmocka_unit_test(the_host_has_the_tables_and_its_layers),
        };

        if (!getenv("SOURCES")) {
                puts("skipped: SOURCES does not say where the goldens are");
                return 77;
        }
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
