#include "daemon/engine/model-stage.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/weights-rows.h"
#include "base/error.h"
#include "base/errtext.h"

#define ROPE_TURNS_MAX 256u

/* State needed only while opening. */
struct building {
        struct stage *stage;
        const struct stage_conf *conf;
        float *scratch; /* a vector between file and backend */
        size_t vectors_used, vectors_count;
};

static size_t vector_max(const struct traits *t)
{
        size_t n = q_columns(t) > t->width ? q_columns(t) : t->width;

        n = n > t->ffn ? n : t->ffn;
        return n > ROPE_TURNS_MAX ? n : ROPE_TURNS_MAX;
}

static float *vector_take(struct building *b, size_t floats)
{
        float *vector = b->stage->vectors + b->vectors_used;

        b->vectors_used += lines(floats);
        assert(b->vectors_used <= b->vectors_count);
        return vector;
}

/* Copies from the scratch to the backend. */
static int vector_send(struct building *b, float *to, size_t count)
{
        struct kernels *k = b->stage->kernels;
        int r = k->put(k, to, b->scratch, count);

        return r ? error_raise(errtext_set(b->conf->why, b->conf->why_bytes, r,
                                           "the backend did not take its vectors: %s",
                                           strerror(-r)))
                 : 0;
}

static int vector_put(struct building *b, const struct tensor *tensor, float *to)
{
        int r = rows_read_floats(b->conf->checkpoint, tensor, b->scratch, b->conf->why,
                                 b->conf->why_bytes);

        if (r)
                return error_pass(r);
        return vector_send(b, to, tensor->columns);
}

/* Loads this tensor as the next vector; does nothing if there is no tensor. */
static int vector_load(struct building *b, const struct tensor *tensor, const float **ret_vector)
{
        float *vector;
        int r;

        if (!tensor)
                return 0;
        vector = vector_take(b, tensor->columns);
        r = vector_put(b, tensor, vector);
        if (r)
                return error_pass(r);
        *ret_vector = vector;
        return 0;
}

/* The bias of stacked matrices.  Some parts may be absent: their bias is zero. */
static int biases_load(struct building *b, const struct tensor *const *parts,
                       const uint32_t *columns, uint32_t part_count, const float **ret_bias)
{
        size_t count = 0;
        bool any = false;
        float *bias;
        int r;

        for (uint32_t i = 0; i < part_count; i++) {
                count += columns[i];
                any = any || parts[i];
        }
        if (!any)
                return 0;
        bias = vector_take(b, count);
        *ret_bias = bias;
        for (uint32_t i = 0; i < part_count; bias += columns[i++]) {
                r = parts[i] ? vector_put(b, parts[i], bias) : 0;
                if (r)
                        return error_pass(r);
        }
        return 0;
}

/* Makes a matrix of stacked tensors; it is loaded later with all others. */
static int matrix_make(struct stage *s, const struct tensor *const *parts, uint32_t part_count,
                       struct load_list *list, struct matrix **ret_matrix, char *why,
                       size_t why_bytes)
{
        const struct matrix_shape shape = matrix_shape(parts, part_count);
        struct kernels *k = s->kernels;
        struct matrix *matrix;
        int r;

        r = k->matrix_new(k, &shape, &matrix);
        if (r)
                return error_raise(errtext_set(why, why_bytes, r,
                                               "no memory for the matrix of tensor '%s'",
                                               shown(parts[0]->name).text));
        assert(part_count <= list->max - list->count);
        for (uint32_t i = 0; i < part_count; i++)
                list->loads[list->count++] = (struct weights_load){ parts[i], k, matrix, i };
        *ret_matrix = matrix;
        return 0;
}

static int matrix_open(struct building *b, const struct tensor *const *parts, uint32_t part_count,
                       struct matrix **ret_matrix)
{
        return matrix_make(b->stage, parts, part_count, b->conf->list, ret_matrix, b->conf->why,
                           b->conf->why_bytes);
}

static int rope_table_check(const struct stage_conf *conf, const float *table, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if (!(table[i] > 0) || !isfinite(table[i]))
                        return error_raise(
                                errtext_set(conf->why, conf->why_bytes, -EINVAL,
                                            "tensor 'rope_freqs.weight': factor %u is %g, "
                                            "not a finite number above 0",
                                            i, (double)table[i]));
        return 0;
}

static int rope_open(struct building *b)
{
        const struct stage_conf *conf = b->conf;
        const struct tensor *table = conf->tensors->at[ROPE_FREQS];
        const struct rope_shape *shape = &conf->traits->rope;
        float *frequency = vector_take(b, shape->dims / 2);
        int r;

        assert(shape->dims / 2 <= ROPE_TURNS_MAX);
        if (table) {
                r = rows_read_floats(conf->checkpoint, table, b->scratch, conf->why,
                                     conf->why_bytes);
                if (!r)
                        r = rope_table_check(conf, b->scratch, shape->dims / 2);
                if (r)
                        return error_pass(r);
        }
        rope_frequencies(shape, table ? b->scratch : NULL, b->scratch);
        r = vector_send(b, frequency, shape->dims / 2);
        if (r)
                return error_pass(r);
        b->stage->rope = (struct rope){
                .dims = shape->dims,
                .pairing = shape->pairing,
                .frequency = frequency,
                .factor = (float)shape->attention,
        };
        return 0;
}

