/*
 * `samovar batch`: whatever happens to it, in the end its output has one answer for each line of
 * the input, in the same order.
 *
 * The check of that reads both files by itself, and uses nothing of the product.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/chat-model.h"

#define SAMOVAR   env_path("SAMOVAR")
#define ID        "\"custom_id\":\""
#define LINES_MAX 10000u
#define ARGS_MAX  16

/* ---- inputs ---- */

struct batch_files {
        char in[128], out[128], err[128];
};

static struct batch_files files_of(const struct daemon_fixture *fixture)
{
        struct batch_files files;

        snprintf(files.in, sizeof(files.in), "%s/in.jsonl", fixture->directory);
        snprintf(files.out, sizeof(files.out), "%s/out.jsonl", fixture->directory);
        snprintf(files.err, sizeof(files.err), "%s/batch-err", fixture->directory);
        return files;
}

static FILE *create(const char *path)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        return file;
}

static void put_line(FILE *to, const char *id, const char *url, const char *body)
{
        fprintf(to, "{" ID "%s\",\"method\":\"POST\",\"url\":\"%s\",\"body\":{%s}}\n", id, url,
                body);
}

/* A text of 1 to `most` tokens, so that answers do not come in the order of their lines. */
static void put_text_line(FILE *to, uint32_t number, uint32_t most)
{
        char id[32], body[160];

        snprintf(id, sizeof(id), "line-%u", number);
        snprintf(body, sizeof(body),
                 "\"prompt\":\"Once %u\",\"max_tokens\":%u,\"temperature\":0,\"ignore_eos\":true",
                 number, 1 + (number * 2654435761u >> 8) % most);
        put_line(to, id, "/v1/completions", body);
}

static void write_input(const char *path, uint32_t count, uint32_t most)
{
        FILE *to = create(path);

        for (uint32_t i = 0; i < count; i++)
                put_text_line(to, i, most);
        fclose(to);
}

static void write_file(const char *path, const char *text, size_t bytes)
{
        FILE *to = create(path);

        assert_int_equal(fwrite(text, 1, bytes, to), bytes);
        fclose(to);
}

/* ---- the check ---- */

/* The custom_id of a line, which has no escapes.  NULL: it has none. */
static const char *id_in(const char *line, size_t *ret_bytes)
{
        const char *at = strstr(line, ID);

        if (!at)
                return NULL;
        at += strlen(ID);
        *ret_bytes = strcspn(at, "\"");
        return at;
}

/* The next line with something in it, or NULL; ends it with a NUL. */
static char *next_line(char **at)
{
        char *line;

        do
                line = strsep(at, "\n");
        while (line && !line[strspn(line, " \t\r")]);
        return line;
}

/* The output has whole lines for the first lines of the input, at least `least`: how many? */
static uint32_t answered(const struct batch_files *files, uint32_t least)
{
        char *in = file_text(files->in), *out = file_text(files->out);
        char *next_in = in, *next_out = out, *answer;
        uint32_t count = 0;

        assert_true(!*out || out[strlen(out) - 1] == '\n');
        while ((answer = next_line(&next_out))) {
                char *line = next_line(&next_in);
                const char *wanted, *found;
                size_t wanted_bytes = 0, found_bytes = 0;

                assert_non_null(line);
                wanted = id_in(line, &wanted_bytes);
                found = id_in(answer, &found_bytes);
                assert_non_null(wanted);
                assert_non_null(found);
                assert_int_equal(found_bytes, wanted_bytes);
                assert_memory_equal(found, wanted, wanted_bytes);
                assert_non_null(strstr(answer, "\"response\":{\"status_code\":"));
                assert_string_equal(answer + strlen(answer) - 15, "},\"error\":null}");
                count++;
        }
        assert_true(count >= least);
        free(in);
        free(out);
        return count;
}

static void assert_complete(const struct batch_files *files, uint32_t lines)
{
        assert_int_equal(answered(files, lines), lines);
}

