/* Writes msgpack: the form in which the daemon takes messages and tools. */
#ifndef BRIDGE_CORE_PACK_H
#define BRIDGE_CORE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "json/bytes.h"
#include "json/document.h"

struct pack {
        struct bytes to;
        int result; /* 0 or -ENOMEM */
};

void pack_map(struct pack *pack, uint32_t pairs);
void pack_array(struct pack *pack, uint32_t elements);
void pack_text(struct pack *pack, const char *text, size_t bytes);
void pack_word(struct pack *pack, const char *text);
void pack_bool(struct pack *pack, bool value);
/* A value of a document with everything in it. */
void pack_node(struct pack *pack, const struct json_document *json, uint32_t node);

#endif
