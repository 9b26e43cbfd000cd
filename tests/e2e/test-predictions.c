/*
 * Predictions: the text that a client expects.  Right, wrong or neither, it changes no answer.  A
 * daemon without drafts answers first; then one that gives each guess its row.  END tells them
 * apart, and says why a stream has no guesses.
 */
#include <string.h>

#include "tests/e2e/draft-requests.h"
#include "tests/e2e/honest-client.h"

#define TOKENS  96u
#define LETTERS 27u
#define SEEDS   6u /* answers of each case */

static const uint32_t prompt[] = { 't', 'e', 'a' };

/* The answer has letters and blanks only, so that its text has a byte for each token. */
static const uint32_t letters[LETTERS] = { ' ', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h',
                                           'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q',
                                           'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z' };

static struct smv_generate plain_request(uint64_t seed)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .tokens = prompt,
                                      .token_count = sizeof(prompt) / sizeof(*prompt),
                                      .max_tokens = TOKENS,
                                      .ignore_eos = 1,
                                      .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                      .temperature = 1,
                                      .seed = seed,
                                      .allowed_tokens = letters,
                                      .allowed_token_count = LETTERS };
}

static void start(struct daemon_fixture *fixture, const char *draft, const char *most)
{
        START_DAEMON(fixture, "--threads", "1", "--ctx", DRAFT_CONTEXT, "--constraints-kept", "0",
                     "--draft", draft, "--draft-tokens", most);
}

/* ---- what holds for each END ---- */

static void assert_depths(const struct smv_event *end, uint32_t most)
{
        uint32_t drafted = 0, right = 0;

        for (uint32_t i = 0; i < SMV_DRAFT_TOKENS_MAX; i++) {
                assert_true(end->drafts_right_by_depth[i] <= end->drafted_by_depth[i]);
                assert_true(i < most || !end->drafted_by_depth[i]);
                /* A token is computed, and right, only behind the others of its guess. */
                assert_true(!i || end->drafted_by_depth[i] <= end->drafted_by_depth[i - 1]);
                assert_true(!i ||
                            end->drafts_right_by_depth[i] <= end->drafts_right_by_depth[i - 1]);
                drafted += end->drafted_by_depth[i];
                right += end->drafts_right_by_depth[i];
        }
        assert_int_equal(end->drafted_by_depth[0], end->draft_steps);
        assert_int_equal(drafted, end->drafted);
        assert_int_equal(right, end->drafts_right);
}

static void assert_counts(const struct smv_event *end, uint32_t most)
{
        assert_true(end->drafts_right <= end->drafted);
        assert_true(end->predicted <= end->drafted);
        assert_true(end->predictions_right <= end->predicted);
        assert_true(end->predictions_right <= end->drafts_right);
        assert_true(end->drafts_right - end->predictions_right <= end->drafted - end->predicted);
        assert_true(end->draft_steps <= end->drafted);
        assert_true(end->drafted <= most * end->draft_steps);
        assert_depths(end, most);
        /* Each of its steps brings a token that was not guessed, and so does the prompt. */
        assert_true(end->drafts_right + end->draft_steps <= end->output_tokens);
}

static void assert_no_drafts(const struct smv_event *end, enum smv_no_drafts why)
{
        assert_int_equal(end->no_drafts, why);
        assert_int_equal(end->drafted, 0);
        assert_int_equal(end->drafts_right, 0);
        assert_int_equal(end->predicted, 0);
        assert_int_equal(end->predictions_right, 0);
        assert_int_equal(end->draft_steps, 0);
}

/* ---- one request of both daemons ---- */

#define PREDICTION_MOST 4000u

struct prediction_case {
        const char *name;
        /* Writes the text, given that of the answer; NULL: it is the answer. */
        size_t (*predict)(const char *answer, size_t bytes, char *to);
        /* The rules of its draws, which the answer below has already. */
        void (*rules)(struct smv_generate *ask);
        /* What cuts it, given the answer without it. */
        void (*cut)(struct smv_generate *ask, const struct answer *whole);
        uint32_t n; /* 0: 1 */
};

