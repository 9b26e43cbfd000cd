/* Requests of a raw client: frames, status, generations; and comparisons of two streams. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

void bytes_put(struct bytes_out *to, const void *bytes, size_t count)
{
        if (to->size - to->count < count) {
                to->size = (to->count + count) * 2;
                to->at = realloc(to->at, to->size);
                assert(to->at);
        }
        if (count)
                memcpy(to->at + to->count, bytes, count);
        to->count += count;
}

static int on_bytes(void *arg, const char *bytes, size_t count)
{
        bytes_put(arg, bytes, count);
        return 0;
}

static void put_texts(msgpack_packer *p, const char *const *texts, size_t count)
{
        msgpack_pack_array(p, count);
        for (size_t i = 0; i < count; i++)
                msgpack_pack_str_with_body(p, texts[i], strlen(texts[i]));
}

/* Packs one value of this kind; put_piece() packs those that take two arguments. */
static void put_piece(msgpack_packer *p, char kind, const void *bytes, size_t count)
{
        const uint32_t *ids = bytes;

        if (kind == 't')
                msgpack_pack_str_with_body(p, bytes, count);
        else if (kind == 'b')
                msgpack_pack_bin_with_body(p, bytes, count);
        else if (kind == 'x')
                bytes_put(p->data, bytes, count);
        else if (kind == 'S')
                put_texts(p, bytes, count);
        else
                msgpack_pack_array(p, count);
        for (size_t i = 0; kind == 'I' && i < count; i++)
                msgpack_pack_uint32(p, ids[i]);
}

void frame_vput(struct bytes_out *to, const char *format, va_list values)
{
        msgpack_packer p = { .data = to, .callback = on_bytes };
        size_t start = to->count, pairs = 0, bytes;
        const void *piece;

        bytes_put(to, "\0\0\0\0", 4);
        for (const char *at = format; (at = strchr(at, '=')); at++)
                pairs++;
        msgpack_pack_map(&p, pairs);
        for (const char *at = format; pairs--;) {
                size_t name = strcspn(at, "=");
                char kind = at[name + 1];

                msgpack_pack_str_with_body(&p, at, name);
                switch (kind) {
                case 's':
                        piece = va_arg(values, const char *);
                        put_piece(&p, 't', piece, strlen(piece));
                        break;
                case 'u':
                        msgpack_pack_uint32(&p, va_arg(values, unsigned));
                        break;
                case 'q':
                        msgpack_pack_uint64(&p, va_arg(values, uint64_t));
                        break;
                case 'i':
                        msgpack_pack_int(&p, va_arg(values, int));
                        break;
                case 'f':
                        msgpack_pack_double(&p, va_arg(values, double));
                        break;
                case 'y':
                        if (va_arg(values, int))
                                msgpack_pack_true(&p);
                        else
                                msgpack_pack_false(&p);
                        break;
                case 'n':
                        msgpack_pack_nil(&p);
                        break;
                default:
                        assert(strchr("tbxIS", kind));
                        piece = va_arg(values, const void *);
                        put_piece(&p, kind, piece, va_arg(values, size_t));
                }
                at += name + 2;
                at += *at == ' ';
        }
        bytes = to->count - start - 4;
        for (size_t i = 0; i < 4; i++)
                to->at[start + i] = (uint8_t)(bytes >> 8 * i);
}

void frame_put(struct bytes_out *to, const char *format, ...)
{
        va_list values;

        va_start(values, format);
        frame_vput(to, format, values);
        va_end(values);
}

static bool has_something(const msgpack_object *row)
{
        for (uint32_t i = 0; i < row->via.map.size; i++) {
                const msgpack_object_kv *pair = &row->via.map.ptr[i];
                const char *name = pair->key.via.str.ptr;
                uint32_t bytes = pair->key.via.str.size;

                if ((bytes != 3 || memcmp(name, "uid", 3)) &&
                    (bytes != 13 || memcmp(name, "cached_blocks", 13)) &&
                    pair->val.type == MSGPACK_OBJECT_POSITIVE_INTEGER && pair->val.via.u64)
                        return true;
        }
        return false;
}

