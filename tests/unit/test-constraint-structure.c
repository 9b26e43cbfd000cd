/* Structures: free text and what may stand in it, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/structure-rig.h"

static void free_text_is_any_text_until_a_mark(void **state)
{
        static const struct structure call[] = { LITERAL("<call>"),
                                                 SCHEMA("{\"type\":\"integer\"}"),
                                                 LITERAL("</call>") };
        static const struct structure parts[] = { SEQUENCE(call) };
        static const struct structure text = { .kind = STRUCTURE_TEXT, PARTS(parts), .max = 9 };

        (void)state;
        CHECK(&text, { WHOLE, TEXT("") }, { WHOLE, TEXT("any text, <call and <<cal") },
              { WHOLE, TEXT("\x80 is no UTF-8") }, { BEGUN, TEXT("so <call>") },
              { BEGUN, TEXT("<call>12") }, { ILLEGAL, TEXT("<call>x") },
              { WHOLE, TEXT("<<call>12</call>") },
              { WHOLE, TEXT("<call>12</call> and <call>3</call>.") },
              { ILLEGAL, TEXT("<call>1</call><call>2</call><call>.") }, { ILLEGAL, TEXT(T0) },
              { ILLEGAL, TEXT("<call>" T0) });
}

static void the_first_mark_that_comes_begins_its_part(void **state)
{
        static const struct structure one[] = { LITERAL("aba"), LITERAL("1") };
        static const struct structure other[] = { LITERAL("ba!"), LITERAL("2") };
        static const struct structure parts[] = { SEQUENCE(one), SEQUENCE(other) };
        static const struct structure text = { .kind = STRUCTURE_TEXT, PARTS(parts), .max = 9 };

        (void)state;
        CHECK(&text, { BEGUN, TEXT("aba") }, { ILLEGAL, TEXT("abab") }, { ILLEGAL, TEXT("aba!") },
              { WHOLE, TEXT("aba1") }, { WHOLE, TEXT("bba!2aaba1") }, { ILLEGAL, TEXT("bba!1") });
}

static void parts_of_free_text_are_counted(void **state)
{
        static const struct structure parts[] = { LITERAL("+"), LITERAL("-") };
        struct structure text = { .kind = STRUCTURE_TEXT, PARTS(parts), .min = 1, .max = 2 };

        (void)state;
        CHECK(&text, { BEGUN, TEXT("a") }, { WHOLE, TEXT("a+") }, { WHOLE, TEXT("a+b-c") },
              { ILLEGAL, TEXT("+-+") });
        text.closed = true;
        CHECK(&text, { BEGUN, TEXT("a") }, { WHOLE, TEXT("a+") }, { BEGUN, TEXT("a+b") },
              { FINAL, TEXT("a+b-") });
        text.min = 0;
        text.max = 1;
        CHECK(&text, { WHOLE, TEXT("") }, { WHOLE, TEXT("a") }, { FINAL, TEXT("a+") });
}

static void text_before_a_mark_stands_anywhere(void **state)
{
        static const struct structure end[] = { LITERAL("</think>") };
        static const struct structure parts[] = {
                { .kind = STRUCTURE_TEXT, PARTS(end), .min = 1, .max = 1, .closed = true },
                REGEX("\\n{0,2}"),
                SCHEMA("{\"enum\":[1,12]}"),
        };
        static const struct structure both = SEQUENCE(parts);

        (void)state;
        CHECK(&both, { BEGUN, TEXT("") }, { BEGUN, TEXT("12</think") },
              { BEGUN, TEXT("</think>\n") }, { WHOLE, TEXT("x</</think>\n\n1") },
              { FINAL, TEXT("</think>12") }, { ILLEGAL, TEXT("</think></think>") });
}

static void reasoning_may_be_left_out(void **state)
{
        static const struct structure end[] = { LITERAL("</think>") };
        static const struct structure open[] = {
                LITERAL("<think>"),
                { .kind = STRUCTURE_TEXT, PARTS(end), .min = 1, .max = 1, .closed = true }
        };
        static const struct structure either[] = { SEQUENCE(open), LITERAL("") };
        static const struct structure call[] = { LITERAL(T1) };
        static const struct regex_text marks[] = { TEXT("<think>"), TEXT("</think>") };
        static const struct structure parts[] = { CHOICE(either),
                                                  { .kind = STRUCTURE_TEXT,
                                                    PARTS(call),
                                                    .max = REGEX_FOREVER,
                                                    .without = marks,
                                                    .without_count = 2 } };
        static const struct structure both = SEQUENCE(parts);

        (void)state;
        CHECK(&both, { WHOLE, TEXT("<think") }, { BEGUN, TEXT("<think>") },
              { ILLEGAL, TEXT("<think>" T1) }, { WHOLE, TEXT("<think>x</think>y" T1) },
              { ILLEGAL, TEXT("x<think>") }, { ILLEGAL, TEXT("<think>x</think>y</think>") },
              { WHOLE, TEXT("x" T1 T1) });
}

static void lists_have_texts_between(void **state)
{
        static const struct structure element[] = { REGEX("a?") };
        struct structure list = {
                .kind = STRUCTURE_LIST, PARTS(element), .min = 2, .max = 3, .text = TEXT(", ")
        };

        (void)state;
        CHECK(&list, { BEGUN, TEXT("a") }, { BEGUN, TEXT("a,") }, { WHOLE, TEXT("a, a") },
              { WHOLE, TEXT(", ") }, { FINAL, TEXT("a, , a") }, { ILLEGAL, TEXT("a, a, a,") });
        list.min = 0;
        list.max = REGEX_FOREVER;
        CHECK(&list, { WHOLE, TEXT("") }, { WHOLE, TEXT("a") }, { ILLEGAL, TEXT("aa") },
              { WHOLE, TEXT("a, a, a, a") });
        list.max = 1;
        CHECK(&list, { WHOLE, TEXT("") }, { FINAL, TEXT("a") });
        list.text = (struct regex_text){ 0 };
        list.max = 2;
        CHECK(&list, { WHOLE, TEXT("") }, { WHOLE, TEXT("a") }, { FINAL, TEXT("aa") });
}

static void a_fault_is_told_with_the_place_of_its_part(void **state)
{
        static const struct structure inner[] = { LITERAL("a"), SCHEMA("{\"maxLenght\":1}") };
        static const struct structure nested[] = { LITERAL("a"), SEQUENCE(inner) };
        static const struct structure schema = SEQUENCE(nested);
        static const struct structure text[] = { { .kind = STRUCTURE_TEXT }, LITERAL("a") };
        static const struct structure early = SEQUENCE(text);
        static const struct structure hidden[] = { LITERAL("<a"), LITERAL("<ab") };
        static const struct structure marks = { .kind = STRUCTURE_TEXT, PARTS(hidden), .max = 1 };
        static const struct structure markless = { .kind = STRUCTURE_TEXT, PARTS(text), .max = 1 };
        static const struct structure no_text = LITERAL("a\x80");
        static const struct structure no_token = LITERAL("a\xff\x80");
        static const struct structure nothing = { .kind = STRUCTURE_CHOICE };
        struct structure deep[20];

        (void)state;
        check_refused(&schema, "part \"/1/1\": schema, at \"/maxLenght\": the keyword maxLenght is "
                               "not supported");
        check_refused(&early, "part \"/0\": free text that may be the last of all is not the last");
        check_refused(&marks,
                      "part \"/1\": its mark is never complete: another one is inside of it");
        check_refused(&markless, "part \"\": a part of free text does not begin with a mark");
        check_refused(&no_text, "part \"\": a text is not UTF-8");
        check_refused(&no_token, "part \"\": a text is not UTF-8");
        check_refused(&nothing, "part \"\": there is nothing to choose");
        for (int i = 0; i < 20; i++)
                deep[i] = (struct structure){ .kind = STRUCTURE_SEQUENCE,
                                              .parts = &deep[i + 1],
                                              .count = i < 19 };
        check_refused(&deep[0], "part \"/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0\": parts are nested more "
                                "than 16 deep");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(free_text_is_any_text_until_a_mark),
                cmocka_unit_test(the_first_mark_that_comes_begins_its_part),
                cmocka_unit_test(parts_of_free_text_are_counted),
                cmocka_unit_test(text_before_a_mark_stands_anywhere),
                cmocka_unit_test(reasoning_may_be_left_out),
                cmocka_unit_test(lists_have_texts_between),
                cmocka_unit_test(a_fault_is_told_with_the_place_of_its_part),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
