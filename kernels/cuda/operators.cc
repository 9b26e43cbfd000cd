/*
 * The operators of the table, each made from kernels of this directory:
 *
 *      embed           embed of the tokens, then of the positions, norm_floats
 *      qkv             norm, linear, unpair (q and k of the same height), norm_floats (SPAN_WHOLE),
 *                      qkv-finish
 *      attend          operator-attend.cc
 *      project         (norm without a norm,) linear, norm_floats (with a norm, or `after`)
 *      gate            norm, linear
 *      renorm          norm_floats
 *      head            norm of the rows that are wanted, linear, softcap
 *
 * An operator launches only what its arguments need.  Where there are many rows, linear_blas()
 * replaces linear().
 */
#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "kernels/cuda/embed.h"
#include "kernels/cuda/features.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/pick.h"
#include "kernels/cuda/qkv-finish.h"
#include "kernels/cuda/softcap.h"
#include "kernels/cuda/unpair.h"
#include "kernels/draw.h"

static const uint32_t *rows_count(const struct cuda *cuda)
{
        return &cuda->counts->rows;
}

/* Converts rows to the bfloats that are multiplied with this matrix, in cuda->bfloat_rows. */
static int to_bfloats(struct cuda *cuda, const matrix *w, const float *x, const row_norm *norm_of)
{
        const norm_args args = { x,
                                 *norm_of,
                                 w->shape.columns,
                                 padded(w->shape.columns),
                                 cuda->bfloat_rows,
                                 rows_count(cuda),
                                 nullptr,
                                 cuda->view.rows_max };

        assert(cuda_has_content(cuda, x, CONTENT_FLOATS));
        return norm(cuda->device, &args);
}

static linear_args product(struct cuda *cuda, const matrix *w, linear_epilogue epilogue,
                           const float *bias)
{
        linear_args args = {};

        args.w = w->runs[0].w; /* the whole matrix, unless its parts have different types */
        args.x = cuda->bfloat_rows;
        args.x_columns = padded(w->shape.columns);
        args.rows_max = cuda->view.rows_max;
        args.count = rows_count(cuda);
        args.epilogue = epilogue;
        for (uint32_t p = 0; p < w->shape.parts; p++)
                args.n += w->shape.rows[p];
        args.y_columns = args.n;
        args.bias = bias;
        args.sums = cuda->sums;
        args.arrived = cuda->arrived;
        return args;
}

/* Uses the quicker of both products, if a row's bits may depend on the number of rows. */
static int multiply(struct cuda *cuda, const linear_args *args)
{
        bool many = args->rows_max >= linear_blas_rows_min(&args->w);
        int r = cuda->library && many ? linear_blas_serves(cuda->library, args, &cuda->linear_blas)
                                      : 0;

        if (r < 0)
                return r;
        return r ? linear_blas(cuda->device, cuda->library, args, &cuda->linear_blas)
                 : linear(cuda->device, args);
}

/* The backend works without cuBLASLt, but reports that it is missing. */
static int open_blas(struct cuda *cuda)
{
        int r;

        cuda->linear_blas.bytes = LINEAR_BLAS_SCRATCH_BYTES;
        if (cuda->conf.deterministic || feature_is_disabled(FEATURE_BLAS))
                return 0;
        r = blas_open(cuda->device, &cuda->library);
        if (!r)
                cuda->table.name = "cuda/blas";
        if (r == -ENOENT)
                snprintf(cuda->missing, sizeof(cuda->missing),
                         "%s; prompts and other steps of many rows are slower without it; install "
                         "CUDA's libcublas, or set SMV_CUBLASLT to its file",
                         blas_errtext());
        return r == -ENOENT ? 0 : r;
}

int cuda_operators_init(struct cuda *cuda)
{
        const size_t wants = cuda->conf.wants_max;
        int r;

        if ((r = open_blas(cuda)) ||
            (r = device_new(cuda->device, wants * sizeof(uint32_t), (void **)&cuda->tokens)) ||
            (r = device_new(cuda->device, wants * cuda->conf.vocab_max * sizeof(float),
                            (void **)&cuda->edited)))
                return r;
        return device_new(cuda->device, wants * PICK_ENTRIES_MAX * sizeof(logprob),
                          (void **)&cuda->entries);
}

