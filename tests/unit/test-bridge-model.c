/* The name of the model that a request has, and the daemon's name for it. */
#include "tests/unit/call-rig.h"

#include <string.h>

#define CHAT "/v1/chat/completions"

static void a_name_that_is_missing_or_empty_means_the_default(void **state)
{
        const char *name = "not set";
        struct call_rig rig;

        (void)state;
        call_rig_start(&rig, CHAT, "{}");
        assert_true(bridge_model(rig.call, (struct text){ 0 }, &name));
        assert_null(name);
        name = "not set";
        assert_true(bridge_model(rig.call, TEXT(""), &name));
        assert_null(name);
        call_rig_end(&rig);
}

static void the_tag_of_ollama_is_left_out(void **state)
{
        const char *name = NULL;
        struct call_rig rig;

        (void)state;
        call_rig_start(&rig, "/api/chat", "{}");
        assert_true(bridge_model(rig.call, TEXT("toy:latest"), &name));
        assert_string_equal(name, "toy");
        assert_true(bridge_model(rig.call, TEXT("toy:8b"), &name));
        assert_string_equal(name, "toy:8b");
        call_rig_end(&rig);
}

/* It must not run with the default model instead. */
static void fails_the_call_if_there_is_no_memory_for_the_name(void **state)
{
        static const char *const paths[] = { CHAT, "/v1/messages", "/api/chat" };
        static const unsigned statuses[] = { 503, 529, 503 };
        const char *name = "not set";
        struct call_rig rig;

        (void)state;
        for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
                call_rig_start(&rig, paths[i], "{}");
                rig.call->arena.failed = true;
                assert_false(bridge_model(rig.call, TEXT("toy"), &name));
                assert_null(name);
                assert_true(rig.call->over);
                assert_int_equal(rig.status, statuses[i]);
                assert_non_null(strstr(rig.said.at, "out of memory"));
                call_rig_end(&rig);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_name_that_is_missing_or_empty_means_the_default),
                cmocka_unit_test(the_tag_of_ollama_is_left_out),
                cmocka_unit_test(fails_the_call_if_there_is_no_memory_for_the_name),
        };

        return cmocka_run_group_tests_name("bridge-model", tests, NULL, NULL);
}
