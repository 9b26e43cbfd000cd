/* The JSON that the library writes is valid and safe to print, whatever its input was. */
#include "json/utf8.h"
#include "json/writer.h"
#include "tests/unit/client-rig.h"

static void converts_status_to_valid_json(void **state)
{
        const char *json;
        struct wire w;

        (void)state;
        begin();
        ok_begin(&script, 2, 1);
        text(&script, "status");
        byte(&script, 0x86);
        text(&script, "a\"\x1b");
        number(&script, 4000000000u);
        text(&script, "list");
        raw(&script, "\x93\xc0\xc2\xff", 4);
        text(&script, "half");
        raw(&script, "\xcb\x3f\xe0\0\0\0\0\0\0", 9);
        text(&script, "nan");
        raw(&script, "\xcb\x7f\xf8\0\0\0\0\0\0", 9);
        text(&script, "raw");
        raw(&script, "\xc4\x03\xff\xc3\xa9", 5);
        byte(&script, 7);
        raw(&script, "\x81\xa1k\xca\x3d\xcc\xcc\xcd", 8);
        frame_end(&script);
        open_wire(&w);
        assert_int_equal(smv_status(w.client, &json), 0);
        assert_string_equal(json,
                            "{\"a\\\"\\u001b\":4000000000,\"list\":[null,false,-1],\"half\":0.5,"
                            "\"nan\":null,\"raw\":\"\\ufffd\xc3\xa9\","
                            "\"7\":{\"k\":0.10000000149011612}}");
        close_wire(&w);
}

static void decodes_utf8_strictly(void **state)
{
        static const struct {
                const char *bytes;
                size_t count;
                int32_t point;
                size_t length;
        } cases[] = {
                { "a", 1, 'a', 1 },
                { "\xc3\xa9", 2, 0xe9, 2 },
                { "\xe2\x82\xac", 3, 0x20ac, 3 },
                { "\xf0\x9f\x98\x80", 4, 0x1f600, 4 },
                { "\xc3", 1, -2, 1 },
                { "\xf0\x9f\x98", 3, -2, 1 },
                { "\xc0\x80", 2, -1, 1 },         /* too long for NUL */
                { "\xe0\x80\x80", 3, -1, 1 },     /* the same */
                { "\xed\xa0\x80", 3, -1, 1 },     /* half a surrogate pair */
                { "\xf4\x90\x80\x80", 4, -1, 1 }, /* past the last */
                { "\x9b", 1, -1, 1 },             /* C1, raw */
                { "\xc2\x9b", 2, 0x9b, 2 },       /* C1, encoded */
        };
        size_t length;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                assert_int_equal(utf8_next(cases[i].bytes, cases[i].count, &length),
                                 cases[i].point);
                assert_int_equal(length, cases[i].length);
        }
        assert_true(utf8_is_control(0x1b) && utf8_is_control(0x9b) && utf8_is_control('\r'));
        assert_false(utf8_is_control('\n') || utf8_is_control('\t') || utf8_is_control(0xe9));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(converts_status_to_valid_json),
                cmocka_unit_test(decodes_utf8_strictly),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
