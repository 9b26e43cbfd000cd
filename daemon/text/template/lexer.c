#include "daemon/text/template/lexer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/template/blank.h"
#include "daemon/text/unicode.h"
#include "json/utf8.h"

#define NUMBER_BYTES 64u

static const struct spelling {
        char text[3];
        enum token_kind kind;
} spellings[] = {
        { "//", TOKEN_FLOOR },   { "**", TOKEN_POWER },    { "==", TOKEN_EQ },
        { "!=", TOKEN_NE },      { ">=", TOKEN_GE },       { "<=", TOKEN_LE },
        { "+", TOKEN_PLUS },     { "-", TOKEN_MINUS },     { "/", TOKEN_DIVIDE },
        { "*", TOKEN_MULTIPLY }, { "%", TOKEN_MODULO },    { "~", TOKEN_TILDE },
        { "[", TOKEN_LBRACKET }, { "]", TOKEN_RBRACKET },  { "(", TOKEN_LPAREN },
        { ")", TOKEN_RPAREN },   { "{", TOKEN_LBRACE },    { "}", TOKEN_RBRACE },
        { ">", TOKEN_GT },       { "<", TOKEN_LT },        { "=", TOKEN_ASSIGN },
        { ".", TOKEN_DOT },      { ":", TOKEN_COLON },     { "|", TOKEN_PIPE },
        { ",", TOKEN_COMMA },    { ";", TOKEN_SEMICOLON }, { "end", TOKEN_END },
};

struct shown token_shown(enum token_kind kind)
{
        struct shown phrase = { "an unknown token" };
        static const char *const names[] = {
                "the end of the template",
                "text",
                "'{{'",
                "'}}'",
                "'{%'",
                "'%}'",
                "a name",
                "a string",
                "an integer",
                "a float",
        };

        if (kind <= TOKEN_FLOAT) {
                snprintf(phrase.text, sizeof(phrase.text), "%s", names[kind]);
                return phrase;
        }
        for (size_t i = 0; i < sizeof(spellings) / sizeof(*spellings); i++)
                if (spellings[i].kind == kind)
                        snprintf(phrase.text, sizeof(phrase.text), "'%.3s'", spellings[i].text);
        return phrase;
}

static int refuse(struct lexer *lexer, const char *what)
{
        return errtext_set(lexer->why, lexer->why_bytes, -EINVAL, "%s (line %u)", what,
                           lexer->line);
}

int lexer_open(struct lexer *lexer, struct arena *arena, const char *text, size_t bytes, char *why,
               size_t why_bytes)
{
        char *copy;
        uint32_t count = 0;

        *lexer = (struct lexer){ .arena = arena, .line = 1, .line_starting = true };
        lexer->why = why;
        lexer->why_bytes = why_bytes;
        if (bytes > TEMPLATE_BYTES_MAX)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "the template has %zu bytes, the limit is %u", bytes,
                                               TEMPLATE_BYTES_MAX));
        if (utf8_valid(text, bytes) != bytes)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "the template is not valid UTF-8 at byte %zu",
                                               utf8_valid(text, bytes)));
        copy = arena_take(arena, bytes + 1);
        if (!copy)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "out of memory for the template"));
        for (size_t i = 0; i < bytes; i++)
                if (text[i] != '\r')
                        copy[count++] = text[i];
                else if (i + 1 == bytes || text[i + 1] != '\n')
                        copy[count++] = '\n';
        if (count && copy[count - 1] == '\n')
                count--;
        copy[count] = '\0';
        lexer->text = copy;
        lexer->count = count;
        return 0;
}

/* ---- outside of tags ---- */

static bool stands(const struct lexer *lexer, uint32_t at, const char *what)
{
        size_t count = strlen(what);

        return count <= lexer->count - at && !memcmp(lexer->text + at, what, count);
}

static void count_lines(struct lexer *lexer, uint32_t from, uint32_t to)
{
        for (uint32_t i = from; i < to; i++)
                lexer->line += lexer->text[i] == '\n';
}

static uint32_t skip_blanks(const struct lexer *lexer, uint32_t at)
{
        return at + blank_leading(lexer->text + at, lexer->count - at);
}

