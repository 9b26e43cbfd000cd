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
        if (tree->node_count == TREE_NODES_MAX)
                return pattern_refuse(p, "it has more than %u parts", TREE_NODES_MAX);
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

        node.set = set;
        return error_pass(add(p, &node, ret_node));
}

static int add_place(struct pattern *p, enum place_kind place, bool inverted, uint32_t set,
                     uint32_t *ret_node)
{
        struct node node = make(NODE_HERE);

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
        at(p, *ret_node)->child = a;
        at(p, a)->next = b;
        at(p, b)->next = TREE_NONE;
        return 0;
}

static int add_repeat(struct pattern *p, uint32_t child, uint32_t least, uint32_t most, bool lazy,
                      uint32_t *ret_node)
{
        struct node node = make(NODE_REPEAT);

        node.child = child;
        node.least = least;
        node.most = most;
        node.lazy = lazy;
        return error_pass(add(p, &node, ret_node));
}

/* A set of one character, and of its other cases if case does not matter. */
static int keep_character(struct pattern *p, uint32_t code, uint32_t *ret_set)
{
        struct charset set = { 0 };
        int r = charset_add(&set, code, code);

        if (!r && p->flags.folds)
                r = charset_fold(&set);
        if (r) {
                charset_deinit(&set);
                return error_pass(r);
        }
        return error_pass(pattern_keep_set(p, &set, ret_set));
}

