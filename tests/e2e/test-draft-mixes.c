/*
 * Mixes of drafts with all other features.  A daemon without drafts answers random combinations one
 * by one (combination.h).  Then daemons that give each guess its row, and one that chooses, answer
 * them again, several at a time, with predictions that are right, partly right or wrong, with
 * siblings and forks, detached and attached again, and preempted where the pool is small.  All that
 * a client can see must be the same.  A mix that differs is made smaller before it is reported.
 *
 * DRAFT_MIXES=COUNT runs so many; 2000 take minutes.  SMV_TEST_SEED says which ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/combination-live.h"
#include "tests/e2e/honest-client.h"

#define WAVE   12u  /* mixes at a time */
#define MIXES  400u /* of all daemons, unless DRAFT_MIXES says how many */
#define FEW    100u /* ... under a sanitizer */
#define GROUPS 8u

enum expectation { NOTHING, RIGHT, CUT, EDITED, SHIFTED, WRONG, TWICE, EXPECTATIONS };
static const char *const expectations[] = { "none",    "right", "cut",  "edited",
                                            "shifted", "wrong", "twice" };

struct mix {
        struct combination of;
        enum expectation prediction;
        struct outcome *wholes[COMBINATION_N]; /* without drafts */
        char text[2 * COMBINATION_TEXT];
        size_t text_bytes;
};

static uint32_t first_number; /* of the mixes: a multiple of MIX_KINDS */

#define MIX_KINDS 4u /* only those of the first have all features */

/* Most mixes have none of the features that leave no draft. */
static void draw_mix(uint32_t number, struct mix *mix)
{
        struct combination *of = &mix->of;

        combination_draw(number, of);
        /* Half of all right: what is guessed rightly makes long runs. */
        mix->prediction =
                number / MIX_KINDS % 3 ? (enum expectation)(number / 12 % EXPECTATIONS) : RIGHT;
        if (number % MIX_KINDS == 0)
                return;
        of->constraint = of->ask = of->whole_row = of->reasoning = 0;
        of->cuts = of->cuts == 6 ? 0 : of->cuts;
        of->choice = of->choice < 4 ? 0 : of->choice;
        if (number % MIX_KINDS == 1)
                of->temperature = 0;
        if (number % MIX_KINDS != 2)
                return;
        of->stops = 0;
        of->max_tokens = COMBINATION_TOKENS;
        of->min_tokens = 50; /* else teaspoon soon ends its answers */
}

/* ---- predictions ---- */

static bool is_plain(const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (text[i] & 0x80)
                        return false;
        return true;
}

static void edit(struct mix *mix, const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++) {
                if (i % 61 == 40)
                        i += 5;
                if (i % 61 == 20)
                        mix->text_bytes += (size_t)sprintf(mix->text + mix->text_bytes, " and so");
                if (i < bytes)
                        mix->text[mix->text_bytes++] = text[i];
        }
}

static void add_text(struct mix *mix, const char *text, size_t bytes)
{
        memcpy(mix->text + mix->text_bytes, text, bytes);
        mix->text_bytes += bytes;
}

/* An answer may have bytes that are no UTF-8, which a prediction may not: such ones have none. */
static void predict(struct mix *mix)
{
        static const char other[] = "Once upon a time there was a kettle that sang, and 1 2 3 4 5.";
        const char *text = mix->wholes[0]->text;
        size_t bytes = mix->wholes[0]->text_bytes;

        mix->text_bytes = 0;
        if (mix->wholes[0]->refused || mix->prediction == NOTHING || !is_plain(text, bytes))
                return;
        if (mix->prediction == WRONG || !bytes)
                add_text(mix, other, strlen(other));
        else if (mix->prediction == RIGHT)
                add_text(mix, text, bytes);
        else if (mix->prediction == CUT)
                add_text(mix, text, 1 + bytes / 2);
        else if (mix->prediction == EDITED)
                edit(mix, text, bytes);
        else if (mix->prediction == SHIFTED)
                add_text(mix, text + bytes / 3, bytes - bytes / 3);
        else
                add_text(mix, text, bytes / 2);
        if (mix->prediction == TWICE)
                add_text(mix, text, bytes);
}