/* A stage counts its KV layers from its own first layer; `layer` counts from the model's first. */
static int attention_open(struct building *b, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &b->conf->tensors->layers[layer];
        const struct traits *traits = b->conf->traits;
        const uint32_t q = q_columns(traits), kv = kv_columns(traits);
        struct stage *s = b->stage;
        int r;

        if ((r = matrix_open(b, &t->at[ATTN_Q], 3, &l->qkv_matrix)) ||
            (r = matrix_open(b, &t->at[ATTN_OUTPUT], 1, &l->output_matrix)) ||
            (r = vector_load(b, t->at[ATTN_NORM], &l->qkv.norm)) ||
            (r = vector_load(b, t->at[ATTN_Q_NORM], &l->qkv.q_norm)) ||
            (r = vector_load(b, t->at[ATTN_K_NORM], &l->qkv.k_norm)) ||
            (r = vector_load(b, t->at[ATTN_OUTPUT_BIAS], &l->output.bias)) ||
            (r = biases_load(b, &t->at[ATTN_Q_BIAS], (uint32_t[]){ q, kv, kv }, 3, &l->qkv.bias)))
                return error_pass(r);
        l->qkv.w = l->qkv_matrix;
        l->qkv.eps = traits->eps;
        l->qkv.rope = s->rope;
        l->qkv.kv = s->kv;
        l->qkv.layer = layer - s->shape.first;
        l->qkv.heads = traits->heads;
        l->qkv.kv_heads = traits->kv_heads;
        l->qkv.head_dim = traits->head_dim;
        l->attend = (struct attend){
                .kv = s->kv,
                .layer = layer - s->shape.first,
                .heads = traits->heads,
                .kv_heads = traits->kv_heads,
                .head_dim = traits->head_dim,
                .scale = traits->attend_scale,
                .softcap = traits->attend_softcap,
                .window = window_of(traits, layer),
        };
        l->output.w = l->output_matrix;
        return 0;
}

static int ffn_open(struct building *b, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &b->conf->tensors->layers[layer];
        const struct traits *traits = b->conf->traits;
        const uint32_t ffn = traits->ffn;
        int r;

        if ((r = matrix_open(b, &t->at[FFN_GATE], 2, &l->gate_matrix)) ||
            (r = matrix_open(b, &t->at[FFN_DOWN], 1, &l->down_matrix)) ||
            (r = vector_load(b, t->at[FFN_NORM], &l->gate.norm)) ||
            (r = vector_load(b, t->at[FFN_DOWN_BIAS], &l->down.bias)) ||
            (r = biases_load(b, &t->at[FFN_GATE_BIAS], (uint32_t[]){ ffn, ffn }, 2, &l->gate.bias)))
                return error_pass(r);
        l->gate.w = l->gate_matrix;
        l->gate.eps = traits->eps;
        l->gate.act = traits->act;
        l->down.w = l->down_matrix;
        return 0;
}

int stage_give_head(struct stage *s, const struct tensor *tensor, struct load_list *list, char *why,
                    size_t why_bytes)
{
        int r = matrix_make(s, &tensor, 1, list, &s->head_matrix, why, why_bytes);

        if (r)
                return error_pass(r);
        s->head.w = s->head_matrix;
        return 0;
}

static int ends_open(struct building *b)
{
        const struct stage_conf *conf = b->conf;
        const struct tensor *const *t = conf->tensors->at;
        struct stage *s = b->stage;
        int r = 0;

        if (s->shape.begins)
                r = matrix_open(b, &t[TOKEN_EMBD], 1, &s->embedding);
        if (r || !s->shape.ends)
                return error_pass(r);
        s->head.w = s->embedding;
        s->head.eps = conf->traits->eps;
        s->head.softcap = conf->traits->head_softcap;
        r = vector_load(b, t[OUTPUT_NORM], &s->head.norm);
        if (!r && !s->shape.begins)
                r = stage_give_head(s, head_tensor(conf->tensors, &s->shape), conf->list, conf->why,
                                    conf->why_bytes);
        return error_pass(r);
}

