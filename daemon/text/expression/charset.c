#include "daemon/text/expression/charset.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/expression/property-tables.h"
#include "daemon/text/unicode.h"

#define NAME_MAX_BYTES 64u
#define CATEGORY(name) (UINT32_C(1) << UNICODE_##name)
#define LETTERS        (CATEGORY(LL) | CATEGORY(LM) | CATEGORY(LO) | CATEGORY(LT) | CATEGORY(LU))
#define MARKS          (CATEGORY(MC) | CATEGORY(ME) | CATEGORY(MN))
#define NUMBERS        (CATEGORY(ND) | CATEGORY(NL) | CATEGORY(NO))
#define SYMBOLS        (CATEGORY(SC) | CATEGORY(SK) | CATEGORY(SM) | CATEGORY(SO))
#define PUNCTUATION                                                                                \
        (CATEGORY(PC) | CATEGORY(PD) | CATEGORY(PE) | CATEGORY(PF) | CATEGORY(PI) | CATEGORY(PO) | \
         CATEGORY(PS))
#define OTHERS (CATEGORY(CN) | CATEGORY(CC) | CATEGORY(CF) | CATEGORY(CO) | CATEGORY(CS))
#define GAPS   (CATEGORY(ZL) | CATEGORY(ZP) | CATEGORY(ZS))

void charset_deinit(struct charset *set)
{
        free(set->ranges);
        *set = (struct charset){ 0 };
}

static int grow(struct charset *set)
{
        uint32_t capacity = set->capacity ? 2 * set->capacity : 8;
        struct charset_range *ranges = reallocarray(set->ranges, capacity, sizeof(*ranges));

        if (!ranges)
                return error_raise(-ENOMEM);
        set->ranges = ranges;
        set->capacity = capacity;
        return 0;
}

/* Behind the last range, which it may continue. */
static int append(struct charset *set, uint32_t first, uint32_t last)
{
        int r = set->count < set->capacity ? 0 : grow(set);

        if (r)
                return error_pass(r);
        assert(!set->count || first > set->ranges[set->count - 1].first);
        if (set->count && first <= set->ranges[set->count - 1].last + 1) {
                if (last > set->ranges[set->count - 1].last)
                        set->ranges[set->count - 1].last = last;
                return 0;
        }
        set->ranges[set->count++] = (struct charset_range){ first, last };
        return 0;
}

int charset_add(struct charset *set, uint32_t first, uint32_t last)
{
        struct charset_range range = { first, last };
        struct charset other = { &range, 1, 1 };

        assert(first <= last && last < CHARSET_END);
        return error_pass(charset_unite(set, &other));
}

int charset_unite(struct charset *set, const struct charset *other)
{
        struct charset to = { 0 };
        uint32_t i = 0, k = 0;
        int r = 0;

        while (!r && (i < set->count || k < other->count)) {
                const struct charset_range *next;

                if (k == other->count ||
                    (i < set->count && set->ranges[i].first <= other->ranges[k].first))
                        next = &set->ranges[i++];
                else
                        next = &other->ranges[k++];
                /* Two ranges may begin at the same code. */
                if (to.count && next->first == to.ranges[to.count - 1].first) {
                        if (next->last > to.ranges[to.count - 1].last)
                                to.ranges[to.count - 1].last = next->last;
                        continue;
                }
                r = append(&to, next->first, next->last);
        }
        if (r) {
                charset_deinit(&to);
                return error_pass(r);
        }
        charset_deinit(set);
        *set = to;
        return 0;
}

int charset_complement(struct charset *set)
{
        struct charset to = { 0 };
        uint32_t from = 0;
        int r = 0;

        for (uint32_t i = 0; !r && i < set->count; i++) {
                if (set->ranges[i].first > from)
                        r = append(&to, from, set->ranges[i].first - 1);
                from = set->ranges[i].last + 1;
        }
        if (!r && from < CHARSET_END)
                r = append(&to, from, CHARSET_END - 1);
        if (r) {
                charset_deinit(&to);
                return error_pass(r);
        }
        charset_deinit(set);
        *set = to;
        return 0;
}

