/*
 * The text that the samovar command works on: words, stdin, or both.  `template FILE` shows what
 * `ask` would send, and needs no daemon.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

/* A template that gives the question between angle brackets. */
static const char *template_file(const struct daemon_fixture *fixture)
{
        static const char text[] = "<{{ messages[0].content }}>";
        static char path[128];
        int fd;

        snprintf(path, sizeof(path), "%s/chat.jinja", fixture->directory);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
        return path;
}

/* Runs `before` and the command in a shell; `after` follows its words.  Frees nothing. */
static struct run_result in_shell(const struct daemon_fixture *fixture, const char *before,
                                  const char *words, const char *after)
{
        char command[1024];

        snprintf(command, sizeof(command), "%s %s template %s %s %s", before, SAMOVAR,
                 template_file(fixture), words, after);
        return RUN(fixture, NULL, "/bin/sh", "-c", command);
}

static void expect(struct run_result ran, int status, const char *out, const char *err)
{
        assert_string_equal(ran.out, out);
        if (*err ? !strstr(ran.err, err) : *ran.err)
                fail_msg("\"%s\" is not in: %s", err, ran.err);
        assert_int_equal(ran.status, status);
        run_result_free(&ran);
}

static void input_of_a_pipe_or_a_file_follows_the_question(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect(in_shell(fixture, "printf 'a\\nb\\n' |", "'Sum up:'", ""), 0, "<Sum up:\n\na\nb\n>",
               "");
        expect(in_shell(fixture, "printf log |", "Sum up:", "-"), 0, "<Sum up:\n\nlog>", "");
        expect(in_shell(fixture, "", "Sum up:", "<<'END'\nlog\nEND"), 0, "<Sum up:\n\nlog\n>", "");
}

static void empty_input_adds_nothing_to_the_question(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect(in_shell(fixture, ": |", "Hi", ""), 0, "<Hi>", "");
        expect(in_shell(fixture, "", "Hi", "</dev/null"), 0, "<Hi>", "");
        expect(in_shell(fixture, "", "Hi", "- </dev/null"), 0, "<Hi>", "");
}

static void empty_input_without_words_is_refused(void **state)
{
        static const char *const commands[] = { "ask", "complete" };
        struct daemon_fixture *fixture = *state;
        char said[64];

        for (size_t i = 0; i < 2; i++) {
                snprintf(said, sizeof(said), "%s needs a text, but stdin is empty", commands[i]);
                expect(RUN(fixture, NULL, SAMOVAR, commands[i]), 2, "", said);
        }
        expect(RUN(fixture, NULL, SAMOVAR, "ask", ""), 2, "", "the question is empty");
}

/* Starts the command with this stdin; its output goes to the files `out` and `err`. */
static pid_t start(const struct daemon_fixture *fixture, int stdin_fd, const char *more)
{
        const char *file = template_file(fixture);
        char path[128];
        pid_t pid = fork();

        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(stdin_fd, 0);
        snprintf(path, sizeof(path), "%s/out", fixture->directory);
        dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        snprintf(path, sizeof(path), "%s/err", fixture->directory);
        dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        execl(SAMOVAR, SAMOVAR, "template", file, "Hi", more, (char *)NULL);
        _exit(126);
}

static char *text_of(const struct daemon_fixture *fixture, const char *name)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
        return access(path, R_OK) ? strdup("") : file_text(path);
}

static void finish(const struct daemon_fixture *fixture, pid_t pid, const char *out)
{
        char *text;

        assert_int_equal(await_process(pid), 0);
        text = text_of(fixture, "out");
        assert_string_equal(text, out);
        free(text);
}

static void says_that_it_waits_for_a_pipe_that_stays_open(void **state)
{
        struct daemon_fixture *fixture = *state;
        int fds[2], said = 0;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = start(fixture, fds[0], NULL);
        close(fds[0]);
        while (!said) {
                char *err = text_of(fixture, "err");

                said = strstr(err, "waiting for the rest of the question on stdin; </dev/null") !=
                       NULL;
                free(err);
                sleep_ms(5);
        }
        assert_int_equal(write(fds[1], "late", 4), 4);
        close(fds[1]);
        finish(fixture, pid, "<Hi\n\nlate>");
}

/* The socket stays open, as that of a command that ssh runs. */
static void reads_a_socket_only_if_it_is_told_to(void **state)
{
        struct daemon_fixture *fixture = *state;
        int pair[2];
        pid_t pid;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(write(pair[1], "more", 4), 4);
        pid = start(fixture, pair[0], NULL);
        finish(fixture, pid, "<Hi>");
        pid = start(fixture, pair[0], "-");
        shutdown(pair[1], SHUT_WR);
        finish(fixture, pid, "<Hi\n\nmore>");
        close(pair[0]);
        close(pair[1]);
}

static void complete_and_tokenize_take_words_or_stdin_but_not_both(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result alone, both;

        START_DAEMON(fixture, "--threads", "1");
        alone = RUN(fixture, NULL, SAMOVAR, "complete", "Once", "--temp", "0");
        both = RUN(fixture, "more", SAMOVAR, "complete", "Once", "--temp", "0");
        assert_int_equal(alone.status, 0);
        assert_string_equal(both.out, alone.out);
        run_result_free(&alone);
        run_result_free(&both);
        expect(RUN(fixture, "more", SAMOVAR, "tokenize", "hi", "--json"), 0,
               "{\"tokens\":[104,105]}\n", "");
        /* An empty text is a text, and has no tokens. */
        expect(RUN(fixture, NULL, SAMOVAR, "tokenize", "--json"), 0, "{\"tokens\":[]}\n", "");
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(input_of_a_pipe_or_a_file_follows_the_question),
                DAEMON_TEST(empty_input_adds_nothing_to_the_question),
                DAEMON_TEST(empty_input_without_words_is_refused),
                DAEMON_TEST(says_that_it_waits_for_a_pipe_that_stays_open),
                DAEMON_TEST(reads_a_socket_only_if_it_is_told_to),
                DAEMON_TEST(complete_and_tokenize_take_words_or_stdin_but_not_both),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
