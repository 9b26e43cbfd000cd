/*
 * The text of a stream, as a client of the library sees it: which stop ended it, and whether
 * control tokens are in it.  The expected text is computed from the stream's tokens and the pieces
 * of the vocabulary.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/chat-model.h"

#define TOKENS_MOST 700u
#define TEXT_MOST   (TOKENS_MOST * 16)

/* What came of one stream. */
struct heard {
        uint32_t stream, tokens[TOKENS_MOST];
        char text[TEXT_MOST];
        size_t token_count, text_bytes;
        uint32_t position; /* of its first token */
        struct smv_event end;
};

static struct smv_client *connect_library(const struct daemon_fixture *fixture)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                  .transport = raw_client_transport() == RAW_CLIENT_SOCKET
                                                       ? SMV_TRANSPORT_SOCKET
                                                       : SMV_TRANSPORT_RING };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

static void note(struct heard *heard, const struct smv_event *event)
{
        if (event->kind == SMV_EVENT_END) {
                heard->end = *event;
                return;
        }
        if (!heard->token_count)
                heard->position = event->position;
        assert_true(heard->token_count + event->token_count <= TOKENS_MOST);
        assert_true(heard->text_bytes + event->text_bytes <= TEXT_MOST);
        memcpy(heard->tokens + heard->token_count, event->tokens,
               event->token_count * sizeof(uint32_t));
        memcpy(heard->text + heard->text_bytes, event->text, event->text_bytes);
        heard->token_count += event->token_count;
        heard->text_bytes += event->text_bytes;
}

/* Reads until all of these streams have ended. */
static void hear(struct smv_client *client, struct heard *heard, size_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        for (size_t ended = 0; ended < count;) {
                size_t i = 0;

                assert_int_equal(smv_next(client, &event, -1), 1);
                while (i < count && heard[i].stream != event.stream)
                        i++;
                assert_true(i < count);
                note(&heard[i], &event);
                ended += event.kind == SMV_EVENT_END;
        }
}

static void ask(struct smv_client *client, const struct smv_generate *how, struct heard *ret_heard)
{
        memset(ret_heard, 0, sizeof(*ret_heard));
        assert_int_equal(smv_generate(client, how, &ret_heard->stream), 0);
        hear(client, ret_heard, 1);
}

/* ---- stops ---- */

#define STOPS 6u

static const struct smv_generate greedy = { SMV_SIZE(smv_generate), .prompt = "Once upon",
                                            .max_tokens = 200, .set = SMV_SET_TEMPERATURE,
                                            .ignore_eos = 1 };

/* Pieces of the text, and strings that it does not have. */
static void draw_stops(const struct heard *whole, char stops[STOPS][16], const char *ret_stops[])
{
        for (uint32_t i = 0; i < STOPS; i++) {
                size_t bytes = 1 + random_below(5), at = random_below(190);

                memcpy(stops[i], whole->text + at, bytes);
                stops[i][bytes] = '\0';
                if (!random_below(3))
                        strcat(stops[i], "#");
                ret_stops[i] = stops[i];
        }
}

/* The rule of docs/reference/protocol.md, the slow way: the first end, then the longest. */
static bool find_stop(const struct heard *whole, const char *const *stops, uint32_t *ret_stop,
                      size_t *ret_cut, size_t *ret_end)
{
        for (size_t end = 1; end <= whole->text_bytes; end++) {
                size_t longest = 0;

                for (uint32_t i = 0; i < STOPS; i++) {
                        size_t bytes = strlen(stops[i]);

                        if (bytes > longest && bytes <= end &&
                            !memcmp(whole->text + end - bytes, stops[i], bytes)) {
                                longest = bytes;
                                *ret_stop = i;
                        }
                }
                *ret_cut = end - longest;
                *ret_end = end;
                if (longest)
                        return true;
        }
        return false;
}

static void assert_stopped(const struct heard *heard, enum smv_stopped_by by, uint32_t index)
{
        assert_int_equal(heard->end.reason, SMV_END_STOP);
        assert_int_equal(heard->end.stopped_by, by);
        assert_int_equal(heard->end.stop_index, index);
}

