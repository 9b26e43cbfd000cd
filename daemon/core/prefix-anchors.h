/* Anchors (pins), which delay the eviction of a text.  For prefix.c and prefix-anchors.c only. */
#ifndef DAEMON_CORE_PREFIX_ANCHORS_H
#define DAEMON_CORE_PREFIX_ANCHORS_H

#include "daemon/core/prefix.h"

/*
 * To be called when `block` loses its name; neither it nor its parent may be in a heap of leaves.
 * Its anchors move to its parent; without a parent they are at no block any more.
 */
void anchors_rise(struct prefix *prefix, block_t block);

void anchors_check(const struct prefix *prefix);

#endif
