/*
 * Forks that are refused, and the state after a client goes: refusals by name, all of several or
 * none, streams that stall or end meanwhile, handles whose stream is forked, and the library.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <samovar/client.h>

#include "tests/e2e/talk.h"

static const struct want endless = { .prompt = "Once upon a time",
                                     .max_tokens = ENDLESS,
                                     .temperature = 1,
                                     .seed = 3,
                                     .ignore_eos = true };

static void assert_refused(const struct reply *reply, enum smv_code code, const char *field)
{
        assert_false(reply->ok);
        if (reply->code != code)
                fail_msg("%s, not %u", reply->message, code);
        assert_string_equal(reply->field, field);
}

/* Begins a stream and waits until its first token has come. */
static uint32_t begin_endless(struct talk *talk)
{
        uint32_t id = talk_generate(talk, &endless);

        assert_true(talk_reply(talk, id)->ok);
        while (!talk_stream(talk, id))
                talk_turn(talk, 100);
        return id;
}

/* Forks with ids from `id` on, and waits for the reply. */
static struct reply *fork_stream(struct talk *talk, uint32_t stream, uint32_t count,
                                 uint32_t max_tokens)
{
        uint32_t id = talk->last_id + 1;

        talk->last_id += count;
        talk_say(talk, "op=s id=u stream=u count=u max_tokens=u", "fork", id, stream, count,
                 max_tokens);
        return talk_reply(talk, id);
}

static void cancel(struct talk *talk, uint32_t id)
{
        assert_true(talk_ask(talk, "op=s stream=u", "cancel", id)->ok);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_CANCELLED);
}

static void what_cannot_be_forked_is_refused_by_name(void **state)
{
        struct house *house = *state;
        struct talk *talk, *other;
        struct reply *reply;
        uint32_t id, first;

        ENDLESS_HOUSE(house, "--threads", "1", "--uid-requests", "6");
        talk = talk_greet(house);
        other = talk_greet(house);
        id = begin_endless(talk);
        assert_refused(talk_ask(talk, "op=s stream=u count=u", "fork", id + 1, 1u), SMV_NO_STREAM,
                       "stream");
        assert_refused(talk_ask(other, "op=s stream=u count=u", "fork", id, 1u), SMV_NO_STREAM,
                       "stream");
        assert_refused(talk_ask(talk, "op=s stream=u count=u", "fork", id, 0u), SMV_BAD_VALUE,
                       "count");
        assert_refused(
                talk_ask(talk, "op=s stream=u count=u handle=q", "fork", id, 1u, UINT64_C(1)),
                SMV_BAD_FIELD, "stream");
        assert_refused(talk_ask(talk, "op=s count=u", "fork", 1u), SMV_MISSING, "handle");
        assert_refused(talk_ask(talk, "op=s stream=u count=u prompt=s", "fork", id, 1u, "x"),
                       SMV_BAD_FIELD, "prompt");
        reply = talk_ask(talk, "op=s stream=u count=u choice=u", "fork", id, 2u, UINT32_MAX);
        assert_refused(reply, SMV_BAD_VALUE, "choice");
        reply = fork_stream(talk, id, 1, 48561);
        assert_refused(reply, SMV_TOO_LONG, "max_tokens");
        assert_string_equal(reply->message,
                            "the stream may have 1000016 tokens by then and max_tokens "
                            "is 48561; together they may be " CONTEXT_LONG);

        /* All or none.  A refused fork uses up no choice, and the reply has the id of the
         * request. */
        assert_refused(fork_stream(talk, id, 6, 10), SMV_QUOTA, "");
        assert_int_equal(talk_status(talk, "requests.alive"), 1);
        reply = fork_stream(talk, id, 5, 48560);
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "choice"), 1);
        first = (uint32_t)reply->id;
        talk_say(talk, "op=s id=u stream=u count=u", "fork", first + 4, id, 1u);
        assert_refused(talk_reply(talk, first + 4), SMV_DUP_ID, "id");
        talk_say(talk, "op=s id=u prompt=s n=u", "generate", id - 1, "x", 2u);
        assert_refused(talk_reply(talk, id - 1), SMV_DUP_ID, "id");
        cancel(talk, id);
        assert_refused(talk_ask(talk, "op=s stream=u count=u", "fork", id, 1u), SMV_NO_STREAM,
                       "stream");
        for (uint32_t i = 0; i < 5; i++)
                cancel(talk, first + i);
        talk_close(talk);
        talk_close(other);
        house_stop(house);
}

