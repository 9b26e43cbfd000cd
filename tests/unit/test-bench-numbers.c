/* What samovar bench computes: percentiles, arrivals, workloads, and the form of its reports. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/bench/answer-reader.h"
#include "cli/bench/arrivals.h"
#include "cli/bench/figures.h"
#include "cli/bench/files.h"
#include "cli/bench/report.h"
#include "json/reader.h"

#define NODES_MAX 100000u

static void assert_near(double value, double wanted, double within)
{
        if (!(fabs(value - wanted) <= within))
                fail_msg("%.17g is not %.17g", value, wanted);
}

static void assert_same(double value, double wanted)
{
        assert_near(value, wanted, 0);
}

/* ---- numbers ---- */

/* numpy 2.4.6 has computed what is expected. */
static void percentiles_are_those_of_numpy(void **state)
{
        double values[] = { 0.1, 0.7, 2.3, 5.0, 11.0, 13.5, 17.25, 40.0, 40.0, 99.9, 3.3 };
        struct numbers n = numbers_of(values, 11);

        (void)state;
        assert_same(n.p50, 11.0);
        assert_same(n.p90, 40.0);
        assert_same(n.p95, 69.95);
        assert_same(n.p99, 93.91000000000003);
        assert_same(n.least, 0.1);
        assert_same(n.most, 99.9);
        assert_near(n.mean, 21.186363636363637, 1e-13);
        assert_near(n.deviation, 28.420575860305945, 1e-13);
        assert_int_equal(n.count, 11);
}

static void percentiles_of_few_values_lie_between_them(void **state)
{
        double two[] = { 3, 1 }, one[] = { 7 };
        struct numbers n = numbers_of(two, 2);

        (void)state;
        assert_same(n.p50, 2);
        assert_same(n.p90, 2.8);
        assert_same(n.p99, 2.98);
        n = numbers_of(one, 1);
        assert_same(n.p50, 7);
        assert_same(n.p99, 7);
        assert_same(n.deviation, 0);
        assert_int_equal(numbers_of(one, 0).count, 0);
        assert_same(numbers_median(two, 0), 0);
}

/* ---- draws ---- */

static void lengths_are_read_and_drawn_in_their_range(void **state)
{
        static const char *const bad[] = { "",        "0",   "-5",       "5-",
                                           "9-5",     "1.5", "normal:5", "exp:0",
                                           "exp:5:1", "5 ",  "normal:",  "20000000" };
        struct draws draws = draws_begin(1, 2);
        struct lengths lengths;
        bool low = false, high = false;

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                if (!lengths_read(bad[i], &lengths))
                        fail_msg("'%s' must be refused", bad[i]);
        assert_int_equal(lengths_read("256", &lengths), 0);
        assert_int_equal(lengths_draw(&lengths, &draws), 256);
        assert_int_equal(lengths_read("3-6", &lengths), 0);
        for (unsigned i = 0; i < 1000; i++) {
                uint32_t length = lengths_draw(&lengths, &draws);

                assert_in_range(length, 3, 6);
                low = low || length == 3;
                high = high || length == 6;
        }
        assert_true(low && high);
}

/* The seed is fixed, so these are no chances: the means are what they are. */
static void distributions_have_their_means(void **state)
{
        static const char *const forms[] = { "normal:200:20", "lognormal:200:150", "exp:200",
                                             "100-300" };

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                struct draws draws = draws_begin(7, i);
                struct lengths lengths;
                double sum = 0;

                assert_int_equal(lengths_read(forms[i], &lengths), 0);
                for (unsigned k = 0; k < 40000; k++)
                        sum += lengths_draw(&lengths, &draws);
                assert_near(sum / 40000, 200, 5);
        }
}

/* Gaps of gamma arrivals have the variation 1 / sqrt(burstiness). */
static void arrivals_have_their_rate_and_burstiness(void **state)
{
        static const struct {
                enum bench_arrivals process;
                double burstiness, variation;
        } cases[] = { { BENCH_POISSON, 1, 1 },
                      { BENCH_FIXED, 1, 0 },
                      { BENCH_GAMMA, 0.25, 2 },
                      { BENCH_GAMMA, 4, 0.5 } };

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                struct arrivals arrivals =
                        arrivals_begin(cases[i].process, 20, cases[i].burstiness, 3);
                double gaps[20000], last = arrivals_next(&arrivals);
                struct numbers n;

                assert_same(last, 0);
                for (size_t k = 0; k < 20000; k++) {
                        double at = arrivals_next(&arrivals);

                        assert_true(at >= last);
                        gaps[k] = at - last;
                        last = at;
                }
                n = numbers_of(gaps, 20000);
                assert_near(n.mean, 0.05, 0.002);
                assert_near(n.deviation / n.mean, cases[i].variation, 0.06);
        }
}

