/*
 * The page of samovar-http: its files, the headers that keep it safe, and who gets it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "bridge/own/page.h"
#include "tests/e2e/bridge-fixture.h"

#define BROWSER "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
#define KEY     "alpha-0123456789abcdef"

static void has(const char *answer, const char *words)
{
        assert_non_null(answer);
        if (!strstr(answer, words))
                fail_msg("'%s' is not in: %.2000s", words, answer);
}

static void has_not(const char *answer, const char *words)
{
        assert_non_null(answer);
        if (strstr(answer, words))
                fail_msg("'%s' is in: %.2000s", words, answer);
}

/* The value of a header of the answer, up to its end of line; the caller frees it. */
static char *header(const char *answer, const char *name)
{
        const char *end = strstr(answer, "\r\n\r\n");
        char line[64];

        snprintf(line, sizeof(line), "\r\n%s: ", name);
        for (const char *at = answer; at < end; at++)
                if (!strncasecmp(at, line, strlen(line)))
                        return strndup(at + strlen(line), strcspn(at + strlen(line), "\r"));
        fail_msg("there is no header %s", name);
        return NULL;
}

static void header_is(const char *answer, const char *name, const char *expected)
{
        char *value = header(answer, name);

        assert_string_equal(value, expected);
        free(value);
}

static const char *body(const char *answer)
{
        const char *end = strstr(answer, "\r\n\r\n");

        assert_non_null(end);
        return end + 4;
}

static void is_guarded(const char *answer)
{
        header_is(answer, "content-security-policy",
                  "default-src 'none'; base-uri 'none'; form-action 'none'; "
                  "frame-ancestors 'none'; script-src 'self'; style-src 'self'; "
                  "connect-src 'self'; img-src 'self' data:; "
                  "require-trusted-types-for 'script'; trusted-types 'none'");
        header_is(answer, "x-content-type-options", "nosniff");
        header_is(answer, "referrer-policy", "no-referrer");
        header_is(answer, "cross-origin-opener-policy", "same-origin");
        header_is(answer, "cross-origin-resource-policy", "same-origin");
        header_is(answer, "cache-control", "no-cache");
}

/* The page does not need the daemon. */
static struct bridge_fixture start(struct daemon_fixture *fixture)
{
        struct bridge_fixture bridge;

        START_BRIDGE(&bridge, fixture, NULL);
        return bridge;
}

static char *ask(const struct bridge_fixture *bridge, const char *what, const char *more,
                 unsigned status)
{
        return http_ask(bridge, what, more, NULL, status);
}

static char *ask_file(const struct bridge_fixture *bridge, const char *method, const char *name,
                      const char *more, unsigned status)
{
        char what[96];

        snprintf(what, sizeof(what), "%s /page/%s", method, name);
        return ask(bridge, what, more, status);
}

/* ---- which answer / has ---- */

static void browsers_get_the_page_and_programs_the_words_of_ollama(void **state)
{
        static const char *const of_browsers[] = { BROWSER, "Accept: text/html\r\n",
                                                   "Accept: a/b, TEXT/HTML;level=1\r\n" };
        static const char *const of_programs[] = { "", "Accept: */*\r\n",
                                                   "Accept: application/json\r\n",
                                                   "Accept: text/html;q=0, */*\r\n",
                                                   "Accept: text/html2\r\n" };
        struct bridge_fixture bridge = start(*state);
        char *answer;

        for (size_t i = 0; i < sizeof(of_browsers) / sizeof(*of_browsers); i++) {
                answer = ask(&bridge, "GET /", of_browsers[i], 200);
                header_is(answer, "content-type", "text/html; charset=utf-8");
                has(answer, "\r\nvary: Accept\r\n");
                has(body(answer), "<!DOCTYPE html>");
                is_guarded(answer);
                free(answer);
        }
        for (size_t i = 0; i < sizeof(of_programs) / sizeof(*of_programs); i++) {
                answer = ask(&bridge, "GET /", of_programs[i], 200);
                header_is(answer, "content-type", "text/plain; charset=utf-8");
                has(answer, "\r\nvary: Accept\r\n");
                assert_ptr_equal(strstr(body(answer), "Ollama is running"), body(answer));
                free(answer);
        }
        bridge_stop(&bridge);
}

/* ---- files ---- */

static void each_file_comes_whole_with_its_type_and_headers(void **state)
{
        struct bridge_fixture bridge = start(*state);

        assert_true(page_file_count > 10);
        for (size_t i = 0; i < page_file_count; i++) {
                const struct page_file *file = &page_files[i];
                char *answer = ask_file(&bridge, "GET", file->name, "", 200);

                header_is(answer, "content-type", file->type);
                header_is(answer, "etag", file->tag);
                is_guarded(answer);
                assert_int_equal(strlen(body(answer)), file->count);
                assert_memory_equal(body(answer), file->bytes, file->count);
                free(answer);
        }
        bridge_stop(&bridge);
}

