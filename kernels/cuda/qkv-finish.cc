#include "kernels/cuda/qkv-finish.h"

#include <assert.h>

#include "kernels/cuda/row-norm.h"

#define WARPS     4u
#define SCALE_NAN 0x7fc00000u /* as in page.h */

enum kind { HEAD_Q, HEAD_K, HEAD_V };

/* Where a head is stored; if `numbers` is NULL, it is not stored. */
struct target {
        void *numbers;
        float *scale; /* only where numbers are bytes */
};

template <kv_type T>
DEVICE target target_of(const qkv_finish_args *a, uint32_t number, kind kind, uint32_t head)
{
        const view_row *row = &a->view.rows[number];
        uint32_t page, line = row->position % PAGE_POSITIONS;
        uint8_t *tile;

        if (kind == HEAD_Q)
                return { a->q + ((size_t)number * a->heads + head) * a->head_dim, nullptr };
        if (!row->write)
                return {};
        page = a->view.tables[(size_t)row->slot * a->view.pages_max +
                              row->position / PAGE_POSITIONS];
        tile = a->pages + page * a->page_bytes + head * 2 * a->tile_bytes;
        if (kind == HEAD_V)
                tile += a->tile_bytes;
        if (!KV_HAS_SCALES(T))
                return { (uint16_t *)tile + (size_t)line * a->head_dim, nullptr };
        return { tile + (size_t)line * a->head_dim,
                 (float *)(tile + (size_t)PAGE_POSITIONS * a->head_dim) + line };
}

/* The numbers of a head as a product left them, and what a warp needs to finish them. */
struct source {
        const float *x;
        float limit; /* of the clip */
        row_norm norm;
        row_moments moments;
        float factor; /* of the finished numbers */
};

/* The norm of that head alone. */
DEVICE row_norm norm_of(const qkv_finish_args *a, kind kind, uint32_t head)
{
        row_norm norm = kind == HEAD_Q ? a->q_norm : kind == HEAD_K ? a->k_norm : a->v_norm;
        head_norm_span span = kind == HEAD_V ? SPAN_HEAD : a->span;
        uint32_t at = span == SPAN_HEADS ? head * a->head_dim : 0;

        if (span == SPAN_WHOLE || norm.kind == NORM_NONE)
                return {};
        norm.weight = norm.weight ? norm.weight + at : nullptr;
        norm.bias = norm.bias ? norm.bias + at : nullptr;
        return norm;
}

/* All lanes call this. */
DEVICE row_moments moments_of(const source &from, uint32_t count)
{
        row_moments row = { 0, 1 };
        float sum = 0, squares = 0;

        if (from.norm.kind == NORM_NONE)
                return row;
        if (from.norm.kind == NORM_LAYER) {
                for (uint32_t i = lane_number(); i < count; i += LANES)
                        sum += clipped(from.x[i], from.limit);
                row.mean = warp_sum(sum) / (float)count;
        }
        for (uint32_t i = lane_number(); i < count; i += LANES) {
                float off = clipped(from.x[i], from.limit) - row.mean;

                squares += off * off;
        }
        row.inverse = inverse_of(warp_sum(squares), count, from.norm.eps);
        return row;
}

DEVICE float query_factor(const qkv_finish_args *a, uint32_t position)
{
        if (a->query_beta == 0)
                return 1;
        return 1 + a->query_beta * logf(1 + (float)(position / a->query_length));
}

DEVICE source source_of(const qkv_finish_args *a, const float *x, uint32_t number, kind kind,
                        uint32_t head)
{
        bool is_clipped = kind != HEAD_V && a->span == SPAN_WHOLE;
        source from = { x, limit_of(is_clipped ? 0 : a->clip), norm_of(a, kind, head), {}, 1 };

        from.moments = moments_of(from, a->head_dim);
        if (kind == HEAD_Q)
                from.factor = query_factor(a, a->view.rows[number].position);
        return from;
}

/* Number i, before it is rotated. */
DEVICE float number_of(const source &from, uint32_t i)
{
        return normed(from.norm, from.moments, clipped(from.x[i], from.limit), i);
}

/* Rotates a pair by its angle; whole turns are subtracted from the angle first. */
DEVICE void rotate(const rope *rope, uint32_t position, uint32_t pair, float *one, float *other)
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

/* Stores a number.  Where pages have bytes, K and V are staged in shared memory. */
template <kv_type T> DEVICE void put(void *to, float *staged, uint32_t i, float x)
{
        if (KV_HAS_SCALES(T) && staged)
                staged[i] = x;
        else
                ((uint16_t *)to)[i] =
                        (uint16_t)(T == KV_BF16 ? two_bfloats(x, 0) : two_halves(x, 0));
}