/* ---- workloads ---- */

static struct encoding small_encoding(void)
{
        static uint32_t ids[300];

        for (uint32_t i = 0; i < 300; i++)
                ids[i] = 1000 + i;
        return (struct encoding){ .ids = ids, .id_count = 300 };
}

static void prompts_depend_only_on_seed_and_number(void **state)
{
        struct workload workload = { .input = { .low = 20 }, .output = { .low = 5 } };
        struct encoding encoding = small_encoding();
        uint32_t first[20], begins[100];
        struct prompt prompt;

        (void)state;
        for (uint32_t i = 0; i < 100; i++) {
                assert_int_equal(workload_prompt(&workload, &encoding, 9, i, &prompt), 0);
                assert_int_equal(prompt.id_count, 20);
                assert_int_equal(prompt.output, 5);
                if (!i)
                        memcpy(first, prompt.ids, sizeof(first));
                begins[i] = prompt.ids[0];
                for (uint32_t k = 0; k < i; k++)
                        assert_int_not_equal(begins[k], begins[i]);
        }
        workload_prompt(&workload, &encoding, 9, 0, &prompt);
        assert_memory_equal(first, prompt.ids, sizeof(first));
        workload_prompt(&workload, &encoding, 10, 0, &prompt);
        assert_memory_not_equal(first, prompt.ids, sizeof(first));
        encoding.salt = 1;
        workload_prompt(&workload, &encoding, 9, 0, &prompt);
        assert_memory_not_equal(first, prompt.ids, sizeof(first));
        workload_deinit(&workload);
}

static void a_share_of_the_prompts_begins_with_a_prefix(void **state)
{
        struct workload workload = { .input = { .low = 4 },
                                     .output = { .low = 1 },
                                     .prefix_share = 0.5,
                                     .prefix_tokens = 10,
                                     .prefix_count = 1 };
        struct encoding encoding = small_encoding();
        uint32_t prefix[10], with = 0;
        struct prompt prompt;

        (void)state;
        for (uint32_t i = 0; i < 400; i++) {
                assert_int_equal(workload_prompt(&workload, &encoding, 4, i, &prompt), 0);
                if (prompt.id_count == 4)
                        continue;
                assert_int_equal(prompt.id_count, 14);
                if (!with++)
                        memcpy(prefix, prompt.ids, sizeof(prefix));
                assert_memory_equal(prefix, prompt.ids, sizeof(prefix));
        }
        assert_in_range(with, 150, 250);
        workload_deinit(&workload);
}

static void words_are_counted_by_what_a_token_takes(void **state)
{
        struct workload workload = { .input = { .low = 110 }, .output = { .low = 1 } };
        struct encoding encoding = { .words_a_token = 0.5, .more_tokens = 10 };
        struct prompt prompt;
        unsigned words = 1;

        (void)state;
        assert_int_equal(workload_prompt(&workload, &encoding, 1, 0, &prompt), 0);
        assert_null(prompt.ids);
        for (const char *at = prompt.text; *at; at++)
                words += *at == ' ';
        assert_int_equal(words, 50);
        workload_deinit(&workload);
}

static int read_trace(const char *text, struct workload *workload, char why[256])
{
        *workload = (struct workload){ .kind = WORKLOAD_TRACE, .block_tokens = 4 };
        return trace_file_read(text, strlen(text), BENCH_UNIT_AUTO, 0, 0, workload, why, 256);
}

static void traces_are_read_in_their_published_forms(void **state)
{
        static const char *const texts[] = {
                "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
                "2023-11-16 18:15:59.5000000,374,44\r\n2023-11-16 18:16:01.0000000,396,109\r\n",
                "{\"timestamp\": 0, \"input_length\": 374, \"output_length\": 44, \"hash_ids\": "
                "[1]}\n"
                "{\"timestamp\": 1500, \"input_length\": 396, \"output_length\": 109, "
                "\"hash_ids\": [1, 7]}\n",
                "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                "5,ChatGPT,374,44,418,\"a, b\"\n6.5,GPT-4,396,109,505,API log",
        };
        struct workload workload;
        char why[256];

        (void)state;
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(read_trace(texts[i], &workload, why), 0);
                assert_int_equal(workload.count, 2);
                assert_same(workload.works[0].at, 0);
                assert_near(workload.works[1].at, 1.5, 1e-6);
                assert_int_equal(workload.works[0].input, 374);
                assert_int_equal(workload.works[1].output, 109);
                workload_deinit(&workload);
        }
}

