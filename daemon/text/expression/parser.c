#include "daemon/text/expression/parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/text/expression/class.h"
#include "daemon/text/expression/pattern.h"
#include "daemon/text/unicode.h"

/* ---- nodes ---- */

static int add(struct pattern *p, const struct node *node, uint32_t *ret_node)
{
        struct tree *tree = p->tree;

        if (tree->node_count == tree->node_capacity) {
                uint32_t capacity = tree->node_capacity ? 2 * tree->node_capacity : 64;
                struct node *nodes = reallocarray(tree->nodes, capacity, sizeof(*nodes));

                if (!nodes)
                        return error_raise(-ENOMEM);
                tree->nodes = nodes;
                tree->node_capacity = capacity;
        }
        *ret_node = tree->node_count;
        tree->nodes[tree->node_count++] = *node;
        return 0;
}

static struct node *at(struct pattern *p, uint32_t node)
{
        return &p->tree->nodes[node];
}

static struct node make(enum node_kind kind)
{
        return (struct node){ .kind = (uint8_t)kind, .child = TREE_NONE, .next = TREE_NONE };
}

static int add_kind(struct pattern *p, enum node_kind kind, uint32_t *ret_node)
{
        const struct node node = make(kind);

        return error_pass(add(p, &node, ret_node));
}

static int add_set(struct pattern *p, uint32_t set, uint32_t *ret_node)
{
        struct node node = make(NODE_SET);

        p->letter_count = 0;
        node.set = set;
        return error_pass(add(p, &node, ret_node));
}

static int add_place(struct pattern *p, enum place_kind place, bool inverted, uint32_t set,
                     uint32_t *ret_node)
{
        struct node node = make(NODE_HERE);

        p->letter_count = 0;
        node.place = (uint8_t)place;
        node.inverted = inverted;
        node.set = set;
        return error_pass(add(p, &node, ret_node));
}

/* Two children in a node of this kind. */
static int join(struct pattern *p, enum node_kind kind, uint32_t a, uint32_t b, uint32_t *ret_node)
{
        int r = add_kind(p, kind, ret_node);

        if (r)
                return error_pass(r);
        at(p, *ret_node)->child = b;
        at(p, b)->next = a;
        at(p, a)->next = TREE_NONE;
        return 0;
}

static int add_repeat(struct pattern *p, uint32_t child, uint32_t least, uint32_t most, bool lazy,
                      uint32_t *ret_node)
{
        struct node node = make(NODE_REPEAT);

        p->letter_count = 0;
        node.child = child;
        node.least = least;
        node.most = most;
        node.lazy = lazy;
        return error_pass(add(p, &node, ret_node));
}

/* Refuses a letter that is several in another case, or that ends several which are one. */
static int note_letter(struct pattern *p, const struct charset *set, uint32_t code)
{
        if (p->letter_count == 3)
                memmove(p->letters, p->letters + 1, 2 * sizeof(*p->letters));
        p->letter_count -= p->letter_count == 3;
        p->letters[p->letter_count++] = code;
        if (charset_has_several(set) || charset_several_equal_one(p->letters, p->letter_count))
                return pattern_refuse(p, PATTERN_LETTERS);
        return 0;
}

/* A set of one character, and of its other cases if case does not matter. */
static int add_character(struct pattern *p, uint32_t code, uint32_t *ret_node)
{
        struct charset set = { 0 };
        unsigned letters;
        uint32_t kept = 0;
        int r = charset_add(&set, code, code);

        if (!r && p->flags.folds)
                r = charset_fold(&set);
        if (!r && p->flags.folds)
                r = note_letter(p, &set, code);
        letters = p->flags.folds ? p->letter_count : 0;
        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        if (!r)
                r = add_set(p, kept, ret_node);
        p->letter_count = letters;
        return error_pass(r);
}

/* ---- parts of one place ---- */

static int parse_choice(struct pattern *p, uint32_t *ret_node);