/* The toy model's tokens are bytes. */
static void the_end_says_which_stop_string_it_was(void **state)
{
        static struct heard whole, cut;
        struct daemon_fixture *fixture = *state;
        char stops[STOPS][16];
        const char *all[STOPS];
        struct smv_generate with = greedy;
        struct smv_client *client;
        uint32_t stopped = 0;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        ask(client, &greedy, &whole);
        assert_int_equal(whole.end.reason, SMV_END_LENGTH);
        assert_int_equal(whole.end.stopped_by, SMV_STOPPED_BY_NOTHING);
        with.stops = all;
        with.stop_count = STOPS;
        for (int round = 0; round < 40; round++) {
                uint32_t stop;
                size_t at, end;

                draw_stops(&whole, stops, all);
                ask(client, &with, &cut);
                if (!find_stop(&whole, all, &stop, &at, &end)) {
                        assert_int_equal(cut.end.reason, SMV_END_LENGTH);
                        continue;
                }
                assert_stopped(&cut, SMV_STOPPED_BY_STRING, stop);
                assert_int_equal(cut.text_bytes, at);
                assert_int_equal(cut.token_count, end);
                stopped++;
        }
        assert_true(stopped > 20);
        smv_close(client);
        fixture_stop(fixture);
}

/* A stop token ends the stream before its text is looked at, and even if it is an end token. */
static void the_end_says_which_stop_token_it_was(void **state)
{
        static struct heard whole, cut;
        struct daemon_fixture *fixture = *state;
        uint32_t tokens[] = { 255, 0, 0, 257 };
        char letter[2] = "";
        const char *stops[] = { "THIS IS NEVER SAID", letter };
        struct smv_generate with = greedy;
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        ask(client, &greedy, &whole);
        tokens[1] = tokens[2] = whole.tokens[40];
        letter[0] = (char)tokens[1];
        with.stop_tokens = tokens;
        with.stop_token_count = 4;
        with.stops = stops;
        with.stop_count = 2;
        ask(client, &with, &cut);
        assert_stopped(&cut, SMV_STOPPED_BY_TOKEN, 1);
        with.stop_token_count = 1;
        ask(client, &with, &cut);
        assert_stopped(&cut, SMV_STOPPED_BY_STRING, 1);

        /* The toy model's own end token. */
        with = greedy;
        with.temperature = 1;
        with.max_tokens = 400;
        with.ignore_eos = 0;
        do {
                with.seed++;
                ask(client, &with, &whole);
        } while (whole.end.reason != SMV_END_EOS);
        assert_int_equal(whole.end.stopped_by, SMV_STOPPED_BY_NOTHING);
        with.stop_tokens = tokens + 3;
        with.stop_token_count = 1;
        ask(client, &with, &cut);
        assert_stopped(&cut, SMV_STOPPED_BY_TOKEN, 0);
        assert_int_equal(cut.token_count, whole.token_count);
        assert_int_equal(cut.text_bytes, whole.text_bytes);
        smv_close(client);
        fixture_stop(fixture);
}