void cuda_operators_deinit(struct cuda *cuda)
{
        cuda_plans_deinit(cuda);
        device_delete(cuda->device, cuda->tokens);
        device_delete(cuda->device, cuda->edited);
        device_delete(cuda->device, cuda->entries);
        device_delete(cuda->device, cuda->bfloat_rows);
        device_delete(cuda->device, cuda->stacked);
        device_delete(cuda->device, cuda->sums);
        device_delete(cuda->device, cuda->arrived);
        device_delete(cuda->device, cuda->linear_blas.weights);
        device_delete(cuda->device, cuda->linear_blas.sums);
        blas_close(cuda->library);
}

/* Rows of floats that become their norm: all of each row, unless the caller says otherwise. */
static norm_floats_args norm_in_place(struct cuda *cuda, float *x, uint32_t columns,
                                      const row_norm *norm_of)
{
        norm_floats_args args = {};

        args.x = args.to = x;
        args.x_columns = args.to_columns = columns;
        args.pieces[0] = { 0, columns, 0, *norm_of };
        args.piece_count = 1;
        args.count = rows_count(cuda);
        args.rows_max = cuda->view.rows_max;
        return args;
}

int cuda_embed(struct kernels *k, const struct embed *op, float *x)
{
        struct cuda *cuda = cuda_of(k);
        const uint32_t columns = op->table->shape.columns;
        const norm_floats_args normed = norm_in_place(cuda, x, columns, &op->norm);
        embed_args args = { cuda->view, op->table->runs[0].w, columns, op->scale, x, false, 0 };
        int r;

        assert(cuda->steps.running && op->table->shape.parts == 1);
        r = cuda_set_content(cuda, x, CONTENT_FLOATS, columns, columns);
        if (!r)
                r = embed(cuda->device, &args);
        if (!r && op->positions) {
                assert(op->positions->shape.parts == 1 && op->positions->shape.columns == columns);
                args.table = op->positions->runs[0].w;
                args.by_position = true;
                args.first_position = op->first_position;
                r = embed(cuda->device, &args);
        }
        if (!r && op->norm.kind)
                r = norm_floats(cuda->device, &normed);
        return cuda_check(cuda, r);
}

/* One launch for each run; their results lie side by side. */
static int multiply_runs(struct cuda *cuda, const matrix *w, const linear_args *all)
{
        linear_args args = *all;
        int r = 0;

        for (uint32_t i = 0; i < w->run_count && !r; i++) {
                const matrix_run *run = &w->runs[i];

                args.w = run->w;
                args.n = run->n;
                args.bias = all->bias ? all->bias + run->first : nullptr;
                args.y = all->y + run->first;
                r = multiply(cuda, &args);
        }
        return r;
}

/* Numbers of a row in cuda->stacked: q alone, or q and k and v, or space for v. */
static uint32_t stacked_columns(const qkv *op)
{
        uint32_t heads = op->heads + (op->w->shape.parts > 1 ? 2 * op->kv_heads : 0);

        return heads * op->head_dim;
}

/* Where parts alternate, their results do, too; these are put behind the rows first. */
static int multiply_pair(struct cuda *cuda, const qkv *op, const linear_args *all)
{
        linear_args args = *all;
        unpair_args apart = {};
        int r;

        args.y += (size_t)all->rows_max * all->y_columns;
        args.y_columns = args.n;
        args.bias = nullptr;
        apart = { args.y,    all->y,     op->w->shape.rows[0], all->y_columns,
                  all->bias, all->count, all->rows_max };
        r = multiply(cuda, &args);
        return r ? r : unpair(cuda->device, &apart);
}

/* Multiplies to q, k and v in cuda->stacked, which it makes large enough. */
static int stack_heads(struct cuda *cuda, const qkv *op)
{
        linear_args args = product(cuda, op->w, LINEAR_STORE, op->bias);
        bool paired = op->w->paired;
        int r;

        args.y_columns = stacked_columns(op);
        r = cuda_stacked_grow(cuda, args.y_columns + (paired ? args.n : 0));
        args.y = cuda->stacked;
        if (r)
                return r;
        return paired ? multiply_pair(cuda, op, &args) : multiply_runs(cuda, op->w, &args);
}

/* Whether v is made from the results for k, but these are normalised before. */
static bool is_k_moved(const qkv *op)
{
        return op->w->shape.parts == 2 && op->span == SPAN_WHOLE;
}

/*
 * The heads of q together are one piece of a row, and those of k are the other.  If k is also v, it
 * stays, and its norm goes to the place of v.
 */
