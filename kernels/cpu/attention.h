/*
 * Attention's loops. Part of loops.inc.
 *
 *      span     1024 positions: a softmax of its own, joined to that of all positions before it
 *      tile     64 positions, four pages: scores, their maximum, e^(score - maximum), times V
 *
 * Both begin at multiples of their length for every query. So the terms that a query adds, and
 * their order, depend only on its own position. Which queries are handled together, in one pass
 * over a tile, affects only speed: a number that is fetched and converted once serves them all.
 * The queries of a pass see the same positions of the tile, because values that a query may not
 * see must not even be multiplied by 0.
 *
 * Numbers are converted directly from their pages, again for every pass. Converting a tile to
 * floats first was slower even for 32 queries, because the tile then outgrows the L1 cache.
 * Meanwhile the data needed next is prefetched from memory. V, and the K that follows it (the
 * next head's, or the first head's in the next tile), are as large as K. So while a number of one
 * is read, the same place of the other is prefetched.
 */

#define PASS_QUERIES (LANES == 4 ? 2u : 6u)
#define REGISTERS    (LANES == 16 ? 32u : 16u) /* vector registers */
/* Units that are handled at once, of 16 positions (K) or 16 numbers of a head (V). */
#define UNITS_MOST 4u

/* A tile as a pass sees it: positions [from, to), counted from the tile's first position. */
struct tile {
        uint32_t from, to;
        const uint8_t *k[TILE_PAGES], *v[TILE_PAGES];
        const uint8_t *next[TILE_PAGES]; /* the K that is needed next: see tile_find() */
        const float *k_scales[TILE_PAGES], *v_scales[TILE_PAGES]; /* KV_INT8, KV_FP8 */
        /*
         * The factor for the scales: E4M3 numbers are loaded smaller than they are by this
         * factor.
         */
        float scales_by;
};

/* The queries of a pass: each one's q, and where its values are summed. */
struct pass {
        const float *q[PASS_QUERIES];
        float *values[PASS_QUERIES];
        float p[PASS_QUERIES][TILE_POSITIONS]; /* scores, then e^(score - largest) */
        float factor[LANES];                   /* the factor for the sums and values so far */
};

_Static_assert(PASS_QUERIES <= LANES, "one vector of factors");

/*
 * Loads numbers of a tile from `at` on. Bytes are loaded without their scales; E4M3 numbers are
 * loaded as 2^-8 of their value.
 */
LANES_INLINE vec load_kv(const enum kv_type type, const void *numbers, size_t at)
{
        switch (type) {
        case KV_F16:
                return load_half((const uint16_t *)numbers + at);
        case KV_BF16:
                return load_bfloat((const uint16_t *)numbers + at);
        case KV_INT8:
                return load_bytes((const int8_t *)numbers + at);
        case KV_FP8:
                return load_e4m3((const uint8_t *)numbers + at);
        case KV_F32:
                break;
        }
        return load((const float *)numbers + at);
}

/*
 * How many units fit into the registers. The registers hold the sums of all queries, the numbers
 * that all queries are multiplied with, and one value of a query. A single query need not keep
 * the shared numbers.
 */
LANES_INLINE uint32_t units_of(const uint32_t queries)
{
        const uint32_t vectors = (queries == 1 ? 1 : queries + 1) * PARTS;

        return 4 * vectors < REGISTERS ? 4 : 2 * vectors < REGISTERS ? 2 : 1;
}

/* ---- scores ---- */

