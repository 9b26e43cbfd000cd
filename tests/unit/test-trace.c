/* Traces of production in their published form, and how they are fitted to a machine. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/trace.h"

#define NAMES "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
/* The first lines of Azure's conversations, which end as lines of DOS do; and a midnight. */
#define LINES                                                                                      \
        "2023-11-16 18:15:46.6805900,374,44\r\n"                                                   \
        "2023-11-16 18:15:50.9951690,396,109\r\n"                                                  \
        "2023-11-16 18:15:51.2224670,879,55\r\n"
#define MIDNIGHT                                                                                   \
        "2023-12-31 23:59:59.5000000,14050,39\r\n"                                                 \
        "2024-01-01 00:00:01.2500000,2,1000"

static char why[256];

static int read_text(const char *text, uint32_t first, uint32_t count, struct trace *trace)
{
        char path[] = "/tmp/samovar-trace-XXXXXX";
        int fd = mkstemp(path), r;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        *why = '\0';
        r = trace_read(path, first, count, trace, why, sizeof(why));
        unlink(path);
        return r;
}

static void times_start_at_the_first_selected_request(void **state)
{
        struct trace trace;

        (void)state;
        assert_int_equal(read_text(NAMES LINES MIDNIGHT, 0, 3, &trace), 0);
        assert_int_equal(trace.count, 3);
        assert_true(trace.requests[0].at == 0);
        assert_true(fabs(trace.requests[1].at - 4.314579) < 1e-6);
        assert_true(fabs(trace.requests[2].at - 4.541877) < 1e-6);
        assert_int_equal(trace.requests[1].prompt, 396);
        assert_int_equal(trace.requests[1].output, 109);
        trace_deinit(&trace);

        assert_int_equal(read_text(NAMES LINES MIDNIGHT, 3, 2, &trace), 0);
        assert_true(fabs(trace.requests[1].at - 1.75) < 1e-6);
        assert_int_equal(trace.requests[0].prompt, 14050);
        trace_deinit(&trace);
}

static void refuses_a_malformed_trace_with_its_line(void **state)
{
        static const struct {
                const char *text, *said;
                int result;
        } bad[] = {
                { "", "first line", -EBADMSG },
                { LINES, "first line", -EBADMSG },
                { NAMES LINES, "it has 3 requests; 4 from number 0 on", -ERANGE },
                { NAMES LINES "2023-11-16 18:15:51.2,8\n", "line 5", -EBADMSG },
                { NAMES LINES "2023-11-16 18:15:51.1,8,1\n", "line 5", -EBADMSG },
                { NAMES LINES "2023-11-16 18:15:52,8,1,9\n", "line 5", -EBADMSG },
                { NAMES LINES "2023-11-16 18:15:52,8,10000001\n", "line 5", -EBADMSG },
                { NAMES LINES "2023-11-16 18:15:nan,8,1\n", "line 5", -EBADMSG },
                { NAMES LINES "\n", "line 5", -EBADMSG },
        };
        struct trace trace;

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                assert_int_equal(read_text(bad[i].text, 0, 4, &trace), bad[i].result);
                assert_non_null(strstr(why, bad[i].said));
        }
        assert_int_equal(trace_read("/nowhere", 0, 1, &trace, why, sizeof(why)), -ENOENT);
}

static void scales_lengths_to_fit_the_context_and_to_at_least_1(void **state)
{
        struct trace trace;
        double divisor;

        (void)state;
        assert_int_equal(read_text(NAMES LINES MIDNIGHT, 0, 5, &trace), 0);
        assert_true(trace_divisor(&trace, 65536) == 1); /* it fits as it is */
        divisor = trace_divisor(&trace, 4096);
        assert_true(fabs(divisor - 14089.0 / 4094) < 1e-9);
        trace_shrink(&trace, divisor);
        assert_int_equal(trace.requests[3].prompt + trace.requests[3].output, 4083 + 12);
        assert_int_equal(trace.requests[4].prompt, 1);
        assert_int_equal(trace.requests[0].output, 13); /* 44 / 3.44 = 12.8 */
        trace_deinit(&trace);
}

static void stretching_a_trace_gives_it_the_requested_rate(void **state)
{
        struct trace trace;

        (void)state;
        assert_int_equal(read_text(NAMES LINES, 0, 3, &trace), 0);
        assert_true(fabs(trace_stretch(&trace, 0.5) - 4 / 4.541877) < 1e-6);
        assert_true(fabs(trace.requests[2].at - 4) < 1e-6);
        assert_true(fabs(trace.requests[1].at - 4 * 4.314579 / 4.541877) < 1e-6);
        trace_stretch(&trace, 2); /* again: the rate counts, not what it was */
        assert_true(fabs(trace.requests[2].at - 1) < 1e-6);
        trace_deinit(&trace);
}

static void prompts_are_reproducible_and_begin_differently(void **state)
{
        uint32_t ids[8], again[8], begun[64] = { 0 };

        (void)state;
        for (uint32_t i = 0; i < 64; i++) {
                trace_prompt(7, i, 64, ids, 8);
                trace_prompt(7, i, 64, again, 8);
                assert_memory_equal(ids, again, sizeof(ids));
                for (size_t k = 0; k < 8; k++)
                        assert_true(ids[k] < 64);
                assert_int_equal(begun[ids[0]]++, 0);
        }
        trace_prompt(8, 63, 64, again, 8);
        assert_memory_not_equal(ids, again, sizeof(ids));
}

static void a_made_up_trace_is_reproducible_and_has_the_means_it_promises(void **state)
{
        enum { COUNT = 20000 };
        double prompts = 0, outputs = 0;
        struct trace trace, again;

        (void)state;
        assert_int_equal(trace_make(3, COUNT, &trace), 0);
        assert_int_equal(trace_make(3, COUNT, &again), 0);
        assert_true(trace.requests[0].at == 0);
        for (uint32_t i = 0; i < COUNT; i++) {
                const struct trace_request *request = &trace.requests[i];

                assert_true(i == 0 || request->at >= trace.requests[i - 1].at);
                assert_true(request->at == again.requests[i].at);
                assert_int_equal(request->prompt, again.requests[i].prompt);
                assert_int_equal(request->output, again.requests[i].output);
                assert_true(request->prompt > 0 && request->output > 0);
                prompts += request->prompt;
                outputs += request->output;
        }
        /* An exponential mean of 20,000 is within 4 % but for one in ten million. */
        assert_true(fabs(prompts / COUNT / 1155 - 1) < 0.04);
        assert_true(fabs(outputs / COUNT / 211 - 1) < 0.04);
        assert_true(fabs(COUNT / trace.requests[COUNT - 1].at / 5.53 - 1) < 0.04);
        trace_deinit(&trace);
        trace_deinit(&again);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(times_start_at_the_first_selected_request),
                cmocka_unit_test(refuses_a_malformed_trace_with_its_line),
                cmocka_unit_test(scales_lengths_to_fit_the_context_and_to_at_least_1),
                cmocka_unit_test(stretching_a_trace_gives_it_the_requested_rate),
                cmocka_unit_test(a_made_up_trace_is_reproducible_and_has_the_means_it_promises),
                cmocka_unit_test(prompts_are_reproducible_and_begin_differently),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