/* ---- without drafts ---- */

static void answer_plainly(struct smv_client *client, struct mix *mix)
{
        for (uint32_t i = 0; i < COMBINATION_N; i++) {
                free(mix->wholes[i]);
                mix->wholes[i] = NULL;
        }
        for (uint32_t i = 0; i <= mix->of.siblings; i++)
                mix->wholes[i] = live_alone(client, &mix->of, LIVE_SAMPLE + i);
        predict(mix);
}

static void forget_mix(struct mix *mix)
{
        for (uint32_t i = 0; i < COMBINATION_N; i++)
                free(mix->wholes[i]);
}

/* Without a limit of the time of steps, in which guesses give way to prompts. */
static void start(struct daemon_fixture *fixture, const char *draft, const char *const more[10])
{
        char model[256];

        combination_write_model(fixture->directory, model);
        START_DAEMON(fixture, "--model", model, "--threads", "1", MANY_CONNECTS,
                     "--constraints-kept", "0", "--ctx", "512", "--whole-row-streams", "12",
                     "--gap-ms", "0", "--draft", draft, more[0], more[1], more[2], more[3], more[4],
                     more[5], more[6], more[7], more[8], more[9]);
}

/* `backend`: "--backend" "ref", or nothing. */
static void start_plain(struct daemon_fixture *fixture, const char *backend)
{
        const char *const more[10] = { backend ? "--backend" : NULL, backend };

        start(fixture, "off", more);
}

/* ---- a mix that differs ---- */

struct shrink {
        struct smv_client *plain, *drafts;
        char why[1024];
};

/* Whether it differs with nothing beside it. */
static bool differs(struct shrink *shrink, struct mix *mix)
{
        struct live live = { .of = mix->of };
        bool same;

        answer_plainly(shrink->plain, mix);
        live.prediction = mix->text;
        live.prediction_bytes = mix->text_bytes;
        live_run(shrink->drafts, &live, 1);
        same = live_is_same(mix->wholes, &live, shrink->why, sizeof(shrink->why));
        live_forget(&live);
        return !same;
}

/* Keeps what is left without one feature, if that differs, too. */
static bool try_without(struct shrink *shrink, struct mix *mix, uint32_t feature)
{
        struct mix *smaller = calloc(1, sizeof(*smaller));
        bool kept = false;

        assert_non_null(smaller);
        smaller->of = mix->of;
        smaller->prediction = feature < COMBINATION_FEATURES ? mix->prediction : NOTHING;
        if (feature == COMBINATION_FEATURES || combination_without(&smaller->of, feature))
                kept = differs(shrink, smaller);
        if (kept) {
                mix->of = smaller->of;
                mix->prediction = smaller->prediction;
        }
        forget_mix(smaller);
        free(smaller);
        return kept;
}

static void report(struct daemon_fixture *fixture, const struct mix *differing, const char *backend,
                   const char *why)
{
        struct mix *mix = calloc(1, sizeof(*mix));
        struct shrink *shrink = calloc(1, sizeof(*shrink));
        void *plain = NULL;
        char what[512];
        bool by_itself;

        assert_true(mix && shrink);
        mix->of = differing->of;
        mix->prediction = differing->prediction;
        assert_int_equal(fixture_set_up(&plain), 0);
        start_plain(plain, backend);
        shrink->plain = live_connect(plain, SMV_TRANSPORT_RING, WAVE);
        shrink->drafts = live_connect(fixture, SMV_TRANSPORT_RING, WAVE);
        by_itself = differs(shrink, mix);
        for (uint32_t i = 0; by_itself && i <= COMBINATION_FEATURES; i++)
                try_without(shrink, mix, i);
        by_itself = by_itself && differs(shrink, mix);
        combination_describe(&mix->of, what, sizeof(what));
        fixture_tear_down(&plain);
        fail_msg("%s prediction %s (%s): %s", what, expectations[mix->prediction],
                 by_itself ? "alone" : "only among others", by_itself ? shrink->why : why);
}

/* ---- the tests ---- */

