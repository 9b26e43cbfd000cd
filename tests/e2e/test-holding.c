/*
 * A prompt that is read once and held, for all processes of a user.  They find it, however many
 * other tokens have gone through the pool since, for as long as the request said; and no request
 * has to wait for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <samovar/client.h>

#include "tests/e2e/honest.h"

#define PROMPT 300u
#define FILLER 200u

static void fill(uint32_t *tokens, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                tokens[i] = random_below(256);
}

static uint64_t open_tokens(struct talk *talk, const uint32_t *tokens, size_t count)
{
        struct reply *reply = talk_ask(talk, "op=s tokens=I", "open", tokens, count);

        if (!reply->ok)
                fail_msg("%s", reply->message);
        return reply_uint(reply, "handle");
}

/* Reads and holds a prompt; returns its END. */
static struct smv_record_end hold(struct talk *talk, uint64_t handle, uint32_t ms)
{
        uint32_t id = ++talk->last_id;
        struct stream *stream;
        struct reply *reply;

        talk_say(talk, "op=s id=u handle=q ms=u", "hold", id, handle, ms);
        reply = talk_reply(talk, id);
        if (!reply->ok)
                fail_msg("%s", reply->message);
        assert_int_equal(reply_uint(reply, "max_tokens"), 0);
        stream = talk_end(talk, id);
        assert_int_equal(stream->token_count, 0);
        assert_int_equal(stream->text_bytes, 0);
        assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        assert_int_equal(stream->end.output_tokens, 0);
        return stream->end;
}

/* Returns how much of it is found. */
static uint32_t ask(struct talk *talk, const uint32_t *tokens, size_t count, uint32_t most)
{
        uint32_t id = ++talk->last_id;
        struct stream *stream;

        talk_say(talk, "op=s id=u tokens=I max_tokens=u", "generate", id, tokens, count, most);
        assert_true(talk_reply(talk, id)->ok);
        stream = talk_end(talk, id);
        assert_int_equal(stream->end.prompt_tokens, count);
        return stream->end.cached_tokens;
}

/* Sends prompts of others, until everything in the pool could have been evicted twice. */
static void flood(struct talk *talk)
{
        uint64_t blocks = talk_status(talk, "blocks.total");
        uint64_t until = talk_status(talk, "blocks.evicted") + 2 * blocks;
        uint32_t tokens[FILLER];

        while (talk_status(talk, "blocks.evicted") < until) {
                fill(tokens, FILLER);
                ask(talk, tokens, FILLER, 1);
        }
}

