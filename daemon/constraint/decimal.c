#include "daemon/constraint/decimal.h"

#include <stdlib.h>
#include <string.h>

static bool place_digits(const char *digits, int count, int whole, struct decimal *ret_decimal)
{
        memset(ret_decimal, 0, sizeof(*ret_decimal));
        while (count && digits[0] == '0') {
                digits++;
                count--;
                whole--;
        }
        while (count && digits[count - 1] == '0')
                count--;
        if (count == 0) {
                ret_decimal->whole = ret_decimal->count = 1;
                return true;
        }
        if (whole > NUMBER_DIGITS || count - whole > NUMBER_DIGITS)
                return false;
        if (whole <= 0) { /* 0.00ddd */
                for (int i = 0; i < count; i++)
                        ret_decimal->digits[1 - whole + i] = digits[i] - '0';
                ret_decimal->whole = 1;
                ret_decimal->count = 1 - whole + count;
                return ret_decimal->count <= NUMBER_DIGITS;
        }
        for (int i = 0; i < count; i++)
                ret_decimal->digits[i] = digits[i] - '0';
        ret_decimal->whole = whole;
        ret_decimal->count = count > whole ? count : whole;
        return true;
}

bool decimal_read(const char *text, struct decimal *ret_decimal, bool *ret_negative)
{
        char digits[4 * NUMBER_DIGITS];
        int count = 0, whole = -1;
        long exponent = 0;

        *ret_negative = *text == '-';
        for (text += *text == '-'; *text && *text != 'e' && *text != 'E'; text++) {
                if (*text == '.') {
                        whole = count;
                        continue;
                }
                if (count == (int)sizeof(digits))
                        return false;
                digits[count++] = *text;
        }
        if (whole < 0)
                whole = count;
        if (*text)
                exponent = strtol(text + 1, NULL, 10);
        if (exponent > 2 * NUMBER_DIGITS || exponent < -2 * NUMBER_DIGITS)
                return false;
        return place_digits(digits, count, whole + (int)exponent, ret_decimal);
}

int decimal_compare(const struct decimal *one, const struct decimal *other)
{
        if (one->whole != other->whole)
                return one->whole < other->whole ? -1 : 1;
        return memcmp(one->digits, other->digits, sizeof(one->digits));
}

static void drop_zeros(struct decimal *decimal)
{
        while (decimal->count > decimal->whole && decimal->digits[decimal->count - 1] == 0)
                decimal->count--;
}

bool decimal_is_zero(const struct decimal *decimal)
{
        return decimal->whole == 1 && decimal->count == 1 && decimal->digits[0] == 0;
}

/* Cuts digits behind the point beyond `scale`; true if there were any. */
static bool cut(struct decimal *decimal, unsigned scale)
{
        unsigned most = decimal->whole + scale;

        if (decimal->count <= most)
                return false;
        memset(decimal->digits + most, 0, sizeof(decimal->digits) - most);
        decimal->count = most;
        drop_zeros(decimal);
        return true;
}

bool decimal_up(struct decimal *decimal, unsigned scale, bool above)
{
        unsigned at = decimal->whole + scale;

        if (!cut(decimal, scale) && !above)
                return true;
        while (at > 0 && decimal->digits[at - 1] == 9)
                decimal->digits[--at] = 0;
        if (at > 0) {
                decimal->digits[at - 1]++;
        } else {
                if (decimal->whole == NUMBER_DIGITS)
                        return false;
                memmove(decimal->digits + 1, decimal->digits, sizeof(decimal->digits) - 1);
                decimal->digits[0] = 1;
                decimal->whole++;
        }
        decimal->count = decimal->whole + scale;
        drop_zeros(decimal);
        return true;
}

bool decimal_down(struct decimal *decimal, unsigned scale, bool below)
{
        unsigned at = decimal->whole + scale;

        if (cut(decimal, scale) || !below)
                return true;
        if (decimal_is_zero(decimal))
                return false;
        while (decimal->digits[at - 1] == 0)
                decimal->digits[--at] = 9;
        decimal->digits[at - 1]--;
        if (decimal->digits[0] == 0 && decimal->whole > 1) {
                memmove(decimal->digits, decimal->digits + 1, sizeof(decimal->digits) - 1);
                decimal->whole--;
        }
        decimal->count = decimal->whole + scale;
        drop_zeros(decimal);
        return true;
}
