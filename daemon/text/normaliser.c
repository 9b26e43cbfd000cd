/*
 * Each step makes a new text.  Those that look at one character at a time share one loop: a
 * function says what becomes of the character.
 */
#include "daemon/text/normaliser.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/normal-form.h"
#include "daemon/text/old-unicode.h"
#include "daemon/text/template/case.h"
#include "daemon/text/unicode.h"
#include "json/shown.h"

/* ---- one character ---- */

#define CHARACTER_MOST 3u /* characters that one becomes */

/* Returns how many characters `code` becomes. */
typedef unsigned (*character_fn)(uint32_t code, uint32_t *to);

static unsigned to_lower(uint32_t code, uint32_t *to)
{
        uint32_t low = 0, high = case_lower_count;
        unsigned count = 0;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (case_lowers[middle].code < code)
                        low = middle + 1;
                else
                        high = middle;
        }
        *to = code;
        if (low == case_lower_count || case_lowers[low].code != code)
                return 1;
        while (count < CHARACTER_MOST && case_lowers[low].to[count]) {
                to[count] = case_lowers[low].to[count];
                count++;
        }
        return count;
}

static unsigned drop_marks(uint32_t code, uint32_t *to)
{
        enum unicode_category category = unicode_category(code);

        *to = code;
        return category < UNICODE_MC || category > UNICODE_MN;
}

static bool is_in(const struct old_range *ranges, uint32_t count, uint32_t code)
{
        uint32_t low = 0, high = count;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (ranges[middle].last < code)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < count && ranges[low].first <= code;
}

static unsigned drop_accents(uint32_t code, uint32_t *to)
{
        *to = code;
        if (unicode_category(code) == UNICODE_MN)
                return is_in(old_kept_marks, old_kept_marks_count, code);
        return !is_in(old_removed_marks, old_removed_marks_count, code);
}

/* A code that is not assigned stays.  Of the control characters only three are blanks. */
static unsigned clean(uint32_t code, uint32_t *to)
{
        enum unicode_category category = unicode_category(code);

        *to = code;
        if (code == '\t' || code == '\n' || code == '\r') {
                *to = ' ';
                return 1;
        }
        if (!code || code == 0xFFFD)
                return 0;
        if (category >= UNICODE_CC && category <= UNICODE_CS &&
            !is_in(old_kept_controls, old_kept_controls_count, code))
                return 0;
        if (unicode_blank(code))
                *to = ' ';
        return 1;
}

static bool is_han(uint32_t code)
{
        static const uint32_t ranges[][2] = {
                { 0x3400, 0x4DBF },   { 0x4E00, 0x9FFF },   { 0xF900, 0xFAFF },
                { 0x20000, 0x2A6DF }, { 0x2A700, 0x2B73F }, { 0x2B740, 0x2B81F },
                { 0x2B920, 0x2CEAF }, { 0x2F800, 0x2FA1F },
        };

        for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
                if (code >= ranges[i][0] && code <= ranges[i][1])
                        return true;
        return false;
}

static unsigned part_han(uint32_t code, uint32_t *to)
{
        if (!is_han(code)) {
                *to = code;
                return 1;
        }
        to[0] = to[2] = ' ';
        to[1] = code;
        return 3;
}

static unsigned nmt(uint32_t code, uint32_t *to)
{
        static const uint32_t blanks[] = { 0x9,    0xA,    0xC,    0xD,    0x1680,
                                           0x200B, 0x200C, 0x200D, 0x200E, 0x200F,
                                           0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD };

        *to = code;
        for (size_t i = 0; i < sizeof(blanks) / sizeof(*blanks); i++)
                if (code == blanks[i])
                        *to = ' ';
        return *to == ' ' ||
               !((code && code < 0x20) || code == 0x7F || code == 0x8F || code == 0x9F);
}

static const struct {
        character_fn change;
        uint32_t growth; /* of bytes */
} characters[NORMAL_KIND_N] = {
        [NORMAL_LOWER] = { to_lower, 2 },
        [NORMAL_DROP_MARKS] = { drop_marks, 1 },
        [NORMAL_DROP_ACCENTS] = { drop_accents, 1 },
        [NORMAL_CLEAN] = { clean, 1 },
        [NORMAL_PART_HAN] = { part_han, 2 },
        [NORMAL_NMT] = { nmt, 1 },
};

static int run_characters(character_fn change, uint32_t growth, const char *text, size_t bytes,
                          char **ret_text, size_t *ret_bytes)
{
        char *to = malloc(growth * bytes + 1);
        size_t count = 0;

        if (!to)
                return error_raise(-ENOMEM);
        for (size_t at = 0, n; at < bytes; at += n) {
                uint32_t code, changed[CHARACTER_MOST];
                unsigned made;

                n = unicode_next(text + at, bytes - at, &code);
                if (code == UNICODE_INVALID) {
                        to[count++] = text[at];
                        continue;
                }
                made = change(code, changed);
                for (unsigned i = 0; i < made; i++)
                        count += unicode_write(changed[i], to + count);
        }
        assert(count <= growth * bytes);
        *ret_text = to;
        *ret_bytes = count;
        return 0;
}

