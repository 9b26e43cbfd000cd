#include "kernels/cuda/attend-prompt.h"

#include <assert.h>
#include <errno.h>

#include "kernels/cuda/attend-warp.h"

#define SLICE PAGE_POSITIONS

struct prompt_job {
        attend_job op;
        attend_prompt_list *list;
};

/*
 * A stage is K of a step, then V, then the scales of both.  There are two stages.  Then come q,
 * and the number of the item that the block has taken.
 */
template <int D, kv_type T> struct prompt_sizes {
        static constexpr unsigned WARPS = row_chunks<D>::Q_IN_REGISTERS ? 8 : 4;
        static constexpr unsigned THREADS = WARPS * LANES;
        static constexpr unsigned PAIRS = WARPS * ATTEND_PAIRS;
        /* SLICES of a step: two warps share one slice, one fetches K, the other V. */
        static constexpr unsigned SLICES = WARPS / 2;
        static constexpr unsigned STEP = SLICES * SLICE;
        static constexpr unsigned TILE = kv_lines<D, T>::NUMBERS;
        static constexpr unsigned SCALES = kv_lines<D, T>::SCALES;
        static constexpr unsigned STAGE = 2 * SLICES * (TILE + SCALES);
        /* Bytes of a warp's q. */
        static constexpr unsigned ROWS = SLICE * row_chunks<D>::BYTES;
        static constexpr unsigned TAKEN = 2 * STAGE + WARPS * ROWS;
        static constexpr unsigned SHARED = TAKEN + 16;
};

/* ---- a tile ---- */

/*
 * The positions that at least one pair of a tile sees, and the pairs of this warp.  If the warp
 * has no pairs, it sees no positions.
 */
struct prompt_tile {
        uint32_t first, last;
        tile mine;
};

template <int D, kv_type T>
DEVICE prompt_tile prompt_tile_of(const attend_job *a, const attend_prompt_item *item)
{
        using S = prompt_sizes<D, T>;
        const view_run *run = &item->run;
        uint32_t all = run->count * a->group, pair = item->tile * S::PAIRS;
        uint32_t end = all - pair < S::PAIRS ? all : pair + S::PAIRS;
        uint32_t number = item->tile * S::WARPS + threadIdx.x / LANES;
        prompt_tile of = {};

        of.first = first_visible(run->position + pair / a->group, a->window);
        of.last = run->position + (end - 1) / a->group;
        of.mine.first = UINT32_MAX;
        if (number * ATTEND_PAIRS < all)
                of.mine = tile_of(run, number, a->group, a->window);
        return of;
}

/* The progress of a warp over the slices that it fetches. */
struct prompt_walk {
        const uint32_t *table;
        const uint8_t *tiles; /* K's or V's, in page 0 */
        uint32_t first, last; /* slices that are seen */
        uint32_t at;          /* the next slice */
        uint32_t page;        /* the page of slice `at` */
};

DEVICE void look_up(prompt_walk *w)
{
        if (w->at >= w->first && w->at <= w->last)
                w->page = w->table[w->at];
}

template <int D, kv_type T>
DEVICE prompt_walk walk_begin(const attend_job *a, const view_run *run, const prompt_tile *tile,
                              uint32_t kv_head)
{
        constexpr unsigned BYTES = kv_lines<D, T>::BYTES;
        unsigned warp = threadIdx.x / LANES;
        prompt_walk w = {};

        w.table = a->tables + (size_t)run->slot * a->pages_max;
        w.tiles = a->pages + ((size_t)kv_head * 2 + warp % 2) * BYTES;
        w.first = tile->first / SLICE;
        w.last = tile->last / SLICE;
        w.at = tile->first / prompt_sizes<D, T>::STEP * prompt_sizes<D, T>::SLICES + warp / 2;
        look_up(&w);
        return w;
}

