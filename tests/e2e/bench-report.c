#include "tests/e2e/bench-report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"

#define NODES_MAX 1000000u

/* The value at a path like "runs.0.answered" below a node. */
static uint32_t find(const struct json_document *json, uint32_t node, const char *path)
{
        char key[64];

        while (*path) {
                size_t length = strcspn(path, ".");

                snprintf(key, sizeof(key), "%.*s", (int)length, path);
                path += length + (path[length] == '.');
                if (json_kind(json, node) != JSON_ARRAY) {
                        node = json_member(json, node, key);
                        continue;
                }
                node = json_first(json, node);
                for (int i = atoi(key); i > 0; i--)
                        node = json_next(json, node);
        }
        return node;
}

static struct json_document *parse(const struct run_result *ran)
{
        struct json_document *json;
        char why[128];

        if (json_parse(ran->out, strlen(ran->out), NODES_MAX, &json, why, sizeof(why)))
                fail_msg("%s\n%s\n%s", why, ran->out, ran->err);
        return json;
}

double told(const struct run_result *ran, const char *path)
{
        struct json_document *json = parse(ran);
        uint32_t node = find(json, 0, path);
        double value = -1;
        bool truth;

        if (json_kind(json, node) == JSON_ARRAY || json_kind(json, node) == JSON_OBJECT)
                value = json_count(json, node);
        else if (!json_real(json, node, &value) && json_bool(json, node, &truth))
                value = truth;
        json_free(json);
        return value;
}

void assert_told(const struct run_result *ran, const char *path, double wanted)
{
        double value = told(ran, path);

        if (value != wanted)
                fail_msg("%s is %g, not %g, in:\n%s\n%s", path, value, wanted, ran->out, ran->err);
}

void assert_about(double value, double wanted)
{
        if (!(value > wanted * (1 - 1e-6) && value < wanted * (1 + 1e-6)))
                fail_msg("%.9g, not %.9g", value, wanted);
}

void assert_words(const struct run_result *ran, const char *path, const char *words)
{
        struct json_document *json = parse(ran);
        const char *text = json_string(json, find(json, 0, path), NULL);

        if (!text || !strstr(text, words))
                fail_msg("%s is %s, without %s", path, text ? text : "missing", words);
        json_free(json);
}

bool has(const struct run_result *ran, const char *path)
{
        struct json_document *json = parse(ran);
        bool there = find(json, 0, path) != JSON_NONE;

        json_free(json);
        return there;
}

void assert_status(const struct run_result *ran, int status)
{
        if (ran->status != status)
                fail_msg("status %d, not %d:\n%s\n%s", ran->status, status, ran->out, ran->err);
}

const char *line_of(const char *text, const char *title, const char *word)
{
        static char line[2048];

        for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
                snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\n"), text);
                if (!strncmp(line, title, strlen(title)) && strstr(line, word))
                        return line;
        }
        return "";
}

void assert_line(const struct run_result *ran, const char *title, const char *word)
{
        if (!*line_of(ran->out, title, word))
                fail_msg("no line '%s' with '%s' in:\n%s\n%s", title, word, ran->out, ran->err);
}

void assert_no_line(const struct run_result *ran, const char *title)
{
        if (*line_of(ran->out, title, ""))
                fail_msg("there is a line '%s' in:\n%s", title, ran->out);
}

void assert_refusal(struct run_result ran, int status, const char *words)
{
        const char *end = strchr(ran.err, '\n');

        if (ran.status != status || *ran.out || !end || end[1] || !strstr(ran.err, words))
                fail_msg("status %d, without '%s': %s%s", ran.status, words, ran.err, ran.out);
        run_result_free(&ran);
}

double told_of(const struct run_result *ran, char server, double round, const char *path)
{
        struct json_document *json = parse(ran);
        uint32_t run = json_first(json, find(json, 0, "runs"));
        double value = -1;

        for (; run != JSON_NONE; run = json_next(json, run)) {
                const char *name = json_string(json, json_member(json, run, "server"), NULL);

                value = -1;
                json_real(json, json_member(json, run, "round"), &value);
                if (name && *name == server && value == round)
                        break;
        }
        assert_true(run != JSON_NONE);
        value = -1;
        json_real(json, find(json, run, path), &value);
        json_free(json);
        return value;
}
