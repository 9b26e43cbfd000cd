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

#include "tests/e2e/talk.h"

#define SAMOVAR given("SAMOVAR")

static struct stream *streamed(const struct house *house, const struct want *want)
{
        struct talk *talk = talk_greet(house);
        struct stream *stream = stream_copy(talk_whole(talk, want));

        talk_close(talk);
        return stream;
}

static void complete_prints_the_continuation_and_nothing_else(void **state)
{
        const struct want want = { .prompt = "Once upon", .max_tokens = 60 };
        struct house *house = *state;
        struct stream *stream;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        stream = streamed(house, &want);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Once upon", "--max", "60", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, stream->text_bytes);
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        assert_string_equal(ran.err, "");
        ran_free(&ran);

        /* The prompt comes by stdin, and as words; flags come before it and after it. */
        ran = RUN(house, "Once upon", SAMOVAR, "complete", "--max=60", "--temp=0");
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "complete", "--temp", "0", "--max", "60", "--socket",
                  house->socket, "Once", "upon");
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        ran_free(&ran);
        stream_free(stream);
        house_stop(house);
}

static void sampling_flags_are_the_daemon_s(void **state)
{
        const struct want want = { .prompt = "Tea",
                                   .max_tokens = 80,
                                   .temperature = 0.9,
                                   .top_k = 7,
                                   .top_p = 0.9,
                                   .min_p = 0.02,
                                   .seed = 42,
                                   .stop = "e" };
        struct house *house = *state;
        struct stream *stream;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        stream = streamed(house, &want);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Tea", "--max", "80", "--temp", "0.9",
                  "--top-k", "7", "--top-p", "0.9", "--min-p", "0.02", "--seed", "42", "--stop",
                  "e");
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, stream->text_bytes);
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        ran_free(&ran);
        stream_free(stream);
        house_stop(house);
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

static void json_is_one_object_a_token(void **state)
{
        const struct want want = { .prompt = "Once upon", .max_tokens = 30 };
        struct house *house = *state;
        struct stream *stream;
        struct ran ran;
        size_t lines = 0, bytes = 0;
        char *at;

        HOUSE(house, "--threads", "1");
        stream = streamed(house, &want);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Once upon", "--max", "30", "--temp", "0",
                  "--json");
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
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "status", "--json");
        assert_int_equal(ran.status, 0);
        assert_string_equal(skip_json(ran.out), "\n");
        ran_free(&ran);
        stream_free(stream);
        house_stop(house);
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

static void the_best_of_many_is_the_likeliest_on_average(void **state)
{
        double sums[6] = { 0 }, best = -1e9;
        char texts[6][400] = { { 0 } };
        size_t counts[6] = { 0 }, which = 0;
        struct house *house = *state;
        const char *line, *said;
        struct ran ran;

        char *babble = strdup(given("BABBLE")), shipped[512];

        snprintf(shipped, sizeof(shipped), "%s/models/teaspoon-q8_0.gguf", given("SOURCES"));
        setenv("BABBLE", shipped, 1); /* babble has no word that is likelier than others */
        HOUSE(house, NULL);
        setenv("BABBLE", babble, 1);
        free(babble);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Once upon a time", "--max", "12", "--temp",
                  "1.2", "--seed", "3", "--best-of", "5", "--json");
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
        ran_free(&ran);

        ran = RUN(house, NULL, SAMOVAR, "complete", "Once upon a time", "--max", "12", "--temp",
                  "1.2", "--seed", "3", "--best-of", "5");
        assert_int_equal(ran.status, 0);
        said = ran.out;
        assert_string_equal(said, texts[which]);
        ran_free(&ran);

        ran = RUN(house, NULL, SAMOVAR, "ask", "hi", "--best-of", "3", "--beams", "2");
        assert_int_equal(ran.status, 2);
        assert_string_equal(
                ran.err,
                "samovar: --beams finds what is likeliest: there is no --best-of beside it\n");
        ran_free(&ran);
        house_stop(house);
}

