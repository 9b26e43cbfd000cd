/* The head of an answer of HTTP, as a server may send it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/web-head.h"

static bool add(struct web_head *head, const char *line)
{
        return web_head_add(head, line, strlen(line));
}

static void finds_fields_in_any_case_without_spaces_around(void **state)
{
        struct web_head head = { 0 };

        (void)state;
        assert_true(add(&head, "HTTP/1.1 206 Partial Content"));
        assert_int_equal(head.status, 206);
        assert_true(add(&head, "ETag:  \"a\" \t"));
        assert_true(add(&head, "Empty:"));
        assert_true(add(&head, "ETAG: second"));
        assert_string_equal(web_field(&head, "etag"), "\"a\"");
        assert_string_equal(web_field(&head, "EMPTY"), "");
        assert_null(web_field(&head, "location"));
        web_head_deinit(&head);
}

static void passes_over_lines_that_are_no_fields(void **state)
{
        struct web_head head = { 0 };

        (void)state;
        assert_true(add(&head, "HTTP/1.1 99999999999999999999 no"));
        assert_true(head.status >= 1000);
        assert_true(add(&head, "no field"));
        assert_true(web_head_add(&head, "A: b\0c", 6));
        assert_null(web_field(&head, "no field"));
        assert_null(web_field(&head, "A"));
        web_head_deinit(&head);
}

static void forgets_the_fields_of_an_answer_before(void **state)
{
        struct web_head head = { 0 };

        (void)state;
        assert_true(add(&head, "HTTP/1.1 302 Found"));
        assert_false(web_head_redirects(&head));
        assert_true(add(&head, "Location: /b"));
        assert_true(web_head_redirects(&head));
        assert_true(add(&head, "HTTP/1.1 200 OK"));
        assert_false(web_head_redirects(&head));
        assert_null(web_field(&head, "location"));
        web_head_deinit(&head);
}

static void refuses_a_head_without_an_end(void **state)
{
        static char line[10000] = "Name: ";
        struct web_head head = { 0 };
        size_t lines = 0;

        (void)state;
        memset(line + 6, 'x', sizeof(line) - 6);
        while (web_head_add(&head, line, sizeof(line)))
                lines++;
        assert_true(head.too_long);
        assert_int_equal(lines, WEB_HEAD_BYTES_MAX / sizeof(line));
        /* Nor does it help to begin again and again. */
        web_head_reset(&head);
        assert_false(add(&head, "HTTP/1.1 100 Continue"));
        web_head_deinit(&head);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_fields_in_any_case_without_spaces_around),
                cmocka_unit_test(passes_over_lines_that_are_no_fields),
                cmocka_unit_test(forgets_the_fields_of_an_answer_before),
                cmocka_unit_test(refuses_a_head_without_an_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
