/* Makes rows: what the grammar has read where a lexeme ends, and what it expects there. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/matcher-objects.h"
#include "daemon/constraint/matcher-state.h"

static uint32_t *register_of(const struct matcher *matcher, uint32_t index)
{
        return matcher->registers + (size_t)index * matcher->words;
}

/* The register with one member more.  Registers of one row that are equal are one. */
static uint32_t register_with(struct matcher *matcher, uint32_t from, uint32_t member)
{
        uint32_t first = matcher->positions[matcher->position_count - 1].registers_end;
        uint32_t *made;

        if (matcher->register_count == matcher->registers_max) {
                matcher_spend(matcher, "objects with too many members are open");
                return from;
        }
        made = register_of(matcher, matcher->register_count);
        memcpy(made, register_of(matcher, from), matcher->words * sizeof(*made));
        made[0]++;
        made[1 + member / 32] |= 1u << (member % 32);
        for (uint32_t i = first; i < matcher->register_count; i++)
                if (memcmp(register_of(matcher, i), made, matcher->words * sizeof(*made)) == 0)
                        return i;
        return matcher->register_count++;
}

static uint32_t element_of(const struct matcher *matcher, const struct grammar_list *list,
                           uint32_t at)
{
        return at < list->prefix_count ? matcher->grammar->symbols[list->prefix + at] : list->rest;
}

/* The count of elements, no larger than it matters. */
static uint32_t next_count(const struct grammar_list *list, uint32_t count)
{
        uint32_t most = list->min > list->prefix_count ? list->min : list->prefix_count;

        if (list->max != REGEX_FOREVER || count < most || count == 0)
                return count + 1;
        return count;
}

/* The symbol that a list wants next; NONE: it can only end. */
static uint32_t list_wants(const struct matcher *matcher, const struct grammar_list *list,
                           const struct item *item)
{
        if (item->phase == 0 && item->value >= list->max)
                return SYMBOL_NONE;
        if (item->phase == 0 && item->value > 0 && list->separator != SYMBOL_NONE &&
            element_of(matcher, list, item->value) != SYMBOL_NONE)
                return list->separator;
        return element_of(matcher, list, item->value);
}

static bool object_takes(struct matcher *matcher, const struct grammar_object *object,
                         uint32_t symbol, struct item *item)
{
        const struct grammar *grammar = matcher->grammar;

        if (item->phase) {
                if (grammar->members[object->members + item->phase - 1].value != symbol)
                        return false;
                item->phase = 0;
                return true;
        }
        for (uint32_t i = 0; i < object->member_count && !(symbol & SYMBOL_RULE); i++) {
                const uint32_t *seen = register_of(matcher, item->value);

                if (object_key(grammar, object, seen, i) != symbol ||
                    !object_may_take(grammar, object, seen, i))
                        continue;
                item->value = register_with(matcher, item->value, i);
                item->phase = i + 1;
                return true;
        }
        return false;
}

/* Moves the item over the symbol, if it wants that. */
static bool takes(struct matcher *matcher, uint32_t symbol, struct item *item)
{
        const struct grammar *grammar = matcher->grammar;
        const struct grammar_list *list;

        if (item->dot & DOT_OBJECT)
                return object_takes(matcher, &grammar->objects[item->dot & DOT_INDEX], symbol,
                                    item);
        if (!(item->dot & DOT_LIST)) {
                if (grammar->symbols[item->dot] != symbol)
                        return false;
                item->dot++;
                return true;
        }
        list = &grammar->lists[item->dot & DOT_INDEX];
        if (list_wants(matcher, list, item) != symbol)
                return false;
        if (item->phase == 0 && item->value > 0 && list->separator != SYMBOL_NONE) {
                item->phase = 1;
        } else {
                item->phase = 0;
                item->value = next_count(list, item->value);
        }
        return true;
}

static bool same_item(const struct item *one, const struct item *other)
{
        return one->dot == other->dot && one->phase == other->phase &&
               one->origin == other->origin && one->value == other->value;
}

