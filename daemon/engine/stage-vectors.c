#include "daemon/engine/stage-vectors.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/weights-rows.h"
#include "base/error.h"
#include "base/errtext.h"

static size_t larger(size_t a, size_t b)
{
        return a > b ? a : b;
}

size_t stage_scratch_count(const struct traits *t)
{
        size_t n = larger(q_columns_max(t), t->width);

        n = larger(larger(n, ffn_max(t)), t->layer_input);
        return larger(n, larger(t->vocab, ROPE_PAIRS_MAX));
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
int stage_vector_load(struct building *b, const struct tensor *tensor, const float **ret_vector)
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

/* A norm of these tensors.  Without its tensors it has no weights. */
int stage_norm_load(struct building *b, const struct tensor *weight, const struct tensor *bias,
                    enum norm_kind kind, struct row_norm *ret_norm)
{
        const struct traits *traits = b->conf->traits;
        float *vector;
        int r = 0;

        *ret_norm = (struct row_norm){ .kind = kind, .eps = traits->eps };
        if (weight) {
                r = rows_read_floats(b->conf->checkpoint, weight, b->scratch, b->conf->why,
                                     b->conf->why_bytes);
                if (r)
                        return error_pass(r);
                for (uint32_t i = 0; traits->norm_is_one_plus && i < weight->columns; i++)
                        b->scratch[i] += 1;
                ret_norm->weight = vector = vector_take(b, weight->columns);
                r = vector_send(b, vector, weight->columns);
        }
        if (!r)
                r = stage_vector_load(b, bias, &ret_norm->bias);
        return error_pass(r);
}

int stage_biases_load(struct building *b, const struct tensor *const *parts,
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

int stage_factor_read(struct building *b, const struct tensor *tensor, float *ret_factor)
{
        const struct stage_conf *conf = b->conf;
        int r = tensor ? rows_read_floats(conf->checkpoint, tensor, b->scratch, conf->why,
                                          conf->why_bytes)
                       : 0;

        if (r || !tensor)
                return error_pass(r);
        if (!isfinite(b->scratch[0]) || b->scratch[0] == 0)
                return error_raise(
                        errtext_set(conf->why, conf->why_bytes, -EINVAL,
                                    "tensor '%s' is %g, not a finite number other than 0",
                                    shown(tensor->name).text, (double)b->scratch[0]));
        *ret_factor = b->scratch[0];
        return 0;
}

static int rope_table_load(struct building *b, const struct tensor *table, uint32_t count,
                           float *ret_table)
{
        const struct stage_conf *conf = b->conf;
        int r = rows_read_floats(conf->checkpoint, table, ret_table, conf->why, conf->why_bytes);

        if (r)
                return error_pass(r);
        for (uint32_t i = 0; i < count; i++)
                if (!(ret_table[i] > 0) || !isfinite(ret_table[i]))
                        return error_raise(errtext_set(conf->why, conf->why_bytes, -EINVAL,
                                                       "tensor '%s': factor %u is %g, "
                                                       "not a finite number above 0",
                                                       shown(table->name).text, i,
                                                       (double)ret_table[i]));
        return 0;
}

/* LongRoPE's tables may be tensors. */
static int rope_tables_load(struct building *b, struct rope_shape *shape)
{
        const struct tensor *const *t = b->conf->tensors->at;
        int r = 0;

        if (t[ROPE_FACTORS_SHORT])
                r = rope_table_load(b, t[ROPE_FACTORS_SHORT], shape->dims / 2, shape->slower[0]);
        if (!r && t[ROPE_FACTORS_LONG])
                r = rope_table_load(b, t[ROPE_FACTORS_LONG], shape->dims / 2, shape->slower[1]);
        return error_pass(r);
}

/* The first set may have tables in tensors; `slower` is NULL for the others. */
static int rope_open(struct building *b, const struct rope_shape *shape, const float *slower,
                     struct rope *ret_rope)
{
        float *frequency = vector_take(b, shape->dims / 2);
        int r;

        rope_frequencies(shape, b->conf->model->context, slower, b->scratch);
        r = vector_send(b, frequency, shape->dims / 2);
        if (r)
                return error_pass(r);
        *ret_rope = (struct rope){
                .dims = shape->dims,
                .pairing = shape->pairing,
                .frequency = frequency,
                .factor = (float)shape->attention,
        };
        return 0;
}

int stage_ropes_open(struct building *b)
{
        const struct traits *traits = b->conf->traits;
        const struct tensor *table = b->conf->tensors->at[ROPE_FREQS];
        struct stage *s = b->stage;
        int r = 0;

        for (uint32_t i = 0; !r && i < traits->rope_count; i++) {
                struct rope_shape shape = traits->ropes[i];
                const float *slower = table && !i ? b->scratch : NULL;

                if (slower)
                        r = rope_table_load(b, table, shape.dims / 2, b->scratch);
                else if (!i)
                        r = rope_tables_load(b, &shape);
                if (!r)
                        r = rope_open(b, &shape, slower, &s->ropes[i]);
        }
        return error_pass(r);
}

/*
 * Slopes of ALiBi: a geometric series over the largest power of 2 of heads; the other heads take
 * every second slope of the series of twice as many.
 */
int stage_slopes_open(struct building *b)
{
        const struct traits *traits = b->conf->traits;
        const double scale = traits->alibi_is_scaled ? traits->attend_scale : 1;
        uint32_t power = 1;
        float *slopes;

        if (!(traits->alibi > 0))
                return 0;
        while (2 * power <= traits->heads)
                power *= 2;
        for (uint32_t i = 0; i < traits->heads; i++) {
                double steps = i < power ? i + 1 : i - power + 0.5;

                b->scratch[i] = (float)(scale * exp2(-traits->alibi / power * steps));
        }
        b->stage->slopes = slopes = vector_take(b, traits->heads);
        return error_pass(vector_send(b, slopes, traits->heads));
}

/* Row p of a sinusoidal table: sines of p times falling speeds, then their cosines. */
static void sinusoidal_row(const struct traits *traits, uint32_t position, float *ret_row)
{
        uint32_t half = traits->width / 2;

        for (uint32_t i = 0; i < half; i++) {
                double angle = position * exp(-log(10000) / (half - 1.0) * i);

                ret_row[i] = (float)sin(angle);
                ret_row[half + i] = (float)cos(angle);
        }
}

int stage_sinusoidal_put(struct building *b, uint32_t rows)
{
        struct kernels *k = b->stage->kernels;
        int r = 0;

        for (uint32_t i = 0; !r && i < rows; i++) {
                sinusoidal_row(b->conf->traits, i, b->scratch);
                r = k->weights_put(k, b->stage->positions, 0, i, 1, b->scratch);
        }
        return r ? error_raise(errtext_set(b->conf->why, b->conf->why_bytes, r,
                                           "the backend did not take its table of positions: %s",
                                           strerror(-r)))
                 : 0;
}
