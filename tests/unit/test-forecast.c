/* The forecast's arithmetic, against values counted by hand and a simulation token by token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/forecast.h"
#include "daemon/core/kvpool.h"

#define STREAMS_MAX 40u
#define ENDLESS     1000000u /* more than any request here makes */

static struct forecast forecast;
static uint64_t dice;

static void open_forecast(uint32_t target_of_1000)
{
        dice = 1;
        assert_int_equal(
                forecast_init(&forecast, STREAMS_MAX, target_of_1000 * (FORECAST_ONE / 1000)), 0);
}

static int clear(void **state)
{
        (void)state;
        forecast_deinit(&forecast);
        return 0;
}

static uint32_t below(uint32_t limit)
{
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(dice >> 33) % limit;
}

static void learn(uint32_t uid, enum request_priority priority, uint32_t count, uint32_t tokens)
{
        while (count--)
                forecast_learn(&forecast, uid, priority, tokens);
}

static uint32_t rest(uint32_t uid, uint32_t made, uint32_t most)
{
        return forecast_rest(&forecast, uid, REQUEST_NORMAL, made, most);
}

/* A bucket is a quarter of a doubling, so a length is known up to a fifth. */
static void assert_about(uint32_t tokens, uint32_t length)
{
        assert_in_range(tokens, length, length + length / 4);
}

static void a_new_daemon_guesses_and_never_beyond_what_was_asked_for(void **state)
{
        (void)state;
        open_forecast(20);
        assert_int_equal(rest(1, 0, 3500), FORECAST_GUESS);
        assert_int_equal(rest(1, 100, 3500), FORECAST_GUESS - 100);
        assert_int_equal(rest(1, 0, 50), 50);
        assert_int_equal(rest(1, 50, 50), 0);
        assert_in_range(rest(1, FORECAST_GUESS, 3500), 1, 3500 - FORECAST_GUESS);
        assert_in_range(rest(1, 3499, 3500), 1, 1);
}

static void answers_count_once_there_are_enough(void **state)
{
        (void)state;
        open_forecast(20);
        learn(1, REQUEST_NORMAL, FORECAST_ENOUGH - 1, 3);
        assert_int_equal(rest(1, 0, 3500), FORECAST_GUESS);
        learn(1, REQUEST_NORMAL, 1, 3);
        assert_int_equal(rest(1, 0, 3500), 3);
        assert_int_equal(rest(1, 1, 3500), 2);
        assert_int_equal(rest(1, 2, 3500), 1);
        assert_int_equal(rest(1, 0, 2), 2);
}

/* 10 answers of 2 tokens, 6 of 100, 4 of 1000. */
static void takes_the_quantile_of_answers_at_least_as_long(void **state)
{
        (void)state;
        open_forecast(20);
        learn(1, REQUEST_NORMAL, 10, 2);
        learn(1, REQUEST_NORMAL, 6, 100);
        learn(1, REQUEST_NORMAL, 4, 1000);
        forecast.trust = FORECAST_ONE / 2; /* the 10th of 20 */
        assert_int_equal(rest(1, 0, ENDLESS), 2);
        forecast.trust = FORECAST_ONE / 4 * 3; /* the 15th */
        assert_about(rest(1, 0, ENDLESS), 100);
        forecast.trust = FORECAST_ONE / 20 * 17; /* the 17th */
        assert_about(rest(1, 0, ENDLESS), 1000);
        forecast.trust = FORECAST_ONE / 2; /* the 5th of the 10 that are longer than 2 */
        assert_about(rest(1, 2, ENDLESS) + 2, 100);
        forecast.trust = FORECAST_ONE / 4 * 3; /* the 8th of these */
        assert_about(rest(1, 2, ENDLESS) + 2, 1000);
        forecast.trust = FORECAST_ONE / 4;
        assert_about(rest(1, 200, ENDLESS) + 200, 1000);     /* only these are as long */
        assert_in_range(rest(1, 5000, ENDLESS), 1, ENDLESS); /* and none is */
}

static void lengths_are_known_up_to_a_fifth(void **state)
{
        (void)state;
        for (uint32_t length = 1; length < 200000; length += 1 + length / 7) {
                open_forecast(20);
                learn(1, REQUEST_NORMAL, FORECAST_ENOUGH, length);
                assert_about(rest(1, 0, ENDLESS), length);
                assert_about(rest(1, length - 1, ENDLESS) + length - 1, length);
                forecast_deinit(&forecast);
        }
}

