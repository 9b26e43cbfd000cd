#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct thing {
        int number;
        struct list_head link;
        struct list_head other;
};

static int number_of(const struct list_head *link)
{
        return LIST_ENTRY(link, struct thing, link)->number;
}

/* Checks that the list has these things, in both directions; `count` may be 0. */
static void expect_list(const struct list_head *list, const int *numbers, uint32_t count)
{
        uint32_t i = 0;

        list_each(at, list) {
                assert_true(i < count);
                assert_int_equal(number_of(at), numbers[i++]);
        }
        assert_int_equal(i, count);
        for (const struct list_head *at = list->prev; at != list; at = at->prev)
                assert_int_equal(number_of(at), numbers[--i]);
        assert_int_equal(i, 0);
        assert_int_equal(list_is_empty(list), !count);
        if (!count) {
                assert_null(list_first(list));
                assert_null(list_last(list));
                return;
        }
        assert_int_equal(number_of(list_first(list)), numbers[0]);
        assert_int_equal(number_of(list_last(list)), numbers[count - 1]);
}

#define EXPECT(list, ...)                                                                          \
        expect_list(list, (const int[]){ __VA_ARGS__ },                                            \
                    sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static void keeps_the_order_of_insertion(void **state)
{
        struct thing a = { .number = 1 }, b = { .number = 2 }, c = { .number = 3 };
        struct list_head list;

        (void)state;
        list_init(&list);
        expect_list(&list, NULL, 0);
        list_push_back(&list, &b.link);
        EXPECT(&list, 2);
        list_push_back(&list, &c.link);
        EXPECT(&list, 2, 3);
        list_push_front(&list, &a.link);
        EXPECT(&list, 1, 2, 3);
}

static void inserts_before_any_link(void **state)
{
        struct thing a = { .number = 1 }, b = { .number = 2 }, c = { .number = 3 };
        struct list_head list;

        (void)state;
        list_init(&list);
        list_push_back(&list, &c.link);
        list_insert_before(&c.link, &a.link);
        list_insert_before(&c.link, &b.link);
        EXPECT(&list, 1, 2, 3);
}

static void removes_any_link_and_takes_it_again(void **state)
{
        struct thing a = { .number = 1 }, b = { .number = 2 }, c = { .number = 3 };
        struct list_head list;

        (void)state;
        list_init(&list);
        list_push_back(&list, &a.link);
        list_push_back(&list, &b.link);
        list_push_back(&list, &c.link);
        list_remove(&b.link);
        EXPECT(&list, 1, 3);
        assert_true(list_is_empty(&b.link));
        list_remove(&b.link); /* no effect */
        EXPECT(&list, 1, 3);
        list_remove(&a.link);
        list_remove(&c.link);
        expect_list(&list, NULL, 0);
        list_push_front(&list, &b.link);
        EXPECT(&list, 2);
}

static void removing_a_zeroed_link_does_nothing(void **state)
{
        struct thing a = { .number = 1 };

        (void)state;
        assert_true(list_is_empty(&a.link));
        list_remove(&a.link);
        assert_true(list_is_empty(&a.link));
}

static void rotates_the_first_to_the_end(void **state)
{
        struct thing a = { .number = 1 }, b = { .number = 2 }, c = { .number = 3 };
        struct list_head list;

        (void)state;
        list_init(&list);
        list_rotate(&list); /* no effect */
        expect_list(&list, NULL, 0);
        list_push_back(&list, &a.link);
        list_rotate(&list);
        EXPECT(&list, 1);
        list_push_back(&list, &b.link);
        list_push_back(&list, &c.link);
        list_rotate(&list);
        EXPECT(&list, 2, 3, 1);
}

static void pops_the_first_until_it_is_empty(void **state)
{
        struct thing a = { .number = 1 }, b = { .number = 2 };
        struct list_head list;

        (void)state;
        list_init(&list);
        list_push_back(&list, &a.link);
        list_push_back(&list, &b.link);
        assert_ptr_equal(list_pop_front(&list), &a.link);
        assert_ptr_equal(list_pop_front(&list), &b.link);
        assert_null(list_pop_front(&list));
}

static void a_loop_may_remove_what_it_visits(void **state)
{
        struct thing things[6];
        struct list_head list;

        (void)state;
        list_init(&list);
        for (int i = 0; i < 6; i++) {
                things[i] = (struct thing){ .number = i };
                list_push_back(&list, &things[i].link);
        }
        list_each_safe(at, &list) {
                if (number_of(at) % 2 == 0)
                        list_remove(at);
        }
        EXPECT(&list, 1, 3, 5);
        list_each_safe(at, &list) {
                list_remove(at);
        }
        expect_list(&list, NULL, 0);
}

static void an_object_can_be_in_two_lists(void **state)
{
        struct thing a = { .number = 1 }, b = { .number = 2 };
        struct list_head list, others;

        (void)state;
        list_init(&list);
        list_init(&others);
        list_push_back(&list, &a.link);
        list_push_back(&list, &b.link);
        list_push_back(&others, &b.other);
        list_push_back(&others, &a.other);
        assert_ptr_equal(LIST_ENTRY(list_first(&others), struct thing, other), &b);
        list_remove(&a.link);
        EXPECT(&list, 2);
        assert_ptr_equal(LIST_ENTRY(list_last(&others), struct thing, other), &a);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(keeps_the_order_of_insertion),
                cmocka_unit_test(inserts_before_any_link),
                cmocka_unit_test(removes_any_link_and_takes_it_again),
                cmocka_unit_test(removing_a_zeroed_link_does_nothing),
                cmocka_unit_test(rotates_the_first_to_the_end),
                cmocka_unit_test(pops_the_first_until_it_is_empty),
                cmocka_unit_test(a_loop_may_remove_what_it_visits),
                cmocka_unit_test(an_object_can_be_in_two_lists),
        };

        return cmocka_run_group_tests_name("list", stories, NULL, NULL);
}
