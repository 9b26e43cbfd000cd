/*
 * Handles: which clients may name one, and what forks share.  Charges cover the memory and are
 * given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/edge/handles.h"

#define UID   7u
#define OTHER 8u
#define MOST  4u
#define BYTES 4096u
#define ID    5u

struct world {
        struct quota *quota;
        struct handles *handles;
        struct served served;
        struct edge edge;
        struct peer owner, second;
};

static int set_up(void **state)
{
        const struct quota_conf conf = {
                .max = { [QUOTA_PROMPT_BYTES] = BYTES, [QUOTA_HANDLES] = MOST }
        };
        struct world *world = calloc(1, sizeof(*world));

        assert_int_equal(quota_new(&conf, &world->quota), 0);
        world->edge.quota = world->quota;
        assert_int_equal(handles_new(&world->edge, &world->handles), 0);
        world->edge.handles = world->handles;
        world->owner.edge = world->second.edge = &world->edge;
        list_init(&world->owner.handles);
        list_init(&world->second.handles);
        *state = world;
        return 0;
}

static int tear_down(void **state)
{
        struct world *world = *state;
        uint32_t index = 0;

        handles_leave(&world->owner);
        handles_leave(&world->second);
        assert_null(quota_next(world->quota, &index));
        assert_int_equal(world->served.references, 0);
        handles_free(world->handles);
        quota_free(world->quota);
        free(world);
        return 0;
}

static struct handle *open_one(struct world *world, struct peer *owner, uint32_t uid)
{
        struct wire_problem problem;
        struct handle *handle = NULL;

        owner->uid = uid;
        assert_int_equal(handles_open(owner, &world->served, 0, ID, &problem, &handle), 0);
        return handle;
}

static struct handle *fork_one(struct world *world, struct handle *handle)
{
        struct wire_problem problem;
        struct handle *fork = NULL;

        assert_int_equal(handles_fork(&world->owner, handle, 0, ID, &problem, &fork), 0);
        return fork;
}

/* first, first + 1 ... */
static void append(struct world *world, struct handle *handle, uint32_t first, uint32_t count)
{
        struct wire_problem problem;
        uint32_t ids[64];

        for (uint32_t i = 0; i < count; i++)
                ids[i] = first + i;
        assert_int_equal(handles_append(world->handles, handle, ids, count, ID, &problem), 0);
}

static void expect_tokens(const struct handle *handle, uint32_t first, uint32_t count)
{
        assert_int_equal(handle->count, count);
        for (uint32_t i = 0; i < count; i++)
                assert_int_equal(handle->tokens[i], first + i);
}

static void gives_each_handle_a_new_number_visible_to_its_user_only(void **state)
{
        struct world *world = *state;
        struct handle *a = open_one(world, &world->owner, UID), *b, *c;
        uint64_t first = a->number;

        b = open_one(world, &world->owner, UID);
        assert_true(first && b->number != first);
        assert_ptr_equal(handles_find(world->handles, UID, first), a);
        assert_null(handles_find(world->handles, OTHER, first));
        assert_null(handles_find(world->handles, UID, b->number + 1));
        assert_null(handles_find(world->handles, UID, b->number + 1024)); /* the same bucket */
        assert_null(handles_find(world->handles, UID, 0));
        assert_null(handles_find(world->handles, UID, UINT64_MAX));
        handle_close(a);
        assert_null(handles_find(world->handles, UID, first));
        for (uint32_t i = 0; i < 2000; i++) {
                c = open_one(world, &world->second, OTHER);
                assert_true(c->number && c->number != first);
                assert_ptr_equal(handles_find(world->handles, OTHER, c->number), c);
                handle_close(c);
        }
        assert_ptr_equal(handles_find(world->handles, UID, b->number), b);
}

static void appends_and_truncates_tokens(void **state)
{
        struct world *world = *state;
        struct handle *handle = open_one(world, &world->owner, UID);

        append(world, handle, 0, 0);
        expect_tokens(handle, 0, 0);
        append(world, handle, 10, 40);
        append(world, handle, 50, 1);
        expect_tokens(handle, 10, 41);
        assert_int_equal(handles_truncate(world->handles, handle, 41), 0);
        assert_int_equal(handles_truncate(world->handles, handle, 17), 0);
        append(world, handle, 27, 3);
        expect_tokens(handle, 10, 20);
        assert_int_equal(handles_sum(world->handles).tokens, 20);
        assert_int_equal(handles_truncate(world->handles, handle, 0), 0);
        assert_null(handle->tokens);
        append(world, handle, 3, 2);
        expect_tokens(handle, 3, 2);
}