static void users_and_classes_are_learned_for_themselves(void **state)
{
        (void)state;
        open_forecast(20);
        learn(1, REQUEST_NORMAL, 100, 5);
        learn(2, REQUEST_NORMAL, 20, 7);
        learn(1, REQUEST_BACKGROUND, 20, 6);
        assert_int_equal(rest(1, 0, ENDLESS), 5);
        assert_int_equal(rest(2, 0, ENDLESS), 7);
        assert_int_equal(rest(3, 0, ENDLESS), 5); /* is new: all count */
        assert_int_equal(forecast_rest(&forecast, 1, REQUEST_BACKGROUND, 0, ENDLESS), 6);
        assert_int_equal(forecast_rest(&forecast, 3, REQUEST_BACKGROUND, 0, ENDLESS), 6);
        assert_int_equal(forecast_rest(&forecast, 1, REQUEST_INTERACTIVE, 0, ENDLESS),
                         FORECAST_GUESS);
}

static void the_user_not_seen_for_longest_is_forgotten(void **state)
{
        (void)state;
        open_forecast(20);
        for (uint32_t uid = 1; uid <= FORECAST_USERS; uid++)
                learn(uid, REQUEST_NORMAL, FORECAST_ENOUGH, 2);
        learn(1, REQUEST_NORMAL, 1, 2); /* so 2 is the one */
        learn(1000, REQUEST_NORMAL, 500, 7);
        assert_int_equal(rest(1, 0, ENDLESS), 2);
        assert_int_equal(rest(2, 0, ENDLESS), 7); /* as all do, by now */
        assert_int_equal(rest(3, 0, ENDLESS), 2);
        assert_int_equal(rest(1000, 0, ENDLESS), 7);
}

static void a_user_that_has_changed_is_learned_anew(void **state)
{
        (void)state;
        open_forecast(20);
        learn(1, REQUEST_NORMAL, 100000, 2);
        learn(1, REQUEST_NORMAL, 2000, 7);
        assert_int_equal(rest(1, 0, ENDLESS), 7);
}

/* ---- peaks ---- */

struct stream {
        uint32_t rest, spare, own;
        uint32_t taken; /* blocks */
};

static uint64_t count_held(const struct stream *streams, uint32_t count, uint64_t others,
                           uint32_t token)
{
        uint64_t held = others;

        for (uint32_t i = 0; i < count; i++)
                if (streams[i].rest >= token)
                        held += streams[i].own + streams[i].taken;
        return held;
}

/* Each stream makes a token in each step, takes a block when it needs one, and ends. */
static uint64_t peak(struct stream *streams, uint32_t count, uint64_t others)
{
        uint64_t most = count_held(streams, count, others, 0);

        for (uint32_t token = 1; token < 2000; token++) {
                uint64_t held;

                for (uint32_t i = 0; i < count; i++)
                        if (token <= streams[i].rest && token > streams[i].spare)
                                streams[i].taken = blocks_for(token - streams[i].spare);
                held = count_held(streams, count, others, token);
                most = held > most ? held : most;
        }
        return most;
}

static uint64_t foreseen(const struct stream *streams, uint32_t count, uint64_t others)
{
        uint64_t in_use = others;

        forecast_clear(&forecast);
        for (uint32_t i = 0; i < count; i++) {
                forecast_add(&forecast, &(struct forecast_stream){ .rest = streams[i].rest,
                                                                   .spare = streams[i].spare,
                                                                   .own = streams[i].own });
                in_use += streams[i].own;
        }
        return forecast_most(&forecast, in_use);
}

static void one_stream_needs_what_it_makes(void **state)
{
        struct stream stream = { .rest = 160, .own = 3 };

        (void)state;
        open_forecast(20);
        assert_int_equal(foreseen(&stream, 1, 5), 5 + 3 + 10);
        stream.spare = 32;
        assert_int_equal(foreseen(&stream, 1, 5), 5 + 3 + 8);
        stream.spare = stream.rest = FORECAST_SPARE;
        assert_int_equal(foreseen(&stream, 1, 5), 5 + 3);
        assert_int_equal(foreseen(&stream, 0, 5), 5);
}

