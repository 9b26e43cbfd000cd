/*
 * The stages of a model, one or two, and how a step passes through them.
 */
#include "daemon/engine/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/model-stage.h"
#include "daemon/engine/tensors.h"
#include "daemon/engine/weights-transposed.h"
#include "daemon/engine/weights.h"
#include "base/error.h"
#include "base/errtext.h"

#define STAGES_MAX 2u

/* The wanted rows of a step; rows of later steps may take their tokens from them. */
struct wanted {
        uint64_t number;
        bool collected;
        uint32_t count;
        uint32_t *rows, *tokens; /* wants_max entries each */
};

struct model {
        struct traits traits;
        struct stage stages[STAGES_MAX];
        uint32_t stage_count;
        /* The pool that is being backed, counted over those of all stages, and how far. */
        uint32_t backing;
        size_t backed;
        uint32_t rows_max, wants_max;
        /* needed until the model is loaded, with `parts`, `output` and `list` */
        const struct checkpoint *checkpoint;
        struct tensor *parts; /* of tensors that were divided */
        float *projections;   /* struct tensors */
        /* the head's tensor while undecided; NULL: the head has a matrix, or is tied */
        const struct tensor *output;
        struct load_list list;
        /* Used only with two stages: */
        /* x, or the inputs of layers, on the way from the first stage to the second */
        float *carried;
        struct step_row *rows;                /* rows of a step with all tokens known */
        struct wanted wanted[STEPS_BACK + 1]; /* step n uses entry [n % (STEPS_BACK + 1)] */
};

static struct stage *last_stage(struct model *m)
{
        return &m->stages[m->stage_count - 1];
}

/* ---- opening ---- */

/* Allocates what is needed between two stages. */
static int between_open(struct model *m)
{
        uint32_t columns = input_columns(&m->traits);
        bool whole;

        columns = columns > m->traits.width ? columns : m->traits.width;
        m->carried = calloc((size_t)m->rows_max * columns, sizeof(*m->carried));
        m->rows = calloc(m->rows_max, sizeof(*m->rows));
        whole = m->carried && m->rows;
        for (uint32_t i = 0; i <= STEPS_BACK; i++) {
                m->wanted[i].rows = calloc(m->wants_max, sizeof(uint32_t));
                m->wanted[i].tokens = calloc(m->wants_max, sizeof(uint32_t));
                whole = whole && m->wanted[i].rows && m->wanted[i].tokens;
        }
        return whole ? 0 : error_raise(-ENOMEM);
}

static int next_stage(struct model *m, struct stage_conf *conf, struct kernels *kernels,
                      struct stage_shape shape)
{
        conf->kernels = kernels;
        conf->shape = shape;
        return error_pass(stage_open(conf, &m->stages[m->stage_count++]));
}

static int stages_open(struct model *m, struct kernels *kernels, struct stage_conf *conf)
{
        const struct stage_shape host = stage_on_host(conf->model);
        const struct stage_shape rest = stage_of_rest(&m->traits, conf->model);
        int r = 0;

        assert(rest.layers && rest.layers <= m->traits.layers);
        m->list.max = stage_loads_max(&host) + stage_loads_max(&rest);
        m->list.loads = calloc(m->list.max, sizeof(*m->list.loads));
        if (!m->list.loads || (host.layers && between_open(m)))
                return error_raise(errtext_set(conf->why, conf->why_bytes, -ENOMEM,
                                               "no memory for its tensors"));
        if (host.layers)
                r = next_stage(m, conf, conf->model->host, host);
        if (!r)
                r = next_stage(m, conf, kernels, rest);
        if (!r && rest.begins)
                m->output = head_tensor(conf->tensors, &rest);
        return error_pass(r);
}

