#include "kernels/cuda/attend.h"

#include <assert.h>
#include <errno.h>

#include "kernels/cuda/attend-warp.h"

#define PAIRS         ATTEND_PAIRS
#define SLICE         PAGE_POSITIONS
#define SPLIT_SLICES  (ATTEND_SPLIT / SLICE)
#define WARPS_MAX     4u
#define PARTS_AT_ONCE 8u

/* ---- an item ---- */

struct items_job {
        attend_job op;
        const attend_list *list;
        float *parts;
        unsigned *arrived;
};

/* The block's shared data about the pairs of its tile. */
struct alignas(16) shared_pairs {
        float warp_most[WARPS_MAX][PAIRS], warp_sum[WARPS_MAX][PAIRS];
        float share[WARPS_MAX][PAIRS];    /* factors of the warps' sums */
        float most[PAIRS], sum[PAIRS];    /* over all splits so far */
        float keep[PARTS_AT_ONCE][PAIRS]; /* factors of the sums so far */
        float join[PARTS_AT_ONCE][PAIRS]; /* factors of the sums that are added */
        unsigned last;                    /* this block arrived last */
};

/*
 * The layout of shared memory.  A stage is a K tile and a share of a V tile, followed by their
 * scales.  With
 * 16-bit numbers a stage also has just enough room for 16 rows of floats.  So warps hand over
 * their sums in the stage that they are done with, while the next stages fill.  A stage of bytes
 * is too small for that.  So there is room for the sums after the ring, and q is there before.
 */
template <int D, kv_type T> struct sizes {
        static constexpr bool SMALL = KV_HAS_SCALES(T);
        static constexpr unsigned WARPS = D > 256 ? 1 : D > 128 ? 2 : WARPS_MAX;
        static constexpr unsigned THREADS = WARPS * LANES;
        static constexpr unsigned STAGES = D > 128 ? 2 : 3;
        /* Numbers of V that an item adds up. */
        static constexpr unsigned SHARE = row_chunks<D>::SHARE;
        static constexpr unsigned STAGE = kv_slice<D, T>::BYTES;
        static constexpr unsigned RING = STAGES * STAGE;
        /* Bytes of a warp's q, and of its sums. */
        static constexpr unsigned ROWS = SLICE * row_chunks<D>::BYTES;
        static constexpr unsigned SUMS = 2 * SLICE * row_chunks<SHARE>::BYTES;
        /* A quad is four floats of a tile's sums; each thread has ROUNDS of them. */
        static constexpr unsigned QUADS = PAIRS * SHARE / 4;
        static constexpr unsigned ROUNDS = (QUADS + THREADS - 1) / THREADS;
        /* In floats. */
        static constexpr unsigned PART = PAIRS * SHARE + 2 * PAIRS;
        static constexpr bool Q_IN_REGISTERS = row_chunks<D>::Q_IN_REGISTERS;
        static constexpr unsigned Q =
                SMALL ? RING + (Q_IN_REGISTERS ? 0 : SUMS) : RING - (Q_IN_REGISTERS ? STAGE : 0);
        static constexpr unsigned WARP = RING + (SMALL ? SUMS : 0) + (Q_IN_REGISTERS ? 0 : ROWS);
        static constexpr unsigned KEPT = WARPS * WARP + sizeof(shared_pairs);
        static constexpr unsigned SHARED = KEPT + (Q_IN_REGISTERS ? 0 : QUADS * 16);
};

