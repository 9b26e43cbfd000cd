#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/files/safetensors.h"
#include "tests/unit/safetensors-maker.h"

#define DATA 64u
#define A    MEMBER("a", "F32", "[3,4]", "[0,48]")
#define B    MEMBER("b", "F16", "[8]", "[48,64]")
#define GOOD "{\"__metadata__\":{\"format\":\"pt\"}," A "," B "}"

#define SHAPE(shape)     "{" MEMBER("a", "F32", shape, "[0,48]") "," B "}"
#define OFFSETS(offsets) "{" MEMBER("a", "F32", "[3,4]", offsets) "," B "}"
#define DTYPE(dtype)     "{\"a\":{\"dtype\":" dtype ",\"shape\":[3,4],\"data_offsets\":[0,48]}," B "}"
#define X16              "xxxxxxxxxxxxxxxx"
#define X256             X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16

static char why[256];

static const struct {
        const char *fault;
        const char *message; /* the message must contain this */
        const char *header;
        uint64_t length;     /* 0: as it is */
        uint64_t file_bytes; /* pretended; 0: the real size */
} faults[] = {
        { "a header of 2^63 bytes", "a header of 9223372036854775808 bytes in a file of", GOOD,
          1ull << 63 },
        { "a header of 2^64 - 1 bytes", "a header of 18446744073709551615 bytes in", GOOD,
          UINT64_MAX },
        { "a length that wraps behind its field", "a header of 18446744073709551608 bytes", GOOD,
          UINT64_MAX - 7 },
        { "a header longer than the file", "a header of 1000 bytes in a file of", GOOD, 1000 },
        { "a header over the limit", "16777217 bytes, more than 16777216", GOOD, (16 << 20) + 1,
          1ull << 40 },
        { "a header that was not given", "longer than the", GOOD, 1 << 20, 1ull << 40 },
        { "no header", "does not begin with '{'", "" },
        { "a header of blanks", "does not begin with '{'", "   " },
        { "a list", "does not begin with '{'", "[]" },
        { "not JSON", "its header: byte 1: expected a key", "{a" },
        { "a header cut off", "its header: byte", GOOD, 60 },
        { "a header that runs into the data", "its header: byte", GOOD, sizeof(GOOD) + 7 },
        { "JSON nested deep", "nested deeper than 64",
          "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" },
        { "metadata that is a string", "__metadata__ is not an object",
          "{\"__metadata__\":\"x\"," A "," B "}" },
        { "metadata with a number", "__metadata__: 'v' is not a string",
          "{\"__metadata__\":{\"v\":1}," A "," B "}" },
        { "metadata with an object", "__metadata__: 'v' is not a string",
          "{\"__metadata__\":{\"v\":{}}," A "," B "}" },
        { "a name twice", "duplicate key 'a'", "{" A "," A "}" },
        { "a name twice, spelled otherwise", "duplicate key 'a'",
          "{" A "," MEMBER("\\u0061", "F16", "[8]", "[48,64]") "}" },
        { "an empty name", "its name has 0 bytes",
          "{" MEMBER("", "F32", "[3,4]", "[0,48]") "," B "}" },
        { "a name too long", "its name has 257 bytes",
          "{" MEMBER(X256 "x", "F32", "[3,4]", "[0,48]") "," B "}" },
        { "a zero in a name", "its name has 3 bytes or contains a zero byte",
          "{" MEMBER("a\\u0000b", "F32", "[3,4]", "[0,48]") "," B "}" },
        { "a zero behind the metadata's name", "its name has 13 bytes or contains a zero byte",
          "{\"__metadata__\\u0000\":{}," A "," B "}" },
        { "a name for the terminal", "tensor '?[31m': its dtype",
          "{" MEMBER("\\u001b[31m", "X", "[3,4]", "[0,48]") "," B "}" },
        { "a tensor that is a number", "tensor 'a': it is not an object", "{\"a\":1," B "}" },
        { "a tensor that is null", "tensor 'a': it is not an object", "{\"a\":null," B "}" },
        { "no dtype", "tensor 'a': its dtype is missing",
          "{\"a\":{\"shape\":[3,4],\"data_offsets\":[0,48]}," B "}" },
        { "a dtype that is a number", "its dtype is missing or not a string", DTYPE("32") },
        { "an unknown dtype", "its dtype 'F33' is unknown", DTYPE("\"F33\"") },
        { "a dtype in small letters", "its dtype 'f32' is unknown", DTYPE("\"f32\"") },
        { "a dtype with a zero in it", "its dtype is missing or not", DTYPE("\"F32\\u0000\"") },
        { "a dtype of another size", "its range has 48 bytes, but its shape and dtype need 24",
          DTYPE("\"F16\"") },
        { "no shape", "its shape is missing",
          "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,48]}," B "}" },
        { "a shape that is a number", "its shape is missing or not an array", SHAPE("12") },
        { "a negative size", "size 1 of its shape is not a whole number", SHAPE("[3,-4]") },
        { "a size with a fraction", "size 0 of its shape is not a whole number", SHAPE("[3.5,4]") },
        { "a size of 4.0", "size 1 of its shape is not a whole number", SHAPE("[3,4.0]") },
        { "a size of 1e1", "size 0 of its shape is not a whole number", SHAPE("[1e1]") },
        { "a size in quotes", "size 0 of its shape is not a whole number", SHAPE("[\"3\",4]") },
        { "a size that is a list", "size 0 of its shape is not a whole number", SHAPE("[[3],4]") },
        { "a size of 0", "size 1 is 0, out of bounds", SHAPE("[3,0]") },
        { "a size of 2^32", "size 0 is 4294967296, out", SHAPE("[4294967296,4]") },
        { "a size of 2^63", "size 0 is 9223372036854775808", SHAPE("[9223372036854775808]") },
        { "a size of 2^64", "size 0 of its shape is not a whole", SHAPE("[18446744073709551616]") },
        { "sizes whose product wraps", "the product of its sizes overflows",
          SHAPE("[2147483648,2147483648,2147483648]") },
        { "sizes whose product wraps to 12", "the product of its sizes overflows",
          SHAPE("[4,3,4294967295,4294967295,4294967295,4294967295]") },
        { "bits that wrap", "its bytes overflow", SHAPE("[2147483648,2147483648]") },
        { "one row too many", "its range has 48 bytes, but its shape and dtype need 64",
          SHAPE("[4,4]") },
        { "half a byte", "it ends within a byte",
          "{" MEMBER("a", "F4", "[3,5]", "[0,48]") "," B "}" },
        { "no offsets", "its data_offsets are not two",
          "{\"a\":{\"dtype\":\"F32\",\"shape\":[3,4]}," B "}" },
        { "one offset", "its data_offsets are not two", OFFSETS("[0]") },
        { "three offsets", "its data_offsets are not two", OFFSETS("[0,48,64]") },
        { "offsets in an object", "its data_offsets are not two", OFFSETS("{\"a\":0,\"b\":48}") },
        { "a negative offset", "its data_offsets are not two", OFFSETS("[-48,0]") },
        { "an offset with a fraction", "its data_offsets are not two", OFFSETS("[0,48.5]") },
        { "an offset of 2^64", "its data_offsets are not two",
          OFFSETS("[18446744073709551616,18446744073709551664]") },
        { "the end before the beginning", "it begins at 48 and ends at 0", OFFSETS("[48,0]") },
        { "an end past the end", "it ends at 96 of the data, which is 64", OFFSETS("[48,96]") },
        { "an end at 2^64 - 1", "it ends at 18446744073709551615 of the data",
          OFFSETS("[18446744073709551567,18446744073709551615]") },
        { "a member that is not known", "more than a dtype, a shape and data_offsets",
          "{\"a\":{\"dtype\":\"F32\",\"shape\":[3,4],\"data_offsets\":[0,48],\"x\":1}," B "}" },
        { "the same place twice", "overlaps another tensor",
          "{" A "," MEMBER("b", "F32", "[3,4]", "[0,48]") "}" },
        { "an overlap by half", "tensor 'b': overlaps another tensor",
          "{" A "," MEMBER("b", "F16", "[16]", "[32,64]") "}" },
        { "one within another", "tensor 'b': overlaps another tensor",
          "{" A "," MEMBER("b", "F16", "[8]", "[16,32]") "}" },
        { "a hole in front", "tensor 'a': the 16 bytes before it",
          "{" MEMBER("a", "F32", "[3,4]", "[16,64]") "}" },
        { "a hole between", "tensor 'b': the 8 bytes before it",
          "{" A "," MEMBER("b", "F16", "[4]", "[56,64]") "}" },
        { "a hole behind", "the last 16 bytes of the file belong to no tensor", "{" A "}" },
        { "data and no tensors", "the last 64 bytes of the file belong to no tensor", "{}" },
        { "a file longer than it says", "the last 4 bytes of the file belong to no", GOOD, 0,
          8 + sizeof(GOOD) - 1 + DATA + 4 },
        { "a file shorter than it says", "past the end of the file", GOOD, 0,
          8 + sizeof(GOOD) - 1 + DATA - 4 },
};