static void equal_hashes_make_equal_blocks(void **state)
{
        struct encoding encoding = small_encoding();
        struct workload workload;
        uint32_t first[12];
        struct prompt prompt;
        char why[256];

        (void)state;
        assert_int_equal(read_trace("timestamp,input_length,output_length,hash_ids\n"
                                    "0,10,1,\"[5, 6, 9]\"\n1,12,1,\"[5, 6, 8]\"\n",
                                    &workload, why),
                         0);
        assert_int_equal(workload.hash_count, 6);
        workload_prompt(&workload, &encoding, 3, 0, &prompt);
        assert_int_equal(prompt.id_count, 10);
        memcpy(first, prompt.ids, 10 * sizeof(*first));
        workload_prompt(&workload, &encoding, 3, 1, &prompt);
        assert_int_equal(prompt.id_count, 12);
        assert_memory_equal(first, prompt.ids, 8 * sizeof(*first));
        assert_memory_not_equal(first + 8, prompt.ids + 8, 2 * sizeof(*first));
        workload_divide(&workload, 4);
        assert_int_equal(workload.block_tokens, 1);
        assert_int_equal(workload.works[0].input, 3);
        workload_deinit(&workload);
}

static void wrong_traces_are_refused_with_their_line(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                { "a,b\n", "line 1: a trace in CSV needs columns" },
                { "timestamp,input_length,output_length\n1,2,x\n", "line 2: it needs a time" },
                { "timestamp,input_length,output_length\n5,2,1\n4,2,1\n", "line 3: it is earlier" },
                { "timestamp,input_length,output_length\n", "it has 0 requests" },
                { "{\"timestamp\": 1}\n", "line 1: it needs \"timestamp\"" },
                { "{", "line 1: " },
                { "timestamp,input_length,output_length\n1,-2,1\n", "line 2: a length" },
                { "timestamp,input_length,output_length\n1,nan,1\n", "line 2: a length" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct workload workload;
                char why[256] = "";

                assert_int_not_equal(read_trace(cases[i].text, &workload, why), 0);
                if (strncmp(why, cases[i].why, strlen(cases[i].why)))
                        fail_msg("'%s' must begin with '%s'", why, cases[i].why);
                workload_deinit(&workload);
        }
}

static void prompts_are_read_in_their_published_forms(void **state)
{
        static const struct {
                const char *text, *prompt, *role, *content;
                uint32_t messages, output;
        } cases[] = {
                { "one\n\ntwo\n", "one", NULL, NULL, 0, 0 },
                { "{\"prompt\": \"one\", \"max_tokens\": 7}\n{\"prompt\": \"two\"}", "one", NULL,
                  NULL, 0, 7 },
                { "{\"body\": {\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, "
                  "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"u\"}]}]}}\n"
                  "{\"messages\": [{\"role\": \"user\", \"content\": \"u\"}]}",
                  NULL, "user", "u", 2, 0 },
                { "[{\"id\": \"a\", \"conversations\": [{\"from\": \"human\", \"value\": \"u\"}, "
                  "{\"from\": \"gpt\", \"value\": \"x\"}, {\"from\": \"human\", \"value\": "
                  "\"y\"}]},"
                  "{\"conversations\": [{\"from\": \"human\", \"value\": \"v\"}]}]",
                  NULL, "user", "u", 1, 0 },
                { "{\"question_id\": 81, \"turns\": [\"u\", \"w\"]}\n{\"turns\": [\"u\"]}", NULL,
                  "user", "u", 1, 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct workload workload = { .kind = WORKLOAD_PROMPTS, .output = { .low = 3 } };
                struct encoding encoding = { .words_a_token = 1 };
                struct prompt prompt;
                char why[256];

                assert_int_equal(prompt_file_read(cases[i].text, strlen(cases[i].text), &workload,
                                                  why, sizeof(why)),
                                 0);
                assert_int_equal(workload.count, 2);
                assert_int_equal(workload_prompt(&workload, &encoding, 1, 0, &prompt), 0);
                assert_int_equal(prompt.message_count, cases[i].messages);
                assert_int_equal(prompt.output, cases[i].output ? cases[i].output : 3);
                if (cases[i].prompt) {
                        assert_string_equal(prompt.text, cases[i].prompt);
                } else {
                        assert_string_equal(prompt.messages[cases[i].messages - 1].role,
                                            cases[i].role);
                        assert_string_equal(prompt.messages[cases[i].messages - 1].content,
                                            cases[i].content);
                }
                workload_deinit(&workload);
        }
}

static void wrong_prompts_are_refused_with_their_number(void **state)
{
        static const char *const texts[] = { "",
                                             "\n \n",
                                             "{\"x\": 1}",
                                             "{\"messages\": [{\"role\": \"user\"}]}",
                                             "{\"messages\": []}",
                                             "[1]",
                                             "[",
                                             "{\"turns\": []}" };

        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                struct workload workload = { .kind = WORKLOAD_PROMPTS };
                char why[256] = "";

                if (!prompt_file_read(texts[i], strlen(texts[i]), &workload, why, sizeof(why)))
                        fail_msg("'%s' must be refused", texts[i]);
                assert_true(*why);
                workload_deinit(&workload);
        }
}