static void changing_shared_tokens_does_not_change_other_handles(void **state)
{
        struct world *world = *state;
        struct handle *a = open_one(world, &world->owner, UID), *b, *c, *d;

        append(world, a, 1, 30);
        b = fork_one(world, a);
        c = fork_one(world, b);
        assert_true(a->tokens == b->tokens && b->tokens == c->tokens);
        append(world, b, 31, 5);
        assert_int_equal(handles_truncate(world->handles, c, 7), 0);
        expect_tokens(a, 1, 30);
        expect_tokens(b, 1, 35);
        expect_tokens(c, 1, 7);
        assert_true(a->tokens != b->tokens && a->tokens != c->tokens);

        d = fork_one(world, a);
        handle_close(a);
        expect_tokens(d, 1, 30);
        append(world, d, 31, 1);
        expect_tokens(d, 1, 31);
        assert_int_equal(handles_truncate(world->handles, d, 0), 0);
        a = fork_one(world, d);
        append(world, a, 9, 1);
        expect_tokens(d, 0, 0);
}

static void replaces_shared_tokens_by_generated_ones_in_one_handle_only(void **state)
{
        struct world *world = *state;
        struct handle *a = open_one(world, &world->owner, UID), *b;
        uint32_t *more = malloc(50 * sizeof(*more));
        struct wire_problem problem;

        append(world, a, 1, 30);
        b = fork_one(world, a);
        for (uint32_t i = 0; i < 50; i++)
                more[i] = 1 + i;
        assert_int_equal(handles_replace(world->handles, b, more, 40, ID, &problem), 0);
        expect_tokens(a, 1, 30);
        expect_tokens(b, 1, 40);
        assert_int_equal(handles_sum(world->handles).tokens, 70);
}

static void expect_full(int r, const struct wire_problem *problem, const char *said)
{
        assert_int_equal(r, WIRE_E_REFUSED);
        assert_int_equal(problem->code, SMV_QUOTA);
        assert_int_equal(problem->id, ID);
        assert_non_null(strstr(problem->message, said));
}

/*
 * Every handle is charged for all of its tokens, so that the remaining handles have paid for
 * the remaining tokens.
 */
static void a_refused_operation_changes_nothing(void **state)
{
        struct world *world = *state;
        struct handle *a = open_one(world, &world->owner, UID), *b = NULL;
        static const uint32_t zeros[1024];
        struct wire_problem problem;
        struct handles_sum before;

        append(world, a, 1, 60);
        b = fork_one(world, a);
        before = handles_sum(world->handles);
        assert_true(before.bytes > 2 * 60 * sizeof(uint32_t));
        expect_full(handles_append(world->handles, b, zeros, 1024, ID, &problem), &problem,
                    "limit of 4096 (uid_prompt_bytes)");
        assert_int_equal(handles_sum(world->handles).bytes, before.bytes);
        assert_ptr_equal(a->tokens, b->tokens);

        fork_one(world, b);
        open_one(world, &world->owner, UID);
        before = handles_sum(world->handles);
        expect_full(handles_open(&world->owner, &world->served, 0, ID, &problem, &b), &problem,
                    "you have 4 handles, the limit (uid_handles)");
        expect_full(handles_fork(&world->owner, a, 0, ID, &problem, &b), &problem,
                    "you have 4 handles, the limit (uid_handles)");
        open_one(world, &world->second, OTHER); /* another user, with limits of its own */
        assert_int_equal(handles_sum(world->handles).open, before.open + 1);
        expect_tokens(a, 1, 60);
}

static void charges_a_user_for_all_tokens_of_its_handles(void **state)
{
        struct world *world = *state;
        const struct quota_user *account;
        struct handle *a = open_one(world, &world->owner, UID);
        uint64_t empty;
        uint32_t index = 0;

        account = quota_next(world->quota, &index);
        empty = account->held[QUOTA_PROMPT_BYTES];
        assert_int_equal(empty, handles_sum(world->handles).bytes);
        append(world, a, 1, 50);
        fork_one(world, a);
        assert_int_equal(account->held[QUOTA_PROMPT_BYTES], 2 * empty + 100 * sizeof(uint32_t));
        assert_int_equal(account->held[QUOTA_HANDLES], 2);
        assert_int_equal(handles_truncate(world->handles, a, 10), 0);
        assert_int_equal(account->held[QUOTA_PROMPT_BYTES], 2 * empty + 60 * sizeof(uint32_t));
        handle_close(a);
        assert_int_equal(account->held[QUOTA_PROMPT_BYTES], empty + 50 * sizeof(uint32_t));
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest stories[] = {
                STORY(gives_each_handle_a_new_number_visible_to_its_user_only),
                STORY(appends_and_truncates_tokens),
                STORY(changing_shared_tokens_does_not_change_other_handles),
                STORY(replaces_shared_tokens_by_generated_ones_in_one_handle_only),
                STORY(a_refused_operation_changes_nothing),
                STORY(charges_a_user_for_all_tokens_of_its_handles),
        };

        return cmocka_run_group_tests_name("handles", stories, NULL, NULL);
}
