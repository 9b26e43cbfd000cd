#include "daemon/text/expression/class.h"

#include <string.h>

#include "daemon/text/unicode.h"
#include "json/shown.h"

static int digit_of(char c)
{
        if ((unsigned)(c - '0') < 10)
                return c - '0';
        if ((unsigned)((c | 0x20) - 'a') < 6)
                return (c | 0x20) - 'a' + 10;
        return -1;
}

/* `least` to `most` hexadecimal digits. */
static int read_hex(struct pattern *p, unsigned least, unsigned most, uint32_t *ret_code)
{
        unsigned count = 0;

        *ret_code = 0;
        while (count < most && p->left && digit_of(*p->at) >= 0) {
                *ret_code = *ret_code << 4 | (uint32_t)digit_of(*p->at);
                pattern_skip(p, 1);
                count++;
        }
        if (count < least || *ret_code >= CHARSET_INVALID)
                return pattern_refuse(p, "a character is written in hexadecimal, but it is none");
        return CLASS_E_CHARACTER;
}

/* \xHH is a byte.  Beyond ASCII only several of them make a character. */
static int read_byte(struct pattern *p, uint32_t *ret_code)
{
        int r = read_hex(p, 1, 2, ret_code);

        if (r == CLASS_E_CHARACTER && *ret_code > 0x7F)
                return pattern_refuse(p,
                                      "\\x%02X is a byte, not a character; write \\x{%X} for the "
                                      "character",
                                      *ret_code, *ret_code);
        return error_pass(r);
}

/* \0, and two digits more if they are there. */
static int read_octal(struct pattern *p, uint32_t *ret_code)
{
        *ret_code = 0;
        for (unsigned i = 0; i < 3 && p->left && (unsigned)(*p->at - '0') < 8; i++) {
                *ret_code = *ret_code << 3 | (uint32_t)(*p->at - '0');
                pattern_skip(p, 1);
        }
        return CLASS_E_CHARACTER;
}

static int read_property(struct pattern *p, bool inverted, struct charset *ret_set)
{
        const char *name, *end = p->left ? memchr(p->at, '}', p->left) : NULL;
        size_t bytes;
        int r;

        if (!p->left || *p->at != '{' || !end)
                return pattern_refuse(p, "\\p is not followed by a name in braces");
        name = p->at + 1;
        bytes = (size_t)(end - name);
        pattern_skip(p, bytes + 2);
        if (bytes && *name == '^') {
                inverted = !inverted;
                name++;
                bytes--;
        }
        r = charset_property(ret_set, name, bytes);
        if (r == -EINVAL)
                return pattern_refuse(p, "the property '%.*s' is not known", (int)bytes, name);
        if (!r && inverted)
                r = charset_complement(ret_set);
        return error_pass(r);
}

static int read_shorthand(char letter, struct charset *ret_set)
{
        int r = charset_shorthand(ret_set, (char)(letter | 0x20));

        if (!r && letter < 'a')
                r = charset_complement(ret_set);
        return error_pass(r);
}

int class_escape(struct pattern *p, struct charset *ret_set, uint32_t *ret_code)
{
        static const char letters[] = "nrtfvae", codes[] = "\n\r\t\f\v\a\x1B";
        const char *letter;
        char c;

        pattern_skip(p, 1);
        if (!p->left)
                return pattern_refuse(p, "it ends in '\\'");
        c = *p->at;
        if (memchr("wWdDsShH", c, 8)) {
                pattern_skip(p, 1);
                return error_pass(read_shorthand(c, ret_set));
        }
        if (c == 'p' || c == 'P') {
                pattern_skip(p, 1);
                return error_pass(read_property(p, c == 'P', ret_set));
        }
        letter = memchr(letters, c, sizeof(letters) - 1);
        if (letter) {
                pattern_skip(p, 1);
                *ret_code = (uint8_t)codes[letter - letters];
                return CLASS_E_CHARACTER;
        }
        if (c == 'x' && p->left > 1 && p->at[1] == '{') {
                int r;

                pattern_skip(p, 2);
                r = read_hex(p, 1, 8, ret_code);
                if (r < 0 || !p->left || *p->at != '}')
                        return pattern_refuse(p, "\\x{ has no end, or is not hexadecimal");
                pattern_skip(p, 1);
                return r;
        }
        if (c == 'x' || c == 'u') {
                pattern_skip(p, 1);
                return c == 'x' ? read_byte(p, ret_code) : read_hex(p, 4, 4, ret_code);
        }
        if (c == '0')
                return read_octal(p, ret_code);
        if ((unsigned)(c - '1') < 9 || (unsigned)((c | 0x20) - 'a') < 26)
                return pattern_refuse(p, "\\%c is not supported", c);
        pattern_skip(p, unicode_next(p->at, p->left, ret_code));
        return *ret_code == UNICODE_INVALID ? pattern_refuse(p, "it is not UTF-8")
                                            : CLASS_E_CHARACTER;
}

