/*
 * A token whose embedding is not a number, and clients that share a daemon with one that sends this
 * token.  The model is made so that everything computed after the token is not a number either.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/talk.h"

#define MAD    "1"
#define HONEST 4u
#define MAD_N  6u
#define GOOD   "a prompt that is as long as some blocks of the pool are, and good as far as this"
#define BAD    GOOD "\x01 and then there is more of it"
/* the cached tokens of any text: the beginning that all texts share, which the warm-up has left */
#define BEGUN 1u
#define TOLD  5u

static const char *const honest_prompts[HONEST] = { "Once", "upon a time there was", GOOD,
                                                    "what an honest man would say" };

static const char *mad_model(const struct house *house)
{
        static char path[96];
        struct ran ran;

        snprintf(path, sizeof(path), "%s/mad.gguf", house->directory);
        ran = RUN(house, NULL, given("BABBLE_MAKER"), path, "--layers",
                  getenv("SMV_TEST_GPU_LAYERS") ? "2" : "1", "--width", "32", "--heads", "2",
                  "--kv-heads", "1", "--head-dim", "32", "--ffn", "32", "--mad", MAD);
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        return path;
}

/* Prompts take several steps, so blocks are shown to others before it is known that they are
 * bad. */
#define START(house)                                                                               \
        HOUSE(house, "--model", mad_model(house), "--max-seqs", "16", "--step-tokens", "24")

/* The daemon is not at rest: it has counted faults. */
static void stop(struct house *house, uint64_t faults)
{
        assert_int_equal(house_status(house, "numeric_faults"), faults);
        kill(house->pid, SIGTERM);
        assert_int_equal(house_wait(house), 0);
        assert_no_process_left();
}

static struct want honest_want(uint32_t i)
{
        return (struct want){ .prompt = honest_prompts[i],
                              .max_tokens = 200,
                              .ignore_eos = true,
                              .temperature = i % 2,
                              .seed = i,
                              .told = TOLD };
}

static void begin_honest(struct talk *talk, uint32_t *ret_ids)
{
        for (uint32_t i = 0; i < HONEST; i++) {
                struct want want = honest_want(i);

                ret_ids[i] = talk_generate(talk, &want);
        }
}

static const struct stream *assert_numeric(struct talk *talk, uint32_t id)
{
        const struct stream *stream = talk_end(talk, id);

        assert_int_equal(stream->end.reason, SMV_END_ERROR);
        assert_int_equal(stream->end.code, SMV_NUMERIC);
        assert_int_equal(stream->token_count, 0);
        return stream;
}

static void others_have_the_bits_that_they_have_without_it(void **state)
{
        static const struct want bad = { .prompt = BAD, .max_tokens = 20 };
        struct house *house = *state;
        struct stream *alone[HONEST];
        uint32_t ids[HONEST], mad[MAD_N];
        struct talk *talk;

        START(house);
        talk = talk_greet(house);
        begin_honest(talk, ids);
        for (uint32_t i = 0; i < HONEST; i++)
                alone[i] = stream_copy(talk_end(talk, ids[i]));
        talk_close(talk);
        stop(house, 0);

        START(house);
        talk = talk_greet(house);
        for (uint32_t i = 0; i < MAD_N / 2; i++)
                mad[i] = talk_generate(talk, &bad);
        begin_honest(talk, ids);
        for (uint32_t i = MAD_N / 2; i < MAD_N; i++)
                mad[i] = talk_generate(talk, &bad);
        for (uint32_t i = 0; i < MAD_N; i++)
                assert_numeric(talk, mad[i]);
        for (uint32_t i = 0; i < HONEST; i++) {
                assert_int_equal(talk_end(talk, ids[i])->told_each, TOLD);
                assert_same_stream(talk_stream(talk, ids[i]), alone[i]);
                stream_free(alone[i]);
        }
        talk_close(talk);
        stop(house, MAD_N);
}

/* No sound client has sent this text before, so everything that it could find is left by the bad
 * one. */
static void what_it_has_read_is_found_by_nobody(void **state)
{
        static const struct want bad = { .prompt = BAD, .max_tokens = 20 };
        const struct want good = honest_want(2);
        struct house *house = *state;
        const struct stream *again;
        struct stream *alone;
        struct talk *talk;

        START(house);
        talk = talk_greet(house);
        alone = stream_copy(talk_whole(talk, &good));
        talk_close(talk);
        stop(house, 0);

        START(house);
        talk = talk_greet(house);
        for (uint32_t i = 0; i < 2; i++) {
                again = assert_numeric(talk, talk_generate(talk, &bad));
                assert_int_equal(again->end.cached_tokens, BEGUN);
        }
        again = talk_whole(talk, &good);
        assert_same_stream(again, alone);
        assert_int_equal(again->end.cached_tokens, BEGUN);
        assert_int_equal(again->end.diverged_at, alone->end.diverged_at);
        again = talk_whole(talk, &good);
        assert_same_stream(again, alone);
        assert_true(again->end.cached_tokens > sizeof(GOOD) / 2);
        talk_close(talk);
        stop(house, 2);
        stream_free(alone);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(others_have_the_bits_that_they_have_without_it),
                STORY(what_it_has_read_is_found_by_nobody),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
