/*
 * Two users, one daemon that takes guesses from earlier answers.  Such a guess makes an answer
 * faster if it had been given before, to the same user.  If it had been given to another user, the
 * daemon has no guess, and no clock tells.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/honest-client.h"
#include "tests/e2e/other-user.h"
#include "tests/e2e/trials.h"

#define ALICE 65533u
#define BOB   65531u

#define PROMPT 24u
#define ANSWER 48u /* tokens; nearly all are guessed if the answer is known */

static void draw(struct question *question)
{
        random_prompt(question->tokens, question->count);
        question->seed = 1 + random_below(1u << 30);
}

/*
 * A user asks a question (`asked`) or, depending on a random bit, another one with the same number
 * of tokens; then Bob asks the first one.  No question comes twice, so no trial warms another.
 */
static struct trial try_once(const struct other_user *first_user, const struct other_user *bob)
{
        static struct question question = { .count = PROMPT, .max_tokens = ANSWER };
        static struct question other = { .count = PROMPT, .max_tokens = ANSWER };
        bool asked = random_below(2);
        struct answer answer;

        draw(&question);
        draw(&other);
        other_user_send(first_user, asked ? &question : &other);
        other_user_receive(first_user);
        other_user_send(bob, &question);
        answer = other_user_receive(bob);
        assert_int_equal(answer.output_tokens, ANSWER);
        return (struct trial){ .asked = asked,
                               .signs = { (double)answer.all_ns, (double)answer.decode_ns,
                                          -(double)answer.drafts_right } };
}

/* Rows of guesses are always computed: it must not depend on the time that steps take. */
static void no_clock_tells_what_another_user_was_answered(void **state)
{
        static const struct leak leak = {
                .alice = ALICE,
                .bob = BOB,
                .try_once = try_once,
                .names = { "whole answer", "decode_ns", "drafts_right" },
                .within_least = { 0.65, 0.80, 0.95 },
        };
        struct daemon_fixture *fixture = *state;

        assert_int_equal(chmod(fixture->directory, 0711), 0);
        random_begin();
        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--socket-mode", "0666",
                           "--draft", "always");
        assert_no_leak(fixture, &leak);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(no_clock_tells_what_another_user_was_answered),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        require_other_users();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
