#include "daemon/constraint/matcher-objects.h"

#define COUNT 0u /* the word of a register that has the number of members */

static bool has(const uint32_t *seen, uint32_t member)
{
        return seen[1 + member / 32] >> (member % 32) & 1;
}

static const struct grammar_member *member_of(const struct grammar *grammar,
                                              const struct grammar_object *object, uint32_t member)
{
        return &grammar->members[object->members + member];
}

uint32_t object_key(const struct grammar *grammar, const struct grammar_object *object,
                    const uint32_t *seen, uint32_t member)
{
        const struct grammar_member *of = member_of(grammar, object, member);

        return seen[COUNT] ? of->next_key : of->first_key;
}

/* Members that stand for many keys are last, and come in any order. */
static uint32_t first_repeating(const struct grammar *grammar, const struct grammar_object *object)
{
        uint32_t at = object->member_count;

        while (at > 0 && member_of(grammar, object, at - 1)->repeats)
                at--;
        return at;
}

/* The first member that may still come, if they come in their order. */
static uint32_t first_open(const struct grammar *grammar, const struct grammar_object *object,
                           const uint32_t *seen)
{
        if (object->any_order)
                return 0;
        for (uint32_t i = object->member_count; i-- > 0;)
                if (has(seen, i))
                        return member_of(grammar, object, i)->repeats
                                       ? first_repeating(grammar, object)
                                       : i + 1;
        return 0;
}

/* Whether a member must come: required, or needed by `taken` or by one that is there. */
static bool must_come(const struct grammar *grammar, const struct grammar_object *object,
                      const uint32_t *seen, uint32_t member, uint32_t taken)
{
        const uint32_t *needs = grammar->needs + object->needs;

        if (has(seen, member) || member == taken)
                return false;
        if (member_of(grammar, object, member)->required)
                return true;
        for (uint32_t i = 0; i < object->need_count; i++)
                if (needs[2 * i + 1] == member &&
                    (needs[2 * i] == taken || has(seen, needs[2 * i])))
                        return true;
        return false;
}

/*
 * Whether the object can be completed if `taken` is its next member (SYMBOL_NONE: as it is, without
 * any more).  Members before `from` can not come any more.  Members that must come may need others;
 * the readers of schemas give needs with all that follow from them.
 */
static bool can_complete(const struct grammar *grammar, const struct grammar_object *object,
                         const uint32_t *seen, uint32_t taken, uint32_t from)
{
        uint32_t must = 0, may = 0, count = seen[COUNT] + (taken != SYMBOL_NONE);
        bool repeats = false;

        for (uint32_t i = 0; i < object->member_count; i++) {
                bool comes = must_come(grammar, object, seen, i, taken);
                bool can = i >= from && member_of(grammar, object, i)->value != SYMBOL_NONE;

                if (comes && !can)
                        return false;
                must += comes;
                if (can && member_of(grammar, object, i)->repeats)
                        repeats = true;
                else if (can && !has(seen, i) && i != taken)
                        may++;
        }
        if (object->max != REGEX_FOREVER && count + must > object->max)
                return false;
        return repeats || count + may >= object->min;
}

bool object_may_take(const struct grammar *grammar, const struct grammar_object *object,
                     const uint32_t *seen, uint32_t member)
{
        const struct grammar_member *of = member_of(grammar, object, member);
        uint32_t from = first_open(grammar, object, seen);

        if (of->value == SYMBOL_NONE || member < from || (has(seen, member) && !of->repeats))
                return false;
        if (object->max != REGEX_FOREVER && seen[COUNT] >= object->max)
                return false;
        if (!object->any_order)
                from = of->repeats ? first_repeating(grammar, object) : member + 1;
        if (object->need_count == 0 && object->max == REGEX_FOREVER && object->min == 0) {
                for (uint32_t i = 0; i < from; i++)
                        if (i != member && member_of(grammar, object, i)->required && !has(seen, i))
                                return false;
                return true;
        }
        return can_complete(grammar, object, seen, member, from);
}

bool object_may_end(const struct grammar *grammar, const struct grammar_object *object,
                    const uint32_t *seen)
{
        if (seen[COUNT] < object->min)
                return false;
        for (uint32_t i = 0; i < object->member_count; i++)
                if (must_come(grammar, object, seen, i, SYMBOL_NONE))
                        return false;
        return true;
}