int charset_intersect(struct charset *set, const struct charset *other)
{
        struct charset outside = { 0 };
        int r = charset_unite(&outside, other);

        if (!r)
                r = charset_complement(&outside);
        if (!r)
                r = charset_complement(set);
        if (!r)
                r = charset_unite(set, &outside);
        if (!r)
                r = charset_complement(set);
        charset_deinit(&outside);
        return error_pass(r);
}

int charset_fold(struct charset *set)
{
        struct charset more = { 0 };
        int r = 0;

        for (uint32_t i = 0; !r && i < property_case_count; i++)
                if (charset_has(set, property_cases[i].code))
                        r = charset_add(&more, property_cases[i].other, property_cases[i].other);
        if (!r)
                r = charset_unite(set, &more);
        charset_deinit(&more);
        return error_pass(r);
}

static bool same_letter(uint32_t a, uint32_t b)
{
        bool same = a == b;

        for (uint32_t i = 0; !same && i < property_case_count; i++)
                same = property_cases[i].code == a && property_cases[i].other == b;
        return same;
}

bool charset_has_several(const struct charset *set)
{
        for (uint32_t i = 0; i < property_letters_count; i++)
                if (charset_has(set, property_letters[i].code))
                        return true;
        return false;
}

bool charset_several_equal_one(const uint32_t *letters, unsigned count)
{
        for (uint32_t i = 0; i < property_letters_count; i++) {
                const uint32_t *wanted = property_letters[i].letters;
                unsigned length = wanted[2] ? 3 : 2, k = 0;

                while (length <= count && k < length &&
                       same_letter(letters[count - length + k], wanted[k]))
                        k++;
                if (k == length)
                        return true;
        }
        return false;
}