/* ---- the other steps ---- */

static int run_trim(bool left, const char *text, size_t bytes, char **ret_text, size_t *ret_bytes)
{
        size_t begin = 0, end = left ? 0 : bytes;
        uint32_t code;

        if (left) {
                end = bytes;
                while (begin < bytes) {
                        size_t n = unicode_next(text + begin, bytes - begin, &code);

                        if (!unicode_blank(code))
                                break;
                        begin += n;
                }
        } else {
                size_t last = 0; /* the end of the last character that is no blank */

                for (size_t at = 0, n; at < bytes; at += n) {
                        n = unicode_next(text + at, bytes - at, &code);
                        if (!unicode_blank(code))
                                last = at + n;
                }
                end = last;
        }
        *ret_text = malloc(end - begin + 1);
        if (!*ret_text)
                return error_raise(-ENOMEM);
        memcpy(*ret_text, text + begin, end - begin);
        *ret_bytes = end - begin;
        return 0;
}

static int run_rules(const struct normaliser *n, uint32_t at, const char *text, size_t bytes,
                     char **ret_text, size_t *ret_bytes, uint64_t *steps)
{
        const struct charsmap *rules = n->steps[at].rules;
        char *to = malloc((size_t)charsmap_growth(rules) * bytes + 1);

        if (!to)
                return error_raise(-ENOMEM);
        *ret_text = to;
        if (n->steps[at].kind == NORMAL_RULES)
                *ret_bytes = charsmap_run(rules, n->kept, text, bytes, to, steps);
        else
                *ret_bytes = charsmap_run_clusters(rules, text, bytes, to, steps);
        return 0;
}

static int run_prepend(const char *content, size_t more, const char *text, size_t bytes,
                       char **ret_text, size_t *ret_bytes)
{
        *ret_text = malloc(bytes + more + 1);
        if (!*ret_text)
                return error_raise(-ENOMEM);
        if (!bytes)
                more = 0;
        memcpy(*ret_text, content, more);
        memcpy(*ret_text + more, text, bytes);
        *ret_bytes = bytes + more;
        return 0;
}

static int run_replace(const struct expression *expression, const char *content, size_t put,
                       const char *text, size_t bytes, char **ret_text, size_t *ret_bytes,
                       uint64_t *steps)
{
        struct expression_search search = { 0 };
        char *to = malloc((put + 1) * (bytes + 1));
        size_t done = 0, count = 0, from = 0, last = SIZE_MAX, begin, end;
        uint32_t code;
        int r = to ? expression_begin(&search, expression, text, bytes, steps)
                   : error_raise(-ENOMEM);

        while (!r && bytes && from <= bytes) { /* nothing is put into an empty text */
                r = expression_next(&search, from, &begin, &end);
                if (r != 1)
                        break;
                r = 0;
                from = end;
                if (begin == end && end == last) { /* an empty match right behind another one */
                        if (end == bytes)
                                break;
                        from += unicode_next(text + end, bytes - end, &code);
                        continue;
                }
                last = end;
                memcpy(to + count, text + done, begin - done);
                count += begin - done;
                memcpy(to + count, content, put);
                count += put;
                done = end;
        }
        expression_search_deinit(&search);
        if (r < 0) {
                free(to);
                return error_pass(r);
        }
        memcpy(to + count, text + done, bytes - done);
        *ret_text = to;
        *ret_bytes = count + bytes - done;
        return 0;
}

static const struct {
        enum normal_form form;
        uint32_t growth;
} forms[NORMAL_KIND_N] = {
        [NORMAL_NFC] = { FORM_NFC, FORM_GROWTH },
        [NORMAL_NFD] = { FORM_NFD, FORM_GROWTH },
        [NORMAL_NFKC] = { FORM_NFKC, FORM_GROWTH_LIKE },
        [NORMAL_NFKD] = { FORM_NFKD, FORM_GROWTH_LIKE },
};

