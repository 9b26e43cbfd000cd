/*
 * Python's operators for numbers, strings and lists: + - * / // % ** and signs.
 */
#ifndef DAEMON_TEXT_TEMPLATE_OPERATE_H
#define DAEMON_TEXT_TEMPLATE_OPERATE_H

#include "daemon/text/template/budget.h"
#include "daemon/text/template/code.h"

int value_binary(struct budget *budget, enum binary op, struct value a, struct value b,
                 struct value *ret_value);
int value_sign(struct budget *budget, struct value value, bool negate, struct value *ret_value);

#endif