/*
 * The end of the text before a tag, without the blanks that the tag strips.  sign: the character
 * after the tag's opening bracket; prints: the tag is `{{`.
 */
static uint32_t cut_end(const struct lexer *lexer, uint32_t start, uint32_t end, char sign,
                        bool prints)
{
        uint32_t line = end;

        if (sign == '-')
                return end - blank_trailing(lexer->text + start, end - start);
        if (sign == '+' || prints)
                return end;
        while (line > start && lexer->text[line - 1] != '\n')
                line--;
        if (line == start && !lexer->line_starting)
                return end;
        return skip_blanks(lexer, line) >= end ? line : end;
}

/*
 * If a tag ends at `at`: the place after its sign, its closing bracket and the blanks that it
 * strips; else 0.  block: a newline after the tag is removed, unless its sign is `+`.
 */
static uint32_t tag_end(const struct lexer *lexer, uint32_t at, const char *end, bool block)
{
        char sign = at < lexer->count ? lexer->text[at] : '\0';
        bool strips = sign == '-', keeps = sign == '+' && block;

        if (!stands(lexer, at + (strips || keeps), end))
                return 0;
        at += strips + keeps + 2u;
        if (strips)
                return skip_blanks(lexer, at);
        return at + (block && !keeps && at < lexer->count && lexer->text[at] == '\n');
}

/* Finds the end of the comment whose text begins at `start`. */
static int find_comment_end(struct lexer *lexer, uint32_t start, uint32_t *ret_end)
{
        for (uint32_t at = start; at < lexer->count; at++) {
                const char *next = memchr(lexer->text + at, '#', lexer->count - at);

                if (!next)
                        break;
                at = (uint32_t)(next - lexer->text);
                if (!stands(lexer, at, "#}"))
                        continue;
                *ret_end = tag_end(lexer, at, "#}", true);
                if (at > start && lexer->text[at - 1] == '-')
                        *ret_end = skip_blanks(lexer, *ret_end);
                else if (at > start && lexer->text[at - 1] == '+')
                        *ret_end = at + 2;
                return 0;
        }
        return error_raise(refuse(lexer, "a comment has no end"));
}

/*
 * The place after a tag that has nothing but `word`; 0: this is another tag.  *ret_sign is the
 * character after `{%`, which may be a sign.
 */
static uint32_t word_tag(const struct lexer *lexer, uint32_t at, const char *word, bool block,
                         char *ret_sign)
{
        if (!stands(lexer, at, "{%"))
                return 0;
        at += 2;
        *ret_sign = at < lexer->count ? lexer->text[at] : '\0';
        at = skip_blanks(lexer, at + (*ret_sign == '-' || *ret_sign == '+'));
        if (!stands(lexer, at, word))
                return 0;
        at = skip_blanks(lexer, at + (uint32_t)strlen(word));
        /* The newline after {% raw %} is kept, and this tag cannot end with `+`. */
        if (!block && stands(lexer, at, "%}"))
                return at + 2;
        return !block && at < lexer->count && lexer->text[at] == '+'
                       ? 0
                       : tag_end(lexer, at, "%}", true);
}

static struct token data_token(struct lexer *lexer, uint32_t start, uint32_t end)
{
        return (struct token){ .kind = TOKEN_DATA,
                               .line = lexer->line,
                               .bytes = lexer->text + start,
                               .count = end - start };
}

static void move_to(struct lexer *lexer, uint32_t at)
{
        count_lines(lexer, lexer->at, at);
        lexer->line_starting = at > 0 && lexer->text[at - 1] == '\n';
        lexer->at = at;
}

static int read_raw(struct lexer *lexer, uint32_t start, struct token *ret_token)
{
        char sign;

        move_to(lexer, start);
        for (uint32_t at = start; at < lexer->count; at++) {
                uint32_t end;

                if (lexer->text[at] != '{' || !(end = word_tag(lexer, at, "endraw", true, &sign)))
                        continue;
                *ret_token = data_token(lexer, start, cut_end(lexer, start, at, sign, false));
                move_to(lexer, end);
                return 0;
        }
        return error_raise(refuse(lexer, "'raw' has no 'endraw'"));
}

