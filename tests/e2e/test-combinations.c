/*
 * Combinations of features.  Two thousand random requests are answered one by one by an idle
 * daemon.  Then daemons that step differently answer them again, several at a time, with siblings
 * and forks, detached and attached again, and preempted where the pool is small.  Some ask their
 * client, whose answers leave the draws as they are.  All that a client can see must be the same.
 * A combination that differs is made smaller before it is reported.
 *
 * COMBINATIONS=FROM runs others than the usual ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/combination.h"
#include "tests/e2e/daemon-fixture.h"
#include "tests/e2e/honest-client.h"

#define WAVE   12u /* requests at a time */
#define MANY   500u
#define FEW    100u /* under a sanitizer */
#define SAMPLE 1u   /* the sample index of the first sibling */

/* Counts that show whether a daemon was as busy as it was meant to be. */
static struct {
        uint64_t refused, preempted, forks, attached, constrained, calls, questions, no_token;
} seen;

/* A combination that runs. */
struct live {
        struct combination of;
        uint32_t streams, first;
        uint32_t fork; /* 0: there is none */
        struct outcome *siblings[COMBINATION_N], *forked;
        uint32_t left; /* streams that have not ended */
        uint32_t sequence;
        uint64_t resume_id; /* 0: not resumable */
        bool detached;
        bool is_asking; /* its question has no answer yet */
};

static void start_teaspoon(struct daemon_fixture *fixture, const char *const *more)
{
        char model[256];

        combination_write_model(fixture->directory, model);
        START_DAEMON(fixture, "--model", model, "--threads", "1", MANY_CONNECTS,
                     "--constraints-kept", "0", "--ctx", "512", "--whole-row-streams", "12",
                     more[0], more[1], more[2], more[3], more[4], more[5], more[6], more[7]);
}

static struct smv_client *connect_by(const struct daemon_fixture *fixture,
                                     enum smv_transport transport)
{
        const bool ring = transport == SMV_TRANSPORT_RING;
        const struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                        .transport = transport, .ask_slots = ring ? WAVE : 0,
                                        .whole_rows = ring };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

static struct outcome *new_outcome(const struct combination *of)
{
        struct outcome *outcome = calloc(1, sizeof(*outcome));

        assert_non_null(outcome);
        /* A whole row comes with the entry of its token, even if no rows were asked for. */
        outcome->shows_rows = of->rows;
        return outcome;
}

static int code_of(struct smv_client *client, int r)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        assert_int_equal(r, -EREMOTEIO);
        smv_error(client, &problem);
        return (int)problem.code;
}

/* ---- a combination in company ---- */

static void begin(struct smv_client *client, struct live *live)
{
        bool ring = smv_transport_used(client) == SMV_TRANSPORT_RING;
        struct smv_generate ask =
                ring ? combination_asking_request(&live->of, 1 + live->of.siblings, SAMPLE)
                     : combination_request(&live->of, 1 + live->of.siblings, SAMPLE);
        int r;

        live->streams = ask.n;
        for (uint32_t i = 0; i < live->streams; i++)
                live->siblings[i] = new_outcome(&live->of);
        ask.keep_ms = live->of.detach_at ? 60000 : 0;
        ask.priority = live->of.number % 3;
        r = smv_generate(client, &ask, &live->first);
        live->left = r ? 0 : live->streams;
        if (!r && ask.keep_ms)
                live->resume_id = smv_resume_id(client, live->first);
        for (uint32_t i = 0; r && i < live->streams; i++)
                live->siblings[i]->refused = code_of(client, r);
}

/* It is no fault if the stream has ended just now. */
static void fork_it(struct smv_client *client, struct live *live)
{
        const struct smv_fork options = { SMV_SIZE(smv_fork), .count = 1, .sample_index = SAMPLE };
        int r = smv_fork(client, live->first, &options, &live->fork);

        if (r) {
                assert_int_equal(code_of(client, r), SMV_NO_STREAM);
                live->fork = 0;
                return;
        }
        live->forked = new_outcome(&live->of);
        live->left++;
        seen.forks++;
}

static void attach_again(struct smv_client *client, struct live *live)
{
        live->detached = true;
        assert_int_equal(smv_detach(client, live->first), 0);
        assert_int_equal(smv_attach(client, live->resume_id, live->sequence + 1, &live->first), 0);
        seen.attached++;
}

static void look(struct smv_client *client, struct live *live)
{
        const struct outcome *first = live->siblings[0];

        if (first->end.reason)
                return;
        if (live->of.fork_at && first->count >= live->of.fork_at && !live->forked)
                fork_it(client, live);
        if (live->of.detach_at && first->count >= live->of.detach_at && !live->detached)
                attach_again(client, live);
}

