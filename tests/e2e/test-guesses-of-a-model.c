/*
 * Guesses of a draft model change no answer.  A daemon without drafts answers requests to teaspoon
 * one by one.  Then a daemon for which pinch guesses answers them again, several at a time, and
 * gives each guess its row: tokens, texts, log probabilities and ENDs must be the same.  Guesses
 * from earlier answers are switched off, so that most are the model's.
 *
 * The prompts are those of the shipped model's own test, which neither model was trained with.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/draft-requests.h"
#include "tests/e2e/raw-client.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define CONVERSATIONS 20u
#define SAID_MAX      160u
#define STORY_MAX     (2 * CONVERSATIONS * SAID_MAX)
#define CHATS_MAX     CONVERSATIONS

struct conversation {
        uint32_t prompt[SAID_MAX], prompt_count;
        uint32_t answer[SAID_MAX], answer_count; /* its beginning */
};
static struct conversation conversations[CONVERSATIONS];
/* All of them, one after the other. */
static uint32_t story[STORY_MAX], story_count;

/* A request; what its streams say without drafts, and what they say with them. */
struct chat {
        uint32_t tokens[STORY_MAX];
        struct smv_generate ask;
        struct answer plain[DRAFT_STREAMS], answers[DRAFT_STREAMS];
        uint32_t first; /* its first stream */
};
static struct chat chats[CHATS_MAX];
static uint32_t chat_count;

/* ---- requests ---- */

static uint32_t read_tokens(FILE *in, uint32_t *tokens)
{
        uint32_t count = 0;

        assert_int_equal(fscanf(in, "%u", &count), 1);
        assert_true(count <= SAID_MAX);
        for (uint32_t i = 0; i < count; i++)
                assert_int_equal(fscanf(in, "%u", &tokens[i]), 1);
        return count;
}

static void tell_story(const uint32_t *tokens, uint32_t count)
{
        memcpy(story + story_count, tokens, count * sizeof(*tokens));
        story_count += count;
}

static int read_conversations(void **state)
{
        char path[512], word[16];
        uint32_t count = 0;
        FILE *in;

        (void)state;
        snprintf(path, sizeof(path), "%s/tests/golden/shipped/teaspoon.txt", env_path("SOURCES"));
        in = fopen(path, "r");
        assert_non_null(in);
        while (fscanf(in, "%15s", word) == 1) {
                struct conversation *now = &conversations[count];

                if (!strcmp(word, "prompt")) {
                        assert_true(count < CONVERSATIONS);
                        now->prompt_count = read_tokens(in, now->prompt);
                        tell_story(now->prompt, now->prompt_count);
                } else if (!strcmp(word, "greedy")) {
                        now->answer_count = read_tokens(in, now->answer);
                        tell_story(now->answer, now->answer_count);
                        count++;
                }
        }
        fclose(in);
        assert_int_equal(count, CONVERSATIONS);
        return 0;
}

static int forget_chats(void **state)
{
        for (uint32_t i = 0; i < chat_count; i++)
                for (uint32_t j = 0; j < DRAFT_STREAMS; j++) {
                        answer_clear(&chats[i].plain[j]);
                        answer_clear(&chats[i].answers[j]);
                }
        chat_count = 0;
        return fixture_tear_down(state);
}

#define CHATS_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, forget_chats)

/* A greedy request of one stream; the test changes what it needs. */
static struct smv_generate *add_chat(const uint32_t *tokens, uint32_t count, uint32_t max_tokens)
{
        struct chat *chat = &chats[chat_count++];

        assert_true(chat_count <= CHATS_MAX && count && count <= STORY_MAX);
        memcpy(chat->tokens, tokens, count * sizeof(*tokens));
        chat->ask = (struct smv_generate){ SMV_SIZE(smv_generate),
                                           .tokens = chat->tokens,
                                           .token_count = count,
                                           .max_tokens = max_tokens,
                                           .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                           .seed = chat_count,
                                           .n = 1 };
        return &chat->ask;
}

