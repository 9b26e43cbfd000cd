#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/files/gguf.h"
#include "tests/unit/gguf-maker.h"

#define MAX8    "\xff\xff\xff\xff\xff\xff\xff\xff"
#define TWO63   "\0\0\0\0\0\0\0\x80"
#define TWO61   "\0\0\0\0\0\0\0\x20"
#define KEY     "\1\0\0\0\0\0\0\0k"
#define STRING  "\x08\0\0\0"
#define ARRAY   "\x09\0\0\0"
#define ONE     "\1\0\0\0\0\0\0\0"
#define NESTED  ARRAY ONE
#define U8      "\0\0\0\0"
#define U64     "\x0a\0\0\0"
#define LONGEST "\1\1\0\0\0\0\0\0" /* 257 */

#define X16  "xxxxxxxxxxxxxxxx"
#define X256 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16

#define TENSOR(i, ...)                                                                             \
        {                                                                                          \
                .tensor[i] = { __VA_ARGS__ }                                                       \
        }

/* a, larger than it usually is: b is behind it. */
#define BESIDE(...)                                                                                \
        {                                                                                          \
                .tensor = { { __VA_ARGS__ }, { .offset = 1024 } }, .data_bytes = 1040              \
        }

static const struct {
        const char *fault;
        const char *message; /* must be in it */
        struct recipe recipe;
        uint64_t file_bytes; /* pretended; 0: the real size */
} faults[] = {
        { "another magic", "does not begin with 'GGUF'", { .magic = "GGML" } },
        { "a magic backwards", "does not begin with 'GGUF'", { .magic = "FUGG" } },
        { "version 0", "version 0, not 2 or 3", { .version = ZERO } },
        { "version 1", "version 1, not 2 or 3", { .version = 1 } },
        { "version 4", "version 4, not 2 or 3", { .version = 4 } },
        { "big-endian", "big-endian", { .version = 3u << 24 } },
        { "2^63 tensors",
          "9223372036854775808 tensors do not fit",
          { .tensor_count = 1ull << 63 } },
        { "2^64 - 1 tensors", "tensors do not fit", { .tensor_count = UINT64_MAX } },
        { "2^63 pairs", "metadata pairs do not fit", { .pair_count = 1ull << 63 } },
        { "too many tensors", "65537 tensors, more than", { .tensor_count = 65537 }, 1ull << 40 },
        { "too many pairs", "65537 metadata pairs, more", { .pair_count = 65537 }, 1ull << 40 },
        { "one pair more than there is", "do not fit in", { .pair_count = 9 } },
        { "one tensor more than there is", "tensor 2", { .tensor_count = 3 } },
        { "a key of 2^63 bytes", "metadata 7: 9223372036854775808 bytes", { .pair = RAW(TWO63) } },
        { "a key past the end", "metadata 7: ", { .pair = RAW("\0\4\0\0\0\0\0\0k") } },
        { "a key too long", "key of 65536 bytes", { .pair = RAW("\0\0\1\0\0\0\0\0") }, 1 << 20 },
        { "an empty key", "an empty key", { .pair = RAW("\0\0\0\0\0\0\0\0" U8 "1") } },
        { "a zero in a key", "zero byte", { .pair = RAW("\2\0\0\0\0\0\0\0k\0" U8 "1") } },
        { "a key twice", "'small': occurs twice", { .pair = RAW("\5\0\0\0\0\0\0\0small" U8 "1") } },
        { "an unknown value type",
          "'k': a value of the unknown type 13",
          { .pair = RAW(KEY "\x0d\0\0\0") } },
        { "a boolean with the value 2",
          "boolean with the value 2",
          { .pair = RAW(KEY "\7\0\0\0\2") } },
        { "a string of 2^64 - 1 bytes", "metadata 'k': ", { .pair = RAW(KEY STRING MAX8) } },
        { "a string past the end",
          "metadata 'k': ",
          { .pair = RAW(KEY STRING "\0\4\0\0\0\0\0\0") } },
        { "a zero in a string",
          "a string with a zero byte",
          { .pair = RAW(KEY STRING "\2\0\0\0\0\0\0\0a\0") } },
        { "an array of an unknown type",
          "array of the unknown type 255",
          { .pair = RAW(KEY ARRAY "\xff\0\0\0" ONE) } },
        { "an array of 2^63 bytes",
          "elements of an array do not fit",
          { .pair = RAW(KEY ARRAY U8 TWO63) } },
        { "an array whose product wraps to 0",
          "elements of an array do not fit",
          { .pair = RAW(KEY ARRAY U64 TWO61) } },
        { "2^63 strings",
          "elements of an array do not fit",
          { .pair = RAW(KEY ARRAY STRING TWO63) } },
        { "2^63 arrays",
          "elements of an array do not fit",
          { .pair = RAW(KEY ARRAY ARRAY TWO63) } },
        { "a string in an array past the end",
          "bytes of a string",
          { .pair = RAW(KEY ARRAY STRING ONE MAX8) } },
        { "arrays nested deep",
          "nested deeper than 4",
          { .pair = RAW(KEY ARRAY NESTED NESTED NESTED NESTED NESTED NESTED) } },
        { "alignment 0", "alignment is 0, not a power", { .alignment = ZERO } },
        { "alignment 3", "alignment is 3, not a power", { .alignment = 3 } },
        { "an alignment past the end", "past the end", { .alignment = 1u << 31 } },
        { "an empty tensor name", "tensor 0: an empty name", TENSOR(0, .name = "") },
        { "a tensor name too long", "name of 257 bytes",
          TENSOR(0, .name_raw = RAW(LONGEST X256 "x")) },
        { "a tensor name of 2^63 bytes", "tensor 0: ", TENSOR(0, .name_raw = RAW(TWO63)) },
        { "a zero in a tensor name", "zero byte", TENSOR(0, .name_raw = RAW(ONE "\0")) },
        { "a tensor twice", "tensor 'b': occurs twice", TENSOR(0, .name = "b") },
        { "a name for the terminal", "tensor '?[31m?': 9 dim", TENSOR(0, "\033[31m\n", .rank = 9) },
        { "no dimensions", "0 dimensions", TENSOR(0, .rank = ZERO) },
        { "five dimensions", "5 dimensions", TENSOR(0, .rank = 5) },
        { "2^32 - 1 dimensions", "4294967295 dimensions", TENSOR(0, .rank = UINT32_MAX) },
        { "a size of 0", "size 1 is 0", TENSOR(0, .size = { 4, ZERO }) },
        { "a size of 2^63", "size 0 is 9223372036854775808", TENSOR(0, .size = { 1ull << 63 }) },
        { "sizes whose product wraps", "product of its sizes overflows",
          TENSOR(0, .rank = 3, .size = { 1u << 31, 1u << 31, 1u << 31 }) },
        { "bytes that wrap", "its bytes overflow", TENSOR(0, .size = { 1u << 31, 1u << 31 }) },
        { "half a block", "do not divide into 32", TENSOR(0, .size = { 33, 1 }, .type = 2) },
        { "an odd offset", "offset 68 is not a multiple of 32", TENSOR(1, .offset = 68) },
        { "an offset past the end", "reach past the end", TENSOR(1, .offset = 1u << 20) },
        { "an offset of 2^63", "reach past the end", TENSOR(1, .offset = 1ull << 63) },
        { "an offset that wraps", "reach past the end", TENSOR(1, .offset = UINT64_MAX - 31) },
        { "one row too many", "tensor 'b': 18 bytes", TENSOR(1, .size = { 9 }) },
        { "an unknown type past the end", "past the end", TENSOR(1, .type = 99, .offset = 4096) },
        { "the same place twice", "overlaps", TENSOR(1, .offset = ZERO) },
        { "an overlap by half", "tensor 'b': overlaps", TENSOR(1, .offset = 32) },
        { "a header beyond the limit",
          "do not fit in 268435247 bytes",
          { .pair = RAW(KEY STRING "\0\0\0\x20\0\0\0\0") },
          1ull << 40 },
        { "bytes that were not given",
          "longer than the",
          { .pair = RAW(KEY STRING "\0\0\1\0\0\0\0\0") },
          1ull << 40 },
};

