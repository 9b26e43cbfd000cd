/*
 * Values as text: as Python's str() and repr() have them, and json.dumps().
 */
#ifndef DAEMON_TEXT_TEMPLATE_PRINT_H
#define DAEMON_TEXT_TEMPLATE_PRINT_H

#include "daemon/text/template/run.h"

#define REAL_BYTES 40u

int print_value(struct run *run, struct builder *to, struct value value);
int print_repr(struct run *run, struct builder *to, struct value value);
/* str() of it; a text is itself. */
int print_text(struct run *run, struct value value, struct value *ret_text);

/* The fewest digits that are read back as the same number, in Python's spelling. */
void print_real(double real, char *to);

struct json_style {
        const struct text *indent; /* of one level; NULL: all in one line */
        const struct text *comma, *colon;
        bool ascii, sorted;
};

int print_json(struct run *run, struct builder *to, struct value value,
               const struct json_style *style);

#endif