static uint32_t occurrences(const char *path, const char *words)
{
        char *text = file_text(path);
        uint32_t count = 0;

        for (const char *at = text; (at = strstr(at, words)); at += strlen(words))
                count++;
        free(text);
        return count;
}

/* ---- the command ---- */

static pid_t start_batch(const struct daemon_fixture *fixture, const char *const *flags)
{
        struct batch_files files = files_of(fixture);
        const char *argv[ARGS_MAX] = { SAMOVAR, "batch", files.in, "-o", files.out };
        size_t count = 5;
        pid_t pid;

        while (*flags) {
                argv[count++] = *flags++;
                assert_true(count < ARGS_MAX);
        }
        unlink(files.err);
        pid = fork();
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(open(files.err, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        setenv("SAMOVAR_SOCKET", fixture->socket, 1);
        execv(argv[0], (char *const *)argv);
        _exit(126);
}
#define START_BATCH(fixture, ...) start_batch(fixture, (const char *const[]){ __VA_ARGS__, NULL })

static void expect_exit(const struct daemon_fixture *fixture, pid_t pid, int status)
{
        struct batch_files files = files_of(fixture);
        int found = await_process(pid);

        if (found != status)
                fail_msg("status %d, not %d: %s", found, status, file_text(files.err));
}

#define RUN_BATCH(fixture, status, ...)                                                            \
        expect_exit(fixture, START_BATCH(fixture, __VA_ARGS__), status)

static void assert_said(const struct daemon_fixture *fixture, const char *words)
{
        struct batch_files files = files_of(fixture);
        char *text = file_text(files.err);

        if (!strstr(text, words))
                fail_msg("'%s' is not in: %s", words, text);
        free(text);
}

static void await_lines(const char *path, uint32_t lines)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (access(path, R_OK) || occurrences(path, "\n") < lines) {
                assert_true(now_ms() < end);
                sleep_ms(2);
        }
}

/* ---- order ---- */

static void answers_are_in_the_order_of_their_lines_in_all_endpoints(void **state)
{
        static const char *const urls[] = { "/v1/chat/completions", "/v1/completions",
                                            "/v1/responses" };
        static const char *const bodies[] = {
                "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":%u",
                "\"prompt\":\"hi\",\"max_tokens\":%u",
                "\"input\":\"hi\",\"max_output_tokens\":%u",
        };
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        FILE *to = create(files.in);
        uint32_t count = 60;

        for (uint32_t i = 0; i < count; i++) {
                char id[32], body[128];

                snprintf(id, sizeof(id), "%u of %u", i, count);
                snprintf(body, sizeof(body), bodies[i % 3], 1 + random_below(40));
                put_line(to, id, urls[i % 3], body);
                if (i % 7 == 0)
                        fputs("\n  \t\r\n", to);
        }
        fclose(to);
        start_chat_model(fixture, CHATML);
        RUN_BATCH(fixture, 0, NULL);
        assert_complete(&files, count);
        assert_int_equal(occurrences(files.out, "\"object\":\"chat.completion\""), 20);
        assert_int_equal(occurrences(files.out, "\"object\":\"text_completion\""), 20);
        assert_int_equal(occurrences(files.out, "\"object\":\"response\""), 20);
        assert_said(fixture, "60 of 60 lines answered, 0 failed");
        fixture_stop(fixture);
}

static void one_long_answer_delays_the_others_and_none_is_lost(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        uint32_t count = scaled(2000, LINES_MAX);
        FILE *to = create(files.in);

        put_line(to, "long", "/v1/completions",
                 "\"prompt\":\"Once\",\"max_tokens\":1500,\"ignore_eos\":true");
        for (uint32_t i = 1; i < count; i++)
                put_text_line(to, i, 2);
        fclose(to);
        START_QUICK_DAEMON(fixture, "--threads", "1", "--max-seqs", "8");
        RUN_BATCH(fixture, 0, NULL);
        assert_complete(&files, count);
        fixture_stop(fixture);
}

static void reads_stdin_and_writes_stdout(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        char command[512];
        struct run_result ran;

        write_input(files.in, 50, 20);
        START_DAEMON(fixture, "--threads", "1");
        snprintf(command, sizeof(command), "cat '%s' | '%s' batch | (sleep 0.1; cat) > '%s'",
                 files.in, SAMOVAR, files.out);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        assert_complete(&files, 50);

        snprintf(command, sizeof(command), "'%s' batch < '%s' | head -n 3", SAMOVAR, files.in);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        write_file(files.out, ran.out, ran.out_bytes);
        run_result_free(&ran);
        assert_complete(&files, 3);
        fixture_stop(fixture);
}

/* ---- failures ---- */

static void a_line_that_fails_has_its_error_in_its_place(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        FILE *to = create(files.in);

        put_text_line(to, 0, 5);
        put_line(to, "strange model", "/v1/completions", "\"model\":\"x\",\"prompt\":\"a\"");
        put_text_line(to, 1, 5);
        put_line(to, "wrong field", "/v1/completions", "\"prompt\":\"a\",\"temperature\":-7");
        put_text_line(to, 2, 5);
        fclose(to);
        START_DAEMON(fixture, "--threads", "1");
        RUN_BATCH(fixture, 1, NULL);
        assert_complete(&files, 5);
        assert_int_equal(occurrences(files.out, "\"status_code\":200"), 3);
        assert_int_equal(occurrences(files.out, "\"status_code\":404"), 1);
        assert_int_equal(occurrences(files.out, "\"status_code\":400"), 1);
        assert_int_equal(occurrences(files.out, "\"code\":\"model_not_found\""), 1);
        assert_int_equal(occurrences(files.out, "\"param\":\"temperature\""), 1);
        assert_said(fixture, "5 of 5 lines answered, 2 failed");

        /* A run that has nothing to do still says that lines have failed. */
        RUN_BATCH(fixture, 1, "--resume");
        assert_said(fixture, "5 of 5 lines answered, 5 of them before, 2 failed");

        /* Names that no model has may stand for one that is served. */
        unlink(files.out);
        RUN_BATCH(fixture, 1, "--model", "toy-model");
        assert_int_equal(occurrences(files.out, "\"status_code\":200"), 4);
        fixture_stop(fixture);
}

static void refuses_wrong_lines_before_any_is_asked(void **state)
{
        static const struct {
                const char *line, *why;
        } wrong[] = {
                { "{", "in.jsonl:3: " },
                { "[]", "in.jsonl:3: a line must be an object" },
                { "{\"method\":\"POST\"}", "in.jsonl:3: custom_id must be a string" },
                { "{" ID "a\",\"method\":\"GET\"}", "in.jsonl:3: method must be POST" },
                { "{" ID "a\",\"method\":\"POST\",\"url\":\"/v1/embeddings\",\"body\":{}}",
                  "in.jsonl:3: url must be /v1/chat/completions" },
                { "{" ID "a\",\"method\":\"POST\",\"url\":\"/v1/completions\"}",
                  "in.jsonl:3: body must be an object" },
                { "{" ID "a\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":"
                  "{\"stream\":true}}",
                  "in.jsonl:3: body.stream" },
                { "{" ID "line-0\",\"method\":\"POST\",\"url\":\"/v1/completions\",\"body\":{}}",
                  "in.jsonl:3: line 1 has the same custom_id" },
        };
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        uint64_t received;

        START_DAEMON(fixture, "--threads", "1");
        received = fixture_status(fixture, "requests.received");
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                FILE *to = create(files.in);

                put_text_line(to, 0, 5);
                fprintf(to, "\n%s\n", wrong[i].line);
                put_text_line(to, 1, 5);
                fclose(to);
                RUN_BATCH(fixture, 2, NULL);
                assert_said(fixture, wrong[i].why);
                assert_said(fixture, "nothing was asked");
                assert_complete(&files, 0);
        }
        assert_int_equal(fixture_status(fixture, "requests.received"), received);
        fixture_stop(fixture);
}

