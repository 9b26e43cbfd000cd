#include "daemon/text/template/case.h"

#include "daemon/text/template/budget.h"
#include "daemon/text/template/text.h"

static const struct case_pair *find_pair(uint32_t code, enum letter_case wanted)
{
        const struct case_pair *pairs = wanted == CASE_LOWER   ? case_lowers
                                        : wanted == CASE_UPPER ? case_uppers
                                                               : case_titles;
        uint32_t low = 0, high = wanted == CASE_LOWER   ? case_lower_count
                                 : wanted == CASE_UPPER ? case_upper_count
                                                        : case_title_count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (pairs[middle].code == code)
                        return &pairs[middle];
                if (pairs[middle].code < code)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

static int add_other(struct budget *budget, struct builder *to, const struct case_pair *pair,
                     enum text_origin origin)
{
        int r = 0;

        for (unsigned i = 0; !r && i < 3 && pair->to[i]; i++)
                r = text_add_code(budget, to, pair->to[i], origin);
        return error_pass(r);
}

/* Characters that do not change are copied together. */
int case_add(struct budget *budget, struct builder *to, const struct text *text, uint32_t from,
             uint32_t end, enum letter_case wanted)
{
        uint32_t same = from, code;
        int r = budget_charge(budget, (end - from) / 16);

        for (uint32_t at = from; !r && at < end;) {
                unsigned n = unicode_next(text->bytes + at, end - at, &code);
                const struct case_pair *pair = find_pair(code, wanted);

                if (pair) {
                        r = text_add_slice(budget, to, text, same, at);
                        if (!r)
                                r = add_other(budget, to, pair, text_origin_at(text, at));
                        same = at + n;
                }
                at += n;
        }
        return error_pass(r ? r : text_add_slice(budget, to, text, same, end));
}

bool case_is_lower(uint32_t code)
{
        return find_pair(code, CASE_UPPER);
}

bool case_is_upper(uint32_t code)
{
        return find_pair(code, CASE_LOWER);
}

bool case_is_hidden(uint32_t code)
{
        uint32_t low = 0, high = case_hidden_count;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (case_hidden[middle].last < code)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low < case_hidden_count && case_hidden[low].first <= code;
}
