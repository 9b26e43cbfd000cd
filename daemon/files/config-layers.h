/*
 * What differs from layer to layer in a config.json: windows, and how q and k rotate.
 *
 * transformers has had several spellings.  Windows: `layer_types`, or a pattern, or rules of the
 * family.  Ropes: rope_theta and rope_scaling, or rope_parameters, or one rope_parameters for each
 * type of layer.
 */
#ifndef DAEMON_FILES_CONFIG_LAYERS_H
#define DAEMON_FILES_CONFIG_LAYERS_H

#include "daemon/files/config-families.h"

/* Sizes are read before.  Windows are read before ropes. */
void config_read_windows(struct trait_reader *rd, const struct config_family *family,
                         struct traits *t);
void config_read_ropes(struct trait_reader *rd, const struct config_family *family,
                       struct traits *t);

#endif
