/* One client and one daemon: requests and their replies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/talk.h"

static const uint32_t ours[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

static void assert_refused(const struct reply *reply, enum smv_code code, const char *field)
{
        assert_false(reply->ok);
        assert_int_equal(reply->code, code);
        assert_string_equal(reply->field, field);
}

static void hello_comes_first_and_names_what_holds(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        struct reply *reply;

        HOUSE(house, "--frame-bytes", "64K");
        talk = talk_open(house);
        assert_refused(talk_ask(talk, "op=s", "status"), SMV_NO_HELLO, "op");
        talk_hangup(talk);
        talk_close(talk);

        talk = talk_open(house);
        reply = talk_ask(talk, "op=s versions=I transport=s", "hello", ours, (size_t)2, "socket");
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "version"), SMV_PROTOCOL_VERSION);
        assert_int_equal(reply_uint(reply, "frame_bytes"), 64 << 10);
        assert_true(talk_ask(talk, "op=s", "status")->ok);
        talk_close(talk);
        house_stop(house);
}

static void second_hello_is_refused_and_the_first_still_holds(void **state)
{
        struct house *house = *state;
        struct talk *talk;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        assert_refused(talk_ask(talk, "op=s versions=I", "hello", ours, (size_t)2), SMV_NO_HELLO,
                       "op");
        assert_true(talk_ask(talk, "op=s", "status")->ok);
        talk_close(talk);
        house_stop(house);
}

static void versions_not_in_common_are_refused(void **state)
{
        static const uint32_t later[] = { SMV_PROTOCOL_VERSION + 1, SMV_PROTOCOL_VERSION + 9 };
        static const uint32_t wide[] = { 0, UINT32_MAX };
        struct house *house = *state;
        struct talk *talk;

        HOUSE(house, "--threads", "1");
        talk = talk_open(house);
        assert_refused(talk_ask(talk, "op=s versions=I", "hello", later, (size_t)2), SMV_VERSION,
                       "versions");
        talk_hangup(talk);
        talk_close(talk);
        talk = talk_open(house);
        assert_true(talk_ask(talk, "op=s versions=I", "hello", wide, (size_t)2)->ok);
        talk_close(talk);
        house_stop(house);
}

static void text_and_its_tokens_give_the_same_stream(void **state)
{
        struct want text = { .prompt = "Once upon a time", .max_tokens = 80 }, tokens = text;
        struct house *house = *state;
        struct stream *a, *b;
        struct reply *reply;
        uint32_t ids[32] = { 0 };
        struct talk *talk;
        uint32_t id;

        HOUSE(house, "--threads", "2");
        talk = talk_greet(house);
        a = talk_whole(talk, &text);
        assert_int_equal(a->end.reason, SMV_END_LENGTH);
        assert_int_equal(a->token_count, 80);
        assert_int_equal(a->text_bytes, 80);
        for (size_t i = 0; i < 80; i++)
                assert_int_equal((uint8_t)a->text[i], a->tokens[i]);

        /* The tokens of a text are those that tokenize returns, after the tokens that the model
         * puts first. */
        reply = talk_ask(talk, "op=s text=s", "tokenize", text.prompt);
        for (size_t i = 0; i < strlen(text.prompt); i++) {
                char path[32];

                snprintf(path, sizeof(path), "tokens.%zu", i);
                ids[1 + i] = (uint32_t)reply_uint(reply, path);
                assert_int_equal(ids[1 + i], (uint8_t)text.prompt[i]);
        }
        ids[0] = 256; /* babble's bos */
        assert_int_equal(a->end.prompt_tokens, 1 + strlen(text.prompt));
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u tokens=I temperature=f max_tokens=u", "generate", id, ids,
                 1 + strlen(text.prompt), 0.0, 80u);
        assert_true(talk_reply(talk, id)->ok);
        assert_same_stream(a, talk_end(talk, id));

        tokens.as_ids = true;
        b = talk_whole(talk, &tokens);
        assert_int_equal(b->end.prompt_tokens, strlen(text.prompt));
        talk_close(talk);
        house_stop(house);
}