/* The stream had its tokens before the fork; a fork with the same choice has the rest. */
static void assert_goes_on(const struct stream *whole, const struct stream *fork, uint32_t prompt)
{
        uint32_t at = fork->end.prompt_tokens - prompt;

        assert_true(fork->end.prompt_tokens >= prompt);
        assert_int_equal(at + fork->token_count, whole->token_count);
        assert_memory_equal(fork->tokens, whole->tokens + at, fork->token_count * sizeof(uint32_t));
        assert_int_equal(fork->end.reason, whole->end.reason);
}

/* With its parent's choice a fork repeats its parent's tokens, so a test can compare them. */
static uint32_t shadow(struct talk *talk, uint32_t stream)
{
        uint32_t id = ++talk->last_id;

        talk_say(talk, "op=s id=u stream=u count=u choice=u", "fork", id, stream, 1u, 0u);
        return id;
}

/* With their log-probabilities each stream alone is more than a ring and a socket hold without a
 * reader. */
static void a_stream_that_is_stalled_is_forked_where_it_is(void **state)
{
        struct house *house = *state;
        struct want want = endless;
        uint32_t ids[2], forks[2];
        struct stream *whole;
        struct talk *talk, *other;

        ENDLESS_HOUSE(house, "--threads", "1", "--ring-bytes", "65536");
        talk = talk_greet(house);
        other = talk_greet(house);
        want.max_tokens = LONG_TOLD;
        want.told = TOLD_MOST;
        whole = talk_whole(other, &want);
        for (uint32_t i = 0; i < 2; i++)
                ids[i] = talk_generate(talk, &want);
        while (talk_status(other, "requests.stalled") < 2)
                sleep_ms(10);
        for (uint32_t i = 0; i < 2; i++)
                forks[i] = shadow(talk, ids[i]);
        for (uint32_t i = 0; i < 2; i++) {
                assert_true(talk_reply(talk, ids[i])->ok);
                assert_true(talk_reply(talk, forks[i])->ok);
                assert_same_stream(talk_end(talk, ids[i]), whole);
                assert_goes_on(whole, talk_end(talk, forks[i]), 17);
        }
        talk_close(talk);
        talk_close(other);
        house_stop(house);
}

/* There is one place: the first stream runs, and the second waits.  The third one's prompt is read
 * when it gets the place. */
static void whoever_waits_is_forked_at_the_end_of_his_prompt(void **state)
{
        struct want waits = { .prompt = "Tea is", .max_tokens = 40, .seed = 4, .ignore_eos = true };
        struct house *house = *state;
        uint32_t first, id, fork, deeper;
        struct talk *talk, *other;
        struct stream *whole;

        ENDLESS_HOUSE(house, "--threads", "1", "--max-seqs", "1");
        talk = talk_greet(house);
        other = talk_greet(house);
        whole = talk_whole(other, &waits);
        first = begin_endless(talk);
        id = talk_generate(talk, &waits);
        fork = shadow(talk, id);
        deeper = shadow(talk, fork);
        assert_true(talk_reply(talk, id)->ok);
        if (!talk_reply(talk, fork)->ok) /* its prompt was still with the tokenizer */
                fork = shadow(talk, id), deeper = shadow(talk, fork);
        assert_true(talk_reply(talk, deeper)->ok);
        cancel(talk, first);
        assert_same_stream(talk_end(talk, id), whole);
        assert_same_stream(talk_end(talk, fork), whole);
        assert_same_stream(talk_end(talk, deeper), whole);
        assert_int_equal(talk_end(talk, fork)->end.prompt_tokens, 7);
        talk_close(talk);
        talk_close(other);
        house_stop(house);
}

/*
 * The tokenizer needs a while for this prompt: one of four streams is cancelled, then all four.
 * Another stream has the only place, so that none of them is done before.
 */
