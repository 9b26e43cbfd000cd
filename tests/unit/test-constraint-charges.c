/*
 * Constraints of users: who shares a grammar, and who pays for it.  At the end of each test nothing
 * is charged: quota_free() asserts that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/description-grammar.h"
#include "daemon/constraint/guide.h"
#include "daemon/edge/constraints.h"
#include "daemon/text/tokenizer.h"

#define VOCAB   300u
#define STREAMS 4u
#define LIMIT   UINT64_C(100000000)
#define KEPT    2u

static struct world {
        struct quota *quota;
        struct constraints *constraints;
        struct served served;
        struct token_trie *trie;
        struct stream *streams[STREAMS];
        struct wire_problem problem;
} world;

static struct quota_conf conf(uint64_t bytes)
{
        return (struct quota_conf){ .max = { [QUOTA_CONSTRAINT_BYTES] = bytes }, .owner = 1 };
}

static int set_up(void **state)
{
        const struct token_text texts[] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
        const struct quota_conf quota = conf(LIMIT);

        (void)state;
        world = (struct world){ 0 };
        assert_int_equal(quota_new(&quota, &world.quota), 0);
        assert_int_equal(constraints_new(world.quota, KEPT, &world.constraints), 0);
        assert_int_equal(tokenizer_open_bytes(VOCAB, &world.served.tokenizer), 0);
        world.trie = token_trie_new(texts, 3, NULL, 0);
        assert_non_null(world.trie);
        world.served.trie = world.trie;
        for (uint32_t i = 0; i < STREAMS; i++) {
                world.streams[i] = calloc(1, sizeof(struct stream));
                assert_non_null(world.streams[i]);
                world.streams[i]->request.model = &world.served;
                world.streams[i]->request.uid = 7;
                world.streams[i]->request.stream = 100 + i;
        }
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < STREAMS; i++) {
                constraints_release(world.streams[i]);
                free(world.streams[i]);
        }
        constraints_free(world.constraints);
        token_trie_free(world.trie);
        tokenizer_close(world.served.tokenizer);
        quota_free(world.quota);
        return 0;
}

static struct answer_form form_of(const char *text)
{
        return (struct answer_form){ .constraint = { text, (uint32_t)strlen(text) } };
}

static int find(uint32_t index, const char *text)
{
        const struct answer_form form = form_of(text);

        return constraints_find(world.constraints, world.streams[index], &form, &world.problem);
}

static int add(uint32_t index, const char *text)
{
        const struct answer_form form = form_of(text);
        struct grammar *grammar = NULL;
        char why[256] = "";

        assert_int_equal(description_grammar(text, form.constraint.count, &grammar_limits_default,
                                             &grammar, why, sizeof(why)),
                         0);
        return constraints_add(world.constraints, world.streams[index], &form, grammar,
                               &world.problem);
}

static uint64_t used(void)
{
        return quota_used(world.quota, QUOTA_CONSTRAINT_BYTES);
}

static uint64_t bytes_of(uint32_t index)
{
        return guide_bytes(world.streams[index]->request.guide);
}

static void release(uint32_t index)
{
        constraints_release(world.streams[index]);
        assert_null(world.streams[index]->request.guide);
}

#define ONE   "{\"choices\":[\"a\",\"ab\"]}"
#define OTHER "{\"regex\":\"[abc]*\"}"
#define THIRD "{\"json\":true}"

static void streams_of_a_user_share_a_constraint_by_its_text(void **state)
{
        uint64_t first;

        (void)state;
        assert_int_equal(find(0, ONE), CONSTRAINTS_E_UNKNOWN);
        assert_null(world.streams[0]->request.guide);
        assert_int_equal(used(), 0);
        assert_int_equal(add(0, ONE), 0);
        first = used();
        assert_true(first > bytes_of(0));
        assert_int_equal(find(1, ONE), 0);
        assert_int_equal(used(), first + bytes_of(1));
        assert_ptr_not_equal(world.streams[0]->request.guide, world.streams[1]->request.guide);
        assert_int_equal(find(2, OTHER), CONSTRAINTS_E_UNKNOWN);
        assert_int_equal(find(2, ONE " "), CONSTRAINTS_E_UNKNOWN);
}

static int find_form(uint32_t index, const struct answer_form *form)
{
        return constraints_find(world.constraints, world.streams[index], form, &world.problem);
}

static void forms_with_other_calls_or_reasoning_are_not_shared(void **state)
{
        struct answer_form form = form_of(ONE);

        (void)state;
        assert_int_equal(add(0, ONE), 0);
        form.calls = (struct wire_text){ "x", 1 };
        assert_int_equal(find_form(1, &form), CONSTRAINTS_E_UNKNOWN);
        form.constraint.count--; /* the same bytes, divided in another way */
        form.calls = (struct wire_text){ form.constraint.bytes + form.constraint.count, 1 };
        assert_int_equal(find_form(1, &form), CONSTRAINTS_E_UNKNOWN);
        form = form_of(ONE);
        form.reasoning = ANSWER_MAY_OPEN;
        assert_int_equal(find_form(1, &form), CONSTRAINTS_E_UNKNOWN);
        form.reasoning = ANSWER_WITHOUT;
        assert_int_equal(find_form(1, &form), 0);
}

