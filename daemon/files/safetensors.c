/*
 * The header is a JSON tree, read only through typed getters.  A number that is negative, has a
 * fraction or does not fit is not an integer there, and so a fault.  Sizes are multiplied only by
 * mul().
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/file.h"
#include "daemon/files/safetensors.h"
#include "daemon/files/scales.h"

#define LENGTH_BYTES 8u
#define METADATA     "__metadata__"

/* A tensor has an object, two arrays, a string and four numbers; the rest is for metadata. */
#define NODES_MAX (TENSORS_MAX * 16u)

static const struct dtype {
        const char *name;
        uint64_t bits;
        const char *unserved;
        enum row_type type;
} dtypes[] = {
        { "F32", 32, NULL, ROW_F32 },
        { "F16", 16, NULL, ROW_F16 },
        { "BF16", 16, NULL, ROW_BF16 },
        { "F64", 64, "its type F64 is not supported" },
        { "F8_E4M3", 8, scales_wanted, ROW_F8_E4M3 },
        { "F8_E5M2", 8, "its type F8_E5M2 is not supported yet" },
        { "F8_E8M0", 8, "its type F8_E8M0 is not supported yet" },
        { "F6_E2M3", 6, "its type F6_E2M3 is not supported yet" },
        { "F6_E3M2", 6, "its type F6_E3M2 is not supported yet" },
        { "F4", 4, "its type F4 is not supported yet" },
        { "I64", 64, "its type I64 is not supported" },
        { "U64", 64, "its type U64 is not supported" },
        { "C64", 64, "its type C64 is not supported" },
        { "I32", 32, "its type I32 is not supported" },
        { "U32", 32, "its type U32 is not supported" },
        { "I16", 16, "its type I16 is not supported" },
        { "U16", 16, "its type U16 is not supported" },
        { "I8", 8, "its type I8 is not supported" },
        { "U8", 8, "its type U8 is not supported" },
        { "BOOL", 8, "its type BOOL is not supported" },
};

struct trait_reader {
        const struct json_document *header;
        uint64_t data, file_bytes; /* data <= file_bytes */
        const char *name;          /* of the current tensor; NULL: none */
        char *why;
        size_t why_bytes;
};

/* -EINVAL; written literally at the end, so that a compiler sees that it is not 0. */
#define refuse(rd, ...) (fault((rd), __VA_ARGS__), (void)error_raise(-EINVAL), -EINVAL)

__attribute__((format(printf, 2, 3))) static void fault(const struct trait_reader *rd,
                                                        const char *format, ...)
{
        va_list args;
        int n = 0;

        if (rd->name)
                n = snprintf(rd->why, rd->why_bytes, "tensor '%s': ", shown(rd->name).text);
        if ((size_t)n < rd->why_bytes) {
                va_start(args, format);
                vsnprintf(rd->why + n, rd->why_bytes - (size_t)n, format, args);
                va_end(args);
        }
}

static bool mul(uint64_t a, uint64_t b, uint64_t *ret)
{
        return !__builtin_mul_overflow(a, b, ret);
}

static int check_metadata(const struct trait_reader *rd, uint32_t node)
{
        const struct json_document *j = rd->header;
        size_t bytes;

        if (json_kind(j, node) != JSON_OBJECT)
                return refuse(rd, METADATA " is not an object");
        for (uint32_t c = json_first(j, node); c != JSON_NONE; c = json_next(j, c))
                if (!json_string(j, c, &bytes))
                        return refuse(rd, METADATA ": '%s' is not a string",
                                      shown(json_key(j, c, NULL)).text);
        return 0;
}

static int take_dtype(const struct trait_reader *rd, uint32_t node, const struct dtype **ret_dtype)
{
        const char *name = json_string(rd->header, node, NULL);

        if (!name)
                return refuse(rd, "its dtype is missing or not a string");
        for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
                if (!strcmp(name, dtypes[i].name)) {
                        *ret_dtype = &dtypes[i];
                        return 0;
                }
        }
        return refuse(rd, "its dtype '%s' is unknown", shown(name).text);
}

/*
 * Rows, columns, and the count of numbers; an empty shape is one number.  Of more than two
 * dimensions only the product is used: such a tensor is unserved.
 */