static void refuses_each_malformed_file_with_its_message(void **state)
{
        struct gguf *gguf = NULL;
        unsigned bad = 0;
        struct file f;
        char why[256];

        (void)state;
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
                uint64_t pretended = faults[i].file_bytes;
                int r;

                make_gguf(&faults[i].recipe, &f);
                memset(why, 0, sizeof(why));
                r = gguf_parse(f.bytes, f.count, pretended ? pretended : f.count, &gguf, why,
                               sizeof(why));
                if (r == -EINVAL && strstr(why, faults[i].message))
                        continue;
                bad++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", faults[i].fault, r, why,
                            faults[i].message);
        }
        assert_int_equal(bad, 0);
        assert_null(gguf);
}

static void refuses_input_truncated_at_any_byte(void **state)
{
        struct gguf *gguf = NULL;
        struct file f;
        char why[256];

        (void)state;
        make_gguf(&(struct recipe){ 0 }, &f);
        for (size_t n = 0; n < f.count; n++) {
                uint8_t *exact = malloc(n + !n); /* so that one byte more is seen */

                memcpy(exact, f.bytes, n);
                why[0] = 0;
                assert_int_equal(gguf_parse(exact, n, n, &gguf, why, sizeof(why)), -EINVAL);
                assert_true(why[0]);
                free(exact);
        }
        assert_null(gguf);
}

