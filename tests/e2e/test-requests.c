/* One client and one daemon: requests and their replies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

static const uint32_t ours[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

static void assert_refused(const struct reply *reply, enum smv_code code, const char *field)
{
        assert_false(reply->ok);
        assert_int_equal(reply->code, code);
        assert_string_equal(reply->field, field);
}

static void hello_must_come_first_and_states_version_and_limits(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct reply *reply;

        START_DAEMON(fixture, "--frame-bytes", "64K");
        client = raw_client_connect(fixture);
        assert_refused(raw_client_call(client, "op=s", "status"), SMV_NO_HELLO, "op");
        raw_client_await_hangup(client);
        raw_client_close(client);

        client = raw_client_connect(fixture);
        reply = raw_client_call(client, "op=s versions=I transport=s", "hello", ours, (size_t)2,
                                "socket");
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "version"), SMV_PROTOCOL_VERSION);
        assert_int_equal(reply_uint(reply, "frame_bytes"), 64 << 10);
        assert_true(raw_client_call(client, "op=s", "status")->ok);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void refuses_a_second_hello_and_keeps_the_connection(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        assert_refused(raw_client_call(client, "op=s versions=I", "hello", ours, (size_t)2),
                       SMV_NO_HELLO, "op");
        assert_true(raw_client_call(client, "op=s", "status")->ok);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void refuses_a_client_without_a_common_protocol_version(void **state)
{
        static const uint32_t later[] = { SMV_PROTOCOL_VERSION + 1, SMV_PROTOCOL_VERSION + 9 };
        static const uint32_t wide[] = { 0, UINT32_MAX };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_connect(fixture);
        assert_refused(raw_client_call(client, "op=s versions=I", "hello", later, (size_t)2),
                       SMV_VERSION, "versions");
        raw_client_await_hangup(client);
        raw_client_close(client);
        client = raw_client_connect(fixture);
        assert_true(raw_client_call(client, "op=s versions=I", "hello", wide, (size_t)2)->ok);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void text_and_its_tokens_give_the_same_stream(void **state)
{
        struct want text = { .prompt = "Once upon a time", .max_tokens = 80 }, tokens = text;
        struct daemon_fixture *fixture = *state;
        struct stream *a, *b;
        struct reply *reply;
        uint32_t ids[32] = { 0 };
        struct raw_client *client;
        uint32_t id;

        START_DAEMON(fixture, "--threads", "2");
        client = raw_client_greet(fixture);
        a = raw_client_complete(client, &text);
        assert_int_equal(a->end.reason, SMV_END_LENGTH);
        assert_int_equal(a->token_count, 80);
        assert_int_equal(a->text_bytes, 80);
        for (size_t i = 0; i < 80; i++)
                assert_int_equal((uint8_t)a->text[i], a->tokens[i]);

        /* The tokens of a text are those that tokenize returns, after the tokens that the model
         * puts first. */
        reply = raw_client_call(client, "op=s text=s", "tokenize", text.prompt);
        for (size_t i = 0; i < strlen(text.prompt); i++) {
                char path[32];

                snprintf(path, sizeof(path), "tokens.%zu", i);
                ids[1 + i] = (uint32_t)reply_uint(reply, path);
                assert_int_equal(ids[1 + i], (uint8_t)text.prompt[i]);
        }
        ids[0] = 256; /* the toy model's bos */
        assert_int_equal(a->end.prompt_tokens, 1 + strlen(text.prompt));
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u tokens=I temperature=f max_tokens=u", "generate",
                              id, ids, 1 + strlen(text.prompt), 0.0, 80u);
        assert_true(raw_client_await_reply(client, id)->ok);
        assert_same_stream(a, raw_client_await_end(client, id));

        tokens.as_ids = true;
        b = raw_client_complete(client, &tokens);
        assert_int_equal(b->end.prompt_tokens, strlen(text.prompt));
        raw_client_close(client);
        fixture_stop(fixture);
}

