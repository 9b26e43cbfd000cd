/*
 * Methods that strip and split strings.
 */
#include "daemon/text/template/blank.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/methods.h"
#include "daemon/text/template/strings.h"
#include "daemon/text/template/text.h"

static int strip_with(struct budget *budget, struct value self, const struct call *call, bool left,
                      bool right, struct value *ret_value)
{
        const struct text *characters;
        int r = string_argument(budget, call->slots[0], &characters);

        return error_pass(r ? r
                            : string_strip(budget, self.text, characters, left, right, ret_value));
}

int text_strip(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        return error_pass(strip_with(budget, self, call, true, true, ret_value));
}

int text_lstrip(struct budget *budget, struct value self, const struct call *call,
                struct value *ret_value)
{
        return error_pass(strip_with(budget, self, call, true, false, ret_value));
}

int text_rstrip(struct budget *budget, struct value self, const struct call *call,
                struct value *ret_value)
{
        return error_pass(strip_with(budget, self, call, false, true, ret_value));
}

/* A text that is being split, at blanks if separator is NULL; [from, end) is not split yet. */
struct splitting {
        struct budget *budget;
        const struct text *text, *separator;
        uint32_t from, end;
        struct value *parts;
        uint32_t count, capacity;
};

static int add_part(struct splitting *s, uint32_t from, uint32_t end)
{
        int r = budget_charge(s->budget, 1);

        if (!r)
                r = budget_grow(s->budget, &s->parts, s->count, &s->capacity, sizeof(*s->parts));
        if (!r)
                r = text_slice(s->budget, s->text, from, end, &s->parts[s->count]);
        s->count += !r;
        return error_pass(r);
}

static int split_separator(struct splitting *s, int64_t most)
{
        uint32_t found;
        int r = 0;

        for (; !r && most; most -= most > 0) {
                found = text_find(s->text, s->separator, s->from, s->end);
                if (found == TEXT_NOWHERE)
                        break;
                r = add_part(s, s->from, found);
                s->from = found + s->separator->count;
        }
        return error_pass(r ? r : add_part(s, s->from, s->end));
}

static int split_separator_back(struct splitting *s, int64_t most)
{
        uint32_t found;
        int r = 0;

        for (; !r && most; most -= most > 0) {
                found = text_find_last(s->text, s->separator, 0, s->end);
                if (found == TEXT_NOWHERE)
                        break;
                r = add_part(s, found + s->separator->count, s->end);
                s->end = found;
        }
        return error_pass(r ? r : add_part(s, 0, s->end));
}

static uint32_t word_end(const struct text *text, uint32_t at)
{
        uint32_t code;

        while (at < text->count) {
                unsigned n = unicode_next(text->bytes + at, text->count - at, &code);

                if (blank_is(code))
                        break;
                at += n;
        }
        return at;
}

static int split_blanks(struct splitting *s, int64_t most)
{
        const struct text *text = s->text;
        uint32_t at = blank_leading(text->bytes, text->count), end;
        int r = 0;

        for (; !r && most && at<text->count; most -= most> 0) {
                end = word_end(text, at);
                r = add_part(s, at, end);
                at = end + blank_leading(text->bytes + end, text->count - end);
        }
        return error_pass(r || at == text->count ? r : add_part(s, at, text->count));
}

static uint32_t word_start(const struct text *text, uint32_t end)
{
        uint32_t code;

        while (end) {
                uint32_t start = text_before(text->bytes, end);

                unicode_next(text->bytes + start, end - start, &code);
                if (blank_is(code))
                        break;
                end = start;
        }
        return end;
}

static int split_blanks_back(struct splitting *s, int64_t most)
{
        const struct text *text = s->text;
        uint32_t end = text->count - blank_trailing(text->bytes, text->count), start;
        int r = 0;

        for (; !r && most && end; most -= most > 0) {
                start = word_start(text, end);
                r = add_part(s, start, end);
                end = start - blank_trailing(text->bytes, start);
        }
        return error_pass(r || !end ? r : add_part(s, 0, end));
}

static int split_with(struct budget *budget, struct value self, const struct call *call, bool back,
                      struct value *ret_value)
{
        struct splitting s = { .budget = budget, .text = self.text, .end = self.text->count };
        int64_t most;
        int r = string_argument(budget, call->slots[0], &s.separator);

        if (!r)
                r = integer_argument(budget, call->slots[1], -1, &most);
        if (!r && s.separator && !s.separator->count)
                r = error_raise(budget_fail(budget, "the separator of a split is empty"));
        if (!r)
                r = budget_charge(budget, (uint64_t)self.text->count *
                                                  (back && s.separator ? s.separator->count : 1) /
                                                  16);
        if (!r)
                r = s.separator ? (back ? split_separator_back : split_separator)(&s, most)
                                : (back ? split_blanks_back : split_blanks)(&s, most);
        if (!r)
                r = budget_list(budget, s.count, LIST_LIST, ret_value);
        for (uint32_t i = 0; !r && i < s.count; i++)
                r = budget_list_add(budget, ret_value, s.parts[back ? s.count - 1 - i : i]);
        return error_pass(r);
}

int text_split(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        return error_pass(split_with(budget, self, call, false, ret_value));
}

int text_rsplit(struct budget *budget, struct value self, const struct call *call,
                struct value *ret_value)
{
        return error_pass(split_with(budget, self, call, true, ret_value));
}

int text_splitlines(struct budget *budget, struct value self, const struct call *call,
                    struct value *ret_value)
{
        return error_pass(
                string_lines(budget, self.text, truth_argument(call->slots[0], false), ret_value));
}

static int partition_with(struct budget *budget, struct value self, const struct call *call,
                          bool back, struct value *ret_value)
{
        const struct text *text = self.text, *separator;
        uint32_t found, ends[3], from = 0;
        struct value part;
        int r = string_argument(budget, call->slots[0], &separator);

        if (!r && (!separator || !separator->count))
                r = error_raise(budget_fail(budget, "the separator of a split is empty"));
        if (!r)
                r = budget_charge(budget,
                                  (uint64_t)text->count * (back ? separator->count : 1) / 16);
        if (!r)
                r = budget_list(budget, 3, LIST_TUPLE, ret_value);
        if (r)
                return error_pass(r);
        found = (back ? text_find_last : text_find)(text, separator, 0, text->count);
        ends[0] = found != TEXT_NOWHERE ? found : back ? 0 : text->count;
        ends[1] = ends[0] + (found != TEXT_NOWHERE ? separator->count : 0);
        ends[2] = text->count;
        for (unsigned i = 0; !r && i < 3; i++) {
                r = text_slice(budget, text, from, ends[i], &part);
                if (!r)
                        r = budget_list_add(budget, ret_value, part);
                from = ends[i];
        }
        return error_pass(r);
}

int text_partition(struct budget *budget, struct value self, const struct call *call,
                   struct value *ret_value)
{
        return error_pass(partition_with(budget, self, call, false, ret_value));
}

int text_rpartition(struct budget *budget, struct value self, const struct call *call,
                    struct value *ret_value)
{
        return error_pass(partition_with(budget, self, call, true, ret_value));
}
