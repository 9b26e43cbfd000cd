/*
 * Drafts change no answer.  A daemon without drafts answers random requests one by one.  Daemons
 * with drafts answer them again, several at a time: tokens, texts, log probabilities, rows and ENDs
 * must be the same.  Half of the requests stop at a text or a token that the answer is known to
 * have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/draft-requests.h"
#include "tests/e2e/raw-client.h"

#define WAVE 8u /* requests at a time */
#define MANY 160u
#define FEW  32u /* under a sanitizer */
#define SLOW 40u

/* The answers of a daemon without drafts. */
struct reference {
        struct draft_model model;
        uint32_t first, count;
        struct draft_stop *stops;
        struct answer (*answers)[DRAFT_STREAMS];
};

enum { TOY, TOY_SLOWLY, TEASPOON, REFERENCE_N };
static struct reference references[REFERENCE_N];

static void start(struct daemon_fixture *fixture, const struct draft_model *model,
                  const char *draft, const char *const more[6])
{
        START_DAEMON(fixture, "--model", model->path[0] ? model->path : env_path("TOY_MODEL"),
                     "--threads", "1", "--ctx", DRAFT_CONTEXT, "--draft", draft,
                     "--constraints-kept", "0", more[0], more[1], more[2], more[3], more[4],
                     more[5]);
}

/* ---- without drafts ---- */

/* Some bytes of the text, if they are plain ASCII. */
static void choose_text(const struct answer *answer, struct draft_stop *ret_stop)
{
        size_t bytes = 1 + random_below(6), at;

        if (answer->text_bytes < bytes)
                return;
        at = random_below((uint32_t)(answer->text_bytes - bytes) + 1);
        for (size_t i = 0; i < bytes; i++)
                if (answer->text[at + i] < ' ' || answer->text[at + i] > '~')
                        return;
        memcpy(ret_stop->text, answer->text + at, bytes);
}

static struct draft_stop choose_stop(const struct answer *answer)
{
        struct draft_stop stop = { .token = UINT32_MAX };

        if (!answer->count || random_below(2))
                return stop;
        if (random_below(2))
                choose_text(answer, &stop);
        else
                stop.token = answer->tokens[random_below(answer->count)];
        return stop;
}

static void answer_without_drafts(struct smv_client *client, struct reference *made, uint32_t i)
{
        static const struct draft_stop none = { .token = UINT32_MAX };
        uint32_t number = made->first + i;
        struct smv_generate ask = draft_request(&made->model, number, &none);
        struct answer whole = answer_alone(client, &ask, ask.sample_index);

        made->stops[i] = choose_stop(&whole);
        answer_clear(&whole);
        ask = draft_request(&made->model, number, &made->stops[i]);
        for (uint32_t j = 0; j < ask.n; j++)
                made->answers[i][j] = answer_alone(client, &ask, ask.sample_index + j);
}

static const struct reference *make_reference(struct daemon_fixture *fixture, int which)
{
        static const char *const plain[6] = { NULL }, *const slowly[6] = { "--backend", "ref" };
        struct reference *made = &references[which];
        struct smv_client *client;
        uint32_t stopped = 0;

        if (made->count)
                return made;
        made->model = (struct draft_model){ .least = 97, .tokens = 26 };
        if (which == TEASPOON) {
                made->model = (struct draft_model){ .least = 300, .tokens = 1500 };
                snprintf(made->model.path, sizeof(made->model.path), "%s/models/teaspoon-q8_0.gguf",
                         env_path("SOURCES"));
        }
        start(fixture, &made->model, "off", which == TOY_SLOWLY ? slowly : plain);
        made->first = random_below(1u << 30);
        made->count = which == TOY_SLOWLY ? SLOW : fixture->sanitized ? FEW : MANY;
        made->stops = calloc(made->count, sizeof(*made->stops));
        made->answers = calloc(made->count, sizeof(*made->answers));
        assert_true(made->stops && made->answers);
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < made->count; i++) {
                answer_without_drafts(client, made, i);
                stopped += made->answers[i][0].end.reason == SMV_END_STOP;
        }
        smv_close(client);
        assert_int_equal(fixture_status(fixture, "drafted"), 0);
        assert_int_equal(fixture_status(fixture, "drafts_right"), 0);
        fixture_stop(fixture);
        assert_true(stopped > made->count / 10);
        return made;
}

