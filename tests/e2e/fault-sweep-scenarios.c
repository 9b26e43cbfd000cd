/* The steps of clients in a trial.  At every step the daemon may refuse or hang up. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/e2e/fault-sweep.h"

#define LONG_TOKENS 40
#define LARGE       20000 /* more than a frame may have without being charged */
#define KEEP_MS     50    /* the things that a failing call has left behind are gone soon */

/* A number that a reply brings; any number if the reply brings none. */
static uint64_t await_number(struct raw_client *client, uint32_t id, const char *name)
{
        const struct reply *reply;

        for (int i = 0; i < 100 && !raw_client_find_reply(client, id) && !client->hung_up; i++)
                raw_client_poll(client, 20);
        reply = raw_client_find_reply(client, id);
        return reply && reply->ok ? reply_uint(reply, name) : 1;
}

/* The number of the one fork that a reply names; any number if it names none. */
static uint64_t await_fork(struct raw_client *client, uint32_t id)
{
        return await_number(client, id, "handles.0");
}

/* Makes a history and a fork of it that continues otherwise; its END is as any other. */
static void hold(struct raw_client *client)
{
        static const uint32_t ids[] = { 'h', 'i' };
        uint64_t handle, fork;

        raw_client_send_frame(client, "op=s id=u tokens=I", "open", 6, ids, (size_t)2);
        handle = await_number(client, 6, "handle");
        raw_client_send_frame(client, "op=s id=u handle=q count=u", "fork", 7, handle, 1);
        fork = await_fork(client, 7);
        raw_client_send_frame(client, "op=s id=u handle=q tokens=I", "append", 8, handle, ids,
                              (size_t)2);
        raw_client_send_frame(client, "op=s id=u handle=q length=u", "truncate", 9, fork, 1);
        raw_client_send_frame(client, "op=s id=u handle=q max_tokens=u", "generate", 10, handle, 8);
        raw_client_send_frame(client, "op=s id=u handle=q text=s", "append", 11, fork, "ho");
        raw_client_send_frame(client, "op=s id=u prompt=s", "open", 12, "hi");
}

/* Makes a stream and a history that would outlive their client.  The client attaches to its own
 * stream, which takes the stream from itself, and drops both. */
static void keep(struct raw_client *client)
{
        static const uint32_t ids[] = { 'h', 'i' };
        uint64_t resume_id, handle;

        raw_client_send_frame(client, "op=s id=u tokens=I max_tokens=u keep_ms=u", "generate", 13,
                              ids, (size_t)2, LONG_TOKENS, KEEP_MS);
        raw_client_send_frame(client, "op=s id=u tokens=I keep_ms=u", "open", 14, ids, (size_t)2,
                              KEEP_MS);
        resume_id = await_number(client, 13, "resume_id");
        handle = await_number(client, 14, "handle");
        raw_client_send_frame(client, "op=s id=u resume_id=q from=u", "attach", 15, resume_id, 0);
        raw_client_send_frame(client, "op=s id=u handle=q count=u keep_ms=u", "fork", 16, handle, 1,
                              KEEP_MS);
        raw_client_send_frame(client, "op=s id=u handle=q", "close", 17, handle);
        raw_client_send_frame(client, "op=s id=u handle=q", "close", 18, await_fork(client, 16));
        raw_client_send_frame(client, "op=s id=u resume_id=q", "drop", 19, resume_id);
}

/* Two streams of one prompt, and forks of the first one.  The prompt is all ids, so it has begun by
 * then. */
static void branch(struct raw_client *client, uint32_t id)
{
        static const uint32_t ids[40] = { 'h', 'i' };

        raw_client_send_frame(client, "op=s id=u tokens=I n=u max_tokens=u ignore_eos=y",
                              "generate", id, ids, (size_t)40, 2u, LONG_TOKENS, 1);
        raw_client_send_frame(client, "op=s id=u stream=u count=u max_tokens=u", "fork", id + 2, id,
                              2u, 8u);
}