static void says_what_is_wrong_with_its_files(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        RUN_BATCH(fixture, 2, NULL);
        assert_said(fixture, "in.jsonl: No such file");
        write_input(files.in, 3, 5);
        ran = RUN(fixture, NULL, SAMOVAR, "batch", files.in, "-o", files.in, "--resume");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "is the input and the output"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "batch", files.in, "-o", "/dev/null", "--resume");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "--resume needs a regular file"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "batch", files.in, files.out);
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
        RUN_BATCH(fixture, 2, "--model", "no-such", NULL);
        assert_said(fixture, "--model no-such: the daemon serves no such model");
        write_file(files.in, "", 0);
        RUN_BATCH(fixture, 0, NULL);
        assert_complete(&files, 0);
        fixture_stop(fixture);
}

/* ---- resuming ---- */

static void continues_an_output_that_was_cut_at_any_byte(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        uint32_t lines = 40, cuts = scaled(60, 5000);
        size_t bytes;
        char *all;

        write_input(files.in, lines, 10);
        START_DAEMON(fixture, "--threads", "1");
        RUN_BATCH(fixture, 0, NULL);
        assert_complete(&files, lines);
        all = file_text(files.out);
        bytes = strlen(all);
        RUN_BATCH(fixture, 2, NULL);
        assert_said(fixture, "--resume continues it");
        for (uint32_t i = 0; i < cuts; i++) {
                /* At random, and around the end of a line. */
                size_t cut = random_below((uint32_t)bytes + 1), kept;
                char *now;

                if (i % 3 && cut < bytes)
                        cut = (size_t)(strchr(all + cut, '\n') - all) + random_below(3);
                cut = cut < bytes ? cut : bytes;
                for (kept = cut; kept && all[kept - 1] != '\n'; kept--)
                        ;
                write_file(files.out, all, cut);
                RUN_BATCH(fixture, 0, "--resume");
                assert_complete(&files, lines);
                now = file_text(files.out);
                assert_memory_equal(now, all, kept); /* what was whole is not asked again */
                free(now);
        }
        free(all);
        fixture_stop(fixture);
}

