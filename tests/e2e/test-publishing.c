/*
 * Published prompts: the users that a user publishes a prompt to find it, until that user revokes
 * it or goes.  They find nothing else of the publisher's, and the publisher finds nothing of
 * theirs.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/other-user.h"
#include "tests/e2e/honest-client.h"

#define ALICE 65533u
#define BOB   65531u
#define CAROL 65531u
#define GROUP 65532u

#define PREFIX 500u /* 31 blocks and a part of a block */
#define OWN    20u  /* tokens of a question after the prefix */

#define OPEN MANY_CONNECTS, "--threads", "1", "--socket-mode", "0666"

static uint32_t ask(const struct other_user *other_user, const struct question *question)
{
        struct answer answer;

        other_user_send(other_user, question);
        answer = other_user_receive(other_user);
        assert_int_equal(answer.prompt_tokens, question->count);
        assert_int_equal(answer.output_tokens, question->max_tokens);
        return answer.cached_tokens;
}

/* Its prefix and its own part begin as no others do, so no block of others continues them. */
static void draw_question(struct question *question)
{
        random_prompt(question->tokens, PREFIX);
        random_prompt(question->tokens + PREFIX, OWN);
}

/* Asks with an end that no user has asked with before. */
static uint32_t ask_otherwise(const struct other_user *other_user, struct question *question)
{
        random_prompt(question->tokens + PREFIX, OWN);
        return ask(other_user, question);
}

/* Publishes the prefix; returns how much of it was public already. */
static uint32_t publish(const struct other_user *other_user, const struct question *question,
                        uint32_t group)
{
        struct question action = *question;
        struct answer answer;

        action.action = USER_PUBLISHES;
        action.count = PREFIX;
        action.group = group;
        other_user_send(other_user, &action);
        answer = other_user_receive(other_user);
        assert_int_equal(answer.prompt_tokens, PREFIX);
        assert_int_equal(answer.output_tokens, 0);
        return answer.cached_tokens;
}

static void revoke(const struct other_user *other_user)
{
        struct question action = { .action = USER_REVOKES, .count = 1 };

        other_user_send(other_user, &action);
        other_user_receive(other_user);
}