static int buffers_open(struct building *b)
{
        const struct stage_conf *conf = b->conf;
        struct stage *s = b->stage;
        struct kv_shape kv = kv_shape(conf->traits, conf->model, &s->shape);
        float **const buffers[FLOATS_N] = {
                [FLOATS_VECTORS] = &s->vectors,
                [FLOATS_X] = &s->x,
                [FLOATS_Q] = &s->q,
                [FLOATS_Y] = &s->y,
                [FLOATS_H] = &s->h,
                [FLOATS_LOGITS] = &s->logits,
        };
        size_t floats[FLOATS_N];
        uint32_t count = floats_of(conf->traits, conf->model, &s->shape, floats);
        int r = 0;

        b->vectors_count = floats[FLOATS_VECTORS];
        b->scratch = calloc(vector_max(conf->traits), sizeof(*b->scratch));
        s->layers = calloc(s->shape.layers, sizeof(*s->layers));
        if (!b->scratch || !s->layers)
                r = -ENOMEM;
        for (uint32_t i = 0; !r && i < count; i++)
                r = s->kernels->floats_new(s->kernels, floats[i], buffers[i]);
        if (!r)
                r = s->kernels->kv_new(s->kernels, &kv, &s->kv);
        if (r)
                return error_raise(
                        errtext_set(conf->why, conf->why_bytes, r,
                                    "no memory for its activations and KV pool (kv_bytes)%s",
                                    kv.swap_pages ? ", or for the swap (swap_bytes)" : ""));
        return 0;
}

static int fill(struct building *b)
{
        struct stage *s = b->stage;
        int r;

        if ((r = buffers_open(b)) || (r = rope_open(b)) || (r = ends_open(b)))
                return error_pass(r);
        for (uint32_t i = 0; i < s->shape.layers; i++)
                if ((r = attention_open(b, &s->layers[i], s->shape.first + i)) ||
                    (r = ffn_open(b, &s->layers[i], s->shape.first + i)))
                        return error_pass(r);
        return 0;
}

int stage_open(const struct stage_conf *conf, struct stage *ret_stage)
{
        struct building b = { .stage = ret_stage, .conf = conf };
        int r;

        *ret_stage = (struct stage){
                .kernels = conf->kernels,
                .shape = conf->shape,
                .vocab = conf->traits->vocab,
                .embed_scale = conf->traits->embed_scale,
        };
        r = fill(&b);
        free(b.scratch);
        return error_pass(r);
}

static void matrix_drop(struct kernels *k, struct matrix *matrix)
{
        if (matrix)
                k->matrix_free(k, matrix);
}

static void floats_drop(struct kernels *k, float *floats)
{
        if (floats)
                k->floats_free(k, floats);
}

void stage_close(struct stage *s)
{
        struct kernels *k = s->kernels;

        for (uint32_t i = 0; s->layers && i < s->shape.layers; i++) {
                matrix_drop(k, s->layers[i].qkv_matrix);
                matrix_drop(k, s->layers[i].output_matrix);
                matrix_drop(k, s->layers[i].gate_matrix);
                matrix_drop(k, s->layers[i].down_matrix);
        }
        matrix_drop(k, s->embedding);
        matrix_drop(k, s->head_matrix);
        floats_drop(k, s->vectors);
        floats_drop(k, s->x);
        floats_drop(k, s->q);
        floats_drop(k, s->y);
        floats_drop(k, s->h);
        floats_drop(k, s->logits);
        if (s->kv)
                k->kv_free(k, s->kv);
        free(s->layers);
        *s = (struct stage){ 0 };
}

static int layer_forward(struct stage *s, const struct layer *l)
{
        struct kernels *k = s->kernels;
        int r;

        if ((r = k->qkv(k, &l->qkv, s->q, s->x)) || (r = k->attend(k, &l->attend, s->y, s->q)) ||
            (r = k->project(k, &l->output, s->x, s->y)) || (r = k->gate(k, &l->gate, s->h, s->x)) ||
            (r = k->project(k, &l->down, s->x, s->h)))
                return error_raise(r);
        return 0;
}

/* Runs all operators of a step. */
static int forward(void *arg)
{
        struct stage *s = arg;
        struct kernels *k = s->kernels;
        int r = 0;

        if (s->shape.begins)
                r = k->embed(k, s->embedding, s->embed_scale, s->x);
        if (r)
                return error_raise(r);
        for (uint32_t i = 0; i < s->shape.layers; i++) {
                r = layer_forward(s, &s->layers[i]);
                if (r)
                        return error_pass(r);
        }
        if (s->shape.ends &&
            ((r = k->head(k, &s->head, s->logits, s->x)) || (r = k->pick(k, s->logits, s->vocab))))
                return error_raise(r);
        return 0;
}

bool stage_back_pool(struct stage *s, size_t *at)
{
        return s->kernels->kv_back && s->kernels->kv_back(s->kernels, s->kv, at);
}

uint64_t stage_swap_copy_ns(struct stage *s)
{
        return s->kernels->kv_copy_ns(s->kernels, s->kv);
}

int stage_rehearse(struct stage *s)
{
        struct kernels *k = s->kernels;
        int r = k->warm_up ? k->warm_up(k, forward, s) : 0;

        return r ? error_raise(r) : 0;
}

int stage_run(struct stage *s, const struct step *step)
{
        struct kernels *k = s->kernels;
        int r = k->step_begin(k, s->kv, step);

        if (r < 0)
                return error_raise(r);
        if (r != STEP_REPLAYED && (r = forward(s)))
                return error_pass(r);
        r = k->step_end(k);
        return r ? error_raise(r) : 0;
}
