/* What samovar-http counts, and how it writes it for Prometheus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <samovar/client.h>

#include "bridge/core/metrics.h"
#include "json/document.h"
#include "json/reader.h"

#define MS UINT64_C(1000000)

static struct bytes text;

static void write_with(const struct metrics *metrics, const struct metrics_now *now)
{
        text.count = 0;
        assert_int_equal(metrics_write(metrics, now, &text), 0);
        assert_int_equal(bytes_add(&text, "", 1), 0);
}

static void write_all(const struct metrics *metrics)
{
        write_with(metrics, &(struct metrics_now){ 0 });
}

static bool has(const char *line)
{
        const char *at = strstr(text.at, line);

        return at && (at == text.at || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static struct gen_ai_request answered(const char *model)
{
        return (struct gen_ai_request){ .operation = "chat",
                                        .model = model,
                                        .took_ns = 30 * MS,
                                        .asked_ns = 15 * MS,
                                        .first_ns = 20 * MS,
                                        .decode_ns = 100 * MS,
                                        .decoded = 4,
                                        .input = 7,
                                        .output = 5 };
}

static void a_value_counts_in_its_bucket_and_in_all_above(void **state)
{
        const struct histogram_bounds bounds = { 2, { 1, 2.5 } };
        struct histogram histogram = { 0 };
        struct metrics_writer w = { .prefix = "x_", .to = &text };

        (void)state;
        histogram_note(&histogram, &bounds, 1);
        histogram_note(&histogram, &bounds, 2);
        histogram_note(&histogram, &bounds, 40);
        text.count = 0;
        metrics_put_histogram(&w, "y", "", &histogram, &bounds);
        assert_int_equal(bytes_add(&text, "", 1), 0);
        assert_string_equal(text.at, "x_y_bucket{le=\"1\"} 1\nx_y_bucket{le=\"2.5\"} 2\n"
                                     "x_y_bucket{le=\"+Inf\"} 3\nx_y_sum 43\nx_y_count 3\n");
}

static void text_in_a_label_is_escaped(void **state)
{
        char to[16];

        (void)state;
        assert_string_equal(metrics_escape("a\"b\\c\nd", to, sizeof(to)), "a\\\"b\\\\c\\nd");
        assert_string_equal(metrics_escape("0123456789abcdefg", to, sizeof(to)), "0123456789abcd");
        assert_string_equal(metrics_escape("0123456789abcd\"", to, sizeof(to)), "0123456789abcd");
}

static void tokens_and_reasons_are_summed(void **state)
{
        struct smv_event end = { SMV_SIZE(smv_event), .prompt_tokens = 10, .cached_tokens = 4,
                                 .output_tokens = 3, .decode_ns = 30 * MS };
        struct metrics *metrics;

        (void)state;
        assert_int_equal(metrics_new(false, &metrics), 0);
        metrics_end(metrics, "stop", &end, true, 2, 100);
        metrics_end(metrics, "length", &end, false, 2, 100);
        metrics_call(metrics, "/v1/models", "GET", 200, 2 * MS);
        metrics_call(metrics, NULL, "GET", 404, MS);
        metrics_call(metrics, "/v1/models", "GET", 0, MS);
        write_all(metrics);
        assert_true(has("samovar_up 0"));
        assert_true(has("samovar_prompt_tokens_total 10"));
        assert_true(has("samovar_prompt_tokens_cached_total 4"));
        assert_true(has("samovar_generation_tokens_total 6"));
        assert_true(has("samovar_request_success_total{finished_reason=\"stop\"} 1"));
        assert_true(has("samovar_http_requests_total{handler=\"/v1/models\",method=\"GET\","
                        "status=\"2xx\"} 1"));
        assert_true(has("samovar_http_requests_total{handler=\"/v1/models\",method=\"GET\","
                        "status=\"left\"} 1"));
        assert_true(has("samovar_http_requests_total{handler=\"none\",method=\"GET\","
                        "status=\"4xx\"} 1"));
        assert_true(has("samovar_http_request_duration_seconds_count 3"));
        assert_true(has("samovar_request_params_max_tokens_sum 100"));
        assert_true(has("samovar_request_params_max_tokens_count 1"));
        assert_true(has("samovar_request_time_per_output_token_seconds_bucket{le=\"0.01\"} 0"));
        assert_true(has("samovar_request_time_per_output_token_seconds_bucket{le=\"0.025\"} 2"));
        assert_true(has("samovar_request_time_per_output_token_seconds_count 2"));
        metrics_free(metrics);
}

static void one_token_has_no_time_per_token(void **state)
{
        struct smv_event end = { SMV_SIZE(smv_event), .output_tokens = 1, .decode_ns = MS };
        struct metrics *metrics;

        (void)state;
        assert_int_equal(metrics_new(false, &metrics), 0);
        metrics_end(metrics, "stop", &end, true, 1, 1);
        write_all(metrics);
        assert_true(has("samovar_request_time_per_output_token_seconds_count 0"));
        metrics_free(metrics);
}

static void the_server_tells_its_counts(void **state)
{
        struct metrics_now now = {
                .calls = 2,
                .http = { .connections = 9,
                          .connections_open = 3,
                          .queued_bytes = 400,
                          .body_bytes = 50,
                          .sent_bytes = 7000,
                          .refusals = { [HTTP_DENIED_HOST] = 5, [HTTP_TOO_MANY] = 6 } },
        };
        struct metrics *metrics;

        (void)state;
        assert_int_equal(metrics_new(false, &metrics), 0);
        metrics_client_left(metrics);
        metrics_slow_client(metrics);
        metrics_slow_client(metrics);
        write_with(metrics, &now);
        assert_true(has("samovar_http_calls 2"));
        assert_true(has("samovar_http_connections 3"));
        assert_true(has("samovar_http_connections_total 9"));
        assert_true(has("samovar_http_queued_bytes 400"));
        assert_true(has("samovar_http_body_bytes 50"));
        assert_true(has("samovar_http_sent_bytes_total 7000"));
        assert_true(has("samovar_http_clients_left_total 1"));
        assert_true(has("samovar_http_slow_clients_total 2"));
        assert_true(has("samovar_http_refusals_total{reason=\"denied_host\"} 5"));
        assert_true(has("samovar_http_refusals_total{reason=\"too_many\"} 6"));
        assert_true(has("samovar_http_refusals_total{reason=\"denied_key\"} 0"));
        metrics_free(metrics);
}

static void cache_misses_have_a_reason(void **state)
{
        struct metrics *metrics;

        (void)state;
        assert_int_equal(metrics_new(false, &metrics), 0);
        metrics_miss(metrics, MISS_TOOLS);
        metrics_miss(metrics, MISS_PREFIX);
        metrics_miss(metrics, MISS_PREFIX);
        write_all(metrics);
        assert_true(has("samovar_cache_miss_reason_total{reason=\"tools_changed\"} 1"));
        assert_true(has("samovar_cache_miss_reason_total{reason=\"prefix_changed\"} 2"));
        assert_true(has("samovar_cache_miss_reason_total{reason=\"nothing_cached\"} 0"));
        metrics_free(metrics);
}

static void write_status(const char *status)
{
        struct metrics_now now = { .shows_users = true };
        struct json_document *json;
        struct metrics *metrics;
        char why[100];

        assert_int_equal(json_parse(status, strlen(status), 1000, &json, why, sizeof(why)), 0);
        assert_int_equal(metrics_new(false, &metrics), 0);
        now.status = json;
        write_with(metrics, &now);
        metrics_free(metrics);
        json_free(json);
}

static void numbers_of_the_daemon_are_shown(void **state)
{
        (void)state;
        write_status("{\"rows\":9,\"drafted\":12,\"drafts_right\":7,\"drafted_by_depth\":[8,4],"
                     "\"drafts_right_by_depth\":[6,1],\"requests\":{\"forks\":3,\"stalls\":4},"
                     "\"blocks\":{\"shared\":5,\"total\":64,\"positions\":16},"
                     "\"step_rows\":{\"count\":5,\"le\":[1,2],\"buckets\":[3,4]},"
                     "\"latency\":{\"le\":[0.5,1],\"token_delivery_seconds\":"
                     "{\"count\":8,\"sum\":2.5,\"buckets\":[6,7]}}}");
        assert_true(has("samovar_forks_total 3"));
        assert_true(has("samovar_ring_full_stalls_total 4"));
        assert_true(has("samovar_shared_blocks 5"));
        assert_true(has("samovar_cache_config_info{block_size=\"16\",num_gpu_blocks=\"64\"} 1"));
        assert_true(has("samovar_spec_decode_num_draft_tokens_total 12"));
        assert_true(has("samovar_spec_decode_num_accepted_tokens_total 7"));
        assert_true(has("samovar_spec_decode_num_draft_tokens_per_pos_total{position=\"0\"} 8"));
        assert_true(has("samovar_spec_decode_num_draft_tokens_per_pos_total{position=\"1\"} 4"));
        assert_true(has("samovar_spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 1"));
        assert_true(has("samovar_iteration_tokens_total_bucket{le=\"1\"} 3"));
        assert_true(has("samovar_iteration_tokens_total_bucket{le=\"2\"} 4"));
        assert_true(has("samovar_iteration_tokens_total_bucket{le=\"+Inf\"} 5"));
        assert_true(has("samovar_iteration_tokens_total_sum 9"));
        assert_true(has("samovar_iteration_tokens_total_count 5"));
        assert_true(has("samovar_token_delivery_seconds_bucket{le=\"0.5\"} 6"));
        assert_true(has("samovar_token_delivery_seconds_bucket{le=\"1\"} 7"));
        assert_true(has("samovar_token_delivery_seconds_sum 2.5"));
        assert_true(has("samovar_token_delivery_seconds_count 8"));
}

static void refusals_have_a_reason_if_the_daemon_tells_it(void **state)
{
        (void)state;
        write_status("{\"requests\":{\"refused\":3}}");
        assert_true(has("samovar_admission_rejections_total 3"));
        write_status("{\"requests\":{\"refused\":3},\"refusals\":{\"quota\":1,\"busy\":2}}");
        assert_true(has("samovar_admission_rejections_total{reason=\"quota\"} 1"));
        assert_true(has("samovar_admission_rejections_total{reason=\"busy\"} 2"));
        assert_null(strstr(text.at, "samovar_admission_rejections_total 3"));
}

static void users_have_labels_if_there_are_several(void **state)
{
        (void)state;
        write_status("{\"users\":[{\"uid\":5,\"running\":1}]}");
        assert_null(strstr(text.at, "samovar_user_"));
        write_status("{\"users\":[{\"uid\":5,\"running\":1,\"waiting\":2,\"blocks\":3,"
                     "\"tokens_out\":4},{\"uid\":5,\"principal\":\"a\\\"b\",\"blocks\":7}]}");
        assert_true(has("samovar_user_requests_running{uid=\"5\",principal=\"\"} 1"));
        assert_true(has("samovar_user_requests_waiting{uid=\"5\",principal=\"\"} 2"));
        assert_true(has("samovar_user_blocks{uid=\"5\",principal=\"\"} 3"));
        assert_true(has("samovar_user_tokens_total{uid=\"5\",principal=\"\"} 4"));
        assert_true(has("samovar_user_blocks{uid=\"5\",principal=\"a\\\"b\"} 7"));
}

static void users_beyond_sixty_four_share_a_row(void **state)
{
        char status[4096] = "{\"users\":[";

        (void)state;
        for (unsigned i = 0; i < 70; i++)
                snprintf(status + strlen(status), 64, "%s{\"uid\":%u,\"blocks\":%u}", i ? "," : "",
                         1000 + i, i);
        strcat(status, "]}");
        write_status(status);
        assert_true(has("samovar_user_blocks{uid=\"1063\",principal=\"\"} 63"));
        assert_null(strstr(text.at, "uid=\"1064\""));
        assert_true(has("samovar_user_blocks{uid=\"other\",principal=\"\"} 399"));
}

/* A user that is not trusted gets no times; an older daemon has fewer keys. */
static void numbers_that_the_daemon_does_not_tell_are_left_out(void **state)
{
        (void)state;
        write_status("{\"blocks\":{\"total\":64}}");
        assert_true(has("samovar_kv_blocks 64"));
        assert_null(strstr(text.at, "forks_total"));
        assert_null(strstr(text.at, "admission_rejections_total"));
        assert_null(strstr(text.at, "cache_config_info"));
        assert_null(strstr(text.at, "iteration_tokens_total"));
        assert_null(strstr(text.at, "token_delivery_seconds"));
}

