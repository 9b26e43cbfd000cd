/*
 * The forward pass, and what it stands on.
 *
 * A layer is five operator calls.  Everything about them that does not change
 * from step to step (weights, norms, shapes) is filled in once, at open, into
 * the operators' own descriptors; so running a layer is calling them in order,
 * the same calls every step, whatever the rows.
 *
 *      x        (rows, width)             the stream every layer adds to
 *      q, y     (rows, heads * head_dim)  queries; what attention found
 *      h        (rows, ffn)               the gated hidden numbers
 *      logits   (wanted rows, vocab)
 *
 * Norms, biases and rope frequencies lie in one run of floats, each at a line
 * of its own.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/model-shapes.h"
#include "daemon/engine/model.h"
#include "daemon/engine/tensors.h"
#include "daemon/engine/weights.h"
#include "daemon/why.h"
#include "daemon/error.h"

#define LOADS_MODEL    2u
#define LOADS_LAYER    7u
#define ROPE_TURNS_MAX 256u

struct layer {
        struct kernels *kernels;
        struct mat *qkv_mat, *output_mat, *gate_mat, *down_mat;
        struct qkv qkv;
        struct attend attend;
        struct linear output;
        struct gate gate;
        struct linear down;
};

struct model {
        struct traits traits;
        struct kernels *kernels; /* of what is not a layer */
        struct layer *layers;
        struct mat *embedding;
        struct mat *head_mat; /* NULL: tied */
        struct head head;
        struct rope rope;
        struct kv *kv;
        float *vectors;
        float *x, *q, *y, *h, *logits;
        uint32_t wants_max;
        const struct checkpoint *checkpoint; /* until it is loaded, these: */
        const struct tensor *output;         /* the head's tensor; NULL: tied, or seen to be */
        struct weights_load *loads;
        uint32_t load_count;
};

/* What only opening needs. */
struct opening {
        const struct checkpoint *checkpoint;
        const struct model_conf *conf;
        struct tensors tensors;
        float *scratch; /* a vector on its way */
        size_t vectors_used, vectors_count;
        char *why;
        size_t why_bytes;
};

static size_t vector_max(const struct traits *t)
{
        size_t n = q_columns(t) > t->width ? q_columns(t) : t->width;

        n = n > t->ffn ? n : t->ffn;
        return n > ROPE_TURNS_MAX ? n : ROPE_TURNS_MAX;
}

static float *vector_take(struct model *m, struct opening *o, size_t floats)
{
        float *vector = m->vectors + o->vectors_used;

        o->vectors_used += lines(floats);
        assert(o->vectors_used <= o->vectors_count);
        return vector;
}

/* Out of the scratch. */
static int vector_send(struct model *m, struct opening *o, float *to, size_t count)
{
        int r = m->kernels->put(m->kernels, to, o->scratch, count);

        return r ? error_raise(why_say(o->why, o->why_bytes, r,
                                       "its vectors did not get into the backend: %s",
                                       strerror(-r)))
                 : 0;
}

static int vector_put(struct model *m, struct opening *o, const struct tensor *tensor, float *to)
{
        int r = weights_read_floats(o->checkpoint, tensor, o->scratch, o->why, o->why_bytes);

        if (r)
                return error_pass(r);
        return vector_send(m, o, to, tensor->columns);
}

/* The next vector, from this tensor; NULL if there is none. */
static int vector_load(struct model *m, struct opening *o, const struct tensor *tensor,
                       const float **ret_vector)
{
        float *vector;
        int r;

        if (!tensor)
                return 0;
        vector = vector_take(m, o, tensor->columns);
        r = vector_put(m, o, tensor, vector);
        if (r)
                return error_pass(r);
        *ret_vector = vector;
        return 0;
}

/* Of stacked matrices.  One of the parts may be there alone: the others are zeros. */
static int biases_load(struct model *m, struct opening *o, const struct tensor *const *parts,
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
        bias = vector_take(m, o, count);
        *ret_bias = bias;
        for (uint32_t i = 0; i < part_count; bias += columns[i++]) {
                r = parts[i] ? vector_put(m, o, parts[i], bias) : 0;
                if (r)
                        return error_pass(r);
        }
        return 0;
}

/* A matrix of stacked tensors, to be loaded with all the others. */
static int mat_make(struct model *m, const struct tensor *const *parts, uint32_t part_count,
                    struct mat **ret_mat, char *why, size_t why_bytes)
{
        const struct mat_shape shape = mat_shape(parts, part_count);
        struct kernels *k = m->kernels;
        struct mat *mat;
        int r;

