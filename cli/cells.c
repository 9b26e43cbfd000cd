#include "cli/cells.h"

#include <string.h>

#include "json/utf8.h"

struct range {
        int32_t first, last;
};

/*
 * Marks and joiners that take no cell.  The list has what names are likely to contain, not all of
 * Unicode: a character that is missing here makes a column one cell too wide.
 */
static const struct range narrow[] = {
        { 0x0300, 0x036f },   { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a },
        { 0x064b, 0x065f },   { 0x0900, 0x0902 }, { 0x093c, 0x093c }, { 0x0941, 0x0948 },
        { 0x094d, 0x094d },   { 0x0e31, 0x0e31 }, { 0x0e34, 0x0e3a }, { 0x0e47, 0x0e4e },
        { 0x1ab0, 0x1aff },   { 0x1dc0, 0x1dff }, { 0x200b, 0x200d }, { 0x2060, 0x2060 },
        { 0x20d0, 0x20f0 },   { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
        { 0xe0100, 0xe01ef },
};

/* East Asian Wide and Fullwidth, and pictures that terminals draw wide. */
static const struct range wide[] = {
        { 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x23e9, 0x23ec },   { 0x23f0, 0x23f0 },
        { 0x23f3, 0x23f3 },   { 0x25fd, 0x25fe },   { 0x2614, 0x2615 },   { 0x2648, 0x2653 },
        { 0x267f, 0x267f },   { 0x2693, 0x2693 },   { 0x26a1, 0x26a1 },   { 0x26aa, 0x26ab },
        { 0x26bd, 0x26be },   { 0x26c4, 0x26c5 },   { 0x26ce, 0x26ce },   { 0x26d4, 0x26d4 },
        { 0x26ea, 0x26ea },   { 0x26f2, 0x26f3 },   { 0x26f5, 0x26f5 },   { 0x26fa, 0x26fa },
        { 0x26fd, 0x26fd },   { 0x2705, 0x2705 },   { 0x270a, 0x270b },   { 0x2728, 0x2728 },
        { 0x274c, 0x274c },   { 0x274e, 0x274e },   { 0x2753, 0x2755 },   { 0x2757, 0x2757 },
        { 0x2795, 0x2797 },   { 0x27b0, 0x27b0 },   { 0x27bf, 0x27bf },   { 0x2b1b, 0x2b1c },
        { 0x2b50, 0x2b50 },   { 0x2b55, 0x2b55 },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },
        { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },   { 0xa960, 0xa97f },
        { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
        { 0xffe0, 0xffe6 },   { 0x16fe0, 0x18cff }, { 0x1aff0, 0x1b2ff }, { 0x1f004, 0x1f004 },
        { 0x1f0cf, 0x1f0cf }, { 0x1f18e, 0x1f18e }, { 0x1f191, 0x1f19a }, { 0x1f200, 0x1f320 },
        { 0x1f32d, 0x1f335 }, { 0x1f337, 0x1f37c }, { 0x1f37e, 0x1f393 }, { 0x1f3a0, 0x1f3ca },
        { 0x1f3cf, 0x1f3d3 }, { 0x1f3e0, 0x1f3f0 }, { 0x1f3f4, 0x1f3f4 }, { 0x1f3f8, 0x1f43e },
        { 0x1f440, 0x1f440 }, { 0x1f442, 0x1f4fc }, { 0x1f4ff, 0x1f53d }, { 0x1f54b, 0x1f54e },
        { 0x1f550, 0x1f567 }, { 0x1f57a, 0x1f57a }, { 0x1f595, 0x1f596 }, { 0x1f5a4, 0x1f5a4 },
        { 0x1f5fb, 0x1f64f }, { 0x1f680, 0x1f6c5 }, { 0x1f6cc, 0x1f6cc }, { 0x1f6d0, 0x1f6d2 },
        { 0x1f6d5, 0x1f6d7 }, { 0x1f6dc, 0x1f6df }, { 0x1f6eb, 0x1f6ec }, { 0x1f6f4, 0x1f6fc },
        { 0x1f7e0, 0x1f7eb }, { 0x1f7f0, 0x1f7f0 }, { 0x1f90c, 0x1f93a }, { 0x1f93c, 0x1f945 },
        { 0x1f947, 0x1f9ff }, { 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd },
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static bool is_in(int32_t point, const struct range *ranges, size_t count)
{
        size_t low = 0, high = count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (point > ranges[middle].last)
                        low = middle + 1;
                else if (point < ranges[middle].first)
                        high = middle;
                else
                        return true;
        }
        return false;
}

unsigned cell_width(int32_t point)
{
        if (point < 0x300)
                return 1;
        if (is_in(point, narrow, LENGTH(narrow)))
                return 0;
        return is_in(point, wide, LENGTH(wide)) ? 2 : 1;
}

bool cell_is_safe(int32_t point)
{
        static const struct range directions[] = {
                { 0x061c, 0x061c }, { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 }
        };

        return point >= ' ' && !utf8_is_control(point) &&
               !is_in(point, directions, LENGTH(directions));
}

int cells_add(struct bytes *to, const char *text, unsigned cells, unsigned *ret_used)
{
        size_t bytes = strlen(text);
        unsigned used = 0;
        int r = 0;

        for (size_t at = 0, length; at < bytes && !r; at += length) {
                int32_t point = utf8_next(text + at, bytes - at, &length);
                bool safe = point >= 0 && cell_is_safe(point);
                unsigned width = safe ? cell_width(point) : 1;

                if (used + width > cells)
                        break;
                used += width;
                r = bytes_add(to, safe ? text + at : "?", safe ? length : 1);
        }
        if (ret_used)
                *ret_used = used;
        return r;
}