struct prepared {
        struct smv_generate ask;
        char text[PREDICTION_MOST];
        struct answer answers[DRAFT_STREAMS];
        /* For `cut`: */
        char stop[16];
        const char *stops[1];
        uint32_t stop_token;
};

static struct prepared *making; /* the one that `cut` works for */

static void prepare(struct smv_client *client, const struct prediction_case *of, uint64_t seed,
                    struct prepared *prepared)
{
        struct smv_generate ask = plain_request(seed);
        struct answer whole;

        if (of->rules)
                of->rules(&ask);
        whole = answer_alone(client, &ask, 0);
        assert_int_equal(whole.refused, 0);
        if (!of->predict) {
                assert_true(whole.text_bytes < PREDICTION_MOST);
                memcpy(prepared->text, whole.text, whole.text_bytes);
                ask.prediction_bytes = whole.text_bytes;
        } else {
                ask.prediction_bytes = of->predict(whole.text, whole.text_bytes, prepared->text);
        }
        ask.prediction = ask.prediction_bytes ? prepared->text : NULL;
        making = prepared;
        if (of->cut)
                of->cut(&ask, &whole);
        ask.n = of->n ? of->n : 1;
        prepared->ask = ask;
        for (uint32_t i = 0; i < ask.n; i++) {
                prepared->answers[i] = answer_alone(client, &ask, i);
                assert_int_equal(prepared->answers[i].refused, 0);
                assert_no_drafts(&prepared->answers[i].end, SMV_DRAFTS_OFF);
        }
        answer_clear(&whole);
}

/* Adds the counts of END to `sum`. */
static void add_counts(struct smv_event *sum, const struct smv_event *end)
{
        sum->output_tokens += end->output_tokens;
        sum->drafted += end->drafted;
        sum->drafts_right += end->drafts_right;
        sum->predicted += end->predicted;
        sum->predictions_right += end->predictions_right;
        sum->draft_steps += end->draft_steps;
}

static void compare(struct smv_client *client, const struct prediction_case *of,
                    struct prepared *prepared, struct smv_event *sum)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct answer answers[DRAFT_STREAMS] = { 0 };
        uint32_t first, left = prepared->ask.n;

        assert_int_equal(smv_generate(client, &prepared->ask, &first), 0);
        while (left) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                assert_true(event.stream - first < prepared->ask.n);
                answer_add(&answers[event.stream - first], &event);
                left -= event.kind == SMV_EVENT_END;
        }
        for (uint32_t i = 0; i < prepared->ask.n; i++) {
                assert_same_answer(&answers[i], &prepared->answers[i], of->name,
                                   (uint32_t)prepared->ask.seed);
                assert_counts(&answers[i].end, 8);
                assert_int_equal(answers[i].end.no_drafts, SMV_DRAFTS_POSSIBLE);
                add_counts(sum, &answers[i].end);
                answer_clear(&answers[i]);
                answer_clear(&prepared->answers[i]);
        }
}

/* Returns the sum of the ENDs with drafts. */
static struct smv_event try_case(struct daemon_fixture *fixture, const struct prediction_case *of)
{
        static struct prepared prepared[SEEDS];
        struct smv_event sum = { 0 };
        struct smv_client *client;
        uint64_t steps;