bool reply_shows_others(const struct reply *reply)
{
        const msgpack_object *charges = reply_at(reply, "status.users");

        assert_true(charges && charges->type == MSGPACK_OBJECT_ARRAY);
        for (uint32_t i = 1; i < charges->via.array.size; i++)
                if (has_something(&charges->via.array.ptr[i]))
                        return true;
        return false;
}

uint64_t raw_client_status(struct raw_client *client, const char *path)
{
        struct reply *reply = raw_client_call(client, "op=s", "status");
        char whole[96];

        assert_true(reply->ok);
        snprintf(whole, sizeof(whole), "status.%s", path);
        return reply_uint(reply, whole);
}

uint64_t fixture_status(const struct daemon_fixture *fixture, const char *path)
{
        struct raw_client *client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        uint64_t value = raw_client_status(client, path);

        raw_client_close(client);
        return value;
}

void fixture_await_status(const struct daemon_fixture *fixture, const char *path, uint64_t value)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (fixture_status(fixture, path) != value) {
                if (now_ms() > end)
                        fail_msg("%s does not become %u", path, (unsigned)value);
                sleep_ms(10);
        }
}

#define PENALTIES 9u /* pairs that put_penalties() puts */

static uint32_t count_pairs(const struct want *w)
{
        return 5u + (w->max_tokens > 0) + (w->top_k > 0) + (w->top_p > 0) + (w->min_p > 0) +
               (w->stop != NULL) + (w->logprobs != 0) + w->ignore_eos + (w->priority != NULL) +
               (w->penalised ? PENALTIES : 0);
}

static void put_name(msgpack_packer *p, const char *name)
{
        msgpack_pack_str_with_body(p, name, strlen(name));
}

static void put_prompt(msgpack_packer *p, const struct want *w)
{
        size_t bytes = w->prompt_bytes ? w->prompt_bytes : strlen(w->prompt);

        put_name(p, w->as_ids ? "tokens" : "prompt");
        if (!w->as_ids) {
                msgpack_pack_str_with_body(p, w->prompt, bytes);
                return;
        }
        msgpack_pack_array(p, bytes);
        for (size_t i = 0; i < bytes; i++)
                msgpack_pack_uint8(p, (uint8_t)w->prompt[i]);
}

static void put_number(msgpack_packer *p, const char *name, uint64_t value)
{
        put_name(p, name);
        msgpack_pack_uint64(p, value);
}

static void put_real(msgpack_packer *p, const char *name, double value)
{
        put_name(p, name);
        msgpack_pack_double(p, value);
}

static void put_penalties(msgpack_packer *p)
{
        put_real(p, "presence_penalty", 0.4);
        put_real(p, "frequency_penalty", 0.1);
        put_real(p, "repetition_penalty", 1.15);
        put_number(p, "repeat_window", 24);
        put_real(p, "dry_multiplier", 0.8);
        put_number(p, "no_repeat_ngram", 5);
        put_number(p, "min_tokens", 20);
        put_name(p, "logit_bias");
        msgpack_pack_array(p, 1);
        msgpack_pack_array(p, 2);
        msgpack_pack_uint8(p, 'e');
        msgpack_pack_double(p, 0.5);
        put_name(p, "banned_texts");
        msgpack_pack_array(p, 2);
        put_name(p, "he");
        put_name(p, "a t");
}

uint32_t raw_client_generate(struct raw_client *client, const struct want *w)
{
        struct bytes_out frame = { 0 };
        msgpack_packer p = { .data = &frame, .callback = on_bytes };
        uint32_t id = ++client->last_id;

        bytes_put(&frame, "\0\0\0\0", 4);
        msgpack_pack_map(&p, count_pairs(w));
        put_name(&p, "op");
        put_name(&p, "generate");
        put_number(&p, "id", id);
        put_prompt(&p, w);
        put_real(&p, "temperature", w->temperature);
        put_number(&p, "seed", w->seed);
        if (w->max_tokens)
                put_number(&p, "max_tokens", w->max_tokens);
        if (w->top_k)
                put_number(&p, "top_k", w->top_k);
        if (w->top_p > 0)
                put_real(&p, "top_p", w->top_p);
        if (w->min_p > 0)
                put_real(&p, "min_p", w->min_p);
        if (w->stop) {
                put_name(&p, "stop");
                put_name(&p, w->stop);
        }
        if (w->ignore_eos) {
                put_name(&p, "ignore_eos");
                msgpack_pack_true(&p);
        }
        if (w->logprobs)
                put_number(&p, "logprobs", w->logprobs - 1);
        if (w->penalised)
                put_penalties(&p);
        if (w->priority) {
                put_name(&p, "priority");
                put_name(&p, w->priority);
        }
        for (size_t i = 0; i < 4; i++)
                frame.at[i] = (uint8_t)((frame.count - 4) >> 8 * i);
        raw_client_send(client, frame.at, frame.count);
        free(frame.at);
        return id;
}

