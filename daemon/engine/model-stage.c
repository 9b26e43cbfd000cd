#include "daemon/engine/model-stage.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/stage-inputs.h"
#include "daemon/engine/stage-matrices.h"
#include "base/error.h"
#include "base/errtext.h"

/* A pool counts its layers in this stage; `layer` counts from the model's first. */
static void attention_set(struct building *b, struct layer *l, uint32_t layer)
{
        const struct traits *traits = b->conf->traits;
        const struct layer_traits *own = &traits->layer[layer];
        struct stage *s = b->stage;
        enum pool pool = layer_pool(traits, b->conf->model, layer);
        uint32_t number = layers_in_pool(traits, b->conf->model, &s->shape, pool,
                                         traits_kv_layer(traits, layer));

        l->qkv.w = l->qkv_matrix;
        l->qkv.clip = traits->qkv_clip;
        l->qkv.span = traits->qk_norm_span;
        if (own->rope != TRAITS_NO_ROPE)
                l->qkv.rope = s->ropes[own->rope];
        l->qkv.query_beta = traits->query_beta;
        l->qkv.query_length = traits->query_length;
        if (traits->v_norm)
                l->qkv.v_norm = (struct row_norm){ .kind = NORM_RMS, .eps = traits->eps };
        l->qkv.kv = s->pools[pool];
        l->qkv.layer = number;
        l->qkv.heads = traits->heads;
        l->qkv.kv_heads = own->kv_heads;
        l->qkv.head_dim = own->head_dim;
        l->attend = (struct attend){
                .kv = s->pools[pool],
                .layer = number,
                .heads = traits->heads,
                .kv_heads = own->kv_heads,
                .head_dim = own->head_dim,
                .scale = traits->attend_scale,
                .softcap = traits->attend_softcap,
                .window = own->window,
                .slopes = s->slopes,
        };
        l->output.w = l->output_matrix;
        l->output.scale = traits->residual_scale;
}

/* Norms of q and k, where the model has them. */
static int qk_norms_load(struct building *b, const struct layer_tensors *t, struct layer *l)
{
        enum norm_kind kind = b->conf->traits->qk_norm_kind;
        int r = 0;

        if (t->at[ATTN_Q_NORM])
                r = stage_norm_load(b, t->at[ATTN_Q_NORM], t->at[ATTN_Q_NORM_BIAS], kind,
                                    &l->qkv.q_norm);
        if (!r && t->at[ATTN_K_NORM])
                r = stage_norm_load(b, t->at[ATTN_K_NORM], t->at[ATTN_K_NORM_BIAS], kind,
                                    &l->qkv.k_norm);
        return error_pass(r);
}

static enum norm_kind norm_if(const struct traits *traits, bool there)
{
        return there ? traits->norm : NORM_NONE;
}

/* The norm that a branch reads through, or the norm of the sum after it: they have one name. */
static int branch_norm_load(struct building *b, const struct tensor *weight,
                            const struct tensor *bias, struct row_norm *ret_read,
                            struct renorm *ret_sum)
{
        const struct traits *traits = b->conf->traits;
        bool sum = traits->sum_norms;

        ret_sum->columns = traits->width;
        return error_pass(stage_norm_load(b, weight, bias,
                                          norm_if(traits, sum || traits->pre_norms),
                                          sum ? &ret_sum->norm : ret_read));
}

static int attention_open(struct building *b, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &b->conf->tensors->layers[layer];
        const struct traits *traits = b->conf->traits;
        const uint32_t q = q_columns(traits, layer), kv = kv_columns(traits, layer);
        const uint32_t parts = qkv_parts(&traits->layer[layer]);
        int r;

        if ((r = stage_matrix_open(b, &t->at[ATTN_Q], parts, &l->qkv_matrix)) ||
            (r = stage_matrix_open(b, &t->at[ATTN_OUTPUT], 1, &l->output_matrix)) ||
            (r = branch_norm_load(b, t->at[ATTN_NORM], t->at[ATTN_NORM_BIAS], &l->qkv.norm,
                                  &l->output_sum)) ||
            (r = qk_norms_load(b, t, l)) ||
            (r = stage_norm_load(b, t->at[ATTN_POST_NORM], t->at[ATTN_POST_NORM_BIAS],
                                 norm_if(traits, traits->post_norms), &l->output.norm)) ||
            (r = stage_vector_load(b, t->at[ATTN_OUTPUT_BIAS], &l->output.bias)) ||
            (r = stage_biases_load(b, &t->at[ATTN_Q_BIAS], (uint32_t[]){ q, kv, kv }, parts,
                                   &l->qkv.bias)))
                return error_pass(r);
        attention_set(b, l, layer);
        return 0;
}