/* How many mixes one daemon answers. */
static uint32_t mixes_of(const struct daemon_fixture *fixture)
{
        const char *count = getenv("DRAFT_MIXES");
        uint32_t all = fixture->sanitized ? FEW : MIXES;

        if (count)
                all = (uint32_t)strtoul(count, NULL, 10);
        return 1 + (all - 1) / GROUPS;
}

static void run_waves(struct daemon_fixture *fixture, struct mix *mixes, uint32_t count,
                      const char *backend)
{
        struct smv_client *clients[2] = { live_connect(fixture, SMV_TRANSPORT_RING, WAVE),
                                          live_connect(fixture, SMV_TRANSPORT_SOCKET, WAVE) };
        struct live lives[WAVE] = { 0 };
        char why[1024];

        for (uint32_t i = 0; i < count; i += WAVE) {
                uint32_t some = count - i < WAVE ? count - i : WAVE;

                for (uint32_t j = 0; j < some; j++) {
                        lives[j].of = mixes[i + j].of;
                        lives[j].prediction = mixes[i + j].text;
                        lives[j].prediction_bytes = mixes[i + j].text_bytes;
                }
                live_run(clients[i / WAVE % 2], lives, some);
                for (uint32_t j = 0; j < some; j++)
                        if (!live_is_same(mixes[i + j].wholes, &lives[j], why, sizeof(why)))
                                report(fixture, &mixes[i + j], backend, why);
                for (uint32_t j = 0; j < some; j++)
                        live_forget(&lives[j]);
        }
        smv_close(clients[0]);
        smv_close(clients[1]);
}

static void say_seen(uint32_t count)
{
        print_message(
                "# %u mixes: %llu refused, %llu constrained, %llu calls, %llu forks, %llu "
                "attached, %llu preempted, %llu questions; %llu of %llu guesses right, and "
                "%llu of %llu of predictions\n",
                count, (unsigned long long)live_seen.refused,
                (unsigned long long)live_seen.constrained, (unsigned long long)live_seen.calls,
                (unsigned long long)live_seen.forks, (unsigned long long)live_seen.attached,
                (unsigned long long)live_seen.preempted, (unsigned long long)live_seen.questions,
                (unsigned long long)live_seen.right, (unsigned long long)live_seen.drafted,
                (unsigned long long)live_seen.predictions_right,
                (unsigned long long)live_seen.predicted);
}

/* How a daemon with drafts is started, and which mixes it answers. */
struct variant {
        uint32_t group;
        uint32_t part;     /* it has one of so many mixes; 0: all of them */
        uint32_t step;     /* between the numbers of mixes; 0: 1 */
        bool is_crowded;   /* all are asked again until a stream was preempted, ten times at most */
        const char *draft; /* NULL: always */
        const char *backend; /* NULL: the usual one */
        const char *settings[10];
};

static void assert_guesses(uint32_t count)
{
        /* Fewer may happen to be all of one kind. */
        if (count < 20)
                return;
        assert_true(live_seen.refused <= count / 3);
        assert_true(live_seen.right && live_seen.right < live_seen.drafted);
}

static void compare(struct daemon_fixture *fixture, const struct variant *variant)
{
        uint32_t first = first_number + variant->group * 100000;
        const char *backend = variant->backend;
        struct smv_client *client;
        struct mix *mixes;
        uint32_t count;

        memset(&live_seen, 0, sizeof(live_seen));
        start_plain(fixture, backend);
        count = variant->part ? 1 + (mixes_of(fixture) - 1) / variant->part : mixes_of(fixture);
        mixes = calloc(count, sizeof(*mixes));
        assert_non_null(mixes);
        client = live_connect(fixture, SMV_TRANSPORT_RING, WAVE);
        for (uint32_t i = 0; i < count; i++) {
                draw_mix(first + i * (variant->step ? variant->step : 1), &mixes[i]);
                answer_plainly(client, &mixes[i]);
                live_seen.refused += mixes[i].wholes[0]->refused != 0;
                live_seen.constrained += mixes[i].of.constraint && !mixes[i].wholes[0]->refused;
        }
        smv_close(client);
        assert_int_equal(fixture_status(fixture, "drafted"), 0);
        fixture_stop(fixture);
        start(fixture, variant->draft ? variant->draft : "always", variant->settings);
        run_waves(fixture, mixes, count, backend);
        for (uint32_t i = 1; i < 10 && variant->is_crowded && !live_seen.preempted; i++)
                run_waves(fixture, mixes, count, backend);
        fixture_stop(fixture);
        say_seen(count);
        if (!variant->draft)
                assert_guesses(count);
        for (uint32_t i = 0; i < count; i++)
                forget_mix(&mixes[i]);
        free(mixes);
}

