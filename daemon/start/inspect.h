/*
 * Inspect: describes a model's files and tells whether they can be served here.
 *
 * It prints everything that is known without loading: the kind of files, the model, its tokenizer,
 * the memory that it needs with these settings, how many sequences then fit, and which
 * quantisations of it would fit.  If the model cannot be served, it prints the first reason.
 */
#ifndef DAEMON_START_INSPECT_H
#define DAEMON_START_INSPECT_H

#include "daemon/start/model-setup.h"

enum inspect_outcome { INSPECT_E_UNSERVED = 1 };

/*
 * Prints the description, and why the model cannot be served, if so: as text, or with the setting
 * json as one object.  Returns 0, INSPECT_E_UNSERVED or a negative errno.
 */
int inspect(struct model_setup *setup, FILE *to);

#endif