static void cuts_the_message_to_a_short_buffer(void **state)
{
        struct gguf *gguf = NULL;
        struct file f;
        char why[8];

        (void)state;
        make_gguf(&faults[16].recipe, &f);
        for (size_t n = 1; n <= sizeof(why); n++) {
                memset(why, 'x', sizeof(why));
                assert_int_equal(gguf_parse(f.bytes, f.count, f.count, &gguf, why, n), -EINVAL);
                assert_int_equal(strlen(why), n - 1);
        }
}

static void check_valid(const struct gguf *gguf)
{
        const struct tensor *a = gguf_tensor(gguf, "a"), *b = gguf_tensor(gguf, "b");
        uint32_t u = 7;
        float real;
        bool yes;

        assert_int_equal(gguf_tensors(gguf)->count, 2);
        assert_ptr_equal(a, &gguf_tensors(gguf)->tensors[0]);
        assert_ptr_equal(b, &gguf_tensors(gguf)->tensors[1]);
        assert_null(gguf_tensor(gguf, "c"));
        assert_true(a->type == ROW_F32 && a->columns == 4 && a->rows == 3 && a->bytes == 48);
        assert_true(b->type == ROW_F16 && b->columns == 8 && b->rows == 1 && b->bytes == 16);
        assert_int_equal(a->offset % 32, 0);
        assert_int_equal(b->offset, a->offset + 64);
        assert_null(a->unserved);

        assert_true(gguf_u32(gguf, "small", &u) && u == 200);
        assert_false(gguf_u32(gguf, "negative", &u));
        assert_false(gguf_u32(gguf, "wide", &u));
        assert_false(gguf_u32(gguf, "text", &u));
        assert_false(gguf_u32(gguf, "absent", &u));
        assert_int_equal(u, 200);
        assert_true(gguf_f32(gguf, "half", &real) && real == 0.5f);
        assert_true(gguf_f32(gguf, "extra", &real) && real == 0.25f);
        assert_false(gguf_f32(gguf, "small", &real));
        assert_true(gguf_bool(gguf, "yes", &yes) && yes);
        assert_false(gguf_bool(gguf, "small", &yes));
        assert_string_equal(gguf_string(gguf, "text"), "hello");
        assert_null(gguf_string(gguf, "small"));
        assert_true(gguf_has(gguf, "wide") && !gguf_has(gguf, "absent"));
}

static void parses_a_valid_file_into_a_table(void **state)
{
        struct gguf *gguf;
        struct file f;
        char why[256];

        (void)state;
        for (uint64_t version = 2; version <= 3; version++) {
                make_gguf(&(struct recipe){ .version = version }, &f);
                assert_int_equal(gguf_parse(f.bytes, f.count, f.count, &gguf, why, sizeof(why)), 0);
                check_valid(gguf);
                assert_null(gguf_close(gguf));
        }
        assert_null(gguf_close(NULL));
}

/* The one array of a file of the usual pairs and this one. */
static struct gguf *with_array(const struct raw *pair, struct gguf_array *ret_array)
{
        struct recipe recipe = { .pair = *pair };
        struct gguf *gguf = NULL;
        char why[256];
        struct file f;

        make_gguf(&recipe, &f);
        assert_int_equal(gguf_parse(f.bytes, f.count, f.count, &gguf, why, sizeof(why)), 0);
        assert_true(gguf_array(gguf, "k", ret_array));
        return gguf;
}

