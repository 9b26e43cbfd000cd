/* A growing byte buffer, used all over the library.  Its memory shrinks only in bytes_deinit(). */
#ifndef JSON_BYTES_H
#define JSON_BYTES_H

#include <stddef.h>

struct bytes {
        char *at;
        size_t count, size;
};

/* Makes space for `more` bytes behind the present ones: 0 or -ENOMEM. */
int bytes_reserve(struct bytes *bytes, size_t more);
int bytes_add(struct bytes *bytes, const void *what, size_t count);
void bytes_deinit(struct bytes *bytes);

#endif
