#include "daemon/text/tokenizer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct tokenizer *open_bytes(uint32_t vocab)
{
        struct tokenizer *tokenizer;

        assert_int_equal(tokenizer_open_bytes(vocab, &tokenizer), 0);
        assert_int_equal(tokenizer_vocab(tokenizer), vocab);
        return tokenizer;
}

static size_t encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
                     uint32_t *ret_ids)
{
        size_t count = 0;

        assert_int_equal(tokenizer_encode(tokenizer, text, bytes, NULL, ret_ids, &count), 0);
        return count;
}

static void a_byte_vocabulary_needs_at_least_256_ids(void **state)
{
        struct tokenizer *tokenizer = NULL;

        (void)state;
        assert_int_equal(tokenizer_open_bytes(255, &tokenizer), -EINVAL);
        assert_int_equal(tokenizer_open_bytes(0, &tokenizer), -EINVAL);
        assert_null(tokenizer);
        assert_null(tokenizer_close(open_bytes(256)));
        assert_null(tokenizer_close(NULL));
}

static void decoding_restores_any_bytes(void **state)
{
        struct tokenizer *tokenizer = open_bytes(300);
        char text[1024], back[1024];
        uint32_t ids[1024];
        size_t count, used = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char)(i * 167 + i / 256);
        assert_true(tokenizer_ids_max(tokenizer, sizeof(text)) <= 1024);
        count = encode(tokenizer, text, sizeof(text), ids);
        assert_true(count <= tokenizer_ids_max(tokenizer, sizeof(text)));
        for (size_t i = 0; i < count; i++) {
                size_t bytes;
                const char *piece = tokenizer_piece(tokenizer, ids[i], &bytes);

                assert_true(bytes <= tokenizer_piece_max(tokenizer));
                assert_true(used + bytes <= sizeof(back));
                memcpy(back + used, piece, bytes);
                used += bytes;
        }
        assert_int_equal(used, sizeof(text));
        assert_memory_equal(back, text, sizeof(text));
        assert_int_equal(encode(tokenizer, "", 0, ids), 0);
        tokenizer_close(tokenizer);
}

static void byte_tokens_are_their_ids_and_special_tokens_have_no_text(void **state)
{
        struct tokenizer *tokenizer = open_bytes(259);
        uint32_t ids[3];
        size_t bytes;

        (void)state;
        assert_int_equal(encode(tokenizer, "a\xFF\0", 3, ids), 3);
        assert_int_equal(ids[0], 97);
        assert_int_equal(ids[1], 255);
        assert_int_equal(ids[2], 0);
        for (uint32_t id = 0; id < 259; id++) {
                const char *piece = tokenizer_piece(tokenizer, id, &bytes);

                assert_non_null(piece);
                assert_int_equal(bytes, id < 256 ? 1 : 0);
                if (bytes)
                        assert_int_equal((uint8_t)piece[0], id);
        }
        tokenizer_close(tokenizer);
}

static void a_divisible_tokenizer_encodes_parts_as_the_whole(void **state)
{
        static const char text[] = "caf\xC3\xA9 \xF0\x9F\x98\x80 \x80 text";
        struct tokenizer *tokenizer = open_bytes(256);
        uint32_t whole[64], parts[64];
        const size_t n = sizeof(text) - 1;
        size_t count = encode(tokenizer, text, n, whole);

        (void)state;
        assert_true(tokenizer_divisible(tokenizer));
        for (size_t cut = 0; cut <= n; cut++) {
                size_t first = encode(tokenizer, text, cut, parts);

                assert_int_equal(first + encode(tokenizer, text + cut, n - cut, parts + first),
                                 count);
                assert_memory_equal(parts, whole, count * sizeof(whole[0]));
        }
        tokenizer_close(tokenizer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_byte_vocabulary_needs_at_least_256_ids),
                cmocka_unit_test(decoding_restores_any_bytes),
                cmocka_unit_test(byte_tokens_are_their_ids_and_special_tokens_have_no_text),
                cmocka_unit_test(a_divisible_tokenizer_encodes_parts_as_the_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
