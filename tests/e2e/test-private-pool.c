/*
 * The memory of a private daemon.  Not in the suite `threads`: ThreadSanitizer's own memory is
 * resident, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

static uint64_t resident_bytes(pid_t pid)
{
        char path[64], *text, *at;
        uint64_t bytes = 0;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        text = file_text(path);
        at = strstr(text, "VmRSS:");
        if (at)
                bytes = strtoull(at + 6, NULL, 10) << 10;
        free(text);
        return bytes;
}

/* A private daemon answers one request; most of its pool is never needed. */
static void a_private_daemon_leaves_the_pool_that_it_does_not_use(void **state)
{
        struct daemon_fixture *fixture = *state;
        const struct want want = { .prompt = "Once", .max_tokens = 2000, .ignore_eos = true };
        struct raw_client *client;
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        fixture->pid = fixture_spawn(fixture,
                                     (const char *const[]){ "--model",
                                                            make_quick_model(fixture, CONTEXT_LONG),
                                                            "--kv-bytes", "2G", "--fd", "3", NULL },
                                     pair[1]);
        close(pair[1]);
        client = raw_client_adopt(pair[0]);
        assert_true(raw_client_hello(client, raw_client_transport())->ok);
        raw_client_complete(client, &want);
        /* The index takes 1 GiB if the allocator fills its memory, as it does in tests. */
        assert_in_range(resident_bytes(fixture->pid), 1 << 20, UINT64_C(5) << 28);
        raw_client_close(client);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_private_daemon_leaves_the_pool_that_it_does_not_use),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
