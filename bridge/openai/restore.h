/*
 * A start: takes what the last process has left in the state folder.
 *
 * It sets files aside that it cannot use, with one line in the log that names each: records that
 * are damaged or of another version, and names that are none of ours.  Data that no record names is
 * of a change that was cut off before any client heard of it, and is removed.
 */
#ifndef BRIDGE_OPENAI_RESTORE_H
#define BRIDGE_OPENAI_RESTORE_H

#include <stddef.h>

#include "bridge/core/context.h"

/* The bridge has its state folder and its stores.  A negative errno, and why. */
int openai_restore(struct bridge *bridge, char *why, size_t why_bytes);

#endif
