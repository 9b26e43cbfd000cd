/*
 * samovar chat, as far as it needs no screen: a question by a pipe, and a chat at a pseudo-terminal
 * whose output is searched for words.  contrib/terminal looks at its screen.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "tests/e2e/chat-model.h"

#define SAMOVAR  env_path("SAMOVAR")
#define PROMPT   ">>> "
#define SEEN_MAX (1u << 20)

/* A chat at a terminal.  `at` is behind the words that were found last. */
struct chat {
        pid_t pid;
        int master;
        char seen[SEEN_MAX];
        size_t count, at;
};

/* A template whose answers end only at the model's own end token. */
#define TEMPLATE                                                                                   \
        "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"                \
        "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"

static void start_endless(struct daemon_fixture *fixture)
{
        char path[96];
        struct run_result ran;

        snprintf(path, sizeof(path), "%s/endless.gguf", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), path, "--context", CONTEXT_LONG,
                  "--layers", "1", "--width", "32", "--heads", "2", "--kv-heads", "1", "--head-dim",
                  "8", "--ffn", "32", "--template", TEMPLATE);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        START_DAEMON(fixture, "--model", path, "--kv-bytes", "512M", "--threads", "1");
}

static void start_shipped(struct daemon_fixture *fixture)
{
        char model[256];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--threads", "1", "--model", model);
}

/* Reads what the chat writes until it has the words, behind those that were found before. */
static void await_words(struct chat *chat, const char *words)
{
        struct pollfd readable = { .fd = chat->master, .events = POLLIN };
        const char *found;

        while (!(found = strstr(chat->seen + chat->at, words))) {
                ssize_t n = -1;

                if (poll(&readable, 1, TIMEOUT_MS) > 0)
                        n = read(chat->master, chat->seen + chat->count,
                                 SEEN_MAX - 1 - chat->count);
                if (n <= 0)
                        fail_msg("'%s' does not come after: %s", words, chat->seen + chat->at);
                chat->count += (size_t)n;
                chat->seen[chat->count] = '\0';
        }
        chat->at = (size_t)(found - chat->seen) + strlen(words);
}

static void type(struct chat *chat, const char *text)
{
        assert_int_equal(write(chat->master, text, strlen(text)), strlen(text));
}

/* Starts a chat with these flags, NULL-ended, and waits for its prompt. */
static struct chat *begin_chat(const struct daemon_fixture *fixture, const char *const *flags)
{
        const char *argv[24] = { "samovar", "chat", "--socket", fixture->socket };
        struct winsize size = { .ws_row = 24, .ws_col = 80 };
        struct chat *chat = calloc(1, sizeof(*chat));
        size_t n = 4;

        assert_non_null(chat);
        while (*flags)
                argv[n++] = *flags++;
        chat->pid = forkpty(&chat->master, NULL, NULL, &size);
        assert_true(chat->pid >= 0);
        if (!chat->pid) {
                setenv("TERM", "xterm", 1);
                setenv("XDG_STATE_HOME", fixture->directory, 1);
                unsetenv("SAMOVAR_SOCKET");
                execv(SAMOVAR, (char *const *)(uintptr_t)argv);
                _exit(126);
        }
        await_words(chat, PROMPT);
        return chat;
}
#define BEGIN_CHAT(fixture, ...) begin_chat(fixture, (const char *const[]){ __VA_ARGS__, NULL })

/* Leaves by ^D at the prompt: the status is 0. */
static void end_chat(struct chat *chat)
{
        char rest[256];

        type(chat, "\x04");
        while (read(chat->master, rest, sizeof(rest)) > 0)
                continue;
        assert_int_equal(await_process(chat->pid), 0);
        close(chat->master);
        free(chat);
}

static void history_path(const struct daemon_fixture *fixture, char path[128])
{
        snprintf(path, 128, "%s/samovar/chat-history", fixture->directory);
}

static void remove_history(const struct daemon_fixture *fixture)
{
        char path[128];

        history_path(fixture, path);
        unlink(path);
        *strrchr(path, '/') = '\0';
        rmdir(path);
}

static void assert_mode(const char *path, mode_t mode)
{
        struct stat file;

        assert_int_equal(stat(path, &file), 0);
        assert_int_equal(file.st_mode & 07777, mode);
}

/* ---- without a terminal ---- */