static void read_once(struct house *house, const char *type)
{
        struct want want = { .prompt = "Quite far away", .max_tokens = 8, .ignore_eos = true };
        struct talk *first, *second;
        struct stream *cold, *warm;

        HOUSE(house, "--threads", "1", "--kv", type);
        first = talk_greet(house);
        second = talk_greet(house);
        cold = talk_whole(first, &want);
        assert_int_equal(cold->end.prompt_tokens, 15);
        /* the tokens that the model puts before every text */
        assert_true(cold->end.cached_tokens <= 1);

        warm = talk_whole(second, &want);
        assert_int_equal(warm->end.cached_tokens, 14);
        assert_int_equal(warm->token_count, cold->token_count);
        assert_memory_equal(warm->tokens, cold->tokens, 8 * sizeof(*cold->tokens));

        want.prompt = "Quite far away, and later";
        assert_in_range(talk_whole(second, &want)->end.cached_tokens, 15, 25);
        want.prompt = "zigzag";
        assert_int_equal(talk_whole(second, &want)->end.cached_tokens, 1);
        talk_close(first);
        talk_close(second);
        house_stop(house);
}

/* Whatever the number type of the KV cache. */
static void what_was_read_once_is_not_read_again_by_whoever_asks(void **state)
{
        read_once(*state, "f16");
        read_once(*state, "bf16");
        read_once(*state, "int8");
        read_once(*state, "fp8");
        read_once(*state, "f32");
}

static const struct smv_record_end *ended(struct talk *talk, const char *prompt)
{
        const struct want want = { .prompt = prompt, .max_tokens = 8, .ignore_eos = true };

        return &talk_whole(talk, &want)->end;
}

/* Babble's tokens are bytes, and before each text stands its bos: so byte 7 is position 8. */
static void what_was_said_otherwise_is_told_to_whoever_of_the_same_user_asks(void **state)
{
        static const char said[] = "Of all the teas that are drunk here this one, and late";
        static const uint32_t places[] = { 53, 46, 32, 31, 30, 16, 15, 14, 7, 1, 0 };
        const struct smv_record_end *end;
        struct house *house = *state;
        struct talk *first, *second;

        HOUSE(house, "--threads", "1");
        first = talk_greet(house);
        second = talk_greet(house);
        assert_true(ended(first, said)->diverged_at <= 1); /* the harness may have asked before */
        assert_int_equal(ended(second, said)->diverged_at, 0);
        for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
                char asked[sizeof(said)];

                memcpy(asked, said, sizeof(said));
                asked[places[i]] = '#';
                end = ended(i % 2 ? first : second, asked);
                assert_int_equal(end->diverged_at, 1 + places[i]);
                assert_int_equal(end->cached_tokens, 1 + places[i]);
                assert_int_equal(end->known_token, said[places[i]]);
                assert_int_equal(end->asked_token, '#');

                asked[places[i]] = '\0'; /* the prompt ends before this byte */
                assert_int_equal(ended(first, asked)->diverged_at, 0);
        }
        talk_close(first);
        talk_close(second);
        house_stop(house);
}

/* Tokens that the model generated are cached as those of a prompt are. */
static void what_goes_on_otherwise_than_the_model_did_is_told(void **state)
{
        const struct want want = { .prompt = "Tea is", .max_tokens = 20, .ignore_eos = true };
        const struct smv_record_end *end;
        struct house *house = *state;
        struct stream *stream;
        struct talk *talk;
        char asked[64];

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        stream = talk_whole(talk, &want);
        snprintf(asked, sizeof(asked), "Tea is%.5s", stream->text);
        asked[6 + 4] = stream->text[4] == '#' ? '+' : '#';
        end = ended(talk, asked);
        assert_int_equal(end->prompt_tokens, 1 + 6 + 5);
        assert_int_equal(end->diverged_at, 1 + 6 + 4);
        assert_int_equal(end->known_token, stream->tokens[4]);
        assert_int_equal(end->asked_token, asked[6 + 4]);
        talk_close(talk);
        house_stop(house);
}

/* Every byte, twice: alone, and as UTF-8 where UTF-8 allows it. */
static void tokenize_and_detokenize_are_each_other_s_inverse(void **state)
{
        struct house *house = *state;
        const msgpack_object *text, *list;
        uint32_t ids[256 + 1024];
        char utf8[1024];
        struct talk *talk;
        size_t count = 0;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        for (uint32_t i = 0; i < 256; i++)
                ids[i] = i;
        text = reply_at(talk_ask(talk, "op=s tokens=I", "detokenize", ids, (size_t)256), "text");
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
        list = reply_at(talk_ask(talk, "op=s text=t", "tokenize", utf8, count), "tokens");
        assert_int_equal(list->type, MSGPACK_OBJECT_ARRAY);
        assert_int_equal(list->via.array.size, count);
        for (size_t i = 0; i < count; i++)
                ids[i] = (uint32_t)list->via.array.ptr[i].via.u64;
        text = reply_at(talk_ask(talk, "op=s tokens=I", "detokenize", ids, count), "text");
        assert_int_equal(text->via.str.size, count);
        assert_memory_equal(text->via.str.ptr, utf8, count);

        list = reply_at(talk_ask(talk, "op=s text=s", "tokenize", ""), "tokens");
        assert_int_equal(list->via.array.size, 0);
        talk_close(talk);
        house_stop(house);
}

