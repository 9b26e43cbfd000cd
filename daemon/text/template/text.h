/*
 * Text with its origins: building it, cutting it, searching it.
 *
 * Places in a text are byte offsets.  Python counts characters: convert its indices with
 * text_place().  A slice shares the bytes of the text that it was cut from.
 */
#ifndef DAEMON_TEXT_TEMPLATE_TEXT_H
#define DAEMON_TEXT_TEMPLATE_TEXT_H

#include "daemon/text/template/budget.h"

#define TEXT_NOWHERE UINT32_MAX

/* The initializer of a constant text: static const struct text name = TEXT_WORD(name, "...") */
#define TEXT_WORD(itself, word)                                                                    \
        {                                                                                          \
                .bytes = word, .count = sizeof(word) - 1, .run_count = 1, .runs = &(itself).whole, \
                .whole = { sizeof(word) - 1, TEXT_OURS },                                          \
        }

/* Text that grows, with the origin of its parts. */
struct builder {
        char *bytes;
        struct text_run *runs;
        uint32_t count, capacity, run_count, run_capacity;
        bool is_output; /* limits.output_bytes is its limit */
};

/* These charge fuel for the bytes that they copy. */
int text_add(struct budget *budget, struct builder *to, const char *bytes, size_t count,
             enum text_origin origin);
int text_add_slice(struct budget *budget, struct builder *to, const struct text *text,
                   uint32_t from, uint32_t end);
int text_add_all(struct budget *budget, struct builder *to, const struct text *text);
int text_add_code(struct budget *budget, struct builder *to, uint32_t code,
                  enum text_origin origin);
/* Makes a text of the builder, which must not be used afterwards. */
int text_end(struct budget *budget, struct builder *from, struct value *ret_value);
/* The same, but all of the text is TEXT_GIVEN if any part of it is. */
int text_end_as_one(struct budget *budget, struct builder *from, struct value *ret_value);

int text_slice(struct budget *budget, const struct text *text, uint32_t from, uint32_t end,
               struct value *ret_value);
int text_ours(struct budget *budget, const char *bytes, size_t count, struct value *ret_value);

/* The origin of the byte at a place. */
enum text_origin text_origin_at(const struct text *text, uint32_t place);

/* The number of characters; charges fuel. */
int text_length(struct budget *budget, const struct text *text, uint32_t *ret_length);
/* Where character `index` begins; the end of the text if it has fewer characters. */
uint32_t text_place(const struct text *text, int64_t index);

/* The first or last place of `wanted` in [from, end) of a text; TEXT_NOWHERE if there is none. */
uint32_t text_find(const struct text *text, const struct text *wanted, uint32_t from, uint32_t end);
uint32_t text_find_last(const struct text *text, const struct text *wanted, uint32_t from,
                        uint32_t end);
bool text_same(const struct text *a, const struct text *b);
bool text_is(const struct text *text, const char *name);

#endif