/* Begins the tag, comment or raw block at `at`, which is `{{`, `{%` or `{#`. */
static int begin_tag(struct lexer *lexer, uint32_t at, struct token *ret_token)
{
        char kind = lexer->text[at + 1], sign;
        uint32_t end = word_tag(lexer, at, "raw", false, &sign);
        int r;

        if (end)
                return error_pass(read_raw(lexer, end, ret_token));
        sign = at + 2 < lexer->count ? lexer->text[at + 2] : '\0';
        at += 2 + (sign == '-' || sign == '+');
        if (kind == '#') {
                if ((r = find_comment_end(lexer, at, &end)))
                        return error_pass(r);
                move_to(lexer, end);
                *ret_token = data_token(lexer, end, end);
                return 0;
        }
        move_to(lexer, at);
        lexer->in_tag = true;
        lexer->in_block = kind == '%';
        *ret_token = (struct token){ .kind = kind == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_PRINT_BEGIN,
                                     .line = lexer->line };
        return 0;
}

static bool is_tag(const struct lexer *lexer, uint32_t at)
{
        return stands(lexer, at, "{{") || stands(lexer, at, "{%") || stands(lexer, at, "{#");
}

/* The text before the next tag; or, if there is none, the beginning of that tag. */
static int next_outside(struct lexer *lexer, struct token *ret_token)
{
        uint32_t at = lexer->at, end;
        char sign;

        while (at < lexer->count && !is_tag(lexer, at))
                at++;
        if (at == lexer->count) {
                *ret_token = data_token(lexer, lexer->at, at);
                if (lexer->at == at)
                        ret_token->kind = TOKEN_END;
                move_to(lexer, at);
                return 0;
        }
        sign = at + 2 < lexer->count ? lexer->text[at + 2] : '\0';
        end = cut_end(lexer, lexer->at, at, sign, lexer->text[at + 1] == '{');
        if (end == lexer->at)
                return error_pass(begin_tag(lexer, at, ret_token));
        *ret_token = data_token(lexer, lexer->at, end);
        /* The next call must not see the stripped blanks or the start of the line again. */
        count_lines(lexer, lexer->at, at);
        lexer->at = at;
        lexer->line_starting = false;
        return 0;
}

/* ---- inside of tags ---- */

static int read_octal(const char *from, uint32_t left, uint32_t *ret_code)
{
        uint32_t n = 0;

        *ret_code = 0;
        while (n < 3 && n < left && from[n] >= '0' && from[n] <= '7')
                *ret_code = *ret_code * 8 + (uint32_t)(from[n++] - '0');
        return (int)n;
}

static int read_hex(const char *from, uint32_t left, uint32_t digits, uint32_t *ret_code)
{
        char text[9] = "", *end;

        if (left < digits)
                return -1;
        memcpy(text, from, digits);
        if (strspn(text, "0123456789abcdefABCDEF") != digits)
                return -1;
        *ret_code = (uint32_t)strtoul(text, &end, 16);
        return (int)digits;
}

/* After a backslash.  Returns how many bytes the escape has; 0: no escape; -1: a bad one. */
static int read_escape(const char *from, uint32_t left, uint32_t *ret_code)
{
        static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
        int digits = *from == 'x' ? 2 : *from == 'u' ? 4 : *from == 'U' ? 8 : 0, r;

        for (const char *p = plain; *p; p += 2)
                if (*from == *p) {
                        *ret_code = (unsigned char)p[1];
                        return 1;
                }
        if (*from >= '0' && *from <= '7')
                return read_octal(from, left, ret_code);
        if (*from == 'N')
                return -1;
        if (!digits)
                return 0;
        r = read_hex(from + 1, left - 1, (uint32_t)digits, ret_code);
        if (r < 0 || *ret_code > 0x10FFFF || (*ret_code >= 0xD800 && *ret_code < 0xE000))
                return -1;
        return r + 1;
}

