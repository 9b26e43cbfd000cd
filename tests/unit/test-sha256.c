/* SHA-256 and git's ids against the examples of NIST and against other programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/sha1.h"
#include "store/sha256.h"
#include "tests/skip.h"

#define MILLION 1000000u

static void hash(const char *text, size_t bytes, char ret_hex[SHA256_HEX_BYTES])
{
        struct sha256 sha256;

        sha256_begin(&sha256);
        sha256_add(&sha256, text, bytes);
        sha256_end_hex(&sha256, ret_hex);
}

static void gives_the_digests_of_the_standard(void **state)
{
        static const struct {
                const char *text, *digest;
        } cases[] = {
                { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
                { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
                { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
                { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnop"
                  "qklmnopqrlmnopqrsmnopqrstnopqrstu",
                  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
        };
        char hex[SHA256_HEX_BYTES];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                hash(cases[i].text, strlen(cases[i].text), hex);
                assert_string_equal(hex, cases[i].digest);
        }
}

static void gives_the_digest_of_a_million_letters(void **state)
{
        char *text = malloc(MILLION), hex[SHA256_HEX_BYTES];

        (void)state;
        assert_non_null(text);
        memset(text, 'a', MILLION);
        hash(text, MILLION, hex);
        assert_string_equal(hex,
                            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
        free(text);
}

/* Every length around the ends of blocks, cut at every place. */
static void gives_the_same_digest_however_the_text_is_cut(void **state)
{
        char text[260], whole[SHA256_HEX_BYTES], cut[SHA256_HEX_BYTES];

        (void)state;
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char)(i * 7);
        for (size_t bytes = 0; bytes <= sizeof(text); bytes++) {
                hash(text, bytes, whole);
                for (size_t at = 0; at <= bytes; at++) {
                        struct sha256 sha256;

                        sha256_begin(&sha256);
                        sha256_add(&sha256, text, at);
                        sha256_add(&sha256, text + at, bytes - at);
                        sha256_end_hex(&sha256, cut);
                        assert_string_equal(cut, whole);
                }
        }
}

#define PYTHON                                                                                     \
        "python3 -c 'import hashlib\n"                                                             \
        "t = bytes(i * 7 & 255 for i in range(300))\n"                                             \
        "for n in range(300):\n"                                                                   \
        "    b = b\"blob %d\\0\" % n + t[:n]\n"                                                    \
        "    print(hashlib.sha256(t[:n]).hexdigest(), hashlib.sha1(b).hexdigest())'"

static void gives_the_digests_of_python(void **state)
{
        char text[300], wanted[2][80], sha256_hex[SHA256_HEX_BYTES], sha1_hex[SHA1_HEX_BYTES];
        FILE *python;

        (void)state;
        if (system("python3 -c pass 2>/dev/null"))
                skip_because("there is no python3");
        python = popen(PYTHON, "r");
        assert_non_null(python);
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char)(i * 7);
        for (size_t bytes = 0; bytes < sizeof(text); bytes++) {
                struct sha1 blob;

                assert_int_equal(fscanf(python, "%79s %79s", wanted[0], wanted[1]), 2);
                hash(text, bytes, sha256_hex);
                assert_string_equal(sha256_hex, wanted[0]);
                sha1_begin_blob(&blob, bytes);
                sha1_add(&blob, text, bytes / 3);
                sha1_add(&blob, text + bytes / 3, bytes - bytes / 3);
                sha1_end_hex(&blob, sha1_hex);
                assert_string_equal(sha1_hex, wanted[1]);
        }
        assert_int_equal(pclose(python), 0);
}

static int set_plain(void **state)
{
        (void)state;
        sha256_plain = true;
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(gives_the_digests_of_the_standard),
                cmocka_unit_test(gives_the_digest_of_a_million_letters),
                cmocka_unit_test(gives_the_same_digest_however_the_text_is_cut),
                cmocka_unit_test(gives_the_digests_of_python),
        };
        int r = cmocka_run_group_tests_name("the processor's instructions", tests, NULL, NULL);

        return r + cmocka_run_group_tests_name("plain C", tests, set_plain, NULL);
}