static int forget(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < REFERENCE_N; i++) {
                for (uint32_t j = 0; j < references[i].count; j++)
                        for (uint32_t k = 0; k < DRAFT_STREAMS; k++)
                                answer_clear(&references[i].answers[j][k]);
                free(references[i].stops);
                free(references[i].answers);
        }
        return 0;
}

/* ---- with drafts ---- */

struct live {
        uint32_t first, streams, left;
        struct answer answers[DRAFT_STREAMS];
};

static void begin(struct smv_client *client, const struct reference *made, uint32_t i,
                  struct live *live)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_generate ask = draft_request(&made->model, made->first + i, &made->stops[i]);

        *live = (struct live){ .streams = ask.n, .left = ask.n };
        if (!smv_generate(client, &ask, &live->first))
                return;
        smv_error(client, &problem);
        live->left = 0;
        for (uint32_t j = 0; j < live->streams; j++)
                live->answers[j].refused = (int)problem.code;
}

static void hear(struct live *lives, uint32_t count, const struct smv_event *event)
{
        for (uint32_t i = 0; i < count; i++) {
                if (!lives[i].left || event->stream - lives[i].first >= lives[i].streams)
                        continue;
                answer_add(&lives[i].answers[event->stream - lives[i].first], event);
                lives[i].left -= event->kind == SMV_EVENT_END;
                return;
        }
        fail_msg("%s", "an event of no stream");
}

static uint32_t streams_left(const struct live *lives, uint32_t count)
{
        uint32_t left = 0;

        for (uint32_t i = 0; i < count; i++)
                left += lives[i].left;
        return left;
}

/* Returns how often a stream of this wave was preempted. */
static uint32_t run_wave(struct smv_client *client, const struct reference *made, uint32_t from,
                         uint32_t count, const char *what)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct live lives[WAVE];
        uint32_t preempted = 0;

        for (uint32_t i = 0; i < count; i++)
                begin(client, made, from + i, &lives[i]);
        while (streams_left(lives, count)) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                hear(lives, count, &event);
        }
        for (uint32_t i = 0; i < count; i++)
                for (uint32_t j = 0; j < lives[i].streams; j++) {
                        assert_same_answer(&lives[i].answers[j], &made->answers[from + i][j], what,
                                           made->first + from + i);
                        preempted += lives[i].answers[j].end.preemptions;
                        answer_clear(&lives[i].answers[j]);
                }
        return preempted;
}

struct seen {
        uint64_t drafted, right;
        uint32_t preempted;
};

static struct seen all; /* of all daemons */

static void run_waves(struct daemon_fixture *fixture, const struct reference *made, uint32_t most,
                      const char *what, struct seen *seen)
{
        struct smv_client *clients[2] = { draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0),
                                          draft_connect(fixture, SMV_TRANSPORT_RING, 0) };

        for (uint32_t i = 0; i < made->count; i += most)
                seen->preempted += run_wave(clients[i / most % 2], made, i,
                                            made->count - i < most ? made->count - i : most, what);
        smv_close(clients[0]);
        smv_close(clients[1]);
}

/*
 * Waves of `most` requests.  How many tokens are guessed depends on the time that rows take, but a
 * number of rows that is not known yet is tried.  If the pool is `crowded`, all requests come again
 * until chance has let some be preempted.
 */
static struct seen compare(struct daemon_fixture *fixture, int which, uint32_t most, bool crowded,
                           const char *what, const char *const more[6])
{
        const struct reference *made = make_reference(fixture, which);
        struct seen seen = { 0 };

        start(fixture, &made->model, "auto", more);
        for (uint32_t i = 0; i < 10 && (!i || (crowded && !seen.preempted)); i++)
                run_waves(fixture, made, most, what, &seen);
        seen.drafted = fixture_status(fixture, "drafted");
        seen.right = fixture_status(fixture, "drafts_right");
        all.drafted += seen.drafted;
        all.right += seen.right;
        print_message("# %s: %u requests, %llu tokens guessed, %llu of them rightly, %llu drawn; "
                      "%u preempted\n",
                      what, made->count, (unsigned long long)seen.drafted,
                      (unsigned long long)seen.right,
                      (unsigned long long)fixture_status(fixture, "tokens_out"), seen.preempted);
        assert_true(seen.right <= seen.drafted && (seen.preempted || !crowded));
        fixture_stop(fixture);
        return seen;
}