static int ffn_open(struct building *b, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &b->conf->tensors->layers[layer];
        const struct traits *traits = b->conf->traits;
        const uint32_t ffn = traits->layer[layer].ffn, parts = gate_parts(traits);
        const struct tensor *const *biases = &t->at[traits->gated ? FFN_GATE_BIAS : FFN_UP_BIAS];
        bool shared = traits->residual == RESIDUAL_ONE_NORM;
        int r;

        if ((r = stage_matrix_open(b, &t->at[gate_first(traits)], parts, &l->gate_matrix)) ||
            (r = stage_matrix_open(b, &t->at[FFN_DOWN], 1, &l->down_matrix)) ||
            (r = branch_norm_load(b, t->at[FFN_NORM], t->at[FFN_NORM_BIAS], &l->gate.norm,
                                  &l->down_sum)) ||
            (r = stage_norm_load(b, t->at[FFN_POST_NORM], t->at[FFN_POST_NORM_BIAS],
                                 norm_if(traits, traits->post_norms), &l->down.norm)) ||
            (r = stage_vector_load(b, t->at[FFN_DOWN_BIAS], &l->down.bias)) ||
            (r = stage_biases_load(b, biases, (uint32_t[]){ ffn, ffn }, parts, &l->gate.bias)))
                return error_pass(r);
        if (shared)
                l->gate.norm = l->qkv.norm;
        l->gate.w = l->gate_matrix;
        l->gate.act = traits->act;
        l->down.w = l->down_matrix;
        l->down.scale = traits->residual_scale;
        return 0;
}

static int layer_open(struct building *b, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &b->conf->tensors->layers[layer];
        bool has_input = b->conf->traits->layer_input;
        int r;

        if ((r = attention_open(b, l, layer)) || (r = ffn_open(b, l, layer)) ||
            (has_input && (r = stage_input_open(b, l, layer))) ||
            (r = stage_factor_read(b, t->at[LAYER_SCALE],
                                   has_input ? &l->input.after : &l->down.after)))
                return error_pass(r);
        return 0;
}

int stage_give_head(struct stage *s, const struct tensor *tensor, struct load_list *list, char *why,
                    size_t why_bytes)
{
        int r = stage_matrix_make(s, &tensor, 1, list, &s->head_matrix, why, why_bytes);

        if (r)
                return error_pass(r);
        s->head.w = s->head_matrix;
        return 0;
}

static int positions_open(struct building *b)
{
        const struct stage_conf *conf = b->conf;
        const struct traits *traits = conf->traits;
        struct stage *s = b->stage;
        struct matrix_shape shape;
        int r;

        if (traits->positions == POSITIONS_NONE)
                return 0;
        s->embed.first_position = traits->first_position;
        if (traits->positions == POSITIONS_LEARNED) {
                r = stage_matrix_open(b, &conf->tensors->at[POSITION_EMBD], 1, &s->positions);
        } else {
                shape = positions_shape(conf->tensors, traits, conf->model);
                r = s->kernels->matrix_new(s->kernels, &shape, &s->positions);
                if (r)
                        return error_raise(errtext_set(conf->why, conf->why_bytes, r,
                                                       "no memory for its table of positions"));
                r = stage_sinusoidal_put(b, shape.rows[0]);
        }
        s->embed.positions = s->positions;
        return error_pass(r);
}

static int embed_open(struct building *b)
{
        const struct stage_conf *conf = b->conf;
        const struct tensor *const *t = conf->tensors->at;
        struct stage *s = b->stage;
        int r;

        if ((r = stage_matrix_open(b, &t[TOKEN_EMBD], 1, &s->embedding)) ||
            (r = stage_norm_load(b, t[TOKEN_EMBD_NORM], t[TOKEN_EMBD_NORM_BIAS],
                                 norm_if(conf->traits, t[TOKEN_EMBD_NORM]), &s->embed.norm)) ||
            (r = positions_open(b)))
                return error_pass(r);
        s->embed.table = s->embedding;
        s->embed.scale = conf->traits->embed_scale;
        return conf->traits->layer_input ? error_pass(stage_inputs_open(b)) : 0;
}

static int ends_open(struct building *b)
{
        const struct stage_conf *conf = b->conf;
        const struct tensor *const *t = conf->tensors->at;
        struct stage *s = b->stage;
        int r = 0;

        if (s->shape.begins)
                r = embed_open(b);
        if (r || !s->shape.ends)
                return error_pass(r);
        s->head.w = s->embedding;
        s->head.scale = conf->traits->head_scale;
        s->head.softcap = conf->traits->head_softcap;
        r = stage_norm_load(b, t[OUTPUT_NORM], t[OUTPUT_NORM_BIAS],
                            norm_if(conf->traits, !conf->traits->sum_norms), &s->head.norm);
        if (!r)
                r = stage_vector_load(b, t[OUTPUT_BIAS], &s->head.bias);
        if (!r && !s->shape.begins)
                r = stage_give_head(s, head_tensor(conf->tensors, &s->shape), conf->list, conf->why,
                                    conf->why_bytes);
        return error_pass(r);
}

static int pools_open(struct stage *s, const struct stage_conf *conf)
{
        int r = 0;

        assert(!conf->model->windows || !conf->model->swap_blocks);
        for (uint32_t pool = 0; !r && pool < KV_POOLS_MAX; pool++) {
                struct kv_shape shape = kv_shape(conf->traits, conf->model, &s->shape, pool);

                if (shape.layers)
                        r = s->kernels->kv_new(s->kernels, &shape, &s->pools[pool]);
        }
        return r;
}