static int take_shape(const struct trait_reader *rd, uint32_t node, struct tensor *t,
                      uint64_t *ret_numbers)
{
        const struct json_document *j = rd->header;
        uint64_t numbers = 1, size;
        uint32_t rank = 0;

        if (json_kind(j, node) != JSON_ARRAY)
                return refuse(rd, "its shape is missing or not an array");
        t->rows = t->columns = 1;
        for (uint32_t c = json_first(j, node); c != JSON_NONE; c = json_next(j, c), rank++) {
                if (!json_whole(j, c, &size))
                        return refuse(rd, "size %" PRIu32 " of its shape is not a whole number",
                                      rank);
                if (!size || size > UINT32_MAX)
                        return refuse(rd, "size %" PRIu32 " is %" PRIu64 ", out of bounds", rank,
                                      size);
                if (!mul(numbers, size, &numbers))
                        return refuse(rd, "the product of its sizes overflows");
                t->rows = t->columns;
                t->columns = (uint32_t)size;
        }
        if (rank > 2)
                t->unserved = "it has more than two dimensions";
        *ret_numbers = numbers;
        return 0;
}

/* Reads the range, and checks that it is in the data. */
static int take_offsets(const struct trait_reader *rd, uint32_t node, struct tensor *t)
{
        const struct json_document *j = rd->header;
        uint32_t first = json_first(j, node);
        uint64_t begin, end, bytes = rd->file_bytes - rd->data;

        if (json_kind(j, node) != JSON_ARRAY || json_count(j, node) != 2 ||
            !json_whole(j, first, &begin) || !json_whole(j, json_next(j, first), &end))
                return refuse(rd, "its data_offsets are not two whole numbers");
        if (begin > end)
                return refuse(rd, "it begins at %" PRIu64 " and ends at %" PRIu64, begin, end);
        if (end > bytes)
                return refuse(rd,
                              "it ends at %" PRIu64 " of the data, which is %" PRIu64
                              " bytes: past the end of the file",
                              end, bytes);
        t->offset = rd->data + begin;
        t->bytes = end - begin;
        return 0;
}

static int take_name(struct trait_reader *rd, uint32_t node, const char **ret_name)
{
        size_t bytes;
        const char *name = json_key(rd->header, node, &bytes);

        rd->name = name;
        if (!bytes || strlen(name) != bytes || bytes > TENSOR_NAME_MAX)
                return refuse(rd,
                              "its name has %zu bytes or contains a zero byte; it must have "
                              "1 to %u bytes",
                              bytes, TENSOR_NAME_MAX);
        *ret_name = name;
        return 0;
}

static int take_tensor(struct trait_reader *rd, uint32_t node, struct tensor *ret_tensor)
{
        const struct json_document *j = rd->header;
        const struct dtype *dtype = NULL;
        struct tensor t = { 0 };
        uint64_t numbers = 0, bits;
        int r = take_name(rd, node, &t.name);

        if (r)
                return r;
        if (json_kind(j, node) != JSON_OBJECT)
                return refuse(rd, "it is not an object");
        if ((r = take_dtype(rd, json_member(j, node, "dtype"), &dtype)) ||
            (r = take_shape(rd, json_member(j, node, "shape"), &t, &numbers)) ||
            (r = take_offsets(rd, json_member(j, node, "data_offsets"), &t)))
                return r;
        if (json_count(j, node) != 3)
                return refuse(rd, "it has more than a dtype, a shape and data_offsets");
        if (!mul(numbers, dtype->bits, &bits))
                return refuse(rd, "its bytes overflow");
        if (bits % 8)
                return refuse(rd, "it ends within a byte");
        if (t.bytes != bits / 8)
                return refuse(rd,
                              "its range has %" PRIu64
                              " bytes, but its shape and dtype need %" PRIu64,
                              t.bytes, bits / 8);
        t.type = dtype->type;
        if (!t.unserved)
                t.unserved = dtype->unserved;
        *ret_tensor = t;
        return 0;
}

/*
 * The first range begins at the start, each later one at the end of the one before, the last ends
 * the file.
 */
static int check_tiling(struct trait_reader *rd, struct tensor_table *table)
{
        uint64_t end = rd->data;

        tensor_table_by_place(table);
        for (uint32_t i = 0; i < table->count; i++) {
                const struct tensor *t = table->sorted[i];

                rd->name = t->name;
                if (t->offset < end)
                        return refuse(rd, "overlaps another tensor");
                if (t->offset > end)
                        return refuse(rd, "the %" PRIu64 " bytes before it belong to no tensor",
                                      t->offset - end);
                end = t->offset + t->bytes;
        }
        rd->name = NULL;
        if (end != rd->file_bytes)
                return refuse(rd, "the last %" PRIu64 " bytes of the file belong to no tensor",
                              rd->file_bytes - end);
        return 0;
}

static int take_tensors(struct trait_reader *rd, uint32_t metadata, struct tensor_table *table)
{
        const struct json_document *j = rd->header;
        uint32_t n = 0;
        int r;

        for (uint32_t c = json_first(j, 0); c != JSON_NONE; c = json_next(j, c)) {
                rd->name = NULL;
                if (c == metadata)
                        r = check_metadata(rd, c);
                else
                        r = take_tensor(rd, c, &table->tensors[n++]);
                if (r)
                        return r;
        }
        if ((r = check_tiling(rd, table)))
                return r;
        /* The JSON parser has already refused duplicate keys. */
        (void)tensor_table_by_name(table);
        return 0;
}

