#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "bridge/start/config.h"
#include "bridge/start/text-list.h"

static char why[256];

/* Reads `samovar-http` and these flags. */
#define READ(config, ...)                                                                          \
        settings_read(&bridge_config_table, config,                                                \
                      (int)(sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *)) + 1,               \
                      (char *[]){ "samovar-http", __VA_ARGS__, NULL }, why, sizeof(why))

#define REFUSES(text, ...)                                                                         \
        do {                                                                                       \
                struct bridge_config refused;                                                      \
                assert_int_equal(READ(&refused, "--config", "none", __VA_ARGS__), -EINVAL);        \
                assert_string_equal(why, text);                                                    \
        } while (0)

static void defaults_are_as_documented(void **state)
{
        struct bridge_config c;

        (void)state;
        assert_int_equal(READ(&c, "--config", "none"), 0);
        assert_string_equal(c.listen, "127.0.0.1:7266,[::1]:7266");
        assert_null(c.listen_unix);
        assert_int_equal(c.listen_unix_mode, 0600);
        assert_null(c.keys);
        assert_false(c.any_local_user);
        assert_int_equal(c.unix_peers, BRIDGE_PEERS_OWN);
        assert_null(c.allow_hosts);
        assert_null(c.allow_origins);
        assert_null(c.socket);
        assert_null(c.alias);
        assert_int_equal(c.connections, 128);
        assert_int_equal(c.body_bytes, 32 << 20);
        assert_int_equal(c.bodies_bytes, 256 << 20);
        assert_int_equal(c.queue_bytes, 4 << 20);
        assert_int_equal(c.header_timeout_ms, 10000);
        assert_int_equal(c.body_timeout_ms, 60000);
        assert_int_equal(c.idle_timeout_ms, 75000);
        assert_int_equal(c.write_timeout_ms, 60000);
        assert_int_equal(c.drain_timeout_ms, 30000);
        assert_int_equal(c.ping_ms, 10000);
        assert_int_equal(c.response_keep_ms, 3600000);
        assert_int_equal(c.response_max, 1000);
        assert_int_equal(c.files_max, 100);
        assert_int_equal(c.files_bytes, 1 << 30);
        assert_int_equal(c.batch_parallel, 8);
        assert_string_equal(c.spool, "/tmp");
        assert_int_equal(c.log_level, LOG_INFO);
        settings_deinit(&bridge_config_table, &c);
}

static void refuses_lists_with_empty_items_and_aliases_without_a_model(void **state)
{
        (void)state;
        REFUSES("listen is 127.0.0.1:1,,[::1]:1; an item between commas is empty", "--listen",
                "127.0.0.1:1,,[::1]:1");
        REFUSES("allow_hosts is a, ; an item between commas is empty", "--allow-hosts", "a, ");
        REFUSES("allow_origins is ,; an item between commas is empty", "--allow-origins", ",");
        REFUSES("alias has gpt-4; an item must be NAME=MODEL", "--alias", "a=b,gpt-4");
        REFUSES("alias has =b; an item must be NAME=MODEL", "--alias", "=b");
        REFUSES("alias has a=; an item must be NAME=MODEL", "--alias", "a=");
}

static void refuses_settings_that_contradict_each_other(void **state)
{
        (void)state;
        REFUSES("any_local_user lets users of this machine in without a key, but keys is /k; leave "
                "one of them out",
                "--any-local-user", "--keys", "/k");
        REFUSES("bodies_bytes is 1048576 and body_bytes is 33554432; there must be space for one "
                "body",
                "--bodies-bytes", "1M");
}

static void a_list_is_split_at_commas_without_the_blanks(void **state)
{
        struct text_list list;

        (void)state;
        assert_int_equal(text_list_init(&list, "a, b c ,\td"), 0);
        assert_int_equal(list.count, 3);
        assert_string_equal(list.items[0], "a");
        assert_string_equal(list.items[1], "b c");
        assert_string_equal(list.items[2], "d");
        assert_null(list.items[3]);
        text_list_deinit(&list);
        assert_int_equal(text_list_init(&list, NULL), 0);
        assert_int_equal(list.count, 0);
        assert_null(list.items[0]);
        text_list_deinit(&list);
        assert_int_equal(text_list_init(&list, ""), -EINVAL);
}

/* samovard's file beside it is not for this program. */
static void reads_a_file_of_its_own_name(void **state)
{
        char folder[] = "/tmp/test-bridge-config-XXXXXX", path[96];
        struct bridge_config c;
        FILE *file;

        (void)state;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/samovar", folder);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/samovar/samovar-http.conf", folder);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs("connections = 5\nalias = \"*=teaspoon\"\n", file);
        fclose(file);
        setenv("XDG_CONFIG_HOME", folder, 1);
        assert_int_equal(READ(&c, "--ping-ms", "5000"), 0);
        assert_int_equal(c.connections, 5);
        assert_int_equal(c.ping_ms, 5000);
        assert_string_equal(c.alias, "*=teaspoon");
        assert_string_equal(c.file, path);
        settings_deinit(&bridge_config_table, &c);
        unlink(path);
        snprintf(path, sizeof(path), "%s/samovar/samovar.conf", folder);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs("max_seqs = 5\n", file);
        fclose(file);
        setenv("HOME", folder, 1);
        assert_int_equal(READ(&c, "--ping-ms", "5000"), 0);
        assert_true(!c.file || !strstr(c.file, folder));
        settings_deinit(&bridge_config_table, &c);
        unsetenv("XDG_CONFIG_HOME");
        unlink(path);
        snprintf(path, sizeof(path), "%s/samovar", folder);
        rmdir(path);
        rmdir(folder);
}

static void help_names_the_program_and_its_settings(void **state)
{
        char *text = NULL;
        size_t bytes;
        FILE *to = open_memstream(&text, &bytes);

        (void)state;
        assert_non_null(to);
        settings_help(&bridge_config_table, to);
        fclose(to);
        assert_memory_equal(text, "usage: samovar-http ", 20);
        assert_non_null(strstr(text, "--listen ADDRESS:PORT,..."));
        assert_non_null(strstr(text, "[127.0.0.1:7266,[::1]:7266]"));
        assert_non_null(strstr(text, "own, all [own]"));
        free(text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(defaults_are_as_documented),
                cmocka_unit_test(refuses_lists_with_empty_items_and_aliases_without_a_model),
                cmocka_unit_test(refuses_settings_that_contradict_each_other),
                cmocka_unit_test(a_list_is_split_at_commas_without_the_blanks),
                cmocka_unit_test(reads_a_file_of_its_own_name),
                cmocka_unit_test(help_names_the_program_and_its_settings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