/* Hands a warp's results over to the block: sums in `rows`, the rest in `pairs`. */
template <int D, kv_type T>
DEVICE void hand_over(running_softmax<D> *s, uint8_t *rows, shared_pairs *pairs)
{
        constexpr unsigned SHARE = sizes<D, T>::SHARE;
        unsigned g = lane_number() / 4, t = lane_number() % 4, warp = threadIdx.x / LANES;

        UNROLL
        for (unsigned i = 0; i < 2; i++) {
                unsigned row = g + i * 8;

                s->sum[i] += shuffle_xor(s->sum[i], 1);
                s->sum[i] += shuffle_xor(s->sum[i], 2);
                UNROLL
                for (unsigned d = 0; !KV_HAS_SCALES(T) && d < SHARE / 8; d++)
                        *(float2 *)(rows + chunk_at<SHARE>(row, d) * 32 +
                                    t * 8) = { s->sums[d][i * 2], s->sums[d][i * 2 + 1] };
                UNROLL
                for (unsigned d = 0; KV_HAS_SCALES(T) && d < SHARE / 8; d += 2)
                        *(float4 *)(rows + chunk_at<SHARE>(row, d + t / 2) * 32 +
                                    t % 2 * 16) = { s->sums[d][i * 2], s->sums[d + 1][i * 2],
                                                    s->sums[d][i * 2 + 1],
                                                    s->sums[d + 1][i * 2 + 1] };
                if (!t) {
                        pairs->warp_most[warp][row] = s->most[i];
                        pairs->warp_sum[warp][row] = s->sum[i];
                }
        }
        running_softmax_init(s);
}

DEVICE float4 scaled_sum(float4 a, float by, float4 b)
{
        return { fmaf(a.x, by, b.x), fmaf(a.y, by, b.y), fmaf(a.z, by, b.z), fmaf(a.w, by, b.w) };
}

DEVICE float4 scaled(float4 a, float by)
{
        return { a.x * by, a.y * by, a.z * by, a.w * by };
}

/* A thread's share of a tile's sums: round i belongs to quad i * THREADS + thread. */
template <int D, kv_type T> struct sums {
        float4 at[sizes<D, T>::Q_IN_REGISTERS ? sizes<D, T>::ROUNDS : 1];
};

template <int D, kv_type T> DEVICE float4 *sum_of(sums<D, T> *sums, unsigned i)
{
        using S = sizes<D, T>;

        if (S::Q_IN_REGISTERS)
                return &sums->at[i];
        return (float4 *)(shared() + S::KEPT) + i * S::THREADS + threadIdx.x;
}

/*
 * Joins a split with a pair's totals so far.  The caller applies the factors to the pair's sums.
 */
DEVICE void join_pair(shared_pairs *pairs, unsigned pair, float most, float sum, float *ret_keep,
                      float *ret_join)
{
        float top = fmaxf(pairs->most[pair], most);

        *ret_keep = exp2_fast(pairs->most[pair] - top);
        *ret_join = exp2_fast(most - top);
        pairs->most[pair] = top;
        pairs->sum[pair] = fmaf(pairs->sum[pair], *ret_keep, sum * *ret_join);
}

/* The first part of a cut tile, for the share of a KV head: head * SHARES + share is its place. */
template <int D>
DEVICE size_t first_part(const items_job *a, const attend_item *item, uint32_t place,
                         uint32_t splits)
{
        return (size_t)item->part * (a->op.kv_heads * row_chunks<D>::SHARES) +
               (size_t)place * splits;
}

/*
 * Where a split's sums are in memory: first the sums over V of all pairs, then the largest scores,
 * then the sums of weights.
 */
template <int D, kv_type T>
DEVICE float *part_at(const items_job *a, const attend_item *item, const tile *tile, uint32_t place,
                      uint32_t split)
{
        uint32_t first = tile->first / ATTEND_SPLIT, count = tile->last / ATTEND_SPLIT + 1 - first;
        size_t at = first_part<D>(a, item, place, count) + (split - first);

        return a->parts + at * sizes<D, T>::PART;
}

/*
 * All warps have handed over: their sums become the split's.  The split joins `kept`; or, if
 * `part` is not NULL, its sums wait there.
 */