/* Not the newline, unless (?m) or (?s). */
static int parse_dot(struct pattern *p, uint32_t *ret_node)
{
        struct charset set = { 0 };
        uint32_t kept = 0;
        int r = 0;

        if (!p->flags.dot_lines)
                r = charset_add(&set, '\n', '\n');
        if (!r)
                r = charset_complement(&set);
        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        return r ? error_pass(r) : error_pass(add_set(p, kept, ret_node));
}

static int parse_class(struct pattern *p, uint32_t *ret_node)
{
        struct charset set = { 0 };
        uint32_t kept = 0;
        int r = class_parse(p, &set);

        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        return r ? error_pass(r) : error_pass(add_set(p, kept, ret_node));
}

static int add_word_border(struct pattern *p, bool inverted, uint32_t *ret_node)
{
        struct charset set;
        uint32_t kept = 0;
        int r = charset_shorthand(&set, 'w');

        if (!r)
                r = charset_add_latin_numbers(&set);
        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        return r ? error_pass(r) : error_pass(add_place(p, PLACE_WORD, inverted, kept, ret_node));
}

/* ^ and $ */
static int add_line_border(struct pattern *p, enum place_kind place, uint32_t *ret_node)
{
        struct charset set = { 0 };
        uint32_t kept = 0;
        int r = charset_add(&set, '\n', '\n');

        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        return r ? error_pass(r) : error_pass(add_place(p, place, false, kept, ret_node));
}

static int keep_look(struct pattern *p, uint32_t inner, bool inverted, uint32_t *ret_node)
{
        int r;

        if (p->tree->look_count == TREE_LOOKS_MAX)
                return pattern_refuse(p,
                                      "it looks ahead over more than one character %u times; "
                                      "more than %u are not supported",
                                      TREE_LOOKS_MAX + 1, TREE_LOOKS_MAX);
        r = add_place(p, PLACE_LOOK, inverted, 0, ret_node);
        if (r)
                return error_pass(r);
        at(p, *ret_node)->look = p->tree->look_count;
        p->tree->looks[p->tree->look_count++] = inner;
        return 0;
}

/* A part that is short for another expression. */
static int parse_instead(struct pattern *p, const char *expression, uint32_t *ret_node)
{
        const char *at = p->at;
        size_t left = p->left;
        int r;

        p->at = expression;
        p->left = strlen(expression);
        r = parse_choice(p, ret_node);
        p->at = at;
        p->left = left;
        return error_pass(r);
}

static int parse_word(struct pattern *p, uint32_t *ret_node)
{
        struct charset set;
        uint32_t kept = 0;
        int r = charset_shorthand(&set, 'w');

        if (!r)
                r = charset_add_latin_numbers(&set);
        if (!r && p->at[1] == 'W')
                r = charset_complement(&set);
        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        pattern_skip(p, 2);
        return r ? error_pass(r) : error_pass(add_set(p, kept, ret_node));
}

static int parse_escape(struct pattern *p, uint32_t *ret_node)
{
        struct charset set = { 0 };
        uint32_t code = 0, kept = 0;
        int r;

        switch (p->left > 1 ? p->at[1] : 0) {
        case 'b':
        case 'B':
                pattern_skip(p, 2);
                return error_pass(add_word_border(p, p->at[-1] == 'B', ret_node));
        case 'A':
                pattern_skip(p, 2);
                return error_pass(add_place(p, PLACE_BEGIN, false, 0, ret_node));
        case 'z':
                pattern_skip(p, 2);
                return error_pass(add_place(p, PLACE_END, false, 0, ret_node));
        case 'Z':
                pattern_skip(p, 2);
                return error_pass(parse_instead(p, "(?=\\n?\\z)", ret_node));
        case 'R':
                pattern_skip(p, 2);
                /* CR LF is one end of a line, so CR before LF is none. */
                return error_pass(parse_instead(
                        p, "\\r\\n|\\r(?!\\n)|[\\n-\\f\\x{85}\\x{2028}\\x{2029}]", ret_node));
        case 'w':
        case 'W':
                return error_pass(parse_word(p, ret_node));
        default:
                break;
        }
        r = class_escape(p, &set, &code);
        if (r == CLASS_E_CHARACTER)
                return error_pass(add_character(p, code, ret_node));
        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        return r ? error_pass(r) : error_pass(add_set(p, kept, ret_node));
}

