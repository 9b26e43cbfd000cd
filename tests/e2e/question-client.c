#include "tests/e2e/question-client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct smv_client *question_connect(const struct daemon_fixture *fixture, uint32_t slots,
                                    bool whole_rows)
{
        const struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                        .transport = SMV_TRANSPORT_RING, .ask_slots = slots,
                                        .whole_rows = whole_rows };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

const enum smv_ask question_kinds[QUESTION_KINDS] = { SMV_ASK_MASK, SMV_ASK_TOKEN };

struct question_rig question_rig_start(void **state)
{
        struct question_rig rig = { .fixture = *state };

        START_DAEMON(rig.fixture, "--threads", "1", "--constraints-kept", "0");
        rig.client = question_connect(rig.fixture, 2, true);
        return rig;
}

void question_rig_stop(struct question_rig *rig)
{
        smv_close(rig->client);
        fixture_stop(rig->fixture);
}

uint32_t question_vocab(const struct smv_client *client)
{
        struct smv_model model = { SMV_SIZE(smv_model) };

        assert_int_equal(smv_model(client, 0, &model), 0);
        assert_in_range(model.vocab, 1, MASK_WORDS_MOST * 32);
        return model.vocab;
}

void mask_set(uint32_t *mask, uint32_t token)
{
        mask[token / 32] |= 1u << token % 32;
}

void assert_refused(struct smv_client *client, int r, enum smv_code code, const char *field)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        assert_int_equal(r, code ? -EREMOTEIO : -EINVAL);
        smv_error(client, &problem);
        if (problem.code != code || strcmp(problem.field, field))
                fail_msg("refused with %s, field \"%s\": %s", problem.name, problem.field,
                         problem.message);
}

/* ---- keeping what comes ---- */

static void *grown(void *at, size_t count, size_t each)
{
        void *moved = reallocarray(at, count ? count : 1, each);

        assert(moved);
        return moved;
}

static void keep_row(struct asked *asked, const struct smv_row *row)
{
        struct kept_row *kept;

        asked->rows = grown(asked->rows, asked->row_count + 1, sizeof(*asked->rows));
        kept = &asked->rows[asked->row_count++];
        *kept = (struct kept_row){ .position = row->position,
                                   .log_sum = row->log_sum,
                                   .top_count = row->top_count,
                                   .logit_count = row->logits ? row->logit_count : 0 };
        kept->entries = grown(NULL, 1 + row->top_count, sizeof(*kept->entries));
        memcpy(kept->entries, row->entries, (1 + row->top_count) * sizeof(*kept->entries));
        if (!row->logits)
                return;
        kept->logits = grown(NULL, row->logit_count, sizeof(*kept->logits));
        memcpy(kept->logits, row->logits, row->logit_count * sizeof(*kept->logits));
}

static void keep_tokens(struct asked *asked, const struct smv_event *event)
{
        size_t each = 1 + event->top_count;

        asked->tokens = grown(asked->tokens, asked->token_count + event->token_count,
                              sizeof(*asked->tokens));
        asked->text = grown(asked->text, asked->text_bytes + event->text_bytes + 1, 1);
        if (event->token_count)
                memcpy(asked->tokens + asked->token_count, event->tokens,
                       event->token_count * sizeof(*asked->tokens));
        if (event->text_bytes)
                memcpy(asked->text + asked->text_bytes, event->text, event->text_bytes);
        asked->token_count += (uint32_t)event->token_count;
        asked->text_bytes += event->text_bytes;
        asked->text[asked->text_bytes] = '\0';
        if (!event->logprobs || !event->token_count)
                return;
        asked->logprobs = grown(asked->logprobs, asked->logprob_count + event->token_count * each,
                                sizeof(*asked->logprobs));
        memcpy(asked->logprobs + asked->logprob_count, event->logprobs,
               event->token_count * each * sizeof(*asked->logprobs));
        asked->logprob_count += event->token_count * each;
}

/* ---- one event ---- */

