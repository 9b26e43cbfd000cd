#include "kernels/cuda/heads.h"

#include "kernels/cuda/lane.h"

#define WARPS 4u

enum kind { HEAD_Q, HEAD_K, HEAD_V };

/* Where the numbers of a head go; NULL: nowhere. */
DEVICE uint16_t *place(const heads_args *a, uint32_t number, kind kind, uint32_t head)
{
        const seen_row *row = &a->view.rows[number];
        uint32_t page;
        uint8_t *tile;

        if (kind == HEAD_Q)
                return a->q + ((size_t)number * a->heads + head) * a->head_dim;
        if (!row->write)
                return nullptr;
        page = a->view.tables[(size_t)row->slot * a->view.pages_max +
                              row->position / PAGE_POSITIONS];
        tile = a->pages + page * a->page_bytes + head * 2 * a->tile_bytes;
        if (kind == HEAD_V)
                tile += a->tile_bytes;
        return (uint16_t *)tile + (size_t)(row->position % PAGE_POSITIONS) * a->head_dim;
}

DEVICE float normed(const float *x, const float *norm, float inverse, uint32_t i)
{
        return norm ? x[i] * inverse * norm[i] : x[i];
}

/* The pair's angle, less whole turns. */
DEVICE void turn(const rope *rope, uint32_t position, uint32_t pair, float *one, float *other)
{
        const double whole = 6.283185307179586;
        double angle = (double)position * (double)rope->frequency[pair];
        float sine, cosine, was = *one;

        sine_and_cosine((float)(angle - rint(angle / whole) * whole), &sine, &cosine);
        sine *= rope->factor;
        cosine *= rope->factor;
        *one = was * cosine - *other * sine;
        *other = was * sine + *other * cosine;
}

KERNEL(WARPS *LANES) finish_head(heads_args a)
{
        uint32_t number = blockIdx.y, head = blockIdx.x * WARPS + threadIdx.x / LANES;
        uint32_t lane = lane_number(), dims = 0, all = a.heads + 2 * a.kv_heads;
        kind kind = HEAD_Q;
        const float *x, *norm = a.q_norm;
        uint16_t *to;
        float inverse = 1;

        wait_for_predecessor();
        if (number >= a.view.counts->rows || head >= all)
                return;
        x = a.y + ((size_t)number * all + head) * a.head_dim;
        if (head >= a.heads) {
                head -= a.heads;
                kind = head < a.kv_heads ? HEAD_K : HEAD_V;
                head %= a.kv_heads;
                norm = kind == HEAD_K ? a.k_norm : nullptr;
        }
        to = place(&a, number, kind, head);
        if (!to)
                return;
        if (norm) {
                float squares = 0;

                for (uint32_t i = lane; i < a.head_dim; i += LANES)
                        squares += x[i] * x[i];
                inverse = 1 / sqrtf(lanes_sum(squares) / (float)a.head_dim + a.eps);
        }
        if (kind != HEAD_V)
                dims = a.turns.dims;
        for (uint32_t pair = lane; pair < dims / 2; pair += LANES) {
                bool halves = a.turns.pairing == ROPE_HALVES;
                uint32_t i = halves ? pair : 2 * pair, j = halves ? pair + dims / 2 : i + 1;
                float one = normed(x, norm, inverse, i), other = normed(x, norm, inverse, j);

                turn(&a.turns, a.view.rows[number].position, pair, &one, &other);
                to[i] = (uint16_t)two_halves(one, 0);
                to[j] = (uint16_t)two_halves(other, 0);
        }
        for (uint32_t i = dims + lane; i < a.head_dim; i += LANES)
                to[i] = (uint16_t)two_halves(normed(x, norm, inverse, i), 0);
}

int heads(device *device, const heads_args *args)
{
        uint32_t all = args->heads + 2 * args->kv_heads;
        const launch launch = {
                (all + WARPS - 1) / WARPS, args->view.rows_max, 1, WARPS * LANES, 0, true
        };

        return device_launch(device, STREAM_STEPS, launch, finish_head, *args);
}
