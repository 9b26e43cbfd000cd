/*
 * A daemon while its weights are still being read.  It is the real main() in a child, and its reads
 * go through a hook, with which this process holds them, slows them or lets them fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/engine/weights-reader.h"
#include "daemon/sys.h"
#include "tests/e2e/talk.h"

#define SLOW_US 100000

int samovard_main(int argc, char **argv);

/* Shared with the child.  `passes` of the reads that are held are let through. */
enum { READ_ON, READ_SLOWLY, READ_HELD, READ_FAILS };
static struct {
        _Atomic int mood, passes;
} * reads;
static char model[96];

static const char *const ways[] = { "cached", "uring", "plain" };
#define WAYS (sizeof(ways) / sizeof(*ways))

static const struct want want = { .prompt = "Once", .max_tokens = 20, .ignore_eos = true };

static bool is_held(void)
{
        if (atomic_load(&reads->mood) != READ_HELD)
                return false;
        if (atomic_fetch_sub(&reads->passes, 1) > 0)
                return false;
        atomic_fetch_add(&reads->passes, 1);
        return true;
}

/* Reads of headers, by the main thread, go through unchanged. */
static int on_call(const char *call, void *arg)
{
        bool is_read = !strcmp(call, "pread") || !strcmp(call, "io_uring_enter");

        (void)arg;
        if (gettid() == getpid())
                return 0;
        if (!strcmp(call, "pread") || !strcmp(call, "io_uring_read"))
                if (atomic_load(&reads->mood) == READ_FAILS)
                        return -EIO;
        if (is_read && atomic_load(&reads->mood) == READ_SLOWLY)
                usleep(SLOW_US);
        while (is_read && is_held())
                usleep(1000);
        return 0;
}

/* The signal handlers are cmocka's: with them a crash would continue as more tests. */
static void be_daemon(const struct house *house, const char *way)
{
        static const int crashes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
        char *argv[] = { "samovard", "--model",   model, "--socket", (char *)house->socket,
                         "--load",   (char *)way, NULL };
        int log = open(house->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
                signal(crashes[i], SIG_DFL);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(log);
        sys_set_fault(on_call, NULL);
        exit(samovard_main((int)(sizeof(argv) / sizeof(*argv)) - 1, argv));
}

/* Returns when the daemon listens. */
static void begin(struct house *house, const char *way, int in_mood)
{
        int fd, status;

        snprintf(model, sizeof(model), "%s/babble.gguf", house->directory);
        if (access(model, F_OK)) {
                struct ran ran = RUN(house, NULL, given("BABBLE_MAKER"), model, "--tied");

                assert_int_equal(ran.status, 0);
                ran_free(&ran);
        }
        atomic_store(&reads->mood, in_mood);
        atomic_store(&reads->passes, 0);
        unlink(house->log);
        fflush(NULL);
        house->pid = fork();
        assert_true(house->pid >= 0);
        if (!house->pid)
                be_daemon(house, way);
        while ((fd = connect_raw(house)) < 0) {
                if (waitpid(house->pid, &status, WNOHANG)) {
                        house->pid = 0;
                        fail_msg("samovard did not start: %x", (unsigned)status);
                }
                sleep_ms(2);
        }
        close(fd);
}

static void end(struct house *house)
{
        kill(house->pid, SIGTERM);
        assert_int_equal(house_wait(house), 0);
}

static bool has_way(const char *way)
{
        struct reader *reader;

        if (strcmp(way, "uring"))
                return true;
        if (reader_open_uring(1, &reader)) {
                printf("# io_uring is not to be had here\n");
                return false;
        }
        reader->close(reader);
        return true;
}

static void await_loaded(struct talk *talk)
{
        while (talk_status(talk, "loading.bytes") < talk_status(talk, "loading.total"))
                sleep_ms(2);
}

static void status_tells_how_far_it_is(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        uint64_t total, bytes, before = 0;

        begin(house, "plain", READ_HELD);
        talk = talk_greet(house);
        total = talk_status(talk, "loading.total");
        assert_true(total > 1000000);
        assert_int_equal(talk_status(talk, "loading.bytes"), 0);
        assert_true(talk_ask(talk, "op=s text=s", "tokenize", "at once")->ok);
        atomic_store(&reads->passes, 1);
        while ((bytes = talk_status(talk, "loading.bytes")) == 0)
                sleep_ms(2);
        assert_true(bytes < total);
        atomic_store(&reads->mood, READ_ON);
        for (; bytes < total; bytes = talk_status(talk, "loading.bytes")) {
                assert_true(bytes >= before);
                before = bytes;
        }
        assert_int_equal(bytes, total);
        talk_close(talk);
        assert_true(house_said(house, "loading bytes="));
        assert_true(house_said(house, "way=plain"));
        end(house);
}

static void who_asks_meanwhile_gets_the_same_tokens_as_later(void **state)
{
        struct house *house = *state;

        for (size_t i = 0; i < WAYS; i++) {
                struct talk *talk;
                uint32_t id;

                if (!has_way(ways[i]))
                        continue;
                begin(house, ways[i], READ_HELD);
                talk = talk_greet(house);
                id = talk_generate(talk, &want);
                assert_true(talk_reply(talk, id)->ok);
                talk_turn(talk, 100);
                assert_null(talk_stream(talk, id));
                atomic_store(&reads->mood, READ_ON);
                assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_LENGTH);
                assert_same_stream(talk_stream(talk, id), talk_whole(talk, &want));
                talk_close(talk);
                end(house);
        }
}

