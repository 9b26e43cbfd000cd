/*
 * Owners: whose own the blocks are, and how many each has.  For the index alone.
 *
 * A block belongs to the domain that it was dealt for, with or without a name, until it
 * is dealt anew.  An owner is in the table as long as anything belongs to him,
 * so there are never more of them than blocks.
 */
#ifndef DAEMON_CORE_PREFIX_OWNERS_H
#define DAEMON_CORE_PREFIX_OWNERS_H

#include "daemon/core/prefix.h"

#define NO_OWNER UINT32_MAX
#define NO_GIVER UINT32_MAX

int owners_init(struct prefix *prefix,
                uint32_t blocks); /* 0 or -ENOMEM; owners_deinit() after both */
void owners_deinit(struct prefix *prefix);

void owners_take(struct prefix *prefix, block_t block, uint64_t domain); /* free -> held */
void owners_hold(struct prefix *prefix, block_t block);                  /* kept -> held */
void owners_keep(struct prefix *prefix, block_t block);                  /* held -> kept */
void owners_give_up(struct prefix *prefix, block_t block);               /* kept -> free */

void owners_check(const struct prefix *prefix);

#endif
