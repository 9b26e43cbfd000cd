/*
 * Two users, one daemon.  The socket admits only the configured users.  Processes of one user share
 * the tokens that they have computed.  No user finds out what another user has computed: not from
 * the counts, not from an END, and not by the clock.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/other-user.h"
#include "tests/e2e/honest-client.h"
#include "tests/e2e/trials.h"

#define ALICE 65533u
#define BOB   65531u
#define GROUP 65532u

#define PREFIX 1000u
#define OWN    8u /* tokens of a question after the prefix */

#define OPEN MANY_CONNECTS, "--threads", "1", "--socket-mode", "0666"

/* Other users must get as far as the socket's own directory. */
static void open_directory(const struct daemon_fixture *fixture)
{
        assert_int_equal(chmod(fixture->directory, 0711), 0);
}

static uint64_t tokens_in(const struct daemon_fixture *fixture)
{
        return fixture_status(fixture, "tokens_in");
}

/* ---- which users may connect ---- */

static unsigned mode_of(const char *path)
{
        struct stat st;

        assert_int_equal(stat(path, &st), 0);
        return st.st_mode & 07777;
}

static void assert_cannot_connect(const struct daemon_fixture *fixture, uint32_t uid,
                                  uint32_t group)
{
        struct other_user other_user = other_user_start(fixture, uid, group);
        char expected[160];

        assert_int_equal(other_user.connected, -EACCES);
        snprintf(expected, sizeof(expected), "%s: Permission denied", fixture->socket);
        assert_memory_equal(other_user.message, expected, strlen(expected));
        other_user_stop(&other_user);
}

static void assert_can_connect(const struct daemon_fixture *fixture, uint32_t uid, uint32_t group)
{
        struct question question = { .count = 3, .max_tokens = 5, .tokens = { 't', 'e', 'a' } };
        struct other_user other_user = other_user_start(fixture, uid, group);

        assert_string_equal(other_user.message, "");
        assert_int_equal(other_user.connected, 0);
        other_user_send(&other_user, &question);
        assert_int_equal(other_user_receive(&other_user).output_tokens, 5);
        other_user_stop(&other_user);
        await_other_users_gone(fixture);
}

static void by_default_only_the_owner_can_connect(void **state)
{
        struct daemon_fixture *fixture = *state;
        char in[96];

        open_directory(fixture);
        snprintf(in, sizeof(in), "%s/in", fixture->directory);
        START_DAEMON(fixture, MANY_CONNECTS);
        assert_int_equal(mode_of(in), 0700);
        assert_int_equal(mode_of(fixture->socket), 0600);
        assert_cannot_connect(fixture, ALICE, 0);
        /* a directory that is open does not admit them by itself */
        assert_int_equal(chmod(in, 0755), 0);
        assert_cannot_connect(fixture, ALICE, 0);
        fixture_stop(fixture);
}

