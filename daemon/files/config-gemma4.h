/*
 * What config.json of Gemma 4 alone has: heads of another shape in layers without a window, layers
 * that share keys and values, and inputs of layers.
 */
#ifndef DAEMON_FILES_CONFIG_GEMMA4_H
#define DAEMON_FILES_CONFIG_GEMMA4_H

#include "daemon/files/trait-reader.h"

/* `read` of the family's row (config-families.h). */
void config_gemma4_read(struct trait_reader *rd, struct traits *t);

#endif