/* The policy would block these in a browser, and the page would be broken. */
static void no_file_has_what_the_policy_forbids(void **state)
{
        (void)state;
        for (size_t i = 0; i < page_file_count; i++) {
                const char *bytes = page_files[i].bytes;

                has_not(bytes, " style=\"");
                has_not(bytes, "<style");
                has_not(bytes, " onclick=\"");
                has_not(bytes, "innerHTML");
                has_not(bytes, "outerHTML");
                has_not(bytes, "insertAdjacentHTML");
                has_not(bytes, "eval(");
                has_not(bytes, "@import");
                has_not(bytes, "src=\"http");
        }
}

static void a_file_that_is_known_is_not_sent_again(void **state)
{
        struct bridge_fixture bridge = start(*state);
        const char *tag = page_files[0].tag;
        static const char *const forms[][2] = {
                { "", "" }, { "W/", "" }, { "\"a\", ", " , \"b\"" }, { "*,", "" }
        };
        char more[160], *answer;

        for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
                snprintf(more, sizeof(more), "If-None-Match: %s%s%s\r\n", forms[i][0], tag,
                         forms[i][1]);
                answer = ask_file(&bridge, "GET", page_files[0].name, more, 304);
                header_is(answer, "etag", tag);
                is_guarded(answer);
                assert_string_equal(body(answer), "");
                free(answer);
        }
        free(ask_file(&bridge, "GET", page_files[0].name, "If-None-Match: \"other\"\r\n", 200));
        snprintf(more, sizeof(more), "If-None-Match: %.*s\r\n", (int)strlen(tag) - 2, tag);
        free(ask_file(&bridge, "GET", page_files[0].name, more, 200));
        bridge_stop(&bridge);
}

static void head_has_the_length_and_no_body(void **state)
{
        struct bridge_fixture bridge = start(*state);
        char *answer = ask(&bridge, "HEAD /", BROWSER, 200), *length;

        length = header(answer, "content-length");
        assert_true(strtoul(length, NULL, 10) > 1000);
        free(length);
        is_guarded(answer);
        assert_string_equal(body(answer), "");
        free(answer);
        answer = ask_file(&bridge, "HEAD", "style.css", "", 200);
        assert_string_equal(body(answer), "");
        free(answer);
        bridge_stop(&bridge);
}

static void there_are_no_other_files(void **state)
{
        struct bridge_fixture bridge = start(*state);

        free(ask_file(&bridge, "GET", "other.js", "", 404));
        free(ask_file(&bridge, "GET", "style.css/", "", 404));
        free(ask_file(&bridge, "GET", "%2e%2e/style.css", "", 404));
        free(ask_file(&bridge, "GET", "", "", 404));
        free(http_ask(&bridge, "POST /page/style.css", "", "{}", 405));
        bridge_stop(&bridge);
}

/* ---- who gets it ---- */

/* A page of another site could else read ours, or put it into a frame of its own name. */
static void other_hosts_and_origins_are_refused(void **state)
{
        static const char *const files[] = { "GET /", "GET /page/main.js" };
        struct bridge_fixture bridge = start(*state);

        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
                int fd = bridge_connect(bridge.port);
                char request[256], *answer;

                snprintf(request, sizeof(request),
                         "%s HTTP/1.1\r\nHost: evil.test\r\n" BROWSER "Connection: close\r\n\r\n",
                         files[i]);
                assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
                answer = http_receive(fd);
                assert_int_equal(http_status(answer), 403);
                has_not(answer, "DOCTYPE");
                free(answer);
                free(ask(&bridge, files[i], BROWSER "Origin: http://evil.test\r\n", 403));
                free(ask(&bridge, files[i], BROWSER "Origin: null\r\n", 403));
        }
        bridge_stop(&bridge);
}

static void the_page_needs_no_key(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/keys", fixture->directory);
        file = fopen(path, "we");
        assert_non_null(file);
        fputs(KEY " alice\n", file);
        fclose(file);
        assert_int_equal(chmod(path, 0600), 0);
        START_BRIDGE(&bridge, fixture, "--keys", path);
        free(ask(&bridge, "GET /", BROWSER, 200));
        free(ask(&bridge, "GET /page/main.js", "", 200));
        free(ask(&bridge, "GET /v1/models", "", 401));
        bridge_stop(&bridge);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(browsers_get_the_page_and_programs_the_words_of_ollama),
                DAEMON_TEST(each_file_comes_whole_with_its_type_and_headers),
                DAEMON_TEST(no_file_has_what_the_policy_forbids),
                DAEMON_TEST(a_file_that_is_known_is_not_sent_again),
                DAEMON_TEST(head_has_the_length_and_no_body),
                DAEMON_TEST(there_are_no_other_files),
                DAEMON_TEST(other_hosts_and_origins_are_refused),
                DAEMON_TEST(the_page_needs_no_key),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
