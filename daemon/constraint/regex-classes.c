#include "daemon/constraint/regex-classes.h"

#include <string.h>

#include "json/utf8.h"

static const struct character_range digits[] = { { '0', '9' } };
static const struct character_range words[] = {
        { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' }
};
static const struct character_range spaces[] = {
        { '\t', '\r' },     { ' ', ' ' },       { 0xa0, 0xa0 },     { 0x1680, 0x1680 },
        { 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f },
        { 0x3000, 0x3000 }, { 0xfeff, 0xfeff },
};
static const struct character_range line_ends[] = { { '\n', '\n' },
                                                    { '\r', '\r' },
                                                    { 0x2028, 0x2029 } };

#define ADD(set, table, inverted) add_table(set, table, sizeof(table) / sizeof(*(table)), inverted)

static void add_table(struct characters *set, const struct character_range *table, size_t count,
                      bool inverted)
{
        struct characters some = { 0 };

        for (size_t i = 0; i < count; i++)
                characters_add(&some, table[i].from, table[i].to);
        if (inverted)
                characters_invert(&some);
        characters_add_all(set, &some);
}

static int hex_value(char digit)
{
        if (digit >= '0' && digit <= '9')
                return digit - '0';
        digit |= 0x20;
        return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* A number of exactly so many digits, or -1. */
static int32_t read_hex(const char *text, size_t bytes, size_t *at, unsigned digits_wanted)
{
        int32_t value = 0;

        if (bytes - *at < digits_wanted)
                return -1;
        for (unsigned i = 0; i < digits_wanted; i++) {
                int digit = hex_value(text[*at + i]);

                if (digit < 0)
                        return -1;
                value = value * 16 + digit;
        }
        *at += digits_wanted;
        return value;
}

/* Behind \u: four digits, perhaps a pair of surrogates, or digits in braces. */
static int32_t read_unicode(const char *text, size_t bytes, size_t *at)
{
        int32_t point, low;
        size_t behind;

        if (*at < bytes && text[*at] == '{') {
                size_t end = *at + 1;

                while (end < bytes && hex_value(text[end]) >= 0)
                        end++;
                if (end == bytes || text[end] != '}' || end - *at > 7)
                        return -1;
                ++*at;
                point = read_hex(text, bytes, at, end - *at);
                ++*at;
                return point > (int32_t)CHARACTER_LAST ? -1 : point;
        }
        point = read_hex(text, bytes, at, 4);
        behind = *at + 2;
        if (point < 0xd800 || point > 0xdbff || bytes - *at < 6 || text[*at] != '\\' ||
            text[*at + 1] != 'u')
                return point;
        low = read_hex(text, bytes, &behind, 4);
        if (low < 0xdc00 || low > 0xdfff)
                return point;
        *at = behind;
        return 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
}

/* An escape that is one character: its code point, or -1 with what is wrong. */
static int32_t read_escaped(const char *text, size_t bytes, size_t *at, const char **wrong)
{
        static const char from[] = "tnrfv0", to[] = "\t\n\r\f\v";
        char letter = text[(*at)++];
        const char *found = memchr(from, letter, 6);
        int32_t point = -1;

        *wrong = "an escape that is not supported";
        if (found)
                return to[found - from];
        if (letter == 'x')
                point = read_hex(text, bytes, at, 2);
        else if (letter == 'u')
                point = read_unicode(text, bytes, at);
        else if (letter == 'c' && *at < bytes && (text[*at] | 0x20) >= 'a' &&
                 (text[*at] | 0x20) <= 'z')
                point = text[(*at)++] & 31;
        else if ((letter >= '1' && letter <= '9') || letter == 'k')
                *wrong = "back references are not supported";
        else if (letter == 'p' || letter == 'P')
                *wrong = "properties of characters (\\p) are not supported";
        else if (letter == 'b' || letter == 'B')
                *wrong = "word boundaries (\\b) are not supported";
        else if (letter > ' ' && letter < 0x7f &&
                 !((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z'))
                point = letter;
        return point;
}

/* Behind a backslash.  *point is the character, or -1: a whole class was added. */
static const char *read_escape(const char *text, size_t bytes, size_t *at, struct characters *set,
                               int32_t *point)
{
        const char *wrong;

        *point = -1;
        if (*at == bytes)
                return "a backslash is last";
        switch (text[*at]) {
        case 'd':
        case 'D':
                ADD(set, digits, text[(*at)++] == 'D');
                return NULL;
        case 'w':
        case 'W':
                ADD(set, words, text[(*at)++] == 'W');
                return NULL;
        case 's':
        case 'S':
                ADD(set, spaces, text[(*at)++] == 'S');
                return NULL;
        default:
                *point = read_escaped(text, bytes, at, &wrong);
                return *point < 0 ? wrong : NULL;
        }
}

/* One character inside or outside of brackets; *point is -1 if it was a whole class. */
static const char *read_one(const char *text, size_t bytes, size_t *at, struct characters *set,
                            bool in_class, int32_t *point)
{
        size_t length;

        if (text[*at] != '\\') {
                *point = utf8_next(text + *at, bytes - *at, &length);
                *at += length;
                return NULL;
        }
        ++*at;
        if (in_class && *at < bytes && text[*at] == 'b') { /* a backspace, in brackets only */
                ++*at;
                *point = '\b';
                return NULL;
        }
        return read_escape(text, bytes, at, set, point);
}

static const char *read_brackets(const char *text, size_t bytes, size_t *at, struct characters *set)
{
        struct characters inside = { 0 };
        bool inverted = ++*at < bytes && text[*at] == '^';
        const char *wrong;

        *at += inverted;
        while (*at < bytes && text[*at] != ']') {
                int32_t from, to;

                wrong = read_one(text, bytes, at, &inside, true, &from);
                to = from;
                if (!wrong && from >= 0 && bytes - *at >= 2 && text[*at] == '-' &&
                    text[*at + 1] != ']') {
                        ++*at;
                        wrong = read_one(text, bytes, at, &inside, true, &to);
                        if (!wrong && (to < 0 || to < from))
                                wrong = "a range of characters is in the wrong order";
                }
                if (wrong)
                        return wrong;
                if (from >= 0)
                        characters_add(&inside, from, to);
        }
        if (*at == bytes)
                return "a class has no end";
        ++*at;
        if (inverted)
                characters_invert(&inside);
        *set = inside;
        return inside.full ? "a class has more than 256 ranges" : NULL;
}

const char *class_read(const char *text, size_t bytes, size_t *at, struct characters *set)
{
        const char *wrong;
        int32_t point;

        if (text[*at] == '[')
                return read_brackets(text, bytes, at, set);
        if (text[*at] == '.') {
                ++*at;
                ADD(set, line_ends, true);
                return NULL;
        }
        wrong = read_one(text, bytes, at, set, false, &point);
        if (!wrong && point >= 0)
                characters_add(set, point, point);
        return wrong;
}
