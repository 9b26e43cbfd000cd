#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/characters.h"
#include "daemon/constraint/gbnf-tree.h"
#include "daemon/constraint/gbnf.h"
#include "json/utf8.h"

#define GROUPS_MAX 64u

struct gbnf_reader {
        struct gbnf_tree *tree;
        struct regex_pool *pool;
        const char *text;
        size_t bytes, at;
        char *why;
        size_t why_bytes;
};

static int fault(struct gbnf_reader *reader, const char *what)
{
        unsigned line = 1;

        for (size_t i = 0; i < reader->at && i < reader->bytes; i++)
                line += reader->text[i] == '\n';
        return error_raise(errtext_set(reader->why, reader->why_bytes, -EINVAL,
                                       "grammar, line %u: %s", line, what));
}

static int peek(const struct gbnf_reader *reader)
{
        return reader->at < reader->bytes ? (unsigned char)reader->text[reader->at] : -1;
}

static bool skip(struct gbnf_reader *reader, const char *what)
{
        size_t count = strlen(what);

        if (reader->bytes - reader->at < count ||
            memcmp(reader->text + reader->at, what, count) != 0)
                return false;
        reader->at += count;
        return true;
}

static void skip_space(struct gbnf_reader *reader, bool lines)
{
        for (;; reader->at++) {
                int c = peek(reader);

                while (c == '#' && peek(reader) != '\n' && peek(reader) >= 0)
                        reader->at++;
                c = peek(reader);
                if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r')))
                        return;
        }
}

static int add_node(struct gbnf_reader *reader, struct gbnf_node node, uint32_t *ret_node)
{
        struct gbnf_tree *tree = reader->tree;

        if (tree->node_count == tree->node_size) {
                uint32_t size = tree->node_size ? 2 * tree->node_size : 256;
                struct gbnf_node *more = realloc(tree->nodes, size * sizeof(*more));

                if (!more)
                        return error_raise(-ENOMEM);
                tree->nodes = more;
                tree->node_size = size;
        }
        node.next = GBNF_NONE;
        *ret_node = tree->node_count;
        tree->nodes[tree->node_count++] = node;
        return 0;
}

static int add_term(struct gbnf_reader *reader, uint32_t term, uint32_t *ret_node)
{
        return add_node(reader, (struct gbnf_node){ .kind = GBNF_TERM, .a = term }, ret_node);
}

static bool is_word(int c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-';
}

/* The rule of this name, new if it was never named. */
static int read_name(struct gbnf_reader *reader, uint32_t *ret_rule)
{
        struct gbnf_tree *tree = reader->tree;
        uint32_t begin = reader->at, count, line = 1;

        while (is_word(peek(reader)))
                reader->at++;
        count = reader->at - begin;
        for (uint32_t i = 0; i < tree->rule_count; i++) {
                const struct gbnf_rule *rule = &tree->rules[i];

                *ret_rule = i;
                if (rule->name_bytes == count &&
                    memcmp(reader->text + rule->name, reader->text + begin, count) == 0)
                        return 0;
        }
        if (tree->rule_count == GBNF_RULES)
                return error_pass(fault(reader, "there are more than 10000 rules"));
        for (uint32_t i = 0; i < begin; i++)
                line += reader->text[i] == '\n';
        *ret_rule = tree->rule_count++;
        tree->rules[*ret_rule] = (struct gbnf_rule){ begin, count, GBNF_NONE, line };
        return 0;
}

static int read_hex(struct gbnf_reader *reader, unsigned digits)
{
        int value = 0;

        for (; digits; digits--, reader->at++) {
                int c = peek(reader), digit;

                if (c >= '0' && c <= '9')
                        digit = c - '0';
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        digit = (c | 0x20) - 'a' + 10;
                else
                        return -1;
                if (value > (int)CHARACTER_LAST)
                        return -1;
                value = value * 16 + digit;
        }
        return value > (int)CHARACTER_LAST ? -1 : value;
}