/* Takes ownership of the header, also on failure. */
static int take_header(struct json_document *header, uint64_t data, uint64_t file_bytes,
                       struct safetensors *ret_safetensors, char *why, size_t why_bytes)
{
        struct trait_reader rd = { header, data, file_bytes, NULL, why, why_bytes };
        struct safetensors s = { .header = header };
        uint32_t metadata = json_member(header, 0, METADATA);
        uint32_t count = json_count(header, 0) - (metadata != JSON_NONE);
        int r;

        if (count > TENSORS_MAX)
                r = refuse(&rd, "%" PRIu32 " tensors, more than %u", count, TENSORS_MAX);
        else if ((r = tensor_table_init(&s.tensors, count)))
                errtext_set(why, why_bytes, r, "out of memory for the header");
        else
                r = take_tensors(&rd, metadata, &s.tensors);
        if (r) {
                safetensors_deinit(&s);
                return error_pass(r);
        }
        *ret_safetensors = s;
        return 0;
}

static int parse_header(const char *text, uint64_t length, uint64_t file_bytes,
                        struct safetensors *ret_safetensors, char *why, size_t why_bytes)
{
        struct json_document *header = NULL;
        int r;

        if (!length || *text != '{')
                return error_raise(
                        errtext_set(why, why_bytes, -EINVAL, "its header does not begin with '{'"));
        r = error_raise(json_parse(text, length, NODES_MAX, &header, why, why_bytes));
        if (r)
                return error_pass(errtext_prefix(why, why_bytes, r, "its header"));
        return error_pass(take_header(header, LENGTH_BYTES + length, file_bytes, ret_safetensors,
                                      why, why_bytes));
}

/* Checks that the header is inside the file and within the limit. */
static int check_length(uint64_t length, uint64_t file_bytes, char *why, size_t why_bytes)
{
        if (length > file_bytes - LENGTH_BYTES)
                return error_raise(errtext_set(
                        why, why_bytes, -EINVAL,
                        "a header of %" PRIu64 " bytes in a file of %" PRIu64, length, file_bytes));
        if (length > SAFETENSORS_HEADER_MAX)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "a header of %" PRIu64 " bytes, more than %u",
                                               length, SAFETENSORS_HEADER_MAX));
        return 0;
}

static int check_size(uint64_t file_bytes, char *why, size_t why_bytes)
{
        if (file_bytes >= LENGTH_BYTES)
                return 0;
        return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                       "not a safetensors file: it has only %" PRIu64 " bytes",
                                       file_bytes));
}

int safetensors_read(int fd, uint64_t file_bytes, struct safetensors *ret_safetensors, char *why,
                     size_t why_bytes)
{
        uint64_t length = 0;
        char *text;
        int r;

        if ((r = check_size(file_bytes, why, why_bytes)) ||
            (r = file_read(fd, 0, &length, LENGTH_BYTES, why, why_bytes)))
                return error_pass(r);
        length = le64toh(length);
        if ((r = check_length(length, file_bytes, why, why_bytes)))
                return error_pass(r);
        text = malloc(length + 1);
        if (!text)
                return error_raise(
                        errtext_set(why, why_bytes, -ENOMEM, "out of memory for the header"));
        r = file_read(fd, LENGTH_BYTES, text, length, why, why_bytes);
        if (!r)
                r = parse_header(text, length, file_bytes, ret_safetensors, why, why_bytes);
        free(text);
        return error_pass(r);
}

int safetensors_parse(const uint8_t *bytes, size_t count, uint64_t file_bytes,
                      struct safetensors *ret_safetensors, char *why, size_t why_bytes)
{
        uint64_t length = 0;
        int r = check_size(count < file_bytes ? count : file_bytes, why, why_bytes);

        if (r)
                return error_pass(r);
        memcpy(&length, bytes, LENGTH_BYTES);
        length = le64toh(length);
        if ((r = check_length(length, file_bytes, why, why_bytes)))
                return error_pass(r);
        if (length > count - LENGTH_BYTES)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "the header is longer than the %zu bytes given",
                                               count));
        return error_pass(parse_header((const char *)bytes + LENGTH_BYTES, length, file_bytes,
                                       ret_safetensors, why, why_bytes));
}

void safetensors_deinit(struct safetensors *s)
{
        tensor_table_deinit(&s->tensors);
        json_free(s->header);
        *s = (struct safetensors){ 0 };
}