int model_open(const struct checkpoint *checkpoint, const struct traits *traits,
               struct kernels *kernels, const struct model_conf *conf, struct model **ret_model,
               char *why, size_t why_bytes)
{
        struct tensors tensors = { 0 };
        struct stage_conf stage_conf = {
                .checkpoint = checkpoint,
                .traits = traits,
                .tensors = &tensors,
                .model = conf,
                .why = why,
                .why_bytes = why_bytes,
        };
        struct model *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "no memory for its tensors"));
        m->traits = *traits;
        m->checkpoint = checkpoint;
        m->rows_max = conf->rows_max;
        m->wants_max = conf->wants_max;
        stage_conf.list = &m->list;
        r = tensors_find(checkpoint, traits, &tensors, why, why_bytes);
        if (!r)
                r = stages_open(m, kernels, &stage_conf);
        m->parts = tensors.parts;
        m->projections = tensors.projections;
        tensors.parts = NULL;
        tensors.projections = NULL;
        tensors_deinit(&tensors);
        if (r) {
                model_close(m);
                return error_pass(r);
        }
        *ret_model = m;
        return 0;
}

struct model *model_close(struct model *m)
{
        if (!m)
                return NULL;
        for (uint32_t i = 0; i < m->stage_count; i++)
                stage_close(&m->stages[i]);
        for (uint32_t i = 0; i <= STEPS_BACK; i++) {
                free(m->wanted[i].rows);
                free(m->wanted[i].tokens);
        }
        free(m->rows);
        free(m->carried);
        free(m->list.loads);
        free(m->projections);
        free(m->parts);
        free(m);
        return NULL;
}

/* ---- loading ---- */

uint64_t model_to_load(const struct model *m)
{
        uint64_t bytes = m->output ? m->output->bytes : 0;

        for (uint32_t i = 0; i < m->list.count; i++)
                if (!m->list.loads[i].tensor->transposed)
                        bytes += m->list.loads[i].tensor->bytes;
        return bytes;
}

/*
 * A head equal to the embedding is not loaded: the model is tied.  A head that differs gets its own
 * matrix.
 */
static int head_load(struct model *m, const struct weights_conf *conf, char *why, size_t why_bytes)
{
        const struct tensor *embedding = NULL;
        struct stage *stage = last_stage(m);
        int r;

        for (uint32_t i = 0; i < m->list.count; i++)
                if (m->list.loads[i].matrix == stage->embedding)
                        embedding = m->list.loads[i].tensor;
        r = m->output->unit_rows || m->output->times
                    ? 0
                    : weights_equal(m->checkpoint, embedding, m->output, conf, why, why_bytes);
        if (!r)
                r = stage_give_head(stage, m->output, &m->list, why, why_bytes);
        if (r < 0)
                return error_pass(r);
        m->output = NULL;
        return 0;
}

int model_load(struct model *m, const struct weights_conf *conf, enum load_way *ret_way, char *why,
               size_t why_bytes)
{
        int r = m->output ? head_load(m, conf, why, why_bytes) : 0;

        if (!r)
                r = weights_read_transposed(m->checkpoint, m->list.loads, &m->list.count, conf, why,
                                            why_bytes);
        if (!r)
                r = weights_read(m->checkpoint, m->list.loads, m->list.count, conf, ret_way, why,
                                 why_bytes);
        if (r)
                return error_pass(r);
        m->list.count = 0;
        for (uint32_t i = 0; i < m->stage_count; i++) {
                r = stage_rehearse(&m->stages[i]);
                if (r)
                        return error_pass(errtext_set(why, why_bytes, r,
                                                      "the backend cannot prepare its steps: %s",
                                                      strerror(-r)));
        }
        return 0;
}

bool model_back_pool(struct model *m)
{
        while (m->backing < m->stage_count * KV_POOLS_MAX) {
                struct stage *stage = &m->stages[m->backing / KV_POOLS_MAX];

                if (stage_back_pool(stage, m->backing % KV_POOLS_MAX, &m->backed))
                        return true;
                m->backing++;
                m->backed = 0;
        }
        return false;
}

uint64_t model_swap_copy_ns(struct model *m)
{
        uint64_t ns = 0;

        for (uint32_t i = 0; i < m->stage_count; i++)
                ns += stage_swap_copy_ns(&m->stages[i]);
        return ns;
}

/* ---- from one stage to the next ---- */