/* The conversation with this number. */
static struct smv_generate *add_conversation(uint32_t number, uint32_t max_tokens)
{
        const struct conversation *of = &conversations[number];

        return add_chat(of->prompt, of->prompt_count, max_tokens);
}

/* Hot enough that many guesses are wrong, and with the numbers of each row. */
static void draw(struct smv_generate *ask, float temperature)
{
        ask->temperature = temperature;
        ask->set |= SMV_SET_LOGPROBS;
        ask->logprobs = 5;
}

/*
 * Eight prompts: of one token, around the border of a block, of several hundred tokens, and one
 * whose answer crosses many blocks.  None is the beginning of another.
 */
static void add_lengths(void)
{
        static const uint32_t lengths[] = { 1, 15, 16, 17, 33, 112, 300, 620 };
        static const uint32_t answers[] = { 60, 70, 80, 200, 90, 50, 100, 60 };
        static const float temperatures[] = { 0, 0.8f, 0, 0, 1.2f, 0.8f, 0, 0.8f };

        assert_true(story_count >= 620 + COUNT(lengths));
        for (uint32_t i = 0; i < COUNT(lengths); i++) {
                struct smv_generate *ask = add_chat(story + i, lengths[i], answers[i]);

                draw(ask, temperatures[i]);
                ask->ignore_eos = 1;
        }
}

/* ---- daemons ---- */

#define SETTINGS(...) ((const char *const[8]){ __VA_ARGS__ })

/* Without a limit of the time of steps, in which guesses give way to prompts. */
#define COMMON                                                                                     \
        "--threads", "1", "--gap-ms", "0", "--constraints-kept", "0", "--stall-preempt-ms",        \
                "86400000"

/* Of a model that comes with samovar; valid until the call after the next one. */
static const char *model_path(const char *name)
{
        static char paths[2][512];
        static uint32_t turn;
        char *path = paths[turn++ % COUNT(paths)];

        snprintf(path, sizeof(paths[0]), "%s/models/%s-q8_0.gguf", env_path("SOURCES"), name);
        return path;
}

static void start_plain(struct daemon_fixture *fixture)
{
        START_DAEMON(fixture, "--model", model_path("teaspoon"), COMMON, "--draft", "off");
}

static void start_with(struct daemon_fixture *fixture, const char *draft_model,
                       const char *const more[8])
{
        START_DAEMON(fixture, "--model", model_path("teaspoon"), COMMON, "--draft", "always",
                     "--draft-pool", "0", "--draft-model", draft_model, more[0], more[1], more[2],
                     more[3], more[4], more[5], more[6], more[7]);
}

static void start(struct daemon_fixture *fixture, const char *const more[8])
{
        start_with(fixture, model_path("pinch"), more);
}

static void answer_plainly(struct daemon_fixture *fixture)
{
        struct smv_client *client;

        start_plain(fixture);
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < chat_count; i++)
                for (uint32_t j = 0; j < chats[i].ask.n; j++) {
                        chats[i].plain[j] = answer_alone(client, &chats[i].ask, j);
                        assert_int_equal(chats[i].plain[j].refused, 0);
                        assert_int_equal(chats[i].plain[j].end.drafted, 0);
                }
        smv_close(client);
        assert_int_equal(fixture_status(fixture, "drafted"), 0);
        fixture_stop(fixture);
}

/* ---- waves ---- */

/* The sums of what the ENDs say. */
struct seen {
        uint64_t tokens, drafted, right, steps, cached, preempted;
};

static void add_end(struct seen *seen, const struct smv_event *end)
{
        assert_true(end->drafts_right <= end->drafted && end->draft_steps <= end->drafted);
        seen->tokens += end->output_tokens;
        seen->drafted += end->drafted;
        seen->right += end->drafts_right;
        seen->steps += end->draft_steps;
        seen->cached += end->cached_tokens;
        seen->preempted += end->preemptions;
}