static void status_shows_every_count(void **state)
{
        static const char names[] =
                "version protocol pid uid uptime_s steps rows tokens_in tokens_out ends "
                "numeric_faults wakes jobs log_lost descriptors mappings threads model.name "
                "model.vocab model.context blocks.total blocks.free blocks.cached blocks.held "
                "blocks.promised blocks.evicted blocks.copied requests.alive requests.waiting "
                "requests.running "
                "requests.stalled requests.ending requests.seen requests.refused "
                "connections.open connections.seen connections.refused connections.max "
                "channels.open charges.0.uid charges.0.connections charges.0.requests "
                "charges.0.prompt_bytes charges.0.ring_bytes charges.0.handles handles.open "
                "handles.tokens handles.bytes handles.kept limits.uid_handles "
                "limits.uid_held_percent "
                "limits.uid_connections "
                "kept.open kept.attached kept.ended kept.bytes charges.0.kept "
                "charges.0.kept_bytes charges.0.blocks charges.0.cached_blocks "
                "limits.uid_blocks_percent limits.uid_cached_percent limits.uid_kept "
                "limits.uid_kept_bytes limits.kept "
                "limits.uid_requests limits.uid_prompt_bytes limits.uid_ring_bytes "
                "limits.stall_ms limits.frame_bytes limits.reply_bytes limits.max_seqs "
                "limits.ctx";
        struct want want = { .prompt = "Tea", .max_tokens = 10, .ignore_eos = true };
        struct house *house = *state;
        struct reply *reply;
        struct talk *talk;
        char path[64];
        uint64_t ends;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        reply = talk_ask(talk, "op=s", "status");
        for (const char *at = names; *at; at += strspn(at, " ")) {
                size_t bytes = strcspn(at, " ");

                snprintf(path, sizeof(path), "status.%.*s", (int)bytes, at);
                if (!reply_at(reply, path))
                        fail_msg("%s is not in status", path);
                at += bytes;
        }
        assert_int_equal(reply_uint(reply, "status.pid"), house->pid);
        assert_int_equal(reply_uint(reply, "status.charges.0.uid"), getuid());
        ends = reply_uint(reply, "status.ends");
        talk_whole(talk, &want);
        assert_int_equal(talk_status(talk, "ends"), ends + 1);
        talk_close(talk);
        house_stop(house);
}

static void greedy_is_repeatable_and_so_is_a_seed(void **state)
{
        struct want greedy = { .prompt = "Tea", .max_tokens = 60, .ignore_eos = true };
        struct want drawn = { .prompt = "Tea", .max_tokens = 60, .temperature = 1.2, .seed = 7 };
        struct house *house = *state;
        struct stream *a, *b;
        struct talk *talk;

        HOUSE(house, "--threads", "2");
        talk = talk_greet(house);
        a = talk_whole(talk, &greedy);
        greedy.seed = 99; /* this has no effect on a greedy stream */
        assert_same_stream(a, talk_whole(talk, &greedy));

        a = talk_whole(talk, &drawn);
        assert_same_stream(a, talk_whole(talk, &drawn));
        drawn.seed = 8;
        b = talk_whole(talk, &drawn);
        assert_true(a->token_count != b->token_count ||
                    memcmp(a->tokens, b->tokens, a->token_count * sizeof(uint32_t)));
        drawn.seed = 7;
        drawn.top_k = 1; /* one candidate is left: greedy */
        drawn.ignore_eos = true;
        assert_same_stream(talk_whole(talk, &greedy), talk_whole(talk, &drawn));
        talk_close(talk);
        house_stop(house);
}

static void no_seed_is_a_new_one_each_time(void **state)
{
        struct house *house = *state;
        struct stream *streams[2];
        struct talk *talk;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        for (uint32_t i = 0; i < 2; i++) {
                uint32_t id = ++talk->last_id;

                talk_say(talk, "op=s id=u prompt=s max_tokens=u ignore_eos=y", "generate", id,
                         "Tea", 60u, 1);
                streams[i] = talk_end(talk, id);
                assert_true(talk_reply(talk, id)->ok);
        }
        assert_int_equal(streams[0]->token_count, 60);
        assert_memory_not_equal(streams[0]->tokens, streams[1]->tokens, 60 * sizeof(uint32_t));
        talk_close(talk);
        house_stop(house);
}

