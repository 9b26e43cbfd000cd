/* How a raw client checks and stores records, from a socket or a ring. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

struct stream *raw_client_stream(const struct raw_client *client, uint32_t id)
{
        for (size_t i = client->stream_count; i-- > 0;)
                if (client->streams[i]->id == id)
                        return client->streams[i];
        return NULL;
}

static struct stream *stream_for(struct raw_client *client, uint32_t id)
{
        struct stream *stream = raw_client_stream(client, id);

        if (stream && !stream->ended)
                return stream;
        stream = calloc(1, sizeof(*stream));
        client->streams = realloc(client->streams, (client->stream_count + 1) * sizeof(stream));
        assert(stream && client->streams);
        stream->id = id;
        client->streams[client->stream_count++] = stream;
        return stream;
}

/*
 * The tokens are sorted, none has a probability above 1, and neither has their sum.  Different
 * logits may give equal log-probabilities, so those may have any order of ids.
 */
static void check_logprobs(const struct token_logprob *logprobs, uint32_t each)
{
        double sum = 0;

        for (uint32_t i = 1; i < each; i++) {
                sum += exp((double)logprobs[i].logprob);
                if (i > 1)
                        assert_true(logprobs[i].logprob <= logprobs[i - 1].logprob &&
                                    logprobs[i].token != logprobs[i - 1].token);
                if (logprobs[i].token == logprobs[0].token)
                        assert_true(logprobs[i].logprob == logprobs[0].logprob);
        }
        assert_true(logprobs[0].logprob <= 0 && sum < 1 + 1e-5);
        if (each > 1)
                assert_true(logprobs[0].logprob <= logprobs[1].logprob);
}

static void take_logprobs(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_logprobs head;
        size_t at;

        assert_true(bytes >= sizeof(head));
        memcpy(&head, payload, sizeof(head));
        assert_int_equal(head.token_count, 1);
        assert_int_equal(bytes,
                         sizeof(head) + (1u + head.top_count) * sizeof(struct token_logprob));
        /* the TOKENS record of the stream is not there yet */
        assert_int_equal(stream->logprob_count, stream->token_count);
        if (stream->positioned)
                assert_int_equal(head.position, stream->position);
        if (stream->logprob_count)
                assert_int_equal(stream->logprobs_each, 1u + head.top_count);
        stream->logprobs_each = 1u + head.top_count;
        at = stream->logprob_count++ * stream->logprobs_each;
        stream->logprobs = realloc(stream->logprobs,
                                   (at + stream->logprobs_each) * sizeof(struct token_logprob));
        assert(stream->logprobs);
        memcpy(stream->logprobs + at, payload + sizeof(head),
               stream->logprobs_each * sizeof(struct token_logprob));
        check_logprobs(stream->logprobs + at, stream->logprobs_each);
}

static void take_score(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_logprobs head;
        size_t at;

        assert_true(bytes >= sizeof(head));
        memcpy(&head, payload, sizeof(head));
        assert_int_equal(head.token_count, 1);
        assert_int_equal(bytes,
                         sizeof(head) + (1u + head.top_count) * sizeof(struct token_logprob));
        assert_int_equal(stream->token_count, 0);
        assert_int_equal(head.position, 1 + stream->score_count);
        if (stream->score_count)
                assert_int_equal(stream->scores_each, 1u + head.top_count);
        stream->scores_each = 1u + head.top_count;
        at = stream->score_count++ * stream->scores_each;
        stream->scores =
                realloc(stream->scores, (at + stream->scores_each) * sizeof(struct token_logprob));
        assert(stream->scores);
        memcpy(stream->scores + at, payload + sizeof(head),
               stream->scores_each * sizeof(struct token_logprob));
        check_logprobs(stream->scores + at, stream->scores_each);
}

static void take_progress(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_progress progress;

        assert_int_equal(bytes, sizeof(progress));
        memcpy(&progress, payload, sizeof(progress));
        assert_int_equal(stream->token_count, 0);
        assert_true(progress.cached_tokens < progress.prefilled &&
                    progress.prefilled <= progress.prompt_tokens);
        assert_true(progress.prefilled > stream->progress.prefilled);
        if (stream->progress_count)
                assert_int_equal(progress.prompt_tokens, stream->progress.prompt_tokens);
        stream->progress = progress;
        stream->progress_count++;
}

