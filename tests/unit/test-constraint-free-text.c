/*
 * Masks of random structures, in every state of random walks, compared with those of a recogniser
 * that looks for marks in the text itself.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/constraint/structure.h"
#include "tests/unit/mask-walk.h"

#define STRUCTURES 100
#define PARTS_MAX  96

/* A structure and the same language as spans, which are made side by side. */
struct made {
        struct structure parts[PARTS_MAX];
        int part_count;
        char texts[PARTS_MAX][4];
        int text_count;
        char marks[PARTS_MAX][4];
        int mark_count;
        struct span_grammar spans;
        char source[4096];
};

static int new_node(struct made *made, enum span_kind kind)
{
        assert_true(made->spans.node_count < SPAN_NODES);
        made->spans.nodes[made->spans.node_count] = (struct span_node){ .kind = kind };
        return made->spans.node_count++;
}

static int spans_of(struct made *made, enum span_kind kind, int first, int second)
{
        int node = new_node(made, kind);

        made->spans.nodes[node].children[0] = first;
        made->spans.nodes[node].children[1] = second;
        made->spans.nodes[node].count = second < 0 ? 1 : 2;
        return node;
}

static int repeat(struct made *made, int child, int min, int max)
{
        int node = spans_of(made, SPAN_REPEAT, child, -1);

        made->spans.nodes[node].min = min;
        made->spans.nodes[node].max = max;
        return node;
}

static const char *random_text(struct made *made)
{
        char *text = made->texts[made->text_count];
        int count = 1 + random_below(3);

        assert_true(made->text_count++ < PARTS_MAX);
        for (int i = 0; i < count; i++)
                text[i] = "abc\""[random_below(3)];
        return text;
}

static int spell(struct made *made, const char *text)
{
        int node = new_node(made, SPAN_SEQUENCE);

        for (int i = 0; text[i]; i++) {
                int set = new_node(made, SPAN_SET);

                made->spans.nodes[set].bytes[0] = text[i];
                made->spans.nodes[node].children[made->spans.nodes[node].count++] = set;
        }
        return node;
}

/* A pool of so many structures that lie side by side. */
static struct structure *take(struct made *made, int count)
{
        struct structure *parts = &made->parts[made->part_count];

        made->part_count += count;
        assert_true(made->part_count <= PARTS_MAX);
        memset(parts, 0, count * sizeof(*parts));
        return parts;
}

static void set_literal(struct structure *part, const char *text)
{
        *part = (struct structure){ .kind = STRUCTURE_LITERAL, .text = { text, strlen(text) } };
}

static int random_part(struct made *made, struct structure *part, int depth, bool is_last);

static int random_literal(struct made *made, struct structure *part)
{
        set_literal(part, random_text(made));
        return spell(made, part->text.bytes);
}

static int random_regex(struct made *made, struct structure *part)
{
        static const struct {
                const char *text, *bytes;
                int min, max;
        } expressions[] = { { "[ab]*", "ab", 0, SPAN_NO_MAX },
                            { "[bc]", "bc", 1, 1 },
                            { "[a\"]{1,2}", "a\"", 1, 2 },
                            { "[abc]?", "abc", 0, 1 } };
        unsigned which = random_below(4);
        int set = new_node(made, SPAN_SET);

        strcpy(made->spans.nodes[set].bytes, expressions[which].bytes);
        *part = (struct structure){ .kind = STRUCTURE_REGEX,
                                    .text = { expressions[which].text,
                                              strlen(expressions[which].text) } };
        return repeat(made, set, expressions[which].min, expressions[which].max);
}

static int random_parts(struct made *made, struct structure *part, int depth, bool is_last)
{
        bool is_choice = random_below(2);
        int count = 1 + random_below(3);
        struct structure *parts = take(made, count);
        int node = new_node(made, is_choice ? SPAN_CHOICE : SPAN_SEQUENCE);

        *part = (struct structure){ .kind = is_choice ? STRUCTURE_CHOICE : STRUCTURE_SEQUENCE,
                                    .parts = parts,
                                    .count = count };
        for (int i = 0; i < count; i++)
                made->spans.nodes[node].children[i] = random_part(
                        made, &parts[i], depth - 1, is_last && (is_choice || i + 1 == count));
        made->spans.nodes[node].count = count;
        return node;
}