static void add(struct matcher *matcher, struct item item)
{
        uint32_t hash = item.dot * 0x9e3779b1u ^ item.origin * 0x85ebca6bu ^
                        item.value * 0xc2b2ae35u ^ item.phase * 0x27d4eb2fu;
        struct row *row = &matcher->rows[matcher->row];
        uint32_t depth;

        for (hash ^= hash >> 15;; hash++) {
                struct seen_item *seen = &matcher->seen[hash & matcher->seen_mask];

                if (seen->stamp != matcher->stamp) {
                        *seen = (struct seen_item){ matcher->stamp, matcher->item_count };
                        break;
                }
                if (same_item(&matcher->items[seen->item], &item))
                        return;
        }
        if (matcher->item_count - row->items == matcher->limits.row_items) {
                matcher_spend(matcher, "too many rules of the grammar match at one place");
                return;
        }
        if (matcher->item_count == matcher->limits.items) {
                matcher_spend(matcher, "the text has too many rules of the grammar open");
                return;
        }
        depth = item.origin == matcher->row ? 0 : matcher->rows[item.origin].depth + 1;
        if (row->depth < depth)
                row->depth = depth;
        matcher->items[matcher->item_count++] = item;
        row->items_end = matcher->item_count;
}

static void predict(struct matcher *matcher, uint32_t rule)
{
        const struct grammar *grammar = matcher->grammar;
        const struct grammar_rule *of = &grammar->rules[rule];
        struct item item = { .origin = matcher->row };

        if (matcher->rule_stamps[rule] == matcher->stamp)
                return;
        matcher->rule_stamps[rule] = matcher->stamp;
        switch (of->form) {
        case RULE_OPEN:
                break;
        case RULE_ALTERNATIVES:
                for (uint32_t at = of->first; at != SYMBOL_NONE; at = grammar->sequences[at].next) {
                        item.dot = grammar->sequences[at].symbols;
                        add(matcher, item);
                }
                break;
        case RULE_LIST:
                item.dot = DOT_LIST | of->first;
                add(matcher, item);
                break;
        case RULE_OBJECT:
                item.dot = DOT_OBJECT | of->first;
                add(matcher, item);
                break;
        }
}

static void expect(struct matcher *matcher, uint32_t lexeme)
{
        if (matcher->lexeme_stamps[lexeme] == matcher->stamp)
                return;
        matcher->lexeme_stamps[lexeme] = matcher->stamp;
        matcher->expected[matcher->expected_count++] = lexeme;
}

/* The item wants this symbol next.  What may be empty is read as empty at once. */
static void want(struct matcher *matcher, const struct item *item, uint32_t symbol)
{
        const struct grammar *grammar = matcher->grammar;
        struct item behind = *item;
        bool empty;

        if (symbol & SYMBOL_RULE) {
                empty = grammar->rules[symbol & ~SYMBOL_RULE].nullable;
                predict(matcher, symbol & ~SYMBOL_RULE);
        } else {
                empty = regex_nullable(grammar->pool, grammar->lexer.lexemes[symbol].term);
                expect(matcher, symbol);
        }
        if (!empty || ((item->dot & DOT_LIST) && grammar->lists[item->dot & DOT_INDEX].skips_empty))
                return;
        if (takes(matcher, symbol, &behind))
                add(matcher, behind);
}

/*
 * All that waited for the rule where it began goes on.  A rule that began in this row is empty, and
 * want() has seen to it.
 */
static void complete(struct matcher *matcher, uint32_t rule, uint32_t origin)
{
        const struct row *row = &matcher->rows[origin];

        if (origin == matcher->row)
                return;
        if (rule == matcher->grammar->root && origin == 0)
                matcher->rows[matcher->row].ends = true;
        for (uint32_t i = row->items; i < row->items_end && !matcher->why; i++) {
                struct item item = matcher->items[i];

                if (takes(matcher, rule, &item))
                        add(matcher, item);
        }
}