/* Two clients use every operation, and one of them cancels; a third client sends nonsense. */
static void ask_all(struct fault_trial *trial, struct raw_client *a, struct raw_client *b,
                    struct raw_client *c)
{
        static const uint32_t ids[] = { 'h', 'i' };

        send_hello(a);
        send_hello(b);
        send_generate(b, 2, LONG_TOKENS);
        raw_client_send_frame(a, "op=s id=u text=s", "tokenize", 2, "hi");
        raw_client_send_frame(a, "op=s id=u tokens=I", "detokenize", 3, ids, (size_t)2);
        send_generate(a, 4, 8);
        raw_client_send_frame(a, "op=s id=u", "status", 5);
        hold(a);
        keep(a);
        branch(b, 4);
        raw_client_send(c, "\x04\0\0\0\xc1\xc1\xc1\xc1", 8);
        raw_client_send_frame(b, "op=s id=u stream=u", "cancel", 3, 2);

        trial_await(trial, a, ID(HELLO) | ID(2) | ID(3) | ID(4) | ID(5) | 0x3fffu << 6,
                    ID(4) | ID(10) | ID(13) | ID(15));
        trial_await(trial, b, ID(HELLO) | ID(2) | ID(3) | ID(4) | ID(6), ID(2) | ID(4) | ID(6));
        trial_await_hangup(trial, c);
}

static void three(struct fault_trial *trial, void (*act)(struct fault_trial *, struct raw_client *,
                                                         struct raw_client *, struct raw_client *))
{
        struct raw_client *a = trial_connect(trial);
        struct raw_client *b = a ? trial_connect(trial) : NULL;
        struct raw_client *c = b ? trial_connect(trial) : NULL;

        if (c)
                act(trial, a, b, c);
        raw_client_close(a);
        raw_client_close(b);
        raw_client_close(c);
}

static void act_requests(struct fault_trial *trial)
{
        three(trial, ask_all);
}

static void send_large(struct raw_client *client)
{
        uint32_t *ids = calloc(LARGE, sizeof(*ids));
        char *text = malloc(LARGE);

        assert_true(ids && text);
        memset(text, 'x', LARGE);
        raw_client_send_frame(client, "op=s id=u text=t", "tokenize", 2, text, (size_t)LARGE);
        raw_client_send_frame(client, "op=s id=u tokens=I", "detokenize", 3, ids, (size_t)LARGE);
        free(ids);
        free(text);
}

/*
 * Three clients: one reads more streams than run at once; one sends large frames and says that it
 * has nothing more to ask; one goes away in the middle.
 */
static void load(struct fault_trial *trial, struct raw_client *a, struct raw_client *b,
                 struct raw_client *c)
{
        static const char *const stops[] = { "zzzz", "qqqq" };
        static const uint32_t stop_ids[] = { 1, 2, 3 };
        uint32_t streams = 0;

        send_hello(a);
        send_hello(b);
        send_hello(c);
        for (uint32_t id = 2; id < 10; id++, streams |= ID(id - 1))
                send_generate(a, id, 12);
        raw_client_send_frame(a, "op=s id=u prompt=s stop=S stop_tokens=I seed=u max_tokens=u",
                              "generate", 10, "stop", stops, (size_t)2, stop_ids, (size_t)3, 1, 8);
        send_generate(c, 2, LONG_TOKENS);
        send_large(b);
        raw_client_send_frame(a, "op=s id=u stream=u", "cancel", 11, 5);
        raw_client_poll(c, 5);
        shutdown(c->fd, SHUT_RDWR);
        send_generate(b, 4, 8);
        shutdown(b->fd, SHUT_WR);

        trial_await(trial, a, ID(HELLO) | streams | ID(10) | ID(11), streams | ID(10));
        trial_await(trial, b, ID(HELLO) | ID(2) | ID(3) | ID(4), ID(4));
        trial_await_hangup(trial, b);
}

static void act_load(struct fault_trial *trial)
{
        three(trial, load);
}

/*
 * Rings: one client would accept a socket, and cancels; one client insists on a ring; one client
 * goes without having read its ring.
 */
