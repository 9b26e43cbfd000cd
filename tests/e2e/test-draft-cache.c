/*
 * The prefix cache behind drafts.  Rows of wrong guesses were computed in blocks of the pool, and
 * none of them may be found by a later prompt: such a prompt has the same tokens and the same count
 * of cached tokens as in a daemon without drafts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/draft-requests.h"
#include "tests/e2e/raw-client.h"

#define ROUNDS  40u /* answers of 1 to so many tokens: each border of a block is an end of some */
#define PROMPT  37u
#define FOLLOWS 4u /* requests behind each */

enum ends { BY_LENGTH, BY_TEXT, BY_TOKEN, BY_END };

/* What one daemon says to all requests. */
struct answers {
        struct answer of[ROUNDS][1 + FOLLOWS];
};

static const struct draft_model letters = { .least = 97, .tokens = 26 };

/* A prompt that repeats itself, so that much is guessed, and much of it wrongly. */
static void write_prompt(uint32_t round, uint32_t *tokens)
{
        for (uint32_t i = 0; i < PROMPT; i++)
                tokens[i] = letters.least + (i < 5 ? (round * 7 + i * i) % letters.tokens
                                                   : tokens[i - 5] - letters.least);
        tokens[PROMPT - 3] = letters.least + round % letters.tokens;
}

static struct smv_generate first_request(uint32_t round, const uint32_t *tokens, enum ends ends)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate),
                                    .tokens = tokens,
                                    .token_count = PROMPT,
                                    .max_tokens = 1 + round,
                                    .ignore_eos = ends != BY_END,
                                    .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                    .temperature = round % 3 ? 0.8f : 0,
                                    .seed = round };

        if (ends != BY_LENGTH)
                ask.max_tokens = 60;
        return ask;
}

/* A stop in the answer, which stands at about the token `round`. */
static void choose_stop(const struct answer *whole, uint32_t round, enum ends ends,
                        struct smv_generate *ask)
{
        static uint32_t token;
        static char text[3];
        static const char *texts[] = { text };
        uint32_t at = round < whole->count ? round : whole->count - 1;

        token = whole->tokens[at];
        text[0] = whole->text_bytes > at + 1u ? whole->text[at] : ' ';
        text[1] = whole->text_bytes > at + 1u ? whole->text[at + 1] : 'a';
        if (ends == BY_TOKEN) {
                ask->stop_tokens = &token;
                ask->stop_token_count = 1;
        }
        if (ends == BY_TEXT && !((text[0] | text[1]) & 0x80)) {
                ask->stops = texts;
                ask->stop_count = 1;
        }
}

/* The same texts for both daemons: `known` are the answers of the first one, or NULL. */
static void ask_all(struct smv_client *client, enum ends ends, const struct answers *known,
                    const struct answer *wholes, struct answers *ret_answers)
{
        for (uint32_t round = 0; round < ROUNDS; round++) {
                uint32_t tokens[PROMPT + 200];
                struct smv_generate ask;
                const struct answer *first;

                write_prompt(round, tokens);
                ask = first_request(round, tokens, ends);
                /* About as expected, so that more is guessed, and wrongly here and there. */
                ask.prediction = "lu fe ti fu la lu fe to fi lu re ne ta lu";
                if (wholes)
                        choose_stop(&wholes[round], round, ends, &ask);
                ret_answers->of[round][0] = answer_alone(client, &ask, 0);
                first = known ? &known->of[round][0] : &ret_answers->of[round][0];
                assert_true(first->count > 0 && first->count < 200);
                memcpy(tokens + PROMPT, first->tokens, first->count * sizeof(*tokens));
                for (uint32_t i = 0; i < FOLLOWS; i++) {
                        /* All of it and one more; all of it; some of it; and its beginning. */
                        uint32_t more = i == 0 ? first->count + 1 : first->count / i;

                        ask = first_request(round, tokens, BY_LENGTH);
                        tokens[PROMPT + first->count] = letters.least;
                        ask.token_count = PROMPT + more;
                        ask.max_tokens = 12;
                        ret_answers->of[round][1 + i] = answer_alone(client, &ask, 0);
                }
        }
}

