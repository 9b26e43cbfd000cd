/*
 * SHA-1 in pieces, only to compare small files with the object ids of git: Hugging Face gives no
 * other digest of files that are not in LFS.
 */
#ifndef STORE_SHA1_H
#define STORE_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_HEX_BYTES 41 /* with a NUL */

struct sha1 {
        uint32_t state[5];
        uint64_t bytes;
        uint8_t block[64];
};

void sha1_begin(struct sha1 *hash);
/* Begins the object id of a file of so many bytes; its bytes follow. */
void sha1_begin_blob(struct sha1 *hash, uint64_t bytes);
void sha1_add(struct sha1 *hash, const void *bytes, size_t count);
void sha1_end_hex(struct sha1 *hash, char ret_hex[SHA1_HEX_BYTES]);

#endif