/* q k over `units` pages of the tile, each summed over the head with d ascending. */
LANES_INLINE void scores_of(const enum kv_type type, const uint32_t queries, const uint32_t units,
                            struct pass *pass, const struct tile *tile, uint32_t page,
                            uint32_t head_dim)
{
        const size_t bytes = kv_number_bytes(type);
        vec sums[PASS_QUERIES][UNITS_MOST * PARTS];

        UNROLL for (uint32_t t = 0; t < queries; t++)
        {
                UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                {
                        sums[t][i] = (vec){ 0 };
                }
        }
        for (size_t d = 0; d < head_dim; d++) {
                vec k[UNITS_MOST * PARTS];

                UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                {
                        size_t at = d * SUMS + i % PARTS * LANES;

                        k[i] = load_kv(type, tile->k[page + i / PARTS], at);
                        if (i % PARTS == 0)
                                __builtin_prefetch(tile->v[page + i / PARTS] + at * bytes);
                }
                UNROLL for (uint32_t t = 0; t < queries; t++)
                {
                        vec x = splat(pass->q[t][d]);

                        UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                        {
                                sums[t][i] = fused(k[i], x, sums[t][i]);
                        }
                }
        }
        UNROLL for (uint32_t t = 0; t < queries; t++)
        {
                UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                {
                        store(pass->p[t] + page * SUMS + i * LANES, sums[t][i]);
                }
        }
}

LANES_INLINE void scores_all(const enum kv_type type, const uint32_t queries, struct pass *pass,
                             const struct tile *tile, uint32_t head_dim)
{
        const uint32_t units = units_of(queries);
        uint32_t page = tile->from / PAGE_POSITIONS;
        uint32_t end = (tile->to + PAGE_POSITIONS - 1) / PAGE_POSITIONS;

        for (; page + units <= end; page += units)
                scores_of(type, queries, units, pass, tile, page, head_dim);
        for (; page < end; page++)
                scores_of(type, queries, 1, pass, tile, page, head_dim);
}

/* ---- the softmax ---- */

/*
 * Scales, caps and slopes a query's scores before they are compared. Hidden scores, which may be
 * anything, become -inf.
 */
static void scores_shape(float *p, const struct tile *tile, const struct past *past,
                         const struct query *query, uint32_t base)
{
        for (uint32_t i = 0; i < TILE_POSITIONS; i += LANES) {
                const float *scales = tile->k_scales[i / PAGE_POSITIONS];
                vec x = load(p + i);
                ivec lane = iota() + (int32_t)i;
                ivec seen = (lane >= (int32_t)tile->from) & (lane < (int32_t)tile->to);

                if (scales)
                        x *= load(scales + i % PAGE_POSITIONS) * tile->scales_by;
                x *= past->scale;
                if (past->softcap != 0)
                        x = tanh_lanes(x / past->softcap) * past->softcap;
                if (query->slope != 0)
                        x += __builtin_convertvector(lane + (int32_t)(base - query->own), vec) *
                             query->slope;
                store(p + i, choose(seen, x, splat(-INFINITY)));
        }
}

/* The same, for the case that a product is the whole operation. */
static void scores_scale(float *p, float scale)
{
        for (uint32_t i = 0; i < TILE_POSITIONS; i += LANES)
                store(p + i, load(p + i) * scale);
}

static float scores_largest(const float *p)
{
        float most[SUMS];

        for (uint32_t l = 0; l < SUMS; l += LANES) {
                vec m = load(p + l);

                for (uint32_t i = l + SUMS; i < TILE_POSITIONS; i += SUMS)
                        m = larger(load(p + i), m);
                store(most + l, m);
        }
        return tree_max(most);
}

/*
 * The value to subtract from scores. If all scores are -inf, subtracting -inf would make them
 * NaN.
 */
static float base_of(float largest)
{
        return largest > -INFINITY ? largest : 0;
}

/*
 * Leaves in `p` the factor of each position's v: e^(score - base), times v's scale if there is
 * one. Adds up e^(score - base). Hidden positions add nothing that counts: exp_lanes() gives
 * about 1e-38 for -inf.
 */
static void scores_weigh(float *p, float sums[SUMS], float factor, float base,
                         const struct tile *tile)
{
        for (uint32_t part = 0; part < SUMS; part += LANES) {
                vec sum = load(sums + part) * factor;

                for (uint32_t i = part; i < TILE_POSITIONS; i += SUMS) {
                        const float *scales = tile->v_scales[i / PAGE_POSITIONS];
                        vec e = exp_lanes(load(p + i) - base);

                        sum += e;
                        if (scales)
                                e *= load(scales + part) * tile->scales_by;
                        store(p + i, e);
                }
                store(sums + part, sum);
        }
}

