/*
 * Values as text: Python's str(), repr() and json.dumps().
 */
#ifndef DAEMON_TEXT_TEMPLATE_PRINT_H
#define DAEMON_TEXT_TEMPLATE_PRINT_H

#include "daemon/text/template/text.h"

#define REAL_BYTES 40u

int print_value(struct budget *budget, struct builder *to, struct value value);
int print_repr(struct budget *budget, struct builder *to, struct value value);
/* str() of a value; a text is returned as it is. */
int print_text(struct budget *budget, struct value value, struct value *ret_text);

/* Writes the fewest digits that read back as the same number, in Python's format. */
void print_real(double real, char *to);

struct json_style {
        const struct text *indent; /* the text for one level; NULL: everything is on one line */
        const struct text *comma, *colon;
        bool ascii, sorted;
};

int print_json(struct budget *budget, struct builder *to, struct value value,
               const struct json_style *style);

#endif
