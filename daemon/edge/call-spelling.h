/*
 * Call spelling: texts of a dialect, with its marks as the model has them.
 */
#ifndef DAEMON_EDGE_CALL_SPELLING_H
#define DAEMON_EDGE_CALL_SPELLING_H

#include <stddef.h>

#include "daemon/constraint/regex-terms.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/value.h"

/*
 * The text lies in the arena.  A mark in it that is a control token is written as
 * grammar_token_bytes() writes that.  0 or -ENOMEM.
 */
int call_spell(const struct dialect *dialect, struct arena *arena, const char *text, size_t bytes,
               struct regex_text *ret_text);

#endif