static void drafts_in_company_change_nothing(void **state)
{
        compare(*state, &(struct variant){ .group = 0, .settings = { "--max-seqs", "32" } });
}

static void long_drafts_with_two_plans_in_short_steps_change_nothing(void **state)
{
        compare(*state, &(struct variant){ .group = 1,
                                           .settings = { "--max-seqs", "8", "--step-tokens", "24",
                                                         "--pipeline-depth", "2", "--draft-tokens",
                                                         "16" } });
}

/* Few mixes may not fill the pool. */
static void drafts_of_streams_that_are_preempted_change_nothing(void **state)
{
        compare(*state,
                &(struct variant){ .group = 2,
                                   .is_crowded = true,
                                   .settings = { "--max-seqs", "12", "--preempt-target", "50",
                                                 "--kv-bytes", "768K", "--step-tokens", "40" } });
        assert_true(live_seen.preempted || mixes_of(*state) < 50);
}

static void drafts_of_one_token_change_nothing(void **state)
{
        compare(*state, &(struct variant){ .group = 3,
                                           .settings = { "--max-seqs", "4", "--step-tokens", "6",
                                                         "--pipeline-depth", "2", "--kv-bytes",
                                                         "768K", "--draft-tokens", "1" } });
}

static void drafts_of_one_stream_at_a_time_change_nothing(void **state)
{
        compare(*state,
                &(struct variant){ .group = 4,
                                   .settings = { "--max-seqs", "1", "--draft-tokens", "16" } });
}

/* Its arithmetic is slow, so it has a part of the mixes. */
static void drafts_on_the_reference_backend_change_nothing(void **state)
{
        compare(*state,
                &(struct variant){ .group = 5,
                                   .part = 8,
                                   .backend = "ref",
                                   .settings = { "--backend", "ref", "--max-seqs", "16" } });
}

/* Streams that are preempted, and blocks that others write meanwhile, in the model that guesses. */
static void guesses_of_a_model_change_nothing(void **state)
{
        char model[256];

        snprintf(model, sizeof(model), "%s/models/pinch-q8_0.gguf", env_path("SOURCES"));
        compare(*state, &(struct variant){ .group = 6,
                                           .settings = { "--max-seqs", "12", "--preempt-target",
                                                         "50", "--kv-bytes", "960K", "--draft-pool",
                                                         "0", "--draft-model", model } });
}

/*
 * Guesses are passed over, or cut to what is worth a row, and formed again by constraints, which
 * half of these mixes have.  Streams that are preempted keep their guesses.
 */
static void drafts_that_must_pay_change_nothing(void **state)
{
        compare(*state,
                &(struct variant){ .group = 7,
                                   .step = MIX_KINDS,
                                   .draft = "auto",
                                   .settings = { "--max-seqs", "12", "--preempt-target", "50",
                                                 "--kv-bytes", "640K", "--step-tokens", "40" } });
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(drafts_in_company_change_nothing),
                DAEMON_TEST(long_drafts_with_two_plans_in_short_steps_change_nothing),
                DAEMON_TEST(drafts_of_streams_that_are_preempted_change_nothing),
                DAEMON_TEST(drafts_of_one_token_change_nothing),
                DAEMON_TEST(drafts_of_one_stream_at_a_time_change_nothing),
                DAEMON_TEST(drafts_on_the_reference_backend_change_nothing),
                DAEMON_TEST(guesses_of_a_model_change_nothing),
                DAEMON_TEST(drafts_that_must_pay_change_nothing),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SOURCES", NULL });
        random_begin();
        first_number = random_below(1u << 28) * MIX_KINDS;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