template <int D, kv_type T>
DEVICE void join_split(shared_pairs *pairs, const tile *tile, const uint8_t *rows, float *part,
                       sums<D, T> *kept)
{
        using S = sizes<D, T>;
        unsigned thread = threadIdx.x;

        block_sync();
        if (thread < PAIRS) {
                float most = LOWEST_SCORE, sum = 0;

                for (unsigned w = 0; w < S::WARPS; w++)
                        most = fmaxf(most, pairs->warp_most[w][thread]);
                for (unsigned w = 0; w < S::WARPS; w++) {
                        float share = exp2_fast(pairs->warp_most[w][thread] - most);

                        pairs->share[w][thread] = share;
                        sum = fmaf(pairs->warp_sum[w][thread], share, sum);
                }
                if (!part) {
                        join_pair(pairs, thread, most, sum, &pairs->keep[0][thread],
                                  &pairs->join[0][thread]);
                } else if (thread < tile->pairs) {
                        part[PAIRS * S::SHARE + thread] = most;
                        part[PAIRS * S::SHARE + PAIRS + thread] = sum;
                }
        }
        block_sync();
        UNROLL
        for (unsigned i = 0; i < S::ROUNDS; i++) {
                unsigned x = i * S::THREADS + thread;
                unsigned row = x / (S::SHARE / 4), quad = x % (S::SHARE / 4);
                float4 sum = {};

                if (row >= tile->pairs)
                        continue;
                UNROLL
                for (unsigned w = 0; w < S::WARPS; w++) {
                        const uint8_t *at = rows + w * S::WARP +
                                            chunk_at<S::SHARE>(row, quad / 2) * 32 + quad % 2 * 16;

                        sum = scaled_sum(*(const float4 *)at, pairs->share[w][row], sum);
                }
                if (part)
                        ((float4 *)part)[x] = sum;
                else
                        *sum_of(kept, i) = scaled_sum(*sum_of(kept, i), pairs->keep[0][row],
                                                      scaled(sum, pairs->join[0][row]));
        }
        block_sync();
}

/* This block wrote its part of a tile.  Returns true if it is the last block to arrive. */
DEVICE bool is_last_block(shared_pairs *pairs, unsigned *arrived, uint32_t parts)
{
        memory_fence();
        block_sync();
        if (!threadIdx.x) {
                pairs->last = atomic_add(arrived, 1) == parts - 1;
                if (pairs->last)
                        *arrived = 0;
                memory_fence();
        }
        block_sync();
        return pairs->last;
}

/* Parts join in ascending order, as splits of a whole tile do; several at once, to save time. */
template <int D, kv_type T>
DEVICE void join_parts(shared_pairs *pairs, const tile *tile, const float *parts, uint32_t count,
                       sums<D, T> *kept)
{
        using S = sizes<D, T>;

        for (uint32_t base = 0; base < count;
             base += PARTS_AT_ONCE, parts += PARTS_AT_ONCE * S::PART) {
                uint32_t some = count - base < PARTS_AT_ONCE ? count - base : PARTS_AT_ONCE;

                if (threadIdx.x < tile->pairs) {
                        const float *most = parts + PAIRS * S::SHARE + threadIdx.x;

                        for (uint32_t p = 0; p < some; p++, most += S::PART)
                                join_pair(pairs, threadIdx.x, most[0], most[PAIRS],
                                          &pairs->keep[p][threadIdx.x],
                                          &pairs->join[p][threadIdx.x]);
                }
                block_sync();
                UNROLL
                for (unsigned i = 0; i < S::ROUNDS; i++) {
                        unsigned x = i * S::THREADS + threadIdx.x, row = x / (S::SHARE / 4);
                        float4 sum;

                        if (row >= tile->pairs)
                                continue;
                        sum = *sum_of(kept, i);
                        UNROLL
                        for (uint32_t p = 0; p < PARTS_AT_ONCE; p++) {
                                const float4 *part = (const float4 *)(parts + p * S::PART);

                                if (p < some)
                                        sum = scaled_sum(sum, pairs->keep[p][row],
                                                         scaled(part[x], pairs->join[p][row]));
                        }
                        *sum_of(kept, i) = sum;
                }
                block_sync();
        }
}

