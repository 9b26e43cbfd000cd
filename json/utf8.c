#include "json/utf8.h"

#include <stdint.h>
#include <string.h>

/*
 * The allowed range of the second byte excludes overlong forms (E0, F0), surrogates (ED) and values
 * above U+10FFFF (F4).
 */
int utf8_character(const char *text, size_t bytes)
{
        const uint8_t *at = (const uint8_t *)text;
        uint8_t low = 0x80, high = 0xBF;
        int length;

        if (at[0] < 0x80)
                return 1;
        if (at[0] < 0xC2 || at[0] > 0xF4)
                return -1;
        length = at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
        if (at[0] == 0xE0)
                low = 0xA0;
        if (at[0] == 0xED)
                high = 0x9F;
        if (at[0] == 0xF0)
                low = 0x90;
        if (at[0] == 0xF4)
                high = 0x8F;

        for (int i = 1; i < length; i++) {
                if ((size_t)i == bytes)
                        return 0;
                if (at[i] < low || at[i] > high)
                        return -1;
                low = 0x80;
                high = 0xBF;
        }
        return length;
}

/* Text is mostly ASCII and prompts have megabytes, so ASCII is checked eight bytes at a time. */
size_t utf8_valid(const char *text, size_t bytes)
{
        size_t at = 0;

        while (at < bytes) {
                uint64_t eight;
                int length;

                if (bytes - at >= sizeof(eight)) {
                        memcpy(&eight, text + at, sizeof(eight));
                        if (!(eight & 0x8080808080808080u)) {
                                at += sizeof(eight);
                                continue;
                        }
                }
                length = utf8_character(text + at, bytes - at);
                if (length <= 0)
                        break;
                at += (size_t)length;
        }
        return at;
}

int32_t utf8_next(const char *bytes, size_t count, size_t *ret_length)
{
        const unsigned char *at = (const unsigned char *)bytes;
        int length = utf8_character(bytes, count);
        int32_t point;

        *ret_length = 1;
        if (length <= 0)
                return length ? -1 : -2;
        *ret_length = (size_t)length;
        point = length == 1 ? at[0] : at[0] & (0x7f >> length);
        for (int i = 1; i < length; i++)
                point = point << 6 | (at[i] & 0x3f);
        return point;
}

int utf8_is_control(int32_t point)
{
        if (point == '\n' || point == '\t')
                return 0;
        return (point >= 0 && point < 0x20) || (point >= 0x7f && point < 0xa0);
}
