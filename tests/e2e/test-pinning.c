/*
 * A prompt that is read once and pinned, for all processes of a user.  They find it, however many
 * other tokens have gone through the pool since, for as long as the request said; and no request
 * has to wait for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <samovar/client.h>

#include "tests/e2e/honest-client.h"

#define PROMPT 300u
#define FILLER 200u

static uint64_t open_tokens(struct raw_client *client, const uint32_t *tokens, size_t count)
{
        struct reply *reply = raw_client_call(client, "op=s tokens=I", "open", tokens, count);

        if (!reply->ok)
                fail_msg("%s", reply->message);
        return reply_uint(reply, "handle");
}

/* Reads and pins a prompt; returns its END. */
static struct smv_record_end pin(struct raw_client *client, uint64_t handle, uint32_t ms)
{
        uint32_t id = ++client->last_id;
        struct stream *stream;
        struct reply *reply;

        raw_client_send_frame(client, "op=s id=u handle=q pin_ms=u", "pin", id, handle, ms);
        reply = raw_client_await_reply(client, id);
        if (!reply->ok)
                fail_msg("%s", reply->message);
        assert_int_equal(reply_uint(reply, "max_tokens"), 0);
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->token_count, 0);
        assert_int_equal(stream->text_bytes, 0);
        assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        assert_int_equal(stream->end.output_tokens, 0);
        return stream->end;
}

/* Returns how much of it is found. */
static uint32_t ask(struct raw_client *client, const uint32_t *tokens, size_t count, uint32_t most)
{
        uint32_t id = ++client->last_id;
        struct stream *stream;

        raw_client_send_frame(client, "op=s id=u tokens=I max_tokens=u", "generate", id, tokens,
                              count, most);
        assert_true(raw_client_await_reply(client, id)->ok);
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->end.prompt_tokens, count);
        return stream->end.cached_tokens;
}

/* Sends prompts of others, until everything in the pool could have been evicted twice. */
static void flood(struct raw_client *client)
{
        uint64_t blocks = raw_client_status(client, "blocks.total");
        uint64_t until = raw_client_status(client, "blocks.evicted") + 2 * blocks;
        uint32_t tokens[FILLER];

        while (raw_client_status(client, "blocks.evicted") < until) {
                random_prompt(tokens, FILLER);
                ask(client, tokens, FILLER, 1);
        }
}

/* Asks in a process of its own, with the library; returns how many of these tokens are found. */
static uint32_t ask_elsewhere(const struct daemon_fixture *fixture, const uint32_t *tokens,
                              size_t count)
{
        uint32_t cached;
        int pipes[2];
        pid_t pid;

        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        if (!pid) {
                struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket };
                struct smv_generate options = { SMV_SIZE(smv_generate), .tokens = tokens,
                                                .token_count = count, .max_tokens = 2 };
                struct smv_event event = { SMV_SIZE(smv_event) };
                struct smv_client *client;
                uint32_t stream;

                if (smv_connect(&where, &client) || smv_generate(client, &options, &stream))
                        _exit(1);
                while (event.kind != SMV_EVENT_END)
                        if (smv_next(client, &event, -1) != 1)
                                _exit(2);
                if (write(pipes[1], &event.cached_tokens, sizeof(cached)) != sizeof(cached))
                        _exit(3);
                smv_close(client);
                _exit(0);
        }
        close(pipes[1]);
        assert_int_equal(await_process(pid), 0);
        assert_int_equal(read(pipes[0], &cached, sizeof(cached)), sizeof(cached));
        close(pipes[0]);
        return cached;
}

/* One process reads and pins it; another finds all of it.  Other tokens are evicted. */
static void a_prompt_pinned_by_one_process_is_found_by_another(void **state)
{
        uint32_t pinned[PROMPT + 5], other[PROMPT];
        struct daemon_fixture *fixture = *state;
        struct smv_record_end end;
        struct raw_client *client;
        uint64_t handle;

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--ctx", "512", "--kv-bytes", "1M",
                     "--uid-pinned-percent", "60");
        client = raw_client_greet(fixture);
        random_prompt(pinned, PROMPT + 5);
        random_prompt(other, PROMPT);
        handle = open_tokens(client, pinned, PROMPT);
        end = pin(client, handle, 60000);
        assert_int_equal(end.prompt_tokens, PROMPT);
        assert_int_equal(end.cached_tokens, 0);
        end = pin(client, handle, 60000); /* it is there */
        assert_int_equal(end.cached_tokens, PROMPT - 1);
        assert_int_equal(raw_client_status(client, "users.0.pinned_blocks"), (PROMPT + 15) / 16);

        ask(client, other, PROMPT, 1);
        flood(client);
        assert_int_equal(ask_elsewhere(fixture, pinned, PROMPT + 5), PROMPT);
        assert_int_equal(ask(client, other, PROMPT, 1), 0);

        assert_true(raw_client_call(client, "op=s handle=q pin_ms=u", "pin", handle, 0u)->ok);
        assert_int_equal(raw_client_status(client, "users.0.pinned_blocks"), 0);
        flood(client);
        assert_int_equal(ask_elsewhere(fixture, pinned, PROMPT + 5), 0);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* All of the pool is pinned, and a request that needs all of it runs as usual. */
