/*
 * The share of the KV pool that a user has: `status` reports it, shared blocks are charged once, no
 * user may have more than the configured limit, and a user that caches much does not evict a user
 * that caches little.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/guest.h"
#include "tests/e2e/honest.h"

#define ALICE 65533u
#define BOB   65534u

/* A pool of 128 blocks of 16 KiB. */
#define SMALL FAST, "--threads", "1", "--ctx", "2048", "--kv-bytes", "2M"

static void fill(uint32_t *tokens, uint32_t count)
{
        /* letters: neither bos nor eos */
        for (uint32_t i = 0; i < count; i++)
                tokens[i] = random_below(256);
}

static uint32_t blocks_of(uint32_t positions)
{
        return (positions + 15) / 16;
}

static void wait_until(struct talk *talk, const char *path, uint64_t number)
{
        uint64_t end = now_ms() + PATIENCE_MS;

        while (talk_status(talk, path) != number) {
                assert_true(now_ms() < end);
                sleep_ms(2);
        }
}

/* Begins `streams` streams of it, with many log-probabilities; returns the first one's id. */
static uint32_t ask(struct talk *talk, const uint32_t *tokens, size_t count, uint32_t most,
                    uint32_t streams)
{
        uint32_t id = talk->last_id + 1;

        talk->last_id += streams;
        talk_say(talk, "op=s id=u tokens=I max_tokens=u ignore_eos=y n=u logprobs=u", "generate",
                 id, tokens, count, most, 1, streams, TOLD_MOST - 1);
        return id;
}

/*
 * Sends a request and does not read, so that all of its streams stall before any of them ends.
 * Then its user must have `blocks` blocks.  Then the streams are cancelled.
 */
static void expect_while_it_runs(const struct house *house, struct talk *witness, uint32_t prompt,
                                 uint32_t most, uint32_t streams, uint64_t blocks)
{
        struct talk *talk = talk_greet_by(house, TALK_KICK);
        uint32_t tokens[GUEST_PROMPT_MAX], id;

        fill(tokens, prompt);
        id = ask(talk, tokens, prompt, most, streams);
        wait_until(witness, "requests.stalled", streams);
        assert_int_equal(talk_status(witness, "charges.0.blocks"), blocks);
        assert_true(talk_reply(talk, id)->ok);
        for (uint32_t s = id; s < id + streams; s++)
                assert_true(talk_ask(talk, "op=s stream=u", "cancel", s)->ok);
        for (uint32_t s = id; s < id + streams; s++)
                talk_end(talk, s);
        talk_close(talk);
}

/* If there is only one user, every cached block is charged to it. */
static void a_prompt_is_charged_while_it_runs_and_then_no_more(void **state)
{
        struct house *house = *state;
        struct talk *witness;
        uint64_t cached;

        HOUSE(house, SMALL, "--ring-bytes", "64K");
        witness = talk_greet(house);
        assert_int_equal(talk_status(witness, "charges.0.blocks"), 0);
        cached = talk_status(witness, "charges.0.cached_blocks");
        assert_int_equal(cached, talk_status(witness, "blocks.cached"));

        /* The stream's worst case: all tokens but its last. */
        expect_while_it_runs(house, witness, 100, 1100, 1, blocks_of(100 + 1100 - 1));
        wait_until(witness, "charges.0.blocks", 0);
        assert_true(talk_status(witness, "charges.0.cached_blocks") >= cached + 100 / 16);
        assert_int_equal(talk_status(witness, "charges.0.cached_blocks"),
                         talk_status(witness, "blocks.cached"));
        talk_close(witness);
        house_stop(house);
}

/*
 * 640 tokens are 40 blocks, and each stream needs 10 of its own for 160 more.  Without sharing each
 * stream would need 50, and the pool has not so many.
 */
static void eight_streams_of_a_long_prompt_are_charged_once_for_it(void **state)
{
        struct house *house = *state;
        struct talk *witness;

        HOUSE(house, SMALL, "--ring-bytes", "64K");
        witness = talk_greet(house);
        assert_in_range(talk_status(witness, "blocks.total"), 40 + 8 * 10, 8 * 50 - 1);
        expect_while_it_runs(house, witness, 640, 161, 8, 40 + 8 * 10);
        wait_until(witness, "charges.0.blocks", 0);
        talk_close(witness);
        house_stop(house);
}

static void what_one_user_may_not_have_is_refused_with_the_numbers(void **state)
{
        uint32_t tokens[GUEST_PROMPT_MAX], id, own, most;
        struct house *house = *state;
        struct reply *reply;
        struct talk *talk;
        char said[160];

        HOUSE(house, SMALL, "--uid-blocks-percent", "25");
        talk = talk_greet(house);
        assert_int_equal(talk_status(talk, "limits.uid_blocks_percent"), 25);
        own = (uint32_t)talk_status(talk, "blocks.total") / 4;
        assert_in_range(own, 2, GUEST_PROMPT_MAX / 16);
        most = 16 * own - 10 + 1; /* after 10 tokens; the last one is not read */
        fill(tokens, GUEST_PROMPT_MAX);

        id = ask(talk, tokens, 10, most + 1, 1);
        reply = talk_reply(talk, id);
        assert_false(reply->ok);
        assert_string_equal(reply->error, "quota");
        assert_string_equal(reply->field, "max_tokens");
        snprintf(said, sizeof(said),
                 "the prompt has 10 tokens and %u may follow; that takes %u blocks, and one user "
                 "may have %u (uid_blocks_percent)",
                 most + 1, own + 1, own);
        assert_string_equal(reply->message, said);

        id = ask(talk, tokens, 10, most, 1);
        assert_true(talk_reply(talk, id)->ok);
        assert_int_equal(talk_end(talk, id)->token_count, most);

        /* A request without a limit gets as many tokens as fit. */
        reply = talk_ask(talk, "op=s tokens=I", "generate", tokens, (size_t)(16 * own - 7));
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "max_tokens"), 7);
        talk_end(talk, talk->last_id);
        talk_close(talk);
        house_stop(house);
}

