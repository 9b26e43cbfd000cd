/*
 * How a case of cmocka is skipped: with its reason, which contrib/dev/tally prints.
 */
#ifndef TESTS_SKIP_H
#define TESTS_SKIP_H

/* The reason is a line of its own in the test's output, just before the case.  Does not return. */
#define skip_because(reason)                                                                       \
        do {                                                                                       \
                print_message("# %s\n", reason);                                                   \
                skip();                                                                            \
        } while (0)

#endif