static void expand_object(struct matcher *matcher, const struct item *item)
{
        const struct grammar *grammar = matcher->grammar;
        const struct grammar_object *object = &grammar->objects[item->dot & DOT_INDEX];
        const uint32_t *seen = register_of(matcher, item->value);

        if (item->phase) {
                want(matcher, item, grammar->members[object->members + item->phase - 1].value);
                return;
        }
        if (object_may_end(grammar, object, seen))
                complete(matcher, object->rule, item->origin);
        regex_burn(grammar->pool, object->member_count / 8);
        for (uint32_t i = 0; i < object->member_count; i++)
                if (object_may_take(grammar, object, seen, i))
                        expect(matcher, object_key(grammar, object, seen, i));
}

static void expand(struct matcher *matcher, struct item item)
{
        const struct grammar *grammar = matcher->grammar;

        if (item.dot & DOT_OBJECT) {
                expand_object(matcher, &item);
        } else if (item.dot & DOT_LIST) {
                const struct grammar_list *list = &grammar->lists[item.dot & DOT_INDEX];
                uint32_t symbol = list_wants(matcher, list, &item);

                if (item.phase == 0 && item.value >= list->min)
                        complete(matcher, list->rule, item.origin);
                if (symbol != SYMBOL_NONE)
                        want(matcher, &item, symbol);
        } else if (grammar->symbols[item.dot] & SYMBOL_END) {
                complete(matcher, SYMBOL_RULE | (grammar->symbols[item.dot] & ~SYMBOL_END),
                         item.origin);
        } else {
                want(matcher, &item, grammar->symbols[item.dot]);
        }
}

static int compare(const void *one, const void *other)
{
        uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;

        return (a > b) - (a < b);
}

static enum push add_thread(struct matcher *matcher, uint32_t row, uint32_t state)
{
        if (state == LEXER_DEAD)
                return PUSH_DEAD;
        if (state == LEXER_SPENT)
                return matcher_spend(matcher, "the lexemes of the grammar have too many states");
        if (matcher->thread_count == matcher->threads_max)
                return matcher_spend(matcher, "too many lexemes are open at one place");
        matcher->threads[matcher->thread_count++] = (struct thread){ row, state };
        return PUSH_FINE;
}

static void open_row(struct matcher *matcher)
{
        if (++matcher->stamp == 0) { /* old stamps could look new */
                memset(matcher->seen, 0, (matcher->seen_mask + 1ul) * sizeof(*matcher->seen));
                memset(matcher->lexeme_stamps, 0,
                       matcher->grammar->lexer.lexeme_count * sizeof(*matcher->lexeme_stamps));
                memset(matcher->rule_stamps, 0,
                       matcher->grammar->rule_count * sizeof(*matcher->rule_stamps));
                matcher->stamp = 1;
        }
        matcher->expected_count = 0;
        matcher->row = matcher->row_count++;
        matcher->rows[matcher->row] =
                (struct row){ matcher->item_count, matcher->item_count, 0, 0 };
}

/* Completes the row whose first items are there, and begins to read what it expects. */
static enum push close_row(struct matcher *matcher)
{
        struct row *row = &matcher->rows[matcher->row];

        for (uint32_t i = row->items; i < row->items_end && !matcher->why; i++)
                expand(matcher, matcher->items[i]);
        if (!regex_burn(matcher->grammar->pool, row->items_end - row->items))
                matcher_spend(matcher, "a token takes more work than the limit");
        if (matcher->why)
                return PUSH_SPENT;
        qsort(matcher->expected, matcher->expected_count, sizeof(*matcher->expected), compare);
        return add_thread(
                matcher, matcher->row,
                lexer_start(&matcher->grammar->lexer, matcher->expected, matcher->expected_count));
}

/* Lexemes that have ended, and cannot be longer, are read no more. */
static void drop_ended(struct matcher *matcher, uint32_t from)
{
        uint32_t kept = from;

        for (uint32_t i = from; i < matcher->thread_count; i++)
                if (lexer_goes_on(&matcher->grammar->lexer, matcher->threads[i].state))
                        matcher->threads[kept++] = matcher->threads[i];
        matcher->thread_count = kept;
}

enum push matcher_push_first(struct matcher *matcher)
{
        enum push pushed;