struct stream *raw_client_complete(struct raw_client *client, const struct want *want)
{
        uint32_t id = raw_client_generate(client, want);
        struct reply *reply = raw_client_await_reply(client, id);

        if (!reply->ok)
                fail_msg("generate was refused: %s", reply->message);
        return raw_client_await_end(client, id);
}

void assert_same_stream(const struct stream *a, const struct stream *b)
{
        assert_true(a->ended && b->ended);
        assert_int_equal(a->token_count, b->token_count);
        assert_memory_equal(a->tokens, b->tokens, a->token_count * sizeof(uint32_t));
        assert_int_equal(a->text_bytes, b->text_bytes);
        assert_memory_equal(a->text, b->text, a->text_bytes);
        assert_int_equal(a->end.reason, b->end.reason);
        assert_int_equal(a->end.code, b->end.code);
        assert_int_equal(a->end.prompt_tokens, b->end.prompt_tokens);
        assert_int_equal(a->end.output_tokens, b->end.output_tokens);
        assert_int_equal(a->logprob_count, b->logprob_count);
        if (a->logprob_count) {
                assert_int_equal(a->logprobs_each, b->logprobs_each);
                assert_memory_equal(a->logprobs, b->logprobs,
                                    a->logprob_count * a->logprobs_each *
                                            sizeof(struct token_logprob));
        }
}

/* With a vocabulary of bytes the text is its ids, so held-back text can be checked, too. */
void assert_prefix_stream(const struct stream *a, const struct stream *b)
{
        size_t at = 0;

        assert_true(a->token_count <= b->token_count);
        if (a->token_count)
                assert_memory_equal(a->tokens, b->tokens, a->token_count * sizeof(uint32_t));
        for (size_t i = 0; i < a->token_count && at < a->text_bytes; i++)
                if (b->tokens[i] < 256) /* others have no text */
                        assert_int_equal((uint8_t)a->text[at++], b->tokens[i]);
        assert_int_equal(at, a->text_bytes);
}

struct stream *stream_copy(const struct stream *stream)
{
        struct stream *copy = malloc(sizeof(*copy));

        assert(copy);
        *copy = *stream;
        copy->tokens = malloc(stream->token_count * sizeof(uint32_t) + 1);
        copy->text = malloc(stream->text_bytes + 1);
        copy->text_ends = NULL;
        assert(copy->tokens && copy->text);
        if (stream->token_count)
                memcpy(copy->tokens, stream->tokens, stream->token_count * sizeof(uint32_t));
        if (stream->text_bytes)
                memcpy(copy->text, stream->text, stream->text_bytes);
        copy->text[stream->text_bytes] = '\0';
        if (stream->logprob_count) {
                size_t bytes =
                        stream->logprob_count * stream->logprobs_each * sizeof(*stream->logprobs);

                copy->logprobs = malloc(bytes);
                assert(copy->logprobs);
                memcpy(copy->logprobs, stream->logprobs, bytes);
        }
        if (stream->score_count) {
                size_t bytes = stream->score_count * stream->scores_each * sizeof(*stream->scores);

                copy->scores = malloc(bytes);
                assert(copy->scores);
                memcpy(copy->scores, stream->scores, bytes);
        }
        return copy;
}

struct stream *stream_free(struct stream *stream)
{
        if (stream) {
                free(stream->tokens);
                free(stream->logprobs);
                free(stream->scores);
                free(stream->text);
                free(stream->text_ends);
                free(stream);
        }
        return NULL;
}
