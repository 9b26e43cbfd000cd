/* How a talk checks and stores records, whichever way they came. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/talk.h"

struct stream *talk_stream(const struct talk *talk, uint32_t id)
{
        for (size_t i = talk->stream_count; i-- > 0;)
                if (talk->streams[i]->id == id)
                        return talk->streams[i];
        return NULL;
}

static struct stream *stream_for(struct talk *talk, uint32_t id)
{
        struct stream *stream = talk_stream(talk, id);

        if (stream && !stream->ended)
                return stream;
        stream = calloc(1, sizeof(*stream));
        talk->streams = realloc(talk->streams, (talk->stream_count + 1) * sizeof(stream));
        assert(stream && talk->streams);
        stream->id = id;
        talk->streams[talk->stream_count++] = stream;
        return stream;
}

/* The tokens are sorted, none has a probability above 1, and neither has their sum. */
static void check_told(const struct told *told, uint32_t each)
{
        double sum = 0;

        for (uint32_t i = 1; i < each; i++) {
                sum += exp((double)told[i].logprob);
                if (i > 1)
                        assert_true(told[i].logprob < told[i - 1].logprob ||
                                    (told[i].logprob == told[i - 1].logprob &&
                                     told[i].token > told[i - 1].token));
                if (told[i].token == told[0].token)
                        assert_true(told[i].logprob == told[0].logprob);
        }
        assert_true(told[0].logprob <= 0 && sum < 1 + 1e-5);
        if (each > 1)
                assert_true(told[0].logprob <= told[1].logprob);
}

static void take_logprobs(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_logprobs head;
        size_t at;

        assert_true(bytes >= sizeof(head));
        memcpy(&head, payload, sizeof(head));
        assert_int_equal(head.token_count, 1);
        assert_int_equal(bytes, sizeof(head) + (1u + head.top_count) * sizeof(struct told));
        /* the TOKENS record of the stream is not there yet */
        assert_int_equal(stream->told_count, stream->token_count);
        if (stream->positioned)
                assert_int_equal(head.position, stream->position);
        if (stream->told_count)
                assert_int_equal(stream->told_each, 1u + head.top_count);
        stream->told_each = 1u + head.top_count;
        at = stream->told_count++ * stream->told_each;
        stream->told = realloc(stream->told, (at + stream->told_each) * sizeof(struct told));
        assert(stream->told);
        memcpy(stream->told + at, payload + sizeof(head), stream->told_each * sizeof(struct told));
        check_told(stream->told + at, stream->told_each);
}

static void take_tokens(struct stream *stream, const uint8_t *payload, size_t bytes)
{
        struct smv_record_tokens head;
        size_t ids;

        assert_true(bytes >= sizeof(head));
        memcpy(&head, payload, sizeof(head));
        ids = head.token_count * sizeof(uint32_t);
        assert_int_equal(bytes, sizeof(head) + ids + head.text_bytes);
        assert_true(head.token_count || head.text_bytes);
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
        if (stream->told) {
                assert_int_equal(stream->told_count, stream->token_count);
                if (head.token_count)
                        assert_int_equal(
                                stream->told[(stream->told_count - 1) * stream->told_each].token,
                                stream->tokens[stream->token_count - 1]);
        }
        stream->text_bytes += head.text_bytes;
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
                assert_int_equal(end->known_token, 0);
                assert_int_equal(end->asked_token, 0);
                return;
        }
        assert_in_range(end->diverged_at, end->cached_tokens, end->prompt_tokens - 1);
        assert_int_not_equal(end->known_token, end->asked_token);
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
        if (end->code == SMV_NO_STREAM) /* a fork that never began */
                assert_int_equal(end->prompt_tokens, 0);
        else
                assert_true(end->cached_tokens < end->prompt_tokens);
        take_divergence(end);
        if (stream->token_count)
                assert_int_equal(stream->position, end->prompt_tokens + stream->token_count);
}

size_t talk_record(struct talk *talk, const uint8_t *at, size_t count)
{
        struct smv_record head;
        struct stream *stream;

        assert_true(count >= sizeof(head));
        memcpy(&head, at, sizeof(head));
        assert_int_equal(head.head_bytes, sizeof(head));
        assert_in_range(head.size, sizeof(head), count);
        stream = stream_for(talk, head.stream);
        assert_int_equal(head.sequence, stream->sequence);
        stream->sequence++;
        if (head.type == SMV_RECORD_END) {
                take_end(stream, at + sizeof(head), head.size - sizeof(head));
        } else if (head.type == SMV_RECORD_LOGPROBS) {
                take_logprobs(stream, at + sizeof(head), head.size - sizeof(head));
        } else {
                assert_int_equal(head.type, SMV_RECORD_TOKENS);
                take_tokens(stream, at + sizeof(head), head.size - sizeof(head));
        }
        return (head.size + (size_t)7) & ~(size_t)7;
}
