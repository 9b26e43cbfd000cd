/*
 * Inspect: describes a model's files and tells whether they can be served here.
 *
 * It prints everything that is known without loading: the kind of files, the model, its tokenizer,
 * the memory that it needs with these settings, and how many sequences then fit.  If the model
 * cannot be served, it prints the first reason.
 */
#ifndef DAEMON_START_INSPECT_H
#define DAEMON_START_INSPECT_H

#include "daemon/start/model-setup.h"

enum inspect_outcome { INSPECT_E_UNSERVED = 1 };

/* Prints the description, and at the end why the model cannot be served, if so. */
int inspect(struct model_setup *setup, FILE *to);

#endif