static void all_of_stdin_is_one_question(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result asked, piped;

        start_shipped(fixture);
        asked = RUN(fixture, NULL, SAMOVAR, "ask", "--temp", "0", "What is 3 + 4?");
        piped = RUN(fixture, "What is 3 + 4?", SAMOVAR, "chat", "--temp", "0");
        assert_int_equal(piped.status, 0);
        assert_string_equal(piped.out, asked.out);
        assert_string_equal(piped.err, "");
        run_result_free(&piped);

        /* Lines that look like commands are part of it, and words come before it. */
        piped = RUN(fixture, "/bye\n", SAMOVAR, "chat", "--temp", "0", "What is 3 + 4?");
        assert_int_equal(piped.status, 0);
        assert_true(piped.out_bytes > 0);
        run_result_free(&piped);
        run_result_free(&asked);
        fixture_stop(fixture);
}

static void a_piped_question_may_follow_a_conversation(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result whole, piped;
        char file[128], more[128];

        start_shipped(fixture);
        write_chat_file(fixture, "talk.json",
                        "[{\"role\":\"user\",\"content\":\"Hello\"},"
                        "{\"role\":\"assistant\",\"content\":\"Hello!\"}]",
                        file);
        write_chat_file(fixture, "whole.json",
                        "[{\"role\":\"user\",\"content\":\"Hello\"},"
                        "{\"role\":\"assistant\",\"content\":\"Hello!\"},"
                        "{\"role\":\"user\",\"content\":\"What is 3 + 4?\"}]",
                        more);
        whole = RUN(fixture, NULL, SAMOVAR, "ask", "--temp", "0", "--messages", more);
        piped = RUN(fixture, "What is 3 + 4?", SAMOVAR, "chat", "--temp", "0", "--messages", file);
        assert_int_equal(piped.status, 0);
        assert_string_equal(piped.out, whole.out);
        run_result_free(&whole);
        run_result_free(&piped);
        fixture_stop(fixture);
}

static void failures_of_a_piped_question_have_their_statuses(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        start_shipped(fixture);
        ran = RUN(fixture, "Hello", SAMOVAR, "chat", "--temp", "high");
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
        ran = RUN(fixture, "", SAMOVAR, "chat");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "chat needs a text, but stdin is empty"));
        run_result_free(&ran);
        ran = RUN(fixture, "Hello", SAMOVAR, "chat", "--model", "nothing");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "no_model"));
        run_result_free(&ran);
        ran = RUN(fixture, "Hello", SAMOVAR, "chat", "--socket", "/nowhere/sock");
        assert_int_equal(ran.status, 3);
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* ---- at a terminal ---- */

/* Asks a second question, so that the handle's turn is appended; ps shows how many handles are. */
static void a_chat_holds_one_handle_for_each_branch(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct chat *chat;
        struct raw_client *client;

        start_shipped(fixture);
        client = raw_client_greet(fixture);
        chat = BEGIN_CHAT(fixture, "--temp", "0", "--no-history");
        type(chat, "What is 3 + 4?\r");
        await_words(chat, "3 + 4 = 7");
        await_words(chat, PROMPT);
        type(chat, "What is 2 + 2?\r");
        await_words(chat, "2 + 2 = 4");
        await_words(chat, PROMPT);
        assert_int_equal(
                reply_uint(raw_client_call(client, "op=s", "status"), "status.handles.open"), 1);
        type(chat, "/fork side\r");
        await_words(chat, PROMPT);
        assert_int_equal(
                reply_uint(raw_client_call(client, "op=s", "status"), "status.handles.open"), 2);
        type(chat, "/branches drop main\r");
        await_words(chat, PROMPT);
        assert_int_equal(
                reply_uint(raw_client_call(client, "op=s", "status"), "status.handles.open"), 1);
        raw_client_close(client);
        end_chat(chat);
        fixture_stop(fixture);
}

/* The second turn reads its own tokens only: all before them are in the pool, as status counts. */
static void a_turn_computes_only_its_own_tokens(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct chat *chat;
        unsigned tokens = 0, cached = 0, read = 0;

        start_shipped(fixture);
        chat = BEGIN_CHAT(fixture, "--temp", "0", "--no-history");
        type(chat, "What is 3 + 4?\r");
        await_words(chat, "3 + 4 = 7");
        await_words(chat, PROMPT);
        type(chat, "What is 2 + 2?\r");
        await_words(chat, "2 + 2 = 4");
        await_words(chat, PROMPT);
        type(chat, "/stats\r");
        await_words(chat, "prompt ");
        await_words(chat, "/s)");
        assert_int_equal(sscanf(strstr(chat->seen, "prompt       ") + 13,
                                "%u tokens: cached %u, read %u", &tokens, &cached, &read),
                         3);
        assert_int_equal(tokens, cached + read);
        assert_true(cached > read);
        await_words(chat, "opened 1 time, 1 turn appended");
        end_chat(chat);
        fixture_stop(fixture);
}