static int add_character(struct pattern *p, uint32_t code, uint32_t *ret_node)
{
        uint32_t set = 0;
        int r = keep_character(p, code, &set);

        return r ? error_pass(r) : error_pass(add_set(p, set, ret_node));
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

/* \Z: at the end, or before a newline at the end. */
static int add_last_line_end(struct pattern *p, uint32_t *ret_node)
{
        uint32_t newline, maybe, end, row;
        int r = add_character(p, '\n', &newline);

        if (!r)
                r = add_repeat(p, newline, 0, 1, false, &maybe);
        if (!r)
                r = add_place(p, PLACE_END, false, 0, &end);
        if (!r)
                r = join(p, NODE_ROW, maybe, end, &row);
        return r ? error_pass(r) : error_pass(keep_look(p, row, false, ret_node));
}

/* \R: a line end of any kind; CR LF is one. */
static int add_line_end(struct pattern *p, uint32_t *ret_node)
{
        struct charset set = { 0 };
        uint32_t cr, lf, pair, one, kept = 0;
        int r = add_character(p, '\r', &cr);

        if (!r)
                r = add_character(p, '\n', &lf);
        if (!r)
                r = join(p, NODE_ROW, cr, lf, &pair);
        if (!r)
                r = charset_add(&set, '\n', '\r');
        if (!r)
                r = charset_add(&set, 0x85, 0x85);
        if (!r)
                r = charset_add(&set, 0x2028, 0x2029);
        if (!r)
                r = pattern_keep_set(p, &set, &kept);
        charset_deinit(&set);
        if (!r)
                r = add_set(p, kept, &one);
        return r ? error_pass(r) : error_pass(join(p, NODE_CHOICE, pair, one, ret_node));
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
                return error_pass(add_last_line_end(p, ret_node));
        case 'R':
                pattern_skip(p, 2);
                return error_pass(add_line_end(p, ret_node));
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

/* (?i), (?m-i), (?i:...): sets the flags; *ret_scoped: they hold up to the end of this group. */
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
        int r = parse_choice(p, &inner);

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

/* Behind the bracket.  *ret_node is TREE_NONE for flags that hold from here on. */
static int parse_group(struct pattern *p, uint32_t *ret_node)
{
        const struct pattern_flags before = p->flags;
        bool scoped = true;
        int r;

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
        if (begins(p, "?#")) {
                while (p->left && *p->at != ')')
                        pattern_skip(p, 1);
                return error_pass(parse_group_end(p));
        }
        if (begins(p, "?<") || begins(p, "?P<")) {
                while (p->left && *p->at != '>')
                        pattern_skip(p, 1);
                if (!begins(p, ">"))
                        return pattern_refuse(p, "the name of a group has no end");
        } else if (begins(p, "?")) {
                r = parse_flags(p, &scoped);
                if (r)
                        return error_pass(r);
                if (!scoped)
                        return 0;
        }
        r = parse_choice(p, ret_node);
        if (!r)
                r = parse_group_end(p);
        p->flags = before;
        return error_pass(r);
}

/* ---- repeating ---- */

static bool parse_number(struct pattern *p, size_t *at, uint32_t *ret_number)
{
        size_t from = *at;
        uint32_t number = 0;

        while (*at < p->left && (unsigned)(p->at[*at] - '0') < 10 && number <= TREE_REPEATS_MAX)
                number = 10 * number + (uint32_t)(p->at[(*at)++] - '0');
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

static int parse_quantifiers(struct pattern *p, uint32_t *node)
{
        uint32_t least, most;
        size_t bytes;
        int r;

        for (;;) {
                bool braces = p->left && *p->at == '{';

                r = look_at_quantifier(p, &least, &most, &bytes);
                if (r || !bytes)
                        return error_pass(r);
                pattern_skip(p, bytes);
                if (!braces && p->left && *p->at == '+') {
                        pattern_skip(p, 1);
                        r = add_possessive(p, *node, least, most, node);
                } else {
                        bool lazy = p->left && *p->at == '?';

                        if (lazy)
                                pattern_skip(p, 1);
                        r = add_repeat(p, *node, least, most, lazy, node);
                }
                if (r)
                        return error_pass(r);
        }
}

/* ---- the whole ---- */

/* *ret_node is TREE_NONE for what matches nothing and is nothing: flags and comments. */
static int parse_part(struct pattern *p, uint32_t *ret_node)
{
        uint32_t code;
        unsigned bytes;

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
        case '*':
        case '+':
        case '?':
                return pattern_refuse(p, "there is nothing before '%c' to repeat", *p->at);
        default:
                bytes = unicode_next(p->at, p->left, &code);
                if (code == UNICODE_INVALID)
                        return pattern_refuse(p, "it is not UTF-8");
                pattern_skip(p, bytes);
                return error_pass(add_character(p, code, ret_node));
        }
}

static int parse_row(struct pattern *p, uint32_t *ret_node)
{
        uint32_t *link, node, row, last = TREE_NONE;
        int r = add_kind(p, NODE_ROW, &row);

        while (!r && p->left && *p->at != '|' && *p->at != ')') {
                r = parse_part(p, &node);
                if (r || node == TREE_NONE)
                        continue;
                r = parse_quantifiers(p, &node);
                if (r)
                        break;
                link = last == TREE_NONE ? &at(p, row)->child : &at(p, last)->next;
                *link = last = node;
        }
        *ret_node = row;
        return error_pass(r);
}

static int parse_choice(struct pattern *p, uint32_t *ret_node)
{
        uint32_t choice, last, node;
        int r;

        if (p->depth == TREE_DEPTH_MAX)
                return pattern_refuse(p, "its groups are nested more than %u deep", TREE_DEPTH_MAX);
        p->depth++;
        r = parse_row(p, &last);
        *ret_node = last;
        if (!r && p->left && *p->at == '|') {
                r = add_kind(p, NODE_CHOICE, &choice);
                if (r)
                        return error_pass(r);
                at(p, choice)->child = last;
                *ret_node = choice;
                while (!r && p->left && *p->at == '|') {
                        pattern_skip(p, 1);
                        r = parse_row(p, &node);
                        if (!r)
                                at(p, last)->next = node;
                        last = node;
                }
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
        int r = parse_choice(&p, &tree.root);

        if (!r && p.left)
                r = pattern_refuse(&p, "a ')' has no '('");
        if (r) {
                tree_deinit(&tree);
                return error_pass(r);
        }
        *ret_tree = tree;
        return 0;
}