/* Applies sinks, divides, and writes out. */
template <int D, kv_type T>
DEVICE void finish(const attend_job *a, shared_pairs *pairs, const attend_item *item,
                   const tile *tile, uint32_t kv_head, uint32_t share, sums<D, T> *kept)
{
        using S = sizes<D, T>;
        unsigned thread = threadIdx.x;

        if (thread < tile->pairs) {
                pairs->keep[0][thread] = share_of(a, head_of(a, kv_head, tile->pair + thread),
                                                  pairs->most[thread], pairs->sum[thread]);
        }
        block_sync();
        UNROLL
        for (unsigned i = 0; i < S::ROUNDS; i++) {
                unsigned x = i * S::THREADS + thread;
                unsigned row = x / (S::SHARE / 4), quad = x % (S::SHARE / 4);
                uint32_t pair = tile->pair + row, head = head_of(a, kv_head, pair);
                uint16_t *out = a->out + (size_t)(item->run.row + pair / a->group) * a->width;
                float4 sum;

                if (row >= tile->pairs)
                        continue;
                sum = scaled(*sum_of(kept, i), pairs->keep[0][row]);
                *(uint2 *)(out + (size_t)head * D + share * S::SHARE +
                           quad * 4) = { two_bfloats(sum.x, sum.y), two_bfloats(sum.z, sum.w) };
                if (D % 64 && head == a->heads - 1)
                        for (uint32_t c = a->heads * D + quad * 4; c < a->width; c += D)
                                *(uint2 *)(out + c) = { 0, 0 };
        }
}

/* A warp's progress over the slices of an item: every WARPS-th, through its ring of stages. */
struct walk {
        const uint32_t *table;
        const uint8_t *pages; /* the address of this KV head's tiles in page 0 */
        /* The slice that is fetched next. */
        uint32_t at;
        /* The item's slices end before this one. */
        uint32_t end;
        /* The slices that the tile sees; others are not fetched. */
        uint32_t first, last;
        /* The page of slice `at`. */
        uint32_t page;
        /* The stage that slice `at` goes to. */
        unsigned stage;
        unsigned share; /* of V */
};

DEVICE bool walk_sees(const walk *w, uint32_t slice)
{
        return slice >= w->first && slice <= w->last && slice < w->end;
}

template <int D, kv_type T> DEVICE void walk_fetch(const attend_job *a, walk *w, uint8_t *ring)
{
        using S = sizes<D, T>;

        if (walk_sees(w, w->at)) {
                const uint8_t *from = w->pages + w->page * a->page_bytes;
                uint8_t *to = ring + w->stage * S::STAGE;

                if (row_chunks<D>::SHARES > 1)
                        fetch_share<D, T>(from, w->share, to);
                else
                        fetch_slice<D, T>(from, to);
        }
        async_copy_commit();
        w->stage = w->stage + 1 == S::STAGES ? 0 : w->stage + 1;
        w->at += S::WARPS;
        /* Looks up the page of the next slice now, so that it is known in time. */
        if (walk_sees(w, w->at))
                w->page = w->table[w->at];
}

template <int D, kv_type T>
DEVICE walk walk_begin(const attend_job *a, const attend_item *item, const tile *tile,
                       uint32_t kv_head, uint32_t share)
{
        walk w = {};

        w.table = a->tables + (size_t)item->run.slot * a->pages_max;
        w.pages = a->pages + (size_t)kv_head * (2 * kv_lines<D, T>::BYTES);
        w.at = item->begin * SPLIT_SLICES + threadIdx.x / LANES;
        w.end = item->end * SPLIT_SLICES;
        w.first = tile->first / SLICE;
        w.last = tile->last / SLICE;
        w.share = share;
        if (walk_sees(&w, w.at))
                w.page = w.table[w.at];
        return w;
}