static void of_many_each_is_cancelled_by_its_own_number(void **state)
{
        struct house *house = *state;
        char *text = calloc(1, 1700);
        struct talk *talk, *other;
        struct reply *reply;
        uint32_t id, first;

        memset(text, 'a', 1699);
        ENDLESS_HOUSE(house, "--threads", "1", "--max-seqs", "1", "--grace-ms", "3600000");
        talk = talk_greet(house);
        other = talk_greet(house);
        for (uint32_t all = 0; all < 2; all++) {
                first = begin_endless(other);
                id = talk->last_id + 1;
                talk->last_id += 4;
                talk_say(talk, "op=s id=u prompt=s n=u max_tokens=u seed=u ignore_eos=y",
                         "generate", id, text, 4u, 20u, 1u, 1);
                for (uint32_t i = 0; i < 4; i++)
                        if (all || i == 2)
                                talk_say(talk, "op=s id=u stream=u", "cancel", ++talk->last_id,
                                         id + i);
                reply = talk_reply(talk, id);
                for (uint32_t i = 0; reply->ok && i < 4; i++)
                        if (all || i == 2)
                                assert_int_equal(talk_end(talk, id + i)->end.reason,
                                                 SMV_END_CANCELLED);
                cancel(other, first);
                if (!reply->ok) {
                        assert_int_equal(reply->code, SMV_CANCELLED);
                        assert_true(all);
                }
                for (uint32_t i = 0; !all && i < 4; i++)
                        if (i != 2)
                                assert_int_equal(talk_end(talk, id + i)->end.reason,
                                                 SMV_END_LENGTH);
        }
        free(text);
        talk_close(talk);
        talk_close(other);
        house_stop(house);
}

/* Forks on their way, forks of forks, parents just cancelled: a hang-up ends them in every
 * state. */
static void whoever_hangs_up_with_forks_leaves_nothing(void **state)
{
        struct house *house = *state;

        struct want lengthy = endless;

        lengthy.max_tokens = 1500;
        HOUSE(house, "--threads", "1", "--uid-requests", "512");
        for (uint32_t i = 0; i < scaled(20, 2000); i++) {
                struct talk *talk = talk_greet(house);
                uint32_t id = talk_generate(talk, &lengthy);

                assert_true(talk_reply(talk, id)->ok);
                if (random_below(2))
                        talk_turn(talk, 5);
                for (uint32_t j = 0; j < random_below(6); j++) {
                        uint32_t fork = talk->last_id + 1;

                        talk->last_id += 3;
                        talk_say(talk, "op=s id=u stream=u count=u max_tokens=u", "fork", fork, id,
                                 3u, 1 + random_below(20));
                        if (!random_below(3))
                                talk_say(talk, "op=s id=u stream=u", "cancel", ++talk->last_id, id);
                        id = fork + random_below(3);
                }
                if (random_below(2))
                        talk_turn(talk, 3);
                talk_close(talk);
        }
        house_rest(house);
        house_stop(house);
}

static void what_a_handle_generates_is_forked_and_the_handle_is_not(void **state)
{
        struct house *house = *state;
        struct stream *parent, *fork;
        uint32_t id, forked, at;
        struct talk *talk;
        uint64_t handle;

        ENDLESS_HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        handle = reply_uint(talk_ask(talk, "op=s prompt=s", "open", "Tea"), "handle");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u handle=q max_tokens=u ignore_eos=y", "generate", id, handle,
                 ENDLESS, 1);
        while (!talk_stream(talk, id))
                talk_turn(talk, 100);
        assert_refused(talk_ask(talk, "op=s handle=q count=u", "fork", handle, 1u), SMV_HANDLE_BUSY,
                       "handle");
        forked = ++talk->last_id;
        talk_say(talk, "op=s id=u stream=u count=u choice=u max_tokens=u", "fork", forked, id, 1u,
                 0u, 50u);
        assert_true(talk_reply(talk, forked)->ok);
        fork = talk_end(talk, forked);
        assert_int_equal(fork->token_count, 50);
        at = fork->end.prompt_tokens - 4;
        while (talk_stream(talk, id)->token_count < at + 50)
                talk_turn(talk, 100);
        cancel(talk, id);
        parent = talk_stream(talk, id);
        assert_memory_equal(fork->tokens, parent->tokens + at, 50 * sizeof(uint32_t));
        assert_int_equal(reply_uint(talk_ask(talk, "op=s handle=q tokens=I", "append", handle,
                                             (uint32_t[]){ 65 }, (size_t)1),
                                    "length"),
                         4 + parent->token_count + 1);
        talk_close(talk);
        house_stop(house);
}

/* ---- the library ---- */

struct heard {
        uint32_t stream, tokens[512], branched;
        size_t count;
        bool ended;
};

/* Reads one event, and adds it to the stream among these that it belongs to. */
static void hear_one(struct smv_client *client, struct heard *heard, size_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        size_t i = 0;

        assert_int_equal(smv_next(client, &event, -1), 1);
        while (i < count && heard[i].stream != event.stream)
                i++;
        assert_true(i < count && heard[i].count + event.token_count <= 512);
        if (event.kind == SMV_EVENT_TOKENS)
                memcpy(heard[i].tokens + heard[i].count, event.tokens,
                       event.token_count * sizeof(uint32_t));
        else
                heard[i].branched = event.prompt_tokens;
        heard[i].ended = event.kind == SMV_EVENT_END;
        heard[i].count += event.kind == SMV_EVENT_TOKENS ? event.token_count : 0;
}