        assert(matcher->position_count == 0);
        matcher->positions[matcher->position_count++] = (struct position){ 0 };
        memset(register_of(matcher, 0), 0, matcher->words * sizeof(*matcher->registers));
        matcher->register_count = 1;
        open_row(matcher);
        predict(matcher, matcher->grammar->root & ~SYMBOL_RULE);
        pushed = close_row(matcher);
        drop_ended(matcher, 0);
        matcher->rows[0].ends =
                matcher->grammar->rules[matcher->grammar->root & ~SYMBOL_RULE].nullable;
        matcher->positions[0] = (struct position){ matcher->thread_count, matcher->row_count,
                                                   matcher->register_count, 0 };
        return pushed;
}

/* The lexemes that end with this byte, in threads from `from`, move the items that wanted them. */
static enum push end_lexemes(struct matcher *matcher, uint32_t from)
{
        const struct lexer *lexer = &matcher->grammar->lexer;
        uint32_t end = matcher->thread_count;

        if (matcher->row_count == matcher->rows_max)
                return matcher_spend(matcher, "the text has too many lexemes");
        open_row(matcher);
        for (uint32_t i = from; i < end; i++) {
                const struct lexer_state *state = &lexer->states[matcher->threads[i].state];
                const struct row *row = &matcher->rows[matcher->threads[i].row];

                for (uint32_t j = 0; j < state->accept_count; j++) {
                        uint32_t lexeme = lexer->accepts[state->accept + j];

                        for (uint32_t k = row->items; k < row->items_end && !matcher->why; k++) {
                                struct item item = matcher->items[k];

                                if (takes(matcher, lexeme, &item))
                                        add(matcher, item);
                        }
                }
        }
        if (matcher->why)
                return PUSH_SPENT;
        if (matcher->rows[matcher->row].depth > matcher->limits.depth) {
                matcher->item_count = matcher->rows[matcher->row].items;
                matcher->row_count--;
                matcher->row = ROW_NONE;
                return PUSH_DEAD;
        }
        return close_row(matcher);
}

enum push matcher_resume(struct matcher *matcher, const struct thread *threads, uint32_t count)
{
        if (matcher->position_count == matcher->positions_max)
                return matcher_spend(matcher, "the text is too long for its matcher");
        for (uint32_t i = 0; i < count; i++)
                if (add_thread(matcher, threads[i].row, threads[i].state) == PUSH_SPENT)
                        return PUSH_SPENT;
        matcher->positions[matcher->position_count++] =
                (struct position){ matcher->thread_count, matcher->row_count,
                                   matcher->register_count, ROW_NONE };
        return PUSH_FINE;
}

enum push matcher_push(struct matcher *matcher, uint8_t byte)
{
        struct lexer *lexer = &matcher->grammar->lexer;
        uint32_t last = matcher->position_count - 1, begin = matcher->thread_count;
        bool ends = false;

        if (matcher->position_count == matcher->positions_max)
                return matcher_spend(matcher, "the text is too long for its matcher");
        for (uint32_t i = matcher_first_thread(matcher, last); i < begin; i++) {
                struct thread thread = matcher->threads[i];
                uint32_t state = lexer_next(lexer, thread.state, byte);

                if (add_thread(matcher, thread.row, state) == PUSH_SPENT)
                        return PUSH_SPENT;
                ends |= state != LEXER_DEAD && lexer->states[state].accept_count > 0;
        }
        matcher->row = ROW_NONE;
        if (ends) {
                if (end_lexemes(matcher, begin) == PUSH_SPENT)
                        return PUSH_SPENT;
                drop_ended(matcher, begin);
        }
        if (matcher->thread_count == begin &&
            (matcher->row == ROW_NONE || !matcher->rows[matcher->row].ends)) {
                matcher_cut(matcher, last);
                return PUSH_DEAD;
        }
        matcher->positions[matcher->position_count++] =
                (struct position){ matcher->thread_count, matcher->row_count,
                                   matcher->register_count, matcher->row };
        return PUSH_FINE;
}
