/*
 * Opens a folder of shards.  Each time another allocation or system call fails, and either all
 * calls after it fail or none.
 *
 * The promise: no crash; the call returns a negative errno and a sentence, or it succeeds; and
 * nothing is left, neither memory (the sanitizer looks) nor a descriptor.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/files/checkpoint.h"
#include "base/sys.h"
#include "tests/e2e/fault-injection.h"
#include "tests/unit/safetensors-maker.h"

#define FILES 4u

static char folder[] = "/tmp/test-file-faults-XXXXXX";

static const struct file {
        const char *name, *text;
        size_t data_bytes; /* of safetensors; 0: plain text */
} files[FILES] = {
        { "config.json", "{\"model_type\":\"llama\",\"eos_token_id\":[1,2]}", 0 },
        { "model.safetensors.index.json",
          "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}", 0 },
        { "one.safetensors", "{" MEMBER("a", "F32", "[4]", "[0,16]") "}", 16 },
        { "two.safetensors", "{" MEMBER("b", "F32", "[4]", "[0,16]") "}", 16 },
};

static const char *in_folder(const char *name)
{
        static char path[256];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static int set_up(void **state)
{
        (void)state;
        faults_begin();
        if (!mkdtemp(folder))
                return -1;
        for (unsigned i = 0; i < FILES; i++) {
                FILE *out = fopen(in_folder(files[i].name), "wb");
                struct made made;

                assert_non_null(out);
                make_safetensors(&made, files[i].text, strlen(files[i].text), files[i].data_bytes,
                                 0);
                if (files[i].data_bytes)
                        fwrite(made.bytes, 1, made.count, out);
                else
                        fputs(files[i].text, out);
                assert_int_equal(fclose(out), 0);
        }
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        for (unsigned i = 0; i < FILES; i++)
                unlink(in_folder(files[i].name));
        return rmdir(folder);
}

/* True: the call that was to fail was reached. */
static bool open_once(const struct fault_plan *plan)
{
        struct sys_resources before, after;
        struct checkpoint *c = NULL;
        char why[256] = "";
        int r;

        assert_int_equal(sys_resources(&before), 0);
        faults_arm(plan);
        r = checkpoint_open(folder, &c, why, sizeof(why));
        faults_disarm();
        if (r && (r > 0 || !why[0] || !faults_failed()))
                fail_msg("call %u: %d, \"%s\"", plan->first, r, why);
        if (!r)
                assert_int_equal(checkpoint_tensors(c)->count, 2);
        checkpoint_close(c);
        assert_int_equal(sys_resources(&after), 0);
        assert_int_equal(after.descriptors, before.descriptors);
        return faults_failed();
}

static void each_may_fail(enum fault_kind kind)
{
        static const uint32_t counts[] = { 1, 1u << 20 };
        uint32_t first = 0;

        for (uint32_t i = 0; i < 4; i++) {
                struct fault_plan plan = { .kind = kind, .count = counts[i / 2], .flavour = i % 2 };

                for (first = 0; plan.first = first, open_once(&plan); first++)
                        continue;
        }
        print_message("# %u of them\n", first);
        assert_true(first > 10);
}

static void opening_a_checkpoint_survives_each_failed_allocation(void **state)
{
        (void)state;
        each_may_fail(FAULT_ALLOC);
}

static void opening_a_checkpoint_survives_each_failed_system_call(void **state)
{
        (void)state;
        each_may_fail(FAULT_CALL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(opening_a_checkpoint_survives_each_failed_allocation),
                cmocka_unit_test(opening_a_checkpoint_survives_each_failed_system_call),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