static void requests_do_not_wait_for_pinned_blocks(void **state)
{
        static uint32_t tokens[8192];
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint64_t blocks;

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--ctx", "2048", "--kv-bytes",
                     "600K", "--uid-pinned-percent", "100");
        client = raw_client_greet(fixture);
        blocks = raw_client_status(client, "blocks.total");
        assert_in_range(16 * blocks, 1, 2000);
        random_prompt(tokens, (uint32_t)(16 * blocks));
        pin(client, open_tokens(client, tokens, 16 * blocks), 60000);
        assert_int_equal(raw_client_status(client, "users.0.pinned_blocks"), blocks);
        random_prompt(tokens, (uint32_t)(16 * blocks));
        assert_int_equal(ask(client, tokens, 16 * blocks, 1), 0);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_pin_ends_with_its_time_and_with_its_connection(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *witness;
        uint32_t tokens[PROMPT];
        uint64_t handle, began;

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1");
        client = raw_client_greet(fixture);
        witness = raw_client_greet(fixture);
        random_prompt(tokens, PROMPT);
        handle = open_tokens(client, tokens, PROMPT);
        began = now_ms();
        pin(client, handle, 200);
        while (raw_client_status(witness, "users.0.pinned_blocks"))
                sleep_ms(5);
        assert_true(now_ms() - began >= 200);

        pin(client, handle, 60000);
        assert_true(raw_client_status(witness, "users.0.pinned_blocks") > 0);
        raw_client_close(client);
        while (raw_client_status(witness, "users.0.pinned_blocks"))
                sleep_ms(5);
        raw_client_close(witness);
        fixture_stop(fixture);
}

static void refuses_a_pin_over_the_limit_and_states_the_limit(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint32_t tokens[PROMPT];
        struct reply *reply;
        struct raw_client *client;
        uint64_t handle;
        char text[120];

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--ctx", "512", "--kv-bytes", "1M");
        client = raw_client_greet(fixture);
        random_prompt(tokens, PROMPT);
        handle = open_tokens(client, tokens, PROMPT);
        reply = raw_client_call(client, "op=s handle=q pin_ms=u", "pin", handle, 1000u);
        assert_int_equal(reply->code, SMV_QUOTA);
        snprintf(text, sizeof(text),
                 "you have 0 pinned blocks; %u more would exceed the limit of %u "
                 "(uid_pinned_percent)",
                 (PROMPT + 15) / 16, (unsigned)(raw_client_status(client, "blocks.total") / 4));
        assert_string_equal(reply->message, text);
        assert_int_equal(
                raw_client_call(client, "op=s handle=q pin_ms=u", "pin", handle + 1, 1000u)->code,
                SMV_NO_HANDLE);
        assert_int_equal(raw_client_call(client, "op=s handle=q", "pin", handle)->code,
                         SMV_MISSING);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void the_library_pins_and_unpins_a_handle(void **state)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Tea is a drink." };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        struct smv_client *client;
        uint64_t handle;
        uint32_t stream;

        START_DAEMON(fixture, "--threads", "1");
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_handle_open(client, &options, &handle, NULL), 0);
        assert_int_equal(smv_handle_pin(client, handle, 60000, SMV_PRIORITY_NORMAL, &stream), 0);
        assert_int_equal(smv_next(client, &event, -1), 1);
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(event.stream, stream);
        assert_int_equal(event.prompt_tokens, 16);
        assert_int_equal(event.output_tokens, 0);
        assert_int_equal(smv_handle_pin(client, handle, 0, SMV_PRIORITY_BACKGROUND, NULL), 0);
        assert_int_equal(smv_next(client, &event, 0), -ENODATA);
        assert_int_equal(smv_handle_pin(client, handle + 1, 5, SMV_PRIORITY_NORMAL, &stream),
                         -EREMOTEIO);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_prompt_pinned_by_one_process_is_found_by_another),
                DAEMON_TEST(requests_do_not_wait_for_pinned_blocks),
                DAEMON_TEST(a_pin_ends_with_its_time_and_with_its_connection),
                DAEMON_TEST(refuses_a_pin_over_the_limit_and_states_the_limit),
                DAEMON_TEST(the_library_pins_and_unpins_a_handle),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
