/*
 * Attention, divided by block of rows and KV head. All queries of a block walk over its tiles
 * together, for all heads that share a KV head. So a tile is fetched once for all of them. Each
 * query still handles its own tiles in its own order (attention.h), as if it were alone. Decode
 * rows are few, and walk over several KV heads together: these heads' tiles follow each other in
 * each page, and are read in that order.
 *
 * If there are few items and a long past, every span of the past is an item of its own. The softmax
 * of each span is stored, and the softmaxes are joined in order when all are there. A single thread
 * that walks over the spans one by one joins them in the same order.
 */
#include "kernels/cpu/cpu.h"

#include <errno.h>

#include "kernels/memory.h"

#define SPAN_SOFTMAXES_MAX 4096u /* softmaxes that are stored: for 32 heads, 128 spans */

struct attend_scratch {
        const uint8_t **pages;          /* (pages of a slot) */
        uint8_t *softmaxes;             /* `all` and `found` point into this */
        struct softmax *all[QUERIES];   /* of the spans so far */
        struct softmax *found[QUERIES]; /* of the span that is being walked over */
};

struct attention {
        struct cpu *cpu;
        const struct attend *op;
        float *out;
        const float *q;
        uint32_t row_blocks;
        uint32_t kv_heads_per_item;
        /* Spans, each an item; 0: an item is all spans of a block and its heads. */
        uint32_t split_spans;
};

/*
 * The queries of an item: for the rows of a block, `heads` heads from the `head`th on of those
 * that share a KV head, for a->each KV heads.
 */
struct query_group {
        const struct step_run *block;
        uint32_t kv_head, head, heads;
};

static void scratch_deinit(struct attend_scratch *scratch)
{
        memory_free(scratch->pages);
        memory_free(scratch->softmaxes);
}

static int scratch_init(struct attend_scratch *scratch, uint32_t head_dim, uint32_t pages)
{
        size_t bytes = softmax_bytes(head_dim);

        scratch->pages = memory_new(pages, sizeof(*scratch->pages));
        scratch->softmaxes = memory_new((size_t)QUERIES * 2, bytes);
        if (!scratch->pages || !scratch->softmaxes)
                return -ENOMEM;
        for (uint32_t i = 0; i < QUERIES; i++) {
                scratch->all[i] = (struct softmax *)(scratch->softmaxes + i * bytes);
                scratch->found[i] = (struct softmax *)(scratch->softmaxes + (QUERIES + i) * bytes);
        }
        return 0;
}

void cpu_attend_deinit(struct cpu *cpu)
{
        for (uint32_t i = 0; cpu->attend_scratch && i < thread_pool_threads(cpu->thread_pool); i++)
                scratch_deinit(&cpu->attend_scratch[i]);
        cpu->attend_scratch = memory_free(cpu->attend_scratch);
        cpu->span_softmaxes = memory_free(cpu->span_softmaxes);
        cpu->head_dim_max = 0;
}

int cpu_attend_init(struct cpu *cpu, uint32_t head_dim)
{
        uint32_t threads = thread_pool_threads(cpu->thread_pool);
        int r = 0;

        if (head_dim <= cpu->head_dim_max)
                return 0;
        cpu_attend_deinit(cpu);
        cpu->attend_scratch = memory_new(threads, sizeof(*cpu->attend_scratch));
        cpu->span_softmaxes = memory_new(SPAN_SOFTMAXES_MAX, softmax_bytes(head_dim));
        if (!cpu->attend_scratch || !cpu->span_softmaxes)
                r = -ENOMEM;
        for (uint32_t i = 0; r == 0 && i < threads; i++)
                r = scratch_init(&cpu->attend_scratch[i], head_dim, cpu->steps.pages_max);
        if (r < 0) {
                cpu_attend_deinit(cpu);
                return r;
        }
        cpu->head_dim_max = head_dim;
        return 0;
}

static uint32_t first_visible(const struct attend *op, uint32_t own)
{
        return op->window && own >= op->window ? own - op->window + 1 : 0;
}

/* Which row and head query `i` of a share belongs to. */
static void query_of(const struct attention *a, const struct query_group *query_group, uint32_t i,
                     uint32_t *ret_row, uint32_t *ret_head)
{
        uint32_t group = a->op->heads / a->op->kv_heads,
                 of_kv = query_group->block->count * query_group->heads;

        *ret_row = query_group->block->row + i % of_kv / query_group->heads;
        *ret_head = (query_group->kv_head + i / of_kv) * group + query_group->head +
                    i % query_group->heads;
}

/* Makes the queries of a share, ordered by KV head, row and head; returns how many. */
static uint32_t queries_make(const struct attention *a, const struct query_group *query_group,
                             struct query *queries)
{
        const struct attend *op = a->op;
        uint32_t count = a->kv_heads_per_item * query_group->block->count * query_group->heads;

