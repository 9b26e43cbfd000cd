/* Classes such as [^a-z\s], and the escapes that are allowed inside and outside of them. */
#ifndef DAEMON_TEXT_EXPRESSION_CLASS_H
#define DAEMON_TEXT_EXPRESSION_CLASS_H

#include "daemon/text/expression/pattern.h"

enum class_outcome { CLASS_E_CHARACTER = 1 };

/* From '[' to behind ']'; case is folded if the flags say so.  0, -EINVAL or -ENOMEM. */
int class_parse(struct pattern *p, struct charset *ret_set);

/*
 * From '\' on.  0: it is a set; CLASS_E_CHARACTER: it is the character *ret_code, not folded;
 * -EINVAL, -ENOMEM.
 */
int class_escape(struct pattern *p, struct charset *ret_set, uint32_t *ret_code);

#endif