static void socket_group_admits_only_its_members(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stat st;
        char in[96];

        open_directory(fixture);
        snprintf(in, sizeof(in), "%s/in", fixture->directory);
        START_DAEMON(fixture, MANY_CONNECTS, "--socket-mode", "0660", "--socket-group", "65532");
        assert_int_equal(stat(fixture->socket, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0660);
        assert_int_equal(st.st_gid, GROUP);
        assert_int_equal(stat(in, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0750);
        assert_int_equal(st.st_gid, GROUP);
        assert_can_connect(fixture, ALICE, GROUP);
        assert_can_connect(fixture, GROUP, 0); /* this is its own group */
        assert_cannot_connect(fixture, BOB, 0);
        assert_cannot_connect(fixture, BOB, ALICE);
        assert_int_equal(chmod(in, 0755), 0);
        assert_cannot_connect(fixture, BOB, 0);
        fixture_stop(fixture);
}

static void socket_mode_0666_admits_every_user(void **state)
{
        struct daemon_fixture *fixture = *state;

        open_directory(fixture);
        START_DAEMON(fixture, OPEN);
        assert_int_equal(mode_of(fixture->socket), 0666);
        assert_can_connect(fixture, ALICE, 0);
        assert_can_connect(fixture, BOB, 0);
        fixture_stop(fixture);
}

static void warns_if_the_directory_bars_the_users_of_the_socket_mode(void **state)
{
        struct daemon_fixture *fixture = *state;
        char in[96], said[160];

        open_directory(fixture);
        snprintf(in, sizeof(in), "%s/in", fixture->directory);
        assert_int_equal(mkdir(in, 0700), 0);
        START_DAEMON(fixture, OPEN);
        assert_int_equal(mode_of(in), 0700);
        snprintf(said, sizeof(said),
                 "directory_bars_the_way directory=%s mode=0700 socket_mode=0666", in);
        assert_true(fixture_logged(fixture, said));
        assert_cannot_connect(fixture, ALICE, 0);
        fixture_stop(fixture);
}

/* A group that does not exist: one line, status 1, and nothing is left at the socket's path. */
static void refuses_an_unknown_socket_group_in_one_line(void **state)
{
        const struct daemon_fixture *fixture = *state;
        struct run_result ran;

        ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--model", env_path("TOY_MODEL"), "--socket",
                  fixture->socket, "--socket-mode", "0660", "--socket-group", "no such group",
                  "--log-level", "error");
        assert_int_equal(ran.status, 1);
        assert_string_equal(ran.err,
                            "samovard: socket_group is no such group: there is no such group\n");
        run_result_free(&ran);
        assert_int_equal(stat(fixture->socket, &(struct stat){ 0 }), -1);
}

/* ---- shared and separate caches ---- */

/* Asks; the daemon's own count of tokens that it has read must agree with the END. */
static struct answer ask_and_count(const struct daemon_fixture *fixture,
                                   const struct other_user *other_user,
                                   const struct question *question)
{
        uint64_t before = tokens_in(fixture);
        struct answer answer;

        other_user_send(other_user, question);
        answer = other_user_receive(other_user);
        assert_int_equal(answer.prompt_tokens, question->count);
        assert_int_equal(tokens_in(fixture) - before, question->count - answer.cached_tokens);
        return answer;
}

static void processes_of_one_user_share_a_common_prefix(void **state)
{
        struct question first = { .count = PREFIX + OWN, .max_tokens = 4 }, second;
        struct daemon_fixture *fixture = *state;
        struct other_user one, other;
        struct answer cold, warm;

        open_directory(fixture);
        START_QUICK_DAEMON(fixture, OPEN);
        random_prompt(first.tokens, first.count);
        second = first;
        random_prompt(second.tokens + PREFIX, OWN);
        one = other_user_start(fixture, ALICE, 0);
        other = other_user_start(fixture, ALICE, 0);

        cold = ask_and_count(fixture, &one, &first);
        assert_int_equal(cold.cached_tokens, 0);
        warm = ask_and_count(fixture, &other, &second);
        printf("# of %u tokens the second process computed %u\n", second.count,
               second.count - warm.cached_tokens);
        assert_in_range(second.count - warm.cached_tokens, 1, 19);

        other_user_stop(&one);
        other_user_stop(&other);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

static void two_users_with_the_same_prompt_share_no_blocks(void **state)
{
        struct question question = { .count = PREFIX, .max_tokens = 4 };
        struct daemon_fixture *fixture = *state;
        struct other_user alice, bob;
        struct answer hers, his;

        open_directory(fixture);
        START_QUICK_DAEMON(fixture, OPEN);
        random_prompt(question.tokens, question.count);
        alice = other_user_start(fixture, ALICE, 0);
        bob = other_user_start(fixture, BOB, 0);

        hers = ask_and_count(fixture, &alice, &question);
        his = ask_and_count(fixture, &bob, &question);
        assert_int_equal(hers.cached_tokens, 0);
        assert_int_equal(his.cached_tokens, 0);
        assert_memory_equal(hers.tokens, his.tokens, 4 * sizeof(uint32_t));
        /* Each user has its own copy by now. */
        assert_int_equal(ask_and_count(fixture, &alice, &question).cached_tokens, PREFIX - 1);
        assert_int_equal(ask_and_count(fixture, &bob, &question).cached_tokens, PREFIX - 1);

        other_user_stop(&alice);
        other_user_stop(&bob);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

/* Two streams of one user that compute the same at once are merged.  Two users' streams are not. */
static void two_users_share_no_blocks_while_both_requests_run(void **state)
{
        struct question question = { .count = PREFIX, .max_tokens = OTHER_USER_OUTPUT_MAX };
        struct daemon_fixture *fixture = *state;
        struct other_user alice, bob;
        struct answer hers, his;
        uint64_t before;

        open_directory(fixture);
        START_QUICK_DAEMON(fixture, OPEN);
        random_prompt(question.tokens, question.count);
        alice = other_user_start(fixture, ALICE, 0);
        bob = other_user_start(fixture, BOB, 0);

        before = tokens_in(fixture);
        other_user_send(&alice, &question);
        question.max_tokens = 4;
        /* while Alice's prompt is being read, or her tokens are being generated */
        other_user_send(&bob, &question);
        his = other_user_receive(&bob);
        hers = other_user_receive(&alice);
        assert_int_equal(hers.cached_tokens, 0);
        assert_int_equal(his.cached_tokens, 0);
        assert_int_equal(tokens_in(fixture) - before, 2 * PREFIX);
        assert_memory_equal(hers.tokens, his.tokens, 4 * sizeof(uint32_t));

        other_user_stop(&alice);
        other_user_stop(&bob);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

static uint32_t count_of(const char *text, const char *words)
{
        uint32_t count = 0;

        while ((text = strstr(text, words))) {
                text += strlen(words);
                count++;
        }
        return count;
}

/* Asserts how many users' rows a status shows, and whether it has the sums over all users. */
static void expect_status(const struct other_user *other_user, uint32_t uid)
{
        const struct question look = { .action = USER_READS_STATUS, .count = 1 };
        struct answer answer;
        char own[32];

        other_user_send(other_user, &look);
        answer = other_user_receive(other_user);
        snprintf(own, sizeof(own), "[{\"uid\":%u,", uid);
        assert_non_null(strstr(answer.status, own));
        assert_int_equal(count_of(answer.status, "\"prompt_bytes\""), 1);
        assert_int_equal(count_of(answer.status, "\"tokens_in\""), 0);
        assert_int_equal(count_of(answer.status, "\"connections\""), 2); /* its own, and a limit */
        assert_int_equal(count_of(answer.status, "\"waiting\""), 2);     /* its own, and all */
        assert_int_equal(count_of(answer.status, "\"step_rows\""), 0);
        assert_int_equal(count_of(answer.status, "\"token_delivery_seconds\""), 0);
        assert_int_equal(count_of(answer.status, "\"refusals\""), 0);
}

static void status_hides_the_charges_of_other_users(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct other_user alice, bob;
        struct raw_client *client;

        open_directory(fixture);
        START_QUICK_DAEMON(fixture, OPEN);
        alice = other_user_start(fixture, ALICE, 0);
        bob = other_user_start(fixture, BOB, 0);
        expect_status(&alice, ALICE);
        expect_status(&bob, BOB);
        client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET); /* root's */
        assert_non_null(reply_at(raw_client_call(client, "op=s", "status"), "status.users.2.uid"));
        assert_int_equal(raw_client_status(client, "connections.open"), 3);
        raw_client_close(client);
        other_user_stop(&alice);
        other_user_stop(&bob);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

/* ---- by the clock ---- */

/* of a prompt: to read it costs ten times what a request costs, and more; */
#define LENGTH    480u
#define SANITIZED 240u /* so does half of it where every row is expensive */

static uint32_t length;

/*
 * A user asks for a prompt (`asked`) or, depending on a random bit, for another of the same length.
 * Then Bob asks for the first one.  No prompt comes twice, so no trial warms another.  The other
 * prompt has the same tokens, its second half first, so that the same rows of the weights are in
 * the processor's caches. As long as attention had a branch that depended on scores, we found an
 * area of 0.52 to 0.63, depending on the processor.
 */
static struct trial try_once(const struct other_user *first_user, const struct other_user *bob)
{
        static struct question prompt = { .max_tokens = 1 }, other = { .max_tokens = 1 };
        bool asked = random_below(2);
        struct answer answer;

        prompt.count = other.count = length;
        random_prompt(prompt.tokens, length);
        for (uint32_t i = 0; i < length; i++)
                other.tokens[i] = prompt.tokens[(i + length / 2) % length];
        other_user_send(first_user, asked ? &prompt : &other);
        other_user_receive(first_user);
        other_user_send(bob, &prompt);
        answer = other_user_receive(bob);
        return (struct trial){ .asked = asked,
                               .signs = { (double)answer.first_ns, (double)answer.prefill_ns,
                                          -(double)answer.cached_tokens } };
}

static void response_times_reveal_nothing_about_another_user(void **state)
{
        static const struct leak leak = {
                .alice = ALICE,
                .bob = BOB,
                .try_once = try_once,
                .names = { "first token", "prefill_ns", "cached_tokens" },
                .within_least = { 0.65, 0.95, 0.95 },
        };
        struct daemon_fixture *fixture = *state;

        open_directory(fixture);
        random_begin();
        START_QUICK_DAEMON(fixture, OPEN);
        length = fixture->sanitized ? SANITIZED : LENGTH;
        assert_no_leak(fixture, &leak);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(by_default_only_the_owner_can_connect),
                DAEMON_TEST(socket_group_admits_only_its_members),
                DAEMON_TEST(socket_mode_0666_admits_every_user),
                DAEMON_TEST(warns_if_the_directory_bars_the_users_of_the_socket_mode),
                DAEMON_TEST(refuses_an_unknown_socket_group_in_one_line),
                DAEMON_TEST(processes_of_one_user_share_a_common_prefix),
                DAEMON_TEST(two_users_with_the_same_prompt_share_no_blocks),
                DAEMON_TEST(two_users_share_no_blocks_while_both_requests_run),
                DAEMON_TEST(status_hides_the_charges_of_other_users),
                DAEMON_TEST(response_times_reveal_nothing_about_another_user),
        };
        /* Which user owns the memory of a ring is another question than which user owns the
         * socket. */
        const struct CMUnitTest with_a_ring[] = {
                DAEMON_TEST(socket_group_admits_only_its_members),
                DAEMON_TEST(processes_of_one_user_share_a_common_prefix),
                DAEMON_TEST(two_users_with_the_same_prompt_share_no_blocks),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        require_other_users();
        if (raw_client_transport() != RAW_CLIENT_SOCKET)
                return cmocka_run_group_tests(with_a_ring, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
