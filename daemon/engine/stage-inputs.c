#include "daemon/engine/stage-inputs.h"

#include <math.h>

#include "daemon/engine/stage-matrices.h"
#include "base/error.h"

int stage_inputs_open(struct building *b)
{
        const struct tensor *const *t = b->conf->tensors->at;
        const struct traits *traits = b->conf->traits;
        struct stage *s = b->stage;
        int r;

        if ((r = stage_matrix_open(b, &t[LAYER_INPUT_EMBD], 1, &s->input_embedding)) ||
            (r = stage_matrix_open(b, &t[LAYER_INPUT_PROJ], 1, &s->input_projection)) ||
            (r = stage_norm_load(b, t[LAYER_INPUT_NORM], NULL, traits->norm,
                                 &s->input_project.norm)))
                return error_pass(r);
        s->input_embed.table = s->input_embedding;
        s->input_embed.scale = sqrtf((float)traits->layer_input);
        s->input_project.w = s->input_projection;
        s->input_project.norm_columns = traits->layer_input;
        /* The model divides the product by sqrt(width) first.  The norm takes that out, except of
         * what it adds to the squares. */
        s->input_project.norm.eps = traits->eps * (float)traits->width;
        s->input_project.after = (float)sqrt(0.5);
        return 0;
}

int stage_input_open(struct building *b, struct layer *l, uint32_t layer)
{
        const struct layer_tensors *t = &b->conf->tensors->layers[layer];
        const struct traits *traits = b->conf->traits;
        int r;

        if ((r = stage_matrix_open(b, &t->at[INPUT_GATE], 1, &l->input_gate_matrix)) ||
            (r = stage_matrix_open(b, &t->at[INPUT_PROJ], 1, &l->input_matrix)) ||
            (r = stage_norm_load(b, t->at[INPUT_POST_NORM], NULL, traits->norm, &l->input.norm)))
                return error_pass(r);
        l->input_gate.w = l->input_gate_matrix;
        l->input_gate.act = traits->act;
        l->input_gate.factor = b->stage->inputs;
        l->input_gate.factor_columns = input_columns(traits);
        l->input_gate.factor_first = layer * traits->layer_input;
        l->input.w = l->input_matrix;
        return 0;
}

int stage_inputs_make(struct stage *s)
{
        struct kernels *k = s->kernels;
        int r = k->embed(k, &s->input_embed, s->inputs);

        if (!r)
                r = k->project(k, &s->input_project, s->inputs, s->x);
        return r ? error_raise(r) : 0;
}

int stage_input_add(struct stage *s, const struct layer *l)
{
        struct kernels *k = s->kernels;
        int r = k->gate(k, &l->input_gate, s->input, s->x);

        if (!r)
                r = k->project(k, &l->input, s->x, s->input);
        return r ? error_raise(r) : 0;
}