static void users_do_not_share(void **state)
{
        (void)state;
        assert_int_equal(add(0, ONE), 0);
        world.streams[1]->request.uid = 8;
        assert_int_equal(find(1, ONE), CONSTRAINTS_E_UNKNOWN);
        release(0); /* it is kept now, for the first user only */
        assert_int_equal(find(1, ONE), CONSTRAINTS_E_UNKNOWN);
        assert_int_equal(find(0, ONE), 0);
}

/* The grammar is charged once, while any stream uses it, in whatever order they leave. */
static void each_charge_is_given_back_exactly_once(void **state)
{
        uint64_t grammar;

        (void)state;
        assert_int_equal(add(0, ONE), 0);
        grammar = used() - bytes_of(0);
        assert_int_equal(find(1, ONE), 0);
        assert_int_equal(constraints_share(world.streams[2], world.streams[1], &world.problem), 0);
        assert_int_equal(used(), grammar + bytes_of(0) + bytes_of(1) + bytes_of(2));
        release(1);
        assert_int_equal(used(), grammar + bytes_of(0) + bytes_of(2));
        release(1);
        assert_int_equal(used(), grammar + bytes_of(0) + bytes_of(2));
        release(0);
        assert_int_equal(used(), grammar + bytes_of(2));
        release(2);
        assert_int_equal(used(), 0);
        assert_int_equal(find(3, ONE), 0);
        assert_int_equal(used(), grammar + bytes_of(3));
}

static void keeps_the_last_constraints_that_nobody_uses(void **state)
{
        (void)state;
        assert_int_equal(add(0, ONE), 0);
        assert_int_equal(add(1, OTHER), 0);
        assert_int_equal(add(2, THIRD), 0);
        release(0);
        release(1);
        release(2); /* now ONE is forgotten */
        assert_int_equal(used(), 0);
        assert_int_equal(find(0, ONE), CONSTRAINTS_E_UNKNOWN);
        assert_int_equal(find(0, OTHER), 0);
        assert_int_equal(find(1, THIRD), 0);
}

static void siblings_all_get_guides(void **state)
{
        (void)state;
        world.streams[0]->request.sibling = &world.streams[1]->request;
        world.streams[1]->request.sibling = &world.streams[2]->request;
        assert_int_equal(add(0, ONE), 0);
        for (uint32_t i = 0; i < 3; i++)
                assert_non_null(world.streams[i]->request.guide);
        assert_null(world.streams[3]->request.guide);
}

static void a_stream_like_one_without_a_constraint_has_none(void **state)
{
        (void)state;
        assert_int_equal(constraints_share(world.streams[1], world.streams[0], &world.problem), 0);
        assert_null(world.streams[1]->request.guide);
        assert_int_equal(used(), 0);
}

static void limit(uint64_t bytes)
{
        const struct quota_conf lower = conf(bytes);

        quota_reload(world.quota, &lower);
}

/* The problem names the request that the client knows, not its sibling. */
static void refuses_what_is_over_the_limit_of_the_user(void **state)
{
        uint64_t one;

        (void)state;
        assert_int_equal(add(0, ONE), 0);
        one = used();
        release(0);
        limit(one - 1);
        assert_int_equal(find(0, ONE), WIRE_E_REFUSED);
        assert_int_equal(world.problem.code, SMV_QUOTA);
        assert_int_equal(world.problem.id, 100);
        assert_non_null(strstr(world.problem.message, "uid_constraint_bytes"));
        assert_null(world.streams[0]->request.guide);
        assert_int_equal(used(), 0);

        limit(one);
        assert_int_equal(find(0, ONE), 0);
        assert_int_equal(find(1, ONE), WIRE_E_REFUSED);
        assert_int_equal(constraints_share(world.streams[1], world.streams[0], &world.problem),
                         WIRE_E_REFUSED);
        assert_int_equal(used(), one);
        release(0);

        world.streams[0]->request.sibling = &world.streams[1]->request;
        assert_int_equal(find(0, ONE), WIRE_E_REFUSED);
        assert_int_equal(world.problem.id, 100);
        assert_null(world.streams[1]->request.guide);
        release(0); /* what it got before goes back with it */
        assert_int_equal(used(), 0);
}

/* It is compiled, and its stream may not have it. */
static void keeps_a_new_constraint_that_is_refused(void **state)
{
        (void)state;
        limit(1);
        assert_int_equal(add(0, ONE), WIRE_E_REFUSED);
        assert_int_equal(used(), 0);
        limit(LIMIT);
        assert_int_equal(find(0, ONE), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(streams_of_a_user_share_a_constraint_by_its_text),
                TEST(forms_with_other_calls_or_reasoning_are_not_shared),
                TEST(users_do_not_share),
                TEST(each_charge_is_given_back_exactly_once),
                TEST(keeps_the_last_constraints_that_nobody_uses),
                TEST(siblings_all_get_guides),
                TEST(a_stream_like_one_without_a_constraint_has_none),
                TEST(refuses_what_is_over_the_limit_of_the_user),
                TEST(keeps_a_new_constraint_that_is_refused),
        };

        return cmocka_run_group_tests_name("constraint-charges", tests, NULL, NULL);
}
