/*
 * The expressions.  The first alternative that matches wins, not the longest:
 *
 * GPT-2    's|'t|'re|'ve|'m|'ll|'d
 *          | ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Llama-3  (?i:'s|'t|'re|'ve|'m|'ll|'d)
 *          |[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *          |\s*[\r\n]+|\s+(?!\S)|\s+
 *
 * Qwen-2   Llama-3's with \p{N} for \p{N}{1,3}
 *
 * A character is a letter, a number, a blank or none of these.  So the first one or two characters
 * of a text decide the alternative.  Backtracking occurs only in a run of blanks: \s+(?!\S) leaves
 * the last blank to the following word, and \s*[\r\n]+ ends with the last line end in the run.
 * Such a run is walked at most three times in all.
 */
#include "daemon/text/pretokenize.h"

#include <stdbool.h>

#include "daemon/text/unicode.h"

struct rule {
        bool folds; /* contractions may be in capitals */
        /* any character but a line end, a letter or a number may lead a word, not only ' ' */
        bool any_lead;
        bool lines; /* line ends belong to the signs, or the blanks, before them */
        /* of a number at most, without a blank before it; 0: any number, and ' ' may lead it */
        uint8_t digits;
};

static const struct rule rules[SPLITTER_N] = {
        [SPLITTER_GPT2] = { 0 },
        [SPLITTER_LLAMA3] = { .folds = true, .any_lead = true, .lines = true, .digits = 3 },
        [SPLITTER_QWEN2] = { .folds = true, .any_lead = true, .lines = true, .digits = 1 },
};

struct character {
        uint32_t code;
        uint8_t bytes; /* 0: at the end of the text */
        uint8_t kind;
};

struct view {
        const char *text;
        size_t bytes;
        uint64_t steps;
};

static struct character look(struct view *view, size_t at)
{
        struct character c = { .code = UNICODE_INVALID };

        if (at == view->bytes)
                return c;
        view->steps++;
        c.bytes = (uint8_t)unicode_next(view->text + at, view->bytes - at, &c.code);
        c.kind = (uint8_t)unicode_kind(c.code);
        return c;
}

static bool ends_line(const struct character *c)
{
        return c->code == '\r' || c->code == '\n';
}

/* Skips characters of one kind, at most `most` of them (0: all); returns the place after them. */
static size_t run(struct view *view, size_t at, enum unicode_kind kind, unsigned most)
{
        unsigned count = 0;

        for (;;) {
                struct character c = look(view, at);

                if (!c.bytes || c.kind != kind || (most && count == most))
                        return at;
                at += c.bytes;
                count++;
        }
}

/*
 * An ASCII character, in lower case if the rule folds; then U+017F, the long s, counts as an s.
 * 0: any other character.
 */
static char small(const struct rule *rule, const struct character *c)
{
        if (rule->folds && c->code == 0x17F)
                return 's';
        if (rule->folds && c->code - 'A' < 26)
                return (char)(c->code | 0x20);
        return c->code < 0x80 ? (char)c->code : 0;
}

/* The place after 's 't 're 've 'm 'll 'd; 0: there is no contraction. */
static size_t contraction(struct view *view, const struct rule *rule)
{
        struct character first = look(view, 1), second;
        char a = small(rule, &first), b;

        if (!first.bytes)
                return 0;
        if (a == 's' || a == 't' || a == 'm' || a == 'd')
                return 1u + first.bytes;
        if (a != 'r' && a != 'v' && a != 'l')
                return 0;
        second = look(view, 1u + first.bytes);
        b = small(rule, &second);
        if (!second.bytes || b != (a == 'l' ? 'l' : 'e'))
                return 0;
        return 1u + first.bytes + second.bytes;
}

static size_t signs(struct view *view, const struct rule *rule, size_t at)
{
        struct character c;

        at = run(view, at, UNICODE_OTHER, 0);
        while (rule->lines && (c = look(view, at)).bytes && ends_line(&c))
                at += c.bytes;
        return at;
}

static size_t blanks(struct view *view, const struct rule *rule)
{
        size_t at = 0, last = 0, line = 0;
        struct character c;

        while ((c = look(view, at)).bytes && c.kind == UNICODE_BLANK) {
                last = at;
                at += c.bytes;
                if (ends_line(&c))
                        line = at;
        }
        if (rule->lines && line)
                return line;
        return at == view->bytes || !last ? at : last;
}

static size_t pre_token(struct view *view, const struct rule *rule)
{
        struct character first = look(view, 0), second;
        size_t n;

        if (first.code == '\'' && (n = contraction(view, rule)))
                return n;
        if (first.kind == UNICODE_LETTER)
                return run(view, 0, UNICODE_LETTER, 0);
        if (first.kind == UNICODE_NUMBER)
                return run(view, 0, UNICODE_NUMBER, rule->digits);

        second = look(view, first.bytes);
        if (second.bytes && second.kind == UNICODE_LETTER &&
            (first.code == ' ' || (rule->any_lead && !ends_line(&first))))
                return run(view, first.bytes, UNICODE_LETTER, 0);
        if (first.code == ' ' && second.bytes && second.kind == UNICODE_NUMBER && !rule->digits)
                return run(view, 1, UNICODE_NUMBER, 0);
        if (first.kind == UNICODE_OTHER)
                return signs(view, rule, 0);
        if (first.code == ' ' && second.bytes && second.kind == UNICODE_OTHER)
                return signs(view, rule, 1);
        return blanks(view, rule);
}

size_t pretokenize_next(enum vocabulary_splitter splitter, const char *text, size_t bytes,
                        uint64_t *steps)
{
        struct view view = { text, bytes, 0 };
        size_t n = splitter == SPLITTER_NONE ? bytes : pre_token(&view, &rules[splitter]);

        *steps += view.steps;
        return n;
}
