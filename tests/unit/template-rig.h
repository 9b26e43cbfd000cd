/*
 * Renders a template with values given as JSON, and keeps the outcome.
 */
#ifndef TESTS_UNIT_TEMPLATE_RIG_H
#define TESTS_UNIT_TEMPLATE_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/text/template.h"

struct outcome {
        int r;
        bool opened; /* the template opened, so any failure came while it was rendered */
        struct rendered rendered;
        char why[512];
};

/* 2025-12-17, unless a test sets another day. */
static struct tm rig_day = {
        .tm_year = 125, .tm_mon = 11, .tm_mday = 17, .tm_wday = 3, .tm_yday = 350
};

static void rig_values(struct arena *arena, const char *values, size_t bytes, struct value *ret)
{
        struct json_document *json;
        char why[256];

        if (json_parse(values, bytes, 1u << 20, &json, why, sizeof(why)))
                fail_msg("%s", why);
        assert_int_equal(value_from_json(arena, json, 0, TEXT_GIVEN, ret), 0);
        json_free(json);
}

static void rig_render(const char *text, size_t bytes, struct value globals,
                       const struct template_limits *limits, struct outcome *out)
{
        struct template *template;

        memset(out, 0, sizeof(*out));
        out->r = template_open(text, bytes, &template, out->why, sizeof(out->why));
        if (out->r) {
                assert_true(*out->why);
                return;
        }
        out->opened = true;
        out->r = template_render(template, globals, limits, &rig_day, &out->rendered, out->why,
                                 sizeof(out->why));
        assert_true(!out->r || *out->why);
        template_close(template);
}

/* Renders with the usual limits; values: JSON. */
static inline void rig_run(const char *text, const char *values, struct outcome *out)
{
        const struct template_limits limits = template_limits(strlen(values));
        struct arena *arena;
        struct value globals;

        assert_int_equal(arena_new(64u << 20, &arena), 0);
        rig_values(arena, values, strlen(values), &globals);
        rig_render(text, strlen(text), globals, &limits, out);
        arena_free(arena);
}

/* A whole file, NUL-ended. */
static inline char *rig_read(const char *path, size_t *ret_bytes)
{
        size_t room = 8u << 20;
        char *text = malloc(room);
        FILE *in = fopen(path, "rb");

        if (!in)
                fail_msg("%s cannot be read", path);
        assert_non_null(text);
        *ret_bytes = fread(text, 1, room - 1, in);
        assert_true(feof(in));
        text[*ret_bytes] = '\0';
        fclose(in);
        return text;
}

#endif