template <int D, kv_type T>
DEVICE void take_item(const items_job *all, const attend_item *item, uint32_t place)
{
        using S = sizes<D, T>;
        const attend_job *a = &all->op;
        uint32_t kv_head = place / row_chunks<D>::SHARES, share = place % row_chunks<D>::SHARES;
        shared_pairs *pairs = (shared_pairs *)(shared() + S::WARPS * S::WARP);
        unsigned warp = threadIdx.x / LANES, stage = 0;
        uint8_t *ring = shared() + warp * S::WARP;
        uint8_t *q = ring + S::Q;
        const tile tile = tile_of(&item->run, item->tile, a->group, a->window);
        const lane_pairs mine = pairs_of(a, &item->run, &tile, kv_head);
        bool whole = item->part == ATTEND_WHOLE;
        uint32_t register_q[D / 16][4];
        sums<D, T> kept;
        running_softmax<D> s;
        walk w = walk_begin<D, T>(a, item, &tile, kv_head, share);

        if (threadIdx.x < PAIRS) {
                pairs->most[threadIdx.x] = LOWEST_SCORE;
                pairs->sum[threadIdx.x] = 0;
        }
        fetch_q<D>(a, &item->run, &tile, kv_head, q);
        for (unsigned i = 0; i < S::STAGES - 1; i++)
                walk_fetch<D, T>(a, &w, ring);
        async_copy_wait<S::STAGES - 1>();
        warp_sync();
        if (S::Q_IN_REGISTERS) {
                UNROLL
                for (unsigned k = 0; k < D / 16; k++)
                        load_q<D, T>(register_q[k], q, k);
        }
        warp_sync(); /* the next slice, or sums, will overwrite q */
        running_softmax_init(&s);
        UNROLL
        for (unsigned i = 0; i < S::ROUNDS; i++)
                *sum_of(&kept, i) = {};
        for (uint32_t at = item->begin * SPLIT_SLICES + warp; at < w.end; at += S::WARPS) {
                const kv_columns columns = columns_in<D, T>(ring + stage * S::STAGE);
                uint32_t position = at * SLICE;

                walk_fetch<D, T>(a, &w, ring);
                async_copy_wait<S::STAGES - 1>();
                warp_sync();
                if (position >= tile.common_first && position + SLICE - 1 <= tile.common_last)
                        take_columns<D, 2, false, T>(a, &s, &mine, register_q, q, columns,
                                                     (int)position);
                else if (walk_sees(&w, at))
                        take_columns<D, 2, true, T>(a, &s, &mine, register_q, q, columns,
                                                    (int)position);
                warp_sync();
                if (at % SPLIT_SLICES + S::WARPS >= SPLIT_SLICES) {
                        float *part = whole ? nullptr
                                            : part_at<D, T>(all, item, &tile, place, item->begin);

                        unsigned rows = S::SMALL ? S::RING : stage * S::STAGE;

                        hand_over<D, T>(&s, ring + rows, pairs);
                        join_split<D, T>(pairs, &tile, shared() + rows, part, &kept);
                }
                stage = stage + 1 == S::STAGES ? 0 : stage + 1;
        }
        async_copy_wait<0>();
        if (!whole) {
                uint32_t first = tile.first / ATTEND_SPLIT;
                uint32_t count = tile.last / ATTEND_SPLIT + 1 - first;
                size_t at = first_part<D>(all, item, place, count);

                if (!is_last_block(pairs, &all->arrived[at], count))
                        return;
                join_parts<D, T>(pairs, &tile, part_at<D, T>(all, item, &tile, place, first), count,
                                 &kept);
        }
        finish<D, T>(a, pairs, item, &tile, kv_head, share, &kept);
}

template <int D, kv_type T> KERNEL(sizes<D, T>::THREADS) attend_items(items_job a)
{
        uint32_t places = a.op.kv_heads * row_chunks<D>::SHARES;

        wait_for_predecessor();
        for (uint32_t i = blockIdx.x; i < a.list->count * places; i += gridDim.x)
                take_item<D, T>(&a, &a.list->items[i / places], i % places);
}

/* ---- the host ---- */

/* The host's view of one of the kernels. */
struct kind {
        void (*kernel)(items_job);
        uint32_t head_dim;
        kv_type type;
        unsigned threads, shared, part; /* part: in floats */
};

#define KIND(D, T)                                                                                 \
        {                                                                                          \
                attend_items<D, T>, D, T, sizes<D, T>::THREADS, sizes<D, T>::SHARED,               \
                        sizes<D, T>::PART                                                          \
        }
#define KINDS(T)                                                                                   \
        KIND(32, T), KIND(64, T), KIND(80, T), KIND(96, T), KIND(128, T), KIND(256, T), KIND(512, T)

static const kind kinds[] = { KINDS(KV_F16), KINDS(KV_BF16), KINDS(KV_INT8), KINDS(KV_FP8) };

static const kind *kind_of(uint32_t head_dim, kv_type type)
{
        for (const kind &kind : kinds)
                if (kind.head_dim == head_dim && kind.type == type)
                        return &kind;
        return nullptr;
}

