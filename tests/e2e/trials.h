/*
 * Trials that show whether something leaks: whether what is measured in a trial tells anything
 * about what was done before it, by the fall of a coin.
 */
#ifndef TESTS_E2E_TRIALS_H
#define TESTS_E2E_TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/e2e/other-user.h"

#define SIGNS 3u /* what is measured in a trial */

/* `asked`: it was done before; the test says what. */
struct trial {
        bool asked;
        double signs[SIGNS];
};

/* What one user may learn of another by its clock and its ENDs. */
struct leak {
        uint32_t alice, bob;
        /* A user does something, or not, by the fall of a coin; then Bob measures. */
        struct trial (*try_once)(const struct other_user *first_user, const struct other_user *bob);
        const char *names[SIGNS];
        double within_least[SIGNS]; /* the area within one user, which shows that the sign works */
};

/*
 * Fails if a sign tells Bob what Alice did; or if it does not tell what another process of Bob did.
 * The daemon runs, and admits both.
 */
void assert_no_leak(const struct daemon_fixture *fixture, const struct leak *leak);

#endif
