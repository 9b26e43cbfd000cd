/*
 * What comes with samovar beside its programs: where it lies.
 *
 * The model: in the folder that $SAMOVAR_MODELS names, if that is set, and nowhere else.  Otherwise
 * in `models` beside the program's own folder, where a build tree has it, else where it was installed.
 * Libraries of backends: $SAMOVAR_LIBRARIES, `kernels`, or where they were installed, likewise.
 */
#ifndef DAEMON_SHIPPED_H
#define DAEMON_SHIPPED_H

#include <stddef.h>

#define SHIPPED_NAME "teaspoon"

/* 0, or -ENOENT with the places that were looked at in *why, or -ENAMETOOLONG. */
int shipped_model(char *ret_path, size_t bytes, char *why, size_t why_bytes);
int shipped_library(char *ret_path, size_t bytes, char *why, size_t why_bytes);

#endif