static int parse(const struct made *made, uint64_t file_bytes, struct safetensors *ret)
{
        uint8_t *exact = malloc(made->count); /* so that one byte more is seen */
        int r;

        assert_non_null(exact);
        memcpy(exact, made->bytes, made->count);
        memset(why, 0, sizeof(why));
        r = safetensors_parse(exact, made->count, file_bytes ? file_bytes : made->count, ret, why,
                              sizeof(why));
        free(exact);
        return r;
}

static void refuses_each_malformed_file_with_its_message(void **state)
{
        struct safetensors s = { 0 };
        unsigned bad = 0;
        struct made made;

        (void)state;
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
                uint64_t length = faults[i].length ? faults[i].length : strlen(faults[i].header);
                int r;

                make_safetensors(&made, faults[i].header, length, DATA, 0);
                r = parse(&made, faults[i].file_bytes, &s);
                if (r == -EINVAL && strstr(why, faults[i].message))
                        continue;
                bad++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", faults[i].fault, r, why,
                            faults[i].message);
        }
        assert_int_equal(bad, 0);
        assert_null(s.header);
}

static void refuses_input_truncated_at_any_byte(void **state)
{
        struct safetensors s = { 0 };
        struct made made;

        (void)state;
        make_safetensors(&made, GOOD, sizeof(GOOD) - 1, DATA, 0);
        for (size_t n = made.count; n-- > 0;) {
                made.count = n;
                assert_int_equal(safetensors_parse(made.bytes, n, n, &s, why, sizeof(why)),
                                 -EINVAL);
                assert_true(why[0]);
        }
}