static void say_seen(const char *what, const struct seen *seen)
{
        print_message("# %s: %llu of %llu guesses right in %llu runs, of %llu tokens; %llu tokens "
                      "cached, %llu preempted\n",
                      what, (unsigned long long)seen->right, (unsigned long long)seen->drafted,
                      (unsigned long long)seen->steps, (unsigned long long)seen->tokens,
                      (unsigned long long)seen->cached, (unsigned long long)seen->preempted);
}

static struct answer *answer_of(uint32_t from, uint32_t count, uint32_t stream)
{
        for (uint32_t i = from; i < from + count; i++)
                if (stream - chats[i].first < chats[i].ask.n)
                        return &chats[i].answers[stream - chats[i].first];
        fail_msg("%s", "an event of no stream");
        return NULL;
}

/* These chats at a time. */
static void run_wave(struct smv_client *client, uint32_t from, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t left = 0;

        for (uint32_t i = from; i < from + count; i++) {
                for (uint32_t j = 0; j < DRAFT_STREAMS; j++)
                        answer_clear(&chats[i].answers[j]);
                assert_int_equal(smv_generate(client, &chats[i].ask, &chats[i].first), 0);
                left += chats[i].ask.n;
        }
        while (left) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                answer_add(answer_of(from, count, event.stream), &event);
                left -= event.kind == SMV_EVENT_END;
        }
}

static void assert_same_chat(const struct chat *chat, const char *what)
{
        for (uint32_t i = 0; i < chat->ask.n; i++)
                assert_same_answer(&chat->answers[i], &chat->plain[i], what,
                                   (uint32_t)(chat - chats));
}

/* All chats, `most` at a time. */
static void run_waves(struct smv_client *client, uint32_t most, const char *what, struct seen *seen)
{
        for (uint32_t i = 0; i < chat_count; i += most) {
                uint32_t some = chat_count - i < most ? chat_count - i : most;

                run_wave(client, i, some);
                for (uint32_t j = i; j < i + some; j++) {
                        assert_same_chat(&chats[j], what);
                        for (uint32_t k = 0; k < chats[j].ask.n; k++)
                                add_end(seen, &chats[j].answers[k].end);
                }
        }
}

/* All chats, `most` at a time, of a daemon with this draft model. */
static struct seen compare_with(struct daemon_fixture *fixture, const char *draft_model,
                                uint32_t most, const char *what, const char *const more[8])
{
        struct seen seen = { 0 };
        struct smv_client *client;

        start_with(fixture, draft_model, more);
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        run_waves(client, most, what, &seen);
        smv_close(client);
        say_seen(what, &seen);
        assert_int_equal(fixture_status(fixture, "drafted"), seen.drafted);
        assert_int_equal(fixture_status(fixture, "drafts_right"), seen.right);
        fixture_stop(fixture);
        return seen;
}

static struct seen compare(struct daemon_fixture *fixture, uint32_t most, const char *what,
                           const char *const more[8])
{
        return compare_with(fixture, model_path("pinch"), most, what, more);
}

/* ---- one stream, and several ---- */

static void guesses_at_greedy_chats_are_often_right(void **state)
{
        struct seen seen;

        for (uint32_t i = 0; i < CONVERSATIONS; i++)
                add_conversation(i, 48);
        answer_plainly(*state);
        seen = compare(*state, 1, "greedy", SETTINGS(NULL));
        assert_true(seen.drafted > 0);
        assert_true(seen.right * 10 >= seen.drafted * 3);
}

static void sampled_streams_are_as_without_drafts(void **state)
{
        struct seen seen;

        for (uint32_t i = 0; i < CONVERSATIONS; i++) {
                struct smv_generate *ask = add_conversation(i, 64);

                draw(ask, i % 2 ? 1.2f : 0.8f);
                ask->seed = 100 + i;
                if (i % 4 < 2) {
                        ask->set |= SMV_SET_TOP_P;
                        ask->top_p = 0.9f;
                }
                ask->ignore_eos = i % 3 == 0;
        }
        answer_plainly(*state);
        seen = compare(*state, 1, "sampled", SETTINGS(NULL));
        assert_true(seen.right && seen.right < seen.drafted);
}