/* Of the next token, which may already have its LOGPROBS. */
static void take_row(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_row *row = &stream->row;

        assert_true(bytes >= sizeof(*row) + sizeof(stream->row_drawn));
        memcpy(row, payload, sizeof(*row));
        assert_int_equal(bytes, sizeof(*row) + (1u + row->top_count) * sizeof(stream->row_drawn));
        memcpy(&stream->row_drawn, payload + sizeof(*row), sizeof(stream->row_drawn));
        if (stream->positioned)
                assert_int_equal(row->position, stream->position);
        assert_in_range(row->is_whole, 0, 1);
        assert_int_equal(stream->row_count, stream->token_count);
        stream->row_count++;
}

static void take_ask(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_ask *ask = &stream->ask;

        assert_int_equal(bytes, sizeof(*ask));
        memcpy(ask, payload, sizeof(*ask));
        if (stream->positioned)
                assert_int_equal(ask->position, stream->position);
        assert_in_range(ask->kind, SMV_ASK_MASK, SMV_ASK_TOKEN);
        stream->ask_count++;
}

static bool goes_on(const struct smv_record_part *last, const struct smv_record_part *part)
{
        return last->kind == part->kind && last->call == part->call && last->flags == part->flags;
}

static void add_part(struct stream *stream, const struct smv_record_part *part)
{
        struct smv_record_part *last;

        assert_true(part->kind <= SMV_PART_CALL_END);
        assert_int_equal(part->bytes == 0, part->kind == SMV_PART_CALL_END);
        stream->parted_bytes += part->bytes;
        last = stream->part_count ? &stream->parts[stream->part_count - 1] : NULL;
        if (last && goes_on(last, part)) {
                /* a name is whole */
                assert_int_not_equal(part->kind, SMV_PART_CALL);
                last->bytes += part->bytes;
                return;
        }
        stream->parts = realloc(stream->parts, (stream->part_count + 1) * sizeof(*part));
        assert(stream->parts);
        stream->parts[stream->part_count++] = *part;
}

static void take_parts(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_parts head;
        struct smv_record_part part;

        assert_true(bytes >= sizeof(head) && !stream->parted);
        /* from the first record on, or never */
        assert_int_equal(stream->parted_bytes, stream->text_bytes);
        memcpy(&head, payload, sizeof(head));
        assert_int_equal(bytes, sizeof(head) + head.part_count * sizeof(part));
        for (uint32_t i = 0; i < head.part_count; i++) {
                memcpy(&part, payload + sizeof(head) + i * sizeof(part), sizeof(part));
                add_part(stream, &part);
        }
        stream->parted = true;
}

static void take_tokens(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_tokens head;
        size_t ids;

        assert_true(bytes >= sizeof(head));
        memcpy(&head, payload, sizeof(head));
        ids = head.token_count * sizeof(uint32_t);
        assert_int_equal(bytes, sizeof(head) + ids + head.text_bytes);
        assert_true(head.token_count || head.text_bytes || stream->parted);
        if (stream->positioned)
                assert_int_equal(head.position, stream->position);
        stream->positioned = true;
        stream->position = head.position + head.token_count;

        stream->tokens = realloc(stream->tokens, stream->token_count * sizeof(uint32_t) + ids + 1);
        stream->text = realloc(stream->text, stream->text_bytes + head.text_bytes + 1);
        assert(stream->tokens && stream->text);
        memcpy(stream->tokens + stream->token_count, payload + sizeof(head), ids);
        memcpy(stream->text + stream->text_bytes, payload + sizeof(head) + ids, head.text_bytes);
        stream->token_count += head.token_count;
        if (stream->logprobs) {
                assert_int_equal(stream->logprob_count, stream->token_count);
                if (head.token_count)
                        assert_int_equal(stream->logprobs[(stream->logprob_count - 1) *
                                                          stream->logprobs_each]
                                                 .token,
                                         stream->tokens[stream->token_count - 1]);
        }
        stream->text_bytes += head.text_bytes;
        if (stream->parted || stream->parts)
                assert_true(stream->parted && stream->parted_bytes == stream->text_bytes);
        stream->parted = false;
        stream->text[stream->text_bytes] = '\0';

        stream->text_ends = realloc(stream->text_ends, stream->token_count * sizeof(uint32_t) + 1);
        assert(stream->text_ends);
        for (size_t i = stream->token_count - head.token_count; i < stream->token_count; i++)
                stream->text_ends[i] = (uint32_t)stream->text_bytes;
}

