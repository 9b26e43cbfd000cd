/*
 * A stream's tokens depend on the stream alone: not on the other streams, nor on how its prompt was
 * cut into steps, on the number of threads, or on the number of plans in flight.  A dozen requests
 * are sent one by one to an idle daemon.  Then they come in fifty random mixes, at random moments,
 * over several connections, some cancelled half-way.  Each answer is compared with the first one,
 * bit by bit.  Then the same with daemons that step differently.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/talk.h"

#define WANTS  12
#define TALKS  3
#define GUESTS 8 /* requests of one mix, at most */

static char prompts[WANTS][320];
static struct want wants[WANTS];
static struct stream *reference[WANTS]; /* from the first daemon, one at a time */

static const struct want shapes[WANTS] = {
        { .prompt_bytes = 1, .max_tokens = 40, .ignore_eos = true },
        { .prompt_bytes = 15, .max_tokens = 1 },
        { .prompt_bytes = 16, .max_tokens = 33, .ignore_eos = true, .told = 6 },
        { .prompt_bytes = 17, .max_tokens = 80, .temperature = 0.8, .seed = 11 },
        { .prompt_bytes = 300, .max_tokens = 50, .ignore_eos = true },
        { .prompt_bytes = 299, .max_tokens = 5, .temperature = 1.5, .seed = 12, .told = 1 },
        { .prompt_bytes = 64,
          .max_tokens = 120,
          .temperature = 1,
          .seed = 13,
          .top_k = 5,
          .told = 33 },
        { .prompt_bytes = 130, .max_tokens = 60, .temperature = 1, .seed = 14, .top_p = 0.7 },
        { .prompt_bytes = 31, .max_tokens = 90, .temperature = 2, .seed = 15, .min_p = 0.1 },
        { .prompt_bytes = 200,
          .max_tokens = 100,
          .temperature = 1,
          .seed = 13,
          .stop = "a",
          .told = 2 },
        { .prompt_bytes = 48, .max_tokens = 100, .temperature = 1.1, .seed = 16, .stop = ". " },
        { .prompt_bytes = 255, .max_tokens = 70, .as_ids = true, .ignore_eos = true },
};

static void write_prompts(void)
{
        static const char words[] = "once upon a time there was a samovar and all the guests ";

        for (size_t i = 0; i < WANTS; i++) {
                wants[i] = shapes[i];
                for (size_t j = 0; j < shapes[i].prompt_bytes; j++)
                        prompts[i][j] = words[(j + 7 * i) % (sizeof(words) - 1)];
                wants[i].prompt = prompts[i];
        }
}

struct guest {
        size_t want, talk;
        const char *class;
        /* relative to the start of the mix; cancel_ms 0: never cancelled */
        uint64_t start_ms, cancel_ms;
        uint32_t id; /* 0: not sent yet */
        bool cancelled, over;
};

static void invite(struct guest *guest)
{
        static const char *const classes[] = { NULL, "interactive", "normal", "background" };

        *guest = (struct guest){ .want = random_below(WANTS),
                                 .talk = random_below(TALKS),
                                 .class = classes[random_below(4)] };
        if (random_below(2))
                guest->start_ms = random_below(30);
        if (!random_below(4))
                guest->cancel_ms = guest->start_ms + 1 + random_below(40);
}

static void look(struct guest *guest, struct talk *talk, uint64_t passed_ms,
                 struct stream *const *alone)
{
        const struct reply *reply;
        struct stream *stream;

        if (!guest->id) {
                struct want want = wants[guest->want];

                want.class = guest->class;
                if (passed_ms >= guest->start_ms)
                        guest->id = talk_generate(talk, &want);
                return;
        }
        if (guest->cancel_ms && !guest->cancelled && passed_ms >= guest->cancel_ms) {
                guest->cancelled = true;
                talk_say(talk, "op=s id=u stream=u", "cancel", ++talk->last_id, guest->id);
        }
        reply = talk_replied(talk, guest->id);
        if (reply && !reply->ok) {
                if (reply->code != SMV_CANCELLED || !guest->cancelled)
                        fail_msg("refused: %s", reply->message);
                guest->over = true;
                return;
        }
        stream = talk_stream(talk, guest->id);
        if (!stream || !stream->ended)
                return;
        guest->over = true;
        if (guest->cancelled && stream->end.reason == SMV_END_CANCELLED)
                assert_prefix_stream(stream, alone[guest->want]);
        else
                assert_same_stream(stream, alone[guest->want]);
}