static void tokenize_and_detokenize_are_a_pipe_to_themselves(void **state)
{
        static const char *const texts[] = { "hello", "two words\nand a line",
                                             "\xc3\xa4 \xe2\x82\xac", "\"quoted\" \\ \t" };
        struct house *house = *state;
        struct ran ids, text;

        HOUSE(house, "--threads", "1");
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                ids = RUN(house, texts[i], SAMOVAR, "tokenize");
                assert_int_equal(ids.status, 0);
                text = RUN(house, ids.out, SAMOVAR, "detokenize");
                assert_int_equal(text.status, 0);
                assert_string_equal(text.out, texts[i]);
                ran_free(&ids);
                ran_free(&text);
        }
        ids = RUN(house, NULL, SAMOVAR, "tokenize", "hi", "--json");
        assert_string_equal(ids.out, "{\"tokens\":[104,105]}\n");
        ran_free(&ids);
        text = RUN(house, NULL, SAMOVAR, "detokenize", "104", "105", "10", "--json");
        assert_string_equal(text.out, "{\"text\":\"hi\\n\"}\n");
        ran_free(&text);
        house_stop(house);
}

/* A float64 forward pass continues these words so, greedily (goldens-stories260K.json). */
static void a_trained_model_goes_on_in_words(void **state)
{
        static const char story[] = ", there was a little girl named Lily. She loved to play "
                                    "outside in the park. One day, she saw a big, red ball. She "
                                    "wanted to play with it, but it was too high.\nLily's mom";
        const char *data = getenv("SAMOVAR_DATA");
        struct house *house = *state;
        char path[1024];
        struct ran ran;

        if (!data)
                skip();
        snprintf(path, sizeof(path), "%s/models/stories260K/stories260K.gguf", data);
        ran = RUN(house, NULL, SAMOVAR, "complete", "--model", path, "Once upon a time", "--max",
                  "90", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_true(ran.out_bytes > strlen(story));
        assert_memory_equal(ran.out, story, strlen(story));
        ran_free(&ran);
        assert_no_process_left();
}

/* The ids are SentencePiece's own.  The first blank of a text is not the user's. */
static void a_tokenizer_from_another_file_takes_the_place_of_the_model_s(void **state)
{
        struct house *house = *state;
        struct ran ids, text;
        char path[1024];

        snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/unknown.model", given("SOURCES"));
        HOUSE(house, "--threads", "1", "--tokenizer", path);
        ids = RUN(house, NULL, SAMOVAR, "tokenize", "the house on water", "--json");
        assert_string_equal(ids.out, "{\"tokens\":[53,117,4,86,19]}\n");
        ran_free(&ids);
        text = RUN(house, NULL, SAMOVAR, "detokenize", "53", "117", "4", "86", "19");
        assert_string_equal(text.out, "the house on water");
        ran_free(&text);
        text = RUN(house, NULL, SAMOVAR, "complete", "the house", "--max", "9", "--temp", "0");
        assert_int_equal(text.status, 0);
        ran_free(&text);
        house_stop(house);
}

static void ask_says_that_there_is_no_template(void **state)
{
        struct house *house = *state;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        ran = RUN(house, NULL, SAMOVAR, "ask", "Once upon", "--max", "20", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.err, "no chat template"));
        assert_int_equal(ran.out_bytes, 21);
        assert_int_equal(ran.out[20], '\n');
        ran_free(&ran);
        house_stop(house);
}

