/* What a stream that is kept has beside its tokens, and what goes on from it while it runs. */
#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/talk.h"

#define TOKENS_MAX 512u
#define EACH       33u /* logprobs of a token, its own among them */
#define CHILDREN   2u

struct heard {
        uint32_t stream, from, count; /* from: the position of the first */
        uint32_t tokens[TOKENS_MAX];
        struct smv_logprob logprobs[TOKENS_MAX * EACH];
        size_t logprob_count;
        struct smv_event end;
};

static struct smv_client *meet(const struct house *house)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = house->socket,
                                  .transport = talk_transport() == TALK_SOCKET
                                                       ? SMV_TRANSPORT_SOCKET
                                                       : SMV_TRANSPORT_RING };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

static void note(struct heard *told, const struct smv_event *event)
{
        size_t entries = event->logprobs ? event->token_count * (1 + event->top_count) : 0;

        if (event->kind == SMV_EVENT_END) {
                told->end = *event;
                return;
        }
        if (!told->count)
                told->from = event->position;
        assert_true(told->count + event->token_count <= TOKENS_MAX);
        memcpy(told->tokens + told->count, event->tokens, event->token_count * sizeof(uint32_t));
        told->count += (uint32_t)event->token_count;
        assert_true(told->logprob_count + entries <= TOKENS_MAX * EACH);
        if (entries)
                memcpy(told->logprobs + told->logprob_count, event->logprobs,
                       entries * sizeof(*event->logprobs));
        told->logprob_count += entries;
}

/* One event of any of these. */
static void hear(struct smv_client *client, struct heard *told, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t which = 0;

        assert_int_equal(smv_next(client, &event, 60000), 1);
        while (which < count && told[which].stream != event.stream)
                which++;
        assert_true(which < count);
        note(&told[which], &event);
}

static void hear_all(struct smv_client *client, struct heard *told, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                while (told[i].end.kind != SMV_EVENT_END)
                        hear(client, told, count);
}

static void assert_same(const struct heard *a, const struct heard *b)
{
        assert_int_equal(a->end.reason, b->end.reason);
        assert_int_equal(a->from, b->from);
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->tokens, b->tokens, a->count * sizeof(uint32_t));
        assert_int_equal(a->logprob_count, b->logprob_count);
        assert_memory_equal(a->logprobs, b->logprobs, a->logprob_count * sizeof(*a->logprobs));
}

static void what_was_told_of_its_tokens_is_told_again_to_who_attaches(void **state)
{
        static struct heard first, again, plain;
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once upon a time",
                                    .max_tokens = 100,      .set = SMV_SET_TEMPERATURE,
                                    .ignore_eos = 1,        .logprobs = EACH - 1,
                                    .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint64_t kept;

        first = again = plain = (struct heard){ 0 };
        HOUSE(house, NULL);
        client = meet(house);
        assert_int_equal(smv_generate(client, &ask, &first.stream), 0);
        kept = smv_kept(client, first.stream);
        hear_all(client, &first, 1);
        assert_int_equal(first.count, 100);
        assert_int_equal(first.logprob_count, 100 * EACH);

        other = meet(house);
        assert_int_equal(smv_attach(other, kept, 0, &again.stream), 0);
        hear_all(other, &again, 1);
        assert_same(&first, &again);
        assert_int_equal(smv_drop(other, kept), 0);

        ask.keep_ms = 0;
        assert_int_equal(smv_generate(client, &ask, &plain.stream), 0);
        hear_all(client, &plain, 1);
        assert_same(&first, &plain);
        smv_close(other);
        smv_close(client);
        house_stop(house);
}

/* The same tokens up to there, sent as a whole with the same choice. */
static void replay(struct smv_client *client, const struct smv_generate *ask,
                   const struct heard *parent, const struct heard *child, uint32_t choice)
{
        static struct heard whole;
        uint32_t tokens[2 * TOKENS_MAX], shared = child->from - (uint32_t)ask->token_count;
        struct smv_generate again = *ask;

        assert_true(shared <= parent->count);
        memcpy(tokens, ask->tokens, ask->token_count * sizeof(*tokens));
        memcpy(tokens + ask->token_count, parent->tokens, shared * sizeof(*tokens));
        again.tokens = tokens;
        again.token_count = child->from;
        again.max_tokens = ask->max_tokens - shared;
        again.choice = choice;
        again.keep_ms = 0;
        whole = (struct heard){ 0 };
        assert_int_equal(smv_generate(client, &again, &whole.stream), 0);
        hear_all(client, &whole, 1);
        assert_same(&whole, child);
}

static void it_is_forked_while_it_runs_and_its_forks_are_the_connections(void **state)
{
        static const uint32_t ids[] = { 'O', 'n', 'c', 'e', ' ', 'u', 'p', 'o', 'n' };
        struct smv_generate ask = { SMV_SIZE(smv_generate),
                                    .tokens = ids,
                                    .token_count = 9,
                                    .max_tokens = 400,
                                    .temperature = 1,
                                    .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                    .seed = 7,
                                    .ignore_eos = 1,
                                    .keep_ms = 60000 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = CHILDREN };
        static struct heard told[1 + CHILDREN], again;
        struct house *house = *state;
        struct smv_client *client;
        uint32_t streams[CHILDREN];
        uint64_t kept;

        memset(told, 0, sizeof(told));
        again = (struct heard){ 0 };
        HOUSE(house, NULL);
        client = meet(house);
        assert_int_equal(smv_generate(client, &ask, &told[0].stream), 0);
        kept = smv_kept(client, told[0].stream);
        while (told[0].count < 5)
                hear(client, told, 1);
        assert_int_equal(smv_fork(client, told[0].stream, &fork, streams), 0);
        for (uint32_t i = 0; i < CHILDREN; i++) {
                told[1 + i].stream = streams[i];
                assert_true(!smv_kept(client, streams[i]));
        }
        hear_all(client, told, 1 + CHILDREN);
        for (uint32_t i = 0; i < CHILDREN; i++)
                replay(client, &ask, &told[0], &told[1 + i], 1 + i);
        assert_int_equal(smv_fork(client, told[0].stream, &fork, streams), -EREMOTEIO);
        smv_close(client);

        client = meet(house);
        assert_int_equal(smv_attach(client, kept, 0, &again.stream), 0);
        hear_all(client, &again, 1);
        assert_same(&told[0], &again);
        assert_int_equal(smv_drop(client, kept), 0);
        smv_close(client);
        house_stop(house);
}

static void one_and_its_forks_are_left_by_who_is_killed(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once", .max_tokens = 1500,
                                    .ignore_eos = 1, .keep_ms = 1 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = CHILDREN };
        struct house *house = *state;
        uint32_t stream, streams[CHILDREN];
        struct smv_client *client;

        HOUSE(house, NULL);
        client = meet(house);
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        assert_int_equal(smv_fork(client, stream, &fork, streams), 0);
        smv_close(client); /* a hang-up, as the kernel's of one that is killed */
        house_stop(house); /* nothing is left of any */
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(what_was_told_of_its_tokens_is_told_again_to_who_attaches),
                STORY(it_is_forked_while_it_runs_and_its_forks_are_the_connections),
                STORY(one_and_its_forks_are_left_by_who_is_killed),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        return cmocka_run_group_tests(stories, NULL, NULL);
}