/* The divergence is where the cached part ended, or before it where cached blocks found no
 * place. */
static void take_divergence(const struct smv_record_end *end)
{
        if (!end->diverged_at) {
                assert_int_equal(end->diverged_cached_token, 0);
                assert_int_equal(end->diverged_prompt_token, 0);
                return;
        }
        assert_in_range(end->diverged_at, end->cached_tokens, end->prompt_tokens - 1);
        assert_int_not_equal(end->diverged_cached_token, end->diverged_prompt_token);
}

static void take_end(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_end *end = &stream->end;

        assert_int_equal(bytes, sizeof(*end));
        memcpy(end, payload, sizeof(*end));
        assert_in_range(end->reason, SMV_END_EOS, SMV_END_ERROR);
        stream->ended = true;
        /* this END is not the stream's own, and counts nothing */
        if (end->code == SMV_MOVED)
                return;
        assert_true((end->reason == SMV_END_ERROR) == (end->code != SMV_OK));
        assert_int_equal(end->output_tokens, stream->token_count);
        assert_false(stream->parted);
        assert_true(end->reasoning_tokens <= end->output_tokens);
        assert_true((end->reason == SMV_END_STOP) == (end->stopped_by != SMV_STOPPED_BY_NOTHING));
        assert_true(end->stopped_by || !end->stop_index);
        if (end->code == SMV_NO_STREAM) /* a fork that never began */
                assert_int_equal(end->prompt_tokens, 0);
        else
                assert_true(end->cached_tokens < end->prompt_tokens);
        take_divergence(end);
        assert_true(end->blocks_lost <= end->preemptions);
        assert_true(end->preemptions || !(end->recomputed || end->restored));
        if (stream->token_count)
                assert_int_equal(stream->position, end->prompt_tokens + stream->token_count);
}

size_t raw_client_take_record(struct raw_client *client, const uint8_t *at, size_t count)
{
        struct smv_record head;
        struct stream *stream;

        assert_true(count >= sizeof(head));
        memcpy(&head, at, sizeof(head));
        assert_int_equal(head.head_bytes, sizeof(head));
        assert_in_range(head.size, sizeof(head), count);
        stream = stream_for(client, head.stream);
        assert_int_equal(head.sequence, stream->sequence);
        stream->sequence++;
        if (head.type == SMV_RECORD_END) {
                take_end(stream, at + sizeof(head), head.size - sizeof(head));
        } else if (head.type == SMV_RECORD_LOGPROBS) {
                take_logprobs(stream, at + sizeof(head), head.size - sizeof(head));
        } else if (head.type == SMV_RECORD_PROMPT_LOGPROBS) {
                take_score(stream, at + sizeof(head), head.size - sizeof(head));
        } else if (head.type == SMV_RECORD_PARTS) {
                take_parts(stream, at + sizeof(head), head.size - sizeof(head));
        } else if (head.type == SMV_RECORD_PROGRESS) {
                take_progress(stream, at + sizeof(head), head.size - sizeof(head));
        } else if (head.type == SMV_RECORD_ROW) {
                take_row(stream, at + sizeof(head), head.size - sizeof(head));
        } else if (head.type == SMV_RECORD_ASK) {
                take_ask(stream, at + sizeof(head), head.size - sizeof(head));
        } else {
                assert_int_equal(head.type, SMV_RECORD_TOKENS);
                take_tokens(stream, at + sizeof(head), head.size - sizeof(head));
        }
        return (head.size + (size_t)7) & ~(size_t)7;
}
