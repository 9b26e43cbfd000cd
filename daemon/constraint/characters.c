#include "daemon/constraint/characters.h"

#include <stdlib.h>
#include <string.h>

void characters_add(struct characters *set, uint32_t from, uint32_t to)
{
        if (set->count == CHARACTER_RANGES)
                set->full = true;
        else
                set->ranges[set->count++] = (struct character_range){ from, to };
}

void characters_add_all(struct characters *set, const struct characters *more)
{
        for (uint32_t i = 0; i < more->count; i++)
                characters_add(set, more->ranges[i].from, more->ranges[i].to);
        set->full |= more->full;
}

static int compare(const void *one, const void *other)
{
        const struct character_range *a = one, *b = other;

        return (a->from > b->from) - (a->from < b->from);
}

void characters_invert(struct characters *set)
{
        uint32_t next = 0;
        struct characters without = { .full = set->full };

        qsort(set->ranges, set->count, sizeof(*set->ranges), compare);
        for (uint32_t i = 0; i < set->count; i++) {
                if (set->ranges[i].from > next)
                        characters_add(&without, next, set->ranges[i].from - 1);
                if (set->ranges[i].to >= next)
                        next = set->ranges[i].to + 1;
        }
        if (next <= CHARACTER_LAST)
                characters_add(&without, next, CHARACTER_LAST);
        *set = without;
}

static unsigned encode(uint32_t point, uint8_t bytes[4])
{
        static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
        unsigned count = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

        for (unsigned i = count; i-- > 1; point >>= 6)
                bytes[i] = 0x80 | (point & 63);
        bytes[0] = count == 1 ? point : lead[count] | point;
        return count;
}

/* All byte strings of `count` bytes between two, byte by byte; the recursion is 4 deep at most. */
static uint32_t between(struct regex_pool *pool, const uint8_t *from, const uint8_t *to,
                        unsigned count)
{
        static const uint8_t least[3] = { 0x80, 0x80, 0x80 }, most[3] = { 0xbf, 0xbf, 0xbf };
        uint8_t low = from[0], high = to[0];
        uint32_t parts[3] = { REGEX_NONE, REGEX_NONE, REGEX_NONE };

        if (count == 1)
                return regex_range(pool, low, high);
        if (low == high)
                return regex_concat(pool, regex_range(pool, low, low),
                                    between(pool, from + 1, to + 1, count - 1));
        if (memcmp(from + 1, least, count - 1) != 0) {
                parts[0] = regex_concat(pool, regex_range(pool, low, low),
                                        between(pool, from + 1, most, count - 1));
                low++;
        }
        if (memcmp(to + 1, most, count - 1) != 0) {
                parts[1] = regex_concat(pool, regex_range(pool, high, high),
                                        between(pool, least, to + 1, count - 1));
                high--;
        }
        if (low <= high)
                parts[2] = regex_concat(pool, regex_range(pool, low, high),
                                        between(pool, least, most, count - 1));
        return regex_or(pool, parts, 3);
}

/* Characters of one length, without surrogates. */
static const struct character_range lengths[] = {
        { 0, 0x7f }, { 0x80, 0x7ff }, { 0x800, 0xd7ff }, { 0xe000, 0xffff }, { 0x10000, 0x10ffff },
};

static uint32_t plain(struct regex_pool *pool, struct character_range range)
{
        uint32_t term = REGEX_NONE;

        for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
                uint32_t low = range.from > lengths[i].from ? range.from : lengths[i].from;
                uint32_t high = range.to < lengths[i].to ? range.to : lengths[i].to;
                uint8_t from[4], to[4];
                unsigned count;

                if (low > high)
                        continue;
                count = encode(low, from);
                encode(high, to);
                term = regex_or2(pool, term, between(pool, from, to, count));
        }
        return term;
}

static uint32_t hex_digit(struct regex_pool *pool, unsigned digit)
{
        struct byte_set set = { 0 };

        byte_set_add(&set, "0123456789abcdef"[digit], "0123456789abcdef"[digit]);
        byte_set_add(&set, "0123456789ABCDEF"[digit], "0123456789ABCDEF"[digit]);
        return regex_set(pool, &set);
}

/* A control, a quote or a backslash. */
static uint32_t escaped(struct regex_pool *pool, uint32_t point)
{
        static const char letters[128] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                           ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\' };
        char text[8] = { '\\', letters[point] };
        uint32_t hex, term = letters[point] ? regex_literal(pool, text, 2) : REGEX_NONE;

        if (point >= 0x20)
                return term;
        hex = regex_concat(pool, hex_digit(pool, point >> 4), hex_digit(pool, point & 15));
        return regex_or2(pool, term, regex_concat(pool, regex_literal(pool, "\\u00", 4), hex));
}

static uint32_t json(struct regex_pool *pool, struct character_range range)
{
        static const struct character_range raw[] = { { 0x20, 0x21 },
                                                      { 0x23, 0x5b },
                                                      { 0x5d, CHARACTER_LAST } };
        uint32_t term = REGEX_NONE;

        for (int i = 0; i < 3; i++) {
                uint32_t low = range.from > raw[i].from ? range.from : raw[i].from;
                uint32_t high = range.to < raw[i].to ? range.to : raw[i].to;

                if (low <= high)
                        term = regex_or2(pool, term,
                                         plain(pool, (struct character_range){ low, high }));
        }
        for (uint32_t point = range.from; point <= range.to && point < 0x7f; point++)
                if (point < 0x20 || point == '"' || point == '\\')
                        term = regex_or2(pool, term, escaped(pool, point));
        return term;
}

uint32_t characters_regex(struct regex_pool *pool, const struct characters *set,
                          enum writing writing)
{
        uint32_t term = REGEX_NONE;

        for (uint32_t i = 0; i < set->count; i++)
                term = regex_or2(pool, term,
                                 writing == WRITING_JSON ? json(pool, set->ranges[i])
                                                         : plain(pool, set->ranges[i]));
        return term;
}

uint32_t characters_any(struct regex_pool *pool, enum writing writing)
{
        struct character_range all = { 0, CHARACTER_LAST };

        return writing == WRITING_JSON ? json(pool, all) : plain(pool, all);
}

uint32_t characters_text(struct regex_pool *pool, const char *text, size_t bytes,
                         enum writing writing)
{
        uint32_t term = REGEX_EMPTY;

        if (writing == WRITING_PLAIN)
                return regex_literal(pool, text, bytes);
        for (size_t i = bytes; i-- > 0;) {
                uint8_t byte = text[i];
                bool special = byte < 0x20 || byte == '"' || byte == '\\';

                term = regex_concat(
                        pool, special ? escaped(pool, byte) : regex_range(pool, byte, byte), term);
        }
        return term;
}