        r = k->mat_new(k, &shape, &mat);
        if (r)
                return error_raise(why_say(why, why_bytes, r,
                                           "no room for the matrix of tensor '%s'",
                                           shown(parts[0]->name).text));
        for (uint32_t i = 0; i < part_count; i++)
                m->loads[m->load_count++] = (struct weights_load){ parts[i], mat, i };
        *ret_mat = mat;
        return 0;
}

static int rope_table_check(struct opening *o, const float *table, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if (!(table[i] > 0) || !isfinite(table[i]))
                        return error_raise(why_say(o->why, o->why_bytes, -EINVAL,
                                                   "tensor 'rope_freqs.weight': factor %u is %g", i,
                                                   (double)table[i]));
        return 0;
}

static int rope_open(struct model *m, struct opening *o)
{
        const struct tensor *table = o->tensors.at[ROPE_FREQS];
        const struct rope_shape *shape = &m->traits.rope;
        float *frequency = vector_take(m, o, shape->dims / 2);
        int r;

        assert(shape->dims / 2 <= ROPE_TURNS_MAX);
        if (table) {
                r = weights_read_floats(o->checkpoint, table, o->scratch, o->why, o->why_bytes);
                if (!r)
                        r = rope_table_check(o, o->scratch, shape->dims / 2);
                if (r)
                        return error_pass(r);
        }
        rope_frequencies(shape, table ? o->scratch : NULL, o->scratch);
        r = vector_send(m, o, frequency, shape->dims / 2);
        if (r)
                return error_pass(r);
        m->rope = (struct rope){
                .dims = shape->dims,
                .pairing = shape->pairing,
                .frequency = frequency,
                .factor = (float)shape->attention,
        };
        return 0;
}

static int attention_open(struct model *m, struct opening *o, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &o->tensors.layers[layer];
        const struct traits *traits = &m->traits;
        const uint32_t q = q_columns(traits), kv = kv_columns(traits);
        int r;

        if ((r = mat_make(m, &t->at[ATTN_Q], 3, &l->qkv_mat, o->why, o->why_bytes)) ||
            (r = mat_make(m, &t->at[ATTN_OUTPUT], 1, &l->output_mat, o->why, o->why_bytes)) ||
            (r = vector_load(m, o, t->at[ATTN_NORM], &l->qkv.norm)) ||
            (r = vector_load(m, o, t->at[ATTN_Q_NORM], &l->qkv.q_norm)) ||
            (r = vector_load(m, o, t->at[ATTN_K_NORM], &l->qkv.k_norm)) ||
            (r = vector_load(m, o, t->at[ATTN_OUTPUT_BIAS], &l->output.bias)) ||
            (r = biases_load(m, o, &t->at[ATTN_Q_BIAS], (uint32_t[]){ q, kv, kv }, 3,
                             &l->qkv.bias)))
                return error_pass(r);
        l->qkv.w = l->qkv_mat;
        l->qkv.eps = traits->eps;
        l->qkv.rope = m->rope;
        l->qkv.kv = m->kv;
        l->qkv.layer = layer;
        l->qkv.heads = traits->heads;
        l->qkv.kv_heads = traits->kv_heads;
        l->qkv.head_dim = traits->head_dim;
        l->attend = (struct attend){
                .kv = m->kv,
                .layer = layer,
                .heads = traits->heads,
                .kv_heads = traits->kv_heads,
                .head_dim = traits->head_dim,
                .scale = traits->attend_scale,
                .softcap = traits->attend_softcap,
                .window = window_of(traits, layer),
        };
        l->output.w = l->output_mat;
        return 0;
}

static int ffn_open(struct model *m, struct opening *o, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &o->tensors.layers[layer];
        const uint32_t ffn = m->traits.ffn;
        int r;

        if ((r = mat_make(m, &t->at[FFN_GATE], 2, &l->gate_mat, o->why, o->why_bytes)) ||
            (r = mat_make(m, &t->at[FFN_DOWN], 1, &l->down_mat, o->why, o->why_bytes)) ||
            (r = vector_load(m, o, t->at[FFN_NORM], &l->gate.norm)) ||
            (r = vector_load(m, o, t->at[FFN_DOWN_BIAS], &l->down.bias)) ||
            (r = biases_load(m, o, &t->at[FFN_GATE_BIAS], (uint32_t[]){ ffn, ffn }, 2,
                             &l->gate.bias)))
                return error_pass(r);
        l->gate.w = l->gate_mat;
        l->gate.eps = m->traits.eps;
        l->gate.act = m->traits.act;
        l->down.w = l->down_mat;
        return 0;
}