static int run_step(const struct normaliser *n, uint32_t at, const char *text, size_t bytes,
                    char **ret_text, size_t *ret_bytes, uint64_t *steps)
{
        enum normal_kind kind = (enum normal_kind)n->steps[at].kind;
        const char *content = n->steps[at].content;
        uint32_t put = n->steps[at].bytes;

        switch (kind) {
        case NORMAL_NFC:
        case NORMAL_NFD:
        case NORMAL_NFKC:
        case NORMAL_NFKD:
                return error_pass(normal_form_make(forms[kind].form, text, bytes, ret_text,
                                                   ret_bytes, steps));
        case NORMAL_RULES:
        case NORMAL_RULES_CLUSTERS:
                return error_pass(run_rules(n, at, text, bytes, ret_text, ret_bytes, steps));
        case NORMAL_TRIM_LEFT:
        case NORMAL_TRIM_RIGHT:
                return error_pass(
                        run_trim(kind == NORMAL_TRIM_LEFT, text, bytes, ret_text, ret_bytes));
        case NORMAL_REPLACE:
                return error_pass(run_replace(n->steps[at].expression, content, put, text, bytes,
                                              ret_text, ret_bytes, steps));
        case NORMAL_PREPEND:
                return error_pass(run_prepend(content, put, text, bytes, ret_text, ret_bytes));
        default:
                return error_pass(run_characters(characters[kind].change, characters[kind].growth,
                                                 text, bytes, ret_text, ret_bytes));
        }
}

int normaliser_run(const struct normaliser *n, const char *text, size_t bytes, char **ret_text,
                   size_t *ret_bytes, uint64_t *steps)
{
        char *last = NULL;

        *ret_text = NULL;
        *ret_bytes = bytes;
        for (uint32_t i = 0; i < n->count; i++) {
                int r = run_step(n, i, last ? last : text, *ret_bytes, ret_text, ret_bytes, steps);

                free(last);
                if (r)
                        return error_pass(r);
                last = *ret_text;
                *steps += *ret_bytes / 8 + 1;
        }
        return 0;
}

/* ---- opening ---- */

static int open_step(struct normaliser *n, const struct vocabulary_normal *step, char *why,
                     size_t why_bytes)
{
        uint32_t at = n->count++;
        char fault[160];
        int r;

        n->steps[at].kind = step->kind;
        if (step->kind == NORMAL_RULES || step->kind == NORMAL_RULES_CLUSTERS)
                return error_pass(charsmap_open(step->content, step->bytes, &n->steps[at].rules,
                                                why, why_bytes));
        if (step->kind == NORMAL_REPLACE) {
                r = expression_open(step->expression, &n->steps[at].expression, fault,
                                    sizeof(fault));
                if (r)
                        return error_pass(errtext_set(why, why_bytes, r,
                                                      "it replaces the expression '%s': %s",
                                                      shown(step->expression).text, fault));
        }
        if (step->kind != NORMAL_REPLACE && step->kind != NORMAL_PREPEND)
                return 0;
        n->steps[at].content = malloc(step->bytes + 1);
        if (!n->steps[at].content)
                return error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        memcpy(n->steps[at].content, step->content, step->bytes);
        n->steps[at].bytes = step->bytes;
        return 0;
}

static void note_growth(struct normaliser *n, const struct vocabulary_normal *step)
{
        uint64_t growth = 1, prefix = n->prefix;

        if (forms[step->kind].growth)
                growth = forms[step->kind].growth;
        else if (n->steps[n->count - 1].rules)
                growth = charsmap_growth(n->steps[n->count - 1].rules);
        else if (step->kind == NORMAL_REPLACE)
                growth = step->bytes + 1, prefix += 1;
        else if (characters[step->kind].change)
                growth = characters[step->kind].growth;
        prefix *= growth;
        if (step->kind == NORMAL_PREPEND)
                prefix += step->bytes;
        growth *= n->growth;
        n->growth = growth > UINT32_MAX ? UINT32_MAX : (uint32_t)growth;
        n->prefix = prefix > UINT32_MAX ? UINT32_MAX : (uint32_t)prefix;
}

int normaliser_open(struct normaliser *ret_normaliser, const struct vocabulary_normal *steps,
                    uint32_t count, char *why, size_t why_bytes)
{
        struct normaliser n = { .growth = 1 };
        int r = 0;

        assert(count <= VOCABULARY_NORMALS_MAX);
        for (uint32_t i = 0; !r && i < count; i++) {
                r = open_step(&n, &steps[i], why, why_bytes);
                if (!r)
                        note_growth(&n, &steps[i]);
        }
        if (!r && (n.growth > NORMALISER_GROWTH_MAX || n.prefix > (1u << 20)))
                r = error_raise(errtext_set(why, why_bytes, -EINVAL,
                                            "its normalizer may make a text more than %u times as "
                                            "long",
                                            NORMALISER_GROWTH_MAX));
        if (r) {
                normaliser_close(&n);
                return error_pass(r);
        }
        *ret_normaliser = n;
        return 0;
}

void normaliser_close(struct normaliser *n)
{
        for (uint32_t i = 0; i < n->count; i++) {
                expression_close(n->steps[i].expression);
                charsmap_close(n->steps[i].rules);
                free(n->steps[i].content);
        }
        *n = (struct normaliser){ 0 };
}