static void streams_beside_each_other_are_as_without_drafts(void **state)
{
        struct seen cold = { 0 }, warm = { 0 };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        add_lengths();
        answer_plainly(fixture);
        start(fixture, SETTINGS(NULL));
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        run_waves(client, chat_count, "eight, cold", &cold);
        run_waves(client, chat_count, "eight, cached", &warm);
        smv_close(client);
        say_seen("eight, cold", &cold);
        say_seen("eight, cached", &warm);
        assert_true(cold.right && cold.right < cold.drafted);
        assert_true(warm.right && warm.cached > cold.cached);
        fixture_stop(fixture);
}

/* A guess of one stream is longer than a step.  All slots are taken, and streams wait for them. */
static void long_guesses_in_small_steps_change_nothing(void **state)
{
        struct seen seen;

        add_lengths();
        answer_plainly(*state);
        seen = compare(*state, chat_count, "in small steps",
                       SETTINGS("--max-seqs", "4", "--step-tokens", "11", "--draft-tokens", "16"));
        assert_true(seen.drafted > 0);
}

static void guesses_with_two_plans_in_flight_change_nothing(void **state)
{
        struct seen several, single;

        add_lengths();
        for (uint32_t i = 0; i < 6; i++)
                add_conversation(i, 48);
        answer_plainly(*state);
        several = compare(*state, chat_count, "two plans", SETTINGS("--pipeline-depth", "2"));
        single = compare(*state, 1, "two plans, one by one", SETTINGS("--pipeline-depth", "2"));
        assert_true(several.drafted + single.drafted > 0);
}

/* How much is guessed depends on the time of rows and of the draft model, and may be nothing. */
static void guesses_that_must_pay_change_nothing(void **state)
{
        add_lengths();
        for (uint32_t i = 0; i < 12; i++)
                draw(add_conversation(i, 64), i % 2 ? 0.8f : 0);
        answer_plainly(*state);
        compare(*state, 1, "if they pay, one by one", SETTINGS("--draft", "auto"));
        compare(*state, 8, "if they pay", SETTINGS("--draft", "auto"));
        compare(*state, 8, "if they pay, two plans",
                SETTINGS("--draft", "auto", "--pipeline-depth", "2"));
}

/* ---- what a guess may depend on ---- */

static void assert_same_counts(const struct smv_event *a, const struct smv_event *b,
                               const char *what, uint32_t number)
{
        if (a->drafted != b->drafted || a->drafts_right != b->drafts_right ||
            a->draft_steps != b->draft_steps)
                fail_msg("%s, chat %u: %u of %u guesses right in %u runs, and %u of %u in %u when "
                         "it was first asked",
                         what, number, b->drafts_right, b->drafted, b->draft_steps, a->drafts_right,
                         a->drafted, a->draft_steps);
}

/* Runs the chat with so many streams, which all must have counts as those of the END. */
static void assert_counts(struct smv_client *client, uint32_t number, uint32_t n,
                          const struct smv_event *end, const char *what)
{
        struct chat *chat = &chats[number];

        chat->ask.n = n;
        run_wave(client, number, 1);
        for (uint32_t i = 0; i < n; i++) {
                assert_same_answer(&chat->answers[i], &chat->plain[0], what, number);
                assert_same_counts(end, &chat->answers[i].end, what, number);
        }
        chat->ask.n = 1;
}

/* First cold, as so many streams with the same prompt; then cached, alone and beside another. */
static struct smv_event try_counts(struct smv_client *client, uint32_t number, uint32_t n)
{
        struct chat *chat = &chats[number];
        struct smv_event cold;

