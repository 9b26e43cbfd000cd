/*
 * The filter from_json, by which some templates read the arguments of calls.
 */
#include "daemon/text/template/filters.h"

#include <errno.h>

#include "daemon/text/template/budget.h"
#include "daemon/text/template/text.h"
#include "json/reader.h"

#define NODES_MAX 65536u

/* TEXT_OURS only if all of the text is. */
static enum text_origin origin_of(const struct text *text)
{
        return text->run_count == 1 && text->runs[0].origin == TEXT_OURS ? TEXT_OURS : TEXT_GIVEN;
}

int filter_from_json(struct budget *budget, struct value self, const struct call *call,
                     struct value *ret_value)
{
        struct json_document *json;
        char why[128];
        int r;

        (void)call;
        if (self.kind != VALUE_STRING)
                return error_raise(
                        budget_fail(budget, "'from_json' wants a text, not %s", value_type(self)));
        /* A byte may become a value. */
        r = budget_charge(budget, self.text->count);
        if (r)
                return error_pass(r);
        r = json_parse(self.text->bytes, self.text->count, NODES_MAX, &json, why, sizeof(why));
        if (r == -EINVAL)
                return error_raise(budget_fail(budget, "'from_json' cannot read this: %s", why));
        if (r)
                return error_pass(r);
        r = value_from_json(budget->arena, json, 0, origin_of(self.text), ret_value);
        json_free(json);
        if (r == -ENOMEM)
                return error_raise(budget_no_memory(budget));
        if (r)
                return error_raise(budget_fail(budget, "'from_json' cannot read such a value"));
        return 0;
}