/* Two grow by 2 blocks until one gives back its 20 and the 2; then the other needs 8 more. */
static void the_blocks_of_one_that_ends_serve_the_others(void **state)
{
        struct stream streams[] = { { .rest = 160, .own = 4 }, { .rest = 32, .own = 20 } };

        (void)state;
        open_forecast(20);
        assert_int_equal(foreseen(streams, 2, 0), 28);
        streams[1].own = 1;
        assert_int_equal(foreseen(streams, 2, 0), 14);
}

/* Positions that one stream has to spare are of no use to another. */
static void each_stream_takes_whole_blocks_of_its_own(void **state)
{
        struct stream streams[] = { { .rest = 24, .spare = 2, .own = 2 },
                                    { .rest = 40, .spare = 31, .own = 2 } };

        (void)state;
        open_forecast(20);
        assert_int_equal(foreseen(streams, 2, 0), 6);
}

static void peaks_are_those_of_a_simulation_token_by_token(void **state)
{
        struct stream streams[STREAMS_MAX];

        (void)state;
        open_forecast(20);
        for (int round = 0; round < 1000; round++) {
                uint32_t count = 1 + below(STREAMS_MAX), others = below(50);

                for (uint32_t i = 0; i < count; i++)
                        streams[i] = (struct stream){ .rest = below(800),
                                                      .spare = below(FORECAST_SPARE + 1),
                                                      .own = below(40) };
                assert_int_equal(foreseen(streams, count, others), peak(streams, count, others));
        }
}

/* ---- trust ---- */

/* Requests are preempted as often as trust is below 1.  Returns how many, once it has settled. */
static uint32_t preempted_of_1000(uint32_t target_of_1000)
{
        uint32_t preempted = 0;

        open_forecast(target_of_1000);
        for (uint32_t i = 0; i < 200000; i++) {
                bool lost = below(FORECAST_ONE) >= forecast.trust;

                forecast_note(&forecast, lost);
                preempted += lost && i >= 100000;
        }
        return preempted / 100;
}

static void trust_comes_to_rest_where_as_many_are_preempted_as_wanted(void **state)
{
        const uint32_t targets[] = { 20, 30, 50 };

        (void)state;
        for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
                assert_in_range(preempted_of_1000(targets[i]), targets[i] - targets[i] / 10,
                                targets[i] + targets[i] / 10);
                forecast_deinit(&forecast);
        }
        open_forecast(0);
}

static void each_preemption_raises_trust_and_each_other_end_lowers_it(void **state)
{
        uint32_t trust;

        (void)state;
        open_forecast(20);
        for (int i = 0; i < 20; i++) {
                trust = forecast.trust;
                forecast_note(&forecast, true);
                assert_true(forecast.trust > trust || forecast.trust >= FORECAST_ONE / 100 * 98);
                assert_true(forecast.trust < FORECAST_ONE);
        }
        for (int i = 0; i < 100000; i++) {
                trust = forecast.trust;
                forecast_note(&forecast, false);
                assert_true(forecast.trust < trust || forecast.trust <= FORECAST_ONE / 4);
        }
}

static void with_a_target_of_none_trust_never_falls(void **state)
{
        uint32_t trust;

        (void)state;
        open_forecast(0);
        trust = forecast.trust;
        for (int i = 0; i < 1000; i++)
                forecast_note(&forecast, false);
        assert_int_equal(forecast.trust, trust);
        forecast_note(&forecast, true);
        assert_true(forecast.trust > trust);
}

#define part(name) cmocka_unit_test_teardown(name, clear)

int main(void)
{
        const struct CMUnitTest tests[] = {
                part(a_new_daemon_guesses_and_never_beyond_what_was_asked_for),
                part(answers_count_once_there_are_enough),
                part(takes_the_quantile_of_answers_at_least_as_long),
                part(lengths_are_known_up_to_a_fifth),
                part(users_and_classes_are_learned_for_themselves),
                part(the_user_not_seen_for_longest_is_forgotten),
                part(a_user_that_has_changed_is_learned_anew),
                part(one_stream_needs_what_it_makes),
                part(the_blocks_of_one_that_ends_serve_the_others),
                part(each_stream_takes_whole_blocks_of_its_own),
                part(peaks_are_those_of_a_simulation_token_by_token),
                part(trust_comes_to_rest_where_as_many_are_preempted_as_wanted),
                part(each_preemption_raises_trust_and_each_other_end_lowers_it),
                part(with_a_target_of_none_trust_never_falls),
        };

        return cmocka_run_group_tests_name("forecast", tests, NULL, NULL);
}