        chat->ask.n = n;
        run_wave(client, number, 1);
        cold = chat->answers[0].end;
        assert_true(cold.drafted > 0);
        assert_int_equal(cold.cached_tokens, 0);
        for (uint32_t i = 0; i < n; i++) {
                assert_same_answer(&chat->answers[i], &chat->plain[0], "cold", number);
                assert_same_counts(&cold, &chat->answers[i].end, "a sibling, cold", number);
        }
        assert_counts(client, number, 1, &cold, "alone and cached");
        assert_true(cold.prompt_tokens <= 16 || chat->answers[0].end.cached_tokens);
        assert_counts(client, number, 2, &cold, "beside a sibling");
        return cold;
}

/*
 * A guess depends on the tokens of its stream, and not on where the draft model has them from.  The
 * prompts fit a step of the draft model: a longer one has no guess before all of it is computed.
 * The pool is large: a guess has no block that must first be taken from the cache.
 */
static void guesses_are_the_same_cold_cached_and_beside_a_sibling(void **state)
{
        static const uint32_t lengths[] = { 14, 33, 64, 100, 13, 34, 63, 101 };
        struct daemon_fixture *fixture = *state;
        struct smv_event cold[COUNT(lengths)];
        struct smv_client *client;

        for (uint32_t i = 0; i < COUNT(lengths); i++)
                add_chat(story + i, lengths[i], 80)->ignore_eos = 1;
        answer_plainly(fixture);
        start(fixture, SETTINGS(NULL));
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        for (uint32_t i = 0; i < chat_count; i++)
                cold[i] = try_counts(client, i, 1 + i / 4);
        for (uint32_t i = 0; i < chat_count; i++)
                assert_counts(client, i, 1, &cold[i], "behind other streams");
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- a full pool ---- */

/*
 * Forks of prompts, each alone without drafts.  The pool has 40 blocks, of 32 KiB for teaspoon and
 * 8 for pinch, and the longest request needs most of them.  Others end long before they need what
 * they ask for, so more requests begin than have space to the end.
 */
static void forks_in_a_full_pool_are_as_without_drafts(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct seen seen = { 0 };
        struct smv_client *client;

        for (uint32_t i = 0; i < CONVERSATIONS; i++) {
                struct smv_generate *ask = add_conversation(i, 150);

                draw(ask, i % 2 ? 0.8f : 0);
                ask->ignore_eos = i % 5 > 1;
                ask->n = 1 + i % DRAFT_STREAMS;
        }
        answer_plainly(fixture);
        start(fixture, SETTINGS("--kv-bytes", "1600K", "--preempt-target", "50"));
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        /* The daemon learns how much requests need, so a later wave may be the crowded one. */
        for (uint32_t i = 0; i < 10 && seen.preempted < 5; i++) {
                run_waves(client, chat_count, "a full pool", &seen);
                say_seen("a full pool", &seen);
        }
        smv_close(client);
        assert_true(seen.preempted && seen.right && seen.right < seen.drafted);
        fixture_stop(fixture);
}

/* ---- streams that are cut ---- */

#define CUTS 4u

/*
 * It does not end by itself: the context has no space for more, but its log probabilities fill the
 * ring and the socket long before, and then it waits until its client reads.
 */
static struct smv_generate *add_unending(uint32_t number)
{
        struct smv_generate *ask = add_conversation(number, 2 * LONG_LOGPROBS);

        draw(ask, number % 2 ? 0.8f : 0);
        ask->logprobs = LOGPROBS_MOST - 1;
        ask->ignore_eos = 1;
        return ask;
}

/*
 * Computes it without drafts, from the prompt and `before` tokens behind it.  The text of a fork
 * may begin with the last bytes of a character, so it is not compared.
 */
static void assert_as_computed(struct smv_client *client, const struct cut *cut,
                               const uint32_t *tokens, uint32_t before, const char *what)
{
        const struct answer *answer = &cut->answer;
        struct smv_generate ask = chats[cut->number].ask;
        struct answer whole;

        ask.tokens = tokens;
        ask.token_count += before;
        ask.max_tokens = answer->count + 1;
        whole = answer_alone(client, &ask, 0);
        assert_int_equal(whole.end.reason, SMV_END_LENGTH);
        assert_int_equal(whole.end.prompt_tokens, answer->end.prompt_tokens);
        for (uint32_t i = 0; i < answer->count; i++)
                if (whole.tokens[i] != answer->tokens[i])
                        fail_msg("%s, chat %u: token %u of %u is %u, and %u without drafts", what,
                                 cut->number, i, answer->count, answer->tokens[i], whole.tokens[i]);
        assert_true(answer->number_bytes <= whole.number_bytes);
        if (answer->number_bytes && memcmp(whole.numbers, answer->numbers, answer->number_bytes))
                fail_msg("%s, chat %u: other log probabilities", what, cut->number);
        answer_clear(&whole);
}

static void cancel_some(struct smv_client *client, struct cut *cuts)
{
        static const uint32_t most[CUTS] = { 1, 17, 40, 90 };

        for (uint32_t i = 0; i < CUTS; i++) {
                cuts[i] = (struct cut){ .number = chat_count, .most = most[i] };
                assert_int_equal(smv_generate(client, add_unending(i), &cuts[i].stream), 0);
        }
        run_cuts(client, cuts, CUTS);
        chat_count -= CUTS;
}

static void check_cancelled(struct daemon_fixture *fixture, struct cut *cuts)
{
        struct smv_client *client;

        start_plain(fixture);
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < CUTS; i++) {
                const struct chat *chat = &chats[cuts[i].number];

                assert_as_computed(client, &cuts[i], chat->tokens, 0, "cancelled");
                answer_clear(&cuts[i].answer);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* The others come into the slots of the cancelled ones, and begin with the same prompts. */
static void nothing_is_left_of_cancelled_streams(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct cut cuts[CUTS];
        struct seen seen = { 0 };
        struct smv_client *client;

        for (uint32_t i = 0; i < CUTS; i++) {
                struct smv_generate *ask = add_conversation(i, 80);

                draw(ask, i % 2 ? 0.8f : 0);
                ask->ignore_eos = 1;
        }
        answer_plainly(fixture);
        start(fixture, SETTINGS("--max-seqs", "4", "--ring-bytes", "64K"));
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 65536);
        cancel_some(client, cuts);
        run_waves(client, CUTS, "behind cancelled streams", &seen);
        smv_close(client);
        say_seen("behind cancelled streams", &seen);
        assert_true(seen.drafted > 0);
        fixture_stop(fixture);
        check_cancelled(fixture, cuts);
}

/* Begins the parent, forks it after some tokens, and cancels all. */
static void run_family(struct smv_client *client, uint32_t after, struct cut family[3])
{
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 2 };
        struct smv_generate *ask;
        uint32_t forks[2];

        family[0] = (struct cut){ .number = chat_count, .most = after + 70 };
        ask = add_unending(chat_count);
        /* Greedy, so that forks go on as their parent, and no number of a sample counts. */
        ask->temperature = 0;
        assert_int_equal(smv_generate(client, ask, &family[0].stream), 0);
        answer_read(client, &family[0].answer, after);
        assert_int_equal(smv_fork(client, family[0].stream, &fork, forks), 0);
        for (uint32_t i = 1; i < 3; i++)
                family[i] = (struct cut){ .number = family[0].number,
                                          .stream = forks[i - 1],
                                          .most = 30 * i };
        run_cuts(client, family, 3);
}