static void max_tokens_is_met_to_the_token(void **state)
{
        static const uint32_t wanted[] = { 1, 2, 15, 16, 17, 31, 32, 33, 200 };
        struct want want = { .prompt = "Tea", .ignore_eos = true };
        struct house *house = *state;
        struct talk *talk;

        HOUSE(house, "--max-tokens", "21");
        talk = talk_greet(house);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
                struct stream *stream;

                want.max_tokens = wanted[i];
                stream = talk_whole(talk, &want);
                assert_int_equal(stream->token_count, wanted[i]);
                assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        }
        want.max_tokens = 0;
        assert_int_equal(talk_whole(talk, &want)->token_count, 21);
        talk_close(talk);
        house_stop(house);
}

/* The stop string is a piece of an earlier answer, three tokens long, wherever it comes first. */
static void stop_string_cuts_over_token_borders(void **state)
{
        struct want want = { .prompt = "Once upon", .max_tokens = 200, .ignore_eos = true };
        struct house *house = *state;
        struct stream *whole, *cut;
        struct talk *talk;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        whole = talk_whole(talk, &want);
        for (size_t at = 0; at + 12 < whole->text_bytes; at += 23) {
                char stop[16] = "";
                size_t first, bytes = 1 + at % 12;

                memcpy(stop, whole->text + at, bytes);
                first = (size_t)((char *)memmem(whole->text, whole->text_bytes, stop, bytes) -
                                 whole->text);
                want.stop = stop;
                cut = talk_whole(talk, &want);
                assert_int_equal(cut->end.reason, SMV_END_STOP);
                assert_int_equal(cut->text_bytes, first);
                assert_memory_equal(cut->text, whole->text, first);
                assert_int_equal(cut->token_count, first + bytes);
                assert_prefix_stream(cut, whole);
        }
        want.stop = "THIS IS NEVER SAID";
        assert_same_stream(whole, talk_whole(talk, &want));
        talk_close(talk);
        house_stop(house);
}

/* Text that may become a stop string is held back; at the end of the stream it is sent. */
static void beginning_of_a_stop_string_is_given_in_the_end(void **state)
{
        struct want want = { .prompt = "Once upon", .max_tokens = 64, .ignore_eos = true };
        struct house *house = *state;
        struct stream *whole;
        struct talk *talk;
        char stop[16] = "";

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        whole = talk_whole(talk, &want);
        memcpy(stop, whole->text + 60, 4);
        strcat(stop, "#");
        want.stop = stop;
        assert_same_stream(whole, talk_whole(talk, &want));
        talk_close(talk);
        house_stop(house);
}

static void stop_id_ends_it_and_is_not_shown(void **state)
{
        struct want want = { .prompt = "Once upon", .max_tokens = 100, .ignore_eos = true };
        struct house *house = *state;
        struct stream *whole, *cut;
        struct talk *talk;
        uint32_t stop[2] = { 0, 255 };
        size_t first = 0;
        uint32_t id;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        whole = talk_whole(talk, &want);
        stop[0] = whole->tokens[40];
        while (whole->tokens[first] != stop[0])
                first++;
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=s temperature=f max_tokens=u stop_tokens=I", "generate",
                 id, want.prompt, 0.0, 100u, stop, (size_t)2);
        cut = talk_end(talk, id);
        assert_int_equal(cut->end.reason, SMV_END_STOP);
        assert_int_equal(cut->token_count, first + 1);
        assert_int_equal(cut->text_bytes, first);
        assert_prefix_stream(cut, whole);
        talk_close(talk);
        house_stop(house);
}

/* One seed of a hundred reaches the model's own end; if that is ignored, the same stream
 * continues. */