static void reads_array_elements_only_as_their_type(void **state)
{
        static const struct raw numbers = RAW(KEY ARRAY "\5\0\0\0"
                                                        "\3\0\0\0\0\0\0\0"
                                                        "\7\0\0\0\xff\xff\xff\x7f\xff\xff\xff\xff");
        static const struct raw strings = RAW(KEY ARRAY STRING "\2\0\0\0\0\0\0\0"
                                                               "\2\0\0\0\0\0\0\0a\0"
                                                               "\0\0\0\0\0\0\0\0");
        static const struct raw reals = RAW(KEY ARRAY "\6\0\0\0" ONE "\0\0\0\x3f");
        struct gguf_array a;
        struct gguf *gguf;
        const char *text;
        uint32_t value;
        size_t bytes;
        float real;

        (void)state;
        gguf = with_array(&numbers, &a);
        assert_false(gguf_next_string(&a, &text, &bytes));
        assert_false(gguf_next_f32(&a, &real));
        assert_true(gguf_next_u32(&a, &value) && value == 7);
        assert_true(gguf_next_u32(&a, &value) && value == INT32_MAX);
        assert_false(gguf_next_u32(&a, &value)); /* -1 does not fit */
        assert_int_equal(a.left, 1);
        assert_false(gguf_array(gguf, "small", &a));
        assert_false(gguf_array(gguf, "absent", &a));
        gguf_close(gguf);

        gguf = with_array(&strings, &a);
        assert_false(gguf_next_u32(&a, &value));
        assert_true(gguf_next_string(&a, &text, &bytes));
        assert_int_equal(bytes, 2);
        assert_memory_equal(text, "a\0", 2);
        assert_true(gguf_next_string(&a, &text, &bytes) && !bytes);
        assert_false(gguf_next_string(&a, &text, &bytes));
        gguf_close(gguf);

        gguf = with_array(&reals, &a);
        assert_true(gguf_next_f32(&a, &real) && real == 0.5f);
        assert_false(gguf_next_f32(&a, &real));
        gguf_close(gguf);
}

static void lists_tensors_of_unsupported_types_with_the_reason(void **state)
{
        static const struct {
                struct recipe recipe;
                const char *message;
        } kinds[] = {
                { TENSOR(0, .size = { 32, 1 }, .type = 9), "Q8_1" },
                { BESIDE(.size = { 256, 1 }, .type = 15), "Q8_K" },
                { BESIDE(.size = { 128, 1 }, .type = 41), "Q1_0" },
                { TENSOR(0, .type = 99), "unknown" },
                { TENSOR(0, .rank = 3, .size = { 2, 2, 2 }), "two dimensions" },
        };
        struct gguf *gguf;
        struct file f;
        char why[256];

        (void)state;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                make_gguf(&kinds[i].recipe, &f);
                assert_int_equal(gguf_parse(f.bytes, f.count, f.count, &gguf, why, sizeof(why)), 0);
                assert_non_null(strstr(gguf_tensor(gguf, "a")->unserved, kinds[i].message));
                assert_null(gguf_tensor(gguf, "b")->unserved);
                gguf_close(gguf);
        }
}

static void maps_every_block_type_to_a_row_type_of_its_size(void **state)
{
        static const struct {
                uint64_t id, bytes; /* of 256 numbers */
                enum row_type type;
        } kinds[] = {
                { 2, 144, ROW_Q4_0 },    { 3, 160, ROW_Q4_1 },    { 6, 176, ROW_Q5_0 },
                { 7, 192, ROW_Q5_1 },    { 8, 272, ROW_Q8_0 },    { 10, 84, ROW_Q2_K },
                { 11, 110, ROW_Q3_K },   { 12, 144, ROW_Q4_K },   { 13, 176, ROW_Q5_K },
                { 14, 210, ROW_Q6_K },   { 20, 144, ROW_IQ4_NL }, { 39, 136, ROW_MXFP4 },
                { 16, 66, ROW_IQ2_XXS }, { 17, 74, ROW_IQ2_XS },  { 18, 98, ROW_IQ3_XXS },
                { 19, 50, ROW_IQ1_S },   { 21, 110, ROW_IQ3_S },  { 22, 82, ROW_IQ2_S },
                { 23, 136, ROW_IQ4_XS }, { 29, 56, ROW_IQ1_M },   { 34, 54, ROW_TQ1_0 },
                { 35, 66, ROW_TQ2_0 },
        };
        struct gguf *gguf;
        struct file f;
        char why[256];

        (void)state;
        /* ... and F32, F16, BF16, and NVFP4, whose scales are elsewhere; GGUF has no F8_E4M3 */
        assert_int_equal(sizeof(kinds) / sizeof(*kinds) + 5, ROW_TYPE_N);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                const struct recipe recipe = BESIDE(.size = { 256, 3 }, .type = kinds[i].id);
                const struct tensor *a;

                make_gguf(&recipe, &f);
                assert_int_equal(gguf_parse(f.bytes, f.count, f.count, &gguf, why, sizeof(why)), 0);
                a = gguf_tensor(gguf, "a");
                assert_null(a->unserved);
                assert_int_equal(a->type, kinds[i].type);
                assert_int_equal(a->bytes, 3 * kinds[i].bytes);
                assert_int_equal(a->bytes, 3 * row_bytes(a->type, 256));
                gguf_close(gguf);
        }
}

