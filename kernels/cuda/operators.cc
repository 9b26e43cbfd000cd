/*
 * The operators of the table, each made from kernels of this directory:
 *
 *      qkv             norm, linear, qkv-finish
 *      attend          attend; and attend-prompt, where a row's bits may depend on other rows
 *      project         (norm without a norm,) linear
 *      gate            norm, linear
 *      head            norm of the rows that are wanted, linear, softcap
 *
 * Where there are many rows, linear_blas() replaces linear().
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

static const uint32_t *rows_count(const struct cuda *cuda)
{
        return &cuda->counts->rows;
}

/*
 * Notes the content that an operator is going to write to a buffer.  Padding is not written, so
 * it is cleared if other rows may have left bits there that would be NaN in a product.
 */
static int set_content(struct cuda *cuda, const float *floats, content content, uint32_t columns,
                       uint32_t width)
{
        buffer *buffer = cuda_buffer(cuda, floats);
        bool same = buffer->content == content && buffer->columns == columns;

        assert(floats == buffer->at);
        buffer->content = content;
        buffer->columns = columns;
        buffer->width = width;
        if (same || width == columns)
                return 0;
        return device_clear(cuda->device, STREAM_STEPS, buffer->at, buffer->bytes);
}

static bool has_content(struct cuda *cuda, const float *floats, content content)
{
        return cuda_buffer(cuda, floats)->content == content;
}

/* Converts rows to the bfloats that are multiplied with this matrix, in cuda->bfloat_rows. */
static int to_bfloats(struct cuda *cuda, const matrix *w, const float *x, const float *norm_of,
                      float eps)
{
        const norm_args args = { x,
                                 norm_of,
                                 eps,
                                 w->shape.columns,
                                 padded(w->shape.columns),
                                 cuda->bfloat_rows,
                                 rows_count(cuda),
                                 nullptr,
                                 cuda->view.rows_max };

        assert(has_content(cuda, x, CONTENT_FLOATS));
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
        uint32_t wants = cuda->conf.wants_max;
        int r = open_blas(cuda);

        if (!r)
                r = device_new(cuda->device, wants * sizeof(uint32_t), (void **)&cuda->tokens);
        if (r)
                return r;
        return device_new(cuda->device, (size_t)wants * PICK_LOGPROBS_MAX * sizeof(logprob),
                          (void **)&cuda->logprobs);
}

void cuda_operators_deinit(struct cuda *cuda)
{
        for (uint32_t i = 0; i < cuda->plan_count; i++) {
                device_delete(cuda->device, cuda->plans[i].scratch.list);
                device_delete(cuda->device, cuda->plans[i].prompts.list);
        }
        device_delete(cuda->device, cuda->tokens);
        device_delete(cuda->device, cuda->logprobs);
        device_delete(cuda->device, cuda->bfloat_rows);
        device_delete(cuda->device, cuda->stacked);
        device_delete(cuda->device, cuda->sums);
        device_delete(cuda->device, cuda->arrived);
        device_delete(cuda->device, cuda->parts);
        device_delete(cuda->device, cuda->attend_arrived);
        device_delete(cuda->device, cuda->linear_blas.weights);
        device_delete(cuda->device, cuda->linear_blas.sums);
        blas_close(cuda->library);
}

