/*
 * The entry point of a rendering: its limits, its set-up and end, and its result.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/run.h"

struct template_limits template_limits(size_t input_bytes)
{
        if (input_bytes > 128u << 20)
                input_bytes = 128u << 20;
        return (struct template_limits){ .fuel = 2000000,
                                         .output_bytes = 4 * input_bytes + (1u << 20),
                                         .memory_bytes = 16 * input_bytes + (64u << 20) };
}

static int give(struct run *run, struct rendered *ret_rendered)
{
        const struct builder *main = &run->main;
        struct rendered out = { .bytes = main->count, .span_count = main->run_count };
        uint32_t from = 0;

        out.text = malloc(out.bytes + 1);
        out.spans = calloc(out.span_count + 1, sizeof(*out.spans));
        if (!out.text || !out.spans) {
                rendered_free(&out);
                return error_raise(errtext_set(run->budget.why, run->budget.why_bytes, -ENOMEM,
                                               "out of memory for the rendered text"));
        }
        if (out.bytes)
                memcpy(out.text, main->bytes, out.bytes);
        out.text[out.bytes] = '\0';
        for (uint32_t i = 0; i < main->run_count; i++) {
                out.spans[i] =
                        (struct rendered_span){ main->runs[i].end - from, main->runs[i].origin };
                from = main->runs[i].end;
        }
        out.fuel = run->budget.limits.fuel - run->budget.fuel;
        *ret_rendered = out;
        return 0;
}

int template_render(const struct template *template, struct value globals,
                    const struct template_limits *limits, const struct tm *now,
                    struct rendered *ret_rendered, char *why, size_t why_bytes)
{
        struct run run = {
                .budget = {
                        .limits = *limits,
                        .fuel = limits->fuel,
                        .now = now,
                        .why = why,
                        .why_bytes = why_bytes,
                },
                .template = template,
                .globals = globals,
                .main.is_output = true,
        };
        int r;

        assert(globals.kind == VALUE_MAP);
        *ret_rendered = (struct rendered){ .text = NULL };
        if (arena_new(limits->memory_bytes, &run.budget.arena))
                return error_raise(errtext_set(why, why_bytes, -ENOMEM,
                                               "out of memory while rendering the template"));
        run.output = &run.main;
        r = run_new_scope(&run, NULL, &run.scope);
        if (!r)
                r = run_code(&run);
        if (!r)
                r = give(&run, ret_rendered);
        arena_free(run.budget.arena);
        return error_pass(r);
}

void rendered_free(struct rendered *rendered)
{
        free(rendered->text);
        free(rendered->spans);
        *rendered = (struct rendered){ .text = NULL };
}