static void refuses_to_continue_the_answers_to_another_input(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        char *before, *after;
        FILE *to;

        write_input(files.in, 10, 5);
        START_DAEMON(fixture, "--threads", "1");
        RUN_BATCH(fixture, 0, NULL);
        before = file_text(files.out);
        to = create(files.in);
        for (uint32_t i = 0; i < 10; i++)
                put_text_line(to, i == 6 ? 77 : i, 5);
        fclose(to);
        RUN_BATCH(fixture, 2, "--resume");
        assert_said(fixture, "out.jsonl:7 answers custom_id 'line-6'");
        assert_said(fixture, "in.jsonl:7 has 'line-77'");
        write_input(files.in, 9, 5);
        RUN_BATCH(fixture, 2, "--resume");
        assert_said(fixture, "has more answers than");
        after = file_text(files.out);
        assert_string_equal(after, before);
        write_file(files.out, "{\"x\":1}\n", 8);
        RUN_BATCH(fixture, 2, "--resume");
        assert_said(fixture, "out.jsonl:1: it is no answer of a batch");
        free(before);
        free(after);
        fixture_stop(fixture);
}

static void none_is_lost_or_doubled_when_it_is_killed_again_and_again(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        uint32_t lines = scaled(300, LINES_MAX), runs = 0, before = 0;
        int status = -1;

        write_input(files.in, lines, 60);
        START_DAEMON(fixture, "--threads", "1");
        while (status) {
                pid_t pid = START_BATCH(fixture, "--resume");

                sleep_ms(random_below(50 + 30 * runs)); /* so it ends on any machine */
                kill(pid, runs % 3 == 2 ? SIGINT : SIGKILL);
                status = await_process(pid);
                assert_true(status == 0 || status == -SIGKILL || status == -SIGINT ||
                            status == 130);
                runs++;
                /* A kill may tear the last line; what is whole before it stays. */
                if (status == 130 || !status) {
                        uint32_t now = answered(&files, before);

                        before = now;
                }
        }
        assert_complete(&files, lines);
        printf("# %u lines, %u runs\n", lines, runs);
        fixture_stop(fixture);
}