/* ---- answers ---- */

struct seen {
        unsigned events, texts, done, usage;
};

static int see(void *arg, const char *data, size_t count)
{
        struct seen *seen = arg;
        struct answer_chunk chunk;

        answer_chunk_read(data, count, &chunk);
        seen->events++;
        seen->texts += chunk.text;
        seen->done += chunk.done;
        if (chunk.has_usage) {
                seen->usage++;
                assert_int_equal(chunk.input, 9);
                assert_int_equal(chunk.output, 2);
                assert_int_equal(chunk.cached, 4);
        }
        return 0;
}

/* The bytes are cut at every place. */
static void events_are_read_however_they_are_cut(void **state)
{
        static const char text[] =
                ": ping\n\n"
                "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                "\"finish_reason\":null}],\"usage\":null}\r\n\r\n"
                "event: x\ndata:{\"choices\":[{\"delta\":{\"content\": \"\\\"usage\\\":{\"}}]}\n\n"
                "data: {\"choices\":[{\"index\":0,\"text\":\"b\"}]}\n\n"
                "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
                "data: {\"choices\":[],\"usage\": {\"prompt_tokens\":9,\"completion_tokens\":2,"
                "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
                "data: [DONE]\n\n";

        (void)state;
        for (size_t cut = 0; cut < sizeof(text) - 1; cut++) {
                struct event_reader reader = { 0 };
                struct seen seen = { 0 };

                assert_int_equal(event_reader_take(&reader, text, cut, see, &seen), 0);
                assert_int_equal(
                        event_reader_take(&reader, text + cut, sizeof(text) - 1 - cut, see, &seen),
                        0);
                assert_int_equal(seen.events, 6);
                assert_int_equal(seen.texts, 2);
                assert_int_equal(seen.done, 1);
                assert_int_equal(seen.usage, 1);
                event_reader_deinit(&reader);
        }
}

static void errors_in_answers_are_read(void **state)
{
        static const char in_stream[] =
                "{\"error\":{\"message\":\"too late\",\"type\":\"timeout\",\"code\":null}}";
        static const char page[] = "<html>Bad gateway</html>";
        static const char lines[] = "\r\n<html>\r\n  <h1>\u00fc</h1>\t\x1b[31m</html>\n";
        char umlauts[400];
        struct answer_chunk chunk;

        (void)state;
        answer_chunk_read(in_stream, sizeof(in_stream) - 1, &chunk);
        assert_string_equal(chunk.error, "timeout");
        assert_string_equal(chunk.why, "too late");
        answer_refusal_read(page, sizeof(page) - 1, &chunk);
        assert_string_equal(chunk.error, "");
        assert_string_equal(chunk.why, page);
        answer_refusal_read(lines, sizeof(lines) - 1, &chunk);
        assert_string_equal(chunk.why, "<html> <h1>\u00fc</h1> [31m</html>");
        memset(umlauts, 0xc3, sizeof(umlauts));
        for (size_t i = 1; i < sizeof(umlauts); i += 2)
                umlauts[i] = (char)0xbc;
        answer_refusal_read(umlauts, sizeof(umlauts), &chunk);
        assert_int_equal(strlen(chunk.why), 198); /* whole characters */
        answer_refusal_read("", 0, &chunk);
        assert_string_equal(chunk.why, "");
        answer_chunk_read("{\"error\":{", 10, &chunk);
        assert_string_equal(chunk.error, "not JSON");
}

/* ---- figures and reports ---- */

