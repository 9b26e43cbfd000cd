#include "tests/cuda/toy.h"

#include <stdlib.h>

static uint32_t follows(uint32_t token)
{
        return (token * 5 + 3) % TOY_TOKENS;
}

uint32_t toy_next(uint32_t token)
{
        return token == TOY_BROKEN ? PICK_NOT_FINITE : follows(token);
}

/* Multiplied by TOY_SIZE this exceeds the largest float. */
static float prefers(uint32_t row, uint32_t column)
{
        if (row != follows(column))
                return 0;
        return column == TOY_BROKEN ? 3e38f : 1;
}

static float is_same(uint32_t row, uint32_t column)
{
        return row == column;
}

static float is_value(uint32_t row, uint32_t column)
{
        return row >= 2 * TOY_TOKENS && row - 2 * TOY_TOKENS == column;
}

static int mat_load(struct kernels *k, uint32_t parts,
                    float (*number)(uint32_t row, uint32_t column), struct mat **ret_mat)
{
        struct mat_shape shape = { .columns = TOY_TOKENS, .parts = parts };
        float rows[TOY_TOKENS][TOY_TOKENS];
        int r;

        for (uint32_t p = 0; p < parts; p++)
                shape.rows[p] = TOY_TOKENS;
        r = k->mat_new(k, &shape, ret_mat);
        for (uint32_t p = 0; p < parts && !r; p++) {
                for (uint32_t row = 0; row < TOY_TOKENS; row++)
                        for (uint32_t column = 0; column < TOY_TOKENS; column++)
                                rows[row][column] = number(p * TOY_TOKENS + row, column);
                r = k->weights_put(k, *ret_mat, p, 0, TOY_TOKENS, rows);
        }
        return r;
}

int toy_open(struct toy *toy, struct kernels *k, uint32_t rows, uint32_t wants, uint32_t pages)
{
        const struct kv_shape pool = { 1, 1, TOY_TOKENS, pages, KV_F16 };
        int r;

        *toy = (struct toy){ .k = k };
        if ((r = mat_load(k, 1, is_same, &toy->table)) ||
            (r = mat_load(k, 3, is_value, &toy->qkv)) ||
            (r = mat_load(k, 1, prefers, &toy->head)) ||
            (r = k->floats_new(k, rows * TOY_TOKENS, &toy->x)) ||
            (r = k->floats_new(k, rows * TOY_TOKENS, &toy->q)) ||
            (r = k->floats_new(k, rows * TOY_TOKENS, &toy->a)) ||
            (r = k->floats_new(k, wants * TOY_TOKENS, &toy->logits)))
                return r;
        return k->kv_new(k, &pool, &toy->kv);
}

void toy_close(struct toy *toy)
{
        struct kernels *k = toy->k;

        k->kv_free(k, toy->kv);
        k->floats_free(k, toy->x);
        k->floats_free(k, toy->q);
        k->floats_free(k, toy->a);
        k->floats_free(k, toy->logits);
        k->mat_free(k, toy->table);
        k->mat_free(k, toy->qkv);
        k->mat_free(k, toy->head);
}

static int operators(void *arg)
{
        struct toy *toy = arg;
        struct kernels *k = toy->k;
        const struct qkv qkv = {
                .w = toy->qkv, .kv = toy->kv, .heads = 1, .kv_heads = 1, .head_dim = TOY_TOKENS
        };
        const struct attend attend = { .kv = toy->kv,
                                       .heads = 1,
                                       .kv_heads = 1,
                                       .head_dim = TOY_TOKENS,
                                       .scale = 1,
                                       .window = toy->window };
        const struct head head = { .w = toy->head };
        int r;

        toy->calls++;
        if ((r = k->embed(k, toy->table, TOY_SIZE, toy->x)) ||
            (r = k->qkv(k, &qkv, toy->q, toy->x)) || (r = k->attend(k, &attend, toy->a, toy->q)) ||
            (r = k->head(k, &head, toy->logits, toy->x)))
                return r;
        return k->pick(k, toy->logits, TOY_TOKENS);
}

int toy_forward(struct toy *toy, const struct step *step)
{
        int r = toy->k->step_begin(toy->k, toy->kv, step);

        if (r < 0)
                return r;
        return r == STEP_REHEARSED ? 0 : operators(toy);
}

int toy_rehearse(struct toy *toy)
{
        return toy->k->rehearse ? toy->k->rehearse(toy->k, operators, toy) : 0;
}
