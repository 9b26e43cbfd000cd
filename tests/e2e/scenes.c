/* The steps of clients in a play.  At every step the daemon may refuse or hang up. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/e2e/play.h"

#define LONG_TOKENS 40
#define LARGE       20000 /* more than a frame may have without being charged */
#define KEEP_MS     50    /* the things that a failing call has left behind are gone soon */

/* A number that a reply brings; any number if the reply brings none. */
static uint64_t await_number(struct talk *talk, uint32_t id, const char *name)
{
        const struct reply *reply;

        for (int i = 0; i < 100 && !talk_replied(talk, id) && !talk->hung_up; i++)
                talk_turn(talk, 20);
        reply = talk_replied(talk, id);
        return reply && reply->ok ? reply_uint(reply, name) : 1;
}

/* Makes a history and a fork of it that continues otherwise; its END is as any other. */
static void hold(struct talk *talk)
{
        static const uint32_t ids[] = { 'h', 'i' };
        uint64_t handle;

        talk_say(talk, "op=s id=u tokens=I", "open", 6, ids, (size_t)2);
        handle = await_number(talk, 6, "handle");
        talk_say(talk, "op=s id=u handle=q count=u", "fork", 7, handle, 1);
        talk_say(talk, "op=s id=u handle=q tokens=I", "append", 8, handle, ids, (size_t)2);
        talk_say(talk, "op=s id=u handle=q length=u", "truncate", 9, handle + 1, 1);
        talk_say(talk, "op=s id=u handle=q max_tokens=u", "generate", 10, handle, 8);
        talk_say(talk, "op=s id=u handle=q text=s", "append", 11, handle + 1, "ho");
        talk_say(talk, "op=s id=u prompt=s", "open", 12, "hi");
}

/* Makes a stream and a history that would outlive their client.  The client attaches to its own
 * stream, which takes the stream from itself, and drops both. */
static void keep(struct talk *talk)
{
        static const uint32_t ids[] = { 'h', 'i' };
        uint64_t kept, handle;

        talk_say(talk, "op=s id=u tokens=I max_tokens=u keep_ms=u", "generate", 13, ids, (size_t)2,
                 LONG_TOKENS, KEEP_MS);
        talk_say(talk, "op=s id=u tokens=I keep_ms=u", "open", 14, ids, (size_t)2, KEEP_MS);
        kept = await_number(talk, 13, "kept");
        handle = await_number(talk, 14, "handle");
        talk_say(talk, "op=s id=u kept=q from=u", "attach", 15, kept, 0);
        talk_say(talk, "op=s id=u handle=q count=u keep_ms=u", "fork", 16, handle, 1, KEEP_MS);
        talk_say(talk, "op=s id=u handle=q", "close", 17, handle);
        talk_say(talk, "op=s id=u handle=q", "close", 18, handle + 1);
        talk_say(talk, "op=s id=u kept=q", "drop", 19, kept);
}

/* Two streams of one prompt, and forks of the first one.  The prompt is all ids, so it has begun by
 * then. */
static void branch(struct talk *talk, uint32_t id)
{
        static const uint32_t ids[40] = { 'h', 'i' };

        talk_say(talk, "op=s id=u tokens=I n=u max_tokens=u ignore_eos=y", "generate", id, ids,
                 (size_t)40, 2u, LONG_TOKENS, 1);
        talk_say(talk, "op=s id=u stream=u count=u max_tokens=u", "fork", id + 2, id, 2u, 8u);
}

/* Two clients use every operation, and one of them cancels; a third client sends nonsense. */
static void ask_all(struct play *play, struct talk *a, struct talk *b, struct talk *c)
{
        static const uint32_t ids[] = { 'h', 'i' };

        say_hello(a);
        say_hello(b);
        say_generate(b, 2, LONG_TOKENS);
        talk_say(a, "op=s id=u text=s", "tokenize", 2, "hi");
        talk_say(a, "op=s id=u tokens=I", "detokenize", 3, ids, (size_t)2);
        say_generate(a, 4, 8);
        talk_say(a, "op=s id=u", "status", 5);
        hold(a);
        keep(a);
        branch(b, 4);
        talk_send(c, "\x04\0\0\0\xc1\xc1\xc1\xc1", 8);
        talk_say(b, "op=s id=u stream=u", "cancel", 3, 2);

        play_await(play, a, ID(HELLO) | ID(2) | ID(3) | ID(4) | ID(5) | 0x3fffu << 6,
                   ID(4) | ID(10) | ID(13) | ID(15));
        play_await(play, b, ID(HELLO) | ID(2) | ID(3) | ID(4) | ID(6), ID(2) | ID(4) | ID(6));
        play_await_hangup(play, c);
}

