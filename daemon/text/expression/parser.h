/*
 * The parser of regular expressions: makes a tree of a pattern.
 *
 * The syntax is that of Oniguruma (Ruby's), which the splitters in tokenizer files are written in.
 * In it ^ and $ are the borders of lines, . is anything but a newline, (?m) makes . match that too,
 * and classes may be nested and intersected: [a-z&&[^m]].
 *
 * Groups capture nothing.  A possessive quantifier is read if it stands behind one character or
 * class; a look behind is read if it is of one character.  Refused, by name: references to groups,
 * atomic groups, \G, \K, \X, conditions, and under (?i) a character that equals several letters.
 */
#ifndef DAEMON_TEXT_EXPRESSION_PARSER_H
#define DAEMON_TEXT_EXPRESSION_PARSER_H

#include "daemon/text/expression/tree.h"

/* 0, -EINVAL with the fault in *why, or -ENOMEM. */
int tree_parse(struct tree *ret_tree, const char *pattern, char *why, size_t why_bytes);

#endif
