#include <math.h>

#include "kernels/ref/ref.h"

/* The mean is subtracted first, if the kind asks for it. */
void ref_norm(double *x, const struct row_norm *norm, uint32_t count)
{
        double mean = 0, squares = 0, inverse;

        if (norm->kind == NORM_NONE)
                return;
        for (uint32_t i = 0; norm->kind == NORM_LAYER && i < count; i++)
                mean += x[i] / count;
        for (uint32_t i = 0; i < count; i++)
                squares += (x[i] - mean) * (x[i] - mean);
        inverse = 1 / sqrt(squares / count + norm->eps);
        for (uint32_t i = 0; i < count; i++)
                x[i] = (x[i] - mean) * inverse * (norm->weight ? norm->weight[i] : 1) +
                       (norm->bias ? norm->bias[i] : 0);
}

void ref_norm_row(double *in, const float *x, const struct row_norm *norm, uint32_t columns)
{
        for (uint32_t i = 0; i < columns; i++)
                in[i] = x[i];
        ref_norm(in, norm, columns);
}

double ref_dot(const float *w, const double *in, uint32_t columns)
{
        double sum = 0;

        for (uint32_t i = 0; i < columns; i++)
                sum += w[i] * in[i];
        return sum;
}

static double act(enum activation which, double g)
{
        switch (which) {
        case ACT_SILU:
                return g / (1 + exp(-g));
        case ACT_GELU_TANH:
                return 0.5 * g * (1 + tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
        case ACT_GELU:
                return 0.5 * g * (1 + erf(g / sqrt(2)));
        case ACT_RELU:
                return g < 0 ? 0 : g; /* NaN stays NaN */
        case ACT_RELU_SQUARE:
                return g < 0 ? 0 : g * g;
        case ACT_N:
                break;
        }
        assert(!"an activation");
        return 0;
}

static double scaled(double x, float scale)
{
        return scale != 0 ? x * scale : x;
}

int ref_embed(struct kernels *k, const struct embed *op, float *x)
{
        struct ref *ref = ref_of(k);
        const struct steps *s = &ref->steps;
        uint32_t columns = op->table->shape.columns;

        assert(s->running && op->table->shape.parts == 1);
        for (uint32_t r = 0; r < s->step.row_count; r++) {
                const float *w = matrix_row(op->table, 0, s->tokens[r]), *place = NULL;

                if (op->positions)
                        place = matrix_row(op->positions, 0,
                                           s->step.rows[r].position + op->first_position);
                for (uint32_t i = 0; i < columns; i++)
                        ref->in[i] = (double)w[i] * op->scale + (place ? place[i] : 0);
                ref_norm(ref->in, &op->norm, columns);
                for (uint32_t i = 0; i < columns; i++)
                        x[(size_t)r * columns + i] = (float)ref->in[i];
        }
        return 0;
}

int ref_project(struct kernels *k, const struct linear *op, float *x, const float *y)
{
        struct ref *ref = ref_of(k);
        uint32_t columns = op->w->shape.columns, rows = op->w->rows;
        uint32_t together = op->norm_columns ? op->norm_columns : rows;

        assert(ref->steps.running && op->w->shape.parts == 1 && rows % together == 0);
        for (uint32_t r = 0; r < ref->steps.step.row_count; r++) {
                float *to = &x[(size_t)r * rows];

                for (uint32_t i = 0; i < columns; i++)
                        ref->in[i] = y[(size_t)r * columns + i];
                for (uint32_t i = 0; i < rows; i++)
                        ref->sums[i] = ref_dot(matrix_row(op->w, 0, i), ref->in, columns) +
                                       (op->bias ? op->bias[i] : 0);
                for (uint32_t i = 0; i < rows; i += together)
                        ref_norm(ref->sums + i, &op->norm, together);
                for (uint32_t i = 0; i < rows; i++)
                        to[i] = (float)scaled(to[i] + scaled(ref->sums[i], op->scale), op->after);
        }
        return 0;
}

int ref_renorm(struct kernels *k, const struct renorm *op, float *x)
{
        struct ref *ref = ref_of(k);

        assert(ref->steps.running);
        for (uint32_t r = 0; r < ref->steps.step.row_count; r++, x += op->columns) {
                ref_norm_row(ref->in, x, &op->norm, op->columns);
                for (uint32_t i = 0; i < op->columns; i++)
                        x[i] = (float)ref->in[i];
        }
        return 0;
}

static double gated(const struct gate *op, const double *in, uint32_t i)
{
        uint32_t columns = op->w->shape.columns, rows = op->w->shape.rows[0];
        double g = ref_dot(matrix_row(op->w, 0, i), in, columns), u;

        if (op->bias)
                g += op->bias[i];
        if (op->w->shape.parts == 1)
                return act(op->act, g);
        u = ref_dot(matrix_row(op->w, 1, i), in, columns);
        if (op->bias)
                u += op->bias[rows + i];
        return act(op->act, g) * u;
}

int ref_gate(struct kernels *k, const struct gate *op, float *out, const float *x)
{
        struct ref *ref = ref_of(k);
        const struct matrix_shape *shape = &op->w->shape;
        uint32_t columns = shape->columns, rows = shape->rows[0];
        const float *factor = NULL;

        assert(ref->steps.running && (shape->parts == 1 || shape->parts == 2));
        assert(shape->parts == 1 || (shape->rows[1] == rows && !op->factor));
        assert(!op->factor || op->factor_first + rows <= op->factor_columns);
        for (uint32_t r = 0; r < ref->steps.step.row_count; r++) {
                ref_norm_row(ref->in, x + (size_t)r * columns, &op->norm, columns);
                if (op->factor)
                        factor = op->factor + (size_t)r * op->factor_columns + op->factor_first;
                for (uint32_t i = 0; i < rows; i++)
                        out[(size_t)r * rows + i] =
                                (float)(gated(op, ref->in, i) * (factor ? factor[i] : 1));
        }
        return 0;
}

int ref_head(struct kernels *k, const struct head *op, float *logits, const float *x)
{
        struct ref *ref = ref_of(k);
        const struct step *step = &ref->steps.step;
        uint32_t columns = op->w->shape.columns, vocab = op->w->rows;

        assert(ref->steps.running && op->w->shape.parts == 1);
        for (uint32_t r = 0; r < step->want_count; r++) {
                ref_norm_row(ref->in, x + (size_t)step->want[r] * columns, &op->norm, columns);
                for (uint32_t i = 0; i < vocab; i++) {
                        double logit = ref_dot(matrix_row(op->w, 0, i), ref->in, columns) +
                                       (op->bias ? op->bias[i] : 0);

                        logit = scaled(logit, op->scale);
                        if (op->softcap > 0)
                                logit = op->softcap * tanh(logit / op->softcap);
                        logits[(size_t)r * vocab + i] = (float)logit;
                }
        }
        return 0;
}