static void three(struct play *play,
                  void (*act)(struct play *, struct talk *, struct talk *, struct talk *))
{
        struct talk *a = play_reach(play);
        struct talk *b = a ? play_reach(play) : NULL;
        struct talk *c = b ? play_reach(play) : NULL;

        if (c)
                act(play, a, b, c);
        talk_close(a);
        talk_close(b);
        talk_close(c);
}

static void act_asking(struct play *play)
{
        three(play, ask_all);
}

static void say_large(struct talk *talk)
{
        uint32_t *ids = calloc(LARGE, sizeof(*ids));
        char *text = malloc(LARGE);

        assert_true(ids && text);
        memset(text, 'x', LARGE);
        talk_say(talk, "op=s id=u text=t", "tokenize", 2, text, (size_t)LARGE);
        talk_say(talk, "op=s id=u tokens=I", "detokenize", 3, ids, (size_t)LARGE);
        free(ids);
        free(text);
}

/*
 * Three clients: one reads more streams than run at once; one sends large frames and says that it
 * has nothing more to ask; one goes away in the middle.
 */
static void crowd(struct play *play, struct talk *a, struct talk *b, struct talk *c)
{
        static const char *const stops[] = { "zzzz", "qqqq" };
        static const uint32_t stop_ids[] = { 1, 2, 3 };
        uint32_t streams = 0;

        say_hello(a);
        say_hello(b);
        say_hello(c);
        for (uint32_t id = 2; id < 10; id++, streams |= ID(id - 1))
                say_generate(a, id, 12);
        talk_say(a, "op=s id=u prompt=s stop=S stop_tokens=I seed=u max_tokens=u", "generate", 10,
                 "stop", stops, (size_t)2, stop_ids, (size_t)3, 1, 8);
        say_generate(c, 2, LONG_TOKENS);
        say_large(b);
        talk_say(a, "op=s id=u stream=u", "cancel", 11, 5);
        talk_turn(c, 5);
        shutdown(c->fd, SHUT_RDWR);
        say_generate(b, 4, 8);
        shutdown(b->fd, SHUT_WR);

        play_await(play, a, ID(HELLO) | streams | ID(10) | ID(11), streams | ID(10));
        play_await(play, b, ID(HELLO) | ID(2) | ID(3) | ID(4), ID(4));
        play_await_hangup(play, b);
}

static void act_crowd(struct play *play)
{
        three(play, crowd);
}

/*
 * Rings: one client would accept a socket, and cancels; one client insists on a ring; one client
 * goes without having read its ring.
 */
static void rings(struct play *play, struct talk *a, struct talk *b, struct talk *c)
{
        say_hello_for(a, "auto", "kick");
        say_hello_for(b, "ring", "futex");
        say_hello_for(c, "ring", "kick");
        say_generate(a, 2, LONG_TOKENS);
        say_generate(a, 3, 8);
        say_generate(b, 2, 12);
        say_generate(c, 2, LONG_TOKENS);
        talk_say(a, "op=s id=u stream=u", "cancel", 4, 2);
        for (int i = 0; i < 20 && !talk_replied(b, 2) && !b->hung_up; i++)
                talk_turn(b, 5);
        shutdown(c->fd, SHUT_RDWR); /* it receives neither its reply nor its descriptors */

        play_await(play, a, ID(HELLO) | ID(2) | ID(3) | ID(4), ID(2) | ID(3));
        play_await(play, b, ID(HELLO) | ID(2), ID(2));
        play_await_hangup(play, c);
}

static void act_rings(struct play *play)
{
        three(play, rings);
}

/* The daemon serves only this client; the client leaves, and the daemon ends. */
static void act_alone(struct play *play)
{
        struct talk *talk = talk_take(play->fd);

        play->fd = -1;
        say_hello(talk);
        say_generate(talk, 2, 8);
        talk_say(talk, "op=s id=u", "status", 3);
        play_await(play, talk, ID(HELLO) | ID(2) | ID(3), ID(2));
        talk_close(talk);
}

const struct scene scene_asking = { .name = "asking", .act = act_asking };
const struct scene scene_crowd = {
        .name = "crowd", .act = act_crowd, .load = "plain", .by_config = true
};
const struct scene scene_rings = { .name = "rings", .act = act_rings, .load = "uring" };
const struct scene scene_alone = { .name = "alone", .act = act_alone, .by_fd = true };