static void parses_a_valid_file_into_a_table(void **state)
{
        static const char *const headers[] = {
                GOOD, GOOD "      \n", /* padded, as writers do */
                "{" B "," A "}",       /* order says nothing */
        };
        const struct tensor *a, *b;
        struct safetensors s;
        struct made made;

        (void)state;
        for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
                uint64_t data = 8 + strlen(headers[i]);

                make_safetensors(&made, headers[i], strlen(headers[i]), DATA, 0);
                assert_int_equal(parse(&made, 0, &s), 0);
                assert_int_equal(s.tensors.count, 2);
                a = tensor_table_find(&s.tensors, "a");
                b = tensor_table_find(&s.tensors, "b");
                assert_null(tensor_table_find(&s.tensors, "__metadata__"));
                assert_true(a->type == ROW_F32 && a->rows == 3 && a->columns == 4);
                assert_true(b->type == ROW_F16 && b->rows == 1 && b->columns == 8);
                assert_true(a->offset == data && a->bytes == 48);
                assert_true(b->offset == data + 48 && b->bytes == 16);
                assert_true(!a->unserved && !b->unserved);
                safetensors_deinit(&s);
                assert_null(s.header);
        }
        safetensors_deinit(&s);
}

static void accepts_a_file_without_tensors(void **state)
{
        struct safetensors s;
        struct made made;

        (void)state;
        make_safetensors(&made, "{}", 2, 0, 0);
        assert_int_equal(parse(&made, 0, &s), 0);
        assert_int_equal(s.tensors.count, 0);
        safetensors_deinit(&s);
        make_safetensors(&made, "{\"__metadata__\":{}}", 19, 0, 0);
        assert_int_equal(parse(&made, 0, &s), 0);
        assert_int_equal(s.tensors.count, 0);
        safetensors_deinit(&s);
}

static void reads_a_tensor_without_dimensions_as_one_number(void **state)
{
        static const char header[] =
                "{" MEMBER("a", "F32", "[]", "[0,4]") "," MEMBER("c", "F32", "[15]", "[4,64]") "}";
        const struct tensor *t;
        struct safetensors s;
        struct made made;

        (void)state;
        make_safetensors(&made, header, strlen(header), DATA, 0);
        assert_int_equal(parse(&made, 0, &s), 0);
        t = tensor_table_find(&s.tensors, "a");
        assert_true(!t->unserved && t->rows == 1 && t->columns == 1 && t->bytes == 4);
        safetensors_deinit(&s);
}

