/*
 * The share of time that a user has.  Two other users flood the daemon with interactive requests,
 * more than it has slots.  The user of the daemon gets its part all the same.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/other-user.h"
#include "tests/e2e/honest-client.h"

#define ALICE 65533u
#define BOB   65531u

#define SAMPLE_MS 5000u /* many times the difference that the classes of users make */

/* Each flood alone would take all slots. Drafts could make the tokens of one cheaper. */
#define FEW_SLOTS                                                                                  \
        MANY_CONNECTS, "--threads", "1", "--max-seqs", "4", "--kv-bytes", "2M", "--socket-mode",   \
                "0666", "--draft", "off"

static const struct want normal = { .prompt = "What have they left for me?",
                                    .max_tokens = 60,
                                    .temperature = 1,
                                    .seed = 43,
                                    .ignore_eos = true };

static struct daemon_fixture *open_to_all(void **state)
{
        struct daemon_fixture *fixture = *state;

        assert_int_equal(chmod(fixture->directory, 0711), 0);
        return fixture;
}

static void flood(const struct other_user *other_user, enum smv_priority priority)
{
        struct question question = {
                .action = USER_FLOODS, .priority = priority, .count = 20, .max_tokens = 1500
        };

        random_prompt(question.tokens, question.count);
        other_user_send(other_user, &question);
}

/* Ends the count of tokens; the flood itself goes on. */
static uint32_t count_tokens(const struct other_user *other_user, enum smv_priority priority)
{
        flood(other_user, priority);
        return other_user_receive(other_user).output_tokens;
}

static void wait_until_full(struct raw_client *client)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (raw_client_status(client, "requests.running") != 4 ||
               raw_client_status(client, "requests.waiting") < 4) {
                assert_true(now_ms() < end);
                sleep_ms(5);
        }
}

/*
 * The owner's turn comes when each of the others has had as much more time as its class is worth:
 * two leads, together two seconds.  Before, the owner may get tokens for a moment: while it
 * arrives, the others need not wait.  So it must get some in each of the windows, one after the
 * other; the two seconds without tokens fill three of them.
 */
static void wait_for_turn(const struct other_user *owner)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        uint32_t windows = 0;

        while (windows < 4) {
                assert_true(now_ms() < end);
                sleep_ms(500);
                windows = count_tokens(owner, SMV_PRIORITY_BACKGROUND) < 100 ? 0 : windows + 1;
        }
}

static void floods_of_interactive_requests_leave_the_owner_its_share(void **state)
{
        struct daemon_fixture *fixture = open_to_all(state);
        struct other_user alice, bob, owner;
        struct raw_client *client;
        uint64_t own, hers, his;

        START_QUICK_DAEMON(fixture, FEW_SLOTS);
        client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        alice = other_user_start(fixture, ALICE, 0);
        bob = other_user_start(fixture, BOB, 0);
        flood(&alice, SMV_PRIORITY_INTERACTIVE);
        flood(&bob, SMV_PRIORITY_INTERACTIVE);
        wait_until_full(client);

        /* Its answer comes although the others never cease. */
        assert_int_equal(raw_client_complete(client, &normal)->token_count, normal.max_tokens);

        /* With as much to ask for as the others it gets as much. */
        owner = other_user_start(fixture, geteuid(), 0);
        flood(&owner, SMV_PRIORITY_BACKGROUND);
        wait_for_turn(&owner);
        count_tokens(&alice, SMV_PRIORITY_INTERACTIVE);
        count_tokens(&bob, SMV_PRIORITY_INTERACTIVE);
        sleep_ms(SAMPLE_MS);
        own = count_tokens(&owner, SMV_PRIORITY_BACKGROUND);
        hers = count_tokens(&alice, SMV_PRIORITY_INTERACTIVE);
        his = count_tokens(&bob, SMV_PRIORITY_INTERACTIVE);
        printf("tokens of the owner: %llu, of the others: %llu and %llu\n", (unsigned long long)own,
               (unsigned long long)hers, (unsigned long long)his);
        assert_true(2 * own >= hers && 2 * own >= his);
        assert_true(2 * hers >= own && 2 * his >= own);

        raw_client_close(client);
        other_user_stop(&owner);
        other_user_stop(&alice);
        other_user_stop(&bob);
        await_other_users_gone(fixture);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(floods_of_interactive_requests_leave_the_owner_its_share),
        };

        require_other_users();
        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
