/* The samovar command from a shell's point of view: stdout, stderr and the exit status. */
#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"
#include "tests/skip.h"

#define SAMOVAR env_path("SAMOVAR")

static struct stream *streamed(const struct daemon_fixture *fixture, const struct want *want)
{
        struct raw_client *client = raw_client_greet(fixture);
        struct stream *stream = stream_copy(raw_client_complete(client, want));

        raw_client_close(client);
        return stream;
}

static void complete_prints_the_continuation_and_nothing_else(void **state)
{
        const struct want want = { .prompt = "Once upon", .max_tokens = 60 };
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        stream = streamed(fixture, &want);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once upon", "--max-tokens", "60", "--temp",
                  "0");
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, stream->text_bytes);
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        assert_string_equal(ran.err, "");
        run_result_free(&ran);

        /* The prompt comes by stdin, and as words; flags come before it and after it. */
        ran = RUN(fixture, "Once upon", SAMOVAR, "complete", "--max-tokens=60", "--temp=0");
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "--temp", "0", "--max-tokens", "60",
                  "--socket", fixture->socket, "Once", "upon");
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        run_result_free(&ran);
        stream_free(stream);
        fixture_stop(fixture);
}

static void sampling_flags_reach_the_daemon(void **state)
{
        const struct want want = { .prompt = "Tea",
                                   .max_tokens = 80,
                                   .temperature = 0.9,
                                   .top_k = 7,
                                   .top_p = 0.9,
                                   .min_p = 0.02,
                                   .seed = 42,
                                   .stop = "e" };
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        stream = streamed(fixture, &want);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "--max-tokens", "80", "--temp", "0.9",
                  "--top-k", "7", "--top-p", "0.9", "--min-p", "0.02", "--seed", "42", "--stop",
                  "e");
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, stream->text_bytes);
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        run_result_free(&ran);
        stream_free(stream);
        fixture_stop(fixture);
}

/* A cut that keeps the likeliest token alone gives the same text as the temperature 0. */
static void flags_of_cuts_reach_the_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result cut, greedy;

        START_DAEMON(fixture, "--threads", "1");
        cut = RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "--max-tokens", "40", "--temp", "1",
                  "--n-sigma", "0.000001", "--xtc-chance", "0.5", "--xtc-least", "0.6", "--typical",
                  "0.9", "--temperature-range", "0.5", "--temperature-exponent", "2", "--order",
                  "temperature_last");
        greedy =
                RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "--max-tokens", "40", "--temp", "0");
        assert_int_equal(cut.status, 0);
        assert_int_equal(cut.out_bytes, greedy.out_bytes);
        assert_memory_equal(cut.out, greedy.out, cut.out_bytes);
        run_result_free(&cut);
        run_result_free(&greedy);
        fixture_stop(fixture);
}

static void flags_of_penalties_reach_the_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result free_of_rules, ran;

        START_DAEMON(fixture, "--threads", "1");
        free_of_rules = RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "--max-tokens", "60",
                            "--seed", "5", "--temp", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "--max-tokens", "60", "--seed", "5",
                  "--temp", "1", "--ban", "e", "--ban", "a", "--presence-penalty", "0.5",
                  "--frequency-penalty", "-0.25", "--repetition-penalty", "1.1", "--repeat-window",
                  "30", "--dry-multiplier", "0.8", "--dry-base", "1.5", "--dry-allowed", "3",
                  "--dry-window", "50", "--no-repeat-ngram", "6", "--min-tokens", "40");
        assert_int_equal(ran.status, 0);
        assert_non_null(memchr(free_of_rules.out, 'e', free_of_rules.out_bytes));
        assert_null(memchr(ran.out, 'e', ran.out_bytes));
        assert_null(memchr(ran.out, 'a', ran.out_bytes));
        run_result_free(&free_of_rules);
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* Parses a line of JSON far enough to see that it is valid: a value, and the text after it. */
static const char *skip_json(const char *at)
{
        char close;

        if (*at == '"') {
                for (at++; *at && *at != '"'; at++) {
                        assert_true((unsigned char)*at >= ' ');
                        at += *at == '\\' && at[1];
                }
                assert_int_equal(*at, '"');
                return at + 1;
        }
        if (*at != '{' && *at != '[') {
                size_t word = strspn(at, "0123456789.+-eEaflnrstu");

                assert_true(word > 0);
                return at + word;
        }
        close = *at == '{' ? '}' : ']';
        if (*++at == close)
                return at + 1;
        for (;;) {
                at = skip_json(at);
                if (close == '}') {
                        assert_int_equal(*at, ':');
                        at = skip_json(at + 1);
                }
                if (*at == close)
                        return at + 1;
                assert_int_equal(*at++, ',');
        }
}