/* ---- groups ---- */

/* (?i), (?m-i), (?i:...): sets the flags.  *ret_scoped: the group has an end of its own. */
static int parse_flags(struct pattern *p, bool *ret_scoped)
{
        bool on = true;

        for (; p->left; pattern_skip(p, 1)) {
                char c = *p->at;

                if (c == ')' || c == ':') {
                        *ret_scoped = c == ':';
                        pattern_skip(p, 1);
                        return 0;
                }
                if (c == '-')
                        on = false;
                else if (c == 'i')
                        p->flags.folds = on;
                else if (c == 'm' || c == 's')
                        p->flags.dot_lines = on;
                else
                        return pattern_refuse(p, "the group (?%c is not supported", c);
        }
        return pattern_refuse(p, "a group has no end");
}

static int parse_group_end(struct pattern *p)
{
        if (!p->left || *p->at != ')')
                return pattern_refuse(p, "a group has no end");
        pattern_skip(p, 1);
        return 0;
}

/* A set that matches the same as the node; TREE_NONE: the node is of more than one character. */
static uint32_t set_of(struct pattern *p, uint32_t node)
{
        while (at(p, node)->kind == NODE_ROW && at(p, node)->child != TREE_NONE &&
               at(p, at(p, node)->child)->next == TREE_NONE)
                node = at(p, node)->child;
        return at(p, node)->kind == NODE_SET ? at(p, node)->set : TREE_NONE;
}

static int parse_look(struct pattern *p, bool behind, uint32_t *ret_node)
{
        bool inverted = p->at[-1] == '!';
        uint32_t inner, set;
        int r;

        p->letter_count = 0;
        r = parse_choice(p, &inner);
        if (!r)
                r = parse_group_end(p);
        if (r)
                return error_pass(r);
        set = set_of(p, inner);
        if (set != TREE_NONE)
                return error_pass(
                        add_place(p, behind ? PLACE_LAST : PLACE_NEXT, inverted, set, ret_node));
        if (behind)
                return pattern_refuse(p,
                                      "a look behind of more than one character is not supported");
        return error_pass(keep_look(p, inner, inverted, ret_node));
}

static bool begins(struct pattern *p, const char *with)
{
        size_t bytes = strlen(with);

        if (p->left < bytes || memcmp(p->at, with, bytes))
                return false;
        pattern_skip(p, bytes);
        return true;
}

static int skip_comment(struct pattern *p)
{
        while (p->left && *p->at != ')')
                pattern_skip(p, *p->at == '\\' && p->left > 1 ? 2 : 1);
        return error_pass(parse_group_end(p));
}

static int skip_name(struct pattern *p)
{
        while (p->left && *p->at != '>')
                pattern_skip(p, 1);
        return begins(p, ">") ? 0 : pattern_refuse(p, "the name of a group has no end");
}

/* Behind the bracket.  *ret_node is TREE_NONE for a comment. */
static int parse_group(struct pattern *p, uint32_t *ret_node)
{
        const struct pattern_flags before = p->flags;
        bool scoped = true;
        int r = 0;

        *ret_node = TREE_NONE;
        if (begins(p, "?=") || begins(p, "?!")) {
                r = parse_look(p, false, ret_node);
                p->flags = before;
                return error_pass(r);
        }
        if (begins(p, "?<=") || begins(p, "?<!")) {
                r = parse_look(p, true, ret_node);
                p->flags = before;
                return error_pass(r);
        }
        if (begins(p, "?>"))
                return pattern_refuse(p, "an atomic group (?>...) is not supported");
        if (begins(p, "?#"))
                return error_pass(skip_comment(p));
        if (begins(p, "?<") || begins(p, "?P<"))
                r = skip_name(p);
        else if (begins(p, "?"))
                r = parse_flags(p, &scoped);
        if (!r)
                r = parse_choice(p, ret_node);
        /* (?i) makes a group of all that follows in this group, with its alternatives. */
        if (!r && scoped)
                r = parse_group_end(p);
        p->flags = before;
        return error_pass(r);
}