/* Begins to fetch this warp's slice of the next step. */
template <int D, kv_type T>
DEVICE void walk_fetch(const attend_job *a, prompt_walk *w, uint8_t *stage)
{
        using S = prompt_sizes<D, T>;
        using L = kv_lines<D, T>;
        unsigned warp = threadIdx.x / LANES, number = warp % 2 * S::SLICES + warp / 2;
        uint8_t *to = stage + number * S::TILE;
        const uint8_t *from = w->tiles + w->page * a->page_bytes;

        if (w->at >= w->first && w->at <= w->last) {
                UNROLL
                for (unsigned i = 0; i < (L::CHUNKS + 1) / 2; i++) {
                        unsigned x = i * LANES + lane_number();

                        if (L::CHUNKS % 2 == 0 || x < SLICE * L::CHUNKS)
                                async_copy(to + chunk_at<L::WIDTH>(x / L::CHUNKS, x % L::CHUNKS) *
                                                           16,
                                           from + x * 16, true);
                }
                /* With "<", nvcc would warn where SCALES is 0. */
                if (lane_number() + 1 <= S::SCALES / 16)
                        async_copy(stage + 2 * S::SLICES * S::TILE + number * S::SCALES +
                                           lane_number() * 16,
                                   from + L::BYTES - S::SCALES + lane_number() * 16, true);
        }
        async_copy_commit();
        /* Looks up the page of the next slice now, so that it is known in time. */
        w->at += S::SLICES;
        look_up(w);
}

/* Adds sums over lanes, applies sinks, divides, and writes out. */
template <int D, kv_type T>
DEVICE void finish(const attend_job *a, const attend_prompt_item *item, uint32_t kv_head,
                   running_softmax<D> *s)
{
        /* Computed again here, to save registers before. */
        const tile mine = prompt_tile_of<D, T>(a, item).mine;
        unsigned g = lane_number() / 4, t = lane_number() % 4;

        UNROLL
        for (unsigned i = 0; i < 2; i++) {
                uint32_t pair = mine.pair + g + i * 8, head = head_of(a, kv_head, pair);
                uint16_t *out = a->out + (size_t)(item->run.row + pair / a->group) * a->width;
                float share;

                s->sum[i] += shuffle_xor(s->sum[i], 1);
                s->sum[i] += shuffle_xor(s->sum[i], 2);
                if (g + i * 8 >= mine.pairs)
                        continue;
                share = share_of(a, head, s->most[i], s->sum[i]);
                UNROLL
                for (unsigned d = 0; !KV_HAS_SCALES(T) && d < D / 8; d++)
                        *(uint32_t *)(out + head * D + d * 8 + t * 2) = two_bfloats(
                                s->sums[d][i * 2] * share, s->sums[d][i * 2 + 1] * share);
                UNROLL
                for (unsigned d = 0; KV_HAS_SCALES(T) && d < D / 8; d += 2)
                        *(uint2 *)(out + head * D + d * 8 +
                                   t * 4) = { two_bfloats(s->sums[d][i * 2] * share,
                                                          s->sums[d + 1][i * 2] * share),
                                              two_bfloats(s->sums[d][i * 2 + 1] * share,
                                                          s->sums[d + 1][i * 2 + 1] * share) };
                if (head == a->heads - 1)
                        for (uint32_t c = a->heads * D + t * 2; c < a->width; c += 8)
                                *(uint32_t *)(out + c) = 0;
        }
}

/* Takes the positions of a step that this warp sees, at once or page by page. */
template <int D, kv_type T>
DEVICE void take_step(const attend_job *a, running_softmax<D> *s, const lane_pairs *pairs,
                      const tile *mine, const uint32_t (*register_q)[4], const uint8_t *q,
                      uint32_t step)
{
        using S = prompt_sizes<D, T>;
        constexpr uint32_t SOME = row_chunks<D>::Q_IN_REGISTERS ? S::STEP : SLICE;
        const uint8_t *stage = shared() + step % 2 * S::STAGE;
        const float *scales = (const float *)(stage + 2 * S::SLICES * S::TILE);

        for (uint32_t at = 0; at < S::STEP; at += SOME) {
                const uint8_t *keys = stage + at / SLICE * S::TILE;
                const kv_columns columns = { keys, keys + S::SLICES * S::TILE, scales + at,
                                             scales + S::STEP + at };
                uint32_t begin = step * S::STEP + at, end = begin + SOME;

                if (begin >= mine->common_first && end <= mine->common_last + 1)
                        take_columns<D, SOME / 8, false, T>(a, s, pairs, register_q, q, columns,
                                                            (int)begin);
                else if (begin <= mine->last && end > mine->first)
                        take_columns<D, SOME / 8, true, T>(a, s, pairs, register_q, q, columns,
                                                           (int)begin);
        }
}

