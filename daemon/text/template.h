/*
 * Chat templates: from a conversation to the prompt that a model was trained on.
 *
 * A template is Jinja, as transformers runs it: blocks trimmed and stripped on the left,
 * loop controls, `generation`, tojson that escapes nothing for HTML, raise_exception,
 * strftime_now, and no method that changes a list or a map.  What is not known here is
 * refused by name and line when the template is opened; where only the run can tell
 * (a method of a value), when it is rendered.  It does what Jinja2 does with the same
 * template and the same values, byte by byte, or fails.
 *
 * A template is somebody else's program.  It is parsed with a limit on size and depth;
 * it is run by an interpreter of its own, on no stack but the budget's, with fuel for
 * every step and for all that a step copies or looks at, with memory and output counted.
 * Each of these ends it with a sentence that says which, in a fraction of a second.
 *
 * Where text comes from is kept.  What is rendered is spans: TEXT_OURS was written in the
 * template (or vouched for by who made the values), TEXT_GIVEN came in with the values.
 * So `<|im_start|>` in the template can become its control token, and the same characters
 * in a message stay text.  The marks are exact, character by character, through
 *
 *      output, + ~ % * of strings, join, [slices], iteration, macros, block set, call
 *      strip lstrip rstrip trim, split rsplit splitlines partition, replace, case changes,
 *      removeprefix removesuffix, indent, center ljust rjust, format, first last reverse
 *
 * and the result of any other operation (tojson, the printing of lists and maps, ...) is
 * TEXT_GIVEN as a whole if anything in it was.  Numbers, true and none are nobody's text:
 * printed, they are TEXT_OURS.  Keys of a document are given, as its strings are.
 *
 * It can not include, extend or import; no integer has more than 64 bits (that is refused
 * by name, as it comes up); things without a text of their own (macros, generators, views)
 * are not printed.  Known to differ from Jinja2: lazy iterators are filled at once, so a
 * generator that is walked twice is full twice; `safe` and `escape` give plain strings, which
 * escape nothing that is added to them; a sigma at a word's end has the common small letter.
 */
#ifndef DAEMON_TEXT_TEMPLATE_H
#define DAEMON_TEXT_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "daemon/text/value.h"

#define TEMPLATE_BYTES_MAX (1u << 20)
#define TEMPLATE_DEPTH_MAX 64u /* of what is written within one another; of macros that call */

struct template;

/*
 * UTF-8; the text need not live on.  0; -EINVAL with the fault and its line in *why;
 * -ENOMEM, in *why too.
 */
int template_open(const char *text, size_t bytes, struct template **ret_template, char *why,
                  size_t why_bytes);
struct template *template_close(struct template *template); /* takes NULL */

struct template_limits {
        uint64_t fuel; /* steps; one is also 64 bytes that are copied or looked at */
        size_t output_bytes;
        size_t memory_bytes;
        bool (*cancelled)(void *arg); /* asked now and then: nobody wants it any more; NULL: no */
        void *arg;
};

/* The usual ones, for so many bytes of values. */
struct template_limits template_limits(size_t input_bytes);

struct rendered_span {
        size_t bytes;
        enum text_origin origin;
};

struct rendered {
        char *text; /* NUL-ended behind its bytes */
        size_t bytes;
        struct rendered_span *spans; /* neighbours differ */
        size_t span_count;
        uint64_t fuel; /* that it took */
};

/*
 * globals: a map: messages, tools, add_generation_prompt, bos_token, ...; what is not in it
 * is undefined.  now: local time, for strftime_now.  Any number of threads at once, over one
 * template and one map.  0; -EINVAL with a sentence in *why (what raise_exception was given,
 * as it is, cut to why_bytes and not yet shown()), -ENOMEM, in *why too; -ECANCELED.
 */
int template_render(const struct template *template, struct value globals,
                    const struct template_limits *limits, const struct tm *now,
                    struct rendered *ret_rendered, char *why, size_t why_bytes);
void rendered_free(struct rendered *rendered); /* leaves it empty; an empty one is well */

#endif