/* One character of a literal or a class: its code point, or -1. */
static int32_t read_character(struct gbnf_reader *reader)
{
        static const char from[] = "nrt\\\"[]", to[] = "\n\r\t\\\"[]";
        const char *found;
        size_t length;
        int32_t point;
        int letter;

        if (!skip(reader, "\\")) {
                point = utf8_next(reader->text + reader->at, reader->bytes - reader->at, &length);
                reader->at += length;
                return point;
        }
        letter = peek(reader);
        if (letter < 0)
                return -1;
        reader->at++;
        found = memchr(from, letter, sizeof(from) - 1);
        if (found)
                return to[found - from];
        if (letter == 'x' || letter == 'u' || letter == 'U')
                return read_hex(reader, letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
        return -1;
}

static int read_literal(struct gbnf_reader *reader, uint32_t *ret_node)
{
        uint32_t term = REGEX_EMPTY;

        reader->at++;
        while (peek(reader) >= 0 && peek(reader) != '"') {
                struct characters one = { 0 };
                int32_t point = read_character(reader);

                if (point < 0)
                        return error_pass(fault(reader, "a literal has a character that is none"));
                characters_add(&one, point, point);
                term = regex_concat(reader->pool, term,
                                    characters_regex(reader->pool, &one, WRITING_PLAIN));
        }
        if (!skip(reader, "\""))
                return error_pass(fault(reader, "a literal has no end"));
        return add_term(reader, term, ret_node);
}

static int read_class(struct gbnf_reader *reader, uint32_t *ret_node)
{
        struct characters set = { 0 };
        bool inverted;

        reader->at++;
        inverted = skip(reader, "^");
        while (peek(reader) >= 0 && peek(reader) != ']') {
                int32_t from = read_character(reader), to = from;

                if (peek(reader) == '-' && reader->at + 1 < reader->bytes &&
                    reader->text[reader->at + 1] != ']') {
                        reader->at++;
                        to = read_character(reader);
                }
                if (from < 0 || to < from)
                        return error_pass(fault(reader, "a class has a wrong character or range"));
                characters_add(&set, from, to);
        }
        if (!skip(reader, "]"))
                return error_pass(fault(reader, "a class has no end"));
        if (inverted)
                characters_invert(&set);
        if (set.full)
                return error_pass(fault(reader, "a class has more than 256 ranges"));
        return add_term(reader, characters_regex(reader->pool, &set, WRITING_PLAIN), ret_node);
}

static int read_token(struct gbnf_reader *reader, uint32_t *ret_node)
{
        uint8_t bytes[TOKEN_BYTES];
        uint32_t token = 0;
        size_t begin;

        if (!skip(reader, "<["))
                return error_pass(
                        fault(reader, "a token by its name is not supported: use <[id]>"));
        for (begin = reader->at; peek(reader) >= '0' && peek(reader) <= '9'; reader->at++)
                if (token < 1u << 24)
                        token = token * 10 + (peek(reader) - '0');
        if (reader->at == begin || token >= 1u << 24 || !skip(reader, "]>"))
                return error_pass(fault(reader, "a token is not of the form <[id]>"));
        grammar_token_bytes(token, bytes);
        return add_term(reader, regex_literal(reader->pool, (char *)bytes, TOKEN_BYTES), ret_node);
}

static int read_choice(struct gbnf_reader *reader, unsigned depth, uint32_t *ret_node);

static int read_group(struct gbnf_reader *reader, unsigned depth, uint32_t *ret_node)
{
        int r;

        if (depth == GROUPS_MAX)
                return error_pass(fault(reader, "groups are nested more than 64 deep"));
        reader->at++;
        r = read_choice(reader, depth + 1, ret_node);
        if (r < 0)
                return error_pass(r);
        if (!skip(reader, ")"))
                return error_pass(fault(reader, "a group has no end"));
        return 0;
}

/* 1: there was an element; 0: none begins here. */
static int read_element(struct gbnf_reader *reader, unsigned depth, uint32_t *ret_node)
{
        uint32_t rule;
        int r;

        switch (peek(reader)) {
        case '"':
                r = read_literal(reader, ret_node);
                break;
        case '[':
                r = read_class(reader, ret_node);
                break;
        case '(':
                r = read_group(reader, depth, ret_node);
                break;
        case '<':
                r = read_token(reader, ret_node);
                break;
        case '!':
                return error_pass(fault(reader, "an excluded token (!<...>) is not supported"));
        case '.':
                reader->at++;
                r = add_term(reader, characters_any(reader->pool, WRITING_PLAIN), ret_node);
                break;
        default:
                if (!is_word(peek(reader)))
                        return 0;
                r = read_name(reader, &rule);
                if (r == 0)
                        r = add_node(reader, (struct gbnf_node){ .kind = GBNF_RULE, .a = rule },
                                     ret_node);
        }
        return r < 0 ? error_pass(r) : 1;
}

static bool read_number(struct gbnf_reader *reader, uint32_t *ret_number)
{
        size_t begin = reader->at;
        uint32_t number = 0;

        for (; peek(reader) >= '0' && peek(reader) <= '9'; reader->at++)
                if (number < 100000000)
                        number = number * 10 + (peek(reader) - '0');
        *ret_number = number;
        return reader->at > begin;
}

/* 1: there was one. */
static int read_repetition(struct gbnf_reader *reader, uint32_t *ret_min, uint32_t *ret_max)
{
        int c = peek(reader);

        *ret_min = c == '+';
        *ret_max = c == '?' ? 1 : REGEX_FOREVER;
        if (c == '*' || c == '+' || c == '?') {
                reader->at++;
                return 1;
        }
        if (c != '{')
                return 0;
        reader->at++;
        skip_space(reader, true);
        if (!read_number(reader, ret_min))
                return error_pass(fault(reader, "a repetition has no count"));
        skip_space(reader, true);
        *ret_max = *ret_min;
        if (skip(reader, ",")) {
                skip_space(reader, true);
                if (!read_number(reader, ret_max))
                        *ret_max = REGEX_FOREVER;
                skip_space(reader, true);
        }
        if (!skip(reader, "}"))
                return error_pass(fault(reader, "a repetition has no end"));
        if (*ret_min > *ret_max)
                return error_pass(fault(reader, "the counts are in the wrong order"));
        return 1;
}

static int read_sequence(struct gbnf_reader *reader, unsigned depth, uint32_t *ret_node)
{
        uint32_t last = GBNF_NONE, element, min, max;
        int r = add_node(reader, (struct gbnf_node){ .kind = GBNF_SEQUENCE, .a = GBNF_NONE },
                         ret_node);

        while (r == 0 && (r = read_element(reader, depth, &element)) > 0) {
                skip_space(reader, depth > 0);
                while ((r = read_repetition(reader, &min, &max)) > 0) {
                        r = add_node(
                                reader,
                                (struct gbnf_node){
                                        .kind = GBNF_REPEAT, .a = element, .min = min, .max = max },
                                &element);
                        if (r < 0)
                                return error_pass(r);
                        skip_space(reader, depth > 0);
                }
                if (last == GBNF_NONE)
                        reader->tree->nodes[*ret_node].a = element;
                else
                        reader->tree->nodes[last].next = element;
                last = element;
        }
        return r < 0 ? error_pass(r) : 0;
}

static int read_choice(struct gbnf_reader *reader, unsigned depth, uint32_t *ret_node)
{
        uint32_t last = GBNF_NONE, choice;
        int r = add_node(reader, (struct gbnf_node){ .kind = GBNF_CHOICE, .a = GBNF_NONE },
                         ret_node);

        do {
                if (r == 0) {
                        skip_space(reader, depth > 0 || last != GBNF_NONE);
                        r = read_sequence(reader, depth, &choice);
                }
                if (r < 0)
                        return error_pass(r);
                if (last == GBNF_NONE)
                        reader->tree->nodes[*ret_node].a = choice;
                else
                        reader->tree->nodes[last].next = choice;
                last = choice;
        } while (skip(reader, "|"));
        return 0;
}

static int read_rule(struct gbnf_reader *reader)
{
        uint32_t rule, body;
        int r;

        if (!is_word(peek(reader)))
                return error_pass(fault(reader, "a rule begins with its name"));
        r = read_name(reader, &rule);
        if (r < 0)
                return error_pass(r);
        skip_space(reader, false);
        if (!skip(reader, "::="))
                return error_pass(fault(reader, "the name of a rule needs ::= behind it"));
        if (reader->tree->rules[rule].body != GBNF_NONE)
                return error_pass(fault(reader, "a rule is defined twice"));
        skip_space(reader, true);
        r = read_choice(reader, 0, &body);
        if (r < 0)
                return error_pass(r);
        reader->tree->rules[rule].body = body;
        if (peek(reader) >= 0 && !skip(reader, "\r\n") && !skip(reader, "\n") &&
            !skip(reader, "\r"))
                return error_pass(fault(reader, "a rule has something that is no element"));
        skip_space(reader, true);
        return 0;
}

static int find_root(struct gbnf_reader *reader)
{
        struct gbnf_tree *tree = reader->tree;

        tree->root = GBNF_NONE;
        for (uint32_t i = 0; i < tree->rule_count; i++) {
                const struct gbnf_rule *rule = &tree->rules[i];

                if (rule->body == GBNF_NONE)
                        return error_raise(errtext_set(
                                reader->why, reader->why_bytes, -EINVAL,
                                "grammar, line %u: the rule %.*s is not defined", rule->line,
                                (int)(rule->name_bytes < 64 ? rule->name_bytes : 64),
                                reader->text + rule->name));
                if (rule->name_bytes == 4 && memcmp(reader->text + rule->name, "root", 4) == 0)
                        tree->root = i;
        }
        return tree->root == GBNF_NONE ? fault(reader, "there is no rule root") : 0;
}

int gbnf_tree_read(struct gbnf_tree *tree, struct regex_pool *pool, const char *text, size_t bytes,
                   char *why, size_t why_bytes)
{
        struct gbnf_reader reader = { tree, pool, text, bytes, 0, why, why_bytes };
        int r = 0;

        memset(tree, 0, sizeof(*tree));
        if (bytes > GBNF_BYTES)
                return error_pass(fault(&reader, "the grammar is longer than 1 MiB"));
        if (utf8_valid(text, bytes) != bytes)
                return error_pass(fault(&reader, "the grammar is not UTF-8"));
        tree->rules = calloc(GBNF_RULES, sizeof(*tree->rules));
        if (!tree->rules)
                return error_raise(-ENOMEM);
        skip_space(&reader, true);
        while (r == 0 && reader.at < bytes)
                r = read_rule(&reader);
        return error_pass(r < 0 ? r : find_root(&reader));
}

void gbnf_tree_deinit(struct gbnf_tree *tree)
{
        free(tree->nodes);
        free(tree->rules);
}