template <int D, kv_type T>
DEVICE void take_tile(const attend_job *a, const attend_prompt_item *item, uint32_t kv_head)
{
        using S = prompt_sizes<D, T>;
        const prompt_tile tile = prompt_tile_of<D, T>(a, item);
        const lane_pairs pairs = pairs_of(a, &item->run, &tile.mine, kv_head);
        uint8_t *q = shared() + 2 * S::STAGE + threadIdx.x / LANES * S::ROWS;
        uint32_t step = tile.first / S::STEP, last = tile.last / S::STEP;
        prompt_walk w = walk_begin<D, T>(a, &item->run, &tile, kv_head);
        uint32_t register_q[D / 16][4];
        running_softmax<D> s;

        fetch_q<D>(a, &item->run, &tile.mine, kv_head, q);
        walk_fetch<D, T>(a, &w, shared() + step % 2 * S::STAGE);
        async_copy_wait<1>();
        warp_sync();
        if (row_chunks<D>::Q_IN_REGISTERS) {
                UNROLL
                for (unsigned k = 0; k < D / 16; k++)
                        load_q<D, T>(register_q[k], q, k);
        }
        running_softmax_init(&s);
        for (; step <= last; step++) {
                async_copy_wait<0>();
                block_sync(); /* also, no warp uses the previous step any more */
                walk_fetch<D, T>(a, &w, shared() + (step + 1) % 2 * S::STAGE);
                take_step<D, T>(a, &s, &pairs, &tile.mine, register_q, q, step);
        }
        async_copy_wait<0>();
        finish<D, T>(a, item, kv_head, &s);
}

/* ---- all tiles ---- */

/* The next item for this block.  All its threads must be done with the previous item. */
DEVICE uint32_t next_item(attend_prompt_list *list, uint32_t *taken)
{
        if (!threadIdx.x)
                *taken = atomic_add(&list->next, 1);
        block_sync();
        return *taken;
}

/* The last block that finds no more items resets the list, for the next layer. */
DEVICE void leave(attend_prompt_list *list)
{
        if (threadIdx.x || atomic_add(&list->done, 1) != gridDim.x - 1)
                return;
        list->next = 0;
        list->done = 0;
}

/*
 * With KV as bytes and heads of 64, two blocks on a multiprocessor lack only a few registers, but
 * these would be spilled.  So only one block is asked for.
 */
template <int D, kv_type T>
KERNEL(prompt_sizes<D, T>::THREADS, KV_HAS_SCALES(T) && D == 64)
attend_tiles(prompt_job a)
{
        uint32_t *taken = (uint32_t *)(shared() + prompt_sizes<D, T>::TAKEN), i, all;

        wait_for_predecessor();
        all = a.list->count * a.op.kv_heads;
        while ((i = next_item(a.list, taken)) < all)
                take_tile<D, T>(&a.op, &a.list->items[i / a.op.kv_heads], i % a.op.kv_heads);
        leave(a.list);
}

/* ---- the list ---- */

struct prompt_plan_job {
        const step_counts *counts;
        const view_run *runs;
        attend_prompt_list *list;
        /* `pairs` is that of a tile. */
        uint32_t group, rows_min, pairs;
};