static int ends_open(struct model *m, struct opening *o)
{
        const struct tensor *const *t = o->tensors.at;
        int r;

        r = mat_make(m, &t[TOKEN_EMBD], 1, &m->embedding, o->why, o->why_bytes);
        if (!r)
                r = vector_load(m, o, t[OUTPUT_NORM], &m->head.norm);
        if (r)
                return error_pass(r);
        m->output = t[OUTPUT];
        m->head.w = m->embedding;
        m->head.eps = m->traits.eps;
        m->head.softcap = m->traits.head_softcap;
        return 0;
}

static int buffers_open(struct model *m, struct opening *o)
{
        struct kv_shape shape = kv_shape(&m->traits, o->conf);
        struct kernels *k = m->kernels;
        size_t floats[FLOATS_N];
        int r;

        floats_of(&m->traits, o->conf, floats);
        o->vectors_count = floats[FLOATS_VECTORS];
        o->scratch = calloc(vector_max(&m->traits), sizeof(*o->scratch));
        m->loads = calloc(LOADS_MODEL + (size_t)m->traits.layers * LOADS_LAYER, sizeof(*m->loads));
        m->layers = calloc(m->traits.layers, sizeof(*m->layers));
        if (!o->scratch || !m->loads || !m->layers)
                r = -ENOMEM;
        else if (!(r = k->floats_new(k, floats[FLOATS_VECTORS], &m->vectors)) &&
                 !(r = k->floats_new(k, floats[FLOATS_X], &m->x)) &&
                 !(r = k->floats_new(k, floats[FLOATS_Q], &m->q)) &&
                 !(r = k->floats_new(k, floats[FLOATS_Y], &m->y)) &&
                 !(r = k->floats_new(k, floats[FLOATS_H], &m->h)) &&
                 !(r = k->floats_new(k, floats[FLOATS_LOGITS], &m->logits)))
                r = k->kv_new(k, &shape, &m->kv);
        if (r)
                return error_raise(why_say(o->why, o->why_bytes, r,
                                           "no memory for its activations and KV pool"));
        return 0;
}

static int model_fill(struct model *m, struct opening *o)
{
        int r;

        if ((r = tensors_find(o->checkpoint, &m->traits, &o->tensors, o->why, o->why_bytes)) ||
            (r = buffers_open(m, o)) || (r = rope_open(m, o)) || (r = ends_open(m, o)))
                return error_pass(r);
        for (uint32_t i = 0; i < m->traits.layers; i++) {
                m->layers[i].kernels = m->kernels;
                if ((r = attention_open(m, o, &m->layers[i], i)) ||
                    (r = ffn_open(m, o, &m->layers[i], i)))
                        return error_pass(r);
        }
        return 0;
}

int model_open(const struct checkpoint *checkpoint, const struct traits *traits,
               struct kernels *kernels, const struct model_conf *conf, struct model **ret_model,
               char *why, size_t why_bytes)
{
        struct opening o = {
                .checkpoint = checkpoint, .conf = conf, .why = why, .why_bytes = why_bytes
        };
        struct model *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return error_raise(why_say(why, why_bytes, -ENOMEM, "no memory for its tensors"));
        m->traits = *traits;
        m->kernels = kernels;
        m->checkpoint = checkpoint;
        m->wants_max = conf->wants_max;
        r = model_fill(m, &o);
        tensors_deinit(&o.tensors);
        free(o.scratch);
        if (r) {
                model_close(m);
                return error_pass(r);
        }
        *ret_model = m;
        return 0;
}

uint64_t model_to_load(const struct model *m)
{
        uint64_t bytes = m->output ? m->output->bytes : 0;

        for (uint32_t i = 0; i < m->load_count; i++)
                bytes += m->loads[i].tensor->bytes;
        return bytes;
}

/* A copy of the embedding that says the same is not loaded; one that differs is believed. */
static int head_load(struct model *m, const struct weights_conf *conf, char *why, size_t why_bytes)
{
        const struct tensor *embedding = NULL;
        int r;

        for (uint32_t i = 0; i < m->load_count; i++)
                if (m->loads[i].mat == m->embedding)
                        embedding = m->loads[i].tensor;
        r = weights_equal(m->checkpoint, embedding, m->output, conf, why, why_bytes);
        if (!r)
                r = mat_make(m, &m->output, 1, &m->head_mat, why, why_bytes);
        if (r < 0)
                return error_pass(r);
        if (m->head_mat)
                m->head.w = m->head_mat;
        m->output = NULL;
        return 0;
}