static void an_interrupt_says_how_to_continue(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        FILE *to = create(files.in);
        pid_t pid;

        for (uint32_t i = 0; i < 3; i++)
                put_text_line(to, i, 5);
        put_line(to, "endless", "/v1/completions",
                 "\"prompt\":\"Once\",\"max_tokens\":1000000,\"ignore_eos\":true");
        put_text_line(to, 3, 5);
        fclose(to);
        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        pid = START_BATCH(fixture, NULL);
        await_lines(files.out, 3);
        kill(pid, SIGINT);
        expect_exit(fixture, pid, 130);
        assert_complete(&files, 3);
        assert_said(fixture, "3 of 5 lines are written");
        assert_said(fixture, "--resume\n");
        fixture_stop(fixture);
}

/* ---- the daemon ---- */

static void start_again(struct daemon_fixture *fixture)
{
        const char *const flags[] = {
                "--config",  "none", "--model", env_path("TOY_MODEL"), "--socket", fixture->socket,
                "--threads", "1",    NULL
        };

        uint64_t end = now_ms() + TIMEOUT_MS;
        int status = -1;

        fixture->pid = fixture_spawn(fixture, flags, -1);
        while (status) { /* until it answers, it handles no signals */
                struct run_result ran = RUN(fixture, NULL, SAMOVAR, "status");

                status = ran.status;
                run_result_free(&ran);
                assert_true(now_ms() < end);
        }
}

static void waits_for_a_daemon_that_is_restarted(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        uint32_t lines = scaled(1000, LINES_MAX), more = 1;
        pid_t pid;

        write_input(files.in, lines, 60);
        START_DAEMON(fixture, "--threads", "1");
        pid = START_BATCH(fixture, NULL);
        for (int i = 0; i < 3; i++) {
                int signal = i % 2 ? SIGTERM : SIGKILL;

                await_lines(files.out, more < lines ? more : lines);
                kill(fixture->pid, signal);
                assert_int_equal(fixture_await_exit(fixture), signal == SIGKILL ? -SIGKILL : 0);
                more = occurrences(files.out, "\n") + 1;
                sleep_ms(random_below(300));
                start_again(fixture);
        }
        expect_exit(fixture, pid, 0);
        assert_complete(&files, lines);
        assert_int_equal(occurrences(files.out, "\"status_code\":200"), lines);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

static void a_path_of_a_model_starts_a_private_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        FILE *to = create(files.in);

        put_text_line(to, 0, 5);
        put_line(to, "other name", "/v1/completions", "\"model\":\"gpt-4\",\"prompt\":\"a\"");
        fclose(to);
        RUN_BATCH(fixture, 0, "--model", env_path("TOY_MODEL"));
        assert_complete(&files, 2);
        assert_int_equal(occurrences(files.out, "\"status_code\":200"), 2);
        unlink(files.out);
        RUN_BATCH(fixture, 3, "--model", files.in);
        assert_said(fixture, "the private samovard did not start");
        assert_complete(&files, 0);
        assert_no_process_left();
}

/* ---- how many ---- */

static void write_endless_input(const char *path, uint32_t count)
{
        FILE *to = create(path);

        for (uint32_t i = 0; i < count; i++) {
                char id[32];

                snprintf(id, sizeof(id), "%u", i);
                put_line(to, id, "/v1/completions",
                         "\"prompt\":\"Once\",\"max_tokens\":10000,\"ignore_eos\":true");
        }
        fclose(to);
}

static void stop_batch(const struct daemon_fixture *fixture, pid_t pid)
{
        kill(pid, SIGINT);
        expect_exit(fixture, pid, 130);
        fixture_await_status(fixture, "requests.open", 0);
}