static int random_list(struct made *made, struct structure *part, int depth)
{
        struct structure *element = take(made, 1);
        int min = random_below(3), max = random_below(2) ? SPAN_NO_MAX : min + 1;
        const char *between = random_below(2) ? random_text(made) : "";
        int child = random_part(made, element, depth - 1, false), rest, node;

        *part = (struct structure){ .kind = STRUCTURE_LIST,
                                    .text = { between, strlen(between) },
                                    .parts = element,
                                    .count = 1,
                                    .min = min,
                                    .max = max == SPAN_NO_MAX ? REGEX_FOREVER : (uint32_t)max };
        if (!*between)
                return repeat(made, child, min, max);
        rest = repeat(made, spans_of(made, SPAN_SEQUENCE, spell(made, between), child),
                      min ? min - 1 : 0, max == SPAN_NO_MAX ? max : max - 1);
        node = spans_of(made, SPAN_SEQUENCE, child, rest);
        return repeat(made, node, min > 0, 1);
}

static int up_to(struct made *made, const struct span_node *text, int mark)
{
        int node = new_node(made, SPAN_UP_TO);

        made->spans.nodes[node].marks = text->marks;
        made->spans.nodes[node].mark_count = text->mark_count;
        made->spans.nodes[node].mark = mark;
        return node;
}

static int random_free_text(struct made *made, struct structure *part, int depth, bool is_last)
{
        static struct regex_text without[PARTS_MAX];
        struct span_node text = { .kind = SPAN_FREE, .marks = &made->marks[made->mark_count] };
        int count = random_below(3) + !is_last, choice, tail, node, min, max;
        struct structure *parts = take(made, 3);
        bool closed = !is_last || random_below(2);

        count = count > 2 ? 2 : count;
        min = count ? random_below(2) + !is_last : 0;
        max = !count ? 0 : random_below(2) ? SPAN_NO_MAX : min + !min + (int)random_below(2);
        text.mark_count = count + random_below(2);
        for (int i = 0; i < text.mark_count; i++, made->mark_count++) {
                strcpy(made->marks[made->mark_count], random_text(made));
                without[made->mark_count] =
                        (struct regex_text){ made->marks[made->mark_count],
                                             strlen(made->marks[made->mark_count]) };
        }
        choice = new_node(made, SPAN_CHOICE);
        made->spans.nodes[choice].count = count;
        for (int i = 0; i < count; i++) {
                struct structure *both = take(made, 2);
                bool inner_last = is_last && closed && max == 1;
                int rest;

                set_literal(&both[0], text.marks[i]);
                rest = random_part(made, &both[1], depth - 1, inner_last);
                parts[i] =
                        (struct structure){ .kind = STRUCTURE_SEQUENCE, .parts = both, .count = 2 };
                made->spans.nodes[choice].children[i] =
                        spans_of(made, SPAN_SEQUENCE, up_to(made, &text, i), rest);
        }
        *part = (struct structure){ .kind = STRUCTURE_TEXT,
                                    .parts = parts,
                                    .count = count,
                                    .min = min,
                                    .max = max == SPAN_NO_MAX ? REGEX_FOREVER : (uint32_t)max,
                                    .closed = closed,
                                    .without = &without[text.marks - made->marks + count],
                                    .without_count = text.mark_count - count };
        tail = new_node(made, SPAN_FREE);
        made->spans.nodes[tail] = text;
        if (count == 0)
                return tail;
        if (!closed)
                return spans_of(made, SPAN_SEQUENCE, repeat(made, choice, min, max), tail);
        node = repeat(made, choice, min + !min, max);
        return min ? node : spans_of(made, SPAN_CHOICE, node, tail);
}