static void json_output_has_one_object_for_each_token(void **state)
{
        const struct want want = { .prompt = "Once upon", .max_tokens = 30 };
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct run_result ran;
        size_t lines = 0, bytes = 0;
        char *at;

        START_DAEMON(fixture, "--threads", "1");
        stream = streamed(fixture, &want);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once upon", "--max-tokens", "30", "--temp",
                  "0", "--json");
        assert_int_equal(ran.status, 0);
        for (at = ran.out; *at; at++, lines++) {
                const char *text = strstr(at, "\"text\":\"");

                if (lines < stream->token_count) {
                        char token[32];

                        snprintf(token, sizeof(token), "{\"tokens\":[%u]", stream->tokens[lines]);
                        assert_memory_equal(at, token, strlen(token));
                        assert_int_equal(text[8], stream->text[bytes++]);
                } else {
                        assert_memory_equal(at, "{\"end\":\"length\"", 15);
                        assert_non_null(strstr(at, "\"output_tokens\":30"));
                        assert_non_null(strstr(at, "\"prompt_tokens\":10"));
                }
                at = (char *)(uintptr_t)skip_json(at);
                assert_int_equal(*at, '\n');
        }
        assert_int_equal(lines, stream->token_count + 1);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "status", "--json");
        assert_int_equal(ran.status, 0);
        assert_string_equal(skip_json(ran.out), "\n");
        run_result_free(&ran);
        stream_free(stream);
        fixture_stop(fixture);
}

/* The text between these quotes.  It has no escapes but those of bytes that are not UTF-8. */
static size_t field_text(const char *line, const char *name, char *to)
{
        const char *at = strstr(line, name);
        size_t bytes;

        if (!at || at > strchr(line, '\n'))
                return 0;
        at += strlen(name);
        bytes = (size_t)(strchr(at, '"') - at);
        memcpy(to, at, bytes);
        return bytes;
}

static double field_number(const char *line, const char *name)
{
        const char *at = strstr(line, name);

        assert_true(at && at < strchr(line, '\n'));
        return strtod(at + strlen(name), NULL);
}

static void best_of_prints_the_sample_with_the_highest_mean_logprob(void **state)
{
        double sums[6] = { 0 }, best = -1e9;
        char texts[6][400] = { { 0 } };
        size_t counts[6] = { 0 }, which = 0;
        struct daemon_fixture *fixture = *state;
        const char *line, *said;
        struct run_result ran;

        char *toy_model = strdup(env_path("TOY_MODEL")), shipped[512];

        snprintf(shipped, sizeof(shipped), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        /* The toy model has no word that is likelier than others. */
        setenv("TOY_MODEL", shipped, 1);
        START_DAEMON(fixture, NULL);
        setenv("TOY_MODEL", toy_model, 1);
        free(toy_model);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once upon a time", "--max-tokens", "12",
                  "--temp", "1.2", "--seed", "3", "--best-of", "5", "--json");
        assert_int_equal(ran.status, 0);
        for (line = ran.out; !strncmp(line, "{\"number\":", 10); line = strchr(line, '\n') + 1) {
                size_t n = (size_t)field_number(line, "{\"number\":");

                assert_in_range(n, 1, 5);
                if (strstr(line, "\"end\":") == strchr(line, ',') + 1)
                        continue;
                sums[n] += field_number(line, "\"logprob\":");
                counts[n]++;
                field_text(line, "\"text\":\"", texts[n] + strlen(texts[n]));
        }
        for (size_t n = 1; n <= 5; n++) {
                assert_true(counts[n] > 0);
                if (sums[n] / (double)counts[n] > best) {
                        best = sums[n] / (double)counts[n];
                        which = n;
                }
        }
        assert_memory_equal(line, "{\"best\":", 8);
        assert_int_equal(field_number(line, "{\"best\":"), which);
        assert_true(fabs(field_number(line, "\"score\":") - best) < 1e-6);
        run_result_free(&ran);

        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once upon a time", "--max-tokens", "12",
                  "--temp", "1.2", "--seed", "3", "--best-of", "5");
        assert_int_equal(ran.status, 0);
        said = ran.out;
        assert_string_equal(said, texts[which]);
        run_result_free(&ran);

        ran = RUN(fixture, NULL, SAMOVAR, "ask", "hi", "--best-of", "3", "--beams", "2");
        assert_int_equal(ran.status, 2);
        assert_string_equal(ran.err, "samovar: --beams prints one answer and excludes --best-of: "
                                     "leave one of them out\n");
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void detokenize_restores_the_text_from_tokenize(void **state)
{
        static const char *const texts[] = { "hello", "two words\nand a line",
                                             "\xc3\xa4 \xe2\x82\xac", "\"quoted\" \\ \t" };
        struct daemon_fixture *fixture = *state;
        struct run_result ids, text;

        START_DAEMON(fixture, "--threads", "1");
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                ids = RUN(fixture, texts[i], SAMOVAR, "tokenize");
                assert_int_equal(ids.status, 0);
                text = RUN(fixture, ids.out, SAMOVAR, "detokenize");
                assert_int_equal(text.status, 0);
                assert_string_equal(text.out, texts[i]);
                run_result_free(&ids);
                run_result_free(&text);
        }
        ids = RUN(fixture, NULL, SAMOVAR, "tokenize", "hi", "--json");
        assert_string_equal(ids.out, "{\"tokens\":[104,105]}\n");
        run_result_free(&ids);
        text = RUN(fixture, NULL, SAMOVAR, "detokenize", "104", "105", "10", "--json");
        assert_string_equal(text.out, "{\"text\":\"hi\\n\"}\n");
        run_result_free(&text);
        fixture_stop(fixture);
}

