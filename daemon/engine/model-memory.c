/*
 * How much memory a model takes: from its files, or as a backend with its own memory reports it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/model-shapes.h"
#include "daemon/engine/model.h"
#include "daemon/engine/tensor-parts.h"
#include "daemon/engine/weights.h"
#include "base/error.h"
#include "base/errtext.h"

#define MATS_MODEL 5u
#define MATS_LAYER 6u

static uint64_t mul_or_max(uint64_t a, uint64_t b)
{
        uint64_t product;

        return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Floats of x, q, y, h and inputs for one row. */
static uint64_t row_floats(const struct traits *t)
{
        return t->width + 2 * (uint64_t)q_columns_max(t) + ffn_max(t) + input_columns(t) +
               t->layer_input;
}

/* The pages of all groups in a stage. */
static void set_pool(struct model_bytes *bytes, const struct traits *traits,
                     const struct model_conf *conf, const struct stage_shape *stage)
{
        bytes->block = page_bytes(traits, conf, stage, GROUP_BLOCKS);
        bytes->window = page_bytes(traits, conf, stage, GROUP_WINDOWS);
        if (__builtin_add_overflow(mul_or_max(bytes->block, conf->blocks),
                                   mul_or_max(bytes->window, conf->windows), &bytes->kv))
                bytes->kv = UINT64_MAX;
}

/* Bytes that the ends take more than in the file, if their rows are computed from the file's. */
static uint64_t computed_bytes(const struct checkpoint *checkpoint, const struct traits *traits)
{
        const struct tensor *head = checkpoint_tensor(checkpoint, "output.weight");
        struct tensor unit;

        if (traits->embed_width)
                return 2 * (uint64_t)traits->vocab * row_kept_bytes(ROW_F32, traits->width);
        if (!traits->head_unit_rows || !head || head->unserved || head->scales)
                return 0;
        unit = tensor_unit_rows(head);
        return tensor_kept_bytes(&unit) - tensor_kept_bytes(head);
}

void model_measure(const struct checkpoint *checkpoint, const struct traits *traits,
                   const struct model_conf *conf, struct model_bytes *ret_bytes)
{
        const struct tensor_table *table = checkpoint_tensors(checkpoint);
        const struct stage_shape all = { .layers = traits->layers, .begins = true, .ends = true };
        struct model_bytes bytes = { .weights = tensor_table_kept_bytes(table) +
                                                computed_bytes(checkpoint, traits) +
                                                sinusoidal_bytes(traits, conf),
                                     .left = MODEL_BYTES_HOST };

        for (uint32_t i = 0; i < table->count; i++) {
                uint64_t piece = tensor_taken_bytes(&table->tensors[i]);

                piece = piece < WEIGHTS_PIECE_MAX ? piece : WEIGHTS_PIECE_MAX;
                if (bytes.loading < piece * WEIGHTS_BUFFERS_MAX)
                        bytes.loading = piece * WEIGHTS_BUFFERS_MAX;
        }
        bytes.activations =
                (conf->rows_max * row_floats(traits) + (uint64_t)conf->wants_max * traits->vocab) *
                sizeof(float);
        set_pool(&bytes, traits, conf, &all);
        bytes.swap = mul_or_max(bytes.block, conf->swap_blocks);
        *ret_bytes = bytes;
}

/*
 * The first stage, if it is on the host.  x and the inputs of layers are there twice, because they
 * are copied to the next stage.
 */
static void measure_host(const struct traits *traits, const struct tensors *tensors,
                         const struct model_conf *conf, struct model_bytes *ret_bytes)
{
        const struct stage_shape stage = stage_on_host(conf);
        uint64_t row = row_floats(traits) + traits->width + input_columns(traits);

        *ret_bytes = (struct model_bytes){ .left = MODEL_BYTES_HOST };
        if (!stage.layers)
                return;
        ret_bytes->weights = tensor_kept_bytes(tensors->at[TOKEN_EMBD]);
        ret_bytes->weights += sinusoidal_bytes(traits, conf);
        if (tensors->at[POSITION_EMBD])
                ret_bytes->weights += tensor_kept_bytes(tensors->at[POSITION_EMBD]);
        if (traits->layer_input)
                ret_bytes->weights += tensor_kept_bytes(tensors->at[LAYER_INPUT_EMBD]) +
                                      tensor_kept_bytes(tensors->at[LAYER_INPUT_PROJ]);
        for (uint32_t i = 0; i < stage.layers; i++)
                for (uint32_t t = 0; t < LAYER_TENSOR_N; t++)
                        if (tensors->layers[i].at[t])
                                ret_bytes->weights += tensor_kept_bytes(tensors->layers[i].at[t]);
        ret_bytes->activations = conf->rows_max * row * sizeof(float);
        set_pool(ret_bytes, traits, conf, &stage);
}

/*
 * The shapes of all matrices.  The head is counted even if it may be tied: only loading tells
 * whether it equals the embedding.
 */
static uint32_t shapes_of(const struct tensors *tensors, const struct traits *traits,
                          const struct model_conf *conf, const struct stage_shape *stage,
                          struct matrix_shape *ret_shapes)
{
        const struct tensor *head = stage->ends ? head_tensor(tensors, stage) : NULL;
        uint32_t count = 0;