        memset(prepared, 0, sizeof(prepared));
        start(fixture, "off", "8");
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        for (uint32_t i = 0; i < SEEDS; i++)
                prepare(client, of, i + 1, &prepared[i]);
        smv_close(client);
        fixture_stop(fixture);
        start(fixture, "always", "8");
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        steps = fixture_status(fixture, "steps");
        for (uint32_t i = 0; i < SEEDS; i++)
                compare(client, of, &prepared[i], &sum);
        steps = fixture_status(fixture, "steps") - steps;
        smv_close(client);
        assert_int_equal(fixture_status(fixture, "drafted"), sum.drafted);
        assert_int_equal(fixture_status(fixture, "drafts_right"), sum.drafts_right);
        fixture_stop(fixture);
        print_message("# %s: %u tokens in %llu steps; %u of %u guesses right, and %u of %u of the "
                      "prediction, in %u steps\n",
                      of->name, sum.output_tokens, (unsigned long long)steps, sum.drafts_right,
                      sum.drafted, sum.predictions_right, sum.predicted, sum.draft_steps);
        /* A step with the prompt of each, and those that brought the other tokens. */
        if (!of->n)
                assert_true(steps <= sum.output_tokens - sum.drafts_right + 2 * SEEDS);
        return sum;
}

#define TRY(fixture, ...)                                                                          \
        try_case(fixture, &(struct prediction_case){ .name = __func__, __VA_ARGS__ })

/* ---- texts of predictions ---- */

static void a_right_prediction_brings_nine_tokens_a_step(void **state)
{
        struct smv_event sum = TRY(*state, .n = 0);

        assert_int_equal(sum.output_tokens, SEEDS * TOKENS);
        assert_int_equal(sum.predictions_right, sum.predicted);
        assert_true(sum.predictions_right >= SEEDS * (TOKENS - 16));
        assert_true(sum.draft_steps <= SEEDS * 14);
}

static size_t predict_marks(const char *answer, size_t bytes, char *to)
{
        (void)answer;
        memset(to, '!', bytes);
        return bytes;
}

static void a_prediction_whose_first_token_is_wrong_is_not_followed(void **state)
{
        assert_int_equal(TRY(*state, .predict = predict_marks).predictions_right, 0);
}

static size_t predict_marks_behind_one(const char *answer, size_t bytes, char *to)
{
        predict_marks(answer, bytes, to);
        to[0] = answer[0];
        return bytes;
}

static void a_wrong_prediction_changes_nothing(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_marks_behind_one);

        assert_true(sum.predicted >= SEEDS * 8);
        assert_int_equal(sum.predictions_right, 0);
}

static size_t predict_nothing(const char *answer, size_t bytes, char *to)
{
        (void)answer;
        (void)bytes;
        (void)to;
        return 0;
}

static void without_a_prediction_no_guess_is_of_one(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_nothing);

        assert_true(sum.drafted > 0);
        assert_int_equal(sum.predicted, 0);
}

/* Right up to the middle. */
static size_t predict_half(const char *answer, size_t bytes, char *to)
{
        memcpy(to, answer, bytes / 2);
        memset(to + bytes / 2, '!', bytes - bytes / 2);
        return bytes;
}

static void a_prediction_that_is_half_right_is_followed_up_to_there(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_half);

        assert_true(sum.predictions_right >= SEEDS * (TOKENS / 2 - 10));
        assert_true(sum.predicted > sum.predictions_right);
}

/* The answer begins in the middle of the prediction. */
static size_t predict_later(const char *answer, size_t bytes, char *to)
{
        memset(to, '!', 20);
        memcpy(to + 20, answer, bytes);
        return 20 + bytes;
}

static void a_shifted_prediction_is_found_again(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_later);

        /* Its end is behind max_tokens, and ignored. */
        assert_true(sum.predictions_right >= SEEDS * (TOKENS - 20) / 2);
}

static size_t predict_from_the_middle(const char *answer, size_t bytes, char *to)
{
        memcpy(to, answer + bytes / 2, bytes - bytes / 2);
        return bytes - bytes / 2;
}

static void a_prediction_of_the_end_is_found_in_the_middle(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_from_the_middle);

        assert_true(sum.predictions_right >= SEEDS * 10);
}