/* ---- repeating ---- */

static bool parse_number(struct pattern *p, size_t *at, uint32_t *ret_number)
{
        size_t from = *at;
        uint32_t number = 0;

        for (; *at < p->left && (unsigned)(p->at[*at] - '0') < 10; ++*at)
                if (number <= TREE_REPEATS_MAX)
                        number = 10 * number + (uint32_t)(p->at[*at] - '0');
        *ret_number = number;
        return *at > from;
}

/* {n}, {n,}, {n,m}, {,m}; anything else is text.  Returns the length; 0: it is none. */
static size_t look_at_braces(struct pattern *p, uint32_t *ret_least, uint32_t *ret_most)
{
        size_t at = 1;
        bool lower = parse_number(p, &at, ret_least), upper;

        *ret_most = *ret_least;
        if (at < p->left && p->at[at] == ',') {
                at++;
                upper = parse_number(p, &at, ret_most);
                if (!upper)
                        *ret_most = TREE_NONE;
                lower = lower || upper;
        }
        return lower && at < p->left && p->at[at] == '}' ? at + 1 : 0;
}

/* One quantifier, if there is one: *ret_bytes is 0 otherwise. */
static int look_at_quantifier(struct pattern *p, uint32_t *ret_least, uint32_t *ret_most,
                              size_t *ret_bytes)
{
        char c = p->left ? *p->at : 0;

        *ret_bytes = c == '*' || c == '+' || c == '?';
        *ret_least = c == '+';
        *ret_most = c == '?' ? 1 : TREE_NONE;
        if (c == '{')
                *ret_bytes = look_at_braces(p, ret_least, ret_most);
        if (!*ret_bytes)
                return 0;
        if (*ret_least > TREE_REPEATS_MAX ||
            (*ret_most != TREE_NONE && (*ret_most > TREE_REPEATS_MAX || *ret_most < *ret_least)))
                return pattern_refuse(p,
                                      "a part is repeated more than %u times, or less often "
                                      "than at least",
                                      TREE_REPEATS_MAX);
        return 0;
}

/* A possessive repeat of a set ends where no member of it follows. */
static int add_possessive(struct pattern *p, uint32_t child, uint32_t least, uint32_t most,
                          uint32_t *ret_node)
{
        uint32_t set = set_of(p, child), repeat, border;
        int r;

        if (set == TREE_NONE)
                return pattern_refuse(p, "a possessive quantifier behind a group is not supported");
        r = add_repeat(p, child, least, most, false, &repeat);
        if (!r)
                r = add_place(p, PLACE_NEXT, true, set, &border);
        if (r)
                return error_pass(r);
        if (most == TREE_NONE)
                return error_pass(join(p, NODE_ROW, repeat, border, ret_node));
        /* X?+: one X, or none where no X follows. */
        r = add_set(p, set, &repeat);
        return r ? error_pass(r) : error_pass(join(p, NODE_CHOICE, repeat, border, ret_node));
}

/* Reads how a quantifier is meant.  Behind {n} a ? is a quantifier of its own, and so is any +. */
static int parse_quantifier(struct pattern *p, uint32_t least, uint32_t most, bool braces,
                            bool comma, uint32_t *node)
{
        char c = p->left ? *p->at : 0;
        bool lazy = c == '?' && (!braces || comma);

        if (!braces && c == '+') {
                pattern_skip(p, 1);
                return error_pass(add_possessive(p, *node, least, most, node));
        }
        if (lazy)
                pattern_skip(p, 1);
        return error_pass(add_repeat(p, *node, least, most, lazy, node));
}