/* True if the event is of a stream of this combination. */
static bool hear(struct smv_client *client, struct live *live, const struct smv_event *event)
{
        struct outcome *outcome = NULL;

        if (!live->left)
                return false;
        if (live->fork && event->stream == live->fork)
                outcome = live->forked;
        else if (event->stream - live->first < live->streams)
                outcome = live->siblings[event->stream - live->first];
        if (!outcome)
                return false;
        outcome_add(outcome, event);
        live->is_asking = live->is_asking || event->kind == SMV_EVENT_ASK;
        if (event->kind == SMV_EVENT_END) {
                live->left--;
                seen.questions += event->asked;
                seen.no_token += event->code == SMV_NO_TOKEN;
                seen.preempted += event->preemptions;
                seen.calls += event->calls;
        }
        if (outcome == live->siblings[0]) {
                live->sequence = event->sequence;
                look(client, live);
        }
        return true;
}

/* Answers one of the open questions, if there is one. */
static bool answer_one(struct smv_client *client, struct live *lives, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                if (!lives[i].is_asking)
                        continue;
                lives[i].is_asking = false;
                assert_int_equal(combination_answer(&lives[i].of, client, lives[i].first), 0);
                return true;
        }
        return false;
}

/* Questions wait until nothing else can be read, so some of them wait for long. */
static void next_event(struct smv_client *client, struct live *lives, uint32_t count,
                       struct smv_event *ret_event)
{
        int r;

        while (!(r = smv_next(client, ret_event, 0)))
                if (!answer_one(client, lives, count)) {
                        r = smv_next(client, ret_event, TIMEOUT_MS);
                        break;
                }
        assert_int_equal(r, 1);
}

static void run_all(struct smv_client *client, struct live *lives, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t left = 0;

        for (uint32_t i = 0; i < count; i++)
                begin(client, &lives[i]);
        do {
                uint32_t i = 0;

                left = 0;
                for (uint32_t j = 0; j < count; j++)
                        left += lives[j].left;
                if (!left)
                        break;
                next_event(client, lives, count, &event);
                while (i < count && !hear(client, &lives[i], &event))
                        i++;
                assert_true(i < count);
        } while (left);
        for (uint32_t i = 0; i < count; i++)
                if (lives[i].resume_id)
                        assert_int_equal(smv_drop(client, lives[i].resume_id), 0);
}

static void forget(struct live *live)
{
        for (uint32_t i = 0; i < live->streams; i++)
                free(live->siblings[i]);
        free(live->forked);
        *live = (struct live){ 0 };
}

/* ---- alone ---- */

/* One stream of it, with nothing beside it. */
static struct outcome *alone(struct smv_client *client, const struct combination *of,
                             uint32_t sample)
{
        struct live live = { .of = *of };
        struct smv_generate ask = combination_request(of, 1, sample);
        struct outcome *outcome = new_outcome(of);
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r = smv_generate(client, &ask, &live.first);

        if (r)
                outcome->refused = code_of(client, r);
        while (!r && !outcome->end.reason) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                outcome_add(outcome, &event);
        }
        return outcome;
}

/* ---- judging ---- */

static bool is_same(struct outcome *const wholes[COMBINATION_N], const struct live *live, char *why,
                    size_t bytes)
{
        for (uint32_t i = 0; i < live->streams; i++)
                if (!outcome_same(wholes[i], live->siblings[i], false, why, bytes))
                        return false;
        /* The parent may end while its fork is on its way. */
        if (!live->forked || live->forked->end.code == SMV_NO_STREAM)
                return true;
        return outcome_same(wholes[0], live->forked, true, why, bytes);
}

/* Whether a combination differs although nothing runs beside it. */
static bool differs_alone(struct smv_client *client, const struct combination *of, char *why,
                          size_t bytes)
{
        struct outcome *wholes[COMBINATION_N] = { NULL };
        struct live live = { .of = *of };
        bool same;

        for (uint32_t i = 0; i <= of->siblings; i++)
                wholes[i] = alone(client, of, SAMPLE + i);
        run_all(client, &live, 1);
        same = is_same(wholes, &live, why, bytes);
        forget(&live);
        for (uint32_t i = 0; i < COMBINATION_N; i++)
                free(wholes[i]);
        return !same;
}

/* Switches off what does not matter, and fails with what is left. */
static void report(struct smv_client *client, struct combination of, char *why, size_t bytes)
{
        char what[512], less[1024];
        bool by_itself = differs_alone(client, &of, less, sizeof(less));

        for (uint32_t i = 0; by_itself && i < COMBINATION_FEATURES; i++) {
                struct combination smaller = of;

                if (combination_without(&smaller, i) &&
                    differs_alone(client, &smaller, less, sizeof(less))) {
                        of = smaller;
                        snprintf(why, bytes, "%s", less);
                }
        }
        combination_describe(&of, what, sizeof(what));
        fail_msg("%s (%s): %s", what, by_itself ? "alone" : "only among others", why);
}

/* ---- the tests ---- */