static void lists_tensors_of_unsupported_types_with_the_reason(void **state)
{
        static const struct {
                const char *header, *message;
        } kinds[] = {
                { "{" MEMBER("a", "F64", "[2,4]", "[0,64]") "}", "type F64 is not supported" },
                { "{" MEMBER("a", "I8", "[64]", "[0,64]") "}", "type I8 is not supported" },
                { "{" MEMBER("a", "BOOL", "[8,8]", "[0,64]") "}", "type BOOL is not supported" },
                { "{" MEMBER("a", "F8_E4M3", "[8,8]", "[0,64]") "}", "F8_E4M3 needs scales" },
                { "{" MEMBER("a", "F4", "[8,16]", "[0,64]") "}", "type F4 is not supported yet" },
                { "{" MEMBER("a", "F32", "[2,2,4]", "[0,64]") "}", "more than two dimensions" },
                { "{" MEMBER("a", "I64", "[]", "[0,8]") "," MEMBER("c", "F32", "[14]",
                                                                   "[8,64]") "}",
                  "type I64 is not supported" },
                { "{" MEMBER("a", "F8_E4M3", "[1,8,8]", "[0,64]") "}", "more than two dimensions" },
        };
        struct safetensors s;
        struct made made;

        (void)state;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                make_safetensors(&made, kinds[i].header, strlen(kinds[i].header), DATA, 0);
                if (parse(&made, 0, &s))
                        fail_msg("%s: %s", kinds[i].header, why);
                assert_non_null(
                        strstr(tensor_table_find(&s.tensors, "a")->unserved, kinds[i].message));
                safetensors_deinit(&s);
        }
}

/* As many tensors as there may be, of four bytes each, and then more. */
static void limits_the_number_of_tensors(void **state)
{
        static const uint32_t counts[] = { TENSORS_MAX, TENSORS_MAX + 1, 100000 };
        static uint8_t bytes[12 << 20];
        struct safetensors s = { 0 };

        (void)state;
        for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
                char *text = (char *)bytes + 8;
                size_t n = 0;
                int r;

                for (uint32_t t = 0; t < counts[i]; t++)
                        n += (size_t)sprintf(text + n, "%c" MEMBER("t%u", "F32", "[1]", "[%u,%u]"),
                                             t ? ',' : '{', t, 4 * t, 4 * t + 4);
                text[n++] = '}';
                for (unsigned b = 0; b < 8; b++)
                        bytes[b] = (uint8_t)(n >> (8 * b));
                r = safetensors_parse(bytes, 8 + n, 8 + n + 4 * (uint64_t)counts[i], &s, why,
                                      sizeof(why));
                assert_int_equal(r, i ? -EINVAL : 0);
                if (i)
                        assert_non_null(strstr(why, "tensors, more than 65536"));
                else
                        assert_int_equal(s.tensors.count, TENSORS_MAX);
                safetensors_deinit(&s);
        }
}

static void cuts_the_message_to_a_short_buffer(void **state)
{
        struct safetensors s = { 0 };
        struct made made;
        char small[8];

        (void)state;
        make_safetensors(&made, "{" A "}", sizeof("{" A "}") - 1, 0, 0);
        for (size_t n = 1; n <= sizeof(small); n++) {
                memset(small, 'x', sizeof(small));
                assert_int_equal(
                        safetensors_parse(made.bytes, made.count, made.count, &s, small, n),
                        -EINVAL);
                assert_int_equal(strlen(small), n - 1);
        }
}

static void reads_a_file_and_reports_one_that_became_shorter(void **state)
{
        char path[] = "/tmp/test-safetensors-XXXXXX";
        struct safetensors s;
        struct made made;
        int fd = mkstemp(path);

        (void)state;
        assert_true(fd >= 0);
        make_safetensors(&made, GOOD, sizeof(GOOD) - 1, DATA, 0);
        assert_int_equal(write(fd, made.bytes, made.count), made.count);
        assert_int_equal(safetensors_read(fd, made.count, &s, why, sizeof(why)), 0);
        assert_int_equal(s.tensors.count, 2);
        safetensors_deinit(&s);
        assert_int_equal(ftruncate(fd, 20), 0);
        assert_int_equal(safetensors_read(fd, made.count, &s, why, sizeof(why)), -EIO);
        assert_non_null(strstr(why, "became shorter"));
        close(fd);
        unlink(path);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parses_a_valid_file_into_a_table),
                cmocka_unit_test(accepts_a_file_without_tensors),
                cmocka_unit_test(refuses_each_malformed_file_with_its_message),
                cmocka_unit_test(refuses_input_truncated_at_any_byte),
                cmocka_unit_test(reads_a_tensor_without_dimensions_as_one_number),
                cmocka_unit_test(lists_tensors_of_unsupported_types_with_the_reason),
                cmocka_unit_test(limits_the_number_of_tensors),
                cmocka_unit_test(cuts_the_message_to_a_short_buffer),
                cmocka_unit_test(reads_a_file_and_reports_one_that_became_shorter),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