static void hear_all(struct smv_client *client, struct heard *heard, size_t count)
{
        for (size_t i = 0; i < count; i++)
                while (!heard[i].ended)
                        hear_one(client, heard, count);
}

static void hear_alone(struct smv_client *client, const struct smv_generate *options,
                       struct heard *ret_heard)
{
        *ret_heard = (struct heard){ .count = 0 };
        assert_int_equal(smv_generate(client, options, &ret_heard->stream), 0);
        hear_all(client, ret_heard, 1);
}

static void assert_heard_same(const struct heard *a, const struct heard *b)
{
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->tokens, b->tokens, a->count * sizeof(uint32_t));
}

static struct smv_client *meet(const struct house *house)
{
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = house->socket,
                                     .transport = talk_transport() == TALK_SOCKET
                                                          ? SMV_TRANSPORT_SOCKET
                                                          : SMV_TRANSPORT_RING };
        struct smv_client *client;

        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

static void the_library_asks_for_many(void **state)
{
        struct smv_generate options = {
                SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 30, .seed = 5,
                .ignore_eos = 1,        .n = 3,          .choice = 7
        };
        struct heard heard[3] = { 0 }, alone;
        struct house *house = *state;
        struct smv_client *client;

        HOUSE(house, "--threads", "1");
        client = meet(house);
        assert_int_equal(smv_generate(client, &options, &heard[0].stream), 0);
        heard[1].stream = heard[0].stream + 1;
        heard[2].stream = heard[0].stream + 2;
        hear_all(client, heard, 3);
        options.n = 0;
        for (uint32_t i = 0; i < 3; i++, options.choice++) {
                hear_alone(client, &options, &alone);
                assert_heard_same(&heard[i], &alone);
        }
        assert_true(memcmp(heard[0].tokens, heard[1].tokens, sizeof(uint32_t) * 30));
        options.n = 65;
        assert_int_equal(smv_generate(client, &options, &heard[0].stream), -EINVAL);
        smv_close(client);
        house_stop(house);
}

static void the_library_forks(void **state)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Tea", .max_tokens = 500,
                                        .seed = 5, .ignore_eos = 1 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 2, .max_tokens = 20 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct heard heard[3] = { 0 }, again;
        uint32_t streams[2], tokens[600] = { 256, 'T', 'e', 'a' };
        struct house *house = *state;
        struct smv_client *client;

        HOUSE(house, "--threads", "1");
        client = meet(house);
        assert_int_equal(smv_generate(client, &options, &heard[0].stream), 0);
        while (!heard[0].count)
                hear_one(client, heard, 1);
        assert_int_equal(smv_fork(client, heard[0].stream, &fork, streams), 0);
        heard[1].stream = streams[0];
        heard[2].stream = streams[1];
        hear_all(client, heard, 3);
        assert_int_equal(heard[0].count, 500);
        assert_int_equal(heard[1].branched, heard[2].branched);

        /* The tokens up to the fork, sent as a whole, with the same draws. */
        memcpy(tokens + 4, heard[0].tokens, sizeof(uint32_t) * 500);
        options = (struct smv_generate){
                SMV_SIZE(smv_generate), .tokens = tokens, .token_count = heard[1].branched,
                .max_tokens = 20,       .seed = 5,        .ignore_eos = 1
        };
        for (uint32_t i = 1; i < 3; i++) {
                options.choice = i;
                hear_alone(client, &options, &again);
                assert_heard_same(&heard[i], &again);
        }

        assert_int_equal(smv_fork(client, heard[0].stream, &fork, streams), -EREMOTEIO);
        smv_error(client, &problem);
        assert_int_equal(problem.code, SMV_NO_STREAM);
        fork.count = 0;
        assert_int_equal(smv_fork(client, heard[0].stream, &fork, streams), -EINVAL);
        smv_close(client);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(what_cannot_be_forked_is_refused_by_name),
                STORY(a_stream_that_is_stalled_is_forked_where_it_is),
                STORY(whoever_waits_is_forked_at_the_end_of_his_prompt),
                STORY(of_many_each_is_cancelled_by_its_own_number),
                STORY(whoever_hangs_up_with_forks_leaves_nothing),
                STORY(what_a_handle_generates_is_forked_and_the_handle_is_not),
                STORY(the_library_asks_for_many),
                STORY(the_library_forks),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(stories, NULL, NULL);
}