static void an_interrupt_stops_the_answer_and_not_the_chat(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct chat *chat;

        start_endless(fixture);
        chat = BEGIN_CHAT(fixture, "--temp", "0", "--no-history", "--ignore-eos", "--max-tokens",
                          "1000000");
        for (int i = 0; i < 3; i++) {
                type(chat, "Go\r");
                await_words(chat, "Go\r\n");
                await_words(chat, "e");
                type(chat, "\x03");
                await_words(chat, PROMPT);
        }
        type(chat, "never sent\x03");
        await_words(chat, PROMPT);
        type(chat, "/stats\r");
        await_words(chat, "opened 1 time, 2 turns appended");
        await_words(chat, PROMPT);
        end_chat(chat);
        fixture_stop(fixture);
}

static void the_history_is_for_its_owner_only(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct chat *chat;
        char path[128], *text;

        start_shipped(fixture);
        history_path(fixture, path);
        end_chat(BEGIN_CHAT(fixture, "--no-history"));
        assert_int_equal(access(path, F_OK), -1);

        chat = BEGIN_CHAT(fixture, "--temp", "0");
        type(chat, "What is 3 + 4?\r");
        await_words(chat, "3 + 4 = 7");
        await_words(chat, PROMPT);
        type(chat, "/show\r");
        await_words(chat, PROMPT);
        end_chat(chat);
        assert_mode(path, 0600);
        text = file_text(path);
        assert_string_equal(text, "What is 3 + 4?\n/show\n");
        free(text);

        /* A file that others may read becomes private; a link is not followed. */
        assert_int_equal(chmod(path, 0644), 0);
        end_chat(BEGIN_CHAT(fixture, "--temp", "0"));
        assert_mode(path, 0600);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(symlink("/dev/null", path), 0);
        chat = BEGIN_CHAT(fixture, "--temp", "0");
        assert_non_null(strstr(chat->seen, "No history: "));
        end_chat(chat);
        remove_history(fixture);
        fixture_stop(fixture);
}

static void a_chat_connects_again_when_the_daemon_has_died(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct chat *chat;

        start_shipped(fixture);
        chat = BEGIN_CHAT(fixture, "--temp", "0", "--no-history");
        type(chat, "What is 3 + 4?\r");
        await_words(chat, "3 + 4 = 7");
        await_words(chat, PROMPT);
        assert_int_equal(kill(fixture->pid, SIGKILL), 0);
        assert_int_equal(fixture_await_exit(fixture), -SIGKILL);

        type(chat, "What is 2 + 2?\r");
        await_words(chat, "There is no daemon now");
        await_words(chat, "/retry asks it again");
        await_words(chat, PROMPT);
        start_shipped(fixture);
        type(chat, "/retry\r");
        await_words(chat, "Connected again");
        await_words(chat, "2 + 2 = 4");
        await_words(chat, PROMPT);
        type(chat, "/stats\r");
        await_words(chat, "opened 2 times, 0 turns appended; 2 connections");
        end_chat(chat);
        fixture_stop(fixture);
}

static void a_refused_setting_leaves_the_chat(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct chat *chat;

        start_shipped(fixture);
        chat = BEGIN_CHAT(fixture, "--no-history");
        type(chat, "/set temp 0.5\r");
        await_words(chat, "temp is 0.5.");
        type(chat, "/set temp 500\r");
        await_words(chat, "--temp is 500; it may be 0 to 100");
        type(chat, "/show\r");
        await_words(chat, "temp = 0.5");
        type(chat, "/set nothing 1\r");
        await_words(chat, "there is no setting nothing");
        type(chat, "/set temperature 0\r");
        await_words(chat, "temperature is 0.");
        type(chat, "/show\r");
        await_words(chat, "temp = 0");
        type(chat, "/set temp\r");
        await_words(chat, "temp is 0");
        type(chat, "/set schema /nowhere/x\r");
        await_words(chat, "schema is not changed: /nowhere/x: No such file");
        type(chat, "/set temp default\r");
        await_words(chat, "temp is as by default");
        type(chat, "/load /nowhere/file\r");
        await_words(chat, "/nowhere/file: No such file");
        await_words(chat, PROMPT);
        end_chat(chat);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(all_of_stdin_is_one_question),
                DAEMON_TEST(a_piped_question_may_follow_a_conversation),
                DAEMON_TEST(failures_of_a_piped_question_have_their_statuses),
                DAEMON_TEST(a_chat_holds_one_handle_for_each_branch),
                DAEMON_TEST(a_turn_computes_only_its_own_tokens),
                DAEMON_TEST(an_interrupt_stops_the_answer_and_not_the_chat),
                DAEMON_TEST(the_history_is_for_its_owner_only),
                DAEMON_TEST(a_chat_connects_again_when_the_daemon_has_died),
                DAEMON_TEST(a_refused_setting_leaves_the_chat),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
