/* Between prefix.c and prefix-anchors.c only: what is asked to stay. */
#ifndef DAEMON_CORE_PREFIX_ANCHORS_H
#define DAEMON_CORE_PREFIX_ANCHORS_H

#include "daemon/core/prefix.h"

/* This block, which is no leaf, loses its name: its anchors go to the block before, or away. */
void anchors_rise(struct prefix *prefix, block_t block);

void anchors_check(const struct prefix *prefix);

#endif