/* A question comes for the next token, and only one. */
static void hear_question(struct smv_client *client, struct asked *asked,
                          const struct smv_event *event)
{
        assert_int_equal(event->ask, asked->ask);
        assert_int_equal(event->token_count, 0);
        assert_int_equal(event->text_bytes, 0);
        assert_false(asked->is_open);
        assert_int_equal(event->position, asked->first + asked->token_count);
        if (asked->ask == SMV_ASK_MASK)
                assert_null(event->row);
        if (event->row)
                assert_int_equal(event->row->position, event->position);
        if (event->row && asked->keeps_rows)
                keep_row(asked, event->row);
        asked->questions++;
        asked->is_open = true;
        if (asked->answer)
                asked->answer(client, asked, event);
        else if (asked->ask == SMV_ASK_MASK)
                assert_int_equal(smv_answer_mask(client, asked->stream, NULL, 0), 0);
        else
                assert_int_equal(smv_answer_token(client, asked->stream, SMV_TOKEN_AS_DRAWN), 0);
}

static void hear_tokens(struct asked *asked, const struct smv_event *event)
{
        if (!asked->first)
                asked->first = event->position;
        if (event->token_count) {
                assert_int_equal(event->position, asked->first + asked->token_count);
                assert_true(event->token_count == 1 || !asked->ask);
                assert_int_equal(asked->is_open, asked->ask != SMV_ASK_NOTHING);
                asked->is_open = false;
        }
        if (asked->ask == SMV_ASK_TOKEN)
                assert_null(event->row);
        if (event->row) {
                assert_int_equal(event->token_count, 1);
                assert_int_equal(event->row->position, event->position);
                assert_int_equal(event->row->entries[0].token, event->tokens[0]);
        }
        if (event->row && asked->keeps_rows)
                keep_row(asked, event->row);
        keep_tokens(asked, event);
}

static void hear_end(struct asked *asked, const struct smv_event *event)
{
        asked->end = *event;
        asked->ended = true;
        if (event->code != SMV_NO_STREAM)
                assert_int_equal(event->output_tokens, asked->token_count);
        assert_int_equal(event->asked, asked->questions);
        assert_true(event->late <= event->asked);
}

struct asked *asked_hear_one(struct smv_client *client, struct asked *asked, size_t count,
                             int timeout_ms)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r = smv_next(client, &event, timeout_ms);
        size_t i = 0;

        if (!r)
                return NULL;
        assert_int_equal(r, 1);
        while (i < count && (asked[i].stream != event.stream || asked[i].ended))
                i++;
        assert_true(i < count);
        asked[i].sequence = event.sequence;
        switch (event.kind) {
        case SMV_EVENT_ASK:
                hear_question(client, &asked[i], &event);
                break;
        case SMV_EVENT_TOKENS:
                hear_tokens(&asked[i], &event);
                break;
        case SMV_EVENT_END:
                hear_end(&asked[i], &event);
                break;
        case SMV_EVENT_PROMPT_LOGPROBS:
                assert_int_equal(asked[i].token_count, 0);
                asked[i].score_count += (uint32_t)event.token_count;
                break;
        case SMV_EVENT_PROGRESS:
                assert_int_equal(asked[i].token_count, 0);
                break;
        default:
                fail_msg("an event of the kind %d", (int)event.kind);
        }
        return &asked[i];
}

void asked_hear(struct smv_client *client, struct asked *asked, size_t count)
{
        size_t left = 0;

        for (size_t i = 0; i < count; i++)
                left += !asked[i].ended;
        while (left) {
                const struct asked *one = asked_hear_one(client, asked, count, TIMEOUT_MS);

                assert_non_null(one);
                left -= one->ended;
        }
}

void asked_begin(struct smv_client *client, const struct smv_generate *how, struct asked *asked)
{
        struct smv_accepted accepted = { SMV_SIZE(smv_accepted) };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        asked_free(asked);
        if (smv_generate(client, how, &asked->stream)) {
                smv_error(client, &problem);
                fail_msg("refused with %s, field \"%s\": %s", problem.name, problem.field,
                         problem.message);
        }
        smv_accepted(client, &accepted);
        asked->first = accepted.prompt_tokens;
        asked->ask = how->ask;
}

