#include "daemon/text/template/text.h"

#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/unicode.h"

/* ---- building ---- */

static int reserve(struct budget *budget, struct builder *to, size_t count)
{
        size_t wanted = (size_t)to->count + count, capacity = to->capacity ? to->capacity : 64;
        char *bytes;
        int r;

        if (wanted <= to->capacity)
                return 0;
        while (capacity < wanted)
                capacity *= 2;
        if (capacity > UINT32_MAX / 2)
                return error_pass(budget_no_memory(budget));
        bytes = budget_take(budget, capacity, &r);
        if (!bytes)
                return error_pass(r);
        if (to->count)
                memcpy(bytes, to->bytes, to->count);
        to->bytes = bytes;
        to->capacity = (uint32_t)capacity;
        return 0;
}

int text_add(struct budget *budget, struct builder *to, const char *bytes, size_t count,
             enum text_origin origin)
{
        int r;

        if (!count)
                return 0;
        if ((r = budget_charge_bytes(budget, count)))
                return error_pass(r);
        if (to->is_output && to->count + count > budget->limits.output_bytes)
                return error_raise(budget_fail(
                        budget, "the template's output is too long: more than %zu bytes",
                        budget->limits.output_bytes));
        if ((r = reserve(budget, to, count)))
                return error_pass(r);
        if (!to->run_count || to->runs[to->run_count - 1].origin != origin) {
                r = budget_grow(budget, &to->runs, to->run_count, &to->run_capacity,
                                sizeof(*to->runs));
                if (r)
                        return error_pass(r);
                to->runs[to->run_count++].origin = origin;
        }
        memcpy(to->bytes + to->count, bytes, count);
        to->count += (uint32_t)count;
        to->runs[to->run_count - 1].end = to->count;
        return 0;
}