/* [:name:] or [:^name:], from the '[' on. */
static int read_named(struct pattern *p, struct charset *ret_set)
{
        const char *name = p->at + 2, *end = memchr(p->at, ']', p->left);
        size_t bytes = (size_t)(end - name) - 1;
        bool inverted = *name == '^';
        int r;

        pattern_skip(p, (size_t)(end - p->at) + 1);
        r = charset_bracket(ret_set, name + inverted, bytes - inverted);
        if (r == -EINVAL)
                return pattern_refuse(p, "the class '[:%.*s:]' is not known", (int)bytes, name);
        if (!r && inverted)
                r = charset_complement(ret_set);
        return error_pass(r);
}

static bool is_named(const struct pattern *p)
{
        const char *end = p->left > 3 ? memchr(p->at, ']', p->left) : NULL;

        return end && p->at[1] == ':' && end > p->at + 3 && end[-1] == ':';
}

static int read_nested(struct pattern *p, struct charset *ret_set);

/* One member: a set, or a character that may begin a range. */
static int read_member(struct pattern *p, struct charset *ret_set, uint32_t *ret_code)
{
        if (*p->at == '[')
                return is_named(p) ? error_pass(read_named(p, ret_set))
                                   : error_pass(read_nested(p, ret_set));
        if (*p->at == '\\' && p->left > 1 && p->at[1] == 'b') {
                pattern_skip(p, 2);
                *ret_code = '\b';
                return CLASS_E_CHARACTER;
        }
        if (*p->at == '\\')
                return class_escape(p, ret_set, ret_code);
        pattern_skip(p, unicode_next(p->at, p->left, ret_code));
        return *ret_code == UNICODE_INVALID ? pattern_refuse(p, "it is not UTF-8")
                                            : CLASS_E_CHARACTER;
}

/* The '-' of a range: another character follows it, not the end of the class. */
static bool is_range(const struct pattern *p)
{
        return p->left > 1 && *p->at == '-' && p->at[1] != ']' && p->at[1] != '[' &&
               !(p->at[1] == '&' && p->left > 2 && p->at[2] == '&');
}

static int add_range(struct pattern *p, struct charset *set, uint32_t first)
{
        struct charset none = { 0 };
        uint32_t last = first;
        int r;

        if (!is_range(p))
                return error_pass(charset_add(set, first, first));
        pattern_skip(p, 1);
        r = read_member(p, &none, &last);
        charset_deinit(&none);
        if (!r)
                return pattern_refuse(p, "a range ends in a class");
        if (r < 0)
                return error_pass(r);
        if (last < first)
                return pattern_refuse(p, "a range ends before it begins");
        return error_pass(charset_add(set, first, last));
}

static int add_member(struct pattern *p, struct charset *set)
{
        struct charset member = { 0 };
        uint32_t code = 0;
        int r = read_member(p, &member, &code);

        if (r == CLASS_E_CHARACTER)
                return error_pass(add_range(p, set, code));
        if (!r)
                r = charset_unite(set, &member);
        charset_deinit(&member);
        return error_pass(r);
}

/* Members up to "&&" or ']'. */
static int add_members(struct pattern *p, struct charset *set, bool first)
{
        int r = 0;

        while (!r) {
                if (!p->left)
                        return pattern_refuse(p, "a class has no end");
                if ((*p->at == ']' && !first) || (p->left > 1 && !memcmp(p->at, "&&", 2)))
                        return 0;
                first = false;
                r = add_member(p, set);
        }
        return error_pass(r);
}

static int parse_inner(struct pattern *p, struct charset *ret_set)
{
        struct charset more = { 0 };
        int r = add_members(p, ret_set, true);

        while (!r && *p->at == '&') {
                pattern_skip(p, 2);
                r = add_members(p, &more, false);
                if (!r)
                        r = charset_intersect(ret_set, &more);
                charset_deinit(&more);
        }
        return error_pass(r);
}

/* From '[' to behind ']', but case is not folded.  *ret_inverted: still to be done. */
static int read_class(struct pattern *p, struct charset *ret_set, bool *ret_inverted)
{
        int r;

        *ret_set = (struct charset){ 0 };
        *ret_inverted = p->left > 1 && p->at[1] == '^';
        if (p->depth == TREE_DEPTH_MAX)
                return pattern_refuse(p, "its classes are nested more than %u deep",
                                      TREE_DEPTH_MAX);
        p->depth++;
        pattern_skip(p, *ret_inverted ? 2 : 1);
        r = parse_inner(p, ret_set);
        p->depth--;
        if (!r)
                pattern_skip(p, 1);
        return error_pass(r);
}

static int read_nested(struct pattern *p, struct charset *ret_set)
{
        bool inverted;
        int r = read_class(p, ret_set, &inverted);

        return r || !inverted ? error_pass(r) : error_pass(charset_complement(ret_set));
}

int class_parse(struct pattern *p, struct charset *ret_set)
{
        bool inverted;
        int r = read_class(p, ret_set, &inverted);

        if (!r && p->flags.folds && !inverted && charset_has_several(ret_set))
                r = pattern_refuse(p, PATTERN_LETTERS);
        if (!r && p->flags.folds)
                r = charset_fold(ret_set);
        if (!r && inverted)
                r = charset_complement(ret_set);
        return error_pass(r);
}