void asked_run(struct smv_client *client, const struct smv_generate *how, struct asked *asked)
{
        asked_begin(client, how, asked);
        asked_hear(client, asked, 1);
}

void asked_free(struct asked *asked)
{
        const struct asked set = { .answer = asked->answer,
                                   .arg = asked->arg,
                                   .keeps_rows = asked->keeps_rows };

        for (uint32_t i = 0; i < asked->row_count; i++) {
                free(asked->rows[i].entries);
                free(asked->rows[i].logits);
        }
        free(asked->rows);
        free(asked->tokens);
        free(asked->text);
        free(asked->logprobs);
        *asked = set;
}

/* ---- comparing ---- */

void assert_same_answer(const struct asked *a, const struct asked *b)
{
        const struct smv_event *x = &a->end, *y = &b->end;

        assert_int_equal(a->token_count, b->token_count);
        if (a->token_count)
                assert_memory_equal(a->tokens, b->tokens, a->token_count * sizeof(*a->tokens));
        assert_int_equal(a->text_bytes, b->text_bytes);
        if (a->text_bytes)
                assert_memory_equal(a->text, b->text, a->text_bytes);
        assert_int_equal(x->reason, y->reason);
        assert_int_equal(x->code, y->code);
        assert_int_equal(x->stopped_by, y->stopped_by);
        assert_int_equal(x->stop_index, y->stop_index);
        assert_int_equal(x->prompt_tokens, y->prompt_tokens);
        assert_int_equal(x->output_tokens, y->output_tokens);
        assert_int_equal(x->parts_flags, y->parts_flags);
        assert_int_equal(x->reasoning_tokens, y->reasoning_tokens);
        assert_int_equal(x->calls, y->calls);
}

void assert_same_rows(const struct asked *a, const struct asked *b)
{
        assert_int_equal(a->row_count, b->row_count);
        for (uint32_t i = 0; i < a->row_count; i++) {
                const struct kept_row *x = &a->rows[i], *y = &b->rows[i];

                assert_true(x->top_count >= y->top_count);
                assert_int_equal(x->position, y->position);
                assert_memory_equal(&x->log_sum, &y->log_sum, sizeof(x->log_sum));
                assert_memory_equal(x->entries, y->entries,
                                    (1 + y->top_count) * sizeof(*x->entries));
        }
}

/* ---- answers ---- */

void answer_nothing(struct smv_client *client, struct asked *asked, const struct smv_event *event)
{
        (void)client;
        (void)asked;
        (void)event;
}

void answer_all_tokens(struct smv_client *client, struct asked *asked,
                       const struct smv_event *event)
{
        uint32_t mask[MASK_WORDS_MOST];

        (void)event;
        memset(mask, 0xff, sizeof(mask));
        assert_int_equal(
                smv_answer_mask(client, asked->stream, mask, mask_words(question_vocab(client))),
                0);
}

void answer_fixed(struct smv_client *client, struct asked *asked, const struct smv_event *event)
{
        (void)event;
        assert_int_equal(smv_answer_mask(client, asked->stream, asked->arg,
                                         mask_words(question_vocab(client))),
                         0);
}

void answer_list(struct smv_client *client, struct asked *asked, const struct smv_event *event)
{
        const uint32_t *list = asked->arg;

        (void)event;
        assert_int_equal(smv_answer_token(client, asked->stream, list[asked->token_count]), 0);
}

void answer_likeliest(struct smv_client *client, struct asked *asked, const struct smv_event *event)
{
        const struct smv_row *row = event->row;
        uint32_t best = 0;

        assert_non_null(row);
        assert_non_null(row->logits);
        for (uint32_t i = 1; i < row->logit_count; i++)
                best = row->logits[i] > row->logits[best] ? i : best;
        assert_int_equal(smv_answer_token(client, asked->stream, best), 0);
}
