/*
 * `"%s of %d" % (a, b)`, as in Python, and the filter `format`.
 */
#ifndef DAEMON_TEXT_TEMPLATE_FORMAT_H
#define DAEMON_TEXT_TEMPLATE_FORMAT_H

#include "daemon/text/template/text.h"

/* values: a tuple, a map for %(name)s, or one value. */
int format_percent(struct budget *budget, const struct text *format, struct value values,
                   struct value *ret_value);

#endif
