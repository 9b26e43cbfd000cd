#include "daemon/files/base64.h"

#include <stdint.h>

/* -1: none of the 64 characters. */
static int digit(char c)
{
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t count, char *to, size_t *ret_bytes)
{
        size_t made = 0, pads = 0;

        if (count % 4)
                return false;
        while (pads < 2 && pads < count && text[count - 1 - pads] == '=')
                pads++;
        for (size_t at = 0; at < count; at += 4) {
                uint32_t word = 0;

                for (size_t i = at; i < at + 4; i++) {
                        int value = i >= count - pads ? 0 : digit(text[i]);

                        if (value < 0)
                                return false;
                        word = word << 6 | (uint32_t)value;
                }
                to[made++] = (char)(word >> 16);
                to[made++] = (char)(word >> 8);
                to[made++] = (char)word;
        }
        *ret_bytes = made - pads;
        return true;
}
