/*
 * Reads a GGUF header.
 *
 *      "GGUF" version u32 | tensors u64 | pairs u64
 *      pair    key string | type u32 | value               } times pairs
 *      tensor  name string | rank u32 | sizes u64 each     } times tensors
 *              | type u32 | offset u64 from the data
 *      padding to the alignment | data
 *
 * A string is a u64 length and its bytes; an array is a type, a u64 count and its elements.
 * Nothing in the header tells its length.  So it is read in growing pieces, and parsed from the
 * start each time.  `have` bytes are read so far, and `limit` is the most that there can be.
 * Beyond `have` the parser asks for more; beyond `limit` the file is faulty.
 *
 * The file's sizes are used in only three ways.  take() compares a length with the bytes that are
 * left.  take_count() does the same for a count of things that have a least size.  mul() multiplies
 * sizes.  After these checks the table's values can be trusted.
 *
 * The piece that was parsed successfully is kept, because keys, names and strings are in it.  They
 * are made C strings in place: each is moved one byte down, into its own length field.  That field
 * has been read by then, and the move leaves space for the NUL.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/gguf-reader.h"

#define KEY_BYTES_MAX    65535u
#define NESTING_MAX      4u
#define RANK_MAX         4u
#define PAIR_BYTES_MIN   (8 + 1 + 4 + 1)
#define TENSOR_BYTES_MIN (8 + 1 + 4 + 8 + 4 + 8)

/* Bytes of a value; for a string or an array, the least possible. */
static const uint8_t value_bytes[GGUF_TYPE_N] = { 1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8 };

/* How numbers are stored in a tensor: blocks of `numbers` numbers in `bytes` bytes. */
static const struct format {
        uint32_t id;
        uint16_t numbers, bytes;
        const char *unserved;
        enum row_type type;
} formats[] = {
        { 0, 1, 4, NULL, ROW_F32 },
        { 1, 1, 2, NULL, ROW_F16 },
        { 30, 1, 2, NULL, ROW_BF16 },
        { 2, 32, 18, NULL, ROW_Q4_0 },
        { 8, 32, 34, NULL, ROW_Q8_0 },
        { 12, 256, 144, NULL, ROW_Q4_K },
        { 13, 256, 176, NULL, ROW_Q5_K },
        { 14, 256, 210, NULL, ROW_Q6_K },
        { 3, 32, 20, NULL, ROW_Q4_1 },
        { 6, 32, 22, NULL, ROW_Q5_0 },
        { 7, 32, 24, NULL, ROW_Q5_1 },
        { 9, 32, 36, "its type Q8_1 is one of activations, not of weights" },
        { 10, 256, 84, NULL, ROW_Q2_K },
        { 11, 256, 110, NULL, ROW_Q3_K },
        { 15, 256, 292, "its type Q8_K is one of activations, not of weights" },
        { 16, 256, 66, NULL, ROW_IQ2_XXS },
        { 17, 256, 74, NULL, ROW_IQ2_XS },
        { 18, 256, 98, NULL, ROW_IQ3_XXS },
        { 19, 256, 50, NULL, ROW_IQ1_S },
        { 20, 32, 18, NULL, ROW_IQ4_NL },
        { 21, 256, 110, NULL, ROW_IQ3_S },
        { 22, 256, 82, NULL, ROW_IQ2_S },
        { 23, 256, 136, NULL, ROW_IQ4_XS },
        { 24, 1, 1, "its type I8 is not supported" },
        { 25, 1, 2, "its type I16 is not supported" },
        { 26, 1, 4, "its type I32 is not supported" },
        { 27, 1, 8, "its type I64 is not supported" },
        { 28, 1, 8, "its type F64 is not supported" },
        { 29, 256, 56, NULL, ROW_IQ1_M },
        { 34, 256, 54, NULL, ROW_TQ1_0 },
        { 35, 256, 66, NULL, ROW_TQ2_0 },
        { 39, 32, 17, NULL, ROW_MXFP4 },
        { 40, 64, 36, NULL, ROW_NVFP4 },
        { 41, 128, 18, "its type Q1_0 is not supported yet" },
};

/* An unknown type: the tensor's size is not known, so only its start is checked. */
static const struct format format_unknown = { .unserved = "its type is unknown" };

static bool mul(uint64_t a, uint64_t b, uint64_t *ret)
{
        return !__builtin_mul_overflow(a, b, ret);
}