bool attend_serves(uint32_t head_dim, kv_type type)
{
        return kind_of(head_dim, type);
}

/*
 * Roughly the shared memory of a multiprocessor, for its number of blocks.  Some blocks must be
 * able to run while others wait.
 */
#define SHARED_OF_PROCESSOR (200u << 10)
/*
 * The number of splits that may be cut, for each block.  Small pieces leave less work over at the
 * end.
 */
#define CUTS_OF_BLOCK 32u

int attend_scratch_of(attend_scratch *scratch, uint32_t processors, uint32_t rows_max,
                      uint32_t pages_max, attend_scratch_bytes *ret_bytes)
{
        const kind *kind = kind_of(scratch->head_dim, KV_F16); /* other types need about as much */
        uint32_t group = scratch->heads / scratch->kv_heads, tiles, splits, all, parts, places;
        size_t items;

        assert(kind && scratch->heads % scratch->kv_heads == 0 && processors && rows_max &&
               pages_max);
        splits = (pages_max - 1) / SPLIT_SLICES + 1;
        places = scratch->kv_heads * attend_shares(scratch->head_dim);
        if (__builtin_mul_overflow(processors, SHARED_OF_PROCESSOR / kind->shared,
                                   &scratch->blocks) ||
            __builtin_mul_overflow(rows_max, (group + PAIRS - 1) / PAIRS, &tiles) ||
            __builtin_mul_overflow(tiles, splits, &all) ||
            __builtin_mul_overflow(all, places, &parts) || all > INT32_MAX)
                return -EOVERFLOW;
        /*
         * The longest sequence can be cut even if it is alone.  More than `all` is never needed.
         */
        if (__builtin_mul_overflow(scratch->blocks, CUTS_OF_BLOCK, &scratch->cuts_max))
                return -EOVERFLOW;
        scratch->cuts_max /= places;
        if (scratch->cuts_max < splits)
                scratch->cuts_max = splits;
        if (scratch->cuts_max > all)
                scratch->cuts_max = all;
        parts = scratch->cuts_max * places; /* does not overflow: no more than before */
        items = (size_t)tiles + scratch->cuts_max;
        ret_bytes->arrived = (size_t)parts * sizeof(*scratch->arrived);
        if (__builtin_mul_overflow((size_t)parts, kind->part * sizeof(*scratch->parts),
                                   &ret_bytes->parts) ||
            __builtin_mul_overflow(items, sizeof(attend_item), &ret_bytes->list) ||
            __builtin_add_overflow(ret_bytes->list, sizeof(attend_list), &ret_bytes->list))
                return -EOVERFLOW;
        return 0;
}

attend_job attend_job_of(const attend_args *args)
{
        const attend_scratch *scratch = &args->scratch;
        attend_job job = {};

        assert(args->scale > 0);
        job.tables = args->view.tables;
        job.pages_max = args->view.pages_max;
        job.heads = scratch->heads;
        job.kv_heads = scratch->kv_heads;
        job.group = scratch->heads / scratch->kv_heads;
        job.window = scratch->window;
        job.width = (scratch->heads * scratch->head_dim + 63) / 64 * 64;
        job.pages = args->pages;
        job.page_bytes = args->page_bytes;
        job.q = args->q;
        job.out = args->out;
        job.sinks = args->sinks;
        job.slopes = args->slopes;
        job.tanh_scale = args->softcap > 0 ? args->scale / args->softcap : 0;
        job.to_log2 = (args->softcap > 0 ? args->softcap : args->scale) * LOG2_E;
        job.slope_unit = 1 / (args->softcap > 0 ? args->softcap : args->scale);
        return job;
}

int attend(device *device, const attend_args *args)
{
        const attend_scratch *scratch = &args->scratch;
        const kind *kind = kind_of(scratch->head_dim, args->type);
        const items_job job = { attend_job_of(args), scratch->list, scratch->parts,
                                scratch->arrived };

        assert(kind);
        return device_launch(device, STREAM_STEPS,
                             { scratch->blocks, 1, 1, kind->threads, kind->shared, true },
                             kind->kernel, job);
}