static size_t predict_more(const char *answer, size_t bytes, char *to)
{
        memcpy(to, answer, bytes);
        memset(to + bytes, '!', PREDICTION_MOST - bytes);
        return PREDICTION_MOST;
}

static void a_longer_prediction_is_cut_where_the_answer_ends(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_more);

        assert_int_equal(sum.predictions_right, sum.predicted);
        assert_true(sum.predictions_right >= SEEDS * (TOKENS - 16));
}

/* As an edited file: tokens were replaced, inserted and left out. */
static size_t predict_edited(const char *answer, size_t bytes, char *to)
{
        size_t n = 0;

        for (size_t i = 0; i < bytes; i++) {
                if (i % 31 == 30)
                        continue;
                if (i % 31 == 20)
                        to[n++] = '!';
                to[n++] = i % 31 == 10 ? '?' : answer[i];
        }
        return n;
}

static void an_edited_prediction_is_found_again_behind_each_edit(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_edited);

        assert_true(sum.predictions_right >= SEEDS * TOKENS / 3);
        assert_true(sum.predicted > sum.predictions_right);
}

static size_t predict_one(const char *answer, size_t bytes, char *to)
{
        (void)bytes;
        to[0] = answer[0];
        return 1;
}

/* The prompt's step brings this token, so no row is left to guess. */
static void a_prediction_of_one_token_is_no_guess(void **state)
{
        assert_int_equal(TRY(*state, .predict = predict_one).predicted, 0);
}

static size_t predict_one_wrong_second(const char *answer, size_t bytes, char *to)
{
        (void)bytes;
        to[0] = answer[0];
        to[1] = '!';
        return 2;
}

/* Row 18 of the thirty bugs: the first and only guess is wrong. */
static void a_guess_of_one_wrong_token_is_rejected(void **state)
{
        struct smv_event sum = TRY(*state, .predict = predict_one_wrong_second);

        assert_int_equal(sum.predicted, SEEDS);
        assert_int_equal(sum.predictions_right, 0);
}

/* Letters that are more than one byte, of which the model's tokens are single bytes. */
static size_t predict_umlauts(const char *answer, size_t bytes, char *to)
{
        memcpy(to, answer, 10);
        memcpy(to + 10, "\xc3\xa4\xe2\x82\xac\xf0\x9f\xab\x96", 9);
        memcpy(to + 19, answer + 10, bytes - 10);
        return bytes + 9;
}

static void a_prediction_with_other_letters_changes_nothing(void **state)
{
        TRY(*state, .predict = predict_umlauts);
}

/* ---- what ends an answer inside a run ---- */

/*
 * The answer is guessed, so its tokens 2 to 10 come with one step: a stop among them is in the
 * middle of a run.
 */
static void stop_at_the_fourth_letter(struct smv_generate *ask, const struct answer *whole)
{
        memcpy(making->stop, whole->text + 3, 2);
        making->stops[0] = making->stop;
        ask->stops = making->stops;
        ask->stop_count = 1;
        ask->set |= SMV_SET_LOGPROBS;
        ask->logprobs = 3;
}

/* Rows 11 and 12: no tokens, logprobs or counts behind the stop. */
static void a_stop_string_inside_a_run_ends_the_answer_there(void **state)
{
        struct smv_event sum = TRY(*state, .cut = stop_at_the_fourth_letter);

        assert_true(sum.output_tokens <= SEEDS * 5);
        assert_true(sum.drafts_right <= sum.output_tokens);
}

static void stop_at_the_first_guessed_letter(struct smv_generate *ask, const struct answer *whole)
{
        making->stop[0] = whole->text[1];
        making->stops[0] = making->stop;
        ask->stops = making->stops;
        ask->stop_count = 1;
}

static void a_stop_string_that_was_guessed_first_ends_the_answer(void **state)
{
        struct smv_event sum = TRY(*state, .cut = stop_at_the_first_guessed_letter);

        assert_true(sum.output_tokens <= SEEDS * 2);
        assert_true(sum.predicted >= SEEDS * 7);
}

