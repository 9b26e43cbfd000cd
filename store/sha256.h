/* SHA-256 (FIPS 180-4), in pieces. */
#ifndef STORE_SHA256_H
#define STORE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES     32
#define SHA256_HEX_BYTES 65 /* with a NUL */

struct sha256 {
        uint32_t state[8];
        uint64_t bytes; /* so far */
        uint8_t block[64];
};

/* For tests: do without the instructions that a processor has for this. */
extern bool sha256_plain;

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t count);
void sha256_end(struct sha256 *hash, uint8_t ret_digest[SHA256_BYTES]);
/* The same, in small hexadecimal digits. */
void sha256_end_hex(struct sha256 *hash, char ret_hex[SHA256_HEX_BYTES]);

#endif
