/*
 * Looks at a model before its weights are fetched.  Of files with weights only the heads are
 * fetched, into files of the full size that are empty behind them; samovard reads no more to say
 * what a model is.
 */
#ifndef CLI_PULL_PREVIEW_H
#define CLI_PULL_PREVIEW_H

#include "cli/pull/choose.h"
#include "cli/pull/fetch.h"
#include "cli/pull/verdict.h"

/*
 * 0 and the verdict, which is not known if a head cannot be had; or -ECANCELED.  `files` are those
 * of the choice, in its order.
 */
int preview(struct web *web, const struct hub *hub, const struct choice *choice,
            const struct fetch_file *files, struct verdict *ret_verdict);

#endif
