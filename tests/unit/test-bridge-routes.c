/* Is docs/reference/openapi.json about the routes that there are? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bridge/own/description.h"
#include "bridge/start/routes.h"
#include "json/reader.h"

#define NODES_MAX 100000u
#define KEY_BYTES 256u

static struct json_document *read_description(void)
{
        struct json_document *json = NULL;
        char why[128] = "";

        if (json_parse(description, description_bytes, NODES_MAX, &json, why, sizeof(why)))
                fail_msg("openapi.json is not JSON: %s", why);
        return json;
}

/* "post" for HTTP_POST. */
static const char *method_key(enum http_method method)
{
        switch (method) {
        case HTTP_GET:
                return "get";
        case HTTP_POST:
                return "post";
        case HTTP_DELETE:
                return "delete";
        default:
                fail_msg("method %d is not known here", (int)method);
                return "";
        }
}

/* "/v1/files/{file_id}" is "/v1/files/{}" in the table of routes. */
static void pattern_of(const char *path, char pattern[KEY_BYTES])
{
        size_t at = 0;

        for (; *path && at + 1 < KEY_BYTES; path++) {
                pattern[at++] = *path;
                if (*path == '{')
                        path += strcspn(path, "}") - 1;
        }
        pattern[at] = '\0';
}

static const struct route *route_of(const char *path, const char *method)
{
        char pattern[KEY_BYTES];

        pattern_of(path, pattern);
        for (uint32_t i = 0; i < route_count; i++)
                if (!strcmp(routes[i].pattern, pattern) &&
                    !strcmp(method_key(routes[i].method), method))
                        return &routes[i];
        return NULL;
}

static bool is_described(const struct json_document *json, const struct route *route)
{
        uint32_t paths = json_member(json, 0, "paths");
        char pattern[KEY_BYTES];

        for (uint32_t at = json_first(json, paths); at != JSON_NONE; at = json_next(json, at)) {
                pattern_of(json_key(json, at, NULL), pattern);
                if (!strcmp(pattern, route->pattern) &&
                    json_kind(json, json_member(json, at, method_key(route->method))) ==
                            JSON_OBJECT)
                        return true;
        }
        return false;
}

static void every_route_is_described(void **state)
{
        struct json_document *json = read_description();

        (void)state;
        for (uint32_t i = 0; i < route_count; i++)
                if (!is_described(json, &routes[i]))
                        fail_msg("openapi.json has no %s %s", method_key(routes[i].method),
                                 routes[i].pattern);
        json_free(json);
}

static void every_description_is_of_a_route(void **state)
{
        struct json_document *json = read_description();
        uint32_t paths = json_member(json, 0, "paths");

        (void)state;
        for (uint32_t at = json_first(json, paths); at != JSON_NONE; at = json_next(json, at))
                for (uint32_t op = json_first(json, at); op != JSON_NONE; op = json_next(json, op))
                        if (!route_of(json_key(json, at, NULL), json_key(json, op, NULL)))
                                fail_msg("there is no route %s %s, which openapi.json has",
                                         json_key(json, op, NULL), json_key(json, at, NULL));
        json_free(json);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_route_is_described),
                cmocka_unit_test(every_description_is_of_a_route),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