        if (stage->begins)
                ret_shapes[count++] = matrix_shape(&tensors->at[TOKEN_EMBD], 1);
        if (stage->begins && traits->positions)
                ret_shapes[count++] = positions_shape(tensors, traits, conf);
        if (stage->begins && traits->layer_input) {
                ret_shapes[count++] = matrix_shape(&tensors->at[LAYER_INPUT_EMBD], 1);
                ret_shapes[count++] = matrix_shape(&tensors->at[LAYER_INPUT_PROJ], 1);
        }
        if (head)
                ret_shapes[count++] = matrix_shape(&head, 1);
        for (uint32_t i = 0; i < stage->layers; i++) {
                const struct tensor *const *at = tensors->layers[stage->first + i].at;

                ret_shapes[count++] =
                        matrix_shape(&at[ATTN_Q], qkv_parts(&traits->layer[stage->first + i]));
                ret_shapes[count++] = matrix_shape(&at[ATTN_OUTPUT], 1);
                ret_shapes[count++] = matrix_shape(&at[gate_first(traits)], gate_parts(traits));
                ret_shapes[count++] = matrix_shape(&at[FFN_DOWN], 1);
                if (!traits->layer_input)
                        continue;
                ret_shapes[count++] = matrix_shape(&at[INPUT_GATE], 1);
                ret_shapes[count++] = matrix_shape(&at[INPUT_PROJ], 1);
        }
        return count;
}

/* One for each different shape and window; `ret_attends` has space for one of each layer. */
static uint32_t attends_of(const struct traits *t, const struct stage_shape *stage,
                           struct attend *ret_attends)
{
        uint32_t count = 0, at;

        for (uint32_t i = 0; i < stage->layers; i++) {
                const struct layer_traits *l = &t->layer[stage->first + i];

                for (at = 0; at < count; at++)
                        if (ret_attends[at].window == l->window &&
                            ret_attends[at].kv_heads == l->kv_heads &&
                            ret_attends[at].head_dim == l->head_dim)
                                break;
                if (at == count)
                        ret_attends[count++] = (struct attend){ .heads = t->heads,
                                                                .kv_heads = l->kv_heads,
                                                                .head_dim = l->head_dim,
                                                                .window = l->window };
        }
        return count;
}

static int ask(struct kernels *k, const struct traits *traits, const struct tensors *tensors,
               const struct model_conf *conf, struct kernels_memory *ret_memory)
{
        const struct stage_shape stage = stage_of_rest(traits, conf);
        struct matrix_shape *shapes =
                calloc(MATS_MODEL + (size_t)stage.layers * MATS_LAYER, sizeof(*shapes));
        struct attend *attends = calloc(stage.layers, sizeof(*attends));
        struct kernels_objects objects = { .matrices = shapes };
        size_t floats[FLOATS_N];
        uint32_t count;
        int r;

        if (!shapes || !attends) {
                free(attends);
                free(shapes);
                return -ENOMEM;
        }
        count = floats_of(traits, conf, &stage, floats);
        for (uint32_t i = 0; i < count; i++)
                if (floats[i])
                        floats[objects.floats_count++] = floats[i];
        objects.matrix_count = shapes_of(tensors, traits, conf, &stage, shapes);
        objects.floats = floats;
        objects.attends = attends;
        objects.attend_count = attends_of(traits, &stage, attends);
        r = k->memory(k, &objects, ret_memory);
        free(attends);
        free(shapes);
        return r;
}

int model_measure_in(const struct checkpoint *checkpoint, const struct traits *traits,
                     struct kernels *kernels, const struct model_conf *conf,
                     struct model_bytes *ret_bytes, struct model_bytes *ret_host, char *why,
                     size_t why_bytes)
{
        const struct stage_shape stage = stage_of_rest(traits, conf);
        struct kernels_memory memory;
        struct tensors tensors;
        int r;

        if (!(kernels->kv_types >> conf->kv & 1))
                return error_raise(
                        errtext_set(why, why_bytes, -ENOTSUP,
                                    "kv is %s; backend %s has no keys and values of this type",
                                    kv_type_name(conf->kv), kernels->name));
        model_measure(checkpoint, traits, conf, ret_bytes);
        r = tensors_find(checkpoint, traits, &tensors, why, why_bytes);
        if (r)
                return error_pass(r);
        measure_host(traits, &tensors, conf, ret_host);
        r = ask(kernels, traits, &tensors, conf, &memory);
        tensors_deinit(&tensors);
        if (r)
                return error_raise(errtext_set(why, why_bytes, r,
                                               "backend %s cannot hold this model: %s",
                                               kernels->name, strerror(-r)));
        ret_bytes->weights = memory.weights;
        ret_bytes->activations = memory.floats;
        set_pool(ret_bytes, traits, conf, &stage);
        ret_bytes->scratch = memory.scratch;
        ret_bytes->left = memory.left;
        ret_bytes->swap = 0;
        ret_host->swap = mul_or_max(ret_bytes->block + ret_host->block, conf->swap_blocks);
        return 0;
}