/* The index of the run that contains the byte; for the end of the text, that of the last run. */
static uint32_t run_at(const struct text *text, uint32_t place)
{
        uint32_t low = 0, high = text->run_count - 1;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (text->runs[middle].end <= place)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

enum text_origin text_origin_at(const struct text *text, uint32_t place)
{
        return text->runs[run_at(text, place)].origin;
}

int text_add_slice(struct budget *budget, struct builder *to, const struct text *text,
                   uint32_t from, uint32_t end)
{
        int r = 0;

        if (from >= end)
                return 0;
        for (uint32_t i = run_at(text, from); !r && from < end; i++) {
                uint32_t stop = text->runs[i].end < end ? text->runs[i].end : end;

                r = budget_charge(budget, i > 0);
                if (!r)
                        r = text_add(budget, to, text->bytes + from, stop - from,
                                     text->runs[i].origin);
                from = stop;
        }
        return error_pass(r);
}

int text_add_all(struct budget *budget, struct builder *to, const struct text *text)
{
        return error_pass(text_add_slice(budget, to, text, 0, text->count));
}

int text_add_code(struct budget *budget, struct builder *to, uint32_t code, enum text_origin origin)
{
        char bytes[4];

        return error_pass(text_add(budget, to, bytes, unicode_write(code, bytes), origin));
}

int text_end(struct budget *budget, struct builder *from, struct value *ret_value)
{
        struct text *text;
        int r;

        text = budget_take(budget, sizeof(*text), &r);
        if (!text)
                return error_pass(r);
        *text = (struct text){ .bytes = from->bytes ? from->bytes : "", .count = from->count };
        text->runs = from->runs;
        text->run_count = from->run_count;
        if (from->run_count < 2) {
                text->whole.end = from->count;
                text->whole.origin = from->run_count ? from->runs[0].origin : TEXT_OURS;
                text->runs = &text->whole;
                text->run_count = 1;
        }
        *ret_value = (struct value){ .kind = VALUE_STRING, .text = text };
        return 0;
}

int text_end_as_one(struct budget *budget, struct builder *from, struct value *ret_value)
{
        if (from->run_count > 1) {
                from->runs[0] = (struct text_run){ from->count, TEXT_GIVEN };
                from->run_count = 1;
        }
        return error_pass(text_end(budget, from, ret_value));
}

/* ---- cutting ---- */

int text_slice(struct budget *budget, const struct text *text, uint32_t from, uint32_t end,
               struct value *ret_value)
{
        uint32_t first, last;
        struct text_run *runs;
        struct text *cut;
        int r;

        if (from > end)
                from = end;
        cut = budget_take(budget, sizeof(*cut), &r);
        if (!cut)
                return error_pass(r);
        *ret_value = (struct value){ .kind = VALUE_STRING, .text = cut };
        *cut = (struct text){ .bytes = text->bytes + from, .count = end - from, .run_count = 1 };
        first = run_at(text, from);
        last = run_at(text, end > from ? end - 1 : from);
        if (first == last) {
                cut->whole = (struct text_run){ end - from, text->runs[first].origin };
                cut->runs = &cut->whole;
                return 0;
        }
        cut->run_count = last - first + 1;
        if ((r = budget_charge_bytes(budget, cut->run_count * sizeof(*runs))) ||
            !(runs = budget_take(budget, cut->run_count * sizeof(*runs), &r)))
                return error_pass(r);
        for (uint32_t i = first; i <= last; i++) {
                runs[i - first] = text->runs[i];
                runs[i - first].end = (text->runs[i].end < end ? text->runs[i].end : end) - from;
        }
        cut->runs = runs;
        return 0;
}

int text_ours(struct budget *budget, const char *bytes, size_t count, struct value *ret_value)
{
        int r = budget_charge_bytes(budget, count);

        if (r)
                return error_pass(r);
        if (value_string(budget->arena, bytes, count, TEXT_OURS, ret_value))
                return error_pass(budget_no_memory(budget));
        return 0;
}

/* ---- searching ---- */

int text_length(struct budget *budget, const struct text *text, uint32_t *ret_length)
{
        uint32_t length = 0, code;
        int r = budget_charge_bytes(budget, (uint64_t)text->count * 2);

        for (uint32_t at = 0; !r && at < text->count; length++)
                at += (unsigned char)text->bytes[at] < 0x80
                              ? 1
                              : unicode_next(text->bytes + at, text->count - at, &code);
        *ret_length = length;
        return error_pass(r);
}

uint32_t text_place(const struct text *text, int64_t index)
{
        uint32_t at = 0, code;

        for (; index > 0 && at < text->count; index--)
                at += (unsigned char)text->bytes[at] < 0x80
                              ? 1
                              : unicode_next(text->bytes + at, text->count - at, &code);
        return at;
}

uint32_t text_find(const struct text *text, const struct text *wanted, uint32_t from, uint32_t end)
{
        const char *found;

        if (from > end || wanted->count > end - from)
                return TEXT_NOWHERE;
        if (!wanted->count)
                return from;
        found = memmem(text->bytes + from, end - from, wanted->bytes, wanted->count);
        return found ? (uint32_t)(found - text->bytes) : TEXT_NOWHERE;
}

/* Takes time O(text * wanted) at worst; callers charge for that. */
uint32_t text_find_last(const struct text *text, const struct text *wanted, uint32_t from,
                        uint32_t end)
{
        if (from > end || wanted->count > end - from)
                return TEXT_NOWHERE;
        for (uint32_t at = end - wanted->count;; at--) {
                if (!memcmp(text->bytes + at, wanted->bytes, wanted->count))
                        return at;
                if (at == from)
                        return TEXT_NOWHERE;
        }
}

bool text_same(const struct text *a, const struct text *b)
{
        return a == b || (a->count == b->count && !memcmp(a->bytes, b->bytes, a->count));
}

bool text_is(const struct text *text, const char *name)
{
        return text->count == strlen(name) && !memcmp(text->bytes, name, text->count);
}