/* A float64 forward pass continues these words so, greedily (goldens-stories260K.json). */
static void a_trained_model_continues_a_story_as_computed(void **state)
{
        static const char story[] = ", there was a little girl named Lily. She loved to play "
                                    "outside in the park. One day, she saw a big, red ball. She "
                                    "wanted to play with it, but it was too high.\nLily's mom";
        const char *data = getenv("SAMOVAR_DATA");
        struct daemon_fixture *fixture = *state;
        char path[1024];
        struct run_result ran;

        if (!data)
                skip_because("SAMOVAR_DATA is not set");
        snprintf(path, sizeof(path), "%s/models/stories260K/stories260K.gguf", data);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "--model", path, "Once upon a time",
                  "--max-tokens", "90", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_true(ran.out_bytes > strlen(story));
        assert_memory_equal(ran.out, story, strlen(story));
        run_result_free(&ran);
        assert_no_process_left();
}

/* The ids are SentencePiece's own.  The first blank of a text is not the user's. */
static void tokenizer_flag_replaces_the_tokenizer_of_the_model(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ids, text;
        char path[1024];

        snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/unknown.model",
                 env_path("SOURCES"));
        START_DAEMON(fixture, "--threads", "1", "--tokenizer", path);
        ids = RUN(fixture, NULL, SAMOVAR, "tokenize", "the house on water", "--json");
        assert_string_equal(ids.out, "{\"tokens\":[53,117,4,86,19]}\n");
        run_result_free(&ids);
        text = RUN(fixture, NULL, SAMOVAR, "detokenize", "53", "117", "4", "86", "19");
        assert_string_equal(text.out, "the house on water");
        run_result_free(&text);
        text = RUN(fixture, NULL, SAMOVAR, "complete", "the house", "--max-tokens", "9", "--temp",
                   "0");
        assert_int_equal(text.status, 0);
        run_result_free(&text);
        fixture_stop(fixture);
}

