/*
 * Inspect: what a model's files are, and whether they can be served here.
 *
 * Everything that can be said without loading is: what the files are, what the model
 * is, its tokenizer, the memory that it needs with these settings, and how many
 * sequences then fit.  If it cannot be served, the first thing that is in the way.
 */
#ifndef DAEMON_INSPECT_H
#define DAEMON_INSPECT_H

#include "daemon/opening.h"

enum inspect_outcome { INSPECT_E_UNSERVED = 1 };

/* Prints it, down to why it cannot be served. */
int inspect(struct opening *opening, FILE *to);

#endif
