#include "tests/cuda/known-model.h"

#include <stdlib.h>

static uint32_t follows(uint32_t token)
{
        return (token * 5 + 3) % KNOWN_TOKENS;
}

uint32_t known_model_next(uint32_t token)
{
        return token == KNOWN_BROKEN ? PICK_NOT_FINITE : follows(token);
}

/* Multiplied by KNOWN_SIZE this exceeds the largest float. */
static float prefers(uint32_t row, uint32_t column)
{
        if (row != follows(column))
                return 0;
        return column == KNOWN_BROKEN ? 3e38f : 1;
}

static float is_same(uint32_t row, uint32_t column)
{
        return row == column;
}

static float is_value(uint32_t row, uint32_t column)
{
        return row >= 2 * KNOWN_TOKENS && row - 2 * KNOWN_TOKENS == column;
}

static int matrix_load(struct kernels *k, uint32_t parts,
                       float (*number)(uint32_t row, uint32_t column), struct matrix **ret_matrix)
{
        struct matrix_shape shape = { .columns = KNOWN_TOKENS, .parts = parts };
        float rows[KNOWN_TOKENS][KNOWN_TOKENS];
        int r;

        for (uint32_t p = 0; p < parts; p++)
                shape.rows[p] = KNOWN_TOKENS;
        r = k->matrix_new(k, &shape, ret_matrix);
        for (uint32_t p = 0; p < parts && !r; p++) {
                for (uint32_t row = 0; row < KNOWN_TOKENS; row++)
                        for (uint32_t column = 0; column < KNOWN_TOKENS; column++)
                                rows[row][column] = number(p * KNOWN_TOKENS + row, column);
                r = k->weights_put(k, *ret_matrix, p, 0, KNOWN_TOKENS, rows);
        }
        return r;
}

int known_model_open(struct known_model *known_model, struct kernels *k, uint32_t rows,
                     uint32_t wants, uint32_t pages, uint32_t swap_pages)
{
        const struct kv_shape pool = { 1, 1, KNOWN_TOKENS, pages, KV_F16, swap_pages };
        int r;

        *known_model = (struct known_model){ .k = k };
        if ((r = matrix_load(k, 1, is_same, &known_model->table)) ||
            (r = matrix_load(k, 3, is_value, &known_model->qkv)) ||
            (r = matrix_load(k, 1, prefers, &known_model->head)) ||
            (r = k->floats_new(k, rows * KNOWN_TOKENS, &known_model->x)) ||
            (r = k->floats_new(k, rows * KNOWN_TOKENS, &known_model->q)) ||
            (r = k->floats_new(k, rows * KNOWN_TOKENS, &known_model->a)) ||
            (r = k->floats_new(k, wants * KNOWN_TOKENS, &known_model->logits)))
                return r;
        return k->kv_new(k, &pool, &known_model->kv);
}

void known_model_close(struct known_model *known_model)
{
        struct kernels *k = known_model->k;

        k->kv_free(k, known_model->kv);
        k->floats_free(k, known_model->x);
        k->floats_free(k, known_model->q);
        k->floats_free(k, known_model->a);
        k->floats_free(k, known_model->logits);
        k->matrix_free(k, known_model->table);
        k->matrix_free(k, known_model->qkv);
        k->matrix_free(k, known_model->head);
}

static int operators(void *arg)
{
        struct known_model *known_model = arg;
        struct kernels *k = known_model->k;
        const struct qkv qkv = { .w = known_model->qkv,
                                 .kv = known_model->kv,
                                 .heads = 1,
                                 .kv_heads = 1,
                                 .head_dim = KNOWN_TOKENS };
        const struct attend attend = { .kv = known_model->kv,
                                       .heads = 1,
                                       .kv_heads = 1,
                                       .head_dim = KNOWN_TOKENS,
                                       .scale = 1,
                                       .window = known_model->window };
        const struct head head = { .w = known_model->head };
        const struct embed embed = { .table = known_model->table, .scale = KNOWN_SIZE };
        int r;

        known_model->calls++;
        if ((r = k->embed(k, &embed, known_model->x)) ||
            (r = k->qkv(k, &qkv, known_model->q, known_model->x)) ||
            (r = k->attend(k, &attend, known_model->a, known_model->q)) ||
            (r = k->head(k, &head, known_model->logits, known_model->x)))
                return r;
        return k->pick(k, known_model->logits, KNOWN_TOKENS);
}

int known_model_forward(struct known_model *known_model, const struct step *step)
{
        int r = known_model->k->step_begin(known_model->k, KV_ALONE(known_model->kv), step);

        if (r < 0)
                return r;
        return r == STEP_REPLAYED ? 0 : operators(known_model);
}

int known_model_warm_up(struct known_model *known_model)
{
        return known_model->k->warm_up
                       ? known_model->k->warm_up(known_model->k, operators, known_model)
                       : 0;
}