static void check_family(struct smv_client *client, struct cut family[3])
{
        struct chat *chat = &chats[family[0].number];
        const struct answer *parent = &family[0].answer;

        assert_as_computed(client, &family[0], chat->tokens, 0, "a parent");
        /* The tokens of the parent before a fork are its prompt now. */
        memcpy(chat->tokens + chat->ask.token_count, parent->tokens,
               parent->count * sizeof(*parent->tokens));
        for (uint32_t i = 1; i < 3; i++) {
                uint32_t own = family[i].answer.end.prompt_tokens;

                assert_in_range(own, chat->ask.token_count, chat->ask.token_count + parent->count);
                assert_as_computed(client, &family[i], chat->tokens,
                                   own - (uint32_t)chat->ask.token_count, "a fork");
        }
        for (uint32_t i = 0; i < 3; i++)
                answer_clear(&family[i].answer);
}

static void forks_in_the_middle_are_as_without_drafts(void **state)
{
        static const uint32_t after[] = { 1, 16, 33, 60 };
        struct daemon_fixture *fixture = *state;
        struct cut families[COUNT(after)][3];
        struct smv_client *client;

        start(fixture, SETTINGS("--ring-bytes", "64K"));
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 65536);
        for (uint32_t i = 0; i < COUNT(after); i++)
                run_family(client, after[i], families[i]);
        smv_close(client);
        assert_true(fixture_status(fixture, "drafted"));
        fixture_stop(fixture);
        start_plain(fixture);
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < COUNT(after); i++)
                check_family(client, families[i]);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- rules ---- */