/* The type that an array or a string is read as must not depend on the caller. */
static void returns_no_value_of_another_type(void **state)
{
        static const struct raw pairs[] = {
                RAW(KEY ARRAY U8 "\4\0\0\0\0\0\0\0\1\0\0\0"),
                RAW(KEY ARRAY STRING ONE ONE "x"),
                RAW(KEY STRING "\4\0\0\0\0\0\0\0\1\1\1\1"),
        };
        struct gguf *gguf;
        struct file f;
        char why[256];
        float real;
        uint32_t u;
        bool yes;

        (void)state;
        for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
                make_gguf(&(struct recipe){ .pair = pairs[i] }, &f);
                assert_int_equal(gguf_parse(f.bytes, f.count, f.count, &gguf, why, sizeof(why)), 0);
                assert_true(gguf_has(gguf, "k"));
                assert_false(gguf_u32(gguf, "k", &u) || gguf_f32(gguf, "k", &real) ||
                             gguf_bool(gguf, "k", &yes));
                assert_int_equal(!!gguf_string(gguf, "k"), i == 2);
                gguf_close(gguf);
        }
}

/* A guard against a check that looks at every pair of things: with it this would take minutes. */
static void reads_the_largest_allowed_header_quickly(void **state)
{
        const uint64_t strings = 1000000, bytes_max = 24 << 20;
        uint8_t *bytes = calloc(1, bytes_max);
        struct gguf *gguf = NULL;
        char why[256], name[16];
        size_t n = 0;

        (void)state;
        assert_non_null(bytes);
#define PUT(from, count)      (memcpy(bytes + n, (from), (count)), n += (count))
#define PUT_INT(value, count) PUT(&(uint64_t){ value }, count)
        PUT("GGUF\3\0\0\0", 8);
        PUT_INT(TENSORS_MAX, 8);
        PUT_INT(GGUF_PAIRS_MAX, 8);
        PUT(KEY ARRAY STRING, 9 + 4 + 4);
        PUT_INT(strings, 8);
        n += 8 * strings; /* empty, all of them */
        for (uint32_t i = 1; i < GGUF_PAIRS_MAX; i++) {
                PUT_INT((uint64_t)sprintf(name, "key %06u", i), 8);
                PUT(name, 10);
                PUT(U8 "1", 5);
        }
        for (uint32_t i = 0; i < TENSORS_MAX; i++) {
                PUT_INT((uint64_t)sprintf(name, "t%07u", TENSORS_MAX - i), 8);
                PUT(name, 8);
                PUT_INT(1, 4);
                PUT_INT(1, 8);
                PUT_INT(0, 4);
                PUT_INT(32 * (uint64_t)i, 8);
        }
        assert_true(n < bytes_max);
        assert_int_equal(gguf_parse(bytes, n, n + 33 * TENSORS_MAX, &gguf, why, sizeof(why)), 0);
        assert_true(gguf_has(gguf, "key 065535"));
        assert_int_equal(gguf_tensor(gguf, "t0000001")->offset -
                                 gguf_tensor(gguf, "t0065536")->offset,
                         32 * (TENSORS_MAX - 1));
        gguf_close(gguf);
        free(bytes);
}