static void mix(struct talk **talks, struct stream *const *alone)
{
        struct guest guests[GUESTS];
        uint32_t count = 2 + random_below(GUESTS - 1), over = 0;
        uint64_t start = now_ms();

        for (uint32_t i = 0; i < count; i++)
                invite(&guests[i]);
        while (over < count) {
                if (now_ms() - start > 60000)
                        fail_msg("%s", "a stream does not end");
                for (uint32_t i = 0; i < count; i++) {
                        if (guests[i].over)
                                continue;
                        look(&guests[i], talks[guests[i].talk], now_ms() - start, alone);
                        over += guests[i].over;
                }
                talks_turn(talks, TALKS, over < count ? 1 : 0);
        }
}

/* Over a ring the same is mixed, so fewer mixes are enough; under a sanitizer rows are
 * expensive. */
static uint32_t mixes_of(const struct house *house)
{
        uint32_t count = talk_transport() == TALK_SOCKET ? scaled(50, 200) : 25;

        return house->sanitized ? (count + 3) / 4 : count;
}

static void tell(struct house *house, struct talk **talks)
{
        printf("# %u mixes: %u steps, %u rows, %u streams, %u parked\n", mixes_of(house),
               (unsigned)house_status(house, "steps"), (unsigned)house_status(house, "rows"),
               (unsigned)house_status(house, "ends"),
               (unsigned)house_status(house, "requests.parked"));
        for (size_t i = 0; i < TALKS; i++)
                talk_close(talks[i]);
}

static void mixes(struct house *house, bool crowded)
{
        struct stream *alone[WANTS];
        struct talk *talks[TALKS];

        for (size_t i = 0; i < TALKS; i++)
                talks[i] = talk_greet(house);
        for (size_t i = 0; i < WANTS; i++) {
                alone[i] = talk_whole(talks[i % TALKS], &wants[i]);
                assert_true(alone[i]->token_count > 0);
                if (!reference[i])
                        reference[i] = stream_copy(alone[i]);
                assert_same_stream(alone[i], reference[i]);
        }
        for (uint32_t i = 0; i < mixes_of(house); i++)
                mix(talks, alone);
        if (crowded)
                assert_true(house_status(house, "requests.parked") > 0);
        tell(house, talks);
        house_stop(house);
}

static void batched_is_as_alone(void **state)
{
        HOUSE(*state, "--log-level", "warn");
        mixes(*state, false);
}

static void with_two_plans_in_flight_it_is_the_same(void **state)
{
        HOUSE(*state, "--depth", "2");
        mixes(*state, false);
}

static void chunked_in_small_steps_on_one_thread_it_is_the_same(void **state)
{
        HOUSE(*state, "--step-tokens", "16", "--max-seqs", "4", "--threads", "1");
        mixes(*state, false);
}

static void chunked_with_two_plans_in_flight_it_is_the_same(void **state)
{
        HOUSE(*state, "--step-tokens", "7", "--max-seqs", "7", "--threads", "2", "--depth", "2");
        mixes(*state, false);
}

static void parked_and_let_in_again_it_is_the_same(void **state)
{
        HOUSE(*state, "--max-seqs", "1", "--step-tokens", "16");
        mixes(*state, true);
}

static void parked_with_two_plans_in_flight_it_is_the_same(void **state)
{
        HOUSE(*state, "--max-seqs", "1", "--step-tokens", "16", "--depth", "2");
        mixes(*state, true);
}

static int forget(void **state)
{
        (void)state;
        for (size_t i = 0; i < WANTS; i++)
                stream_free(reference[i]);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(batched_is_as_alone),
                STORY(with_two_plans_in_flight_it_is_the_same),
                STORY(chunked_in_small_steps_on_one_thread_it_is_the_same),
                STORY(chunked_with_two_plans_in_flight_it_is_the_same),
                STORY(parked_and_let_in_again_it_is_the_same),
                STORY(parked_with_two_plans_in_flight_it_is_the_same),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        random_begin();
        write_prompts();
        return cmocka_run_group_tests(tests, NULL, forget);
}
