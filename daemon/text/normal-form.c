/*
 * Three passes: decompose every character fully, sort each run of marks by class, and, for NFC,
 * compose wherever possible.
 *
 * An item is a code with its class in the bits above.  A byte that is not part of UTF-8 is an item,
 * too: it has class 0 and composes with nothing.
 */
#include "daemon/text/normal-form.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/unicode.h"

#define FOREIGN     0x200000u /* added to a byte that is no UTF-8; above all codes of Unicode */
#define CODE(item)  ((item)&0xFFFFFFu)
#define CLASS(item) ((item) >> 24)
#define SHORT       16u /* up to this many marks are sorted by insertion */
#define DEPTH       8u

/*
 * Codes below neither compose with each other nor, in the second case, decompose.  Most texts have
 * no other codes.
 */
#define PLAIN_END(form) ((form) == FORM_NFC ? 0x300u : 0x80u)

/* No character decomposes to more items for each of its bytes. */
#define ITEMS      2u
#define ITEMS_LIKE 6u

static bool is_plain(enum normal_form form, const char *text, size_t bytes)
{
        for (size_t at = 0, n; at < bytes; at += n) {
                uint32_t code;

                n = unicode_next(text + at, bytes - at, &code);
                if (code >= PLAIN_END(form) && code != UNICODE_INVALID)
                        return false;
        }
        return true;
}

static bool composes(enum normal_form form)
{
        return form == FORM_NFC || form == FORM_NFKC;
}

static bool expands(enum normal_form form)
{
        return form == FORM_NFKC || form == FORM_NFKD;
}

/* The first part is decomposed further; the stack holds the parts that follow it. */
static size_t decompose(uint32_t code, uint32_t *to)
{
        uint32_t stack[DEPTH] = { code }, first, second;
        size_t depth = 1, count = 0;

        while (depth) {
                code = stack[--depth];
                if (!unicode_decompose(code, &first, &second)) {
                        to[count++] = code | (uint32_t)unicode_class(code) << 24;
                        continue;
                }
                assert(depth + 2 <= DEPTH);
                if (second)
                        stack[depth++] = second;
                stack[depth++] = first;
        }
        return count;
}

/* A stable sort by class. */
static void order_run(uint32_t *items, size_t count, uint32_t *spare)
{
        size_t begins[257] = { 0 };

        if (count <= SHORT) {
                for (size_t i = 1; i < count; i++) {
                        uint32_t item = items[i];
                        size_t at = i;

                        for (; at && CLASS(items[at - 1]) > CLASS(item); at--)
                                items[at] = items[at - 1];
                        items[at] = item;
                }
                return;
        }
        for (size_t i = 0; i < count; i++)
                begins[CLASS(items[i]) + 1]++;
        for (unsigned i = 1; i < 257; i++)
                begins[i] += begins[i - 1];
        for (size_t i = 0; i < count; i++)
                spare[begins[CLASS(items[i])]++] = items[i];
        memcpy(items, spare, count * sizeof(*items));
}

static void order(uint32_t *items, size_t count, uint32_t *spare)
{
        for (size_t at = 0, end; at < count; at = end) {
                for (end = at; end < count && CLASS(items[end]);)
                        end++;
                if (end > at + 1)
                        order_run(items + at, end - at, spare);
                end += end == at;
        }
}

/*
 * In place.  A mark composes with the last starter, unless a mark of its class or above is between
 * them.
 */
static size_t compose(uint32_t *items, size_t count)
{
        size_t made = 0, starter = SIZE_MAX;

        for (size_t i = 0; i < count; i++) {
                uint32_t item = items[i], code = 0;

                if (starter != SIZE_MAX &&
                    (made == starter + 1 || CLASS(items[made - 1]) < CLASS(item)))
                        code = unicode_compose(CODE(items[starter]), CODE(item));
                if (code) {
                        items[starter] = code | (uint32_t)unicode_class(code) << 24;
                        continue;
                }
                if (!CLASS(item))
                        starter = made;
                items[made++] = item;
        }
        return made;
}

static size_t write_items(const uint32_t *items, size_t count, char *to)
{
        size_t bytes = 0;

        for (size_t i = 0; i < count; i++) {
                if (CODE(items[i]) >= FOREIGN)
                        to[bytes++] = (char)CODE(items[i]);
                else
                        bytes += unicode_write(CODE(items[i]), to + bytes);
        }
        return bytes;
}

static size_t expand(uint32_t code, uint32_t *to)
{
        const uint32_t *codes;
        size_t count = unicode_expand(code, &codes);

        for (size_t i = 0; i < count; i++)
                to[i] = codes[i] | (uint32_t)unicode_class(codes[i]) << 24;
        return count;
}

static size_t decompose_all(enum normal_form form, const char *text, size_t bytes, uint32_t *items)
{
        size_t count = 0;

        for (size_t at = 0, n; at < bytes; at += n) {
                uint32_t code;
                size_t more = 0;

                n = unicode_next(text + at, bytes - at, &code);
                if (code == UNICODE_INVALID) {
                        items[count++] = FOREIGN | (uint8_t)text[at];
                        continue;
                }
                if (expands(form))
                        more = expand(code, items + count);
                count += more ? more : decompose(code, items + count);
        }
        return count;
}

int normal_form_make(enum normal_form form, const char *text, size_t bytes, char **ret_text,
                     size_t *ret_bytes, uint64_t *steps)
{
        size_t growth = expands(form) ? FORM_GROWTH_LIKE : FORM_GROWTH;
        size_t room = (expands(form) ? ITEMS_LIKE : ITEMS) * bytes, count;
        uint32_t *items, *spare;
        char *to = malloc(growth * bytes + 1);

        if (!to)
                return error_raise(-ENOMEM);
        *ret_text = to;
        *steps += bytes;
        if (is_plain(form, text, bytes)) {
                memcpy(to, text, bytes);
                *ret_bytes = bytes;
                return 0;
        }
        items = reallocarray(NULL, room, 2 * sizeof(*items));
        if (!items) {
                free(to);
                return error_raise(-ENOMEM);
        }
        spare = items + room;
        count = decompose_all(form, text, bytes, items);
        assert(count <= room);
        *steps += count;
        order(items, count, spare);
        if (composes(form))
                count = compose(items, count);
        *ret_bytes = write_items(items, count, to);
        assert(*ret_bytes <= growth * bytes);
        free(items);
        return 0;
}