static uint32_t first_number(uint32_t group)
{
        const char *from = getenv("COMBINATIONS");

        return (from ? (uint32_t)strtoul(from, NULL, 10) : 1) + group * MANY;
}

/* The outcomes of combinations alone. */
struct reference {
        uint32_t from, count;
        struct outcome *(*wholes)[COMBINATION_N];
};

/* They come from a daemon that steps as by default. */
static struct reference make_reference(struct daemon_fixture *fixture, uint32_t group)
{
        static const char *const none[8] = { NULL };
        struct reference made = { .from = first_number(group) };
        struct smv_client *client;

        start_teaspoon(fixture, none);
        made.count = fixture->sanitized ? FEW : MANY;
        made.wholes = calloc(made.count, sizeof(*made.wholes));
        assert_non_null(made.wholes);
        client = connect_by(fixture, SMV_TRANSPORT_RING);
        for (uint32_t i = 0; i < made.count; i++) {
                struct combination of;

                combination_draw(made.from + i, &of);
                for (uint32_t j = 0; j <= of.siblings; j++)
                        made.wholes[i][j] = alone(client, &of, SAMPLE + j);
                seen.refused += made.wholes[i][0]->refused != 0;
                seen.constrained += of.constraint && !made.wholes[i][0]->refused;
        }
        smv_close(client);
        fixture_stop(fixture);
        return made;
}

static void free_reference(struct reference *made)
{
        for (uint32_t i = 0; i < made->count; i++)
                for (uint32_t j = 0; j < COMBINATION_N; j++)
                        free(made->wholes[i][j]);
        free(made->wholes);
}

static void run_waves(struct daemon_fixture *fixture, const struct reference *made)
{
        struct smv_client *clients[2] = { connect_by(fixture, SMV_TRANSPORT_RING),
                                          connect_by(fixture, SMV_TRANSPORT_SOCKET) };
        struct live lives[WAVE] = { 0 };
        char why[1024];

        for (uint32_t i = 0; i < made->count; i += WAVE) {
                uint32_t some = made->count - i < WAVE ? made->count - i : WAVE;
                struct smv_client *client = clients[i / WAVE % 2];

                for (uint32_t j = 0; j < some; j++)
                        combination_draw(made->from + i + j, &lives[j].of);
                run_all(client, lives, some);
                for (uint32_t j = 0; j < some; j++)
                        if (!is_same(made->wholes[i + j], &lives[j], why, sizeof(why)))
                                report(client, lives[j].of, why, sizeof(why));
                for (uint32_t j = 0; j < some; j++)
                        forget(&lives[j]);
        }
        smv_close(clients[0]);
        smv_close(clients[1]);
}

static void check(struct daemon_fixture *fixture, uint32_t group, const char *const settings[8])
{
        struct reference made;

        memset(&seen, 0, sizeof(seen));
        made = make_reference(fixture, group);
        start_teaspoon(fixture, settings);
        run_waves(fixture, &made);
        fixture_stop(fixture);
        print_message("%llu refused, %llu constrained, %llu calls, %llu forks, %llu attached, "
                      "%llu preempted, %llu questions, %llu without a token\n",
                      (unsigned long long)seen.refused, (unsigned long long)seen.constrained,
                      (unsigned long long)seen.calls, (unsigned long long)seen.forks,
                      (unsigned long long)seen.attached, (unsigned long long)seen.preempted,
                      (unsigned long long)seen.questions, (unsigned long long)seen.no_token);
        assert_true(seen.refused < made.count / 4);
        assert_true(seen.constrained > made.count / 4);
        assert_true(seen.forks && seen.attached && seen.questions);
        free_reference(&made);
}

static void company_changes_nothing(void **state)
{
        static const char *const settings[8] = { "--max-seqs", "32" };

        check(*state, 0, settings);
}

static void short_steps_and_two_plans_change_nothing(void **state)
{
        static const char *const settings[8] = { "--max-seqs",       "8", "--step-tokens", "16",
                                                 "--pipeline-depth", "2" };

        check(*state, 1, settings);
}

static void preemption_changes_nothing(void **state)
{
        static const char *const settings[8] = { "--max-seqs", "12",   "--preempt-target", "50",
                                                 "--kv-bytes", "768K", "--step-tokens",    "24" };

        check(*state, 2, settings);
        assert_true(seen.preempted);
}

static void few_slots_and_a_small_pool_change_nothing(void **state)
{
        static const char *const settings[8] = { "--max-seqs",       "4", "--step-tokens", "4",
                                                 "--pipeline-depth", "2", "--kv-bytes",    "768K" };

        check(*state, 3, settings);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(company_changes_nothing),
                DAEMON_TEST(short_steps_and_two_plans_change_nothing),
                DAEMON_TEST(preemption_changes_nothing),
                DAEMON_TEST(few_slots_and_a_small_pool_change_nothing),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
