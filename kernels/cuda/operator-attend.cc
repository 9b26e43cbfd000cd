/*
 * The operator attend, made from the kernels attend, and attend-prompt where a row's bits may
 * depend on other rows.  Layers of one shape share a plan, which is made once a step.
 */
#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>

void cuda_plans_deinit(struct cuda *cuda)
{
        for (uint32_t i = 0; i < cuda->plan_count; i++) {
                device_delete(cuda->device, cuda->plans[i].scratch.list);
                device_delete(cuda->device, cuda->plans[i].prompts.list);
        }
        device_delete(cuda->device, cuda->parts);
        device_delete(cuda->device, cuda->attend_arrived);
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
        assert(cuda_has_content(cuda, q, cuda_queries_of(kv)));
        if ((r = plan_of(cuda, op, &plan)) ||
            (r = cuda_set_content(cuda, out, CONTENT_BFLOATS, columns, padded(columns))))
                return cuda_check(cuda, r);
        args.view = cuda_view_of(cuda, kv);
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