static void mat_drop(struct kernels *k, struct mat *mat)
{
        if (mat)
                k->mat_free(k, mat);
}

static void floats_drop(struct kernels *k, float *floats)
{
        if (floats)
                k->floats_free(k, floats);
}

struct model *model_close(struct model *m)
{
        if (!m)
                return NULL;
        for (uint32_t i = 0; m->layers && i < m->traits.layers; i++) {
                struct layer *l = &m->layers[i];

                mat_drop(l->kernels, l->qkv_mat);
                mat_drop(l->kernels, l->output_mat);
                mat_drop(l->kernels, l->gate_mat);
                mat_drop(l->kernels, l->down_mat);
        }
        mat_drop(m->kernels, m->embedding);
        mat_drop(m->kernels, m->head_mat);
        floats_drop(m->kernels, m->vectors);
        floats_drop(m->kernels, m->x);
        floats_drop(m->kernels, m->q);
        floats_drop(m->kernels, m->y);
        floats_drop(m->kernels, m->h);
        floats_drop(m->kernels, m->logits);
        if (m->kv)
                m->kernels->kv_free(m->kernels, m->kv);
        free(m->loads);
        free(m->layers);
        free(m);
        return NULL;
}

static int layer_forward(struct model *m, const struct layer *l)
{
        struct kernels *k = l->kernels;
        int r;

        if ((r = k->qkv(k, &l->qkv, m->q, m->x)) || (r = k->attend(k, &l->attend, m->y, m->q)) ||
            (r = k->project(k, &l->output, m->x, m->y)) || (r = k->gate(k, &l->gate, m->h, m->x)) ||
            (r = k->project(k, &l->down, m->x, m->h)))
                return error_raise(r);
        return 0;
}

/* All operators of a step. */
static int forward(void *arg)
{
        struct model *m = arg;
        struct kernels *k = m->kernels;
        int r = k->embed(k, m->embedding, m->traits.embed_scale, m->x);

        if (r)
                return error_raise(r);
        for (uint32_t i = 0; i < m->traits.layers; i++) {
                r = layer_forward(m, &m->layers[i]);
                if (r)
                        return error_pass(r);
        }
        if ((r = k->head(k, &m->head, m->logits, m->x)) ||
            (r = k->pick(k, m->logits, m->traits.vocab)))
                return error_raise(r);
        return 0;
}

int model_load(struct model *m, const struct weights_conf *conf, enum load_way *ret_way, char *why,
               size_t why_bytes)
{
        int r = m->output ? head_load(m, conf, why, why_bytes) : 0;

        if (!r)
                r = weights_read(m->checkpoint, m->kernels, m->loads, m->load_count, conf, ret_way,
                                 why, why_bytes);
        if (r)
                return error_pass(r);
        m->load_count = 0;
        if (!m->kernels->rehearse)
                return 0;
        r = m->kernels->rehearse(m->kernels, forward, m);
        if (r)
                return error_raise(why_say(why, why_bytes, r,
                                           "the backend cannot make ready what a step needs"));
        return 0;
}

int model_forward(struct model *m, const struct step *step)
{
        struct kernels *k = m->kernels;
        int r;

        assert(step->want_count <= m->wants_max);
        r = k->step_begin(k, m->kv, step);
        if (r < 0)
                return error_raise(r);
        if (r != STEP_REHEARSED && (r = forward(m)))
                return error_pass(r);
        r = k->step_end(k);
        return r ? error_raise(r) : 0;
}

int model_collect(struct model *m, uint64_t number, uint32_t *ret_tokens)
{
        int r = m->kernels->collect(m->kernels, number, ret_tokens);

        return r ? error_raise(r) : 0;
}

void model_logprobs(struct model *m, uint64_t number, uint32_t want, struct logprob *ret_logprobs)
{
        m->kernels->logprobs(m->kernels, number, want, ret_logprobs);
}

const char *model_lost(const struct model *m)
{
        return m->kernels->lost(m->kernels);
}

void model_logits(struct model *m, uint32_t want, float *ret_logits)
{
        assert(want < m->wants_max);
        m->kernels->get(m->kernels, ret_logits, m->logits + (size_t)want * m->traits.vocab,
                        m->traits.vocab);
}
