/*
 * The filters, in five files: for texts, for numbers, for lists, for JSON that is read, and select,
 * reject and map.
 */
#ifndef DAEMON_TEXT_TEMPLATE_FILTERS_H
#define DAEMON_TEXT_TEMPLATE_FILTERS_H

#include "daemon/text/template/builtins.h"

builtin_work filter_batch, filter_dictsort, filter_first, filter_groupby, filter_items, filter_join,
        filter_last, filter_length, filter_list, filter_map, filter_max, filter_min, filter_reject,
        filter_rejectattr, filter_reverse, filter_select, filter_selectattr, filter_slice,
        filter_sort, filter_sum, filter_unique, filter_from_json, filter_int, filter_float,
        filter_abs, filter_round;

#endif