static void start(struct daemon_fixture *fixture, const char *draft)
{
        START_DAEMON(fixture, "--threads", "1", "--ctx", DRAFT_CONTEXT, "--draft", draft);
}

/* The answers that no stop ends, from a daemon of their own, whose cache nobody needs. */
static void find_wholes(struct daemon_fixture *fixture, struct answer wholes[ROUNDS])
{
        struct smv_client *client;

        start(fixture, "off");
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t round = 0; round < ROUNDS; round++) {
                uint32_t tokens[PROMPT];
                struct smv_generate ask;

                write_prompt(round, tokens);
                ask = first_request(round, tokens, BY_TEXT);
                wholes[round] = answer_alone(client, &ask, 0);
        }
        smv_close(client);
        fixture_stop(fixture);
}

static void compare(struct daemon_fixture *fixture, enum ends ends)
{
        struct answers *without = calloc(1, sizeof(*without)), *with = calloc(1, sizeof(*with));
        struct answer wholes[ROUNDS] = { 0 };
        bool has_stops = ends == BY_TEXT || ends == BY_TOKEN;
        struct smv_client *client;
        uint64_t drafted, right, cached = 0;

        assert_true(without && with);
        if (has_stops)
                find_wholes(fixture, wholes);
        start(fixture, "off");
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        ask_all(client, ends, NULL, has_stops ? wholes : NULL, without);
        smv_close(client);
        fixture_stop(fixture);
        start(fixture, "always");
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        ask_all(client, ends, without, has_stops ? wholes : NULL, with);
        smv_close(client);
        drafted = fixture_status(fixture, "drafted");
        right = fixture_status(fixture, "drafts_right");
        fixture_stop(fixture);
        for (uint32_t i = 0; i < ROUNDS; i++)
                for (uint32_t j = 0; j <= FOLLOWS; j++) {
                        struct answer *a = &with->of[i][j], *b = &without->of[i][j];

                        assert_same_answer(a, b, "in the cache", i);
                        if (a->end.cached_tokens != b->end.cached_tokens)
                                fail_msg("answer %u, request %u: %u of %u tokens were cached, and "
                                         "without drafts %u",
                                         i, j, a->end.cached_tokens, a->end.prompt_tokens,
                                         b->end.cached_tokens);
                        cached += a->end.cached_tokens;
                        answer_clear(a);
                        answer_clear(b);
                }
        for (uint32_t i = 0; i < ROUNDS; i++)
                answer_clear(&wholes[i]);
        free(without);
        free(with);
        print_message("# %llu of %llu guesses right; %llu tokens were cached\n",
                      (unsigned long long)right, (unsigned long long)drafted,
                      (unsigned long long)cached);
        assert_true(cached && drafted - right > ROUNDS);
}

static void a_prompt_behind_an_answer_finds_as_much_as_without_drafts(void **state)
{
        compare(*state, BY_LENGTH);
}

static void a_prompt_behind_a_stop_string_finds_as_much_as_without_drafts(void **state)
{
        compare(*state, BY_TEXT);
}

static void a_prompt_behind_a_stop_token_finds_as_much_as_without_drafts(void **state)
{
        compare(*state, BY_TOKEN);
}

static void a_prompt_behind_an_end_token_finds_as_much_as_without_drafts(void **state)
{
        compare(*state, BY_END);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_prompt_behind_an_answer_finds_as_much_as_without_drafts),
                DAEMON_TEST(a_prompt_behind_a_stop_string_finds_as_much_as_without_drafts),
                DAEMON_TEST(a_prompt_behind_a_stop_token_finds_as_much_as_without_drafts),
                DAEMON_TEST(a_prompt_behind_an_end_token_finds_as_much_as_without_drafts),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