/* Babble's tokens are bytes, and a bos stands before each text: "Quite f" takes 8 positions. */
static void stats_say_why_the_cache_missed(void **state)
{
        struct house *house = *state;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        ran = RUN(house, NULL, SAMOVAR, "complete", "Quite far away", "--max", "4", "--temp", "0",
                  "--stats");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.err, " of 15 tokens"));
        assert_non_null(strstr(ran.err, "\nsamovar: time: "));
        assert_non_null(strstr(ran.err, " ms waiting, "));
        assert_non_null(strstr(ran.err, " of 4\n"));
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Quite far away", "--max", "4", "--stats");
        assert_non_null(strstr(ran.err, "cache: 14 of 15 tokens\n"));
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Quite f\"r away", "--max", "4", "--stats");
        assert_non_null(
                strstr(ran.err, "cache: 8 of 15 tokens; position 8 was \"a\", now \"\\\"\"\n"));
        ran_free(&ran);
        /* A part of a character is not printed as text. */
        ran = RUN(house, NULL, SAMOVAR, "complete", "Quite \xc3\xa4", "--max", "4", "--stats");
        assert_non_null(
                strstr(ran.err, "cache: 7 of 9 tokens; position 7 was \"f\", now token 195\n"));
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Quite Far", "--max", "4", "--json");
        assert_string_equal(ran.err, "");
        assert_non_null(strstr(ran.out, ",\"diverged_at\":7,\"known_token\":195,"
                                        "\"asked_token\":70}\n"));
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "complete", "Quite", "--max", "4", "--json");
        assert_null(strstr(ran.out, "diverged_at"));
        ran_free(&ran);
        house_stop(house);
}

/* The first blank of a text is not part of it, but that of a word is; here it is a token. */
static void stats_have_the_blanks_of_words(void **state)
{
        struct house *house = *state;
        struct ran ran;
        char path[1024];

        snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/unknown.model", given("SOURCES"));
        HOUSE(house, "--threads", "1", "--tokenizer", path);
        ran = RUN(house, NULL, SAMOVAR, "complete", "the house on water", "--max", "1");
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "complete", "the water", "--max", "1", "--stats");
        assert_non_null(strstr(ran.err, " was \" \", now \" water\"\n"));
        ran_free(&ran);
        house_stop(house);
}

static void status_is_a_table_for_people(void **state)
{
        struct house *house = *state;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        ran = RUN(house, NULL, SAMOVAR, "status");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "blocks.held"));
        assert_non_null(strstr(ran.out, "charges.0.connections"));
        ran_free(&ran);
        house_stop(house);
}

static void a_private_daemon_is_gone_with_its_command(void **state)
{
        const struct want want = { .prompt = "Once upon", .max_tokens = 20 };
        struct house *house = *state;
        struct stream *stream;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        stream = streamed(house, &want);
        house_stop(house);
        ran = RUN(house, NULL, SAMOVAR, "complete", "--model", given("BABBLE"), "Once upon",
                  "--max", "20", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, stream->text_bytes);
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        assert_no_process_left();
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "ask", "--model", given("BABBLE"), "Once", "--max", "20");
        assert_int_equal(ran.status, 0);
        assert_no_process_left();
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "ask", "--model", "./no-such.gguf", "Once");
        assert_true(ran.status == 1 || ran.status == 3);
        assert_non_null(strstr(ran.err, "no-such.gguf"));
        assert_string_equal(ran.out, "");
        assert_no_process_left();
        ran_free(&ran);
        /* samovard is no model */
        ran = RUN(house, NULL, SAMOVAR, "ask", "--model", given("SAMOVARD"), "Once");
        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, "samovard"));
        assert_no_process_left();
        ran_free(&ran);
        stream_free(stream);
}

static void no_daemon_is_said_with_what_helps(void **state)
{
        struct house *house = *state;
        struct ran ran = RUN(house, NULL, SAMOVAR, "complete", "Once");

        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, house->socket));
        assert_non_null(strstr(ran.err, "start one with  samovard  or give --model FILE"));
        assert_string_equal(ran.out, "");
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "status");
        assert_int_equal(ran.status, 3);
        ran_free(&ran);
}