int cuda_embed(struct kernels *k, const matrix *table, float scale, float *x)
{
        struct cuda *cuda = cuda_of(k);
        const embed_args args = { cuda->view, table->runs[0].w, table->shape.columns, scale, x };
        int r;

        assert(cuda->steps.running && table->shape.parts == 1);
        r = set_content(cuda, x, CONTENT_FLOATS, table->shape.columns, table->shape.columns);
        return cuda_check(cuda, r ? r : embed(cuda->device, &args));
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

/* The type of queries that attention needs (attend.h). */
static content queries_of(const kv *kv)
{
        return kv->shape.type == KV_BF16 ? CONTENT_BFLOATS : CONTENT_HALVES;
}

int cuda_qkv(struct kernels *k, const qkv *op, float *q, const float *x)
{
        struct cuda *cuda = cuda_of(k);
        kv *kv = op->kv;
        const uint32_t columns = op->heads * op->head_dim;
        linear_args stack = product(cuda, op->w, LINEAR_STORE, op->bias);
        const qkv_finish_args finish = { cuda->view,
                                         cuda->stacked,
                                         (uint16_t *)q,
                                         op->heads,
                                         op->kv_heads,
                                         op->head_dim,
                                         op->q_norm,
                                         op->k_norm,
                                         op->eps,
                                         op->rope,
                                         kv->pages + kv_tile_offset(&kv->shape, op->layer, 0),
                                         kv->page_bytes,
                                         kv->tile_bytes,
                                         kv->shape.type };
        int r;

        assert(cuda->steps.running && op->w->shape.parts == 3);
        assert(op->layer < kv->shape.layers && op->head_dim == kv->shape.head_dim &&
               op->kv_heads == kv->shape.kv_heads);
        stack.y = cuda->stacked;
        if ((r = set_content(cuda, q, queries_of(kv), columns, columns)) ||
            (r = to_bfloats(cuda, op->w, x, op->norm, op->eps)) ||
            (r = multiply_runs(cuda, op->w, &stack)))
                return cuda_check(cuda, r);
        return cuda_check(cuda, qkv_finish(cuda->device, &finish));
}

void cuda_plans_forget(struct cuda *cuda)
{
        for (uint32_t i = 0; i < cuda->plan_count; i++)
                cuda->plans[i].made = false;
}

int cuda_attend_scratch(const struct cuda *cuda, const struct attend *op,
                        attend_scratch *ret_scratch, attend_scratch_bytes *ret_bytes)
{
        *ret_scratch = {};
        ret_scratch->heads = op->heads;
        ret_scratch->kv_heads = op->kv_heads;
        ret_scratch->head_dim = op->head_dim;
        ret_scratch->window = op->window;
        return attend_scratch_of(ret_scratch, device_processors(cuda->device), cuda->conf.rows_max,
                                 cuda->conf.pages_max, ret_bytes);
}

int cuda_prompt_scratch(const struct cuda *cuda, const attend_scratch *of,
                        attend_prompt_scratch *ret_scratch, size_t *ret_bytes)
{
        *ret_scratch = {};
        *ret_bytes = 0;
        if (cuda->conf.deterministic || !attend_prompt_serves(of->head_dim, KV_F16))
                return 0;
        ret_scratch->rows_min = ATTEND_PROMPT_ROWS;
        return attend_prompt_scratch_of(ret_scratch, of, device_processors(cuda->device),
                                        cuda->conf.rows_max, ret_bytes);
}

/* Gives long runs a kernel of their own. */
static int split_off_prompts(struct cuda *cuda, plan *plan)
{
        size_t bytes;
        int r = cuda_prompt_scratch(cuda, &plan->scratch, &plan->prompts, &bytes);

        if (r || !bytes)
                return r;
        plan->scratch.rows_below = plan->prompts.rows_min;
        return device_new(cuda->device, bytes, (void **)&plan->prompts.list);
}

/* A plan is made in the first step that has such a layer, or in the warm-up. */
static int plan_new(struct cuda *cuda, const struct attend *op, plan **ret_plan)
{
        plan *plan = &cuda->plans[cuda->plan_count];
        attend_scratch_bytes bytes;
        int r;

        if (cuda->plan_count == PLANS_MAX)
                return -ENOSPC;
        *plan = {};
        r = cuda_attend_scratch(cuda, op, &plan->scratch, &bytes);
        if (!r)
                r = device_new(cuda->device, bytes.list, (void **)&plan->scratch.list);
        if (r)
                return r;
        cuda->plan_count++; /* counted now, so that its list is freed even after an error */
        r = split_off_prompts(cuda, plan);
        if (!r)
                r = cuda_grow(cuda, (void **)&cuda->parts, &cuda->parts_size, bytes.parts, 1);
        if (!r && bytes.arrived > cuda->attend_arrived_size) {
                r = cuda_grow(cuda, (void **)&cuda->attend_arrived, &cuda->attend_arrived_size,
                              bytes.arrived, 1);
                if (!r)
                        r = cuda_clear(cuda, cuda->attend_arrived, bytes.arrived);
        }
        *ret_plan = plan;
        return r;
}

/* The plan of this step for layers of that shape. */
static int plan_of(struct cuda *cuda, const struct attend *op, plan **ret_plan)
{
        plan *plan = nullptr;
        int r = 0;

        for (uint32_t i = 0; i < cuda->plan_count && !plan; i++) {
                const attend_scratch *scratch = &cuda->plans[i].scratch;

                if (scratch->heads == op->heads && scratch->kv_heads == op->kv_heads &&
                    scratch->head_dim == op->head_dim && scratch->window == op->window)
                        plan = &cuda->plans[i];
        }
        if (!plan)
                r = plan_new(cuda, op, &plan);
        if (r)
                return r;
        *ret_plan = plan;
        if (plan->made)
                return 0;
        plan->made = true;
        plan->scratch.parts = cuda->parts;
        plan->scratch.arrived = cuda->attend_arrived;
        r = attend_plan(cuda->device, &cuda->view, &plan->scratch);
        if (r || !plan->prompts.rows_min)
                return r;
        return attend_prompt_plan(cuda->device, &cuda->view, &plan->scratch, &plan->prompts);
}

int cuda_attend(struct kernels *k, const struct attend *op, float *out, const float *q)
{
        struct cuda *cuda = cuda_of(k);
        const kv *kv = op->kv;
        const uint32_t columns = op->heads * op->head_dim;
        attend_args args = {};
        plan *plan;
        int r;

        assert(cuda->steps.running && op->head_dim == kv->shape.head_dim);
        assert(has_content(cuda, q, queries_of(kv)));
        if ((r = plan_of(cuda, op, &plan)) ||
            (r = set_content(cuda, out, CONTENT_BFLOATS, columns, padded(columns))))
                return cuda_check(cuda, r);
        args.view = cuda->view;
        args.scratch = plan->scratch;
        args.scratch.parts = cuda->parts;
        args.scratch.arrived = cuda->attend_arrived;
        args.q = (const uint16_t *)q;
        args.out = (uint16_t *)out;
        args.pages = kv->pages + kv_tile_offset(&kv->shape, op->layer, 0);
        args.page_bytes = kv->page_bytes;
        args.type = kv->shape.type;
        args.scale = op->scale;
        args.softcap = op->softcap;
        args.sinks = op->sinks;
        args.slopes = op->slopes;
        r = attend(cuda->device, &args);
        if (!r && plan->prompts.rows_min)
                r = attend_prompt(cuda->device, &args, &plan->prompts);
        return cuda_check(cuda, r);
}

int cuda_project(struct kernels *k, const struct linear *op, float *x, const float *y)
{
        struct cuda *cuda = cuda_of(k);
        linear_args args = product(cuda, op->w, LINEAR_ADD, op->bias);
        int r = 0;

        assert(cuda->steps.running && op->w->shape.parts == 1);
        assert(has_content(cuda, x, CONTENT_FLOATS));
        args.y = x;
        if (has_content(cuda, y, CONTENT_BFLOATS))
                args.x = (const uint16_t *)y;
        else
                r = to_bfloats(cuda, op->w, y, nullptr, 0);
        return cuda_check(cuda, r ? r : multiply(cuda, &args));
}

int cuda_gate(struct kernels *k, const gate *op, float *out, const float *x)
{
        struct cuda *cuda = cuda_of(k);
        linear_args args = product(cuda, op->w, LINEAR_GATE, op->bias);
        int r;

        assert(cuda->steps.running && op->w->paired);
        args.n = op->w->shape.rows[0];
        args.out = (uint16_t *)out;
        args.out_columns = padded(args.n);
        args.act = op->act;
        if ((r = set_content(cuda, out, CONTENT_BFLOATS, args.n, args.out_columns)) ||
            (r = to_bfloats(cuda, op->w, x, op->norm, op->eps)))
                return cuda_check(cuda, r);
        return cuda_check(cuda, multiply(cuda, &args));
}

int cuda_head(struct kernels *k, const head *op, float *logits, const float *x)
{
        struct cuda *cuda = cuda_of(k);
        const uint32_t columns = op->w->shape.columns, *wants = &cuda->counts->wants;
        const norm_args wanted = { x,       op->norm,        op->eps,
                                   columns, padded(columns), cuda->bfloat_rows,
                                   wants,   cuda->view.want, cuda->wants_bucket };
        linear_args args = product(cuda, op->w, LINEAR_STORE, nullptr);
        const softcap_args hold = { logits, op->softcap, args.n, cuda->wants_bucket, wants };
        int r;

        assert(cuda->steps.running && op->w->shape.parts == 1);
        if (!cuda->wants_bucket)
                return 0;
        args.rows_max = cuda->wants_bucket;
        args.count = wants;
        args.y = logits;
        assert(has_content(cuda, x, CONTENT_FLOATS));
        if ((r = set_content(cuda, logits, CONTENT_FLOATS, args.n, args.n)) ||
            (r = norm(cuda->device, &wanted)) || (r = multiply(cuda, &args)))
                return cuda_check(cuda, r);
        return op->softcap ? cuda_check(cuda, softcap(cuda->device, &hold)) : 0;
}

int cuda_pick(struct kernels *k, const float *logits, uint32_t vocab)
{
        struct cuda *cuda = cuda_of(k);
        const pick_args args = { cuda->view,         logits,       vocab,         vocab,
                                 cuda->wants_bucket, cuda->tokens, cuda->logprobs };

        assert(cuda->steps.running && vocab <= cuda->conf.vocab_max);
        if (!cuda->wants_bucket)
                return 0;
        return cuda_check(cuda, pick_tokens(cuda->device, &args));
}