static void streams_under_a_schema_are_as_without_drafts(void **state)
{
        static const char *const forms[] = {
                "{\"schema\":{\"type\":\"object\",\"properties\":{"
                "\"answer\":{\"type\":\"string\",\"maxLength\":80},"
                "\"colours\":{\"type\":\"array\",\"items\":{\"enum\":[\"red\",\"green\"]},"
                "\"maxItems\":5},\"sure\":{\"type\":\"boolean\"}},"
                "\"required\":[\"answer\",\"sure\"],\"additionalProperties\":false}}",
                "{\"schema\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
                "\"maxLength\":30},\"minItems\":1,\"maxItems\":4}}",
        };
        struct seen seen;

        for (uint32_t i = 0; i < 12; i++) {
                struct smv_generate *ask = add_conversation(i, 100);

                draw(ask, i % 3 ? 0.8f : 0);
                ask->constraint = forms[i % COUNT(forms)];
        }
        answer_plainly(*state);
        seen = compare(*state, 6, "under a schema", SETTINGS(NULL));
        assert_true(seen.right > 0);
        seen = compare(*state, 6, "under a schema, two plans", SETTINGS("--pipeline-depth", "2"));
        assert_true(seen.right > 0);
}

/* Each row has the penalties of the tokens that were guessed before it. */
static void penalised_streams_are_as_without_drafts(void **state)
{
        struct seen seen;

        for (uint32_t i = 0; i < 12; i++) {
                struct smv_generate *ask = add_conversation(i, 100);

                draw(ask, i % 2 ? 0.8f : 0);
                ask->ignore_eos = 1;
                if (i % 3 != 0)
                        ask->repetition_penalty = 1.3f;
                if (i % 3 != 1) {
                        ask->frequency_penalty = 0.4f;
                        ask->presence_penalty = 0.2f;
                }
        }
        answer_plainly(*state);
        seen = compare(*state, 6, "penalised", SETTINGS(NULL));
        assert_true(seen.right && seen.right < seen.drafted);
}

/* ---- which models may guess ---- */

/*
 * Its guesses are right, so few are wrong: those of what repeats, which is little in answers this
 * hot.  This shows that the keys and values of the draft model are those of the tokens, where
 * streams share blocks, are preempted, and get blocks that others had.
 */