/* ---- two users ---- */

static struct house *open_to_all(void **state)
{
        struct house *house = *state;

        assert_int_equal(chmod(house->directory, 0711), 0);
        return house;
}

static uint32_t ask_as(const struct guest *guest, const struct question *question)
{
        guest_ask(guest, question);
        return guest_hear(guest).cached_tokens;
}

/* Runs until everything in the pool could have been evicted twice. */
static void flood(struct talk *talk, const struct guest *guest)
{
        uint64_t blocks = talk_status(talk, "blocks.total");
        uint64_t until = talk_status(talk, "blocks.evicted") + 2 * blocks;
        struct question question = { .count = 400, .max_tokens = 1 };

        while (talk_status(talk, "blocks.evicted") < until) {
                fill(question.tokens, question.count);
                ask_as(guest, &question);
        }
}

/* How much of a short prompt its user finds after another user's prompts have gone through the
 * pool. */
static uint32_t found_after_a_flood(struct house *house)
{
        struct question question = { .count = 100, .max_tokens = 1 };
        struct talk *talk = talk_greet_by(house, TALK_SOCKET);
        struct guest alice, bob;
        uint32_t found;

        fill(question.tokens, question.count);
        alice = guest_begin(house, ALICE, 0);
        bob = guest_begin(house, BOB, 0);
        assert_int_equal(ask_as(&alice, &question), 0);
        assert_int_equal(ask_as(&alice, &question), 99); /* the last one is read again */
        flood(talk, &bob);
        found = ask_as(&alice, &question);
        guest_end(&alice);
        guest_end(&bob);
        talk_close(talk);
        guests_are_gone(house);
        house_stop(house);
        return found;
}

static void who_keeps_much_does_not_drive_out_who_keeps_little(void **state)
{
        struct house *house = open_to_all(state);

        HOUSE(house, SMALL, "--socket-mode", "0666");
        assert_int_equal(found_after_a_flood(house), 99);
}

/* If every user may cache all of the pool, the oldest blocks are evicted first, as for one user. */
static void but_where_everybody_may_keep_all_it_does(void **state)
{
        struct house *house = open_to_all(state);

        HOUSE(house, SMALL, "--socket-mode", "0666", "--uid-cached-percent", "100");
        assert_int_equal(found_after_a_flood(house), 0);
}

/* The index of this user in `charges`; fails if it is not there. */
static uint32_t row_of(const struct reply *reply, uint32_t uid)
{
        char path[48];

        for (uint32_t i = 0;; i++) {
                snprintf(path, sizeof(path), "status.charges.%u.uid", i);
                if (reply_uint(reply, path) == uid)
                        return i;
        }
}

static uint64_t charge(struct talk *talk, uint32_t uid, const char *what)
{
        struct reply *reply = talk_ask(talk, "op=s", "status");
        char path[64];

        snprintf(path, sizeof(path), "status.charges.%u.%s", row_of(reply, uid), what);
        return reply_uint(reply, path);
}

/* Root sees all rows.  Another user sees only its own row, as always. */
static void what_is_cached_of_one_who_has_gone_is_shown_to_root(void **state)
{
        const struct question look = { .wish = GUEST_LOOKS, .count = 1 };
        struct question question = { .count = 100, .max_tokens = 1 };
        struct house *house = open_to_all(state);
        struct guest alice, bob;
        struct answer answer;
        struct talk *talk;
        const char *row;

        HOUSE(house, SMALL, "--socket-mode", "0666");
        talk = talk_greet_by(house, TALK_SOCKET);
        fill(question.tokens, question.count);
        alice = guest_begin(house, ALICE, 0);
        ask_as(&alice, &question);
        guest_end(&alice);
        guests_are_gone(house);
        assert_int_equal(charge(talk, ALICE, "connections"), 0);
        assert_int_equal(charge(talk, ALICE, "blocks"), 0);
        assert_int_equal(charge(talk, ALICE, "cached_blocks"), blocks_of(100));

        bob = guest_begin(house, BOB, 0);
        guest_ask(&bob, &look);
        answer = guest_hear(&bob);
        row = strstr(answer.status, "\"cached_blocks\":0");
        assert_non_null(row);
        assert_null(strstr(row + 1, "\"cached_blocks\""));
        guest_end(&bob);
        talk_close(talk);
        guests_are_gone(house);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(a_prompt_is_charged_while_it_runs_and_then_no_more),
                STORY(eight_streams_of_a_long_prompt_are_charged_once_for_it),
                STORY(what_one_user_may_not_have_is_refused_with_the_numbers),
        };
        const struct CMUnitTest of_two_users[] = {
                STORY(who_keeps_much_does_not_drive_out_who_keeps_little),
                STORY(but_where_everybody_may_keep_all_it_does),
                STORY(what_is_cached_of_one_who_has_gone_is_shown_to_root),
        };
        int failed;

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        random_begin();
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        if (there_are_users())
                failed += cmocka_run_group_tests(of_two_users, NULL, NULL);
        return failed;
}