static void note_wanted(struct model *m, const struct step *step)
{
        struct wanted *w = &m->wanted[step->number % (STEPS_BACK + 1)];

        w->number = step->number;
        w->collected = false;
        w->count = step->want_count;
        for (uint32_t i = 0; i < w->count; i++)
                w->rows[i] = step->want[i];
}

/* The pick of an earlier step; waits until that step has ended. */
static int picked(struct model *m, const struct step_row *row, uint32_t *ret_token)
{
        struct wanted *w = &m->wanted[row->from_step % (STEPS_BACK + 1)];
        uint32_t low = 0, high = w->count;
        int r = 0;

        assert(w->number == row->from_step);
        if (!w->collected)
                r = model_collect(m, w->number, w->tokens);
        if (r)
                return error_pass(r);
        w->collected = true;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (w->rows[middle] < row->from_row)
                        low = middle + 1;
                else
                        high = middle;
        }
        assert(low < w->count && w->rows[low] == row->from_row);
        *ret_token = pick_failed(w->tokens[low]) ? 0 : w->tokens[low];
        return 0;
}

/* The step for the first stage: every token known, and no wanted rows. */
static int make_known(struct model *m, const struct step *step, struct step *ret_known)
{
        *ret_known = *step;
        ret_known->rows = m->rows;
        ret_known->want_count = 0;
        for (uint32_t i = 0; i < step->row_count; i++) {
                struct step_row *row = &m->rows[i];
                int r;

                *row = step->rows[i];
                if (row->from_row == STEP_TOKEN)
                        continue;
                r = picked(m, row, &row->token);
                if (r)
                        return error_pass(r);
                row->from_row = STEP_TOKEN;
        }
        note_wanted(m, step);
        return 0;
}

static int carry_floats(struct model *m, float *to, const float *from, size_t count)
{
        struct kernels *giver = m->stages[0].kernels, *taker = m->stages[1].kernels;
        int r;

        giver->get(giver, m->carried, from, count);
        r = taker->put(taker, to, m->carried, count);
        return r ? error_raise(r) : 0;
}

static int carry(struct model *m, uint32_t rows)
{
        const struct stage *from = &m->stages[0], *to = &m->stages[1];
        size_t inputs = (size_t)rows * input_columns(&m->traits);
        int r = carry_floats(m, to->x, from->x, (size_t)rows * m->traits.width);

        if (!r && inputs)
                r = carry_floats(m, to->inputs, from->inputs, inputs);
        return error_pass(r);
}

int model_forward(struct model *m, const struct step *step)
{
        struct step known;
        int r = 0;

        assert(step->row_count <= m->rows_max && step->want_count <= m->wants_max);
        if (m->stage_count > 1 &&
            ((r = make_known(m, step, &known)) || (r = stage_run(&m->stages[0], &known)) ||
             (r = carry(m, step->row_count))))
                return error_pass(r);
        return error_pass(stage_run(last_stage(m), step));
}

int model_collect(struct model *m, uint64_t number, uint32_t *ret_tokens)
{
        struct kernels *k = last_stage(m)->kernels;
        int r = k->collect(k, number, ret_tokens);

        return r ? error_raise(r) : 0;
}

void model_logprobs(struct model *m, uint64_t number, uint32_t want, struct logprob *ret_logprobs)
{
        struct kernels *k = last_stage(m)->kernels;

        k->logprobs(k, number, want, ret_logprobs);
}

const float *model_row(struct model *m, uint64_t number, uint32_t want)
{
        struct kernels *k = last_stage(m)->kernels;

        return k->row(k, number, want);
}

const char *model_lost(const struct model *m)
{
        const char *lost = NULL;

        for (uint32_t i = 0; !lost && i < m->stage_count; i++)
                lost = m->stages[i].kernels->lost(m->stages[i].kernels);
        return lost;
}

void model_logits(struct model *m, uint32_t want, float *ret_logits)
{
        const struct stage *stage = last_stage(m);

        assert(want < m->wants_max);
        stage->kernels->get(stage->kernels, ret_logits,
                            stage->logits + (size_t)want * m->traits.vocab, m->traits.vocab);
}