static void read_once(struct daemon_fixture *fixture, const char *type)
{
        struct want want = { .prompt = "Quite far away", .max_tokens = 8, .ignore_eos = true };
        struct raw_client *first, *second;
        struct stream *cold, *warm;

        START_DAEMON(fixture, "--threads", "1", "--kv", type);
        first = raw_client_greet(fixture);
        second = raw_client_greet(fixture);
        cold = raw_client_complete(first, &want);
        assert_int_equal(cold->end.prompt_tokens, 15);
        /* the tokens that the model puts before every text */
        assert_true(cold->end.cached_tokens <= 1);

        warm = raw_client_complete(second, &want);
        assert_int_equal(warm->end.cached_tokens, 14);
        assert_int_equal(warm->token_count, cold->token_count);
        assert_memory_equal(warm->tokens, cold->tokens, 8 * sizeof(*cold->tokens));

        want.prompt = "Quite far away, and later";
        assert_in_range(raw_client_complete(second, &want)->end.cached_tokens, 15, 25);
        want.prompt = "zigzag";
        assert_int_equal(raw_client_complete(second, &want)->end.cached_tokens, 1);
        raw_client_close(first);
        raw_client_close(second);
        fixture_stop(fixture);
}

/* Whatever the number type of the KV cache. */
static void a_cached_prompt_is_not_prefilled_again_for_any_kv_type(void **state)
{
        read_once(*state, "f16");
        read_once(*state, "bf16");
        read_once(*state, "int8");
        read_once(*state, "fp8");
        read_once(*state, "f32");
}

static const struct smv_record_end *ended(struct raw_client *client, const char *prompt)
{
        const struct want want = { .prompt = prompt, .max_tokens = 8, .ignore_eos = true };

        return &raw_client_complete(client, &want)->end;
}

/* The toy model's tokens are bytes, and each text begins with bos: so byte 7 is position 8. */
static void the_end_states_where_a_prompt_diverged_from_the_cache(void **state)
{
        static const char said[] = "Of all the teas that are drunk here this one, and late";
        static const uint32_t places[] = { 53, 46, 32, 31, 30, 16, 15, 14, 7, 1, 0 };
        const struct smv_record_end *end;
        struct daemon_fixture *fixture = *state;
        struct raw_client *first, *second;

        START_DAEMON(fixture, "--threads", "1");
        first = raw_client_greet(fixture);
        second = raw_client_greet(fixture);
        assert_true(ended(first, said)->diverged_at <= 1); /* the harness may have asked before */
        assert_int_equal(ended(second, said)->diverged_at, 0);
        for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
                char asked[sizeof(said)];

                memcpy(asked, said, sizeof(said));
                asked[places[i]] = '#';
                end = ended(i % 2 ? first : second, asked);
                assert_int_equal(end->diverged_at, 1 + places[i]);
                assert_int_equal(end->cached_tokens, 1 + places[i]);
                assert_int_equal(end->diverged_cached_token, said[places[i]]);
                assert_int_equal(end->diverged_prompt_token, '#');

                asked[places[i]] = '\0'; /* the prompt ends before this byte */
                assert_int_equal(ended(first, asked)->diverged_at, 0);
        }
        raw_client_close(first);
        raw_client_close(second);
        fixture_stop(fixture);
}