/* ---- values ---- */

/*
 * values = values * factor + p[j] * v[j] for the positions of the tile, ascending. A call handles
 * `units` times 16 numbers of the head, from `d` on. If head_dim is not a multiple of 16, the
 * last numbers belong to other data, and stay in lanes that are never read.
 */
LANES_INLINE void values_of(const enum kv_type type, const uint32_t queries, const uint32_t units,
                            const struct pass *pass, const struct tile *tile, uint32_t head_dim,
                            size_t d)
{
        const size_t bytes = kv_number_bytes(type);
        vec sums[PASS_QUERIES][UNITS_MOST * PARTS];

        UNROLL for (uint32_t t = 0; t < queries; t++)
        {
                UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                {
                        sums[t][i] = load(pass->values[t] + d + i * LANES) * pass->factor[t];
                }
        }
        for (uint32_t from = tile->from, to; from < tile->to; from = to) {
                uint32_t page = from / PAGE_POSITIONS;
                size_t at = from % PAGE_POSITIONS * head_dim + d;

                to = (page + 1) * PAGE_POSITIONS;
                to = to < tile->to ? to : tile->to;
                for (uint32_t j = from; j < to; j++, at += head_dim) {
                        vec v[UNITS_MOST * PARTS];

                        __builtin_prefetch(tile->next[page] + at * bytes);
                        UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                        {
                                v[i] = load_kv(type, tile->v[page], at + i * LANES);
                        }
                        UNROLL for (uint32_t t = 0; t < queries; t++)
                        {
                                vec x = splat(pass->p[t][j]);

                                UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                                {
                                        sums[t][i] = fused(v[i], x, sums[t][i]);
                                }
                        }
                }
        }
        UNROLL for (uint32_t t = 0; t < queries; t++)
        {
                UNROLL for (uint32_t i = 0; i < units * PARTS; i++)
                {
                        store(pass->values[t] + d + i * LANES, sums[t][i]);
                }
        }
}

LANES_INLINE void values_all(const enum kv_type type, const uint32_t queries,
                             const struct pass *pass, const struct tile *tile, uint32_t head_dim)
{
        const uint32_t units = units_of(queries);
        uint32_t wide = round_up(head_dim, SUMS), d = 0;

        for (; d + units * SUMS <= wide; d += units * SUMS)
                values_of(type, queries, units, pass, tile, head_dim, d);
        for (; d < wide; d += SUMS)
                values_of(type, queries, 1, pass, tile, head_dim, d);
}

/* ---- a pass, a tile, a span ---- */

/* A block of queries while it walks through a span. */
struct walk {
        const struct past *past;
        const struct query *queries;
        struct softmax *const *found;
        float sums[QUERIES][SUMS]; /* of e^(score - largest), number i in sum i % 16 */
        uint32_t base;             /* the tile's first position */
};

/*
 * Adds a pass's scores to the running softmax. The earlier results are multiplied by e^(largest
 * before - largest now), which is 1 if no new score is larger. There is no branch for that case.
 * The branch would depend on the data that is read, and a correct prediction would be faster. So
 * another user could learn from timing which case occurred.
 */
static void pass_softmax(struct walk *w, struct pass *pass, const struct tile *tile, uint32_t query,
                         uint32_t count)
{
        bool is_plain = tile->to - tile->from == TILE_POSITIONS && w->past->softcap == 0 &&
                        !KV_HAS_SCALES(w->past->type);
        float base[PASS_QUERIES];
        vec down = { 0 };

        for (uint32_t t = 0; t < count; t++) {
                struct softmax *found = w->found[query + t];
                float before = found->largest, most;

                if (is_plain && w->queries[query + t].slope == 0)
                        scores_scale(pass->p[t], w->past->scale);
                else
                        scores_shape(pass->p[t], tile, w->past, &w->queries[query + t], w->base);
                most = scores_largest(pass->p[t]);
                found->largest = most > before ? most : before;
                base[t] = base_of(found->largest);
                down = choose(iota() == (int32_t)t, splat(before - base[t]), down);
        }
        store(pass->factor, exp_lanes(down));
        for (uint32_t t = 0; t < count; t++)
                scores_weigh(pass->p[t], w->sums[query + t], pass->factor[t], base[t], tile);
}

