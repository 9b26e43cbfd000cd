#include "json/bytes.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int bytes_reserve(struct bytes *bytes, size_t more)
{
        size_t size = bytes->size ? bytes->size : 256;
        char *at;

        if (more <= bytes->size - bytes->count)
                return 0;
        while (size - bytes->count < more) {
                if (size > SIZE_MAX / 2)
                        return -ENOMEM;
                size *= 2;
        }

        at = realloc(bytes->at, size);
        if (!at)
                return -ENOMEM;
        bytes->at = at;
        bytes->size = size;
        return 0;
}

int bytes_add(struct bytes *bytes, const void *what, size_t count)
{
        int r = bytes_reserve(bytes, count);

        if (r)
                return r;
        if (count)
                memcpy(bytes->at + bytes->count, what, count);
        bytes->count += count;
        return 0;
}

void bytes_deinit(struct bytes *bytes)
{
        free(bytes->at);
        *bytes = (struct bytes){ 0 };
}
