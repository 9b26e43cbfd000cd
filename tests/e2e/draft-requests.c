#include "tests/e2e/draft-requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define CONTEXT 256u

/* ---- drawing ---- */

static uint64_t dice;

/* Below n, with splitmix64. */
static uint32_t draw(uint32_t n)
{
        uint64_t z = dice += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return (uint32_t)((z ^ z >> 31) % n);
}

/* A few tokens again and again, with a wrong one now and then; or tokens at random. */
static void draw_prompt(const struct draft_model *model, struct smv_generate *ask)
{
        static uint32_t prompt[CONTEXT];
        uint32_t count = 1 + draw(draw(2) ? 20 : 150), period = 1 + draw(12);
        bool repeats = draw(4) > 0;

        for (uint32_t i = 0; i < count; i++) {
                prompt[i] = model->least + draw(model->tokens);
                if (repeats && i >= period && draw(30))
                        prompt[i] = prompt[i - period];
        }
        ask->tokens = prompt;
        ask->token_count = count;
}

static void draw_length(struct smv_generate *ask)
{
        uint32_t left = CONTEXT - (uint32_t)ask->token_count;

        switch (draw(8)) {
        case 0:
        case 1:
                ask->max_tokens = 1 + draw(3);
                return;
        case 2:
                ask->max_tokens = left; /* the exact end of the context */
                return;
        case 3:
                ask->max_tokens = left + 1 + draw(50);
                ask->clamp = 1;
                return;
        default:
                ask->max_tokens = 1 + draw(left < 120 ? left : 120);
                return;
        }
}

static void draw_sampling(struct smv_generate *ask)
{
        static const float temperatures[] = { 0, 0, 0.2f, 0.7f, 1.3f };

        ask->set |= SMV_SET_TEMPERATURE | SMV_SET_SEED;
        ask->temperature = temperatures[draw(COUNT(temperatures))];
        ask->seed = draw(1000);
        switch (draw(12)) {
        case 0:
        case 1:
                ask->top_k = 1 + draw(4);
                ask->set |= SMV_SET_TOP_K;
                break;
        case 2:
                ask->top_p = 0.7f;
                ask->set |= SMV_SET_TOP_P;
                break;
        case 3:
                ask->mirostat_tau = 2 + (float)draw(3);
                break;
        case 4:
                ask->xtc_chance = 0.5f;
                break;
        case 5:
                ask->temperature_range = 0.1f;
                break;
        default:
                break;
        }
}

static void draw_penalties(struct smv_generate *ask)
{
        switch (draw(12)) {
        case 0:
                ask->repetition_penalty = 1.2f;
                break;
        case 1:
                ask->dry_multiplier = 0.5f;
                break;
        case 2:
                ask->no_repeat_ngram = 2 + draw(10);
                break;
        case 3:
                ask->frequency_penalty = 0.2f;
                ask->presence_penalty = 0.1f;
                break;
        case 4:
                ask->min_tokens = 1 + draw(20);
                break;
        default:
                break;
        }
}

/* A few tokens only, so that the answer repeats; or a bias. */
static void draw_tokens(const struct draft_model *model, struct smv_generate *ask)
{
        static uint32_t some[8];
        static struct smv_bias bias;
        static const char *const texts[] = { "ab", "the" };

        for (uint32_t i = 0; i < COUNT(some); i++)
                some[i] = model->least + draw(model->tokens);
        bias = (struct smv_bias){ some[0], 4 };
        switch (draw(8)) {
        case 0:
        case 1:
                ask->allowed_tokens = some;
                ask->allowed_token_count = 1 + draw(COUNT(some));
                break;
        case 2:
                ask->biases = &bias;
                ask->bias_count = 1;
                break;
        case 3:
                ask->banned_tokens = some;
                ask->banned_token_count = COUNT(some);
                break;
        case 4:
                ask->banned_texts = texts;
                ask->banned_text_count = COUNT(texts);
                break;
        default:
                break;
        }
}

static void draw_form(struct smv_generate *ask)
{
        static const char *const forms[] = {
                "{\"regex\":\"(ab|cd){1,60}\"}",
                "{\"regex\":\"([a-f]{1,3} ){2,30}[0-9]\"}",
                "{\"schema\":{\"type\":\"array\",\"items\":{\"enum\":[\"red\",\"blue\"]},"
                "\"maxItems\":20}}",
        };

        if (!draw(6))
                ask->constraint = forms[draw(COUNT(forms))];
        if (!draw(3)) {
                ask->set |= SMV_SET_LOGPROBS;
                ask->logprobs = draw(4);
        }
        if (!draw(6)) {
                ask->set |= SMV_SET_ROW_TOP;
                ask->row_top = draw(5);
        }
}

struct smv_generate draft_request(const struct draft_model *model, uint32_t number,
                                  const struct draft_stop *stop)
{
        static const char *stop_text;
        static uint32_t stop_token;
        struct smv_generate ask = { SMV_SIZE(smv_generate) };

        dice = number;
        draw_prompt(model, &ask);
        draw_length(&ask);
        draw_sampling(&ask);
        draw_penalties(&ask);
        draw_tokens(model, &ask);
        draw_form(&ask);
        ask.ignore_eos = draw(4) > 0;
        ask.n = draw(4) ? 1 : 2 + draw(DRAFT_STREAMS - 1);
        ask.sample_index = 1 + draw(5);
        ask.priority = draw(3);
        stop_text = stop->text;
        stop_token = stop->token;
        ask.stops = &stop_text;
        ask.stop_count = stop->text[0] != '\0';
        ask.stop_tokens = &stop_token;
        ask.stop_token_count = stop->token != UINT32_MAX;
        return ask;
}

