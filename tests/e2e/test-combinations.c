/*
 * Combinations of features.  Two thousand random requests are answered one by one by an idle
 * daemon.  Then daemons that step differently answer them again, several at a time, with siblings
 * and forks, detached and attached again, and preempted where the pool is small.  Some ask their
 * client, whose answers leave the draws as they are.  All that a client can see must be the same.
 * A combination that differs is made smaller before it is reported.
 *
 * COMBINATIONS=FROM runs others than the usual ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/combination-live.h"
#include "tests/e2e/combination.h"
#include "tests/e2e/daemon-fixture.h"
#include "tests/e2e/honest-client.h"

#define WAVE 12u /* requests at a time */
#define MANY 500u
#define FEW  100u /* under a sanitizer */

static void start_teaspoon(struct daemon_fixture *fixture, const char *const *more)
{
        char model[256];

        combination_write_model(fixture->directory, model);
        START_DAEMON(fixture, "--model", model, "--threads", "1", MANY_CONNECTS,
                     "--constraints-kept", "0", "--ctx", "512", "--whole-row-streams", "12",
                     more[0], more[1], more[2], more[3], more[4], more[5], more[6], more[7]);
}

/* Whether a combination differs although nothing runs beside it. */
static bool differs_alone(struct smv_client *client, const struct combination *of, char *why,
                          size_t bytes)
{
        struct outcome *wholes[COMBINATION_N] = { NULL };
        struct live live = { .of = *of };
        bool same;

        for (uint32_t i = 0; i <= of->siblings; i++)
                wholes[i] = live_alone(client, of, LIVE_SAMPLE + i);
        live_run(client, &live, 1);
        same = live_is_same(wholes, &live, why, bytes);
        live_forget(&live);
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
        client = live_connect(fixture, SMV_TRANSPORT_RING, WAVE);
        for (uint32_t i = 0; i < made.count; i++) {
                struct combination of;

                combination_draw(made.from + i, &of);
                for (uint32_t j = 0; j <= of.siblings; j++)
                        made.wholes[i][j] = live_alone(client, &of, LIVE_SAMPLE + j);
                live_seen.refused += made.wholes[i][0]->refused != 0;
                live_seen.constrained += of.constraint && !made.wholes[i][0]->refused;
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
        struct smv_client *clients[2] = { live_connect(fixture, SMV_TRANSPORT_RING, WAVE),
                                          live_connect(fixture, SMV_TRANSPORT_SOCKET, WAVE) };
        struct live lives[WAVE] = { 0 };
        char why[1024];

        for (uint32_t i = 0; i < made->count; i += WAVE) {
                uint32_t some = made->count - i < WAVE ? made->count - i : WAVE;
                struct smv_client *client = clients[i / WAVE % 2];

                for (uint32_t j = 0; j < some; j++)
                        combination_draw(made->from + i + j, &lives[j].of);
                live_run(client, lives, some);
                for (uint32_t j = 0; j < some; j++)
                        if (!live_is_same(made->wholes[i + j], &lives[j], why, sizeof(why)))
                                report(client, lives[j].of, why, sizeof(why));
                for (uint32_t j = 0; j < some; j++)
                        live_forget(&lives[j]);
        }
        smv_close(clients[0]);
        smv_close(clients[1]);
}

static void check(struct daemon_fixture *fixture, uint32_t group, const char *const settings[8])
{
        struct reference made;

        memset(&live_seen, 0, sizeof(live_seen));
        made = make_reference(fixture, group);
        start_teaspoon(fixture, settings);
        run_waves(fixture, &made);
        fixture_stop(fixture);
        print_message(
                "%llu refused, %llu constrained, %llu calls, %llu forks, %llu attached, "
                "%llu preempted, %llu questions, %llu without a token\n",
                (unsigned long long)live_seen.refused, (unsigned long long)live_seen.constrained,
                (unsigned long long)live_seen.calls, (unsigned long long)live_seen.forks,
                (unsigned long long)live_seen.attached, (unsigned long long)live_seen.preempted,
                (unsigned long long)live_seen.questions, (unsigned long long)live_seen.no_token);
        assert_true(live_seen.refused < made.count / 4);
        assert_true(live_seen.constrained > made.count / 4);
        assert_true(live_seen.forks && live_seen.attached && live_seen.questions);
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
        assert_true(live_seen.preempted);
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
