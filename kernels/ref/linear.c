#include <math.h>

#include "kernels/ref/ref.h"

double ref_rms_inverse(const double *x, uint32_t count, double eps)
{
        double sum = 0;

        for (uint32_t i = 0; i < count; i++)
                sum += x[i] * x[i];
        return 1 / sqrt(sum / count + eps);
}

void ref_norm_row(double *in, const float *x, const float *norm, double eps, uint32_t columns)
{
        double inverse;

        for (uint32_t i = 0; i < columns; i++)
                in[i] = x[i];
        if (!norm)
                return;
        inverse = ref_rms_inverse(in, columns, eps);
        for (uint32_t i = 0; i < columns; i++)
                in[i] = in[i] * inverse * norm[i];
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
        }
        assert(!"an activation");
}

int ref_embed(struct kernels *k, const struct matrix *table, float scale, float *x)
{
        const struct steps *s = &ref_of(k)->steps;
        uint32_t columns = table->shape.columns;

        assert(s->running && table->shape.parts == 1);
        for (uint32_t r = 0; r < s->step.row_count; r++) {
                const float *w = matrix_row(table, 0, s->tokens[r]);

                for (uint32_t i = 0; i < columns; i++)
                        x[(size_t)r * columns + i] = (float)((double)w[i] * scale);
        }
        return 0;
}

int ref_project(struct kernels *k, const struct linear *op, float *x, const float *y)
{
        struct ref *ref = ref_of(k);
        uint32_t columns = op->w->shape.columns, rows = op->w->rows;

        assert(ref->steps.running && op->w->shape.parts == 1);
        for (uint32_t r = 0; r < ref->steps.step.row_count; r++) {
                ref_norm_row(ref->in, y + (size_t)r * columns, NULL, 0, columns);
                for (uint32_t i = 0; i < rows; i++) {
                        float *to = &x[(size_t)r * rows + i];
                        double sum = ref_dot(matrix_row(op->w, 0, i), ref->in, columns);

                        *to = (float)(*to + (sum + (op->bias ? op->bias[i] : 0)));
                }
        }
        return 0;
}

int ref_gate(struct kernels *k, const struct gate *op, float *out, const float *x)
{
        struct ref *ref = ref_of(k);
        uint32_t columns = op->w->shape.columns, rows = op->w->shape.rows[0];

        assert(ref->steps.running && op->w->shape.parts == 2 && op->w->shape.rows[1] == rows);
        for (uint32_t r = 0; r < ref->steps.step.row_count; r++) {
                ref_norm_row(ref->in, x + (size_t)r * columns, op->norm, op->eps, columns);
                for (uint32_t i = 0; i < rows; i++) {
                        double g = ref_dot(matrix_row(op->w, 0, i), ref->in, columns);
                        double u = ref_dot(matrix_row(op->w, 1, i), ref->in, columns);

                        if (op->bias) {
                                g += op->bias[i];
                                u += op->bias[rows + i];
                        }
                        out[(size_t)r * rows + i] = (float)(act(op->act, g) * u);
                }
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
                ref_norm_row(ref->in, x + (size_t)step->want[r] * columns, op->norm, op->eps,
                             columns);
                for (uint32_t i = 0; i < vocab; i++) {
                        double logit = ref_dot(matrix_row(op->w, 0, i), ref->in, columns);

                        if (op->softcap > 0)
                                logit = op->softcap * tanh(logit / op->softcap);
                        logits[(size_t)r * vocab + i] = (float)logit;
                }
        }
        return 0;
}