/* Asks in a process of its own, with the library; returns how many of these tokens are found. */
static uint32_t ask_elsewhere(const struct house *house, const uint32_t *tokens, size_t count)
{
        uint32_t cached;
        int pipes[2];
        pid_t pid;

        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        if (!pid) {
                struct smv_connect where = { SMV_SIZE(smv_connect), .socket = house->socket };
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
        assert_int_equal(process_wait(pid), 0);
        assert_int_equal(read(pipes[0], &cached, sizeof(cached)), sizeof(cached));
        close(pipes[0]);
        return cached;
}

/* One process reads and holds it; another finds all of it.  Tokens that are not held are gone. */
static void what_one_process_holds_another_finds(void **state)
{
        uint32_t held[PROMPT + 5], other[PROMPT];
        struct house *house = *state;
        struct smv_record_end end;
        struct talk *talk;
        uint64_t handle;

        HOUSE(house, FAST, "--threads", "1", "--ctx", "512", "--kv-bytes", "1M",
              "--uid-held-percent", "60");
        talk = talk_greet(house);
        fill(held, PROMPT + 5);
        fill(other, PROMPT);
        handle = open_tokens(talk, held, PROMPT);
        end = hold(talk, handle, 60000);
        assert_int_equal(end.prompt_tokens, PROMPT);
        assert_int_equal(end.cached_tokens, 0);
        end = hold(talk, handle, 60000); /* it is there */
        assert_int_equal(end.cached_tokens, PROMPT - 1);
        assert_int_equal(talk_status(talk, "charges.0.held_blocks"), (PROMPT + 15) / 16);

        ask(talk, other, PROMPT, 1);
        flood(talk);
        assert_int_equal(ask_elsewhere(house, held, PROMPT + 5), PROMPT);
        assert_int_equal(ask(talk, other, PROMPT, 1), 0);

        assert_true(talk_ask(talk, "op=s handle=q ms=u", "hold", handle, 0u)->ok);
        assert_int_equal(talk_status(talk, "charges.0.held_blocks"), 0);
        flood(talk);
        assert_int_equal(ask_elsewhere(house, held, PROMPT + 5), 0);
        talk_close(talk);
        house_stop(house);
}

/* All of the pool is held, and a request that needs all of it runs as usual. */
static void nobody_waits_for_what_is_held(void **state)
{
        static uint32_t tokens[8192];
        struct house *house = *state;
        struct talk *talk;
        uint64_t blocks;

        HOUSE(house, FAST, "--threads", "1", "--ctx", "2048", "--kv-bytes", "600K",
              "--uid-held-percent", "100");
        talk = talk_greet(house);
        blocks = talk_status(talk, "blocks.total");
        assert_in_range(16 * blocks, 1, 2000);
        fill(tokens, (uint32_t)(16 * blocks));
        hold(talk, open_tokens(talk, tokens, 16 * blocks), 60000);
        assert_int_equal(talk_status(talk, "charges.0.held_blocks"), blocks);
        fill(tokens, (uint32_t)(16 * blocks));
        assert_int_equal(ask(talk, tokens, 16 * blocks, 1), 0);
        talk_close(talk);
        house_stop(house);
}

static void it_ends_with_its_time_and_with_who_asked(void **state)
{
        struct house *house = *state;
        struct talk *talk, *witness;
        uint32_t tokens[PROMPT];
        uint64_t handle, began;

        HOUSE(house, FAST, "--threads", "1");
        talk = talk_greet(house);
        witness = talk_greet(house);
        fill(tokens, PROMPT);
        handle = open_tokens(talk, tokens, PROMPT);
        began = now_ms();
        hold(talk, handle, 200);
        while (talk_status(witness, "charges.0.held_blocks"))
                sleep_ms(5);
        assert_true(now_ms() - began >= 200);

        hold(talk, handle, 60000);
        assert_true(talk_status(witness, "charges.0.held_blocks") > 0);
        talk_close(talk);
        while (talk_status(witness, "charges.0.held_blocks"))
                sleep_ms(5);
        talk_close(witness);
        house_stop(house);
}

static void what_may_not_be_held_is_refused_with_the_numbers(void **state)
{
        struct house *house = *state;
        uint32_t tokens[PROMPT];
        struct reply *reply;
        struct talk *talk;
        uint64_t handle;
        char text[96];

        HOUSE(house, FAST, "--threads", "1", "--ctx", "512", "--kv-bytes", "1M");
        talk = talk_greet(house);
        fill(tokens, PROMPT);
        handle = open_tokens(talk, tokens, PROMPT);
        reply = talk_ask(talk, "op=s handle=q ms=u", "hold", handle, 1000u);
        assert_int_equal(reply->code, SMV_QUOTA);
        snprintf(text, sizeof(text), "%u more would be over this user's limit of %u held_blocks",
                 (PROMPT + 15) / 16, (unsigned)(talk_status(talk, "blocks.total") / 4));
        assert_string_equal(reply->message, text);
        assert_int_equal(talk_ask(talk, "op=s handle=q ms=u", "hold", handle + 1, 1000u)->code,
                         SMV_NO_HANDLE);
        assert_int_equal(talk_ask(talk, "op=s handle=q", "hold", handle)->code, SMV_MISSING);
        talk_close(talk);
        house_stop(house);
}

static void the_library_says_it(void **state)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Tea is a drink." };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct house *house = *state;
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = house->socket };
        struct smv_client *client;
        uint64_t handle;
        uint32_t stream;

        HOUSE(house, "--threads", "1");
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_handle_open(client, &options, &handle, NULL), 0);
        assert_int_equal(smv_handle_hold(client, handle, 60000, SMV_CLASS_NORMAL, &stream), 0);
        assert_int_equal(smv_next(client, &event, -1), 1);
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(event.stream, stream);
        assert_int_equal(event.prompt_tokens, 16);
        assert_int_equal(event.output_tokens, 0);
        assert_int_equal(smv_handle_hold(client, handle, 0, SMV_CLASS_BACKGROUND, NULL), 0);
        assert_int_equal(smv_next(client, &event, 0), -ENODATA);
        assert_int_equal(smv_handle_hold(client, handle + 1, 5, SMV_CLASS_NORMAL, &stream),
                         -EREMOTEIO);
        smv_close(client);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(what_one_process_holds_another_finds),
                STORY(nobody_waits_for_what_is_held),
                STORY(it_ends_with_its_time_and_with_who_asked),
                STORY(what_may_not_be_held_is_refused_with_the_numbers),
                STORY(the_library_says_it),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        return cmocka_run_group_tests(stories, NULL, NULL);
}