/* These are SentencePiece's own pieces, with the first blank, which detokenize drops. */
static void pieces_shows_each_token_by_itself(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char path[1024];

        snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/unknown.model",
                 env_path("SOURCES"));
        START_DAEMON(fixture, "--threads", "1", "--tokenizer", path);
        ran = RUN(fixture, NULL, SAMOVAR, "tokenize", "--pieces", "the house");
        assert_string_equal(ran.out, "53 text \" the\"\n117 text \" \"\n4 user \"house\"\n");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "detokenize", "--pieces", "--json", "2", "53", "0");
        assert_string_equal(
                ran.out,
                "{\"pieces\":[{\"id\":2,\"kind\":\"control\",\"text\":\"</s>\",\"bytes\":[60,47,"
                "115,62]},{\"id\":53,\"kind\":\"text\",\"text\":\" the\",\"bytes\":[32,116,"
                "104,101]},{\"id\":0,\"kind\":\"unknown\",\"text\":\"<unk>\",\"bytes\":"
                "[60,117,110,107,62]}]}\n");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "tokenize", "--pieces", "");
        assert_string_equal(ran.out, "");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        fixture_stop(fixture);
        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "tokenize", "--pieces", "\xc3\xa9\"");
        assert_string_equal(ran.out, "195 text \"\\xc3\"\n169 text \"\\xa9\"\n34 text \"\\\"\"\n");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "detokenize", "--pieces", "7", "258");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "tokens has 258 at index 1; the largest id is 257"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void ask_warns_that_the_model_has_no_template(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "Once upon", "--max-tokens", "20", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.err, "no chat template"));
        assert_int_equal(ran.out_bytes, 21);
        assert_int_equal(ran.out[20], '\n');
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void the_command_says_which_stop_string_ended_the_answer(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result whole, ran;
        char stop[4] = "";

        START_DAEMON(fixture, "--threads", "1");
        whole = RUN(fixture, NULL, SAMOVAR, "complete", "Once upon", "--max-tokens", "60", "--temp",
                    "0");
        assert_true(whole.out_bytes > 40);
        memcpy(stop, whole.out + 30, 3);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once upon", "--max-tokens", "60", "--temp",
                  "0", "--json", "--stop", "THIS IS NEVER SAID", "--stop", stop);
        assert_non_null(
                strstr(ran.out, "{\"end\":\"stop\",\"stopped_by\":\"string\",\"stop_index\":1,"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once upon", "--max-tokens", "60", "--temp",
                  "0", "--stats", "--stop", "THIS IS NEVER SAID", "--stop", stop);

        assert_non_null(strstr(ran.err, "samovar: stop: string 2, \""));
        run_result_free(&ran);
        run_result_free(&whole);
        fixture_stop(fixture);
}

/* The toy model's tokens are bytes, and each text begins with bos: "Quite f" takes 8 positions. */
static void stats_show_where_the_prompt_left_the_cache(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Quite far away", "--max-tokens", "4",
                  "--temp", "0", "--stats");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.err, " of 15 tokens"));
        assert_non_null(strstr(ran.err, "\nsamovar: time: "));
        assert_non_null(strstr(ran.err, " ms waiting, "));
        assert_non_null(strstr(ran.err, " of 4\n"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Quite far away", "--max-tokens", "4",
                  "--stats");
        assert_non_null(strstr(ran.err, "cache: 14 of 15 tokens\n"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Quite f\"r away", "--max-tokens", "4",
                  "--stats");
        assert_non_null(
                strstr(ran.err, "cache: 8 of 15 tokens; position 8 was \"a\", now \"\\\"\"\n"));
        run_result_free(&ran);
        /* A part of a character is not printed as text. */
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Quite \xc3\xa4", "--max-tokens", "4",
                  "--stats");
        assert_non_null(
                strstr(ran.err, "cache: 7 of 9 tokens; position 7 was \"f\", now token 195\n"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Quite Far", "--max-tokens", "4", "--json");
        assert_string_equal(ran.err, "");
        assert_non_null(strstr(ran.out, ",\"diverged_at\":7,\"diverged_cached_token\":195,"
                                        "\"diverged_prompt_token\":70}\n"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Quite", "--max-tokens", "4", "--json");
        assert_null(strstr(ran.out, "diverged_at"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* The first blank of a text is not part of it, but that of a word is; here it is a token. */
static void stats_show_the_leading_blank_of_a_token(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char path[1024];

        snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/unknown.model",
                 env_path("SOURCES"));
        START_DAEMON(fixture, "--threads", "1", "--tokenizer", path);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "the house on water", "--max-tokens", "1");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "the water", "--max-tokens", "1", "--stats");
        assert_non_null(strstr(ran.err, " was \" \", now \" water\"\n"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* A samovard that writes its arguments down instead of serving. */
static void note_arguments(const struct daemon_fixture *fixture, char *script, char *noted,
                           size_t bytes)
{
        FILE *file;

        snprintf(script, bytes, "%s/samovard", fixture->directory);
        snprintf(noted, bytes, "%s/arguments", fixture->directory);
        file = fopen(script, "w");
        assert_non_null(file);
        fprintf(file, "#!/bin/sh\necho \"$@\" >%s\n", noted);
        fclose(file);
        assert_int_equal(chmod(script, 0700), 0);
}

static void a_private_daemon_is_sized_by_the_request(void **state)
{
        static const struct {
                const char *flag, *value, *wanted;
        } cases[] = {
                { "--max-tokens", "5", "--max-seqs 1 " },
                { "-n", "7", "--max-seqs 7 " },
                { "--best-of", "3", "--max-seqs 3 " },
                { "--beams", "4", "--max-seqs 8 " },
        };
        struct daemon_fixture *fixture = *state;
        char script[160], noted[160], *real = strdup(env_path("SAMOVARD"));

        note_arguments(fixture, script, noted, sizeof(script));
        setenv("SAMOVARD", script, 1);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct run_result ran =
                        RUN(fixture, NULL, SAMOVAR, "complete", "--model", env_path("TOY_MODEL"),
                            "Once", cases[i].flag, cases[i].value);
                char *arguments = file_text(noted);

                assert_int_equal(ran.status, 3);
                if (!strstr(arguments, cases[i].wanted))
                        fail_msg("wanted %s in %s", cases[i].wanted, arguments);
                free(arguments);
                run_result_free(&ran);
        }
        setenv("SAMOVARD", real, 1);
        free(real);
}

static void a_private_daemon_ends_with_its_command(void **state)
{
        const struct want want = { .prompt = "Once upon", .max_tokens = 20 };
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        stream = streamed(fixture, &want);
        fixture_stop(fixture);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "--model", env_path("TOY_MODEL"), "Once upon",
                  "--max-tokens", "20", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, stream->text_bytes);
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        assert_no_process_left();
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--model", env_path("TOY_MODEL"), "Once",
                  "--max-tokens", "20");
        assert_int_equal(ran.status, 0);
        assert_no_process_left();
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--model", "./no-such.gguf", "Once");
        assert_true(ran.status == 1 || ran.status == 3);
        assert_non_null(strstr(ran.err, "no-such.gguf"));
        assert_string_equal(ran.out, "");
        assert_no_process_left();
        run_result_free(&ran);
        /* samovard is no model */
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--model", env_path("SAMOVARD"), "Once");
        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, "samovard"));
        assert_no_process_left();
        run_result_free(&ran);
        stream_free(stream);
}

static void without_a_daemon_the_command_says_how_to_start_it(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once");

        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, fixture->socket));
        assert_non_null(strstr(ran.err, "start one with  samovard  or give --model FILE"));
        assert_string_equal(ran.out, "");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "status");
        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, "start one with  samovard\n"));
        run_result_free(&ran);
}

