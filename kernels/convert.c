/*
 * A half has 1 sign bit, 5 exponent bits (bias 15) and 10 fraction bits; a float has 1, 8 (bias
 * 127) and 23. Every half is a float, so that conversion is exact. The conversion to half has
 * three ranges:
 *
 *      normal       2^-14 and up   rebias the exponent, round 13 bits away; a carry out of the
 *                                  fraction moves into the exponent, and a carry out of the
 *                                  exponent gives infinity without further code
 *      subnormal    below 2^-14    the unit is 2^-24 for every number: shift the fraction,
 *                                  including its hidden one, to that unit
 *      zero         up to 2^-25    the tie goes to even, which is zero
 */
#include "kernels/convert.h"

/* value / 2^shift, to nearest, ties to even */
static uint32_t shift_round(uint32_t value, uint32_t shift)
{
        uint32_t half = UINT32_C(1) << (shift - 1);
        uint32_t rest = value & ((half << 1) - 1);
        uint32_t whole = value >> shift;

        return whole + (rest > half || (rest == half && (whole & 1)));
}

uint16_t float_to_half(float f)
{
        uint32_t bits = float_bits(f);
        uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
        uint32_t exponent = bits >> 23 & 255;
        uint32_t fraction = bits & 0x7fffff;

        if (exponent == 255 && fraction)
                return (uint16_t)(sign | 0x7e00 | fraction >> 13);
        if (exponent > 127 + 15)
                return sign | 0x7c00;
        if (exponent > 127 - 15)
                return (uint16_t)(sign + shift_round((exponent - (127 - 15)) << 23 | fraction, 13));
        if (exponent < 127 - 25)
                return sign;
        /* from 2^-25 to 2^-14: 14 to 24 bits are rounded away */
        return (uint16_t)(sign + shift_round(fraction | 0x800000, 127 - 1 - exponent));
}

/* E4M3: sign 1, exponent 4 (bias 7), fraction 3; the unit of subnormals is 2^-9. */
float e4m3_to_float(uint8_t byte)
{
        uint32_t sign = (uint32_t)(byte & 0x80) << 24;
        uint32_t exponent = byte >> 3 & 15;
        uint32_t fraction = byte & 7;

        if (exponent == 15 && fraction == 7)
                return bits_float(sign | 0x7fc00000);
        if (exponent)
                return bits_float(sign | (exponent + 127 - 7) << 23 | fraction << 20);
        return bits_float(float_bits((float)fraction * 0x1p-9f) | sign);
}

uint8_t float_to_e4m3(float f)
{
        uint32_t bits = float_bits(f);
        uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
        uint32_t exponent = bits >> 23 & 255;
        uint32_t fraction = bits & 0x7fffff;
        uint32_t rounded;

        if (exponent > 127 + 8)
                return sign | 0x7f;
        if (exponent < 127 - 10)
                return sign;
        if (exponent > 127 - 7)
                rounded = shift_round((exponent - (127 - 7)) << 23 | fraction, 20);
        else /* from 2^-10 to 2^-6: 21 to 24 bits are rounded away */
                rounded = shift_round(fraction | 0x800000, 127 + 14 - exponent);
        return (uint8_t)(sign | (rounded < 0x7f ? rounded : 0x7f));
}