LANES_INLINE void pass_take(const enum kv_type type, const uint32_t count, struct walk *w,
                            struct pass *pass, const struct tile *tile, uint32_t query)
{
        uint32_t head_dim = w->past->head_dim;

        scores_all(type, count, pass, tile, head_dim);
        pass_softmax(w, pass, tile, query, count);
        values_all(type, count, pass, tile, head_dim);
}

/* Handles queries [query, query + count), which see the same positions of the tile. */
LANES_INLINE void queries_take(const enum kv_type type, struct walk *w, struct pass *pass,
                               const struct tile *tile, uint32_t query, uint32_t count)
{
        const uint32_t most = PASS_QUERIES < PASS_MOST ? PASS_QUERIES : PASS_MOST;
        uint32_t n = (count + most - 1) / most;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = query + count * i / n, share = query + count * (i + 1) / n - at;

                for (uint32_t t = 0; t < share; t++) {
                        pass->q[t] = w->queries[at + t].q;
                        pass->values[t] = w->found[at + t]->values;
                }
                switch (share) {
#define PASS(N)                                                                                    \
        case N:                                                                                    \
                if (N <= most)                                                                     \
                        pass_take(type, N <= most ? N : 1, w, pass, tile, at);                     \
                break
                        PASS(1);
                        PASS(2);
                        PASS(3);
                        PASS(4);
                        PASS(5);
                        PASS(6);
#undef PASS
                }
        }
}

/* The positions of the tile at `base` that a query sees; none: from >= to. */
static void query_sees(const struct query *query, uint32_t base, struct tile *tile)
{
        tile->from = query->first > base ? query->first - base : 0;
        tile->to = query->own < base                    ? 0
                   : query->own - base < TILE_POSITIONS ? query->own - base + 1
                                                        : TILE_POSITIONS;
}

LANES_INLINE void tile_take(const enum kv_type type, struct walk *w, struct pass *pass,
                            struct tile *tile, uint32_t query, uint32_t count)
{
        uint32_t next;

        for (uint32_t i = query; i < query + count; i = next) {
                query_sees(&w->queries[i], w->base, tile);
                for (next = i + 1; next < query + count; next++) {
                        struct tile other;

                        query_sees(&w->queries[next], w->base, &other);
                        if (other.from != tile->from || other.to != tile->to)
                                break;
                }
                if (tile->from < tile->to)
                        queries_take(type, w, pass, tile, i, next - i);
        }
}

/*
 * Finds the tile's pages for `head`. Pages [first, last] of the row are seen; for other pages of
 * the tile a readable page is used instead. The data needed next is the next head's K, or the
 * first head's K in the next tile.
 */
static void tile_find(struct tile *tile, const struct past *past, uint32_t base, uint32_t first,
                      uint32_t last, uint32_t head)
{
        tile->scales_by = past->type == KV_FP8 ? 0x1p8f : 1;
        for (uint32_t g = 0; g < TILE_PAGES; g++) {
                uint32_t page = base / PAGE_POSITIONS + g, next = page + TILE_PAGES;

                page = page < first ? first : page > last ? last : page;
                tile->k[g] = past->pages[page] + head * past->head_offset;
                tile->v[g] = tile->k[g] + past->v_offset;
                tile->next[g] = head + 1 < past->heads    ? tile->k[g] + past->head_offset
                                : next < past->page_count ? past->pages[next]
                                                          : tile->k[g];
                tile->k_scales[g] = tile->v_scales[g] = NULL;
                if (KV_HAS_SCALES(past->type)) {
                        tile->k_scales[g] = (const float *)(tile->k[g] + past->scales_offset);
                        tile->v_scales[g] = (const float *)(tile->v[g] + past->scales_offset);
                }
        }
}

