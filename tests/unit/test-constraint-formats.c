/*
 * The formats of strings.  Random addresses are judged by inet_pton(); names and URIs by examples
 * of their standards.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/json-schema.h"
#include "daemon/constraint/matcher.h"

#define RANDOM_ADDRESSES 20000

struct format {
        struct token_trie *trie;
        struct grammar *grammar;
        struct matcher *matcher;
};

static struct format format_open(const char *name)
{
        static const struct json_schema_options options = { JSON_SPACE_NONE, false };
        struct format format = { .trie = token_trie_new(NULL, 0, NULL, 0) };
        char schema[100], why[300];

        snprintf(schema, sizeof(schema), "{\"type\": \"string\", \"format\": \"%s\"}", name);
        if (json_schema_compile(schema, strlen(schema), &options, &grammar_limits_default,
                                &format.grammar, why, sizeof(why)))
                fail_msg("%s: %s", name, why);
        format.matcher = matcher_new(format.grammar, format.trie, &matcher_limits_default);
        assert_non_null(format.matcher);
        matcher_reset(format.matcher);
        return format;
}

static void format_close(struct format *format)
{
        matcher_free(format->matcher);
        grammar_free(format->grammar);
        token_trie_free(format->trie);
}

static bool accepts(struct format *format, const char *text)
{
        char quoted[600];

        snprintf(quoted, sizeof(quoted), "\"%s\"", text);
        matcher_reset(format->matcher);
        return matcher_take_bytes(format->matcher, quoted, strlen(quoted)) == MATCHER_FINE &&
               matcher_can_end(format->matcher);
}

static void check(const char *name, const char *const *good, const char *const *bad)
{
        struct format format = format_open(name);

        for (; *good; good++)
                if (!accepts(&format, *good))
                        fail_msg("%s: refuses %s", name, *good);
        for (; *bad; bad++)
                if (accepts(&format, *bad))
                        fail_msg("%s: accepts %s", name, *bad);
        format_close(&format);
}

/* Groups and separators in a random order: some make an address. */
static void make_address(char *to)
{
        static const char *const parts[] = { ":",    ":",    ":",     "::",   "1",       "a",
                                             "ffff", "0",    "12345", "1:2:", "1:2:3:4", "1.2.3.4",
                                             "255.", "256.", "9.",    "01",   "::1",     "" };
        unsigned count = 1 + rand() % 9;

        *to = 0;
        for (unsigned i = 0; i < count; i++)
                strcat(to, parts[rand() % (sizeof(parts) / sizeof(*parts))]);
}

static void check_addresses(const char *name, int family)
{
        struct format format = format_open(name);
        unsigned valid = 0;

        srand(1);
        for (unsigned i = 0; i < RANDOM_ADDRESSES; i++) {
                unsigned char bytes[sizeof(struct in6_addr)];
                char text[100];
                bool is_address;

                make_address(text);
                is_address = inet_pton(family, text, bytes) == 1;
                valid += is_address;
                if (accepts(&format, text) != is_address)
                        fail_msg("%s: %s %s", name, is_address ? "refuses" : "accepts", text);
        }
        assert_true(valid > 100);
        format_close(&format);
}

static void addresses_are_those_that_inet_pton_reads(void **state)
{
        (void)state;
        check_addresses("ipv6", AF_INET6);
        check_addresses("ipv4", AF_INET);
}

static void a_hostname_has_no_encoded_label(void **state)
{
        static const char *const good[] = { "a",       "ab",      "a-b",      "a1.b2", "a--b",
                                            "aa-b",    "ab-c-d",  "abc--d",   "a-b-c", "A.example",
                                            "abcd-ef", "a-1-b-2", "ab-cd-ef", NULL };
        static const char *const bad[] = { "",    "-a",       "a-",       "a..b",     ".a",
                                           "a.",  "xn--zca4", "xn--X",    "ab--c",    "a_b",
                                           "a b", "ab--",     "a.XN--b1", "\xc3\xa4", NULL };

        (void)state;
        check("hostname", good, bad);
}

static void an_email_has_a_name_or_an_address_behind_the_at(void **state)
{
        static const char *const good[] = { "a@b", "a.b+c@d.example", "a@[127.0.0.1]",
                                            "a@[IPv6:::1]", NULL };
        static const char *const bad[] = {
                "a",         "@b",    "a@",    ".a@b",      "a..b@c", "a@[::1]",       "a@[b]",
                "a@[1.2.3]", "a@b@c", "a b@c", "a@xn--zca", "a@-b.c", "a@[256.1.1.1]", NULL
        };

        (void)state;
        check("email", good, bad);
}

/* Examples of RFC 3986, 1.1.2 and 5.4, and texts that break one of its rules each. */
static void a_uri_is_that_of_rfc_3986(void **state)
{
        static const char *const good[] = {
                "ftp://ftp.is.co.za/rfc/rfc1808.txt",
                "http://www.ietf.org/rfc/rfc2396.txt",
                "ldap://[2001:db8::7]/c=GB?objectClass?one",
                "mailto:John.Doe@example.com",
                "news:comp.infosystems.www.servers.unix",
                "tel:+1-816-555-1212",
                "telnet://192.0.2.16:80/",
                "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
                "http://a/b/c/d;p?q#s",
                "http://a/b/c/g;x=1/../y",
                "file:///etc/hosts",
                "http://u:p%20@h:/%41?a/b?c#d?e",
                "x://[v1.a:b]",
                "a+b.c-1:",
                "x:/",
                "x:/a//b",
                NULL,
        };
        static const char *const bad[] = {
                "",       "//a/b",    "a/b",      ":a",        "1a:b",       "x:a b",
                "x:%4",   "x:%zz",    "x:a#b#c",  "x:<a>",     "x:[a]",      "x://a:b/",
                "x://a[", "x://[1]/", "x://a@b@", "x:a|b",     "x:\xc3\xa4", "x://[::1",
                "x:a^",   "x:`a`",    "x:{a}",    "x://[v.a]", NULL,
        };

        (void)state;
        check("uri", good, bad);
}

static void a_time_has_no_leap_second(void **state)
{
        static const char *const good[] = { "23:59:59Z", "00:00:00.5+01:30", "12:00:00z", NULL };
        static const char *const bad[] = { "23:59:60Z", "24:00:00Z",  "12:00:00",
                                           "12:60:00Z", "12:00:00.Z", NULL };

        (void)state;
        check("time", good, bad);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_are_those_that_inet_pton_reads),
                cmocka_unit_test(a_hostname_has_no_encoded_label),
                cmocka_unit_test(an_email_has_a_name_or_an_address_behind_the_at),
                cmocka_unit_test(a_uri_is_that_of_rfc_3986),
                cmocka_unit_test(a_time_has_no_leap_second),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
