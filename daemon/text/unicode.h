/*
 * The properties of Unicode characters that tokenizers need.
 *
 * The tables are generated (contrib/dev/unicode); the head of unicode-tables.c has the version.
 * A byte that is not part of valid UTF-8 counts as one character without properties.  Pure
 * functions; any thread.
 */
#ifndef DAEMON_TEXT_UNICODE_H
#define DAEMON_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNICODE_INVALID UINT32_MAX /* the code of a byte that is not part of valid UTF-8 */

enum unicode_kind {
        UNICODE_OTHER,
        UNICODE_LETTER, /* \p{L} */
        UNICODE_NUMBER, /* \p{N} */
        UNICODE_BLANK,  /* \s: White_Space */
};

/*
 * For a text of at least one byte: returns how many bytes the first character has, and gives its
 * code.
 */
unsigned unicode_next_long(const char *text, size_t bytes, uint32_t *ret_code); /* beyond ASCII */
static inline unsigned unicode_next(const char *text, size_t bytes, uint32_t *ret_code)
{
        if ((uint8_t)text[0] >= 0x80)
                return unicode_next_long(text, bytes, ret_code);
        *ret_code = (uint8_t)text[0];
        return 1;
}

/* Writes at most four bytes; returns how many. */
unsigned unicode_write(uint32_t code, char *to);

/* The general category.  UNICODE_CN: the code is not assigned, or no character. */
enum unicode_category {
        UNICODE_CN,
        UNICODE_CC,
        UNICODE_CF,
        UNICODE_CO,
        UNICODE_CS,
        UNICODE_LL,
        UNICODE_LM,
        UNICODE_LO,
        UNICODE_LT,
        UNICODE_LU,
        UNICODE_MC,
        UNICODE_ME,
        UNICODE_MN,
        UNICODE_ND,
        UNICODE_NL,
        UNICODE_NO,
        UNICODE_PC,
        UNICODE_PD,
        UNICODE_PE,
        UNICODE_PF,
        UNICODE_PI,
        UNICODE_PO,
        UNICODE_PS,
        UNICODE_SC,
        UNICODE_SK,
        UNICODE_SM,
        UNICODE_SO,
        UNICODE_ZL,
        UNICODE_ZP,
        UNICODE_ZS,
        UNICODE_CATEGORY_N,
};
enum unicode_category unicode_category(uint32_t code);

bool unicode_blank(uint32_t code); /* White_Space */

enum unicode_kind unicode_kind_long(uint32_t code); /* beyond ASCII */
static inline enum unicode_kind unicode_kind(uint32_t code)
{
        if (code >= 0x80)
                return unicode_kind_long(code);
        if ((code | 0x20) - 'a' < 26)
                return UNICODE_LETTER;
        if (code - '0' < 10)
                return UNICODE_NUMBER;
        return code == ' ' || code - '\t' < 5 ? UNICODE_BLANK : UNICODE_OTHER;
}

uint8_t unicode_class(uint32_t code); /* canonical combining class */

/*
 * One step of canonical decomposition.  False: the character has none.  *ret_second is 0 if it
 * decomposes to one character.
 */
bool unicode_decompose(uint32_t code, uint32_t *ret_first, uint32_t *ret_second);
uint32_t unicode_compose(uint32_t first, uint32_t second); /* 0: they do not compose */

/*
 * The whole decomposition of a character that looks like others, such as a ligature (compatibility
 * decomposition).  Returns how many codes; 0: the canonical decomposition is all there is.
 */
size_t unicode_expand(uint32_t code, const uint32_t **ret_codes);

/*
 * The generated tables.  Ranges are sorted by `first`, decompositions and expansions by `code`,
 * compositions by `first` and `second`.
 */
struct unicode_range {
        uint32_t first, last;
        uint8_t value;
};
struct unicode_pair {
        uint32_t code, first, second;
};
struct unicode_expansion { /* its codes are at unicode_expansion_codes[at] */
        uint32_t code;
        uint16_t at, count;
};
extern const struct unicode_expansion unicode_expansions[];
extern const uint32_t unicode_expansion_codes[], unicode_expansion_count;
/* The value of the range that has the code; 0: none has it. */
uint8_t unicode_look_up(const struct unicode_range *ranges, uint32_t count, uint32_t code);
extern const struct unicode_range unicode_categories[], unicode_classes[];
extern const struct unicode_pair unicode_decompositions[], unicode_compositions[];
extern const uint32_t unicode_category_count, unicode_class_count;
extern const uint32_t unicode_decomposition_count, unicode_composition_count;

#endif
