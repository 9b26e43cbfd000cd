/*
 * Finds a builtin by its name, and calls it with its arguments in their slots.
 */
#include "daemon/text/template/builtins.h"

#include <string.h>

#include "daemon/text/template/budget.h"

uint32_t builtin_find(const struct builtins *builtins, const char *name, uint32_t count)
{
        for (uint32_t i = 0; i < builtins->count; i++)
                if (count && *builtins->rows[i].name == *name &&
                    strlen(builtins->rows[i].name) == count &&
                    !memcmp(builtins->rows[i].name, name, count))
                        return i;
        return NO_BUILTIN;
}

/* The index of a parameter in "a b c"; NO_BUILTIN: there is none of that name. */
static uint32_t slot_of(const char *parameters, const struct text *name)
{
        uint32_t slot = 0;

        for (const char *at = parameters; *at; slot++) {
                size_t count = strcspn(at, " ");

                if (count == name->count && !memcmp(at, name->bytes, count))
                        return slot;
                at += count + (at[count] == ' ');
        }
        return NO_BUILTIN;
}

static uint32_t slots_in(const char *parameters)
{
        uint32_t slots = *parameters && *parameters != '*';

        for (const char *at = parameters; *at; at++)
                slots += *at == ' ' && at[1] != '*';
        return slots;
}

static int fill_slots(struct budget *budget, const struct builtins *builtins,
                      const struct builtin *row, struct call *call)
{
        const struct arguments *all = &call->all;
        uint32_t positional = all->count - named_count(all), slots = slots_in(row->parameters);
        bool open = strchr(row->parameters, '*');

        for (uint32_t i = 0; i < positional; i++) {
                if (i < slots)
                        call->slots[i] = all->values[i];
                else if (!open)
                        return error_raise(budget_fail(budget, "%s '%s' takes %u arguments, not %u",
                                                       builtins->what, row->name, slots,
                                                       positional));
        }
        for (uint32_t i = positional; i < all->count; i++) {
                const struct text *name = all->names->items[i - positional].text;
                uint32_t slot = slot_of(row->parameters, name);

                if (slot < slots && is_missing(call->slots[slot]))
                        call->slots[slot] = all->values[i];
                else if (!open)
                        return error_raise(budget_fail(budget, "%s '%s' takes no argument '%s'",
                                                       builtins->what, row->name,
                                                       text_shown(name).text));
        }
        return 0;
}

int builtin_call(struct budget *budget, const struct builtins *builtins, uint32_t number,
                 struct value self, const struct arguments *arguments, struct value *ret_value)
{
        const struct builtin *row = &builtins->rows[number];
        struct call call = { .all = *arguments };
        int r;

        if (!row->work)
                return error_raise(
                        budget_fail(budget, "%s '%s' is not supported", builtins->what, row->name));
        for (uint32_t i = 0; i < SLOTS; i++)
                call.slots[i].kind = MISSING;
        if ((r = fill_slots(budget, builtins, row, &call)))
                return error_pass(r);
        for (uint32_t i = 0; i < row->least; i++)
                if (is_missing(call.slots[i]))
                        return error_raise(budget_fail(budget, "%s '%s' is missing an argument",
                                                       builtins->what, row->name));
        return error_pass(row->work(budget, self, &call, ret_value));
}
