/* The ending of a noun behind its count: "1 token", "2 tokens". */
#ifndef JSON_PLURAL_H
#define JSON_PLURAL_H

#include <stdint.h>

static inline const char *plural(uint64_t count)
{
        return count == 1 ? "" : "s";
}

#endif