LANES_INLINE void span_take(const enum kv_type type, struct walk *w, uint32_t from, uint32_t to,
                            uint32_t count)
{
        struct pass pass = { 0 };
        uint32_t heads = w->past->heads, share = count / heads;

        for (w->base = from / TILE_POSITIONS * TILE_POSITIONS; w->base < to;
             w->base += TILE_POSITIONS) {
                for (uint32_t head = 0; head < heads; head++) {
                        struct tile tile;

                        tile_find(&tile, w->past, w->base, from / PAGE_POSITIONS,
                                  (to - 1) / PAGE_POSITIONS, head);
                        tile_take(type, w, &pass, &tile, head * share, share);
                }
        }
}

/* The positions of a span that any of the queries sees: [*ret_from, *ret_to). */
static void span_seen(uint32_t span, const struct query *queries, uint32_t count,
                      uint32_t *ret_from, uint32_t *ret_to)
{
        uint32_t from = span + SPAN_POSITIONS, to = span;

        for (uint32_t i = 0; i < count; i++) {
                if (queries[i].own < span || queries[i].first >= span + SPAN_POSITIONS)
                        continue;
                from = queries[i].first < from ? queries[i].first : from;
                to = queries[i].own >= to ? queries[i].own + 1 : to;
        }
        *ret_from = from < span ? span : from;
        *ret_to = to > span + SPAN_POSITIONS ? span + SPAN_POSITIONS : to;
}

static void attend(const struct past *past, uint32_t span, const struct query *queries,
                   uint32_t count, struct softmax *const *ret_found)
{
        struct walk w = { .past = past, .queries = queries, .found = ret_found };
        uint32_t from, to;

        for (uint32_t i = 0; i < count; i++) {
                ret_found[i]->largest = -INFINITY;
                memset(ret_found[i]->values, 0,
                       round_up(past->head_dim, SUMS) * sizeof(*ret_found[i]->values));
        }
        span_seen(span, queries, count, &from, &to);
        switch (past->type) {
        case KV_F16:
                span_take(KV_F16, &w, from, to, count);
                break;
        case KV_BF16:
                span_take(KV_BF16, &w, from, to, count);
                break;
        case KV_INT8:
                span_take(KV_INT8, &w, from, to, count);
                break;
        case KV_F32:
                span_take(KV_F32, &w, from, to, count);
                break;
        case KV_FP8:
                span_take(KV_FP8, &w, from, to, count);
        }
        for (uint32_t i = 0; i < count; i++)
                ret_found[i]->sum = tree_sum(w.sums[i]);
}

static void attend_join(struct softmax *all, const struct softmax *next, uint32_t head_dim)
{
        float largest = next->largest > all->largest ? next->largest : all->largest;
        float old = exp_one(all->largest - base_of(largest));
        float new = exp_one(next->largest - base_of(largest));

        all->largest = largest;
        all->sum = all->sum * old + next->sum * new;
        for (uint32_t d = 0; d < head_dim; d += LANES)
                store(all->values + d, load(all->values + d) * old + load(next->values + d) * new);
}

static void attend_out(float *out, const struct softmax *all, uint32_t head_dim, const float *sink)
{
        float sum = all->sum, factor = 1;

        if (sink) {
                float largest = *sink > all->largest ? *sink : all->largest;

                factor = exp_one(all->largest - largest);
                sum = sum * factor + exp_one(*sink - largest);
        } else if (all->largest == -INFINITY) {
                factor = NAN; /* the query sees nothing, so its result is undefined */
        }
        factor = factor / sum;
        for (uint32_t d = 0; d < head_dim; d++)
                out[d] = all->values[d] * factor;
}