static void who_cancels_or_hangs_up_meanwhile_is_gone_at_once(void **state)
{
        struct house *house = *state;
        struct talk *talk, *other;
        uint32_t id;

        begin(house, "plain", READ_HELD);
        talk = talk_greet(house);
        other = talk_greet(house);
        id = talk_generate(other, &want);
        assert_true(talk_reply(other, id)->ok);
        id = talk_generate(talk, &want);
        assert_true(talk_reply(talk, id)->ok);
        assert_int_equal(talk_status(talk, "requests.alive"), 2);
        talk_say(talk, "op=s id=u stream=u", "cancel", 77, id);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_CANCELLED);
        talk_close(other);
        while (talk_status(talk, "requests.alive") || talk_status(talk, "connections.open") != 1)
                sleep_ms(2);
        assert_int_equal(talk_status(talk, "loading.bytes"), 0);
        atomic_store(&reads->mood, READ_ON);
        assert_int_equal(talk_whole(talk, &want)->end.reason, SMV_END_LENGTH);
        talk_close(talk);
        end(house);
}

/* The daemon waits for no more than the piece that is being read.  Before it ends, waiting requests
 * get their END. */
static void sigterm_meanwhile_ends_it_within_a_moment(void **state)
{
        struct house *house = *state;

        for (size_t i = 0; i < WAYS; i++) {
                struct talk *talk;
                uint32_t id;

                if (!has_way(ways[i]))
                        continue;
                begin(house, ways[i], READ_HELD);
                talk = talk_greet(house);
                id = talk_generate(talk, &want);
                assert_true(talk_reply(talk, id)->ok);
                kill(house->pid, SIGTERM);
                assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_ERROR);
                assert_int_equal(talk_stream(talk, id)->end.code, SMV_SHUTTING_DOWN);
                atomic_store(&reads->mood, READ_SLOWLY);
                talk_hangup(talk);
                talk_close(talk);
                assert_int_equal(house_wait(house), 0);
                assert_false(house_said(house, "loaded "));
        }
}

/* The daemon had said hello.  Waiting requests get their END, it prints the reason in one line, and
 * exits with 1. */
static void assert_gives_up(struct house *house, int next_mood, const char *words)
{
        struct talk *talk = talk_greet(house);
        uint32_t id = talk_generate(talk, &want);

        assert_true(talk_reply(talk, id)->ok);
        atomic_store(&reads->mood, next_mood);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_ERROR);
        assert_int_equal(talk_stream(talk, id)->end.code, SMV_INTERNAL);
        talk_close(talk);
        assert_int_equal(house_wait(house), 1);
        if (!house_said(house, words) || !house_said(house, "babble.gguf: ")) {
                char *log = file_text(house->log);

                fail_msg("not \"%s\" in: %s", words, log);
        }
}

