/*
 * Owners: which domain owns which blocks, and how many.  For the index only.
 *
 * A block belongs to the domain for which prefix_take() took it, with or without a name, until
 * it is free again.  An owner is in the table as long as at least one block belongs to it,
 * so there are never more owners than blocks.
 */
#ifndef DAEMON_CORE_PREFIX_OWNERS_H
#define DAEMON_CORE_PREFIX_OWNERS_H

#include "daemon/core/prefix.h"

#define NO_OWNER UINT32_MAX
#define NO_GIVER UINT32_MAX

/* Returns 0 or -ENOMEM; the caller must call owners_deinit() in both cases. */
int owners_init(struct prefix *prefix, uint32_t blocks);
void owners_deinit(struct prefix *prefix);

void owners_take(struct prefix *prefix, block_t block, uint64_t domain); /* free -> held */
void owners_hold(struct prefix *prefix, block_t block);                  /* kept -> held */
void owners_keep(struct prefix *prefix, block_t block);                  /* held -> kept */
void owners_give_up(struct prefix *prefix, block_t block);               /* kept -> free */

void owners_check(const struct prefix *prefix);

#endif
