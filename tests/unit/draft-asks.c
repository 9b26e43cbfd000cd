#include "tests/unit/draft-asks.h"

#include <math.h>
#include <string.h>

void round_begin(struct round *round)
{
        round->count = round->steps = round->rows = 0;
}

bool stream_can_ask(const struct stream *s)
{
        return s->runs && s->computed + 1 == s->count;
}

void round_add(struct round *round, struct stream *s, uint32_t most)
{
        struct seat *seat = &world.seats[s->slot];
        uint32_t i = round->count++;

        assert_true(pool_fold(&world.pool, s->slot, s->computed) == s->served[s->computed]);
        if (!seat->begun)
                draft_model_begin(world.draft_model, s->slot);
        seat->begun = true;
        round->streams[i] = s;
        round->late[i] = false;
        round->most[i] = least(most, world.sched.context - s->count);
        round->asks[i] = (struct draft_ask){ .slot = s->slot,
                                             .tokens = s->tokens,
                                             .token_count = s->count,
                                             .pick = { .seed = s->serial % 2, .logprobs = 9 },
                                             .more = round->most[i] > 0 };
}

/* The pick of a model that computes all tokens, and the guesses before. */
static uint32_t expected(const struct stream *s, const struct draft_ask *ask, uint32_t count)
{
        uint64_t all = s->drafted[s->count];

        for (uint32_t i = 0; i < count; i++)
                all = pool_go_on(all, own_token(ask->guess[i]));
        return fake_pick(all, ask->pick.seed, s->count + count);
}

/* The answer to an ask that wanted more, and had `count` guesses. */
static void check_answer(const struct stream *s, const struct draft_ask *ask, uint32_t count)
{
        uint32_t token = expected(s, ask, count);
        bool wanted = fake.wanted[s->slot];

        if (s->count + count > world.context) {
                assert_false(wanted || ask->more);
                deeds.too_long++;
        }
        if (!wanted || pick_failed(token) || token >= VOCAB) {
                assert_false(ask->more);
                assert_int_equal(ask->count, count);
                deeds.waits += !wanted;
                deeds.failed += wanted && pick_failed(token);
                deeds.beyond += wanted && !pick_failed(token);
                return;
        }
        assert_true(ask->more);
        assert_int_equal(ask->count, count + 1);
        assert_int_equal(ask->guess[count], token);
        assert_true(fabsf(ask->chance - expf(fake_logprob(token))) < 1e-6f);
        deeds.guesses++;
}

uint32_t round_ask_once(struct round *round)
{
        uint32_t before[SLOTS_MAX];
        int rows;

        memset(fake.wanted, 0, sizeof(fake.wanted));
        fake.row_count = 0;
        for (uint32_t i = 0; i < round->count; i++)
                before[i] = round->asks[i].more ? round->asks[i].count : NONE;
        rows = draft_model_step(world.draft_model, round->asks, round->count);
        assert_int_equal(rows, fake.row_count);
        for (uint32_t i = 0; i < round->count; i++) {
                struct draft_ask *ask = &round->asks[i];

                if (before[i] != NONE)
                        check_answer(round->streams[i], ask, before[i]);
                else
                        assert_false(ask->more || fake.wanted[ask->slot]);
        }
        round->rows += fake.row_count;
        round->steps += rows > 0;
        return fake.row_count;
}

void round_ask_all(struct round *round)
{
        while (round_ask_once(round))
                for (uint32_t i = 0; i < round->count; i++) {
                        struct draft_ask *ask = &round->asks[i];

                        ask->more = (ask->more || round->late[i]) && ask->count < round->most[i];
                        round->late[i] = false;
                }
        for (uint32_t i = 0; i < round->count; i++) {
                struct stream *s = round->streams[i];

                assert_false(round->asks[i].more);
                s->guess_count = round->asks[i].count;
                memcpy(s->guess, round->asks[i].guess, sizeof(s->guess));
        }
}