/* `first`, `last` and `ended` are in seconds behind sending, which is 0.5 s behind due. */
static void add_sample(struct samples *samples, double first, double last, uint32_t output,
                       const char *error)
{
        struct sample *sample = samples_add(samples);

        assert_non_null(sample);
        sample->due = sample->number;
        sample->sent = sample->due + 0.5;
        sample->input = 10;
        sample->cached = 5;
        sample->output = output;
        sample->has_usage = true;
        if (output) {
                assert_int_equal(sample_piece(sample, sample->sent + first), 0);
                for (uint32_t i = 1; i < output; i++)
                        assert_int_equal(
                                sample_piece(sample, sample->sent + first +
                                                             (last - first) * i / (output - 1)),
                                0);
        }
        sample->ended = sample->sent + last;
        snprintf(sample->error, sizeof(sample->error), "%s", error);
}

static void make_result(struct load_result *result)
{
        *result = (struct load_result){ .seconds = 10, .cpu_s = 0.5, .most = 3, .unsent = 1 };
        add_sample(&result->samples, 0.1, 1.1, 11, "");
        add_sample(&result->samples, 0.3, 0.8, 11, "");
        add_sample(&result->samples, 0.1, 0.1, 1, "");
        add_sample(&result->samples, 0.2, 0.3, 2, "lost");
        add_sample(&result->samples, 0, 0, 0, "busy");
        add_sample(&result->samples, 0, 0, 0, "busy");
}

static void figures_count_from_when_requests_were_due(void **state)
{
        const struct slo slo = { .ttft = 700, .tpot = 60 };
        struct load_result result;
        struct figures f;

        (void)state;
        make_result(&result);
        assert_int_equal(figures_of(&result, &slo, &f), 0);
        assert_int_equal(f.answers, 3);
        assert_int_equal(f.failed, 3);
        assert_int_equal(f.unsent, 1);
        assert_int_equal(f.error_count, 2);
        assert_string_equal(f.errors[1].name, "busy");
        assert_int_equal(f.errors[1].count, 2);
        assert_int_equal(f.output_tokens, 23);
        assert_near(f.output_s, 2.3, 1e-12);
        assert_near(f.spreads[TTFT].most, 800, 1e-9);
        assert_near(f.spreads[TTFT_SENT].most, 300, 1e-9);
        assert_near(f.spreads[E2E].most, 1600, 1e-9);
        assert_near(f.spreads[LATE].p50, 500, 1e-9);
        assert_int_equal(f.spreads[TPOT].count, 2);
        assert_near(f.spreads[TPOT].most, 100, 1e-9);
        assert_int_equal(f.spreads[ITL].count, 20);
        /* The first is too slow for each token, and the second has its first token too late. */
        assert_near(f.good_s, 0.1, 1e-12);
        assert_near(f.good_share, 1.0 / 6, 1e-12);
        assert_near(f.own_cpu, 5, 1e-12);
        assert_near(f.cached_percent, 50, 1e-12);
        load_result_deinit(&result);
}

/* The model ended the answer: eleven tokens, of which ten had a text. */
static void the_token_that_ends_an_answer_takes_its_time(void **state)
{
        struct load_result result = { .seconds = 1 };
        struct figures f;

        (void)state;
        add_sample(&result.samples, 0.1, 1.0, 10, "");
        result.samples.at[0]->output = 11;
        result.samples.at[0]->ended = result.samples.at[0]->sent + 1.1;
        assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &f), 0);
        assert_near(f.spreads[TPOT].p50, 100, 1e-9);
        load_result_deinit(&result);
}

static void answers_that_are_too_short_or_without_usage_are_counted(void **state)
{
        const struct metric *input = metric_find("input_tokens_per_second");
        struct load_result result;
        struct figures f;
        double value;

        (void)state;
        make_result(&result);
        result.samples.at[0]->wanted_output = 11;
        result.samples.at[1]->wanted_output = 12;
        result.samples.at[3]->wanted_output = 3; /* it failed */
        assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &f), 0);
        assert_int_equal(f.shorter, 1);
        assert_int_equal(f.untold, 0);
        assert_true(metric_of(&f, input, &value));
        result.samples.at[2]->has_usage = false;
        assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &f), 0);
        assert_int_equal(f.untold, 1);
        assert_false(metric_of(&f, input, &value));
        load_result_deinit(&result);
}

/* A failed request counts only as failed. */
static void guesses_are_counted_if_they_are_told(void **state)
{
        const struct metric *right = metric_find("drafts_right_percent");
        const struct metric *tokens = metric_find("tokens_per_step");
        struct load_result result;
        struct figures f;
        double value;

        (void)state;
        make_result(&result);
        assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &f), 0);
        assert_false(metric_of(&f, right, &value));
        assert_false(metric_of(&f, tokens, &value));
        for (uint32_t i = 0; i < result.samples.count; i++) {
                result.samples.at[i]->drafted = i == 2 ? 0 : 12;
                result.samples.at[i]->drafts_right = i == 2 ? 0 : 6;
        }
        assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &f), 0);
        assert_int_equal(f.drafted, 24);
        assert_int_equal(f.drafts_right, 12);
        assert_true(metric_of(&f, right, &value));
        assert_near(value, 50, 1e-12);
        assert_true(metric_of(&f, tokens, &value));
        assert_near(value, 23.0 / 11, 1e-12);
        load_result_deinit(&result);
}

