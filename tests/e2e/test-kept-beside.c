/* The data that a kept stream has besides its tokens, and streams that continue from it while it
 * runs. */
#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/talk.h"

#define CHILD_TOKENS 300u
#define EACH         33u /* logprobs of a token, the chosen one included */
#define CHILDREN     2u

struct heard {
        uint32_t stream, from, count; /* from: the position of the first */
        uint32_t *tokens;
        struct smv_logprob *logprobs;
        size_t logprob_count;
        struct smv_event end;
};

static void forget(struct heard *told, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                free(told[i].tokens);
                free(told[i].logprobs);
        }
}

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

/* Appends these to those that are there. */
static void *join(void *to, size_t count, const void *more, size_t more_count, size_t size)
{
        uint8_t *at = realloc(to, (count + more_count) * size + 1);

        assert_non_null(at);
        if (more_count)
                memcpy(at + count * size, more, more_count * size);
        return at;
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
        told->tokens = join(told->tokens, told->count, event->tokens, event->token_count,
                            sizeof(*told->tokens));
        told->count += (uint32_t)event->token_count;
        told->logprobs = join(told->logprobs, told->logprob_count, event->logprobs, entries,
                              sizeof(*told->logprobs));
        told->logprob_count += entries;
}

/* Reads one event of any of these streams. */
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
        struct heard first = { 0 }, again = { 0 }, plain = { 0 };
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once upon a time",
                                    .max_tokens = 100,      .set = SMV_SET_TEMPERATURE,
                                    .ignore_eos = 1,        .logprobs = EACH - 1,
                                    .keep_ms = 60000 };
        struct house *house = *state;
        struct smv_client *client, *other;
        uint64_t kept;

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
        forget(&first, 1);
        forget(&again, 1);
        forget(&plain, 1);
        smv_close(other);
        smv_close(client);
        house_stop(house);
}

/* Sends the same tokens up to there as a whole, with the same choice. */
static void replay(struct smv_client *client, const struct smv_generate *ask,
                   const struct heard *parent, const struct heard *child, uint32_t choice)
{
        uint32_t shared = child->from - (uint32_t)ask->token_count, *tokens;
        struct smv_generate again = *ask;
        struct heard whole = { 0 };

        assert_true(shared <= parent->count);
        tokens = join(NULL, 0, ask->tokens, ask->token_count, sizeof(*tokens));
        tokens = join(tokens, ask->token_count, parent->tokens, shared, sizeof(*tokens));
        again.tokens = tokens;
        again.token_count = child->from;
        again.max_tokens = CHILD_TOKENS;
        again.choice = choice;
        again.keep_ms = 0;
        assert_int_equal(smv_generate(client, &again, &whole.stream), 0);
        hear_all(client, &whole, 1);
        assert_int_equal(whole.count, CHILD_TOKENS);
        assert_same(&whole, child);
        forget(&whole, 1);
        free(tokens);
}

static void it_is_forked_while_it_runs_and_its_forks_are_the_connections(void **state)
{
        static const uint32_t ids[] = { 'O', 'n', 'c', 'e', ' ', 'u', 'p', 'o', 'n' };
        struct smv_generate ask = { SMV_SIZE(smv_generate),
                                    .tokens = ids,
                                    .token_count = 9,
                                    .max_tokens = ENDLESS,
                                    .temperature = 1,
                                    .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                                    .seed = 7,
                                    .ignore_eos = 1,
                                    .keep_ms = 60000 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = CHILDREN,
                                 .max_tokens = CHILD_TOKENS };
        struct heard told[1 + CHILDREN] = { 0 }, again = { 0 };
        struct house *house = *state;
        struct smv_client *client;
        uint32_t streams[CHILDREN];
        uint64_t kept;

        ENDLESS_HOUSE(house, "--uid-kept-bytes", "1G");
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
        assert_int_equal(smv_cancel(client, told[0].stream), 0);
        hear_all(client, told, 1 + CHILDREN);
        assert_int_equal(told[0].end.reason, SMV_END_CANCELLED);
        for (uint32_t i = 0; i < CHILDREN; i++)
                replay(client, &ask, &told[0], &told[1 + i], 1 + i);
        assert_int_equal(smv_fork(client, told[0].stream, &fork, streams), -EREMOTEIO);
        smv_close(client);

        client = meet(house);
        assert_int_equal(smv_attach(client, kept, 0, &again.stream), 0);
        hear_all(client, &again, 1);
        assert_same(&told[0], &again);
        forget(told, 1 + CHILDREN);
        forget(&again, 1);
        assert_int_equal(smv_drop(client, kept), 0);
        smv_close(client);
        house_stop(house);
}

static void one_and_its_forks_are_left_by_who_is_killed(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once", .max_tokens = ENDLESS,
                                    .ignore_eos = 1, .keep_ms = 1 };
        struct smv_fork fork = { SMV_SIZE(smv_fork), .count = CHILDREN };
        struct house *house = *state;
        uint32_t stream, streams[CHILDREN];
        struct smv_client *client;

        ENDLESS_HOUSE(house, "--uid-kept-bytes", "1G");
        client = meet(house);
        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        assert_int_equal(smv_fork(client, stream, &fork, streams), 0);
        smv_close(client); /* a hang-up, as the kernel does it for a killed process */
        house_stop(house); /* nothing is left of any stream */
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(what_was_told_of_its_tokens_is_told_again_to_who_attaches),
                STORY(it_is_forked_while_it_runs_and_its_forks_are_the_connections),
                STORY(one_and_its_forks_are_left_by_who_is_killed),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(stories, NULL, NULL);
}