        for (uint32_t i = 0; i < count; i++) {
                uint32_t row, head, own;

                query_of(a, query_group, i, &row, &head);
                own = a->cpu->steps.rows[row].position;
                queries[i] = (struct query){
                        .q = a->q + ((size_t)row * op->heads + head) * op->head_dim,
                        .own = own,
                        .first = first_visible(op, own),
                        .slope = op->slopes ? op->slopes[head] : 0,
                };
        }
        return count;
}

static const float *sink_of(const struct attend *op, uint32_t head)
{
        return op->sinks ? &op->sinks[head] : NULL;
}

/* Finds the pages of positions `from` to `to`, both included. */
static struct past past_make(const struct attention *a, struct attend_scratch *scratch,
                             uint32_t slot, uint32_t kv_head, uint32_t from, uint32_t to)
{
        const struct attend *op = a->op;

        for (uint32_t page = from / PAGE_POSITIONS; page <= to / PAGE_POSITIONS; page++)
                scratch->pages[page] = kv_tile(op->kv,
                                               steps_page(&a->cpu->steps, op->kv->shape.group, slot,
                                                          page * PAGE_POSITIONS),
                                               op->layer, kv_head);
        return (struct past){
                .pages = scratch->pages,
                .page_count = to / PAGE_POSITIONS + 1,
                .heads = a->kv_heads_per_item,
                .head_offset = 2 * op->kv->tile_bytes,
                .v_offset = op->kv->tile_bytes,
                .scales_offset = kv_scales_offset(&op->kv->shape),
                .head_dim = op->head_dim,
                .type = op->kv->shape.type,
                .scale = op->scale,
                .softcap = op->softcap,
        };
}

/* Walks over all spans, one after the other. */
static void walk_all(const struct attention *a, struct attend_scratch *scratch,
                     const struct past *past, const struct query *queries, uint32_t count)
{
        uint32_t first = queries[0].first / SPAN_POSITIONS;
        uint32_t last = queries[count - 1].own / SPAN_POSITIONS;

        for (uint32_t span = first; span <= last; span++) {
                a->cpu->isa->loops->attend(past, span * SPAN_POSITIONS, queries, count,
                                           scratch->found);
                for (uint32_t i = 0; i < count; i++) {
                        struct softmax *found = scratch->found[i];
                        uint32_t begin = queries[i].first / SPAN_POSITIONS;

                        if (begin == span) {
                                scratch->found[i] = scratch->all[i];
                                scratch->all[i] = found;
                        } else if (begin < span && queries[i].own / SPAN_POSITIONS >= span) {
                                a->cpu->isa->loops->attend_join(scratch->all[i], found,
                                                                past->head_dim);
                        }
                }
        }
}

static struct softmax *span_softmax_at(const struct attention *a, uint32_t row, uint32_t head,
                                       uint32_t span)
{
        size_t at = ((size_t)row * a->op->heads + head) * a->split_spans + span;

        return (struct softmax *)(a->cpu->span_softmaxes + at * softmax_bytes(a->op->head_dim));
}

/* Walks over one span, if each span is an item of its own. */
static void attend_span(const struct attention *a, struct attend_scratch *scratch, uint32_t span,
                        const struct query_group *query_group, const struct query *queries,
                        uint32_t n)
{
        uint32_t base = span * SPAN_POSITIONS, end = base + SPAN_POSITIONS - 1;
        uint32_t from = queries[0].first, to = queries[n - 1].own;
        struct softmax *found[QUERIES];
        struct past past;

        if (from > end || to < base)
                return;
        from = from > base ? from : base;
        to = to < end + TILE_POSITIONS
                     ? to
                     : end + TILE_POSITIONS; /* includes data that is prefetched */
        past = past_make(a, scratch, a->cpu->steps.rows[query_group->block->row].slot,
                         query_group->kv_head, from, to);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t row, head;

                query_of(a, query_group, i, &row, &head);
                found[i] = span_softmax_at(a, row, head, span);
        }
        a->cpu->isa->loops->attend(&past, base, queries, n, found);
}

/* Handles all spans, or only `span` if each span is an item of its own. */
static void attend_query_group(const struct attention *a, uint32_t thread,
                               const struct query_group *query_group, uint32_t span)
{
        struct attend_scratch *scratch = &a->cpu->attend_scratch[thread];
        struct query queries[QUERIES];
        uint32_t n = queries_make(a, query_group, queries);
        struct past past;

        if (a->split_spans) {
                attend_span(a, scratch, span, query_group, queries, n);
                return;
        }
        past = past_make(a, scratch, a->cpu->steps.rows[query_group->block->row].slot,
                         query_group->kv_head, queries[0].first, queries[n - 1].own);
        walk_all(a, scratch, &past, queries, n);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t row, head;

                query_of(a, query_group, i, &row, &head);
                a->cpu->isa->loops->attend_out(a->out + (queries[i].q - a->q), scratch->all[i],
                                               a->op->head_dim, sink_of(a->op, head));
        }
}