static void stop_at_the_first_guess(struct smv_generate *ask, const struct answer *whole)
{
        making->stop_token = whole->tokens[1];
        ask->stop_tokens = &making->stop_token;
        ask->stop_token_count = 1;
        ask->set |= SMV_SET_LOGPROBS;
        ask->logprobs = 1;
}

static void a_stop_token_that_was_guessed_first_ends_the_answer(void **state)
{
        struct smv_event sum = TRY(*state, .cut = stop_at_the_first_guess);

        assert_true(sum.output_tokens <= SEEDS * 2);
}

static void end_after_five(struct smv_generate *ask, const struct answer *whole)
{
        (void)whole;
        ask->max_tokens = 5;
}

static void max_tokens_end_inside_a_guess(void **state)
{
        struct smv_event sum = TRY(*state, .cut = end_after_five);

        assert_int_equal(sum.output_tokens, SEEDS * 5);
        /* The prompt brings one token, a row that is needed in any case another one. */
        assert_true(sum.drafted <= SEEDS * 3);
}

static void end_after_one(struct smv_generate *ask, const struct answer *whole)
{
        (void)whole;
        ask->max_tokens = 1;
}

static void an_answer_of_one_token_has_no_guess(void **state)
{
        assert_int_equal(TRY(*state, .cut = end_after_one).drafted, 0);
}

static void stop_before_the_length(struct smv_generate *ask, const struct answer *whole)
{
        stop_at_the_fourth_letter(ask, whole);
        ask->max_tokens = 6;
}

/* Row 13: the run passes max_tokens, and the stop lies before. */
static void a_stop_before_max_tokens_is_the_reason(void **state)
{
        TRY(*state, .cut = stop_before_the_length);
}

static void stop_not_before_twenty(struct smv_generate *ask, const struct answer *whole)
{
        making->stop_token = whole->tokens[4];
        ask->stop_tokens = &making->stop_token;
        ask->stop_token_count = 1;
        ask->min_tokens = 20;
}

static void min_tokens_count_tokens_and_not_steps(void **state)
{
        struct smv_event sum = TRY(*state, .cut = stop_not_before_twenty);

        assert_true(sum.output_tokens >= SEEDS * 20);
}

/* The end token may come, and min_tokens holds it back. */
static void may_end(struct smv_generate *ask)
{
        ask->allowed_token_count = 0;
        ask->ignore_eos = 0;
        ask->min_tokens = 30;
}

static void min_tokens_hold_the_end_back_within_a_run(void **state)
{
        assert_true(TRY(*state, .rules = may_end).output_tokens >= SEEDS * 30);
}

static void ends_itself(struct smv_generate *ask)
{
        ask->allowed_token_count = 0;
        ask->ignore_eos = 0;
}

static void an_end_token_inside_a_run_ends_the_answer(void **state)
{
        assert_true(TRY(*state, .rules = ends_itself).output_tokens < SEEDS * TOKENS);
}

/* ---- rules that look back at the tokens ---- */

static void penalise(struct smv_generate *ask)
{
        ask->frequency_penalty = 0.7f;
        ask->presence_penalty = 0.4f;
}

/* Rows 14 to 16: each accepted token is counted once, and a wrong guess is not. */
static void penalties_count_right_guesses_once(void **state)
{
        assert_true(TRY(*state, .rules = penalise).predictions_right >= SEEDS * (TOKENS - 16));
}

static void penalties_do_not_count_wrong_guesses(void **state)
{
        struct smv_event sum = TRY(*state, .rules = penalise, .predict = predict_edited);

        assert_true(sum.predicted > sum.predictions_right);
}

static void repeat_little(struct smv_generate *ask)
{
        ask->repetition_penalty = 1.4f;
        ask->repeat_window = 12;
}