/* On a handle, in a fork, and in a resumable stream that another connection reads. */
static void every_kind_of_stream_says_which_stop_it_was(void **state)
{
        static struct heard whole, cut, forks[2];
        struct daemon_fixture *fixture = *state;
        char last[4] = "";
        const char *stops[] = { "THIS IS NEVER SAID", "NOR IS THIS", last };
        struct smv_generate with = greedy;
        struct smv_client *client;
        uint64_t resume_id;

        START_DAEMON(fixture, "--threads", "1");
        client = connect_library(fixture);
        ask(client, &greedy, &whole);
        memcpy(last, whole.text + 150, 3);
        with.stops = stops;
        with.stop_count = 3;

        with.prompt = NULL;
        assert_int_equal(smv_handle_open(client, &greedy, &with.handle, NULL), 0);
        ask(client, &with, &cut);
        assert_stopped(&cut, SMV_STOPPED_BY_STRING, 2);
        with.handle = 0;
        with.prompt = greedy.prompt;

        memset(forks, 0, sizeof(forks));
        assert_int_equal(smv_generate(client, &with, &forks[0].stream), 0);
        if (!smv_fork(client, forks[0].stream, &(struct smv_fork){ SMV_SIZE(smv_fork), .count = 1 },
                      &forks[1].stream)) {
                hear(client, forks, 2);
                if (forks[1].end.code != SMV_NO_STREAM)
                        assert_stopped(&forks[1], SMV_STOPPED_BY_STRING, 2);
        } else {
                hear(client, forks, 1);
        }
        assert_stopped(&forks[0], SMV_STOPPED_BY_STRING, 2);

        with.keep_ms = 60000;
        assert_int_equal(smv_generate(client, &with, &cut.stream), 0);
        resume_id = smv_resume_id(client, cut.stream);
        smv_close(client);
        client = connect_library(fixture);
        memset(&cut, 0, sizeof(cut));
        assert_int_equal(smv_attach(client, resume_id, 0, &cut.stream), 0);
        hear(client, &cut, 1);
        assert_stopped(&cut, SMV_STOPPED_BY_STRING, 2);
        assert_memory_equal(cut.text, whole.text, cut.text_bytes);
        assert_int_equal(smv_drop(client, resume_id), 0);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- control tokens ---- */

#define IDS 300u

/* Almost every token is as likely as any other. */
static const struct smv_generate any = { SMV_SIZE(smv_generate),
                                         .prompt = "Once upon",
                                         .max_tokens = 600,
                                         .temperature = 100,
                                         .seed = 1,
                                         .ignore_eos = 1 };

static struct {
        char bytes[16];
        size_t count;
        bool is_control;
} vocabulary[IDS];

static void read_vocabulary(struct smv_client *client)
{
        const struct smv_piece *pieces;
        size_t count, all;

        assert_int_equal(smv_vocabulary(client, NULL, 0, 0, &pieces, &count, &all), 0);
        assert_int_equal(count, IDS);
        for (size_t i = 0; i < IDS; i++) {
                assert_true(pieces[i].count <= sizeof(vocabulary[i].bytes));
                memcpy(vocabulary[i].bytes, pieces[i].bytes, pieces[i].count);
                vocabulary[i].count = pieces[i].count;
                vocabulary[i].is_control = pieces[i].kind == SMV_PIECE_CONTROL;
        }
}

/* Returns how many of the tokens are control tokens. */
static uint32_t spell(const uint32_t *tokens, size_t count, bool controls, char *text,
                      size_t *ret_bytes)
{
        uint32_t found = 0;

        for (size_t i = 0; i < count; i++) {
                bool control = vocabulary[tokens[i]].is_control;

                found += control;
                if (control && !controls)
                        continue;
                memcpy(text + *ret_bytes, vocabulary[tokens[i]].bytes, vocabulary[tokens[i]].count);
                *ret_bytes += vocabulary[tokens[i]].count;
        }
        return found;
}

/* A token that ended the stream is not text. */
static uint32_t assert_text(const struct heard *heard, bool controls)
{
        static char text[TEXT_MOST];
        bool ended =
                heard->end.reason == SMV_END_EOS || heard->end.stopped_by == SMV_STOPPED_BY_TOKEN;
        size_t bytes = 0;
        uint32_t found = spell(heard->tokens, heard->token_count - ended, controls, text, &bytes);

        assert_int_equal(heard->text_bytes, bytes);
        assert_memory_equal(heard->text, text, bytes);
        return found;
}

static void control_text_shows_the_control_tokens_of_the_answer(void **state)
{
        static struct heard with, without;
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = any;
        struct smv_client *client;
        uint32_t found = 0, ends = 0;

        start_chat_model(fixture, CHATML);
        client = connect_library(fixture);
        read_vocabulary(client);
        for (how.seed = 1; how.seed < 9 || !found || !ends; how.seed++) {
                how.ignore_eos = how.seed % 2;
                how.control_text = 1;
                ask(client, &how, &with);
                how.control_text = 0;
                ask(client, &how, &without);
                found += assert_text(&with, true);
                assert_text(&without, false);
                assert_int_equal(with.token_count, without.token_count);
                assert_memory_equal(with.tokens, without.tokens,
                                    with.token_count * sizeof(uint32_t));
                assert_int_equal(with.end.reason, without.end.reason);
                if (with.end.reason == SMV_END_EOS) {
                        assert_int_equal(with.tokens[with.token_count - 1], END);
                        ends++;
                }
        }
        smv_close(client);
        fixture_stop(fixture);
}

static void stop_strings_see_the_text_that_the_client_sees(void **state)
{
        static struct heard whole, cut;
        static char text[TEXT_MOST];
        struct daemon_fixture *fixture = *state;
        const char *stops[] = { "THIS IS NEVER SAID", "im_start" };
        uint32_t stop_token = START;
        struct smv_generate how = any;
        struct smv_client *client;
        size_t at, bytes = 0;

        start_chat_model(fixture, CHATML);
        client = connect_library(fixture);
        read_vocabulary(client);
        do {
                how.seed++;
                ask(client, &how, &whole);
                for (at = 0; at < whole.token_count && whole.tokens[at] != START;)
                        at++;
        } while (at == whole.token_count);
        spell(whole.tokens, at, true, text, &bytes);

        how.stops = stops;
        how.stop_count = 2;
        ask(client, &how, &cut);
        assert_int_equal(cut.end.reason, SMV_END_LENGTH);
        assert_text(&cut, false);
        how.control_text = 1;
        ask(client, &how, &cut);
        assert_stopped(&cut, SMV_STOPPED_BY_STRING, 1);
        assert_int_equal(cut.token_count, at + 1);
        assert_int_equal(cut.text_bytes, bytes + strlen("<|"));
        assert_memory_equal(cut.text, text, bytes);
        assert_memory_equal(cut.text + bytes, "<|", 2);

        /* The text of a stop token is not looked at, and not shown. */
        how.stop_tokens = &stop_token;
        how.stop_token_count = 1;
        ask(client, &how, &cut);
        assert_stopped(&cut, SMV_STOPPED_BY_TOKEN, 0);
        assert_text(&cut, true);
        smv_close(client);
        fixture_stop(fixture);
}

/* The text of the parent up to where the fork began, and that of the fork, are one text. */
static void assert_fork_text(const struct heard *parent, const struct heard *fork)
{
        static char text[TEXT_MOST];
        size_t bytes = 0, before;

        assert_true(fork->position >= parent->position);
        before = fork->position - parent->position;
        assert_true(before <= parent->token_count);
        spell(parent->tokens, before, true, text, &bytes);
        before = bytes;
        spell(fork->tokens, fork->token_count, true, text, &bytes);
        assert_true(bytes - before <= fork->text_bytes && fork->text_bytes <= bytes);
        assert_memory_equal(fork->text, text + bytes - fork->text_bytes, fork->text_bytes);
}

static void every_kind_of_stream_has_control_text(void **state)
{
        static struct heard heard, forks[4];
        struct daemon_fixture *fixture = *state;
        uint32_t ids[2], found = 0;
        struct smv_generate how = any;
        struct smv_client *client;
        uint64_t resume_id;

        start_chat_model(fixture, CHATML);
        client = connect_library(fixture);
        read_vocabulary(client);
        how.control_text = 1;

        how.n = 2;
        memset(forks, 0, sizeof(forks));
        assert_int_equal(smv_generate(client, &how, &forks[0].stream), 0);
        forks[1].stream = forks[0].stream + 1;
        if (!smv_fork(client, forks[0].stream, &(struct smv_fork){ SMV_SIZE(smv_fork), .count = 2 },
                      ids)) {
                forks[2].stream = ids[0];
                forks[3].stream = ids[1];
                hear(client, forks, 4);
                for (int i = 2; i < 4; i++)
                        if (forks[i].end.code != SMV_NO_STREAM)
                                assert_fork_text(&forks[0], &forks[i]);
        } else {
                hear(client, forks, 2);
        }
        found += assert_text(&forks[0], true) + assert_text(&forks[1], true);

        how.n = 0;
        how.prompt = NULL;
        assert_int_equal(smv_handle_open(client, &any, &how.handle, NULL), 0);
        for (int turn = 0; turn < 3; turn++) {
                how.control_text = turn != 1;
                how.max_tokens = 300;
                ask(client, &how, &heard);
                found += assert_text(&heard, turn != 1);
        }

        how = any;
        how.control_text = 1;
        how.keep_ms = 60000;
        assert_int_equal(smv_generate(client, &how, &heard.stream), 0);
        resume_id = smv_resume_id(client, heard.stream);
        smv_close(client);
        client = connect_library(fixture);
        memset(&heard, 0, sizeof(heard));
        assert_int_equal(smv_attach(client, resume_id, 0, &heard.stream), 0);
        hear(client, &heard, 1);
        found += assert_text(&heard, true);
        assert_true(found > 3);
        assert_int_equal(smv_drop(client, resume_id), 0);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_end_says_which_stop_string_it_was),
                DAEMON_TEST(the_end_says_which_stop_token_it_was),
                DAEMON_TEST(every_kind_of_stream_says_which_stop_it_was),
                DAEMON_TEST(control_text_shows_the_control_tokens_of_the_answer),
                DAEMON_TEST(stop_strings_see_the_text_that_the_client_sees),
                DAEMON_TEST(every_kind_of_stream_has_control_text),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
