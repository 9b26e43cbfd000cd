/*
 * The text of a stream, as a client of the library sees it: which stop ended it.  The expected text
 * is computed from the stream's tokens and the pieces of the vocabulary.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define TOKENS_MOST 700u
#define TEXT_MOST   (TOKENS_MOST * 16)

/* What came of one stream. */
struct heard {
        uint32_t stream, tokens[TOKENS_MOST];
        char text[TEXT_MOST];
        size_t token_count, text_bytes;
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_end_says_which_stop_string_it_was),
                DAEMON_TEST(the_end_says_which_stop_token_it_was),
                DAEMON_TEST(every_kind_of_stream_says_which_stop_it_was),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