static void asks_as_many_as_the_daemon_runs_and_some_that_wait(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);
        pid_t pid;

        write_endless_input(files.in, 200);
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "4", "--uid-requests", "30");
        pid = START_BATCH(fixture, NULL);
        fixture_await_status(fixture, "requests.open", 4 + 16);
        fixture_await_status(fixture, "requests.running", 4);
        stop_batch(fixture, pid);

        unlink(files.out);
        pid = START_BATCH(fixture, "--parallel", "3");
        fixture_await_status(fixture, "requests.open", 3);
        sleep_ms(300);
        assert_int_equal(fixture_status(fixture, "requests.open"), 3);
        stop_batch(fixture, pid);

        /* The daemon refuses more than 30; those that were refused wait and are asked again. */
        unlink(files.out);
        pid = START_BATCH(fixture, "--parallel", "100");
        fixture_await_status(fixture, "requests.open", 30);
        stop_batch(fixture, pid);
        fixture_stop(fixture);
}

static void lines_that_the_daemon_refuses_for_lack_of_space_are_asked_again(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct batch_files files = files_of(fixture);

        write_input(files.in, 200, 30);
        START_DAEMON(fixture, "--threads", "1", "--uid-requests", "5", "--max-seqs", "3");
        RUN_BATCH(fixture, 0, "--parallel", "50");
        assert_complete(&files, 200);
        assert_int_equal(occurrences(files.out, "\"status_code\":200"), 200);
        assert_true(fixture_status(fixture, "requests.refused") > 0);
        fixture_stop(fixture);
}

/* ---- memory ---- */

/* The largest memory of a batch of so many lines, all of which fail at once. */
static long memory_of(struct daemon_fixture *fixture, uint32_t lines)
{
        struct batch_files files = files_of(fixture);
        FILE *to = create(files.in);
        struct rusage used;
        int status;
        pid_t pid;

        for (uint32_t i = 0; i < lines; i++) {
                char id[32];

                snprintf(id, sizeof(id), "%u", i);
                put_line(to, id, "/v1/completions",
                         "\"model\":\"none\",\"prompt\":\"How many lines are there in memory?\"");
        }
        fclose(to);
        unlink(files.out);
        pid = START_BATCH(fixture, NULL);
        assert_int_equal(wait4(pid, &status, 0, &used), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        assert_complete(&files, lines);
        return used.ru_maxrss;
}

static void memory_does_not_grow_with_the_lines(void **state)
{
        struct daemon_fixture *fixture = *state;
        long few, many;

        START_DAEMON(fixture, "--threads", "1");
        if (fixture->sanitized) {
                fixture_stop(fixture);
                return; /* a sanitizer keeps what was freed */
        }
        few = memory_of(fixture, 2000);
        many = memory_of(fixture, 100000);
        printf("# %ld KiB for 2,000 lines, %ld KiB for 100,000\n", few, many);
        assert_true(many < few + 8192);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(answers_are_in_the_order_of_their_lines_in_all_endpoints),
                DAEMON_TEST(one_long_answer_delays_the_others_and_none_is_lost),
                DAEMON_TEST(reads_stdin_and_writes_stdout),
                DAEMON_TEST(a_line_that_fails_has_its_error_in_its_place),
                DAEMON_TEST(refuses_wrong_lines_before_any_is_asked),
                DAEMON_TEST(says_what_is_wrong_with_its_files),
                DAEMON_TEST(continues_an_output_that_was_cut_at_any_byte),
                DAEMON_TEST(refuses_to_continue_the_answers_to_another_input),
                DAEMON_TEST(none_is_lost_or_doubled_when_it_is_killed_again_and_again),
                DAEMON_TEST(an_interrupt_says_how_to_continue),
                DAEMON_TEST(waits_for_a_daemon_that_is_restarted),
                DAEMON_TEST(a_path_of_a_model_starts_a_private_daemon),
                DAEMON_TEST(asks_as_many_as_the_daemon_runs_and_some_that_wait),
                DAEMON_TEST(lines_that_the_daemon_refuses_for_lack_of_space_are_asked_again),
                DAEMON_TEST(memory_does_not_grow_with_the_lines),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