/* Runs as one warp.  A run's last tiles come first, because they see the most positions. */
KERNEL(LANES) list_tiles(prompt_plan_job a)
{
        uint32_t lane = lane_number(), count = 0, runs;

        wait_for_predecessor();
        runs = a.counts->runs;
        for (uint32_t base = 0; base < runs; base += LANES) {
                uint32_t rows = base + lane < runs ? a.runs[base + lane].count : 0;
                uint32_t tiles = rows < a.rows_min ? 0 : (rows * a.group - 1) / a.pairs + 1;

                if (!warp_sum(tiles))
                        continue;
                for (unsigned i = 0; i < LANES; i++) {
                        uint32_t some = shuffle_from(tiles, i);

                        for (uint32_t t = lane; t < some; t += LANES)
                                a.list->items[count + t] = { a.runs[base + i], some - 1 - t };
                        count += some;
                }
        }
        if (!lane) {
                a.list->count = count;
                a.list->next = 0;
                a.list->done = 0;
        }
}

/* ---- the host ---- */

struct prompt_kind {
        void (*kernel)(prompt_job);
        uint32_t head_dim;
        kv_type type;
        unsigned threads, shared, pairs;
};

#define KIND(D, T)                                                                                 \
        {                                                                                          \
                attend_tiles<D, T>, D, T, prompt_sizes<D, T>::THREADS, prompt_sizes<D, T>::SHARED, \
                        prompt_sizes<D, T>::PAIRS                                                  \
        }
#define KINDS(T) KIND(32, T), KIND(64, T), KIND(80, T), KIND(96, T), KIND(128, T), KIND(256, T)

static const prompt_kind kinds[] = { KINDS(KV_F16), KINDS(KV_BF16), KINDS(KV_INT8), KINDS(KV_FP8) };

static const prompt_kind *kind_of(uint32_t head_dim, kv_type type)
{
        for (const prompt_kind &kind : kinds)
                if (kind.head_dim == head_dim && kind.type == type)
                        return &kind;
        return nullptr;
}

bool attend_prompt_serves(uint32_t head_dim, kv_type type)
{
        return kind_of(head_dim, type);
}

/* If more blocks are launched than fit, the excess finds no items left. */
#define BLOCKS_OF_PROCESSOR 2u

int attend_prompt_scratch_of(attend_prompt_scratch *scratch, const attend_scratch *of,
                             uint32_t processors, uint32_t rows_max, size_t *ret_bytes)
{
        /* The number of pairs is the same for all types. */
        const prompt_kind *kind = kind_of(of->head_dim, KV_F16);
        uint32_t group = of->heads / of->kv_heads, tiles, all;

        assert(kind && of->heads % of->kv_heads == 0 && processors && rows_max);
        /* Every run may have a tile that is not full, so each row is counted as a run. */
        if (__builtin_mul_overflow(processors, BLOCKS_OF_PROCESSOR, &scratch->blocks) ||
            __builtin_mul_overflow(rows_max, (group - 1) / kind->pairs + 1, &tiles) ||
            __builtin_mul_overflow(tiles, of->kv_heads, &all) || all > INT32_MAX ||
            __builtin_mul_overflow((size_t)tiles, sizeof(attend_prompt_item), ret_bytes) ||
            __builtin_add_overflow(*ret_bytes, sizeof(attend_prompt_list), ret_bytes))
                return -EOVERFLOW;
        return 0;
}

int attend_prompt_plan(device *device, const step_view *view, const attend_scratch *of,
                       const attend_prompt_scratch *scratch)
{
        /* The number of pairs is the same for all types. */
        const prompt_kind *kind = kind_of(of->head_dim, KV_F16);
        const prompt_plan_job job = { view->counts,      view->runs,
                                      scratch->list,     of->heads / of->kv_heads,
                                      scratch->rows_min, kind->pairs };

        if (view->rows_max < scratch->rows_min)
                return 0;
        return device_launch(device, STREAM_STEPS, { 1, 1, 1, LANES, 0, true }, list_tiles, job);
}

int attend_prompt(device *device, const attend_args *args, const attend_prompt_scratch *scratch)
{
        const prompt_kind *kind = kind_of(args->scratch.head_dim, args->type);
        const prompt_job job = { attend_job_of(args), scratch->list };

        assert(kind && scratch->rows_min);
        if (args->view.rows_max < scratch->rows_min)
                return 0;
        return device_launch(device, STREAM_STEPS,
                             { scratch->blocks, 1, 1, kind->threads, kind->shared, true },
                             kind->kernel, job);
}