#define SETTINGS(...) ((const char *const[6]){ __VA_ARGS__ })

static void single_streams_are_as_without_drafts(void **state)
{
        assert_true(compare(*state, TOY, 1, false, "one by one", SETTINGS(NULL)).drafted);
}

static void several_streams_are_as_without_drafts(void **state)
{
        assert_true(compare(*state, TOY, WAVE, false, "several at a time", SETTINGS(NULL)).drafted);
}

static void long_drafts_in_small_steps_change_nothing(void **state)
{
        assert_true(
                compare(*state, TOY, WAVE, false, "in small steps",
                        SETTINGS("--max-seqs", "4", "--step-tokens", "11", "--draft-tokens", "16"))
                        .drafted);
}

static void drafts_of_one_token_change_nothing(void **state)
{
        assert_true(
                compare(*state, TOY, 3, false, "one token each", SETTINGS("--draft-tokens", "1"))
                        .drafted);
}

static void drafts_with_two_plans_in_flight_change_nothing(void **state)
{
        compare(*state, TOY, WAVE, false, "two plans", SETTINGS("--pipeline-depth", "2"));
        compare(*state, TOY, 1, false, "two plans, one by one", SETTINGS("--pipeline-depth", "2"));
}

/* The longest requests need 16 blocks of the pool, and it has 20. */
#define SMALL_POOL "--kv-bytes", "327680", "--preempt-target", "50"

static void drafts_in_a_pool_that_runs_full_change_nothing(void **state)
{
        assert_true(compare(*state, TOY, WAVE, true, "a full pool", SETTINGS(SMALL_POOL)).drafted);
}

static void drafts_in_a_full_pool_with_two_plans_change_nothing(void **state)
{
        compare(*state, TOY, WAVE, true, "a full pool and two plans",
                SETTINGS(SMALL_POOL, "--pipeline-depth", "2"));
}

static void drafts_of_one_slot_change_nothing(void **state)
{
        compare(*state, TOY, 4, false, "one slot",
                SETTINGS("--max-seqs", "1", "--step-tokens", "16", "--draft-tokens", "16"));
}

static void drafts_on_the_reference_backend_change_nothing(void **state)
{
        assert_true(
                compare(*state, TOY_SLOWLY, 2, false, "ref", SETTINGS("--backend", "ref")).drafted);
}

static void single_streams_of_teaspoon_are_as_without_drafts(void **state)
{
        assert_true(compare(*state, TEASPOON, 1, false, "teaspoon", SETTINGS(NULL)).drafted);
}

static void several_streams_of_teaspoon_are_as_without_drafts(void **state)
{
        compare(*state, TEASPOON, WAVE, false, "teaspoon, several at a time",
                SETTINGS("--draft-tokens", "16"));
        assert_true(all.right && all.right < all.drafted);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(single_streams_are_as_without_drafts),
                DAEMON_TEST(several_streams_are_as_without_drafts),
                DAEMON_TEST(long_drafts_in_small_steps_change_nothing),
                DAEMON_TEST(drafts_of_one_token_change_nothing),
                DAEMON_TEST(drafts_with_two_plans_in_flight_change_nothing),
                DAEMON_TEST(drafts_in_a_pool_that_runs_full_change_nothing),
                DAEMON_TEST(drafts_in_a_full_pool_with_two_plans_change_nothing),
                DAEMON_TEST(drafts_of_one_slot_change_nothing),
                DAEMON_TEST(drafts_on_the_reference_backend_change_nothing),
                DAEMON_TEST(single_streams_of_teaspoon_are_as_without_drafts),
                DAEMON_TEST(several_streams_of_teaspoon_are_as_without_drafts),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", "SOURCES", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, forget);
}