static void more_kinds_of_errors_than_there_is_space_for_are_one(void **state)
{
        struct load_result result = { .seconds = 1 };
        struct figures f;
        uint32_t sum = 0;

        (void)state;
        for (unsigned i = 0; i < 20; i++) {
                char name[16];

                snprintf(name, sizeof(name), "http %u", 500 + i);
                add_sample(&result.samples, 0, 0, 0, name);
        }
        assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &f), 0);
        assert_int_equal(f.error_count, FIGURE_ERRORS_MAX);
        assert_string_equal(f.errors[FIGURE_ERRORS_MAX - 1].name, "others");
        for (uint32_t i = 0; i < f.error_count; i++)
                sum += f.errors[i].count;
        assert_int_equal(sum, 20);
        load_result_deinit(&result);
}

static void make_report(struct report *report, uint32_t servers, uint32_t levels, uint32_t rounds)
{
        struct load_result result;

        *report = (struct report){ .server_count = servers, .rounds = rounds };
        host_read(&report->host);
        snprintf(report->servers[0].model, sizeof(report->servers[0].model), "a <b> & \"c\", \x1b");
        make_result(&result);
        for (uint32_t i = 0; i < servers * levels * rounds; i++) {
                struct report_run *run = report_add(report);

                assert_non_null(run);
                run->server = i % servers;
                run->concurrency = 1u << (i / servers % levels);
                run->round = i / servers / levels;
                snprintf(run->why, sizeof(run->why), "\"no\"\n");
                assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &run->figures), 0);
                run->figures.output_s = 10.0 * (run->round + 1) * (servers - run->server);
        }
        load_result_deinit(&result);
}

static void reports_in_json_can_be_read(void **state)
{
        struct json_document *json;
        struct bytes text = { 0 };
        struct report report;
        uint32_t runs, ratios;
        double ratio;
        char why[128];

        (void)state;
        make_report(&report, 2, 3, 3);
        assert_int_equal(report_json(&report, &text), 0);
        assert_int_equal(json_parse(text.at, text.count, NODES_MAX, &json, why, sizeof(why)), 0);
        runs = json_member(json, 0, "runs");
        assert_int_equal(json_count(json, runs), 18);
        ratios = json_member(json, 0, "ratios");
        assert_int_equal(json_count(json, ratios), 3);
        assert_true(json_real(
                json,
                json_member(json,
                            json_member(json, json_first(json, ratios), "output_tokens_per_second"),
                            "median"),
                &ratio));
        assert_same(ratio, 2);
        json_free(json);
        bytes_deinit(&text);
        report_deinit(&report);
}

static void each_sample_is_a_line_of_json(void **state)
{
        struct load_result result;
        struct bytes text = { 0 };
        struct report report;
        unsigned lines = 0;
        char why[128];

        (void)state;
        make_report(&report, 1, 1, 1);
        make_result(&result);
        assert_int_equal(report_raw(&report, &report.runs[0], &result.samples, &text), 0);
        for (char *at = text.at, *end; at < text.at + text.count; at = end + 1, lines++) {
                struct json_document *json;

                end = memchr(at, '\n', text.count - (size_t)(at - text.at));
                assert_int_equal(
                        json_parse(at, (size_t)(end - at), NODES_MAX, &json, why, sizeof(why)), 0);
                json_free(json);
        }
        assert_int_equal(lines, 6);
        bytes_deinit(&text);
        load_result_deinit(&result);
        report_deinit(&report);
}

/* Commas outside of quotes. */
static unsigned columns_of(const char *line, size_t bytes)
{
        unsigned count = 1;
        bool quoted = false;

        for (size_t i = 0; i < bytes; i++) {
                quoted ^= line[i] == '"';
                count += line[i] == ',' && !quoted;
        }
        assert_false(quoted);
        return count;
}