static void a_window_of_repetitions_moves_within_a_run(void **state)
{
        TRY(*state, .rules = repeat_little);
        TRY(*state, .rules = repeat_little, .predict = predict_edited);
}

static void use_dry(struct smv_generate *ask)
{
        ask->dry_multiplier = 2;
        ask->dry_allowed = 1;
}

static void dry_sees_the_tokens_of_a_run(void **state)
{
        TRY(*state, .rules = use_dry);
        TRY(*state, .rules = use_dry, .predict = predict_edited);
}

static void ban_pairs(struct smv_generate *ask)
{
        ask->no_repeat_ngram = 2;
}

static void bans_of_ngrams_see_the_tokens_of_a_run(void **state)
{
        TRY(*state, .rules = ban_pairs);
        TRY(*state, .rules = ban_pairs, .predict = predict_edited);
}

static void ban_texts(struct smv_generate *ask)
{
        static const char *const texts[] = { "lu", " t", "is" };

        ask->banned_texts = texts;
        ask->banned_text_count = 3;
}

static void bans_of_texts_see_the_tokens_of_a_run(void **state)
{
        TRY(*state, .rules = ban_texts);
        TRY(*state, .rules = ban_texts, .predict = predict_edited);
}

static void show_numbers(struct smv_generate *ask)
{
        ask->set |= SMV_SET_LOGPROBS | SMV_SET_ROW_TOP;
        ask->logprobs = 5;
        ask->row_top = 3;
}

/* Row 10. */
static void logprobs_and_rows_are_the_same(void **state)
{
        TRY(*state, .rules = show_numbers);
        TRY(*state, .rules = show_numbers, .predict = predict_edited);
}

/* ---- several streams ---- */

static void siblings_share_a_prediction(void **state)
{
        struct smv_event sum = TRY(*state, .n = DRAFT_STREAMS);

        assert_true(sum.predictions_right >= SEEDS * (TOKENS - 16));
        assert_true(sum.predicted > sum.predictions_right);
}

/* Reads parent and fork until both have some tokens, cancels both, and reads their ENDs. */
static void read_and_cancel(struct smv_client *client, uint32_t stream, uint32_t forked,
                            struct answer *parent, struct answer *fork)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        bool cancelled = false;

        while (!parent->end.reason || !fork->end.reason) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                assert_true(event.stream == stream || event.stream == forked);
                answer_add(event.stream == stream ? parent : fork, &event);
                if (cancelled || parent->count < 300 || fork->count < 300)
                        continue;
                cancelled = true;
                assert_int_equal(smv_cancel(client, stream), 0);
                assert_int_equal(smv_cancel(client, forked), 0);
        }
}

static void assert_part(const struct answer *part, uint32_t from, const struct answer *whole)
{
        for (uint32_t i = 0; i < part->count && from + i < whole->count; i++)
                assert_int_equal(part->tokens[i], whole->tokens[from + i]);
}