/* The E4M3 byte of a number that is at most 464: rounds to nearest, ties to even. */
DEVICE uint32_t e4m3_of(float x)
{
        uint32_t sign = bits_of(x) >> 24 & 0x80, rest = bits_of(x) & 0x7fffffff;

        /* below 2^-6 the numbers are multiples of 2^-9; adding 2^14 rounds a float to these */
        if (rest < 0x3c800000)
                return sign | (bits_of(float_of(rest) + 0x1p14f) - 0x46800000);
        return sign | (rest - 0x3c000000 + 0x7ffff + (rest >> 20 & 1)) >> 20;
}

template <kv_type T> DEVICE uint32_t byte_of(float x)
{
        return T == KV_FP8 ? e4m3_of(x) : (uint32_t)(int)rintf(x) & 0xff;
}

/*
 * A warp converts the numbers that its lanes have put into shared memory to bytes, as page.h
 * describes.
 */
template <kv_type T> DEVICE void put_bytes(const target *to, const float *staged, uint32_t count)
{
        const float top = T == KV_FP8 ? 448 : 127;
        /* Without their signs, floats have the same order as their bits, with NaN last. */
        uint32_t most = 0;
        float scale;

        warp_sync();
        for (uint32_t i = lane_number(); i < count; i += LANES) {
                uint32_t size = bits_of(staged[i]) & 0x7fffffff;

                most = size > most ? size : most;
        }
        for (unsigned bits = LANES / 2; bits; bits /= 2) {
                uint32_t other = shuffle_xor(most, bits);

                most = other > most ? other : most;
        }
        scale = divide(float_of(most), top);
        if (scale < 0x1p-126f)
                scale = 0;
        if (most >= 0x7f800000)
                /* Set after the division, because a GPU's division makes another NaN. */
                scale = float_of(SCALE_NAN);
        for (uint32_t i = lane_number() * 4; i < count; i += LANES * 4) {
                uint32_t four = 0;

                for (unsigned x = 0; scale > 0 && x < 4; x++)
                        four |= byte_of<T>(staged[i + x] / scale) << x * 8;
                *(uint32_t *)((uint8_t *)to->numbers + i) = four;
        }
        if (!lane_number())
                *to->scale = scale;
}

/* Of a multiprocessor: as many as registers allow without spills. */
#define BLOCKS 9

template <kv_type T> KERNEL(WARPS *LANES, BLOCKS) finish_head(qkv_finish_args a)
{
        uint32_t number = blockIdx.y, head = blockIdx.x * WARPS + threadIdx.x / LANES;
        uint32_t lane = lane_number(), dims = 0, all = a.heads + 2 * a.kv_heads, at;
        kind kind = HEAD_Q;
        const float *x;
        float *staged = nullptr;
        source from;
        target to;

        wait_for_predecessor();
        if (number >= a.view.counts->rows || head >= all)
                return;
        at = head;
        if (head >= a.heads) {
                head -= a.heads;
                kind = head < a.kv_heads ? HEAD_K : HEAD_V;
                head %= a.kv_heads;
                at = (kind == HEAD_K ? a.k_at : a.v_at) + head;
        }
        x = a.y + ((size_t)number * all + at) * a.head_dim;
        to = target_of<T>(&a, number, kind, head);
        if (!to.numbers)
                return;
        if (KV_HAS_SCALES(T) && kind != HEAD_Q)
                staged = (float *)shared() + threadIdx.x / LANES * a.head_dim;
        from = source_of(&a, x, number, kind, head);
        if (kind != HEAD_V)
                dims = a.rotation.dims;
        for (uint32_t pair = lane; pair < dims / 2; pair += LANES) {
                bool halves = a.rotation.pairing == ROPE_HALVES;
                uint32_t i = halves ? pair : 2 * pair, j = halves ? pair + dims / 2 : i + 1;
                float one = number_of(from, i), other = number_of(from, j);

                rotate(&a.rotation, a.view.rows[number].position, pair, &one, &other);
                put<T>(to.numbers, staged, i, one * from.factor);
                put<T>(to.numbers, staged, j, other * from.factor);
        }
        for (uint32_t i = dims + lane; i < a.head_dim; i += LANES)
                put<T>(to.numbers, staged, i, number_of(from, i) * from.factor);
        if (KV_HAS_SCALES(T) && staged)
                put_bytes<T>(&to, staged, a.head_dim);
}

int qkv_finish(device *device, const qkv_finish_args *args)
{
        uint32_t all = args->heads + 2 * args->kv_heads;
        launch launch = {
                (all + WARPS - 1) / WARPS, args->view.rows_max, 1, WARPS * LANES, 0, true
        };

        assert(args->type != KV_F32);
        if (KV_HAS_SCALES(args->type)) {
                launch.shared = WARPS * args->head_dim * sizeof(float);
                return device_launch(
                        device, STREAM_STEPS, launch,
                        args->type == KV_FP8 ? finish_head<KV_FP8> : finish_head<KV_INT8>, *args);
        }
        return device_launch(device, STREAM_STEPS, launch,
                             args->type == KV_BF16 ? finish_head<KV_BF16> : finish_head<KV_F16>,
                             *args);
}