static void names_of_opentelemetry_are_there_only_if_asked_for(void **state)
{
        const struct gen_ai_request request = answered("a \"model\"");
        struct metrics *metrics;

        (void)state;
        for (int otel = 0; otel < 2; otel++) {
                assert_int_equal(metrics_new(otel, &metrics), 0);
                metrics_request(metrics, &request);
                write_all(metrics);
                assert_int_equal(strstr(text.at, "gen_ai_") != NULL, otel);
                metrics_free(metrics);
        }
        assert_true(
                has("gen_ai_client_token_usage_sum{gen_ai_operation_name=\"chat\","
                    "gen_ai_provider_name=\"samovar\",gen_ai_request_model=\"a \\\"model\\\"\","
                    "gen_ai_response_model=\"a \\\"model\\\"\",gen_ai_token_type=\"input\"} 7"));
        assert_true(has("gen_ai_server_time_per_output_token_seconds_bucket{"
                        "gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"samovar\","
                        "gen_ai_request_model=\"a \\\"model\\\"\","
                        "gen_ai_response_model=\"a \\\"model\\\"\",le=\"0.025\"} 1"));
}

static void a_failure_has_its_status_and_no_tokens(void **state)
{
        struct gen_ai_request request = answered("m");
        struct metrics *metrics;

        (void)state;
        request.status = 429;
        assert_int_equal(metrics_new(true, &metrics), 0);
        metrics_request(metrics, &request);
        write_all(metrics);
        assert_true(has("gen_ai_server_request_duration_seconds_count{gen_ai_operation_name="
                        "\"chat\",gen_ai_provider_name=\"samovar\",gen_ai_request_model=\"m\","
                        "gen_ai_response_model=\"m\",error_type=\"429\"} 1"));
        assert_null(strstr(text.at, "gen_ai_client_token_usage_sum"));
        metrics_free(metrics);
}