static void weights_that_cannot_be_read_are_told_with_their_place(void **state)
{
        struct house *house = *state;

        for (size_t i = 0; i < WAYS; i++) {
                if (!has_way(ways[i]))
                        continue;
                begin(house, ways[i], READ_HELD);
                assert_gives_up(house, READ_FAILS, "weight': reading it at byte ");
                assert_true(house_said(house, "Input/output error"));
        }
}

static void file_that_is_cut_short_or_written_to_meanwhile_is_refused(void **state)
{
        struct house *house = *state;

        for (size_t i = 0; i < WAYS; i++) {
                int fd;

                if (!has_way(ways[i]))
                        continue;
                begin(house, ways[i], READ_HELD);
                assert_int_equal(truncate(model, 40000), 0);
                assert_gives_up(house, READ_ON, "became shorter while it was read");
                unlink(model);

                begin(house, ways[i], READ_HELD);
                fd = open(model, O_WRONLY);
                assert_int_equal(pwrite(fd, "x", 1, 400000), 1);
                close(fd);
                assert_gives_up(house, READ_ON, "was changed while it was read");
                unlink(model);
        }
}

/* Reads the terminal until its other side is closed, or until the words have come. */
static size_t read_terminal(int master, char *to, size_t bytes, const char *words)
{
        size_t at = 0;
        ssize_t n;

        to[0] = '\0';
        while (at < bytes - 1 && !(words && strstr(to, words)) &&
               (n = read(master, to + at, bytes - 1 - at)) > 0) {
                at += (size_t)n;
                to[at] = '\0';
        }
        return at;
}

static pid_t ask_at_terminal(const struct house *house, int *ret_master)
{
        int slave, out = open("/dev/null", O_WRONLY | O_CLOEXEC);
        pid_t pid;

        assert_int_equal(openpty(ret_master, &slave, NULL, NULL, NULL), 0);
        pid = fork();
        if (!pid) {
                dup2(out, 1);
                dup2(slave, 2);
                close(*ret_master);
                execl(given("SAMOVAR"), "samovar", "complete", "--socket", house->socket, "--max",
                      "3", "Once", (char *)NULL);
                _exit(126);
        }
        close(slave);
        close(out);
        return pid;
}

static void at_a_terminal_the_command_shows_how_far_it_is(void **state)
{
        static char seen[65536];
        struct house *house = *state;
        struct talk *talk;
        struct ran ran;
        size_t count;
        int master;
        pid_t pid;

        begin(house, "plain", READ_HELD);
        pid = ask_at_terminal(house, &master);
        count = read_terminal(master, seen, sizeof(seen), "% of 0.0 GB");
        atomic_store(&reads->mood, READ_SLOWLY);
        read_terminal(master, seen + count, sizeof(seen) - count, NULL);
        close(master);
        assert_int_equal(process_wait(pid), 0);
        assert_non_null(strstr(seen, "\rloading [#"));
        assert_non_null(strstr(seen, "% of 0.0 GB"));
        assert_string_equal(seen + strlen(seen) - 4, "\r\x1b[K");

        pid = ask_at_terminal(house, &master);
        assert_int_equal(read_terminal(master, seen, sizeof(seen), NULL), 0);
        close(master);
        assert_int_equal(process_wait(pid), 0);
        end(house);

        begin(house, "plain", READ_HELD);
        talk = talk_greet(house);
        atomic_store(&reads->mood, READ_SLOWLY);
        ran = RUN(house, NULL, given("SAMOVAR"), "complete", "--socket", house->socket, "--max",
                  "3", "Once");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.err, "");
        ran_free(&ran);
        await_loaded(talk);
        talk_close(talk);
        end(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(status_tells_how_far_it_is),
                STORY(who_asks_meanwhile_gets_the_same_tokens_as_later),
                STORY(who_cancels_or_hangs_up_meanwhile_is_gone_at_once),
                STORY(sigterm_meanwhile_ends_it_within_a_moment),
                STORY(weights_that_cannot_be_read_are_told_with_their_place),
                STORY(file_that_is_cut_short_or_written_to_meanwhile_is_refused),
                STORY(at_a_terminal_the_command_shows_how_far_it_is),
        };

        need((const char *const[]){ "SAMOVAR", "BABBLE_MAKER", NULL });
        reads = mmap(NULL, sizeof(*reads), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0);
        if (reads == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