/* ---- answers ---- */

static void append(char **bytes, size_t *count, size_t *max, const void *more, size_t more_count)
{
        if (!more_count)
                return;
        if (*count + more_count > *max) {
                *max = 2 * (*count + more_count);
                *bytes = realloc(*bytes, *max);
                assert_non_null(*bytes);
        }
        memcpy(*bytes + *count, more, more_count);
        *count += more_count;
}

static void add_numbers(struct answer *answer, const struct smv_logprob *entries, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                append(&answer->numbers, &answer->number_bytes, &answer->number_max,
                       &entries[i].token, sizeof(entries[i].token));
                append(&answer->numbers, &answer->number_bytes, &answer->number_max,
                       &entries[i].logprob, sizeof(entries[i].logprob));
        }
}

void answer_add(struct answer *answer, const struct smv_event *event)
{
        assert_int_equal(answer->end.reason, 0);
        if (event->kind == SMV_EVENT_END) {
                answer->end = *event;
                return;
        }
        assert_int_equal(event->kind, SMV_EVENT_TOKENS);
        if (answer->count + event->token_count > answer->max) {
                answer->max = 2 * (answer->count + (uint32_t)event->token_count);
                answer->tokens = realloc(answer->tokens, answer->max * sizeof(*answer->tokens));
                assert_non_null(answer->tokens);
        }
        for (size_t i = 0; i < event->token_count; i++)
                answer->tokens[answer->count++] = event->tokens[i];
        append(&answer->text, &answer->text_bytes, &answer->text_max, event->text,
               event->text_bytes);
        if (event->logprobs)
                add_numbers(answer, event->logprobs, event->token_count * (1 + event->top_count));
        if (event->row)
                add_numbers(answer, event->row->entries, 1 + event->row->top_count);
}

void answer_clear(struct answer *answer)
{
        free(answer->tokens);
        free(answer->text);
        free(answer->numbers);
        *answer = (struct answer){ 0 };
}

static bool begins(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
        return a_bytes <= b_bytes && (!a_bytes || !memcmp(a, b, a_bytes));
}

void assert_begins_answer(const struct answer *a, const struct answer *b, const char *what,
                          uint32_t number)
{
        if (!begins(a->tokens, a->count * sizeof(uint32_t), b->tokens, b->count * sizeof(uint32_t)))
                fail_msg("%s, request %u: other tokens, %u and %u", what, number, a->count,
                         b->count);
        if (!begins(a->text, a->text_bytes, b->text, b->text_bytes))
                fail_msg("%s, request %u: other text", what, number);
        if (!begins(a->numbers, a->number_bytes, b->numbers, b->number_bytes))
                fail_msg("%s, request %u: other log probabilities or rows", what, number);
}

void assert_same_answer(const struct answer *a, const struct answer *b, const char *what,
                        uint32_t number)
{
        if (a->refused != b->refused)
                fail_msg("%s, request %u: codes %d and %d", what, number, a->refused, b->refused);
        assert_begins_answer(a, b, what, number);
        if (a->count != b->count || a->text_bytes != b->text_bytes ||
            a->number_bytes != b->number_bytes)
                fail_msg("%s, request %u: %u and %u tokens, %zu and %zu bytes", what, number,
                         a->count, b->count, a->text_bytes, b->text_bytes);
        if (a->end.reason != b->end.reason || a->end.code != b->end.code ||
            a->end.stopped_by != b->end.stopped_by || a->end.stop_index != b->end.stop_index ||
            a->end.prompt_tokens != b->end.prompt_tokens ||
            a->end.output_tokens != b->end.output_tokens || a->end.sequence != b->end.sequence)
                fail_msg("%s, request %u: the ends differ: %s and %s, %u and %u tokens", what,
                         number, smv_reason_name(a->end.reason), smv_reason_name(b->end.reason),
                         a->end.output_tokens, b->end.output_tokens);
}

/* ---- clients ---- */

void answer_read(struct smv_client *client, struct answer *answer, uint32_t most)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        while (!answer->end.reason && answer->count < most) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                answer_add(answer, &event);
        }
}

struct answer answer_alone(struct smv_client *client, const struct smv_generate *ask,
                           uint32_t sample)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_generate one = *ask;
        struct answer answer = { 0 };
        uint32_t stream;

        one.n = 1;
        one.sample_index = sample;
        if (smv_generate(client, &one, &stream)) {
                smv_error(client, &problem);
                answer.refused = (int)problem.code;
                assert_int_not_equal(answer.refused, 0);
                return answer;
        }
        answer_read(client, &answer, UINT32_MAX);
        return answer;
}

static struct cut *cut_of(struct cut *cuts, uint32_t count, uint32_t stream)
{
        for (uint32_t i = 0; i < count; i++)
                if (cuts[i].stream == stream)
                        return &cuts[i];
        fail_msg("%s", "an event of no stream");
        return NULL;
}

void run_cuts(struct smv_client *client, struct cut *cuts, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t left = count;

        while (left) {
                struct cut *cut;

                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                cut = cut_of(cuts, count, event.stream);
                answer_add(&cut->answer, &event);
                left -= event.kind == SMV_EVENT_END;
                if (cut->answer.count < cut->most || cut->cancelled)
                        continue;
                cut->cancelled = true;
                assert_int_equal(smv_cancel(client, cut->stream), 0);
        }
        for (uint32_t i = 0; i < count; i++)
                assert_int_equal(cuts[i].answer.end.reason, SMV_END_CANCELLED);
}

struct smv_client *draft_connect(const struct daemon_fixture *fixture, enum smv_transport transport,
                                 size_t ring_bytes)
{
        const struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                        .transport = transport, .ring_bytes = ring_bytes };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}