/* The parent has a long prediction that is right, and the fork draws as the parent does. */
static void a_fork_has_no_prediction_and_the_same_tokens(void **state)
{
        const struct smv_fork how = { SMV_SIZE(smv_fork), .count = 1, .sample_index = 1 };
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = plain_request(3);
        struct answer whole, parent = { 0 }, fork = { 0 };
        struct smv_client *client;
        uint32_t stream, forked;

        ask.max_tokens = 4000;
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--draft", "off");
        client = draft_connect(fixture, SMV_TRANSPORT_SOCKET, 0);
        whole = answer_alone(client, &ask, 1);
        smv_close(client);
        fixture_stop(fixture);
        ask.max_tokens = ENDLESS;
        ask.prediction = whole.text;
        ask.prediction_bytes = whole.text_bytes;
        ask.sample_index = 1;
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--draft", "always");
        client = draft_connect(fixture, SMV_TRANSPORT_RING, 0);
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        answer_read(client, &parent, 50);
        assert_int_equal(smv_fork(client, stream, &how, &forked), 0);
        read_and_cancel(client, stream, forked, &parent, &fork);
        assert_part(&parent, 0, &whole);
        assert_part(&fork, fork.end.prompt_tokens - parent.end.prompt_tokens, &whole);
        assert_counts(&parent.end, 8);
        assert_true(parent.end.predictions_right > 200);
        assert_counts(&fork.end, 8);
        assert_true(fork.end.drafted > 0);
        assert_int_equal(fork.end.predicted, 0);
        answer_clear(&whole);
        answer_clear(&parent);
        answer_clear(&fork);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- why there are none ---- */

/* Reads a stream to its END, and answers what it asks. */
static struct smv_event end_of(struct smv_client *client, const struct smv_generate *ask)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;

        if (smv_generate(client, ask, &stream)) {
                struct smv_problem problem = { SMV_SIZE(smv_problem) };

                smv_error(client, &problem);
                fail_msg("%s: %s", problem.field, problem.message);
        }
        do {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                if (event.kind != SMV_EVENT_ASK)
                        continue;
                assert_int_equal(event.ask == SMV_ASK_MASK
                                         ? smv_answer_mask(client, stream, NULL, 0)
                                         : smv_answer_token(client, stream, SMV_TOKEN_AS_DRAWN),
                                 0);
        } while (event.kind != SMV_EVENT_END);
        return event;
}

static struct smv_client *connect_to_answer(const struct daemon_fixture *fixture)
{
        const struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                        .transport = SMV_TRANSPORT_RING, .ask_slots = 2 };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

static void the_end_says_why_there_are_no_guesses(void **state)
{
        struct daemon_fixture *fixture = *state;
        const struct smv_generate free_one = plain_request(1);
        struct smv_generate ask;
        struct smv_client *client;
        struct smv_event end;

        start(fixture, "always", "8");
        client = connect_to_answer(fixture);
        end = end_of(client, &free_one);
        assert_int_equal(end.no_drafts, SMV_DRAFTS_POSSIBLE);
        assert_true(end.drafted > 0);
        ask = free_one;
        ask.prediction = "lu lu lu lu lu lu";
        ask.set |= SMV_SET_DRAFT_TOKENS;
        end = end_of(client, &ask);
        assert_no_drafts(&end, SMV_DRAFTS_OFF);
        ask = free_one;
        ask.prediction = "lu lu lu lu lu lu";
        ask.mirostat_tau = 3;
        end = end_of(client, &ask);
        assert_no_drafts(&end, SMV_DRAFTS_MIROSTAT);
        ask = free_one;
        ask.prediction = "lu lu lu lu lu lu";
        ask.allowed_token_count = 0;
        ask.ask_ms = SMV_ASK_MS_MAX;
        ask.ask = SMV_ASK_MASK;
        end = end_of(client, &ask);
        assert_no_drafts(&end, SMV_DRAFTS_ASKED);
        ask.ask = SMV_ASK_TOKEN;
        end = end_of(client, &ask);
        assert_no_drafts(&end, SMV_DRAFTS_ASKED);
        smv_close(client);
        fixture_stop(fixture);

        start(fixture, "off", "8");
        client = connect_to_answer(fixture);
        end = end_of(client, &free_one);
        assert_no_drafts(&end, SMV_DRAFTS_OFF);
        smv_close(client);
        fixture_stop(fixture);
}