static void other_users_find_a_published_prompt_until_it_is_revoked(void **state)
{
        struct question question = { .count = PREFIX + OWN, .max_tokens = 4 }, hers;
        struct daemon_fixture *fixture = *state;
        struct other_user alice, bob;

        assert_int_equal(chmod(fixture->directory, 0711), 0);
        START_DAEMON(fixture, OPEN, "--publish");
        draw_question(&question);
        alice = other_user_start(fixture, ALICE, 0);
        bob = other_user_start(fixture, BOB, 0);

        hers = question;
        assert_int_equal(ask(&alice, &hers), 0);
        assert_int_equal(ask(&bob, &question), 0); /* not yet */
        draw_question(&question);
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
        other_user_stop(&alice);
        other_user_stop(&bob);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

static void only_group_members_find_a_prompt_published_to_the_group(void **state)
{
        struct question question = { .count = PREFIX + OWN, .max_tokens = 2 };
        struct daemon_fixture *fixture = *state;
        struct other_user alice, bob, carol;

        assert_int_equal(chmod(fixture->directory, 0711), 0);
        START_DAEMON(fixture, OPEN, "--publish");
        draw_question(&question);
        alice = other_user_start(fixture, ALICE, GROUP);
        bob = other_user_start(fixture, BOB, GROUP);
        carol = other_user_start(fixture, CAROL, 0);

        assert_int_equal(publish(&alice, &question, GROUP), 0);
        assert_int_equal(ask_otherwise(&carol, &question), 0);
        assert_int_equal(ask_otherwise(&bob, &question), PREFIX);
        /* Alice's own group has no other member. */
        revoke(&alice);
        assert_int_equal(publish(&alice, &question, ALICE), 0);
        random_prompt(question.tokens, 1);
        assert_int_equal(ask_otherwise(&bob, &question), 0);
        other_user_stop(&alice);
        other_user_stop(&bob);
        other_user_stop(&carol);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

/* Bob publishes the same prompt, so it stays when Alice goes, and goes when Bob goes. */
static void a_published_prompt_stays_until_its_last_publisher_leaves(void **state)
{
        struct question question = { .count = PREFIX + OWN, .max_tokens = 2 };
        struct daemon_fixture *fixture = *state;
        struct other_user alice, bob, carol;

        assert_int_equal(chmod(fixture->directory, 0711), 0);
        START_DAEMON(fixture, OPEN, "--publish");
        draw_question(&question);
        alice = other_user_start(fixture, ALICE, 0);
        bob = other_user_start(fixture, BOB, 0);
        carol = other_user_start(fixture, CAROL, 0);
        assert_int_equal(publish(&alice, &question, 0), 0);
        assert_int_equal(publish(&bob, &question, 0), PREFIX - 1);
        other_user_stop(&alice);
        while (fixture_status(fixture, "connections.open") > 3) /* with the connection that asks */
                sleep_ms(5);
        assert_int_equal(ask_otherwise(&carol, &question), PREFIX);
        other_user_stop(&bob);
        while (fixture_status(fixture, "connections.open") > 2)
                sleep_ms(5);
        assert_int_equal(ask_otherwise(&carol, &question), 0);
        other_user_stop(&carol);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

static void refuses_invalid_publications_and_says_why(void **state)
{
        static const uint32_t tokens[] = { 't', 'e', 'a' };
        struct daemon_fixture *fixture = *state;
        struct reply *reply;
        struct raw_client *client;
        uint64_t handle;

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1");
        client = raw_client_greet(fixture);
        handle = reply_uint(raw_client_call(client, "op=s tokens=I", "open", tokens, (size_t)3),
                            "handle");
        reply = raw_client_call(client, "op=s handle=q to=s", "publish", handle, "all");
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->message,
                            "publishing is off: the daemon's setting publish is no");
        raw_client_close(client);
        fixture_stop(fixture);

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--publish");
        client = raw_client_greet(fixture);
        handle = reply_uint(raw_client_call(client, "op=s tokens=I", "open", tokens, (size_t)3),
                            "handle");
        reply = raw_client_call(client, "op=s handle=q to=s group=u", "publish", handle, "group",
                                4294967294u);
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->field, "group");
        reply = raw_client_call(client, "op=s handle=q to=s length=u", "publish", handle, "all",
                                4u);
        assert_string_equal(reply->message,
                            "length is 4; it may be from 1 to the handle's 3 tokens");
        reply = raw_client_call(client, "op=s handle=q to=s length=u", "publish", handle, "all",
                                2u);
        assert_true(reply->ok);
        assert_int_equal(raw_client_await_end(client, client->last_id)->end.prompt_tokens, 2);
        assert_int_equal(raw_client_status(client, "users.0.pinned_blocks"), 1);
        reply = raw_client_call(client, "op=s handle=q to=s", "publish", handle, "all");
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->field, "handle");
        assert_true(raw_client_call(client, "op=s handle=q", "revoke", handle)->ok);
        assert_true(raw_client_call(client, "op=s handle=q", "revoke", handle)->ok);
        assert_int_equal(raw_client_status(client, "users.0.pinned_blocks"), 0);
        assert_int_equal(raw_client_call(client, "op=s handle=q", "revoke", handle + 1)->code,
                         SMV_NO_HANDLE);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(other_users_find_a_published_prompt_until_it_is_revoked),
                DAEMON_TEST(only_group_members_find_a_prompt_published_to_the_group),
                DAEMON_TEST(a_published_prompt_stays_until_its_last_publisher_leaves),
                DAEMON_TEST(refuses_invalid_publications_and_says_why),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        require_other_users();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