static void eos_ends_unless_it_is_ignored(void **state)
{
        struct want want = { .prompt = "Tea.", .max_tokens = 400, .temperature = 1 };
        struct house *house = *state;
        struct stream *ended = NULL, *on;
        struct talk *talk;

        HOUSE(house, "--threads", "2");
        talk = talk_greet(house);
        for (want.seed = 1; want.seed <= 100; want.seed++) {
                ended = talk_whole(talk, &want);
                if (ended->end.reason == SMV_END_EOS)
                        break;
        }
        assert_int_equal(ended->end.reason, SMV_END_EOS);
        assert_int_equal(ended->tokens[ended->token_count - 1], 257); /* babble's eos */
        assert_int_equal(ended->text_bytes, ended->token_count - 1);
        want.ignore_eos = true;
        on = talk_whole(talk, &want);
        assert_int_equal(on->end.reason, SMV_END_LENGTH);
        assert_int_equal(on->token_count, 400);
        assert_memory_equal(on->tokens, ended->tokens, ended->token_count * sizeof(uint32_t));
        talk_close(talk);
        house_stop(house);
}

static void context_that_is_full_ends_by_length(void **state)
{
        struct want want = { .prompt = "Once upon a time there", .ignore_eos = true };
        struct house *house = *state;
        struct stream *stream;
        struct talk *talk;

        HOUSE(house, "--ctx", "64");
        talk = talk_greet(house);
        stream = talk_whole(talk, &want);
        assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        assert_int_equal(stream->end.prompt_tokens + stream->end.output_tokens, 64);
        talk_close(talk);
        house_stop(house);
}

static void cancel_ends_a_stream_once_and_an_ended_one_is_no_error(void **state)
{
        struct want want = { .prompt = "Tea", .max_tokens = ENDLESS, .ignore_eos = true };
        struct house *house = *state;
        struct stream *stream;
        struct talk *talk;
        uint32_t id;

        ENDLESS_HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        id = talk_generate(talk, &want);
        assert_true(talk_reply(talk, id)->ok);
        while (!talk_stream(talk, id))
                talk_turn(talk, 100);
        assert_true(talk_ask(talk, "op=s stream=u", "cancel", id)->ok);
        stream = talk_end(talk, id);
        assert_int_equal(stream->end.reason, SMV_END_CANCELLED);
        assert_true(stream->token_count > 0);
        assert_true(talk_ask(talk, "op=s stream=u", "cancel", id)->ok);
        assert_int_equal(talk->stream_count, 1);
        talk_close(talk);
        house_stop(house);
}

static void end_tells_times_that_add_up(void **state)
{
        struct want want = { .prompt = "Once upon a time", .max_tokens = 50, .ignore_eos = true };
        struct house *house = *state;
        struct smv_record_end *end;
        uint64_t before, passed_ns;
        struct talk *talk;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        before = now_ms();
        end = &talk_whole(talk, &want)->end;
        passed_ns = (now_ms() - before + 2) * 1000000;
        assert_true(end->prefill_ns > 0 && end->decode_ns > 0);
        assert_true(end->queued_ns + end->prefill_ns + end->decode_ns <= passed_ns);
        assert_int_equal(end->prompt_tokens, 17);
        assert_int_equal(end->output_tokens, 50);
        talk_close(talk);
        house_stop(house);
}

static void a_half_closed_connection_goes_on_streaming(void **state)
{
        struct want want = { .prompt = "Tea", .max_tokens = 300, .ignore_eos = true };
        struct house *house = *state;
        struct talk *talk;
        uint32_t id;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        id = talk_generate(talk, &want);
        shutdown(talk->fd, SHUT_WR);
        assert_int_equal(talk_end(talk, id)->token_count, 300);
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(hello_comes_first_and_names_what_holds),
                STORY(second_hello_is_refused_and_the_first_still_holds),
                STORY(versions_not_in_common_are_refused),
                STORY(text_and_its_tokens_give_the_same_stream),
                STORY(what_was_read_once_is_not_read_again_by_whoever_asks),
                STORY(what_was_said_otherwise_is_told_to_whoever_of_the_same_user_asks),
                STORY(what_goes_on_otherwise_than_the_model_did_is_told),
                STORY(tokenize_and_detokenize_are_each_other_s_inverse),
                STORY(status_shows_every_count),
                STORY(greedy_is_repeatable_and_so_is_a_seed),
                STORY(no_seed_is_a_new_one_each_time),
                STORY(max_tokens_is_met_to_the_token),
                STORY(stop_string_cuts_over_token_borders),
                STORY(beginning_of_a_stop_string_is_given_in_the_end),
                STORY(stop_id_ends_it_and_is_not_shown),
                STORY(eos_ends_unless_it_is_ignored),
                STORY(context_that_is_full_ends_by_length),
                STORY(cancel_ends_a_stream_once_and_an_ended_one_is_no_error),
                STORY(end_tells_times_that_add_up),
                STORY(a_half_closed_connection_goes_on_streaming),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