static int read_string(struct lexer *lexer, struct token *token)
{
        const char *text = lexer->text, quote = text[lexer->at];
        uint32_t start = lexer->at + 1, end = start;
        char *to;

        while (end < lexer->count && text[end] != quote)
                end += text[end] == '\\' ? 2 : 1;
        if (end >= lexer->count)
                return error_raise(refuse(lexer, "a string has no end"));
        to = arena_take(lexer->arena, end - start + 1);
        if (!to)
                return error_raise(-ENOMEM);
        token->kind = TOKEN_STRING;
        token->bytes = to;
        for (uint32_t i = start; i < end; i++) {
                uint32_t code;
                int r;

                if (text[i] != '\\') {
                        *to++ = text[i];
                        continue;
                }
                if (text[i + 1] == '\n') {
                        i++;
                        continue;
                }
                r = read_escape(text + i + 1, end - i - 1, &code);
                if (r < 0)
                        return error_raise(refuse(lexer, "a string has an unknown escape"));
                if (r)
                        to += unicode_write(code, to);
                else
                        *to++ = '\\';
                i += (uint32_t)r;
        }
        token->count = (uint32_t)(to - token->bytes);
        move_to(lexer, end + 1);
        return 0;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* Copies digits without the single underscores between them; returns the place after them. */
static uint32_t copy_digits(const struct lexer *lexer, uint32_t at, char *to, unsigned *used)
{
        while (at < lexer->count &&
               (is_digit(lexer->text[at]) ||
                (lexer->text[at] == '_' && at > lexer->at && is_digit(lexer->text[at - 1]) &&
                 at + 1 < lexer->count && is_digit(lexer->text[at + 1])))) {
                if (lexer->text[at] != '_' && *used < NUMBER_BYTES - 1)
                        to[(*used)++] = lexer->text[at];
                at++;
        }
        return at;
}

static int read_based(struct lexer *lexer, struct token *token, int base)
{
        const char *start = lexer->text + lexer->at + 2;
        char *end;

        errno = 0;
        token->kind = TOKEN_INTEGER;
        token->integer = strtoll(start, &end, base);
        if (end == start || *start == '+' || *start == '-' || blank_leading(start, 1) ||
            (base == 16 && (*end == 'x' || *end == 'X')))
                return error_raise(refuse(lexer, "a number has no digits"));
        if (errno)
                return error_raise(refuse(lexer, "a number has more than 64 bits"));
        move_to(lexer, (uint32_t)(end - lexer->text));
        return 0;
}

static int read_number(struct lexer *lexer, struct token *token)
{
        const char *text = lexer->text;
        char digits[NUMBER_BYTES + 1], base = (char)(text[lexer->at + 1] | 0x20);
        bool whole = true, dotted = lexer->at && text[lexer->at - 1] == '.';
        unsigned used = 0;
        uint32_t at;

        if (text[lexer->at] == '0' && (base == 'x' || base == 'o' || base == 'b'))
                return error_pass(read_based(lexer, token, base == 'x' ? 16 : base == 'o' ? 8 : 2));
        at = copy_digits(lexer, lexer->at, digits, &used);
        if (!dotted && at + 1 < lexer->count && text[at] == '.' && is_digit(text[at + 1])) {
                digits[used < NUMBER_BYTES ? used++ : used] = '.';
                at = copy_digits(lexer, at + 1, digits, &used);
                whole = false;
        }
        if (!dotted && at + 1 < lexer->count && (text[at] | 0x20) == 'e') {
                uint32_t sign = text[at + 1] == '+' || text[at + 1] == '-';

                if (at + 1 + sign < lexer->count && is_digit(text[at + 1 + sign])) {
                        if (used + 3 < NUMBER_BYTES) {
                                digits[used++] = 'e';
                                if (sign)
                                        digits[used++] = text[at + 1];
                        }
                        at = copy_digits(lexer, at + 1 + sign, digits, &used);
                        whole = false;
                }
        }
        if (used >= NUMBER_BYTES - 1)
                return error_raise(refuse(lexer, "a number has too many digits"));
        digits[used] = '\0';
        if (whole && used > 1 && digits[0] == '0' && digits[strspn(digits, "0")])
                return error_raise(refuse(lexer, "a number begins with 0"));
        errno = 0;
        token->kind = whole ? TOKEN_INTEGER : TOKEN_FLOAT;
        if (whole)
                token->integer = strtoll(digits, NULL, 10);
        else
                token->real = strtod(digits, NULL);
        if (whole && errno)
                return error_raise(refuse(lexer, "a number has more than 64 bits"));
        move_to(lexer, at);
        return 0;
}

/* The length in bytes of the character at `at` if it can be part of a name; else 0. */
static unsigned name_part(const struct lexer *lexer, uint32_t at)
{
        char c = lexer->text[at];
        enum unicode_kind kind;
        uint32_t code;
        unsigned n;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c))
                return 1;
        if (!((unsigned char)c & 0x80))
                return 0;
        n = unicode_next(lexer->text + at, lexer->count - at, &code);
        kind = unicode_kind(code);
        return kind == UNICODE_LETTER || kind == UNICODE_NUMBER ? n : 0;
}

