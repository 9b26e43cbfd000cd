/*
 * Files that are shipped with samovar: where they are.
 *
 * The models: in the folder that $SAMOVAR_MODELS names, which is also that of pulled models
 * (store/store.h); otherwise in `models` beside the program's own folder, as in a build tree;
 * otherwise where it was installed.  Libraries of backends: if $SAMOVAR_LIBRARIES is set, only in
 * that folder; otherwise in `kernels`, or where they were installed.
 */
#ifndef DAEMON_START_SHIPPED_H
#define DAEMON_START_SHIPPED_H

#include <stddef.h>

#define SHIPPED_NAME       "teaspoon"
#define SHIPPED_DRAFT_NAME "pinch" /* the draft model of teaspoon */

/* 0, or -ENOENT with the places that were searched in *why, or -ENAMETOOLONG. */
int shipped_model(char *ret_path, size_t bytes, char *why, size_t why_bytes);
int shipped_draft(char *ret_path, size_t bytes, char *why, size_t why_bytes);
int shipped_library(char *ret_path, size_t bytes, char *why, size_t why_bytes);

#endif