static void a_path_that_is_no_socket_is_named_and_nothing_else_is_advised(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        ran = RUN(fixture, NULL, SAMOVAR, "status", "--socket", "/etc/passwd");
        assert_int_equal(ran.status, 3);
        assert_string_equal(ran.err, "samovar: /etc/passwd: it is not a socket\n");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--socket", "/nowhere/sock", "Hi");
        assert_int_equal(ran.status, 3);
        assert_string_equal(ran.err, "samovar: /nowhere/sock: No such file or directory\n");
        run_result_free(&ran);
}

static void without_the_machines_daemon_the_command_says_where_to_look(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        if (!access(SMV_SYSTEM_SOCKET, F_OK))
                skip_because("the machine's own daemon may answer");
        ran = RUN(fixture, NULL, SAMOVAR, "status", "--socket", SMV_SYSTEM_SOCKET);
        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, "the machine's daemon is not running; root can see why: "
                                        "systemctl status samovar\n"));
        assert_null(strstr(ran.err, "start one"));
        run_result_free(&ran);
}

static void refuses_wrong_arguments_with_status_2(void **state)
{
        static const char *const cases[][5] = {
                { "" },
                { "dance" },
                { "complete", "x", "--maxx", "3" },
                { "complete", "x", "--max-tokens" },
                { "complete", "x", "--max-tokens", "three" },
                { "complete", "x", "--max-tokens", "-1" },
                { "complete", "x", "--temp", "nan" },
                { "complete", "x", "--json=1" },
                { "status", "x" },
                { "status", "--max-tokens", "3" },
                { "detokenize", "1x" },
                { "detokenize", "4294967296" },
        };
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--threads", "1");
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const char *argv[8] = { SAMOVAR };
                struct run_result ran;

                for (size_t j = 0; j < 5 && cases[i][j] && *cases[i][j]; j++)
                        argv[1 + j] = cases[i][j];
                ran = run(fixture, NULL, argv);
                if (ran.status != 2 || !*ran.err || *ran.out)
                        fail_msg("samovar %s %s: %d \"%s\" \"%s\"", argv[1] ? argv[1] : "",
                                 argv[2] ? argv[2] : "", ran.status, ran.out, ran.err);
                run_result_free(&ran);
        }
        fixture_stop(fixture);
}

