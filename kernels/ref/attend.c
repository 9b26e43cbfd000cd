/*
 * One row and one head at a time: all scores, their softmax, the weighted sum of values. Hidden
 * positions are not read at all. So their contents, NaN included, cannot reach a result, and
 * pages that lie wholly behind a window need not exist any more.
 */
#include <math.h>

#include "kernels/convert.h"
#include "kernels/ref/ref.h"

static double tile_get(const struct kv *kv, const uint8_t *tile, uint32_t line, uint32_t i)
{
        size_t at = (size_t)line * kv->shape.head_dim + i;

        switch (kv->shape.type) {
        case KV_F16:
                return half_to_float(((const uint16_t *)tile)[at]);
        case KV_BF16:
                return bfloat_to_float(((const uint16_t *)tile)[at]);
        case KV_INT8:
                return (double)((const int8_t *)tile)[at] * kv_scales(kv, tile)[line];
        case KV_FP8:
                return (double)e4m3_to_float(tile[at]) * kv_scales(kv, tile)[line];
        case KV_F32:
                break;
        }
        return ((const float *)tile)[at];
}

static double score(const struct attend *op, const float *q, const uint8_t *tile, uint32_t line)
{
        double s = 0;

        for (uint32_t i = 0; i < op->head_dim; i++)
                s += q[i] * tile_get(op->kv, tile, line, i);
        s *= op->scale;
        return op->softcap > 0 ? op->softcap * tanh(s / op->softcap) : s;
}

static const uint8_t *k_tile(const struct ref *ref, const struct attend *op,
                             const struct step_row *row, uint32_t position, uint32_t head)
{
        return kv_tile(op->kv, steps_page(&ref->steps, op->kv->shape.group, row->slot, position),
                       op->layer, head / (op->heads / op->kv_heads));
}

static void attend_head(const struct ref *ref, const struct attend *op, const struct step_row *row,
                        uint32_t head, float *out, const float *q)
{
        uint32_t own = row->position, first = 0;
        double max = op->sinks ? op->sinks[head] : -INFINITY, sum;

        if (op->window && own >= op->window)
                first = own - op->window + 1;

        for (uint32_t p = first; p <= own; p++) {
                double *s = &ref->scores[p];

                *s = score(op, q, k_tile(ref, op, row, p, head), p % PAGE_POSITIONS);
                if (op->slopes)
                        *s += op->slopes[head] * ((double)p - own);
                max = fmax(max, *s);
        }

        sum = op->sinks ? exp(op->sinks[head] - max) : 0;
        for (uint32_t p = first; p <= own; p++) {
                ref->scores[p] = exp(ref->scores[p] - max);
                sum += ref->scores[p];
        }

        for (uint32_t i = 0; i < op->head_dim; i++) {
                double value = 0;

                for (uint32_t p = first; p <= own; p++)
                        value +=
                                ref->scores[p] *
                                tile_get(op->kv, k_tile(ref, op, row, p, head) + op->kv->tile_bytes,
                                         p % PAGE_POSITIONS, i);
                out[i] = (float)(value / sum);
        }
}

int ref_attend(struct kernels *k, const struct attend *op, float *out, const float *q)
{
        const struct ref *ref = ref_of(k);
        const struct kv_shape *kv = &op->kv->shape;

        assert(ref->steps.running && op->layer < kv->layers);
        assert(op->kv_heads == kv->kv_heads && op->head_dim == kv->head_dim);
        assert(op->heads % op->kv_heads == 0);
        for (uint32_t r = 0; r < ref->steps.step.row_count; r++) {
                for (uint32_t h = 0; h < op->heads; h++) {
                        size_t at = ((size_t)r * op->heads + h) * op->head_dim;

                        attend_head(ref, op, &ref->steps.step.rows[r], h, out + at, q + at);
                }
        }
        return 0;
}