/* Tokens that the model generated are cached as those of a prompt are. */
static void the_end_states_where_a_prompt_diverged_from_generated_tokens(void **state)
{
        const struct want want = { .prompt = "Tea is", .max_tokens = 20, .ignore_eos = true };
        const struct smv_record_end *end;
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct raw_client *client;
        char asked[64];

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        stream = raw_client_complete(client, &want);
        snprintf(asked, sizeof(asked), "Tea is%.5s", stream->text);
        asked[6 + 4] = stream->text[4] == '#' ? '+' : '#';
        end = ended(client, asked);
        assert_int_equal(end->prompt_tokens, 1 + 6 + 5);
        assert_int_equal(end->diverged_at, 1 + 6 + 4);
        assert_int_equal(end->diverged_cached_token, stream->tokens[4]);
        assert_int_equal(end->diverged_prompt_token, asked[6 + 4]);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Every byte, twice: alone, and as UTF-8 where UTF-8 allows it. */
static void detokenize_is_the_inverse_of_tokenize(void **state)
{
        struct daemon_fixture *fixture = *state;
        const msgpack_object *text, *list;
        uint32_t ids[256 + 1024];
        char utf8[1024];
        struct raw_client *client;
        size_t count = 0;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < 256; i++)
                ids[i] = i;
        text = reply_at(raw_client_call(client, "op=s tokens=I", "detokenize", ids, (size_t)256),
                        "text");
        assert_non_null(text);
        assert_true(text->type == MSGPACK_OBJECT_STR || text->type == MSGPACK_OBJECT_BIN);
        assert_int_equal(text->via.bin.size, 256);
        for (uint32_t i = 0; i < 256; i++)
                assert_int_equal((uint8_t)text->via.bin.ptr[i], i);

        for (uint32_t c = 0; c < 0x100; c++) {
                if (c >= 0x80)
                        utf8[count++] = (char)(0xc0 | c >> 6);
                utf8[count++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
        }
        list = reply_at(raw_client_call(client, "op=s text=t", "tokenize", utf8, count), "tokens");
        assert_int_equal(list->type, MSGPACK_OBJECT_ARRAY);
        assert_int_equal(list->via.array.size, count);
        for (size_t i = 0; i < count; i++)
                ids[i] = (uint32_t)list->via.array.ptr[i].via.u64;
        text = reply_at(raw_client_call(client, "op=s tokens=I", "detokenize", ids, count), "text");
        assert_int_equal(text->via.str.size, count);
        assert_memory_equal(text->via.str.ptr, utf8, count);

        list = reply_at(raw_client_call(client, "op=s text=s", "tokenize", ""), "tokens");
        assert_int_equal(list->via.array.size, 0);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void status_has_every_documented_count(void **state)
{
        static const char names[] =
                "version protocol pid uid uptime_s stopping stops_in_s steps rows tokens_in "
                "tokens_out tokens_recomputed tokens_restored trust streams_ended "
                "drafted drafts_right numeric_faults wakes text_jobs log_lines_lost descriptors "
                "mappings threads "
                "model.name "
                "model.vocab model.context blocks.total blocks.free blocks.cached blocks.in_use "
                "blocks.reserved blocks.evicted blocks.copied blocks.swap_total blocks.swap_used "
                "blocks.swapped_out blocks.swapped_in limits.swap_bytes requests.open "
                "requests.waiting "
                "requests.running "
                "requests.stalled requests.blocks_lost requests.submitted_total "
                "requests.preemptions_per_100 requests.blocks_lost_per_100 waits.turn waits.slot "
                "waits.blocks waits.forecast waits.share waits.prefix waits.reader "
                "requests.ending requests.received requests.refused "
                "connections.open connections.received connections.refused connections.max "
                "channels.active users.0.uid users.0.connections users.0.requests "
                "users.0.prompt_bytes users.0.ring_bytes users.0.handles handles.open "
                "handles.tokens handles.bytes handles.expiring limits.uid_handles "
                "limits.uid_pinned_percent "
                "limits.uid_connections "
                "resumable.open resumable.attached resumable.ended resumable.bytes "
                "users.0.resumable "
                "users.0.resumable_bytes users.0.blocks users.0.cached_blocks "
                "limits.uid_blocks_percent limits.uid_cached_percent limits.uid_resumable "
                "limits.uid_resumable_bytes limits.resumable "
                "limits.uid_requests limits.uid_prompt_bytes limits.uid_ring_bytes "
                "limits.stall_timeout_ms limits.frame_bytes limits.reply_bytes limits.max_seqs "
                "limits.ctx";
        struct want want = { .prompt = "Tea", .max_tokens = 10, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct reply *reply;
        struct raw_client *client;
        char path[64];
        uint64_t ends;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        reply = raw_client_call(client, "op=s", "status");
        for (const char *at = names; *at; at += strspn(at, " ")) {
                size_t bytes = strcspn(at, " ");

                snprintf(path, sizeof(path), "status.%.*s", (int)bytes, at);
                if (!reply_at(reply, path))
                        fail_msg("%s is not in status", path);
                at += bytes;
        }
        assert_int_equal(reply_uint(reply, "status.pid"), fixture->pid);
        assert_int_equal(reply_uint(reply, "status.users.0.uid"), getuid());
        ends = reply_uint(reply, "status.streams_ended");
        raw_client_complete(client, &want);
        assert_int_equal(raw_client_status(client, "streams_ended"), ends + 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void greedy_and_seeded_streams_are_repeatable(void **state)
{
        struct want greedy = { .prompt = "Tea", .max_tokens = 60, .ignore_eos = true };
        struct want drawn = { .prompt = "Tea", .max_tokens = 60, .temperature = 1.2, .seed = 7 };
        struct daemon_fixture *fixture = *state;
        struct stream *a, *b;
        struct raw_client *client;

        START_DAEMON(fixture, "--threads", "2");
        client = raw_client_greet(fixture);
        a = raw_client_complete(client, &greedy);
        greedy.seed = 99; /* this has no effect on a greedy stream */
        assert_same_stream(a, raw_client_complete(client, &greedy));

        a = raw_client_complete(client, &drawn);
        assert_same_stream(a, raw_client_complete(client, &drawn));
        drawn.seed = 8;
        b = raw_client_complete(client, &drawn);
        assert_true(a->token_count != b->token_count ||
                    memcmp(a->tokens, b->tokens, a->token_count * sizeof(uint32_t)));
        drawn.seed = 7;
        drawn.top_k = 1; /* one candidate is left: greedy */
        drawn.ignore_eos = true;
        assert_same_stream(raw_client_complete(client, &greedy),
                           raw_client_complete(client, &drawn));
        raw_client_close(client);
        fixture_stop(fixture);
}

static void without_a_seed_each_stream_differs(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stream *streams[2];
        struct raw_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < 2; i++) {
                uint32_t id = ++client->last_id;

                raw_client_send_frame(client, "op=s id=u prompt=s max_tokens=u ignore_eos=y",
                                      "generate", id, "Tea", 60u, 1);
                streams[i] = raw_client_await_end(client, id);
                assert_true(raw_client_await_reply(client, id)->ok);
        }
        assert_int_equal(streams[0]->token_count, 60);
        assert_memory_not_equal(streams[0]->tokens, streams[1]->tokens, 60 * sizeof(uint32_t));
        raw_client_close(client);
        fixture_stop(fixture);
}

static void generates_exactly_max_tokens(void **state)
{
        static const uint32_t wanted[] = { 1, 2, 15, 16, 17, 31, 32, 33, 200 };
        struct want want = { .prompt = "Tea", .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_DAEMON(fixture, "--max-tokens", "21");
        client = raw_client_greet(fixture);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
                struct stream *stream;

                want.max_tokens = wanted[i];
                stream = raw_client_complete(client, &want);
                assert_int_equal(stream->token_count, wanted[i]);
                assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        }
        want.max_tokens = 0;
        assert_int_equal(raw_client_complete(client, &want)->token_count, 21);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The stop string is a piece of an earlier answer, three tokens long, wherever it comes first. */
static void a_stop_string_matches_across_tokens(void **state)
{
        struct want want = { .prompt = "Once upon", .max_tokens = 200, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct stream *whole, *cut;
        struct raw_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        whole = raw_client_complete(client, &want);
        for (size_t at = 0; at + 12 < whole->text_bytes; at += 23) {
                char stop[16] = "";
                size_t first, bytes = 1 + at % 12;

                memcpy(stop, whole->text + at, bytes);
                first = (size_t)((char *)memmem(whole->text, whole->text_bytes, stop, bytes) -
                                 whole->text);
                want.stop = stop;
                cut = raw_client_complete(client, &want);
                assert_int_equal(cut->end.reason, SMV_END_STOP);
                assert_int_equal(cut->text_bytes, first);
                assert_memory_equal(cut->text, whole->text, first);
                assert_int_equal(cut->token_count, first + bytes);
                assert_prefix_stream(cut, whole);
        }
        want.stop = "THIS IS NEVER SAID";
        assert_same_stream(whole, raw_client_complete(client, &want));
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Text that may become a stop string is held back; at the end of the stream it is sent. */
static void held_back_text_is_sent_at_the_end_of_the_stream(void **state)
{
        struct want want = { .prompt = "Once upon", .max_tokens = 64, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct stream *whole;
        struct raw_client *client;
        char stop[16] = "";

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        whole = raw_client_complete(client, &want);
        memcpy(stop, whole->text + 60, 4);
        strcat(stop, "#");
        want.stop = stop;
        assert_same_stream(whole, raw_client_complete(client, &want));
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_stop_token_ends_the_stream_and_has_no_text(void **state)
{
        struct want want = { .prompt = "Once upon", .max_tokens = 100, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct stream *whole, *cut;
        struct raw_client *client;
        uint32_t stop[2] = { 0, 255 };
        size_t first = 0;
        uint32_t id;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        whole = raw_client_complete(client, &want);
        stop[0] = whole->tokens[40];
        while (whole->tokens[first] != stop[0])
                first++;
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=s temperature=f max_tokens=u stop_tokens=I",
                              "generate", id, want.prompt, 0.0, 100u, stop, (size_t)2);
        cut = raw_client_await_end(client, id);
        assert_int_equal(cut->end.reason, SMV_END_STOP);
        assert_int_equal(cut->token_count, first + 1);
        assert_int_equal(cut->text_bytes, first);
        assert_prefix_stream(cut, whole);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* One seed of a hundred reaches the model's own end; if that is ignored, the same stream
 * continues. */
static void eos_ends_a_stream_unless_ignore_eos_is_set(void **state)
{
        struct want want = { .prompt = "Tea.", .max_tokens = 400, .temperature = 1 };
        struct daemon_fixture *fixture = *state;
        struct stream *ended = NULL, *on;
        struct raw_client *client;

        START_DAEMON(fixture, "--threads", "2");
        client = raw_client_greet(fixture);
        for (want.seed = 1; want.seed <= 100; want.seed++) {
                ended = raw_client_complete(client, &want);
                if (ended->end.reason == SMV_END_EOS)
                        break;
        }
        assert_int_equal(ended->end.reason, SMV_END_EOS);
        assert_int_equal(ended->tokens[ended->token_count - 1], 257); /* the toy model's eos */
        assert_int_equal(ended->text_bytes, ended->token_count - 1);
        want.ignore_eos = true;
        on = raw_client_complete(client, &want);
        assert_int_equal(on->end.reason, SMV_END_LENGTH);
        assert_int_equal(on->token_count, 400);
        assert_memory_equal(on->tokens, ended->tokens, ended->token_count * sizeof(uint32_t));
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_full_context_ends_the_stream_with_length(void **state)
{
        struct want want = { .prompt = "Once upon a time there", .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct raw_client *client;

        START_DAEMON(fixture, "--ctx", "64");
        client = raw_client_greet(fixture);
        stream = raw_client_complete(client, &want);
        assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        assert_int_equal(stream->end.prompt_tokens + stream->end.output_tokens, 64);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void cancel_ends_a_stream_once_and_may_be_repeated(void **state)
{
        struct want want = { .prompt = "Tea", .max_tokens = ENDLESS, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct raw_client *client;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &want);
        assert_true(raw_client_await_reply(client, id)->ok);
        while (!raw_client_stream(client, id))
                raw_client_poll(client, 100);
        assert_true(raw_client_call(client, "op=s stream=u", "cancel", id)->ok);
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->end.reason, SMV_END_CANCELLED);
        assert_true(stream->token_count > 0);
        assert_true(raw_client_call(client, "op=s stream=u", "cancel", id)->ok);
        assert_int_equal(client->stream_count, 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void the_times_in_the_end_add_up(void **state)
{
        struct want want = { .prompt = "Once upon a time", .max_tokens = 50, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct smv_record_end *end;
        uint64_t before, passed_ns;
        struct raw_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        before = now_ms();
        end = &raw_client_complete(client, &want)->end;
        passed_ns = (now_ms() - before + 2) * 1000000;
        assert_true(end->prefill_ns > 0 && end->decode_ns > 0);
        assert_true(end->queued_ns + end->prefill_ns + end->decode_ns <= passed_ns);
        assert_int_equal(end->prompt_tokens, 17);
        assert_int_equal(end->output_tokens, 50);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_half_closed_connection_still_gets_its_stream(void **state)
{
        struct want want = { .prompt = "Tea", .max_tokens = 300, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t id;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &want);
        shutdown(client->fd, SHUT_WR);
        assert_int_equal(raw_client_await_end(client, id)->token_count, 300);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(hello_must_come_first_and_states_version_and_limits),
                DAEMON_TEST(refuses_a_second_hello_and_keeps_the_connection),
                DAEMON_TEST(refuses_a_client_without_a_common_protocol_version),
                DAEMON_TEST(text_and_its_tokens_give_the_same_stream),
                DAEMON_TEST(a_cached_prompt_is_not_prefilled_again_for_any_kv_type),
                DAEMON_TEST(the_end_states_where_a_prompt_diverged_from_the_cache),
                DAEMON_TEST(the_end_states_where_a_prompt_diverged_from_generated_tokens),
                DAEMON_TEST(detokenize_is_the_inverse_of_tokenize),
                DAEMON_TEST(status_has_every_documented_count),
                DAEMON_TEST(greedy_and_seeded_streams_are_repeatable),
                DAEMON_TEST(without_a_seed_each_stream_differs),
                DAEMON_TEST(generates_exactly_max_tokens),
                DAEMON_TEST(a_stop_string_matches_across_tokens),
                DAEMON_TEST(held_back_text_is_sent_at_the_end_of_the_stream),
                DAEMON_TEST(a_stop_token_ends_the_stream_and_has_no_text),
                DAEMON_TEST(eos_ends_a_stream_unless_ignore_eos_is_set),
                DAEMON_TEST(a_full_context_ends_the_stream_with_length),
                DAEMON_TEST(cancel_ends_a_stream_once_and_may_be_repeated),
                DAEMON_TEST(the_times_in_the_end_add_up),
                DAEMON_TEST(a_half_closed_connection_still_gets_its_stream),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