static void more_models_than_there_is_space_for_share_a_row(void **state)
{
        struct metrics *metrics;
        char name[16];

        (void)state;
        assert_int_equal(metrics_new(true, &metrics), 0);
        for (int i = 0; i < 40; i++) {
                const struct gen_ai_request request = answered(name);

                snprintf(name, sizeof(name), "m%d", i); /* which the request points at */
                metrics_request(metrics, &request);
        }
        write_all(metrics);
        assert_non_null(strstr(text.at, "gen_ai_request_model=\"m30\""));
        assert_null(strstr(text.at, "gen_ai_request_model=\"m31\""));
        assert_true(has("gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="
                        "\"_OTHER\",gen_ai_provider_name=\"samovar\","
                        "gen_ai_request_model=\"_OTHER\",gen_ai_response_model=\"_OTHER\"} 9"));
        metrics_free(metrics);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_value_counts_in_its_bucket_and_in_all_above),
                cmocka_unit_test(text_in_a_label_is_escaped),
                cmocka_unit_test(tokens_and_reasons_are_summed),
                cmocka_unit_test(one_token_has_no_time_per_token),
                cmocka_unit_test(the_server_tells_its_counts),
                cmocka_unit_test(cache_misses_have_a_reason),
                cmocka_unit_test(numbers_of_the_daemon_are_shown),
                cmocka_unit_test(refusals_have_a_reason_if_the_daemon_tells_it),
                cmocka_unit_test(users_have_labels_if_there_are_several),
                cmocka_unit_test(users_beyond_sixty_four_share_a_row),
                cmocka_unit_test(numbers_that_the_daemon_does_not_tell_are_left_out),
                cmocka_unit_test(names_of_opentelemetry_are_there_only_if_asked_for),
                cmocka_unit_test(a_failure_has_its_status_and_no_tokens),
                cmocka_unit_test(more_models_than_there_is_space_for_share_a_row),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        bytes_deinit(&text);
        return failed;
}