void gguf_reader_fault(const struct gguf_reader *r, const char *format, ...)
{
        va_list args;
        int n = 0;

        if (r->what && r->name)
                n = snprintf(r->why, r->why_bytes, "%s '%s': ", r->what, shown(r->name).text);
        else if (r->what)
                n = snprintf(r->why, r->why_bytes, "%s %" PRIu64 ": ", r->what, r->index);
        if ((size_t)n < r->why_bytes) {
                va_start(args, format);
                vsnprintf(r->why + n, r->why_bytes - (size_t)n, format, args);
                va_end(args);
        }
}

static int take(struct gguf_reader *r, uint64_t count, uint8_t **ret_bytes)
{
        if (count > r->limit - r->at)
                return gguf_reader_refuse(r,
                                          "%" PRIu64 " bytes are needed at offset %" PRIu64
                                          ", but the header must end by %" PRIu64,
                                          count, r->at, r->limit);
        if (count > r->have - r->at)
                return GGUF_E_MORE;
        *ret_bytes = r->bytes + r->at;
        r->at += count;
        return 0;
}

static int take_u32(struct gguf_reader *r, uint32_t *ret_value)
{
        uint8_t *p = NULL;
        int k = take(r, 4, &p);

        if (k)
                return k;
        memcpy(ret_value, p, 4);
        *ret_value = le32toh(*ret_value);
        return 0;
}

static int take_u64(struct gguf_reader *r, uint64_t *ret_value)
{
        uint8_t *p = NULL;
        int k = take(r, 8, &p);

        if (k)
                return k;
        memcpy(ret_value, p, 8);
        *ret_value = le64toh(*ret_value);
        return 0;
}

/* Reads a count of things of at least `least` bytes each; refuses a count that cannot fit. */
static int take_count(struct gguf_reader *r, const char *things, uint64_t least,
                      uint64_t *ret_count)
{
        uint64_t count, left;
        int k = take_u64(r, &count);

        if (k)
                return k;
        left = r->limit - r->at;
        if (count > left / least)
                return gguf_reader_refuse(r, "%" PRIu64 " %s do not fit in %" PRIu64 " bytes",
                                          count, things, left);
        *ret_count = count;
        return 0;
}

static int take_string(struct gguf_reader *r, const char *role, uint64_t bytes_max, char **ret_text)
{
        uint64_t count;
        uint8_t *p;
        int k = take_count(r, "bytes of a string", 1, &count);

        if (k)
                return k;
        if (count > bytes_max)
                return gguf_reader_refuse(r, "%s of %" PRIu64 " bytes, the limit is %" PRIu64, role,
                                          count, bytes_max);
        k = take(r, count, &p);
        if (k)
                return k;
        if (memchr(p, 0, count))
                return gguf_reader_refuse(r, "%s with a zero byte", role);
        memmove(p - 1, p, count);
        p[(int64_t)count - 1] = 0;
        *ret_text = (char *)p - 1;
        return 0;
}

static int take_name(struct gguf_reader *r, const char *role, uint64_t bytes_max,
                     const char **ret_name)
{
        char *name;
        int k = take_string(r, role, bytes_max, &name);

        if (k)
                return k;
        if (!*name)
                return gguf_reader_refuse(r, "an empty %s", role);
        r->name = name;
        *ret_name = name;
        return 0;
}

/* Skips an array; checks only that its elements are inside the file. */
static int skip_array(struct gguf_reader *r, unsigned depth)
{
        uint64_t count, bytes;
        uint32_t type;
        uint8_t *p;
        int k = take_u32(r, &type);

        if (k)
                return k;
        if (type >= GGUF_TYPE_N)
                return gguf_reader_refuse(r, "an array of the unknown type %" PRIu32, type);
        if (depth == NESTING_MAX)
                return gguf_reader_refuse(r, "arrays nested deeper than %u", NESTING_MAX);
        k = take_count(r, "elements of an array", value_bytes[type], &count);
        if (k)
                return k;
        if (type != GGUF_STRING && type != GGUF_ARRAY)
                return take(r, count * value_bytes[type], &p);
        for (uint64_t i = 0; i < count; i++) {
                if (type == GGUF_ARRAY)
                        k = skip_array(r, depth + 1);
                else if (!(k = take_count(r, "bytes of a string", 1, &bytes)))
                        k = take(r, bytes, &p);
                if (k)
                        return k;
        }
        return 0;
}