/* A draft of at most one token: each step brings two tokens at most. */
static void a_request_bounds_its_guesses(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = plain_request(1);
        struct smv_client *client;
        struct smv_event end;

        start(fixture, "always", "8");
        client = connect_to_answer(fixture);
        for (ask.draft_tokens = 1; ask.draft_tokens <= SMV_DRAFT_TOKENS_MAX; ask.draft_tokens++) {
                uint32_t most = ask.draft_tokens < 8 ? ask.draft_tokens : 8;

                end = end_of(client, &ask);
                assert_true(end.drafted > 0);
                assert_true(end.drafted <= most * end.draft_steps);
                assert_true(ask.draft_tokens > 1 || end.drafted == end.draft_steps);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* A stream whose client does not read has no row, so the others must not wait for its time. */
static void a_client_that_does_not_read_leaves_others_their_guesses(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = plain_request(1);
        struct raw_client *silent;
        struct smv_client *client;
        struct smv_event end;

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--ctx", "2048", "--ring-bytes",
                     "65536", "--draft", "auto");
        silent = raw_client_greet_over(fixture, RAW_CLIENT_KICK);
        raw_client_send_frame(silent,
                              "op=s id=u prompt=s max_tokens=u ignore_eos=y logprobs=u "
                              "draft_tokens=u",
                              "generate", 1, "tea", 1500, 1, SMV_LOGPROBS_MAX, 0);
        fixture_await_status(fixture, "requests.stalled", 1);
        client = connect_to_answer(fixture);
        ask.prediction = "lu lu lu lu lu lu";
        end = end_of(client, &ask);
        assert_true(end.drafted > 0);
        smv_close(client);
        raw_client_close(silent);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_right_prediction_brings_nine_tokens_a_step),
                DAEMON_TEST(a_prediction_whose_first_token_is_wrong_is_not_followed),
                DAEMON_TEST(a_wrong_prediction_changes_nothing),
                DAEMON_TEST(without_a_prediction_no_guess_is_of_one),
                DAEMON_TEST(a_prediction_that_is_half_right_is_followed_up_to_there),
                DAEMON_TEST(a_shifted_prediction_is_found_again),
                DAEMON_TEST(a_prediction_of_the_end_is_found_in_the_middle),
                DAEMON_TEST(a_longer_prediction_is_cut_where_the_answer_ends),
                DAEMON_TEST(an_edited_prediction_is_found_again_behind_each_edit),
                DAEMON_TEST(a_prediction_of_one_token_is_no_guess),
                DAEMON_TEST(a_guess_of_one_wrong_token_is_rejected),
                DAEMON_TEST(a_prediction_with_other_letters_changes_nothing),
                DAEMON_TEST(a_stop_string_inside_a_run_ends_the_answer_there),
                DAEMON_TEST(a_stop_string_that_was_guessed_first_ends_the_answer),
                DAEMON_TEST(a_stop_token_that_was_guessed_first_ends_the_answer),
                DAEMON_TEST(max_tokens_end_inside_a_guess),
                DAEMON_TEST(an_answer_of_one_token_has_no_guess),
                DAEMON_TEST(a_stop_before_max_tokens_is_the_reason),
                DAEMON_TEST(min_tokens_count_tokens_and_not_steps),
                DAEMON_TEST(min_tokens_hold_the_end_back_within_a_run),
                DAEMON_TEST(an_end_token_inside_a_run_ends_the_answer),
                DAEMON_TEST(penalties_count_right_guesses_once),
                DAEMON_TEST(penalties_do_not_count_wrong_guesses),
                DAEMON_TEST(a_window_of_repetitions_moves_within_a_run),
                DAEMON_TEST(dry_sees_the_tokens_of_a_run),
                DAEMON_TEST(bans_of_ngrams_see_the_tokens_of_a_run),
                DAEMON_TEST(bans_of_texts_see_the_tokens_of_a_run),
                DAEMON_TEST(logprobs_and_rows_are_the_same),
                DAEMON_TEST(siblings_share_a_prediction),
                DAEMON_TEST(a_fork_has_no_prediction_and_the_same_tokens),
                DAEMON_TEST(the_end_says_why_there_are_no_guesses),
                DAEMON_TEST(a_request_bounds_its_guesses),
                DAEMON_TEST(a_client_that_does_not_read_leaves_others_their_guesses),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
