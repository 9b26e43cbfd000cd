#include "tests/unit/fake-model.h"

#include <errno.h>
#include <string.h>

#include "daemon/engine/model.h"

struct model fake;

/* ---- pools ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
        uint64_t x = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) + UINT64_C(0x9e3779b97f4a7c15);

        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        return x ^ x >> 31;
}

uint64_t pool_go_on(uint64_t all, uint32_t token)
{
        return mix(all, mix(all, 1 + token));
}

void pool_open(struct pool *pool, uint32_t pages, uint32_t slots, uint32_t table_max)
{
        assert_true(pages <= PAGES_MAX && slots <= SLOTS_MAX && table_max <= TABLE_MAX);
        pool->pages = pages;
        pool->slots = slots;
        pool->table_max = table_max;
        for (uint32_t i = 0; i < PAGES_MAX * 16; i++)
                pool->kv[i / 16][i % 16] = mix(i, pages);
        memset(pool->tables, 0xff, sizeof(pool->tables));
}

static uint64_t *pool_at(struct pool *pool, uint32_t slot, uint32_t position)
{
        uint32_t page;

        assert_true(slot < pool->slots && position / 16 < pool->table_max);
        page = pool->tables[slot][position / 16];
        assert_true(page < pool->pages);
        return &pool->kv[page][position % 16];
}

uint64_t pool_fold(struct pool *pool, uint32_t slot, uint32_t count)
{
        uint64_t all = 0;

        for (uint32_t i = 0; i < count; i++)
                all = mix(all, *pool_at(pool, slot, i));
        return all;
}

static void run_rows(struct pool *pool, const struct step *step, const struct step_run *run)
{
        const struct step_row *first = &step->rows[run->row];
        uint64_t all = pool_fold(pool, first->slot, first->position);

        for (uint32_t i = 0; i < run->count; i++) {
                uint64_t *at = pool_at(pool, first->slot, first[i].position);

                if (first[i].write)
                        *at = mix(all, 1 + first[i].token);
                pool->values[run->row + i] = all = mix(all, *at);
        }
}

/*
 * Rows of a layer write before any row reads.  So what a row has read must still be there when all
 * rows have written.
 */
static void check_last(struct pool *pool, const struct step *step, const struct step_run *run)
{
        uint32_t last = run->row + run->count - 1;
        const struct step_row *row = &step->rows[last];

        assert_true(pool_fold(pool, row->slot, row->position + 1) == pool->values[last]);
}

void pool_run(struct pool *pool, const struct step *step)
{
        for (uint32_t i = 0; i < step->page_count; i++) {
                const struct step_page *page = &step->pages[i];

                if (page->group != GROUP_BLOCKS)
                        continue;
                assert_true(page->slot < pool->slots && page->index < pool->table_max);
                assert_true(page->page < pool->pages);
                pool->tables[page->slot][page->index] = page->page;
        }
        for (uint32_t i = 0; i < step->copy_count; i++) {
                const struct step_copy *copy = &step->copies[i];

                if (copy->group != GROUP_BLOCKS)
                        continue;
                assert_true(copy->from < pool->pages && copy->to < pool->pages);
                assert_true(copy->from != copy->to);
                memcpy(pool->kv[copy->to], pool->kv[copy->from], sizeof(*pool->kv));
        }
        for (uint32_t i = 0; i < step->run_count; i++)
                run_rows(pool, step, &step->runs[i]);
        for (uint32_t i = 0; i < step->run_count; i++)
                check_last(pool, step, &step->runs[i]);
}

/* ---- the fake model ---- */

uint32_t fake_pick(uint64_t history, uint64_t seed, uint64_t position)
{
        uint64_t number = mix(history, mix(seed, position));
        uint32_t kind = number % 24, token = (uint32_t)(number / 24 % (VOCAB - 7));

        if (fake.plain)
                return token;
        if (kind == 0)
                return token % 2 ? PICK_NOT_FINITE : PICK_NONE_LEGAL;
        if (kind == 1)
                return VOCAB + token % 7;
        return kind < 8 ? token % 3 : token;
}

float fake_logprob(uint32_t token)
{
        return -(float)(token % 64) / 16;
}

static void check_run(const struct step *step, const struct step_run *run, uint32_t row)
{
        const struct step_row *first = &step->rows[row];

        assert_true(run->row == row && run->count && run->count <= step->row_count - row);
        assert_true(first->position + run->count <= fake.conf.context);
        for (uint32_t i = 0; i < run->count; i++) {
                assert_int_equal(first[i].slot, first->slot);
                assert_int_equal(first[i].position, first->position + i);
                assert_int_equal(first[i].from_row, STEP_TOKEN);
                assert_true(first[i].token < fake.own_vocab);
        }
}

static void check_step(const struct step *step)
{
        uint32_t row = 0;

        assert_true(step->number == fake.number + 1);
        assert_true(step->row_count <= fake.conf.rows_max && step->run_count <= step->row_count);
        assert_true(step->want_count <= fake.conf.wants_max);
        assert_true(step->row_count && step->want_count <= step->row_count);
        for (uint32_t i = 0; i < step->run_count; row += step->runs[i++].count)
                check_run(step, &step->runs[i], row);
        assert_int_equal(row, step->row_count);
        for (uint32_t i = 0; i < step->want_count; i++) {
                assert_true(step->want[i] < step->row_count);
                assert_true(!i || step->want[i] > step->want[i - 1]);
                assert_int_equal(step->picks[i].logprobs, 1);
                assert_true(step->picks[i].position == step->rows[step->want[i]].position + 1);
        }
        for (uint32_t i = 0; i < step->page_count; i++)
                assert_int_equal(step->pages[i].group, GROUP_BLOCKS);
        for (uint32_t i = 0; i < step->copy_count; i++)
                assert_int_equal(step->copies[i].group, GROUP_BLOCKS);
}

int model_forward(struct model *model, const struct step *step)
{
        assert_ptr_equal(model, &fake);
        if (fake.lost)
                return -EIO;
        check_step(step);
        pool_run(&fake.pool, step);
        fake.number = step->number;
        fake.row_count = step->row_count;
        fake.want_count = step->want_count;
        for (uint32_t i = 0; i < step->want_count; i++) {
                const struct pick *pick = &step->picks[i];
                uint32_t row = step->want[i];

                fake.wanted[step->rows[row].slot] = true;
                fake.tokens[i] = fake_pick(fake.pool.values[row], pick->seed, pick->position);
        }
        return 0;
}

int model_collect(struct model *model, uint64_t number, uint32_t *ret_tokens)
{
        assert_true(model == &fake && number == fake.number);
        memcpy(ret_tokens, fake.tokens, fake.want_count * sizeof(*ret_tokens));
        return 0;
}

void model_logprobs(struct model *model, uint64_t number, uint32_t want,
                    struct logprob *ret_logprobs)
{
        assert_true(model == &fake && number == fake.number && want < fake.want_count);
        assert_false(pick_failed(fake.tokens[want]));
        ret_logprobs[0] = (struct logprob){ .token = fake.tokens[want],
                                            .logprob = fake_logprob(fake.tokens[want]) };
}