int gguf_reader_take_pair(struct gguf_reader *r, struct gguf_pair *ret_pair)
{
        struct gguf_pair pair;
        uint8_t *value = NULL;
        char *text;
        int k;

        if ((k = take_name(r, "key", KEY_BYTES_MAX, &pair.key)) || (k = take_u32(r, &pair.type)))
                return k;
        if (pair.type >= GGUF_TYPE_N)
                return gguf_reader_refuse(r, "a value of the unknown type %" PRIu32, pair.type);
        if (pair.type == GGUF_STRING) {
                k = take_string(r, "a string", UINT64_MAX, &text);
                value = k ? NULL : (uint8_t *)text;
        } else if (pair.type == GGUF_ARRAY) {
                value = r->bytes + r->at;
                k = skip_array(r, 0);
        } else {
                k = take(r, value_bytes[pair.type], &value);
        }
        if (k)
                return k;
        if (pair.type == GGUF_BOOL && *value > 1)
                return gguf_reader_refuse(r, "a boolean with the value %u", *value);
        pair.value = value;
        *ret_pair = pair;
        return 0;
}

static const struct format *format_of(uint32_t id)
{
        for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
                if (formats[i].id == id)
                        return &formats[i];
        return &format_unknown;
}

/* Computes rows, columns and bytes from sizes and type. */
static int tensor_shape(struct gguf_reader *r, struct tensor *t, const uint64_t size[RANK_MAX],
                        uint32_t type)
{
        const struct format *format = format_of(type);
        uint64_t numbers = 1, bytes = 0;

        for (unsigned i = 0; i < RANK_MAX; i++) {
                if (!size[i] || size[i] > UINT32_MAX)
                        return gguf_reader_refuse(r, "size %u is %" PRIu64 ", out of bounds", i,
                                                  size[i]);
                if (!mul(numbers, size[i], &numbers))
                        return gguf_reader_refuse(r, "the product of its sizes overflows");
        }
        if (format->numbers && size[0] % format->numbers)
                return gguf_reader_refuse(r, "rows of %" PRIu64 " numbers do not divide into %u",
                                          size[0], format->numbers);
        if (format->numbers && !mul(numbers / format->numbers, format->bytes, &bytes))
                return gguf_reader_refuse(r, "its bytes overflow");
        t->type = format->type;
        t->unserved = format->unserved;
        if (!t->unserved && (size[2] > 1 || size[3] > 1))
                t->unserved = "it has more than two dimensions";
        t->columns = (uint32_t)size[0];
        t->rows = (uint32_t)size[1];
        t->bytes = bytes;
        return 0;
}

int gguf_reader_take_tensor(struct gguf_reader *r, struct tensor *ret_tensor)
{
        uint64_t size[RANK_MAX] = { 1, 1, 1, 1 };
        uint32_t rank, type;
        struct tensor t = { 0 };
        int k;

        if ((k = take_name(r, "name", TENSOR_NAME_MAX, &t.name)) || (k = take_u32(r, &rank)))
                return k;
        if (!rank || rank > RANK_MAX)
                return gguf_reader_refuse(r, "%" PRIu32 " dimensions, not 1 to 4", rank);
        for (uint32_t i = 0; i < rank; i++)
                if ((k = take_u64(r, &size[i])))
                        return k;
        if ((k = take_u32(r, &type)) || (k = tensor_shape(r, &t, size, type)) ||
            (k = take_u64(r, &t.offset)))
                return k;
        *ret_tensor = t;
        return 0;
}

int gguf_reader_take_preamble(struct gguf_reader *r, uint32_t pairs_max, uint64_t *ret_tensors,
                              uint64_t *ret_pairs)
{
        uint64_t tensors, pairs;
        uint32_t version;
        uint8_t *magic;
        int k;

        if ((k = take(r, 4, &magic)))
                return k;
        if (memcmp(magic, "GGUF", 4))
                return gguf_reader_refuse(r, "not a GGUF file: it does not begin with 'GGUF'");
        if ((k = take_u32(r, &version)))
                return k;
        if (version && !(version & 0xffff))
                return gguf_reader_refuse(r, "a big-endian GGUF file, which is not supported");
        if (version != 2 && version != 3)
                return gguf_reader_refuse(r, "GGUF version %" PRIu32 ", not 2 or 3", version);
        if ((k = take_count(r, "tensors", TENSOR_BYTES_MIN, &tensors)) ||
            (k = take_count(r, "metadata pairs", PAIR_BYTES_MIN, &pairs)))
                return k;
        if (tensors > TENSORS_MAX)
                return gguf_reader_refuse(r, "%" PRIu64 " tensors, more than %u", tensors,
                                          TENSORS_MAX);
        if (pairs > pairs_max)
                return gguf_reader_refuse(r, "%" PRIu64 " metadata pairs, more than %u", pairs,
                                          pairs_max);
        *ret_tensors = tensors;
        *ret_pairs = pairs;
        return 0;
}