static void prints_the_refusal_of_the_daemon_and_exits_with_1(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "x", "--max-tokens", "100000");
        assert_int_equal(ran.status, 1);
        assert_string_equal(
                ran.err,
                "samovar: --max-tokens: the prompt has 2 tokens and max_tokens is "
                "100000; together they may be 2048 (clamp lowers max_tokens) (too_long)\n");
        assert_string_equal(ran.out, "");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "x", "--model", "nope");
        assert_int_equal(ran.status, 1);
        assert_string_equal(ran.err,
                            "samovar: --model nope: no model of that name is served; this daemon "
                            "serves toy-model (no_model)\n");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "attach", "77");
        assert_int_equal(ran.status, 1);
        assert_string_equal(ran.err, "samovar: there is no resumable stream 77 (no_resumable)\n");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "detokenize", "258");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "257"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* A long stream, whose text goes to a file, is interrupted when some of the text is there. */
static void an_interrupt_cancels_the_stream(void **state)
{
        struct daemon_fixture *fixture = *state;
        char model[96], out[96];
        struct stat file = { 0 };
        struct run_result ran;
        pid_t pid;

        snprintf(model, sizeof(model), "%s/long.gguf", fixture->directory);
        snprintf(out, sizeof(out), "%s/out", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), model, "--context", "262144",
                  "--layers", "1");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        START_DAEMON(fixture, "--model", model, "--kv-bytes", "1G");
        for (int i = 0; i < 3; i++) {
                unlink(out);
                pid = fork();
                if (!pid) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
                        dup2(open(fixture->log, O_WRONLY | O_APPEND), 2);
                        execl(SAMOVAR, SAMOVAR, "complete", "Once", "--temp", "0", "--max-tokens",
                              "200000", "--socket", fixture->socket, (char *)NULL);
                        _exit(126);
                }
                for (file.st_size = 0; file.st_size < 10; stat(out, &file))
                        sleep_ms(2);
                assert_int_equal(fixture_status(fixture, "requests.open"), 1);
                kill(pid, SIGINT);
                assert_int_equal(await_process(pid), 130);
                stat(out, &file);
                assert_true(file.st_size < 200000);
        }
        fixture_stop(fixture);
}

/* As in `samovar complete ... | head -c 5`. */
static void the_command_ends_when_its_output_pipe_is_closed(void **state)
{
        struct daemon_fixture *fixture = *state;
        char command[300];
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        snprintf(command, sizeof(command),
                 "%s complete Once --temp 0 --max-tokens 2000 | head -c 5", SAMOVAR);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, 5);
        assert_string_equal(ran.err, "");
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(complete_prints_the_continuation_and_nothing_else),
                DAEMON_TEST(sampling_flags_reach_the_daemon),
                DAEMON_TEST(flags_of_cuts_reach_the_daemon),
                DAEMON_TEST(flags_of_penalties_reach_the_daemon),
                DAEMON_TEST(json_output_has_one_object_for_each_token),
                DAEMON_TEST(best_of_prints_the_sample_with_the_highest_mean_logprob),
                DAEMON_TEST(detokenize_restores_the_text_from_tokenize),
                DAEMON_TEST(a_trained_model_continues_a_story_as_computed),
                DAEMON_TEST(tokenizer_flag_replaces_the_tokenizer_of_the_model),
                DAEMON_TEST(pieces_shows_each_token_by_itself),
                DAEMON_TEST(ask_warns_that_the_model_has_no_template),
                DAEMON_TEST(the_command_says_which_stop_string_ended_the_answer),
                DAEMON_TEST(stats_show_where_the_prompt_left_the_cache),
                DAEMON_TEST(stats_show_the_leading_blank_of_a_token),
                DAEMON_TEST(a_private_daemon_ends_with_its_command),
                DAEMON_TEST(a_private_daemon_is_sized_by_the_request),
                DAEMON_TEST(without_a_daemon_the_command_says_how_to_start_it),
                DAEMON_TEST(a_path_that_is_no_socket_is_named_and_nothing_else_is_advised),
                DAEMON_TEST(without_the_machines_daemon_the_command_says_where_to_look),
                DAEMON_TEST(refuses_wrong_arguments_with_status_2),
                DAEMON_TEST(prints_the_refusal_of_the_daemon_and_exits_with_1),
                DAEMON_TEST(an_interrupt_cancels_the_stream),
                DAEMON_TEST(the_command_ends_when_its_output_pipe_is_closed),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
