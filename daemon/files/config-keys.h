/*
 * How trait-reader.h finds a key in a config.json.  "rope_parameters.factor" is the member `factor`
 * of the object `rope_parameters` in the file's object, and so on for any depth.
 */
#ifndef DAEMON_FILES_CONFIG_KEYS_H
#define DAEMON_FILES_CONFIG_KEYS_H

#include "daemon/files/trait-reader.h"

/* Its `from` is a struct json_document, and `node` is the value that was found. */
extern const struct trait_source config_keys;

#endif