static void rings(struct fault_trial *trial, struct raw_client *a, struct raw_client *b,
                  struct raw_client *c)
{
        send_hello_for(a, "auto", "kick");
        send_hello_for(b, "ring", "futex");
        send_hello_for(c, "ring", "kick");
        send_generate(a, 2, LONG_TOKENS);
        send_generate(a, 3, 8);
        send_generate(b, 2, 12);
        send_generate(c, 2, LONG_TOKENS);
        raw_client_send_frame(a, "op=s id=u stream=u", "cancel", 4, 2);
        for (int i = 0; i < 20 && !raw_client_find_reply(b, 2) && !b->hung_up; i++)
                raw_client_poll(b, 5);
        shutdown(c->fd, SHUT_RDWR); /* it receives neither its reply nor its descriptors */

        trial_await(trial, a, ID(HELLO) | ID(2) | ID(3) | ID(4), ID(2) | ID(3));
        trial_await(trial, b, ID(HELLO) | ID(2), ID(2));
        trial_await_hangup(trial, c);
}

static void act_rings(struct fault_trial *trial)
{
        three(trial, rings);
}

/*
 * Requests with constraints and with rules for their draws: two share a constraint, and each kind
 * of description is compiled.
 */
static void act_forms(struct fault_trial *trial)
{
        static const char *const constraints[] = {
                "{\"schema\":{\"properties\":{\"a\":{\"enum\":[1,\"b\"]},\"c\":{\"type\":"
                "\"string\","
                "\"maxLength\":3}},\"required\":[\"a\"],\"additionalProperties\":false}}",
                "{\"regex\":\"[ab]{2,4}c?\"}",
                "{\"grammar\":\"root ::= \\\"x\\\" item*\\nitem ::= [0-9]\"}",
                "{\"tags\":[{\"begin\":\"<\",\"end\":\">\",\"choices\":[\"a\",\"b\"]}]}",
        };
        static const char *const texts[] = { "ab", "q", " the" };
        struct raw_client *client = trial_connect(trial);
        uint32_t streams = 0;

        if (!client)
                return;
        send_hello(client);
        for (uint32_t i = 0; i < 5; i++) {
                raw_client_send_frame(client, "op=s id=u prompt=s max_tokens=u constraint=s seed=u",
                                      "generate", i + 2, "hi", 10, constraints[i % 4], i);
                streams |= ID(i + 2);
        }
        raw_client_send_frame(client,
                              "op=s id=u prompt=s max_tokens=u banned_texts=S min_tokens=u "
                              "repetition_penalty=f dry_multiplier=f no_repeat_ngram=u",
                              "generate", 7, "hi", 10, texts, (size_t)3, 3, 1.2, 0.8, 3);
        raw_client_send_frame(client, "op=s id=u prompt=s max_tokens=u constraint=s banned_texts=S",
                              "generate", 8, "hi", 10, constraints[0], texts, (size_t)3);
        streams |= ID(7) | ID(8);
        trial_await(trial, client, ID(HELLO) | streams, streams);
        raw_client_close(client);
}

/* The daemon serves only this client; the client leaves, and the daemon ends. */
static void act_single_client(struct fault_trial *trial)
{
        struct raw_client *client = raw_client_adopt(trial->fd);

        trial->fd = -1;
        send_hello(client);
        send_generate(client, 2, 8);
        raw_client_send_frame(client, "op=s id=u", "status", 3);
        trial_await(trial, client, ID(HELLO) | ID(2) | ID(3), ID(2));
        raw_client_close(client);
}

const struct scenario scenario_requests = { .name = "requests", .act = act_requests };
const struct scenario scenario_load = {
        .name = "load", .act = act_load, .load = "plain", .by_config = true
};
const struct scenario scenario_rings = { .name = "rings", .act = act_rings, .load = "uring" };
const struct scenario scenario_forms = { .name = "forms", .act = act_forms };
const struct scenario scenario_single_client = { .name = "single client",
                                                 .act = act_single_client,
                                                 .by_fd = true };