static int parse_quantifiers(struct pattern *p, uint32_t *node)
{
        for (unsigned count = 0;; count++) {
                bool braces = p->left && *p->at == '{', comma;
                uint32_t least, most;
                size_t bytes;
                int r = look_at_quantifier(p, &least, &most, &bytes);

                if (r || !bytes)
                        return error_pass(r);
                if (count == TREE_QUANTIFIERS_MAX)
                        return pattern_refuse(p, "more than %u quantifiers follow one another",
                                              TREE_QUANTIFIERS_MAX);
                comma = memchr(p->at, ',', bytes);
                pattern_skip(p, bytes);
                r = parse_quantifier(p, least, most, braces, comma, node);
                if (r)
                        return error_pass(r);
        }
}

/* ---- the whole ---- */

static int parse_character(struct pattern *p, uint32_t *ret_node)
{
        uint32_t code, least, most;
        unsigned bytes = unicode_next(p->at, p->left, &code);

        if (code == UNICODE_INVALID)
                return pattern_refuse(p, "it is not UTF-8");
        if (code == '*' || code == '+' || code == '?' ||
            (code == '{' && look_at_braces(p, &least, &most)))
                return pattern_refuse(p, "there is nothing before '%c' to repeat", *p->at);
        pattern_skip(p, bytes);
        return error_pass(add_character(p, code, ret_node));
}

/* *ret_node is TREE_NONE for a comment. */
static int parse_part(struct pattern *p, uint32_t *ret_node)
{
        switch (*p->at) {
        case '(':
                pattern_skip(p, 1);
                return error_pass(parse_group(p, ret_node));
        case '[':
                return error_pass(parse_class(p, ret_node));
        case '.':
                pattern_skip(p, 1);
                return error_pass(parse_dot(p, ret_node));
        case '^':
                pattern_skip(p, 1);
                return error_pass(add_line_border(p, PLACE_LINE_BEGIN, ret_node));
        case '$':
                pattern_skip(p, 1);
                return error_pass(add_line_border(p, PLACE_LINE_END, ret_node));
        case '\\':
                return error_pass(parse_escape(p, ret_node));
        default:
                return error_pass(parse_character(p, ret_node));
        }
}

static int parse_row(struct pattern *p, uint32_t *ret_node)
{
        uint32_t node, row;
        int r = add_kind(p, NODE_ROW, &row);

        while (!r && p->left && *p->at != '|' && *p->at != ')') {
                r = parse_part(p, &node);
                if (r || node == TREE_NONE)
                        continue;
                r = parse_quantifiers(p, &node);
                if (r)
                        break;
                at(p, node)->next = at(p, row)->child;
                at(p, row)->child = node;
        }
        *ret_node = row;
        return error_pass(r);
}

static int parse_choice(struct pattern *p, uint32_t *ret_node)
{
        uint32_t choice = TREE_NONE, row;
        int r;

        if (p->depth == TREE_DEPTH_MAX)
                return pattern_refuse(p, "its groups are nested more than %u deep", TREE_DEPTH_MAX);
        p->depth++;
        r = parse_row(p, ret_node);
        if (!r && p->left && *p->at == '|') {
                r = add_kind(p, NODE_CHOICE, &choice);
                if (r)
                        return error_pass(r);
                at(p, choice)->child = *ret_node;
                *ret_node = choice;
        }
        while (!r && p->left && *p->at == '|') {
                pattern_skip(p, 1);
                p->letter_count = 0;
                r = parse_row(p, &row);
                if (r)
                        break;
                at(p, row)->next = at(p, choice)->child;
                at(p, choice)->child = row;
        }
        p->depth--;
        return error_pass(r);
}

int tree_parse(struct tree *ret_tree, const char *pattern, char *why, size_t why_bytes)
{
        struct tree tree = { 0 };
        struct pattern p = { .tree = &tree,
                             .at = pattern,
                             .left = strlen(pattern),
                             .why = why,
                             .why_bytes = why_bytes };
        int r = p.left > TREE_PATTERN_MAX ? pattern_refuse(&p, "it has %zu bytes; the limit is %u",
                                                           p.left, TREE_PATTERN_MAX)
                                          : parse_choice(&p, &tree.root);

        if (!r && p.left)
                r = pattern_refuse(&p, "a ')' has no '('");
        if (r) {
                tree_deinit(&tree);
                return error_pass(r);
        }
        *ret_tree = tree;
        return 0;
}