static void a_model_guesses_its_own_tokens_right(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct seen seen = { 0 };
        struct smv_client *client;

        add_lengths();
        for (uint32_t i = 0; i < 12; i++)
                add_conversation(i, 150)->n = 1 + i % DRAFT_STREAMS;
        for (uint32_t i = 0; i < chat_count; i++) {
                draw(&chats[i].ask, 3.0f);
                chats[i].ask.ignore_eos = 1;
        }
        answer_plainly(fixture);
        start_with(fixture, model_path("teaspoon"),
                   SETTINGS("--kv-bytes", "3M", "--preempt-target", "50"));
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        for (uint32_t i = 0; i < 3; i++)
                run_waves(client, 8, "teaspoon for itself", &seen);
        smv_close(client);
        say_seen("teaspoon for itself", &seen);
        assert_true(seen.right * 100 >= seen.drafted * 85);
        fixture_stop(fixture);
}

/* pinch, but for a context of 64 tokens. */
static void write_short_model(const struct daemon_fixture *fixture, char path[256])
{
        static const char key[] = "context_length";
        FILE *file = fopen(model_path("pinch"), "r");
        static char bytes[1 << 20];
        size_t size;
        char *at;

        assert_non_null(file);
        size = fread(bytes, 1, sizeof(bytes), file);
        assert_true(size < sizeof(bytes) && !fclose(file));
        at = memmem(bytes, size, key, strlen(key));
        assert_non_null(at);
        /* Behind the key is its type, and then the number. */
        memcpy(at + strlen(key) + 4, &(uint32_t){ 64 }, 4);
        snprintf(path, 256, "%s/short.gguf", fixture->directory);
        file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        assert_int_equal(fclose(file), 0);
}

/* Some streams are longer from the beginning, and some become so. */
static void streams_outgrow_the_context_of_the_draft_model(void **state)
{
        struct seen seen;
        char path[256];

        write_short_model(*state, path);
        add_lengths();
        answer_plainly(*state);
        seen = compare_with(*state, path, 4, "a short context", SETTINGS(NULL));
        assert_true(seen.right > 0);
}

static void the_shipped_draft_model_is_known_by_its_name(void **state)
{
        char folder[512];

        snprintf(folder, sizeof(folder), "%s/models", env_path("SOURCES"));
        setenv("SAMOVAR_MODELS", folder, 1);
        add_conversation(0, 48);
        answer_plainly(*state);
        assert_true(compare_with(*state, "pinch", 1, "by its name", SETTINGS(NULL)).drafted > 0);
        unsetenv("SAMOVAR_MODELS");
}

static void a_model_with_another_vocabulary_is_refused(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran =
                RUN(fixture, NULL, env_path("SAMOVARD"), "--model", model_path("teaspoon"),
                    "--socket", fixture->socket, "--config", "none", "--draft", "always",
                    "--draft-model", env_path("TOY_MODEL"));

        assert_int_not_equal(ran.status, 0);
        if (!strstr(ran.err, "draft_model"))
                fail_msg("samovard says nothing about draft_model: %s", ran.err);
        run_result_free(&ran);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                CHATS_TEST(guesses_at_greedy_chats_are_often_right),
                CHATS_TEST(sampled_streams_are_as_without_drafts),
                CHATS_TEST(streams_beside_each_other_are_as_without_drafts),
                CHATS_TEST(long_guesses_in_small_steps_change_nothing),
                CHATS_TEST(guesses_with_two_plans_in_flight_change_nothing),
                CHATS_TEST(guesses_that_must_pay_change_nothing),
                CHATS_TEST(guesses_are_the_same_cold_cached_and_beside_a_sibling),
                CHATS_TEST(forks_in_a_full_pool_are_as_without_drafts),
                CHATS_TEST(nothing_is_left_of_cancelled_streams),
                CHATS_TEST(forks_in_the_middle_are_as_without_drafts),
                CHATS_TEST(streams_under_a_schema_are_as_without_drafts),
                CHATS_TEST(penalised_streams_are_as_without_drafts),
                CHATS_TEST(a_model_guesses_its_own_tokens_right),
                CHATS_TEST(streams_outgrow_the_context_of_the_draft_model),
                CHATS_TEST(the_shipped_draft_model_is_known_by_its_name),
                CHATS_TEST(a_model_with_another_vocabulary_is_refused),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, read_conversations, NULL);
}
