#include "daemon/text/unicode.h"

#include "json/utf8.h"

/* Hangul syllables are computed from lead, vowel and tail: there are 19 x 21 x 28 of them. */
#define SYLLABLES 0xAC00u
#define LEADS     0x1100u
#define VOWELS    0x1161u
#define TAILS     0x11A7u /* the code before the first tail; it stands for no tail */
#define LEAD_N    19u
#define VOWEL_N   21u
#define TAIL_N    28u

unsigned unicode_next_long(const char *text, size_t bytes, uint32_t *ret_code)
{
        static const uint8_t first_bits[] = { 0, 0x7F, 0x1F, 0x0F, 0x07 };
        const uint8_t *at = (const uint8_t *)text;
        int length = utf8_character(text, bytes);

        if (length <= 0) {
                *ret_code = UNICODE_INVALID;
                return 1;
        }
        *ret_code = at[0] & first_bits[length];
        for (int i = 1; i < length; i++)
                *ret_code = *ret_code << 6 | (at[i] & 0x3F);
        return (unsigned)length;
}

unsigned unicode_write(uint32_t code, char *to)
{
        unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        static const uint8_t marks[] = { 0, 0xC0, 0xE0, 0xF0 };

        for (unsigned i = more; i; i--, code >>= 6)
                to[i] = (char)(0x80 | (code & 0x3F));
        to[0] = (char)(marks[more] | code);
        return more + 1;
}

uint8_t unicode_look_up(const struct unicode_range *ranges, uint32_t count, uint32_t code)
{
        uint32_t low = 0, high = count;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (code > ranges[middle].last)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < count && code >= ranges[low].first ? ranges[low].value : 0;
}

enum unicode_category unicode_category(uint32_t code)
{
        return unicode_look_up(unicode_categories, unicode_category_count, code);
}

/* PropList.txt; it has not changed since Unicode 6.3. */
bool unicode_blank(uint32_t code)
{
        if (code < 0x1680)
                return code == ' ' || code - '\t' < 5 || code == 0x85 || code == 0xA0;
        return code == 0x1680 || code - 0x2000 < 11 || code == 0x2028 || code == 0x2029 ||
               code == 0x202F || code == 0x205F || code == 0x3000;
}

enum unicode_kind unicode_kind_long(uint32_t code)
{
        enum unicode_category category;

        if (unicode_blank(code))
                return UNICODE_BLANK;
        category = unicode_category(code);
        if (category >= UNICODE_LL && category <= UNICODE_LU)
                return UNICODE_LETTER;
        return category >= UNICODE_ND && category <= UNICODE_NO ? UNICODE_NUMBER : UNICODE_OTHER;
}

uint8_t unicode_class(uint32_t code)
{
        return code < 0x300 ? 0 : unicode_look_up(unicode_classes, unicode_class_count, code);
}

bool unicode_decompose(uint32_t code, uint32_t *ret_first, uint32_t *ret_second)
{
        uint32_t low = 0, high = unicode_decomposition_count, tail;

        if (code < 0xC0)
                return false;
        if (code - SYLLABLES < LEAD_N * VOWEL_N * TAIL_N) {
                code -= SYLLABLES;
                tail = code % TAIL_N;
                *ret_first = tail ? SYLLABLES + code - tail : LEADS + code / (VOWEL_N * TAIL_N);
                *ret_second = tail ? TAILS + tail : VOWELS + code / TAIL_N % VOWEL_N;
                return true;
        }
        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (code > unicode_decompositions[middle].code)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == unicode_decomposition_count || unicode_decompositions[low].code != code)
                return false;
        *ret_first = unicode_decompositions[low].first;
        *ret_second = unicode_decompositions[low].second;
        return true;
}

size_t unicode_expand(uint32_t code, const uint32_t **ret_codes)
{
        uint32_t low = 0, high = unicode_expansion_count;

        if (code < 0xA0)
                return 0;
        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (code > unicode_expansions[middle].code)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == unicode_expansion_count || unicode_expansions[low].code != code)
                return 0;
        *ret_codes = unicode_expansion_codes + unicode_expansions[low].at;
        return unicode_expansions[low].count;
}

uint32_t unicode_compose(uint32_t first, uint32_t second)
{
        uint32_t low = 0, high = unicode_composition_count, syllable = first - SYLLABLES;

        if (first - LEADS < LEAD_N && second - VOWELS < VOWEL_N)
                return SYLLABLES + ((first - LEADS) * VOWEL_N + second - VOWELS) * TAIL_N;
        if (syllable < LEAD_N * VOWEL_N * TAIL_N && syllable % TAIL_N == 0 &&
            second - TAILS - 1 < TAIL_N - 1)
                return first + second - TAILS;
        while (low < high) {
                uint32_t middle = (low + high) / 2;
                const struct unicode_pair *p = &unicode_compositions[middle];

                if (p->first < first || (p->first == first && p->second < second))
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == unicode_composition_count || unicode_compositions[low].first != first ||
            unicode_compositions[low].second != second)
                return 0;
        return unicode_compositions[low].code;
}
