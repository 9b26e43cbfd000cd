/*
 * Chat templates: turn a conversation into a prompt of the form that the model was trained on.
 *
 * A template is Jinja, as transformers runs it: trim_blocks, lstrip_blocks, loop controls,
 * `generation`, a tojson that escapes nothing for HTML, raise_exception, strftime_now, and no
 * method that changes a list or a map.  Everything that is not known here is refused by name and
 * line: when the template is opened, or, where only the run can tell (a method of a value), when
 * it is rendered.  The output is the same as Jinja2's for the same template and the same values,
 * byte by byte, or the rendering fails.
 *
 * A template is a program from an untrusted source.  The parser limits its size and depth.  An
 * interpreter of its own runs it: its stack lies in the arena that has the memory budget, never
 * on the C stack.  Every step costs fuel, and so does everything that a step copies or looks at.
 * Memory and output are limited, too.  Reaching any limit ends the rendering within a fraction of
 * a second, with a sentence that names the limit.
 *
 * The origin of the text is tracked.  The output is a list of spans: TEXT_OURS was written in the
 * template (or the code that made the values vouches for it), TEXT_GIVEN came with the values.
 * So `<|im_start|>` in the template can become its control token, and the same characters
 * in a message stay text.  The origins are exact, character by character, through
 *
 *      output, + ~ % * of strings, join, [slices], iteration, macros, block set, call
 *      strip lstrip rstrip trim, split rsplit splitlines partition, replace, case changes,
 *      removeprefix removesuffix, indent, center ljust rjust, format, first last reverse
 *
 * and the result of any other operation (tojson, the printing of lists and maps, ...) is
 * TEXT_GIVEN as a whole if anything in it was.  Numbers, true and none have no origin: printed,
 * they are TEXT_OURS.  The keys of a document are TEXT_GIVEN, as its strings are.
 *
 * Not supported: include, extends and import; integers of more than 64 bits (refused by name when
 * one comes up); printing values that have no text of their own (macros, generators, views).
 * Known differences from Jinja2: lazy iterators are filled at once, so a second loop over a
 * generator gets all its items again; `safe` and `escape` give plain strings, so text that is
 * added to them is not escaped; a sigma at the end of a word gets the common small letter.
 */
#ifndef DAEMON_TEXT_TEMPLATE_H
#define DAEMON_TEXT_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "daemon/text/value.h"

#define TEMPLATE_BYTES_MAX (1u << 20)
#define TEMPLATE_DEPTH_MAX 64u /* of nested syntax; also of nested calls of macros */

struct template;

/*
 * The text is UTF-8 and is not needed after the call.  0; -EINVAL with the fault and its line in
 * *why; -ENOMEM, which *why tells, too.
 */
int template_open(const char *text, size_t bytes, struct template **ret_template, char *why,
                  size_t why_bytes);
struct template *template_close(struct template *template); /* takes NULL */

struct template_limits {
        uint64_t fuel; /* in steps; copying or looking at 64 bytes costs one step */
        size_t output_bytes;
        size_t memory_bytes;
        bool (*cancelled)(void *arg); /* called now and then; true ends the rendering; or NULL */
        void *arg;
};

/* The default limits for values of `input_bytes` bytes. */
struct template_limits template_limits(size_t input_bytes);

struct rendered_span {
        size_t bytes;
        enum text_origin origin;
};

struct rendered {
        char *text; /* followed by a NUL, which `bytes` does not count */
        size_t bytes;
        struct rendered_span *spans; /* neighbouring spans differ in origin */
        size_t span_count;
        uint64_t fuel; /* used */
};

/*
 * globals: a map: messages, tools, add_generation_prompt, bos_token, ...; a name that is not in it
 * is undefined.  now: local time, for strftime_now.  Any number of threads may render one template
 * with one map at the same time.
 *
 * 0; -EINVAL with a sentence in *why; -ENOMEM, which *why tells, too; -ECANCELED.  After
 * raise_exception, *why is its argument unchanged, cut to 4096 bytes and to why_bytes, and not yet
 * passed through shown().
 */
int template_render(const struct template *template, struct value globals,
                    const struct template_limits *limits, const struct tm *now,
                    struct rendered *ret_rendered, char *why, size_t why_bytes);
void rendered_free(struct rendered *rendered); /* leaves it empty; an empty one is fine */

#endif
