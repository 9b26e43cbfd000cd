#include "tests/e2e/trials.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/honest-client.h"

#define TRIALS_MAX 6000u /* of one measurement */
#define LOOKS      3u
#define WARM_UP    20u

struct trials {
        struct trial at[LOOKS * TRIALS_MAX];
        uint32_t count;
};

static uint32_t sort_key;

static int compare_signs(const void *a, const void *b)
{
        double left = ((const struct trial *)a)->signs[sort_key];
        double right = ((const struct trial *)b)->signs[sort_key];

        return (left > right) - (left < right);
}

/*
 * How often a trial of the asked ones has a smaller sign than one of the others, where ties count
 * half: 0.5 means that the sign tells nothing.  Only ranks count, so it makes no difference how
 * fast the machine is, or whether it is sometimes slow.
 */
static double rank_area(struct trials *trials, uint32_t sign)
{
        double asked = 0, others = 0, wins = 0;

        sort_key = sign;
        qsort(trials->at, trials->count, sizeof(*trials->at), compare_signs);
        for (uint32_t i = 0, end; i < trials->count; i = end) {
                double asked_here = 0, others_here = 0;

                for (end = i;
                     end < trials->count && !compare_signs(&trials->at[i], &trials->at[end]); end++)
                        *(trials->at[end].asked ? &asked_here : &others_here) += 1;
                wins += others_here * (asked + asked_here / 2);
                asked += asked_here;
                others += others_here;
        }
        assert_true(asked > 0 && others > 0);
        return wins / (asked * others);
}

/*
 * Measures across users and, for comparison, within one user, in an order that random bits decide.
 * So a disturbance of the machine affects both, and affects what was done before as much as the
 * rest.  With 1,000 of each, the area's standard error is 0.013 if there is nothing to find.
 *
 * Returns true if all measurements so far found nothing across users, and this one found what is
 * shared within one user.  The daemon's own numbers nearly always show that.  Bob's own clock shows
 * it if other processes leave the machine idle enough; on an idle machine that is nearly always,
 * too.
 */
static bool measure(const struct leak *leak, const struct other_user *alice,
                    const struct other_user *twin, const struct other_user *bob)
{
        static struct trials across, within;
        uint32_t trials = scaled(500, TRIALS_MAX), most = across.count + trials;
        double slack = trials >= 2000 ? 0.05 : 0.10;
        bool sound = true;

        within.count = 0;
        while (across.count < most || within.count < trials) {
                bool across_users =
                        within.count == trials || (across.count < most && random_below(2));
                struct trials *to = across_users ? &across : &within;

                to->at[to->count++] = leak->try_once(across_users ? alice : twin, bob);
        }
        for (uint32_t i = 0; i < SIGNS; i++) {
                double apart = rank_area(&across, i), together = rank_area(&within, i);

                printf("# %u trials, %s: area %.3f across users, %.3f within one\n", most,
                       leak->names[i], apart, together);
                sound &= apart > 0.5 - slack && apart < 0.5 + slack &&
                         together >= leak->within_least[i];
        }
        return sound;
}

/*
 * On a busy machine the clock may find nothing even within one user, and then a measurement says
 * nothing.  Of a thousand measurements across users some find a difference by chance.  So the test
 * measures again: chance shrinks with the number of all trials, and a real difference stays.
 */
void assert_no_leak(const struct daemon_fixture *fixture, const struct leak *leak)
{
        struct other_user alice = other_user_start(fixture, leak->alice, 0);
        struct other_user twin = other_user_start(fixture, leak->bob, 0);
        struct other_user bob = other_user_start(fixture, leak->bob, 0);
        uint32_t looks = 1;

        for (uint32_t i = 0; i < WARM_UP; i++)
                leak->try_once(i & 1 ? &alice : &twin, &bob);
        while (!measure(leak, &alice, &twin, &bob))
                assert_true(looks++ < LOOKS);
        other_user_stop(&alice);
        other_user_stop(&twin);
        other_user_stop(&bob);
        await_other_users_gone(fixture);
}
