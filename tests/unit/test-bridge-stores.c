/* What clients store in samovar-http is bounded for each principal, and belongs to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "bridge/core/kept.h"
#include "bridge/openai/response-store.h"

static struct bridge bridge = {
        .conf = { .response_keep_ms = 3600000, .response_max = 3, .response_bytes = 1000 },
};

static struct bytes filled(size_t count)
{
        struct bytes bytes = { 0 };
        char *text = calloc(1, count + 1);

        memset(text, 'x', count);
        assert_int_equal(bytes_add(&bytes, text, count), 0);
        free(text);
        return bytes;
}

/* Stores a response of so many bytes. */
static int store(struct response_store *store, uint32_t principal, const char *id, size_t count)
{
        struct call call = { .bridge = &bridge, .principal = principal };
        struct bytes body = filled(count), input = { 0 }, items = { 0 };
        struct stored *stored;
        int r = response_store_add(store, &call, id, &body, &input, &items, &stored);

        bytes_deinit(&body);
        return r;
}

static bool has(struct response_store *store, uint32_t principal, const char *id)
{
        struct call call = { .bridge = &bridge, .principal = principal };

        return response_store_find(store, &call, (struct text){ id, strlen(id) }) != NULL;
}

static void forgets_the_oldest_of_many_responses(void **state)
{
        struct response_store *responses = response_store_new();

        (void)state;
        assert_int_equal(store(responses, 1, "other", 10), 0);
        assert_int_equal(store(responses, 0, "a", 10), 0);
        assert_int_equal(store(responses, 0, "b", 10), 0);
        assert_int_equal(store(responses, 0, "c", 10), 0);
        assert_true(has(responses, 0, "a"));
        assert_int_equal(store(responses, 0, "d", 10), 0);
        assert_false(has(responses, 0, "a"));
        assert_true(has(responses, 0, "b") && has(responses, 0, "d"));
        assert_true(has(responses, 1, "other"));
        assert_false(has(responses, 1, "b"));
        response_store_free(responses);
}

static void forgets_as_many_as_a_large_response_needs(void **state)
{
        struct response_store *responses = response_store_new();

        (void)state;
        assert_int_equal(store(responses, 1, "other", 900), 0);
        assert_int_equal(store(responses, 0, "a", 400), 0);
        assert_int_equal(store(responses, 0, "b", 400), 0);
        assert_int_equal(store(responses, 0, "c", 700), 0);
        assert_false(has(responses, 0, "a") || has(responses, 0, "b"));
        assert_true(has(responses, 0, "c") && has(responses, 1, "other"));
        response_store_free(responses);
}

static void does_not_store_a_response_larger_than_the_limit(void **state)
{
        struct response_store *responses = response_store_new();

        (void)state;
        assert_int_equal(store(responses, 0, "a", 1000), 0);
        assert_int_equal(store(responses, 0, "b", 1001), -EFBIG);
        assert_true(has(responses, 0, "a"));
        bridge.conf.response_max = 0;
        assert_int_equal(store(responses, 0, "c", 1), -EFBIG);
        bridge.conf.response_max = 3;
        response_store_free(responses);
}

static struct kept_stream *keep(struct kept_store *store, uint32_t principal, size_t count)
{
        struct bytes body = filled(count);
        struct kept_stream *stream =
                kept_add(store, principal, "/v1/responses", (struct text){ body.at, body.count }, 7,
                         &(struct kept_facts){ .created_s = 5 });

        bytes_deinit(&body);
        assert_non_null(stream);
        return stream;
}

static bool knows(const struct kept_store *store, uint32_t principal, const char *id)
{
        return kept_find(store, principal, (struct text){ id, strlen(id) }) != NULL;
}

static void forgets_the_oldest_of_many_kept_streams(void **state)
{
        struct kept_store *kept = kept_store_new();
        char first[48], second[48];

        (void)state;
        memcpy(first, keep(kept, 0, 10)->id, sizeof(first));
        memcpy(second, keep(kept, 0, 10)->id, sizeof(second));
        for (unsigned i = 2; i < KEPT_STREAMS_MAX; i++)
                keep(kept, 0, 10);
        assert_true(knows(kept, 0, first));
        assert_false(knows(kept, 1, first));
        keep(kept, 1, 10);
        assert_true(knows(kept, 0, first));
        keep(kept, 0, 10);
        assert_false(knows(kept, 0, first));
        assert_true(knows(kept, 0, second));
        kept_store_free(kept);
}

static void forgets_as_many_kept_streams_as_a_large_request_needs(void **state)
{
        struct kept_store *kept = kept_store_new();
        char small[48], large[48];

        (void)state;
        memcpy(small, keep(kept, 0, 10)->id, sizeof(small));
        memcpy(large, keep(kept, 0, KEPT_BYTES_MAX - 10)->id, sizeof(large));
        assert_true(knows(kept, 0, small));
        keep(kept, 0, 1);
        assert_false(knows(kept, 0, small));
        assert_true(knows(kept, 0, large));
        keep(kept, 0, 100);
        assert_false(knows(kept, 0, large));
        kept_store_free(kept);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(forgets_the_oldest_of_many_responses),
                cmocka_unit_test(forgets_as_many_as_a_large_response_needs),
                cmocka_unit_test(does_not_store_a_response_larger_than_the_limit),
                cmocka_unit_test(forgets_the_oldest_of_many_kept_streams),
                cmocka_unit_test(forgets_as_many_kept_streams_as_a_large_request_needs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