static int norm_whole(struct cuda *cuda, const qkv *op)
{
        const uint32_t q = op->heads * op->head_dim, k = op->kv_heads * op->head_dim;
        norm_floats_args args =
                norm_in_place(cuda, cuda->stacked, stacked_columns(op), &op->q_norm);

        args.pieces[0].columns = q;
        args.pieces[1] = { q, k, is_k_moved(op) ? q + k : q, op->k_norm };
        args.piece_count = op->w->shape.parts > 1 ? 2 : 1;
        args.clip = op->clip;
        return norm_floats(cuda->device, &args);
}

static int finish_heads(struct cuda *cuda, const qkv *op, float *q)
{
        const kv *kv = op->kv;
        const uint32_t parts = op->w->shape.parts;
        qkv_finish_args args = {};

        args.view = cuda_view_of(cuda, kv);
        args.y = cuda->stacked;
        args.q = (uint16_t *)q;
        args.heads = op->heads;
        args.kv_heads = parts > 1 ? op->kv_heads : 0;
        args.head_dim = op->head_dim;
        args.k_at = op->heads + (is_k_moved(op) ? op->kv_heads : 0);
        args.v_at = op->heads + (parts == 3 ? op->kv_heads : 0);
        args.clip = op->clip;
        args.span = op->span;
        args.q_norm = op->q_norm;
        args.k_norm = op->k_norm;
        args.v_norm = op->v_norm;
        args.rotation = op->rope;
        args.query_beta = op->query_beta;
        args.query_length = op->query_length;
        args.pages = kv->pages + kv_tile_offset(&kv->shape, op->layer, 0);
        args.page_bytes = kv->page_bytes;
        args.tile_bytes = kv->tile_bytes;
        args.type = kv->shape.type;
        return qkv_finish(cuda->device, &args);
}

int cuda_qkv(struct kernels *k, const qkv *op, float *q, const float *x)
{
        struct cuda *cuda = cuda_of(k);
        const kv *kv = op->kv;
        const uint32_t columns = op->heads * op->head_dim;
        int r;

        assert(cuda->steps.running && op->w->shape.rows[0] == columns);
        for (uint32_t p = 1; p < op->w->shape.parts; p++)
                assert(op->w->shape.rows[p] == op->kv_heads * op->head_dim);
        assert(op->layer < kv->shape.layers && op->head_dim == kv->shape.head_dim &&
               op->kv_heads == kv->shape.kv_heads);
        assert(op->query_beta == 0 || op->query_length);
        if ((r = cuda_set_content(cuda, q, cuda_queries_of(kv), columns, columns)) ||
            (r = to_bfloats(cuda, op->w, x, &op->norm)) || (r = stack_heads(cuda, op)))
                return cuda_check(cuda, r);
        if (op->span == SPAN_WHOLE)
                r = norm_whole(cuda, op);
        return cuda_check(cuda, r ? r : finish_heads(cuda, op, q));
}

static bool is_scaled(float scale)
{
        return scale != 0 && scale != 1;
}

/*
 * Whether the product itself adds the results.  It can add scale * W y, or W y + b.  Otherwise it
 * stores them, and norm_floats() adds them.
 */
static bool is_added_at_once(const struct linear *op)
{
        return op->norm.kind == NORM_NONE && !is_scaled(op->after) &&
               !(is_scaled(op->scale) && op->bias);
}

/* Adds the rows in cuda->stacked, as op says. */
static int add_normed(struct cuda *cuda, const struct linear *op, float *x)
{
        norm_floats_args args = norm_in_place(cuda, cuda->stacked, op->w->shape.rows[0], &op->norm);

        if (op->norm_columns) {
                args.pieces[0].columns = op->norm_columns;
                args.repeats = op->w->shape.rows[0] / op->norm_columns;
        }
        args.to = x;
        args.scale = op->scale;
        args.add = true;
        args.after = op->after;
        return norm_floats(cuda->device, &args);
}

int cuda_project(struct kernels *k, const struct linear *op, float *x, const float *y)
{
        static const row_norm none = {};
        struct cuda *cuda = cuda_of(k);
        bool at_once = is_added_at_once(op);
        linear_args args = product(cuda, op->w, at_once ? LINEAR_ADD : LINEAR_STORE, op->bias);
        int r = 0;

        assert(cuda->steps.running && op->w->shape.parts == 1);
        assert(!op->norm_columns || op->w->shape.rows[0] % op->norm_columns == 0);
        assert(cuda_has_content(cuda, x, CONTENT_FLOATS));
        if (!at_once)
                r = cuda_stacked_grow(cuda, args.n);
        args.y = at_once ? x : cuda->stacked;
        args.scale = op->scale;
        if (cuda_has_content(cuda, y, CONTENT_BFLOATS))
                args.x = (const uint16_t *)y;
        else if (!r)
                r = to_bfloats(cuda, op->w, y, &none);
        if (!r)
                r = multiply(cuda, &args);
        return cuda_check(cuda, r || at_once ? r : add_normed(cuda, op, x));
}