static void rows_of_csv_have_as_many_columns_as_its_head(void **state)
{
        struct bytes text = { 0 };
        struct report report;
        unsigned wanted = 0, rows = 0;

        (void)state;
        make_report(&report, 2, 2, 1);
        report.runs[1].figures.untold = 1;
        report.runs[1].figures.output_tokens = 7654;
        assert_int_equal(report_csv(&report, &text), 0);
        /* Tokens of prompts that are not known are not 0. */
        assert_non_null(memmem(text.at, text.count, ",,7654,,", 8));
        for (char *at = text.at, *end; at < text.at + text.count; at = end + 1, rows++) {
                end = memchr(at, '\n', text.count - (size_t)(at - text.at));
                assert_non_null(end);
                if (!wanted)
                        wanted = columns_of(at, (size_t)(end - at));
                assert_int_equal(columns_of(at, (size_t)(end - at)), wanted);
        }
        assert_int_equal(rows, 5);
        bytes_deinit(&text);
        report_deinit(&report);
}

/* Checks that elements are closed in order, and that no character is forbidden. */
static void assert_xml(const char *text, size_t bytes)
{
        char open[32][16];
        size_t depth = 0;

        for (const char *at = text; at < text + bytes; at++) {
                const char *end;
                size_t length;

                assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
                if (*at == '&')
                        assert_true(!strncmp(at, "&amp;", 5) || !strncmp(at, "&lt;", 4) ||
                                    !strncmp(at, "&gt;", 4));
                if (*at != '<')
                        continue;
                end = strchr(at, '>');
                assert_non_null(end);
                length = strcspn(at + 1, " />");
                if (at[1] == '/') {
                        assert_true(depth > 0);
                        assert_int_equal(strncmp(open[--depth], at + 2, (size_t)(end - at - 2)), 0);
                } else if (end[-1] != '/') {
                        assert_true(depth < 32 && length < 16);
                        memcpy(open[depth], at + 1, length);
                        open[depth++][length] = '\0';
                }
                at = end;
        }
        assert_int_equal(depth, 0);
}

static void pictures_are_well_formed(void **state)
{
        static const uint32_t shapes[][3] = { { 1, 1, 1 }, { 2, 1, 3 }, { 1, 6, 1 }, { 2, 3, 3 } };

        (void)state;
        for (size_t i = 0; i < 4; i++) {
                struct bytes text = { 0 };
                struct report report;

                make_report(&report, shapes[i][0], shapes[i][1], shapes[i][2]);
                assert_int_equal(report_svg(&report, &text), 0);
                assert_xml(text.at, text.count);
                bytes_add(&text, "", 1);
                assert_null(strstr(text.at, "nan"));
                assert_null(strstr(text.at, "inf"));
                bytes_deinit(&text);
                report_deinit(&report);
        }
}

/* A run in which nothing was answered has figures and a picture, too. */
static void a_report_without_answers_is_a_report(void **state)
{
        struct report report = { .server_count = 1, .rounds = 1 };
        struct load_result result = { .seconds = 0 };
        struct bytes text = { 0 };
        struct report_run *run = report_add(&report);

        (void)state;
        assert_non_null(run);
        add_sample(&result.samples, 0, 0, 0, "lost");
        assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &run->figures), 0);
        assert_int_equal(report_table(&report, &text), 0);
        assert_int_equal(report_json(&report, &text), 0);
        assert_int_equal(report_csv(&report, &text), 0);
        text.count = 0;
        assert_int_equal(report_svg(&report, &text), 0);
        assert_xml(text.at, text.count);
        bytes_deinit(&text);
        load_result_deinit(&result);
        report_deinit(&report);
}

/* Two servers and three rounds; all requests of the second server's second round fail. */
static void make_dead_round(struct report *report)
{
        struct load_result result = { .seconds = 1 };

        make_report(report, 2, 1, 3);
        add_sample(&result.samples, 0, 0, 0, "lost");
        add_sample(&result.samples, 0, 0, 0, "lost");
        for (uint32_t i = 0; i < report->count; i++) {
                struct report_run *run = &report->runs[i];

                run->figures.spreads[TTFT].p50 = 10 * (run->round + 1) * (1 + run->server);
                if (!run->server || run->round != 1)
                        continue;
                snprintf(run->why, sizeof(run->why), "Connection refused");
                assert_int_equal(figures_of(&result, &(struct slo){ 0 }, &run->figures), 0);
        }
        load_result_deinit(&result);
}