static void attend_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct attention *a = arg;
        const struct attend *op = a->op;
        uint32_t spans = a->split_spans ? a->split_spans : 1,
                 of_block = spans * (op->kv_heads / a->kv_heads_per_item);
        uint32_t group = op->heads / op->kv_heads;
        struct query_group query_group = {
                /*
                 * from the end: the last rows of a long run take longest, and should not be
                 * started last
                 */
                .block = &a->cpu->row_blocks[a->row_blocks - 1 - item / of_block],
                .kv_head = item % of_block / spans * a->kv_heads_per_item,
        };

        for (; query_group.head < group; query_group.head += QUERIES) {
                query_group.heads =
                        group - query_group.head < QUERIES ? group - query_group.head : QUERIES;
                attend_query_group(a, thread, &query_group, item % spans);
        }
}

/* Joins a row's spans, which were items of their own. */
static void join_work(void *arg, uint32_t thread, uint32_t row)
{
        const struct attention *a = arg;
        const struct attend *op = a->op;
        uint32_t own = a->cpu->steps.rows[row].position;
        uint32_t first = first_visible(op, own) / SPAN_POSITIONS;

        (void)thread;
        for (uint32_t head = 0; head < op->heads; head++) {
                struct softmax *all = span_softmax_at(a, row, head, first);

                for (uint32_t span = first + 1; span <= own / SPAN_POSITIONS; span++)
                        a->cpu->isa->loops->attend_join(all, span_softmax_at(a, row, head, span),
                                                        op->head_dim);
                a->cpu->isa->loops->attend_out(a->out + ((size_t)row * op->heads + head) *
                                                                op->head_dim,
                                               all, op->head_dim, sink_of(op, head));
        }
}

/* Cuts the runs into blocks that have at most QUERIES queries for one KV head. */
static uint32_t row_blocks_make(struct cpu *cpu, uint32_t group)
{
        const struct step *step = &cpu->steps.step;
        uint32_t n = 0, most = group < QUERIES ? QUERIES / group : 1;

        for (uint32_t i = 0; i < step->run_count; i++) {
                struct step_run left = step->runs[i];

                while (left.count > 0) {
                        uint32_t count = left.count < most ? left.count : most;

                        cpu->row_blocks[n++] = (struct step_run){ left.row, count };
                        left.row += count;
                        left.count -= count;
                }
        }
        return n;
}

/*
 * Into how many spans items may be divided: 0 if there is only one, or if there are too many to
 * keep.
 */
static uint32_t spans_most(const struct attention *a)
{
        const struct step *step = &a->cpu->steps.step;
        uint32_t spans = 0;

        for (uint32_t r = 0; r < step->row_count; r++) {
                uint32_t own = a->cpu->steps.rows[r].position / SPAN_POSITIONS + 1;

                spans = own > spans ? own : spans;
        }
        return spans > 1 && (size_t)step->row_count * a->op->heads * spans <= SPAN_SOFTMAXES_MAX
                       ? spans
                       : 0;
}

/*
 * Heads whose K and V lie side by side are best walked over together. So an item gets as many
 * heads as a block of queries has room for, if there are still enough items for all threads.
 */
static void items_cut(struct attention *a)
{
        const struct attend *op = a->op;
        uint32_t enough = thread_pool_threads(a->cpu->thread_pool) > 1
                                  ? 4 * thread_pool_threads(a->cpu->thread_pool)
                                  : 1;
        uint32_t spans = enough > 1 ? spans_most(a) : 0, rows = 1, heads_max;

        for (uint32_t i = 0; i < a->row_blocks; i++)
                rows = a->cpu->row_blocks[i].count > rows ? a->cpu->row_blocks[i].count : rows;
        heads_max = QUERIES / (rows * (op->heads / op->kv_heads));
        for (a->kv_heads_per_item = heads_max > 1 ? heads_max : 1; a->kv_heads_per_item > 1;
             a->kv_heads_per_item--) {
                uint32_t items = a->row_blocks * op->kv_heads / a->kv_heads_per_item;

                if (op->kv_heads % a->kv_heads_per_item)
                        continue;
                a->split_spans = items < enough ? spans : 0;
                if (items >= enough || items * spans >= enough)
                        return;
        }
        a->split_spans = a->row_blocks * op->kv_heads < enough ? spans : 0;
}

int cpu_attend(struct kernels *k, const struct attend *op, float *out, const float *q)
{
        struct cpu *cpu = cpu_of(k);
        const struct kv_shape *kv = &op->kv->shape;
        struct attention a = { .cpu = cpu, .op = op, .out = out, .q = q };

        assert(cpu->steps.running && op->layer < kv->layers);
        assert(op->kv_heads == kv->kv_heads && op->head_dim == kv->head_dim);
        assert(op->heads % op->kv_heads == 0 && op->head_dim <= cpu->head_dim_max);
        logit_summary_invalidate(&cpu->logit_summary);
        a.row_blocks = row_blocks_make(cpu, op->heads / op->kv_heads);
        items_cut(&a);
        thread_pool_run(cpu->thread_pool, attend_work, &a,
                        a.row_blocks * (op->kv_heads / a.kv_heads_per_item) *
                                (a.split_spans ? a.split_spans : 1));
        if (a.split_spans)
                thread_pool_run(cpu->thread_pool, join_work, &a, cpu->steps.step.row_count);
        return 0;
}