/* Writes a part, and returns the node of the same language. */
static int random_part(struct made *made, struct structure *part, int depth, bool is_last)
{
        unsigned kind =
                depth == 0 || made->spans.node_count > 30 ? random_below(2) : random_below(8);

        if (kind < 2)
                return kind ? random_regex(made, part) : random_literal(made, part);
        if (kind < 4)
                return random_parts(made, part, depth, is_last);
        if (kind < 5)
                return random_list(made, part, depth);
        return random_free_text(made, part, depth, is_last);
}

/* Whether a mark of some free text has another one inside, before its end. */
static bool hides_a_mark(const struct span_grammar *spans)
{
        struct span_grammar copy = { 0 };

        for (int i = 0; i < spans->node_count; i++) {
                const struct span_node *node = &spans->nodes[i];

                copy.text = node->kind == SPAN_UP_TO ? node->marks[node->mark] : "";
                if (*copy.text && span_marked(&copy, node, 0, (int)strlen(copy.text) - 1))
                        return true;
        }
        return false;
}

static void print(struct made *made, const struct structure *part, int depth)
{
        static const char *const names[] = {
                [STRUCTURE_LITERAL] = "literal", [STRUCTURE_REGEX] = "regex",
                [STRUCTURE_GBNF] = "gbnf",       [STRUCTURE_SCHEMA] = "schema",
                [STRUCTURE_ONE_OF] = "one of",   [STRUCTURE_SEQUENCE] = "sequence",
                [STRUCTURE_CHOICE] = "choice",   [STRUCTURE_LIST] = "list",
                [STRUCTURE_TEXT] = "text",
        };
        size_t used = strlen(made->source);

        snprintf(made->source + used, sizeof(made->source) - used,
                 "%*s%s '%.*s' %u-%d%s without %u '%.*s'\n", 2 * depth, "", names[part->kind],
                 (int)part->text.count, part->text.count ? part->text.bytes : "", part->min,
                 (int)part->max, part->closed ? " closed" : "", part->without_count,
                 part->without_count ? (int)part->without->count : 0,
                 part->without_count ? part->without->bytes : "");
        for (uint32_t i = 0; i < part->count; i++)
                print(made, &part->parts[i], depth + 1);
}

static void masks_of_structures_equal_those_of_another_recogniser(void **state)
{
        struct grammar_limits limits = grammar_limits_default;
        struct matcher_limits small = matcher_limits_default;
        struct made *made = calloc(1, sizeof(*made));
        int hidden = 0, compiled = 0;
        struct token_trie *trie;

        (void)state;
        limits.terms = 50000;
        limits.states = 5000;
        small.items = 6000;
        random_state = 11;
        trie = random_vocabulary();
        while (compiled < STRUCTURES) {
                struct grammar *grammar;
                struct matcher *matcher;
                char why[256];
                int r;

                memset(made, 0, sizeof(*made));
                made->spans.rule_count = 1;
                made->part_count = 1;
                made->spans.rules[0] = random_part(made, &made->parts[0], 3, true);
                print(made, &made->parts[0], 0);
                r = structure_compile(&made->parts[0], &limits, &grammar, why, sizeof(why));
                if (r != (hides_a_mark(&made->spans) ? -EINVAL : 0))
                        fail_msg("%s: %d, %s", made->source, r, r ? why : "");
                if (r) {
                        hidden++;
                        continue;
                }
                assert_true(span_prepare(&made->spans));
                matcher = matcher_new(grammar, trie, &small);
                assert_non_null(matcher);
                matcher_reset(matcher);
                walk(&made->spans, matcher, made->source);
                matcher_reset(matcher);
                walk(&made->spans, matcher, made->source);
                matcher_free(matcher);
                grammar_free(grammar);
                compiled++;
        }
        assert_true(hidden > 0);
        token_trie_free(trie);
        free(made);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(masks_of_structures_equal_those_of_another_recogniser),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