static int buffers_open(struct building *b)
{
        const struct stage_conf *conf = b->conf;
        struct stage *s = b->stage;
        float **const buffers[FLOATS_N] = {
                [FLOATS_VECTORS] = &s->vectors,
                [FLOATS_X] = &s->x,
                [FLOATS_Q] = &s->q,
                [FLOATS_Y] = &s->y,
                [FLOATS_H] = &s->h,
                [FLOATS_INPUTS] = &s->inputs,
                [FLOATS_INPUT] = &s->input,
                [FLOATS_LOGITS] = &s->logits,
        };
        size_t floats[FLOATS_N];
        uint32_t count = floats_of(conf->traits, conf->model, &s->shape, floats);
        int r = 0;

        b->vectors_count = floats[FLOATS_VECTORS];
        b->scratch = calloc(stage_scratch_count(conf->traits), sizeof(*b->scratch));
        s->layers = calloc(s->shape.layers, sizeof(*s->layers));
        if (!b->scratch || !s->layers)
                r = -ENOMEM;
        for (uint32_t i = 0; !r && i < count; i++)
                if (floats[i])
                        r = s->kernels->floats_new(s->kernels, floats[i], buffers[i]);
        if (!r)
                r = pools_open(s, conf);
        if (r)
                return error_raise(errtext_set(
                        conf->why, conf->why_bytes, r,
                        "no memory for its activations and KV pool (kv_bytes)%s",
                        conf->model->swap_blocks ? ", or for the swap (swap_bytes)" : ""));
        return 0;
}

static int fill(struct building *b)
{
        struct stage *s = b->stage;
        int r;

        if ((r = buffers_open(b)) || (r = stage_ropes_open(b)) || (r = stage_slopes_open(b)) ||
            (r = ends_open(b)))
                return error_pass(r);
        for (uint32_t i = 0; i < s->shape.layers; i++) {
                r = layer_open(b, &s->layers[i], s->shape.first + i);
                if (r)
                        return error_pass(r);
        }
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
                .parallel = conf->traits->residual != RESIDUAL_SERIAL,
                .sum_norms = conf->traits->sum_norms,
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
                matrix_drop(k, s->layers[i].input_gate_matrix);
                matrix_drop(k, s->layers[i].input_matrix);
        }
        matrix_drop(k, s->embedding);
        matrix_drop(k, s->positions);
        matrix_drop(k, s->input_embedding);
        matrix_drop(k, s->input_projection);
        matrix_drop(k, s->head_matrix);
        floats_drop(k, s->vectors);
        floats_drop(k, s->x);
        floats_drop(k, s->q);
        floats_drop(k, s->y);
        floats_drop(k, s->h);
        floats_drop(k, s->inputs);
        floats_drop(k, s->input);
        floats_drop(k, s->logits);
        for (uint32_t pool = 0; pool < KV_POOLS_MAX; pool++)
                if (s->pools[pool])
                        k->kv_free(k, s->pools[pool]);
        free(s->layers);
        *s = (struct stage){ 0 };
}

static int layer_forward(struct stage *s, const struct layer *l)
{
        struct kernels *k = s->kernels;
        int r;

        if ((r = k->qkv(k, &l->qkv, s->q, s->x)) || (r = k->attend(k, &l->attend, s->y, s->q)) ||
            (s->parallel && (r = k->gate(k, &l->gate, s->h, s->x))) ||
            (r = k->project(k, &l->output, s->x, s->y)) ||
            (s->sum_norms && (r = k->renorm(k, &l->output_sum, s->x))) ||
            (!s->parallel && (r = k->gate(k, &l->gate, s->h, s->x))) ||
            (r = k->project(k, &l->down, s->x, s->h)) ||
            (s->sum_norms && (r = k->renorm(k, &l->down_sum, s->x))))
                return error_raise(r);
        return l->input_matrix ? error_pass(stage_input_add(s, l)) : 0;
}

/* Runs all operators of a step. */
static int forward(void *arg)
{
        struct stage *s = arg;
        struct kernels *k = s->kernels;
        int r = 0;

        if (s->shape.begins && (r = k->embed(k, &s->embed, s->x)))
                return error_raise(r);
        if (s->input_embedding && (r = stage_inputs_make(s)))
                return error_pass(r);
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

bool stage_back_pool(struct stage *s, uint32_t pool, size_t *at)
{
        return s->kernels->kv_back && s->pools[pool] &&
               s->kernels->kv_back(s->kernels, s->pools[pool], at);
}

uint64_t stage_swap_copy_ns(struct stage *s)
{
        uint64_t ns = 0;

        for (uint32_t pool = 0; pool < KV_POOLS_MAX; pool++)
                if (s->pools[pool])
                        ns += s->kernels->kv_copy_ns(s->kernels, s->pools[pool]);
        return ns;
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
        int r = k->step_begin(k, s->pools, step);

        if (r < 0)
                return error_raise(r);
        if (r != STEP_REPLAYED && (r = forward(s)))
                return error_pass(r);
        r = k->step_end(k);
        return r ? error_raise(r) : 0;
}