static void a_round_without_answers_has_no_times(void **state)
{
        const struct metric *ttft = metric_find("ttft_p50_ms");
        const struct metric *rate = metric_find("requests_per_second");
        struct report report;
        struct range range;

        (void)state;
        make_dead_round(&report);
        assert_true(report_range(&report, &report.runs[1], ttft, &range));
        assert_same(range.least, 20);
        assert_same(range.median, 40);
        assert_same(range.most, 60);
        assert_true(report_ratio(&report, &report.runs[0], ttft, &range));
        assert_same(range.least, 0.5);
        assert_same(range.most, 0.5);
        /* But its throughput is nothing. */
        assert_true(report_range(&report, &report.runs[1], rate, &range));
        assert_same(range.least, 0);
        for (uint32_t i = 0; i < report.count; i++)
                report.runs[i].figures.spreads[TTFT].count = 0;
        assert_false(report_range(&report, &report.runs[1], ttft, &range));
        assert_false(report_ratio(&report, &report.runs[0], ttft, &range));
        report_deinit(&report);
}

static void tables_tell_which_run_went_wrong_and_how(void **state)
{
        struct bytes text = { 0 };
        struct report report;

        (void)state;
        make_dead_round(&report);
        report.runs[0].figures.shorter = 2;
        report.runs[2].figures.untold = 3;
        assert_int_equal(report_table(&report, &text), 0);
        bytes_add(&text, "", 1);
        assert_non_null(strstr(text.at, "failed                             12"
                                        "                         10"));
        assert_non_null(strstr(text.at, "errors     round 2, B, 1 at a time: lost: 2; the first: "
                                        "Connection refused\n"));
        assert_non_null(strstr(text.at, "shorter    round 1, A, 1 at a time: 2 of 3 answers"));
        assert_non_null(strstr(text.at, "no usage   round 2, A, 1 at a time: 3 of 3 answers"));
        assert_non_null(strstr(text.at, "not sent   round 3, B, 1 at a time: 1 request\n"));
        report_deinit(&report);
        bytes_deinit(&text);
}

static void tables_have_a_row_for_each_level_and_ratios_for_two_servers(void **state)
{
        struct bytes text = { 0 };
        struct report report;

        (void)state;
        make_report(&report, 1, 3, 1);
        assert_int_equal(report_table(&report, &text), 0);
        bytes_add(&text, "", 1);
        assert_non_null(strstr(text.at, "\n             1      4 "));
        assert_non_null(strstr(text.at, "\n             4      4 "));
        report_deinit(&report);
        text.count = 0;
        make_report(&report, 2, 1, 3);
        assert_int_equal(report_table(&report, &text), 0);
        bytes_add(&text, "", 1);
        assert_non_null(strstr(text.at, "40.0 (20.0-60.0)           20.0 (10.0-30.0)            "
                                        "       2.00\n"));
        report_deinit(&report);
        bytes_deinit(&text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(percentiles_are_those_of_numpy),
                cmocka_unit_test(percentiles_of_few_values_lie_between_them),
                cmocka_unit_test(lengths_are_read_and_drawn_in_their_range),
                cmocka_unit_test(distributions_have_their_means),
                cmocka_unit_test(arrivals_have_their_rate_and_burstiness),
                cmocka_unit_test(prompts_depend_only_on_seed_and_number),
                cmocka_unit_test(a_share_of_the_prompts_begins_with_a_prefix),
                cmocka_unit_test(words_are_counted_by_what_a_token_takes),
                cmocka_unit_test(traces_are_read_in_their_published_forms),
                cmocka_unit_test(equal_hashes_make_equal_blocks),
                cmocka_unit_test(wrong_traces_are_refused_with_their_line),
                cmocka_unit_test(prompts_are_read_in_their_published_forms),
                cmocka_unit_test(wrong_prompts_are_refused_with_their_number),
                cmocka_unit_test(events_are_read_however_they_are_cut),
                cmocka_unit_test(errors_in_answers_are_read),
                cmocka_unit_test(figures_count_from_when_requests_were_due),
                cmocka_unit_test(the_token_that_ends_an_answer_takes_its_time),
                cmocka_unit_test(answers_that_are_too_short_or_without_usage_are_counted),
                cmocka_unit_test(guesses_are_counted_if_they_are_told),
                cmocka_unit_test(more_kinds_of_errors_than_there_is_space_for_are_one),
                cmocka_unit_test(reports_in_json_can_be_read),
                cmocka_unit_test(each_sample_is_a_line_of_json),
                cmocka_unit_test(rows_of_csv_have_as_many_columns_as_its_head),
                cmocka_unit_test(pictures_are_well_formed),
                cmocka_unit_test(a_report_without_answers_is_a_report),
                cmocka_unit_test(a_round_without_answers_has_no_times),
                cmocka_unit_test(tables_tell_which_run_went_wrong_and_how),
                cmocka_unit_test(tables_have_a_row_for_each_level_and_ratios_for_two_servers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