static void what_was_typed_wrong_is_said(void **state)
{
        static const char *const cases[][5] = {
                { "" },
                { "dance" },
                { "complete", "x", "--maxx", "3" },
                { "complete", "x", "--max" },
                { "complete", "x", "--max", "three" },
                { "complete", "x", "--max", "-1" },
                { "complete", "x", "--temp", "nan" },
                { "complete", "x", "--json=1" },
                { "status", "x" },
                { "status", "--max", "3" },
                { "detokenize", "1x" },
                { "detokenize", "4294967296" },
        };
        struct house *house = *state;

        HOUSE(house, "--threads", "1");
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const char *argv[8] = { SAMOVAR };
                struct ran ran;

                for (size_t j = 0; j < 5 && cases[i][j] && *cases[i][j]; j++)
                        argv[1 + j] = cases[i][j];
                ran = run(house, NULL, argv);
                if (ran.status != 2 || !*ran.err || *ran.out)
                        fail_msg("samovar %s %s: %d \"%s\" \"%s\"", argv[1] ? argv[1] : "",
                                 argv[2] ? argv[2] : "", ran.status, ran.out, ran.err);
                ran_free(&ran);
        }
        house_stop(house);
}

static void refusal_of_the_daemon_is_told_and_fails(void **state)
{
        struct house *house = *state;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        ran = RUN(house, NULL, SAMOVAR, "complete", "x", "--max", "100000");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "max_tokens"));
        assert_non_null(strstr(ran.err, "2048"));
        assert_string_equal(ran.out, "");
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "complete", "x", "--model", "nope");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "no_model"));
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "detokenize", "258");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "257"));
        ran_free(&ran);
        house_stop(house);
}

/* A long stream, whose text goes to a file, is interrupted when some of the text is there. */
static void interrupt_cancels_the_stream(void **state)
{
        struct house *house = *state;
        char model[96], out[96];
        struct stat file = { 0 };
        struct ran ran;
        pid_t pid;

        snprintf(model, sizeof(model), "%s/long.gguf", house->directory);
        snprintf(out, sizeof(out), "%s/out", house->directory);
        ran = RUN(house, NULL, given("BABBLE_MAKER"), model, "--context", "262144", "--layers",
                  "1");
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        HOUSE(house, "--model", model, "--kv-bytes", "1G");
        for (int i = 0; i < 3; i++) {
                unlink(out);
                pid = fork();
                if (!pid) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
                        dup2(open(house->log, O_WRONLY | O_APPEND), 2);
                        execl(SAMOVAR, SAMOVAR, "complete", "Once", "--temp", "0", "--max",
                              "200000", "--socket", house->socket, (char *)NULL);
                        _exit(126);
                }
                for (file.st_size = 0; file.st_size < 10; stat(out, &file))
                        sleep_ms(2);
                assert_int_equal(house_status(house, "requests.alive"), 1);
                kill(pid, SIGINT);
                assert_int_equal(process_wait(pid), 130);
                stat(out, &file);
                assert_true(file.st_size < 200000);
        }
        house_stop(house);
}

/* As in `samovar complete ... | head -c 5`. */
static void reader_that_has_enough_ends_it(void **state)
{
        struct house *house = *state;
        char command[300];
        struct ran ran;

        HOUSE(house, "--threads", "1");
        snprintf(command, sizeof(command), "%s complete Once --temp 0 --max 2000 | head -c 5",
                 SAMOVAR);
        ran = RUN(house, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, 5);
        assert_string_equal(ran.err, "");
        ran_free(&ran);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(complete_prints_the_continuation_and_nothing_else),
                STORY(sampling_flags_are_the_daemon_s),
                STORY(json_is_one_object_a_token),
                STORY(the_best_of_many_is_the_likeliest_on_average),
                STORY(tokenize_and_detokenize_are_a_pipe_to_themselves),
                STORY(a_trained_model_goes_on_in_words),
                STORY(a_tokenizer_from_another_file_takes_the_place_of_the_model_s),
                STORY(ask_says_that_there_is_no_template),
                STORY(stats_say_why_the_cache_missed),
                STORY(stats_have_the_blanks_of_words),
                STORY(status_is_a_table_for_people),
                STORY(a_private_daemon_is_gone_with_its_command),
                STORY(no_daemon_is_said_with_what_helps),
                STORY(what_was_typed_wrong_is_said),
                STORY(refusal_of_the_daemon_is_told_and_fails),
                STORY(interrupt_cancels_the_stream),
                STORY(reader_that_has_enough_ends_it),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
