/* Where a client looks for the daemon, and which users it trusts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/daemon-address.h"
#include "tests/skip.h"

#define OTHER 4242u

static char directory[64], above[96], folder[128], file[128];

static int set_up(void **state)
{
        (void)state;
        if (geteuid() != 0) {
                print_message("# SKIP only root can make files of other users\n");
                return 0;
        }
        strcpy(directory, "/tmp/samovar-address-XXXXXX");
        assert_non_null(mkdtemp(directory));
        snprintf(above, sizeof(above), "%s/run", directory);
        snprintf(folder, sizeof(folder), "%s/samovar", above);
        snprintf(file, sizeof(file), "%s/client.conf", directory);
        return mkdir(above, 0755) || mkdir(folder, 0755);
}

static int tear_down(void **state)
{
        (void)state;
        if (geteuid() != 0)
                return 0;
        unlink(file);
        return rmdir(folder) || rmdir(above) || rmdir(directory);
}

static void looks_for_the_users_daemon_and_then_for_the_machines(void **state)
{
        struct daemon_paths paths;

        (void)state;
        unsetenv("SAMOVAR_SOCKET");
        setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
        daemon_paths_find(NULL, &paths);
        assert_int_equal(paths.count, 2);
        assert_string_equal(paths.at[0], "/run/user/7/samovar/sock");
        assert_string_equal(paths.at[1], "/run/samovar/sock");

        setenv("XDG_RUNTIME_DIR", "relative", 1);
        daemon_paths_find(NULL, &paths);
        assert_int_equal(paths.count, 1);
        assert_string_equal(paths.at[0], "/run/samovar/sock");

        setenv("SAMOVAR_SOCKET", "/a/sock", 1);
        daemon_paths_find(NULL, &paths);
        assert_int_equal(paths.count, 1);
        assert_string_equal(paths.at[0], "/a/sock");
        daemon_paths_find("/b/sock", &paths);
        assert_int_equal(paths.count, 1);
        assert_string_equal(paths.at[0], "/b/sock");
        unsetenv("SAMOVAR_SOCKET");
        unsetenv("XDG_RUNTIME_DIR");
}

static void trusts_the_owner_of_a_folder_that_root_made(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip_because("only root can make files of other users");
        assert_int_equal(chown(folder, OTHER, OTHER), 0);
        assert_true(trust_by_folder(folder, above, OTHER));
        assert_false(trust_by_folder(folder, above, OTHER + 1));

        /* Another user could have put its own folder there. */
        assert_int_equal(chmod(above, 0777), 0);
        assert_false(trust_by_folder(folder, above, OTHER));
        assert_int_equal(chmod(above, 0755), 0);
        assert_int_equal(chown(above, OTHER, OTHER), 0);
        assert_false(trust_by_folder(folder, above, OTHER));
        assert_int_equal(chown(above, 0, 0), 0);

        /* Another user could have put its own socket there. */
        assert_int_equal(chmod(folder, 0775), 0);
        assert_false(trust_by_folder(folder, above, OTHER));
}

static void write_file(const char *text)
{
        FILE *to = fopen(file, "w");

        assert_non_null(to);
        fputs(text, to);
        fclose(to);
        assert_int_equal(chmod(file, 0644), 0);
}

static void trusts_the_users_that_roots_file_names(void **state)
{
        (void)state;
        if (geteuid() != 0)
                skip_because("only root can make files of other users");
        assert_false(trust_by_file(file, OTHER));
        write_file("# a comment: trust = 7\n\n  trust = 4242\ntrust=nobody\ntrust = no such user\n"
                   "trust = 4294967295\ntrust = 12x\n");
        assert_true(trust_by_file(file, OTHER));
        assert_true(trust_by_file(file, 65534));
        assert_false(trust_by_file(file, 7));
        assert_false(trust_by_file(file, 12));
        assert_false(trust_by_file(file, UINT32_MAX));

        /* A file that others may write says nothing. */
        assert_int_equal(chmod(file, 0666), 0);
        assert_false(trust_by_file(file, OTHER));
        assert_int_equal(chmod(file, 0644), 0);
        assert_int_equal(chown(file, OTHER, OTHER), 0);
        assert_false(trust_by_file(file, OTHER));
}

static void trusts_root_and_itself_anywhere(void **state)
{
        (void)state;
        assert_true(daemon_is_trusted("/tmp/sock", 0));
        assert_true(daemon_is_trusted("/tmp/sock", geteuid()));
        assert_false(daemon_is_trusted("/tmp/sock", OTHER));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(looks_for_the_users_daemon_and_then_for_the_machines),
                cmocka_unit_test_setup_teardown(trusts_the_owner_of_a_folder_that_root_made, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(trusts_the_users_that_roots_file_names, set_up,
                                                tear_down),
                cmocka_unit_test(trusts_root_and_itself_anywhere),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