static int read_name(struct lexer *lexer, struct token *token)
{
        uint32_t at = lexer->at;
        unsigned n;

        while (at < lexer->count && (n = name_part(lexer, at)))
                at += n;
        if (at == lexer->at) {
                char what[sizeof(struct shown)] = { lexer->text[at] };

                return error_raise(errtext_set(lexer->why, lexer->why_bytes, -EINVAL,
                                               "'%s' is not expected (line %u)", shown(what).text,
                                               lexer->line));
        }
        token->kind = TOKEN_NAME;
        token->bytes = lexer->text + lexer->at;
        token->count = at - lexer->at;
        move_to(lexer, at);
        return 0;
}

static int balance(struct lexer *lexer, enum token_kind kind)
{
        static const char opening[] = "[({", closing[] = "])}";
        const char *end;

        if (kind == TOKEN_LBRACKET || kind == TOKEN_LPAREN || kind == TOKEN_LBRACE) {
                if (lexer->open_count == TEMPLATE_DEPTH_MAX)
                        return error_raise(refuse(lexer, "brackets nest deeper than 64"));
                lexer->open[lexer->open_count++] =
                        closing[strchr(opening, lexer->text[lexer->at]) - opening];
        }
        end = strchr(closing, lexer->text[lexer->at]);
        if (end && (!lexer->open_count || lexer->open[--lexer->open_count] != *end))
                return error_raise(refuse(lexer, "a closing bracket has no opening bracket"));
        return 0;
}

static int read_operator(struct lexer *lexer, struct token *token)
{
        int r;

        for (size_t i = 0; i < sizeof(spellings) / sizeof(*spellings); i++) {
                if (!stands(lexer, lexer->at, spellings[i].text) || spellings[i].kind == TOKEN_END)
                        continue;
                token->kind = spellings[i].kind;
                if ((r = balance(lexer, token->kind)))
                        return error_pass(r);
                move_to(lexer, lexer->at + (uint32_t)strlen(spellings[i].text));
                return 0;
        }
        return error_pass(read_name(lexer, token));
}

static int next_inside(struct lexer *lexer, struct token *ret_token)
{
        uint32_t end;
        char c;

        while (true) {
                end = lexer->open_count ? 0
                                        : tag_end(lexer, lexer->at, lexer->in_block ? "%}" : "}}",
                                                  lexer->in_block);
                if (end || !blank_leading(lexer->text + lexer->at, lexer->count - lexer->at))
                        break;
                move_to(lexer, skip_blanks(lexer, lexer->at));
        }
        *ret_token = (struct token){ .line = lexer->line };
        if (lexer->at == lexer->count)
                return 0;
        if (end) {
                ret_token->kind = lexer->in_block ? TOKEN_BLOCK_END : TOKEN_PRINT_END;
                lexer->in_tag = false;
                move_to(lexer, end);
                return 0;
        }
        c = lexer->text[lexer->at];
        if (is_digit(c))
                return error_pass(read_number(lexer, ret_token));
        if (c == '\'' || c == '"')
                return error_pass(read_string(lexer, ret_token));
        return error_pass(read_operator(lexer, ret_token));
}

int lexer_next(struct lexer *lexer, struct token *ret_token)
{
        int r;

        do {
                r = lexer->in_tag ? next_inside(lexer, ret_token) : next_outside(lexer, ret_token);
        } while (!r && ret_token->kind == TOKEN_DATA && !ret_token->count);
        if (r == -ENOMEM)
                errtext_set(lexer->why, lexer->why_bytes, r, "out of memory for the template");
        return error_pass(r);
}
