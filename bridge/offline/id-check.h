/*
 * Finds a custom_id that two lines have, among any number of them, in constant memory.
 *
 * Each id becomes a hash of 128 bits, with a key that no one knows.  The hashes are sorted in
 * memory; when they are too many, sorted runs of them go to a file without a name, and are merged
 * at the end.  Loop thread only.
 */
#ifndef BRIDGE_OFFLINE_ID_CHECK_H
#define BRIDGE_OFFLINE_ID_CHECK_H

#include <stdint.h>

#include "bridge/core/arena.h"

struct id_check;

/*
 * `folder` is for the file of runs.  A run has `run_max` hashes, of 24 bytes; 0: a good number.
 * NULL: out of memory.
 */
struct id_check *id_check_new(const char *folder, uint32_t run_max);
struct id_check *id_check_free(struct id_check *check); /* takes NULL */

/* The id of a line.  0, or a negative errno. */
int id_check_add(struct id_check *check, struct text id, uint32_t line);

/*
 * After the last one.  0: all differ; 1: two lines have the same, of all such pairs the one whose
 * second line comes first; or a negative errno.
 */
int id_check_end(struct id_check *check, uint32_t *ret_first, uint32_t *ret_second);

#endif