bool charset_has(const struct charset *set, uint32_t code)
{
        uint32_t low = 0, high = set->count;

        while (low < high) {
                uint32_t middle = (low + high) / 2;

                if (code > set->ranges[middle].last)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < set->count && code >= set->ranges[low].first;
}

/* ---- properties ---- */

static int add_categories(struct charset *set, uint32_t categories)
{
        struct charset listed = { 0 };
        int r = 0;

        for (uint32_t i = 0; !r && i < unicode_category_count; i++) {
                const struct unicode_range *range = &unicode_categories[i];

                if (categories >> range->value & 1)
                        r = append(&listed, range->first, range->last);
        }
        if (!r)
                r = charset_unite(set, &listed);
        charset_deinit(&listed);
        if (r || !(categories & CATEGORY(CN)))
                return error_pass(r);
        /* Codes that are in no table are not assigned. */
        for (uint32_t i = 0; !r && i < unicode_category_count; i++)
                r = append(&listed, unicode_categories[i].first, unicode_categories[i].last);
        if (!r)
                r = charset_add(&listed, CHARSET_INVALID, CHARSET_INVALID);
        if (!r)
                r = charset_complement(&listed);
        if (!r)
                r = charset_unite(set, &listed);
        charset_deinit(&listed);
        return error_pass(r);
}

static int add_blanks(struct charset *set)
{
        int r = 0;

        for (uint32_t code = 0; !r && code <= 0x3000; code++)
                if (unicode_blank(code))
                        r = charset_add(set, code, code);
        return error_pass(r);
}

/* Some categories, and the ranges of a table. */
static int add_table(struct charset *set, uint32_t categories, const struct unicode_range *ranges,
                     uint32_t count)
{
        struct charset more = { 0 };
        int r = add_categories(set, categories);

        for (uint32_t i = 0; !r && i < count; i++)
                r = append(&more, ranges[i].first, ranges[i].last);
        if (!r)
                r = charset_unite(set, &more);
        charset_deinit(&more);
        return error_pass(r);
}

static int add_alphabetic(struct charset *set)
{
        return error_pass(add_table(set, LETTERS | CATEGORY(NL), property_alphabetic,
                                    property_alphabetic_count));
}

static int add_word(struct charset *set)
{
        int r = add_categories(set, MARKS | CATEGORY(ND) | CATEGORY(PC));

        return r ? error_pass(r) : error_pass(add_alphabetic(set));
}

/* Assigned characters without controls and blanks. */
static int add_graphic(struct charset *set)
{
        int r = add_categories(set, CATEGORY(CN) | CATEGORY(CC) | CATEGORY(CS));

        if (!r)
                r = add_blanks(set);
        if (!r)
                r = charset_add(set, CHARSET_INVALID, CHARSET_INVALID);
        return r ? error_pass(r) : error_pass(charset_complement(set));
}

static int add_hex(struct charset *set)
{
        int r = charset_add(set, '0', '9');

        if (!r)
                r = charset_add(set, 'A', 'F');
        return r ? error_pass(r) : error_pass(charset_add(set, 'a', 'f'));
}

int charset_shorthand(struct charset *ret_set, char letter)
{
        *ret_set = (struct charset){ 0 };
        if (letter == 'd')
                return error_pass(add_categories(ret_set, CATEGORY(ND)));
        if (letter == 's')
                return error_pass(add_blanks(ret_set));
        if (letter == 'h')
                return error_pass(add_hex(ret_set));
        assert(letter == 'w');
        return error_pass(add_word(ret_set));
}

int charset_add_latin_numbers(struct charset *set)
{
        int r = charset_add(set, 0xB2, 0xB3);

        if (!r)
                r = charset_add(set, 0xB9, 0xB9);
        return r ? error_pass(r) : error_pass(charset_add(set, 0xBC, 0xBE));
}

static const struct {
        const char *name;
        uint32_t categories;
} categories[] = {
        { "c", OTHERS },
        { "cc", CATEGORY(CC) },
        { "cf", CATEGORY(CF) },
        { "cn", CATEGORY(CN) },
        { "co", CATEGORY(CO) },
        { "cs", CATEGORY(CS) },
        { "l", LETTERS },
        { "letter", LETTERS },
        { "lc", CATEGORY(LL) | CATEGORY(LT) | CATEGORY(LU) },
        { "ll", CATEGORY(LL) },
        { "lm", CATEGORY(LM) },
        { "lo", CATEGORY(LO) },
        { "lt", CATEGORY(LT) },
        { "lu", CATEGORY(LU) },
        { "lowercaseletter", CATEGORY(LL) },
        { "uppercaseletter", CATEGORY(LU) },
        { "m", MARKS },
        { "mark", MARKS },
        { "mc", CATEGORY(MC) },
        { "me", CATEGORY(ME) },
        { "mn", CATEGORY(MN) },
        { "n", NUMBERS },
        { "number", NUMBERS },
        { "nd", CATEGORY(ND) },
        { "digit", CATEGORY(ND) },
        { "nl", CATEGORY(NL) },
        { "no", CATEGORY(NO) },
        { "p", PUNCTUATION },
        { "punctuation", PUNCTUATION },
        { "punct", PUNCTUATION },
        { "pc", CATEGORY(PC) },
        { "pd", CATEGORY(PD) },
        { "pe", CATEGORY(PE) },
        { "pf", CATEGORY(PF) },
        { "pi", CATEGORY(PI) },
        { "po", CATEGORY(PO) },
        { "ps", CATEGORY(PS) },
        { "s", SYMBOLS },
        { "symbol", SYMBOLS },
        { "sc", CATEGORY(SC) },
        { "sk", CATEGORY(SK) },
        { "sm", CATEGORY(SM) },
        { "so", CATEGORY(SO) },
        { "z", GAPS },
        { "separator", GAPS },
        { "zl", CATEGORY(ZL) },
        { "zp", CATEGORY(ZP) },
        { "zs", CATEGORY(ZS) },
        { "cntrl", CATEGORY(CC) },
};

static int add_named(struct charset *set, const char *name)
{
        int r;

        if (!strcmp(name, "alpha") || !strcmp(name, "alphabetic"))
                return error_pass(add_alphabetic(set));
        if (!strcmp(name, "space") || !strcmp(name, "whitespace"))
                return error_pass(add_blanks(set));
        if (!strcmp(name, "xdigit"))
                return error_pass(add_hex(set));
        if (!strcmp(name, "any"))
                return error_pass(charset_add(set, 0, CHARSET_INVALID - 1));
        if (!strcmp(name, "ascii"))
                return error_pass(charset_add(set, 0, 0x7F));
        if (!strcmp(name, "lower") || !strcmp(name, "lowercase"))
                return error_pass(
                        add_table(set, CATEGORY(LL), property_lower, property_lower_count));
        if (!strcmp(name, "upper") || !strcmp(name, "uppercase"))
                return error_pass(
                        add_table(set, CATEGORY(LU), property_upper, property_upper_count));
        if (!strcmp(name, "graph"))
                return error_pass(add_graphic(set));
        if (!strcmp(name, "print")) {
                r = add_graphic(set);
                return r ? error_pass(r) : error_pass(add_categories(set, CATEGORY(ZS)));
        }
        if (!strcmp(name, "blank")) {
                r = add_categories(set, CATEGORY(ZS));
                return r ? error_pass(r) : error_pass(charset_add(set, '\t', '\t'));
        }
        if (!strcmp(name, "alnum")) {
                r = add_alphabetic(set);
                return r ? error_pass(r) : error_pass(add_categories(set, CATEGORY(ND)));
        }
        return -EINVAL;
}

static int add_script(struct charset *set, const char *name)
{
        struct charset found = { 0 };
        uint32_t script = 0;
        int r = 0;

        while (script < property_script_name_count && strcmp(property_script_names[script], name))
                script++;
        if (script == property_script_name_count)
                return -EINVAL;
        for (uint32_t i = 0; !r && i < property_script_count; i++)
                if (property_scripts[i].value == script)
                        r = append(&found, property_scripts[i].first, property_scripts[i].last);
        if (!r)
                r = charset_unite(set, &found);
        charset_deinit(&found);
        return error_pass(r);
}

int charset_property(struct charset *ret_set, const char *name, size_t bytes)
{
        char plain[NAME_MAX_BYTES];
        size_t count = 0;
        int r;

        *ret_set = (struct charset){ 0 };
        for (size_t i = 0; i < bytes; i++) {
                if (name[i] == ' ' || name[i] == '-' || name[i] == '_')
                        continue;
                if (count + 1 == sizeof(plain))
                        return -EINVAL;
                plain[count++] = (char)((unsigned)(name[i] - 'A') < 26 ? name[i] | 0x20 : name[i]);
        }
        plain[count] = 0;
        for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
                if (!strcmp(categories[i].name, plain))
                        return error_pass(add_categories(ret_set, categories[i].categories));
        r = add_named(ret_set, plain);
        return r == -EINVAL ? add_script(ret_set, plain) : error_pass(r);
}

int charset_bracket(struct charset *ret_set, const char *name, size_t bytes)
{
        static const char *const names[] = {
                "alnum", "alpha", "ascii", "blank", "cntrl", "digit",
                "graph", "lower", "print", "space", "upper", "xdigit"
        };

        *ret_set = (struct charset){ 0 };
        if (bytes == 4 && !memcmp(name, "word", bytes))
                return error_pass(add_word(ret_set));
        /* Of the two, only [:punct:] has the symbols. */
        if (bytes == 5 && !memcmp(name, "punct", bytes))
                return error_pass(add_categories(ret_set, PUNCTUATION | SYMBOLS));
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (strlen(names[i]) == bytes && !memcmp(names[i], name, bytes))
                        return error_pass(charset_property(ret_set, name, bytes));
        return -EINVAL;
}
