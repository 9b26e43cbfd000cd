/*
 * Text with its marks: building it, cutting it, looking into it.
 *
 * Places are bytes; Python counts characters, so whoever has Python's numbers turns them
 * with text_place().  A cut shares the bytes of what it was cut from.
 */
#ifndef DAEMON_TEXT_TEMPLATE_TEXT_H
#define DAEMON_TEXT_TEMPLATE_TEXT_H

#include "daemon/text/template/run.h"

#define TEXT_NOWHERE UINT32_MAX

/* What a constant of ours begins as: static const struct text name = TEXT_WORD(name, "...") */
#define TEXT_WORD(itself, word)                                                                    \
        {                                                                                          \
                .bytes = word, .count = sizeof(word) - 1, .run_count = 1, .runs = &(itself).whole, \
                .whole = { sizeof(word) - 1, TEXT_OURS },                                          \
        }

/* They charge for what they copy. */
int text_add(struct run *run, struct builder *to, const char *bytes, size_t count,
             enum text_origin origin);
int text_add_slice(struct run *run, struct builder *to, const struct text *text, uint32_t from,
                   uint32_t end);
int text_add_all(struct run *run, struct builder *to, const struct text *text);
int text_add_code(struct run *run, struct builder *to, uint32_t code, enum text_origin origin);
/* The builder is not to be used after it. */
int text_end(struct run *run, struct builder *from, struct value *ret_value);
/* The same, and all of it is given if anything in it is. */
int text_end_as_one(struct run *run, struct builder *from, struct value *ret_value);

int text_slice(struct run *run, const struct text *text, uint32_t from, uint32_t end,
               struct value *ret_value);
int text_ours(struct run *run, const char *bytes, size_t count, struct value *ret_value);

/* Whose the byte at a place is. */
enum text_origin text_origin_at(const struct text *text, uint32_t place);

/* Characters; charged for. */
int text_length(struct run *run, const struct text *text, uint32_t *ret_length);
/* Where character `index` begins; the end, if there are not so many. */
uint32_t text_place(const struct text *text, int64_t index);

/* The first, or last, place of a text in [from, end) of another; TEXT_NOWHERE. */
uint32_t text_find(const struct text *text, const struct text *wanted, uint32_t from, uint32_t end);
uint32_t text_find_last(const struct text *text, const struct text *wanted, uint32_t from,
                        uint32_t end);
bool text_same(const struct text *a, const struct text *b);
bool text_is(const struct text *text, const char *name);

/* For sentences: the beginning of it, as a C string. */
struct shown text_shown(const struct text *text);

#endif