int cuda_gate(struct kernels *k, const gate *op, float *out, const float *x)
{
        struct cuda *cuda = cuda_of(k);
        linear_epilogue epilogue = op->w->paired ? LINEAR_GATE : LINEAR_ACT;
        linear_args args = product(cuda, op->w, epilogue, op->bias);
        int r;

        assert(cuda->steps.running && (op->w->shape.parts == 1 || op->w->paired));
        args.n = op->w->shape.rows[0];
        if (op->factor) {
                assert(!op->w->paired && cuda_has_content(cuda, op->factor, CONTENT_FLOATS));
                assert(op->factor_first + args.n <= op->factor_columns);
                args.factor = op->factor + op->factor_first;
                args.factor_columns = op->factor_columns;
        }
        args.out = (uint16_t *)out;
        args.out_columns = padded(args.n);
        args.act = op->act;
        if ((r = cuda_gate_grow(cuda, op->w)) ||
            (r = cuda_set_content(cuda, out, CONTENT_BFLOATS, args.n, args.out_columns)) ||
            (r = to_bfloats(cuda, op->w, x, &op->norm)))
                return cuda_check(cuda, r);
        return cuda_check(cuda, multiply(cuda, &args));
}

int cuda_renorm(struct kernels *k, const struct renorm *op, float *x)
{
        struct cuda *cuda = cuda_of(k);
        const norm_floats_args args = norm_in_place(cuda, x, op->columns, &op->norm);

        assert(cuda->steps.running && cuda_has_content(cuda, x, CONTENT_FLOATS));
        return cuda_check(cuda, norm_floats(cuda->device, &args));
}

int cuda_head(struct kernels *k, const head *op, float *logits, const float *x)
{
        struct cuda *cuda = cuda_of(k);
        const uint32_t columns = op->w->shape.columns, *wants = &cuda->counts->wants;
        const norm_args wanted = {
                x,     op->norm,        columns,           padded(columns), cuda->bfloat_rows,
                wants, cuda->view.want, cuda->wants_bucket
        };
        linear_args args = product(cuda, op->w, LINEAR_STORE, op->bias);
        const softcap_args hold = { logits, op->scale,          op->softcap,
                                    args.n, cuda->wants_bucket, wants };
        bool changed = op->softcap > 0 || is_scaled(op->scale);
        int r;

        assert(cuda->steps.running && op->w->shape.parts == 1);
        if (!cuda->wants_bucket)
                return 0;
        args.rows_max = cuda->wants_bucket;
        args.count = wants;
        args.y = logits;
        assert(cuda_has_content(cuda, x, CONTENT_FLOATS));
        if ((r = cuda_set_content(cuda, logits, CONTENT_FLOATS, args.n, args.n)) ||
            (r = norm(cuda->device, &wanted)) || (r = multiply(cuda, &args)))
                return cuda_check(cuda, r);
        return changed ? cuda_check(cuda, softcap(cuda->device, &hold)) : 0;
}

static pick_args picks_of(const struct cuda *cuda, uint32_t wants_max)
{
        return { cuda->view, cuda->logits, cuda->vocab,  cuda->vocab,
                 wants_max,  cuda->edited, cuda->tokens, cuda->entries };
}

int cuda_pick(struct kernels *k, const float *logits, uint32_t vocab)
{
        struct cuda *cuda = cuda_of(k);
        pick_args args;

        assert(cuda->steps.running && vocab <= cuda->conf.vocab_max);
        if (!cuda->wants_bucket)
                return 0;
        cuda->logits = logits;
        cuda->vocab = vocab;
        args = picks_of(cuda, cuda->wants_bucket);
        return cuda_check(cuda, pick_tokens(cuda->device, &args));
}

/*
 * It is not captured, so steps without such rows do not pay for it.  A replayed step has the
 * arguments of the warm-up.
 */
int cuda_pick_more(struct cuda *cuda)
{
        const step *step = &cuda->steps.step;
        const pick_args args = picks_of(cuda, step->want_count);
        bool has_more = false;

        for (uint32_t i = 0; i < step->want_count; i++)
                has_more = has_more || pick_has_more(&step->picks[i]);
        return has_more ? pick_more_tokens(cuda->device, &args) : 0;
}
