/*
 * Heads lie one after the other in a row of results: those of q, then of k, then of v. A pair of
 * numbers (a, b) of a head is rotated by angle = position * frequency:
 *
 *      a' = a cos - b sin
 *      b' = a sin + b cos
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/convert.h"
#include "kernels/ref/ref.h"

static void rope_turn(const struct rope *rope, double *head, uint32_t position)
{
        uint32_t pairs = rope->dims / 2;

        for (uint32_t i = 0; i < pairs; i++) {
                double angle = (double)position * rope->frequency[i];
                double c = cos(angle) * rope->factor, s = sin(angle) * rope->factor;
                double *a, *b, turned;

                if (rope->pairing == ROPE_ADJACENT) {
                        a = &head[2 * i];
                        b = &head[2 * i + 1];
                } else {
                        a = &head[i];
                        b = &head[i + pairs];
                }
                turned = *a * c - *b * s;
                *b = *a * s + *b * c;
                *a = turned;
        }
}

/* For `count` heads of q, of k or of v. */
static void heads_norm(const struct qkv *op, double *heads, uint32_t count,
                       enum head_norm_span span, const struct row_norm *norm)
{
        struct row_norm own = *norm;

        if (span == SPAN_WHOLE) {
                ref_norm(heads, norm, count * op->head_dim);
                return;
        }
        for (uint32_t h = 0; h < count; h++) {
                size_t at = (size_t)h * op->head_dim;

                if (span == SPAN_HEADS) {
                        own.weight = norm->weight ? norm->weight + at : NULL;
                        own.bias = norm->bias ? norm->bias + at : NULL;
                }
                ref_norm(heads + at, &own, op->head_dim);
        }
}

static void heads_finish(const struct qkv *op, double *heads, uint32_t count,
                         const struct row_norm *norm, uint32_t position)
{
        heads_norm(op, heads, count, op->span, norm);
        for (uint32_t h = 0; h < count; h++)
                rope_turn(&op->rope, heads + (size_t)h * op->head_dim, position);
}

static double query_factor(const struct qkv *op, uint32_t position)
{
        return op->query_beta != 0
                       ? 1 + op->query_beta * log(1 + floor((double)position / op->query_length))
                       : 1;
}

/* KV_INT8 and KV_FP8, exactly as page.h defines them. */
static void bytes_put(const struct kv *kv, uint8_t *tile, uint32_t line, const double *head)
{
        bool is_fp8 = kv->shape.type == KV_FP8;
        uint32_t dim = kv->shape.head_dim;
        uint8_t *to = tile + (size_t)line * dim;
        bool finite = true;
        float most = 0, scale;

        for (uint32_t i = 0; i < dim; i++) {
                finite = finite && isfinite((float)head[i]);
                most = fmaxf(most, fabsf((float)head[i]));
        }
        scale = finite ? most / (is_fp8 ? 448 : 127) : NAN;
        if (scale < FLT_MIN)
                scale = 0;
        kv_scales(kv, tile)[line] = scale;
        for (uint32_t i = 0; i < dim; i++) {
                float number = scale > 0 ? (float)head[i] / scale : 0;

                to[i] = is_fp8 ? float_to_e4m3(number) : (uint8_t)(int8_t)rintf(number);
        }
}

/* Writes `head` as line `line` of a tile. */
static void tile_put(const struct kv *kv, uint8_t *tile, uint32_t line, const double *head)
{
        size_t at = (size_t)line * kv->shape.head_dim;

        if (KV_HAS_SCALES(kv->shape.type)) {
                bytes_put(kv, tile, line, head);
                return;
        }
        for (uint32_t i = 0; i < kv->shape.head_dim; i++) {
                float number = (float)head[i];

                if (kv->shape.type == KV_F32)
                        ((float *)tile)[at + i] = number;
                else
                        ((uint16_t *)tile)[at + i] = kv->shape.type == KV_F16
                                                             ? float_to_half(number)
                                                             : float_to_bfloat(number);
        }
}

static void row_put(const struct ref *ref, const struct qkv *op, const struct step_row *row,
                    const double *k, const double *v)
{
        uint32_t page = steps_page(&ref->steps, op->kv->shape.group, row->slot, row->position);
        uint32_t line = row->position % PAGE_POSITIONS;

        for (uint32_t h = 0; h < op->kv_heads; h++) {
                uint8_t *tile = kv_tile(op->kv, page, op->layer, h);

                tile_put(op->kv, tile, line, k + (size_t)h * op->head_dim);
                tile_put(op->kv, tile + op->kv->tile_bytes, line, v + (size_t)h * op->head_dim);
        }
}

/* `k` has the sums for k, and behind them those for v, if w has this part, or space for as many. */
static void kv_finish(const struct ref *ref, const struct qkv *op, const struct step_row *row,
                      double *k)
{
        size_t count = (size_t)op->kv_heads * op->head_dim;
        double *v = k + count;

        if (op->w->shape.parts == 2)
                memcpy(v, k, count * sizeof(*v));
        heads_norm(op, v, op->kv_heads, SPAN_HEAD, &op->v_norm);
        heads_finish(op, k, op->kv_heads, &op->k_norm, row->position);
        row_put(ref, op, row, k, v);
}

static void qkv_check(const struct ref *ref, const struct qkv *op)
{
        const struct matrix_shape *shape = &op->w->shape;
        const struct kv_shape *kv = &op->kv->shape;

        assert(ref->steps.running && shape->rows[0] == op->heads * op->head_dim);
        for (uint32_t part = 1; part < shape->parts; part++)
                assert(shape->rows[part] == op->kv_heads * op->head_dim);
        assert(op->layer < kv->layers && op->kv_heads == kv->kv_heads);
        assert(op->head_dim == kv->head_dim);
        assert(op->rope.dims <= op->head_dim && op->rope.dims % 2 == 0);
        assert(op->query_beta == 0 || op->query_length);
}

/* One row of results, before norms. */
static void sums_make(struct ref *ref, const struct qkv *op, const float *x)
{
        uint32_t columns = op->w->shape.columns;

        ref_norm_row(ref->in, x, &op->norm, columns);
        for (uint32_t i = 0; i < op->w->rows; i++) {
                double sum = ref_dot(op->w->w + (size_t)i * columns, ref->in, columns) +
                             (op->bias ? op->bias[i] : 0);

                if (op->clip > 0 && fabs(sum) > op->clip) /* NaN stays NaN */
                        sum = copysign(op->clip, sum);
                ref->sums[i] = sum;
        }
}

int ref_qkv(struct kernels *k, const struct qkv *op, float *q, const float *x)
{
        struct ref *ref = ref_of(k);
        size_t q_count = (size_t)op->heads * op->head_dim;
        double *sums = ref->sums;

        qkv_check(ref, op);
        for (uint32_t r = 0; r < ref->steps.step.row_count; r++) {
                const struct step_row *row = &ref->steps.step.rows[r];
                double factor = query_factor(op, row->position);

                sums_make(ref, op, x + (size_t)r * op->w->shape.columns);
                heads_finish(op, sums, op->heads, &op->q_norm, row->position);
                for (size_t i = 0; i < q_count; i++)
                        q[r * q_count + i] = (float)(sums[i] * factor);
                if (row->write && op->w->shape.parts > 1)
                        kv_finish(ref, op, row, sums + q_count);
        }
        return 0;
}
