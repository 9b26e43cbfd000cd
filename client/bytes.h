/* Bytes that grow: the library's buffers.  They never shrink before the end. */
#ifndef CLIENT_BYTES_H
#define CLIENT_BYTES_H

#include <stddef.h>

struct bytes {
        char *at;
        size_t count, size;
};

/* Room for `more` behind what is there: 0 or -ENOMEM. */
int bytes_reserve(struct bytes *bytes, size_t more);
int bytes_add(struct bytes *bytes, const void *what, size_t count);
void bytes_deinit(struct bytes *bytes);

#endif
