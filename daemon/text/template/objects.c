#include "daemon/text/template/objects.h"

#include "daemon/text/template/budget.h"

int undefined_make(struct budget *budget, const struct text *name, const char *owner,
                   struct value *ret_value)
{
        struct undefined_reason *reason;
        int r;

        reason = budget_take(budget, sizeof(*reason), &r);
        if (!reason)
                return error_pass(r);
        *reason = (struct undefined_reason){ name, owner };
        *ret_value = (struct value){ .kind = VALUE_UNDEFINED, .reason = reason };
        return 0;
}

int undefined_fail(struct budget *budget, struct value value)
{
        const struct undefined_reason *reason = value.reason;

        if (!reason)
                return error_raise(budget_fail(budget, "a value is undefined"));
        if (!reason->owner)
                return error_raise(
                        budget_fail(budget, "'%s' is undefined", text_shown(reason->name).text));
        return error_raise(budget_fail(budget, "a %s has no attribute '%s'", reason->owner,
                                       text_shown(reason->name).text));
}
