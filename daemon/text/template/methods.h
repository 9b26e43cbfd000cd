/*
 * The methods of strings that are in methods-split.c.
 */
#ifndef DAEMON_TEXT_TEMPLATE_METHODS_H
#define DAEMON_TEXT_TEMPLATE_METHODS_H

#include "daemon/text/template/builtins.h"

builtin_work text_strip, text_lstrip, text_rstrip, text_split, text_rsplit, text_splitlines,
        text_partition, text_rpartition;

#endif