/* Accepted or refused, never worse; and accepted values lie inside the file. */
static void survives_flipped_bits(void **state)
{
        uint64_t random = 1;
        struct gguf *gguf;
        unsigned taken = 0;
        struct file f;
        char why[256];

        (void)state;
        for (unsigned i = 0; i < 100000; i++) {
                make_gguf(&(struct recipe){ 0 }, &f);
                for (unsigned flips = 1 + i % 3; flips; flips--) {
                        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                        f.bytes[(random >> 36) % (f.count - 80)] ^= 1u << (random >> 33 & 7);
                }
                if (gguf_parse(f.bytes, f.count, f.count, &gguf, why, sizeof(why)))
                        continue;
                taken++;
                for (uint32_t t = 0; t < gguf_tensors(gguf)->count; t++) {
                        const struct tensor *tensor = &gguf_tensors(gguf)->tensors[t];

                        assert_true(tensor->offset <= f.count &&
                                    tensor->bytes <= f.count - tensor->offset);
                }
                gguf_close(gguf);
        }
        assert_true(taken > 100 && taken < 99000);
}

static void write_file(const char *path, const void *bytes, size_t count, size_t text_bytes)
{
        FILE *out = fopen(path, "wb");

        assert_non_null(out);
        assert_int_equal(fwrite(bytes, 1, count, out), count);
        for (size_t i = 0; i < text_bytes; i++)
                fputc('x', out);
        assert_int_equal(fclose(out), 0);
}

static void opens_only_regular_files(void **state)
{
        char path[] = "/tmp/test-gguf-XXXXXX", why[256];
        struct gguf *gguf = NULL;
        struct file f;
        int fd = mkstemp(path);

        (void)state;
        assert_true(fd >= 0);
        close(fd);
        make_gguf(&(struct recipe){ 0 }, &f);
        write_file(path, f.bytes, f.count, 0);
        assert_int_equal(gguf_open(path, &gguf, why, sizeof(why)), 0);
        check_valid(gguf);
        assert_true(gguf_fd(gguf) >= 0);
        gguf = gguf_close(gguf);

        write_file(path, f.bytes, 0, 0);
        assert_int_equal(gguf_open(path, &gguf, why, sizeof(why)), -EINVAL);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(gguf_open(path, &gguf, why, sizeof(why)), -ENOENT);
        assert_int_equal(gguf_open("/tmp", &gguf, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "not a regular file"));
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(gguf_open(path, &gguf, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "not a regular file"));
        assert_int_equal(unlink(path), 0);
        assert_null(gguf);
}

/* Larger than the first piece, and than the second. */
static void reads_a_long_header_in_pieces(void **state)
{
        char path[] = "/tmp/test-gguf-XXXXXX", why[256];
        const size_t text_bytes = 300000;
        struct file f = { .count = 0 };
        struct gguf *gguf;
        int fd = mkstemp(path);

        (void)state;
        assert_true(fd >= 0);
        close(fd);
        file_put(&f, "GGUF\3\0\0\0", 8);
        file_int(&f, 0, 8);
        file_int(&f, 2, 8);
        file_number(&f, "small", 0, 200, 1);
        file_string(&f, "text");
        file_int(&f, 8, 4);
        file_int(&f, text_bytes, 8);
        write_file(path, f.bytes, f.count, text_bytes);
        assert_int_equal(gguf_open(path, &gguf, why, sizeof(why)), 0);
        assert_int_equal(strlen(gguf_string(gguf, "text")), text_bytes);
        gguf_close(gguf);
        assert_int_equal(unlink(path), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parses_a_valid_file_into_a_table),
                cmocka_unit_test(refuses_each_malformed_file_with_its_message),
                cmocka_unit_test(refuses_input_truncated_at_any_byte),
                cmocka_unit_test(cuts_the_message_to_a_short_buffer),
                cmocka_unit_test(reads_array_elements_only_as_their_type),
                cmocka_unit_test(lists_tensors_of_unsupported_types_with_the_reason),
                cmocka_unit_test(maps_every_block_type_to_a_row_type_of_its_size),
                cmocka_unit_test(returns_no_value_of_another_type),
                cmocka_unit_test(reads_the_largest_allowed_header_quickly),
                cmocka_unit_test(survives_flipped_bits),
                cmocka_unit_test(opens_only_regular_files),
                cmocka_unit_test(reads_a_long_header_in_pieces),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
