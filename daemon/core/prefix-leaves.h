/*
 * The leaves of what is kept: who is evicted next.  For prefix.c alone.
 *
 * A heap of blocks that nobody holds and nothing follows; whoever was dropped
 * first is at its top.  Each block knows its place, so it can leave from there.
 */
#ifndef DAEMON_CORE_PREFIX_LEAVES_H
#define DAEMON_CORE_PREFIX_LEAVES_H

#include "daemon/core/prefix.h"

#define LEAF_NONE UINT32_MAX

void leaves_add(struct prefix *prefix, block_t block);
void leaves_remove(struct prefix *prefix, block_t block);
block_t leaves_first(const struct prefix *prefix); /* there must be one */
void leaves_check(const struct prefix *prefix);

#endif
