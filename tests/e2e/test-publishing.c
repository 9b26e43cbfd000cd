/*
 * Published prompts: the users that a user publishes a prompt to find it, until that user revokes
 * it or goes.  They find nothing else of the publisher's, and the publisher finds nothing of
 * theirs.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/guest.h"
#include "tests/e2e/honest.h"

#define ALICE 65533u
#define BOB   65534u
#define CAROL 65531u
#define GROUP 65532u

#define PREFIX 500u /* 31 blocks and a part of a block */
#define OWN    20u  /* tokens of a question after the prefix */

#define OPEN FAST, "--threads", "1", "--socket-mode", "0666"

static void fill(uint32_t *tokens, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                tokens[i] = random_below(256);
}

static uint32_t ask(const struct guest *guest, const struct question *question)
{
        struct answer answer;

        guest_ask(guest, question);
        answer = guest_hear(guest);
        assert_int_equal(answer.prompt_tokens, question->count);
        assert_int_equal(answer.output_tokens, question->max_tokens);
        return answer.cached_tokens;
}

/* Asks with an end that no user has asked with before. */
static uint32_t ask_otherwise(const struct guest *guest, struct question *question)
{
        fill(question->tokens + PREFIX, OWN);
        return ask(guest, question);
}

/* Publishes the prefix; returns how much of it was public already. */
static uint32_t publish(const struct guest *guest, const struct question *question, uint32_t group)
{
        struct question wish = *question;
        struct answer answer;

        wish.wish = GUEST_PUBLISHES;
        wish.count = PREFIX;
        wish.group = group;
        guest_ask(guest, &wish);
        answer = guest_hear(guest);
        assert_int_equal(answer.prompt_tokens, PREFIX);
        assert_int_equal(answer.output_tokens, 0);
        return answer.cached_tokens;
}

static void revoke(const struct guest *guest)
{
        struct question wish = { .wish = GUEST_REVOKES, .count = 1 };

        guest_ask(guest, &wish);
        guest_hear(guest);
}

static void what_is_published_is_found_until_it_is_revoked(void **state)
{
        struct question question = { .count = PREFIX + OWN, .max_tokens = 4 }, hers;
        struct house *house = *state;
        struct guest alice, bob;

        assert_int_equal(chmod(house->directory, 0711), 0);
        HOUSE(house, OPEN, "--publish");
        fill(question.tokens, question.count);
        alice = guest_begin(house, ALICE, 0);
        bob = guest_begin(house, BOB, 0);

        hers = question;
        assert_int_equal(ask(&alice, &hers), 0);
        assert_int_equal(ask(&bob, &question), 0); /* not yet */
        fill(question.tokens, question.count);
        hers = question;
        assert_int_equal(ask(&alice, &hers), 0);
        /* her own blocks are not the public ones */
        assert_int_equal(publish(&alice, &hers, 0), 0);
        assert_int_equal(ask(&bob, &question), PREFIX);           /* and not the tokens after it */
        assert_int_equal(ask(&bob, &question), PREFIX + OWN - 1); /* these are Bob's own */
        assert_int_equal(ask_otherwise(&bob, &question), PREFIX);

        revoke(&alice);
        assert_int_equal(ask_otherwise(&bob, &question), 0);
        assert_int_equal(ask_otherwise(&bob, &question), PREFIX); /* Bob has computed it now */
        assert_int_equal(ask(&alice, &hers), PREFIX + OWN - 1);   /* and Alice's are still there */
        guest_end(&alice);
        guest_end(&bob);
        guests_are_gone(house);
        house_stop(house);
}

static void what_is_a_groups_its_members_find(void **state)
{
        struct question question = { .count = PREFIX + OWN, .max_tokens = 2 };
        struct house *house = *state;
        struct guest alice, bob, carol;

        assert_int_equal(chmod(house->directory, 0711), 0);
        HOUSE(house, OPEN, "--publish");
        fill(question.tokens, question.count);
        alice = guest_begin(house, ALICE, GROUP);
        bob = guest_begin(house, BOB, GROUP);
        carol = guest_begin(house, CAROL, 0);

        assert_int_equal(publish(&alice, &question, GROUP), 0);
        assert_int_equal(ask_otherwise(&carol, &question), 0);
        assert_int_equal(ask_otherwise(&bob, &question), PREFIX);
        /* Alice's own group has no other member. */
        revoke(&alice);
        assert_int_equal(publish(&alice, &question, ALICE), 0);
        fill(question.tokens, 1);
        assert_int_equal(ask_otherwise(&bob, &question), 0);
        guest_end(&alice);
        guest_end(&bob);
        guest_end(&carol);
        guests_are_gone(house);
        house_stop(house);
}

/* Bob publishes the same prompt, so it stays when Alice goes, and goes when Bob goes. */
static void it_goes_with_the_last_who_published_it(void **state)
{
        struct question question = { .count = PREFIX + OWN, .max_tokens = 2 };
        struct house *house = *state;
        struct guest alice, bob, carol;

        assert_int_equal(chmod(house->directory, 0711), 0);
        HOUSE(house, OPEN, "--publish");
        fill(question.tokens, question.count);
        alice = guest_begin(house, ALICE, 0);
        bob = guest_begin(house, BOB, 0);
        carol = guest_begin(house, CAROL, 0);
        assert_int_equal(publish(&alice, &question, 0), 0);
        assert_int_equal(publish(&bob, &question, 0), PREFIX - 1);
        guest_end(&alice);
        while (house_status(house, "connections.open") > 3) /* with the connection that asks */
                sleep_ms(5);
        assert_int_equal(ask_otherwise(&carol, &question), PREFIX);
        guest_end(&bob);
        while (house_status(house, "connections.open") > 2)
                sleep_ms(5);
        assert_int_equal(ask_otherwise(&carol, &question), 0);
        guest_end(&carol);
        guests_are_gone(house);
        house_stop(house);
}

static void who_may_not_publish_is_told_why(void **state)
{
        static const uint32_t tokens[] = { 't', 'e', 'a' };
        struct house *house = *state;
        struct reply *reply;
        struct talk *talk;
        uint64_t handle;

        HOUSE(house, FAST, "--threads", "1");
        talk = talk_greet(house);
        handle = reply_uint(talk_ask(talk, "op=s tokens=I", "open", tokens, (size_t)3), "handle");
        reply = talk_ask(talk, "op=s handle=q to=s", "publish", handle, "all");
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->message,
                            "nobody may publish here: the daemon's setting `publish` is off");
        talk_close(talk);
        house_stop(house);

        HOUSE(house, FAST, "--threads", "1", "--publish");
        talk = talk_greet(house);
        handle = reply_uint(talk_ask(talk, "op=s tokens=I", "open", tokens, (size_t)3), "handle");
        reply = talk_ask(talk, "op=s handle=q to=s group=u", "publish", handle, "group",
                         4294967294u);
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->field, "group");
        reply = talk_ask(talk, "op=s handle=q to=s length=u", "publish", handle, "all", 4u);
        assert_string_equal(reply->message,
                            "length is 4; it may be from 1 to the handle's 3 tokens");
        reply = talk_ask(talk, "op=s handle=q to=s length=u", "publish", handle, "all", 2u);
        assert_true(reply->ok);
        assert_int_equal(talk_end(talk, talk->last_id)->end.prompt_tokens, 2);
        assert_int_equal(talk_status(talk, "charges.0.held_blocks"), 1);
        reply = talk_ask(talk, "op=s handle=q to=s", "publish", handle, "all");
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->field, "handle");
        assert_true(talk_ask(talk, "op=s handle=q", "revoke", handle)->ok);
        assert_true(talk_ask(talk, "op=s handle=q", "revoke", handle)->ok);
        assert_int_equal(talk_status(talk, "charges.0.held_blocks"), 0);
        assert_int_equal(talk_ask(talk, "op=s handle=q", "revoke", handle + 1)->code,
                         SMV_NO_HANDLE);
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(what_is_published_is_found_until_it_is_revoked),
                STORY(what_is_a_groups_its_members_find),
                STORY(it_goes_with_the_last_who_published_it),
                STORY(who_may_not_publish_is_told_why),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        need_users();
        return cmocka_run_group_tests(stories, NULL, NULL);
}
