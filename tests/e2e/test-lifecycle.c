/* How a daemon starts, what it refuses to start with, and how it ends while clients are served. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/talk.h"

static const struct want longest = { .prompt = "Once", .max_tokens = 2000, .ignore_eos = true };

/* With a small ring this stream runs for as long as it is not read. */
static const struct want unread = {
        .prompt = "Once", .max_tokens = LONG_TOLD, .told = TOLD_MOST, .ignore_eos = true
};

/* A daemon that is to refuse: it ends with 1, and its output contains `words`. */
static void assert_refuses(struct house *house, const char *const *flags, const char *words,
                           const char *more)
{
        char *log;
        int status;

        truncate(house->log, 0);
        status = process_wait(house_spawn(house, flags, -1));
        log = file_text(house->log);
        if (status != 1 || !strstr(log, words) || !strstr(log, more))
                fail_msg("status %d; wanted \"%s\" and \"%s\" in: %s", status, words, more, log);
        free(log);
}

#define REFUSES(house, words, more, ...)                                                           \
        assert_refuses(house, (const char *const[]){ __VA_ARGS__, NULL }, words, more)

static void directory_and_socket_are_for_their_user_alone(void **state)
{
        struct house *house = *state;
        struct stat directory, sock;
        char path[96];

        umask(0);
        HOUSE(house, "--threads", "1");
        umask(022);
        snprintf(path, sizeof(path), "%s/in", house->directory);
        assert_int_equal(stat(path, &directory), 0);
        assert_int_equal(stat(house->socket, &sock), 0);
        assert_int_equal(directory.st_mode & 07777, 0700);
        assert_int_equal(sock.st_mode & 07777, 0600);
        assert_true(S_ISSOCK(sock.st_mode));
        house_stop(house);
}

static void socket_is_found_in_the_runtime_directory(void **state)
{
        struct house *house = *state;
        pid_t pid;
        int fd;

        setenv("XDG_RUNTIME_DIR", house->directory, 1);
        pid = house_spawn(house, (const char *const[]){ "--model", given("BABBLE"), NULL }, -1);
        unsetenv("XDG_RUNTIME_DIR");
        house->pid = pid;
        snprintf(house->socket, sizeof(house->socket), "%s/samovar/sock", house->directory);
        while ((fd = connect_raw(house)) < 0 && !waitpid(pid, NULL, WNOHANG))
                sleep_ms(5);
        assert_true(fd >= 0);
        close(fd);
        kill(pid, SIGTERM);
        assert_int_equal(house_wait(house), 0);
}

static void stale_socket_is_reclaimed(void **state)
{
        struct house *house = *state;

        for (int i = 0; i < 3; i++) {
                HOUSE(house, "--threads", "1");
                kill(house->pid, SIGKILL);
                assert_int_equal(house_wait(house), -SIGKILL);
                assert_int_equal(access(house->socket, F_OK), 0);
        }
        HOUSE(house, "--threads", "1");
        house_stop(house);
}

static void second_daemon_says_who_is_there_and_disturbs_nobody(void **state)
{
        struct house *house = *state;
        struct stream *alone, *stream;
        struct talk *talk;
        char pid[16];
        uint32_t id;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        alone = stream_copy(talk_whole(talk, &longest));
        id = talk_generate(talk, &longest);
        snprintf(pid, sizeof(pid), "%d", (int)house->pid);
        for (int i = 0; i < 3; i++)
                REFUSES(house, house->socket, pid, "--model", given("BABBLE"), "--socket",
                        house->socket);
        stream = talk_end(talk, id);
        assert_same_stream(stream, alone);
        stream_free(alone);
        talk_close(talk);
        house_stop(house);
}

/* A file at the socket's path that is not a socket stays as it is. */
static void file_in_the_way_is_not_touched(void **state)
{
        struct house *house = *state;
        char path[96], *text;
        FILE *file;

        snprintf(path, sizeof(path), "%s/in", house->directory);
        mkdir(path, 0700);
        file = fopen(house->socket, "w");
        fputs("mine", file);
        fclose(file);
        REFUSES(house, "samovard:", house->socket, "--model", given("BABBLE"), "--socket",
                house->socket);
        text = file_text(house->socket);
        assert_string_equal(text, "mine");
        free(text);
}

static void check_prints_the_plan_and_ends(void **state)
{
        struct house *house = *state;
        struct ran ran = RUN(house, NULL, given("SAMOVARD"), "--model", given("BABBLE"), "--check",
                             "--ctx", "1024", "--kv-bytes", "16M", "--socket", house->socket);

        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "babble"));
        assert_non_null(strstr(ran.out, "context 1024"));
        assert_non_null(strstr(ran.out, "16.0 MiB"));
        assert_non_null(strstr(ran.out, "1024 blocks"));
        assert_int_equal(access(house->socket, F_OK), -1);
        ran_free(&ran);
        assert_no_process_left();
}

static void flag_that_is_wrong_is_named(void **state)
{
        struct house *house = *state;
        const char *model = given("BABBLE");
        char large[1024];

        snprintf(large, sizeof(large), "%s/tests/golden/tokenizers/bytes.model", given("SOURCES"));
        REFUSES(house, "/no/x.json", "No such file", "--model", model, "--tokenizer", "/no/x.json");
        REFUSES(house, "bytes.model", "tokens for a model of", "--model", model, "--tokenizer",
                large);
        REFUSES(house, "--no-such-thing", "samovard:", "--model", model, "--no-such-thing", "1");
        REFUSES(house, "--max-seqs", "1024", "--model", model, "--max-seqs", "0");
        REFUSES(house, "--max-seqs", "1024", "--model", model, "--max-seqs", "1025");
        REFUSES(house, "--kv", "f32", "--model", model, "--kv", "f64");
        REFUSES(house, "--kv-bytes", "12Q", "--model", model, "--kv-bytes=12Q");
        REFUSES(house, "--threads", "no value", "--model", model, "--threads");
        REFUSES(house, "--max-seqs", "meant", "--model", model, "--max-seq", "4");
        REFUSES(house, "--ctx", "2048", "--model", model, "--ctx", "4096");
        REFUSES(house, "step_tokens", "max_seqs", "--model", model, "--step-tokens", "8");
        REFUSES(house, "ring_bytes", "power of two", "--model", model, "--ring-bytes", "100000");
        REFUSES(house, "/no/such/file", "samovard:", "--config", "/no/such/file");
        REFUSES(house, "--isa", "avx", "--model", model, "--isa", "avx1");
        REFUSES(house, "--kv-bytes", "block", "--model", model, "--kv-bytes", "1K");
        assert_no_process_left();
}

static void config_file_is_read_and_flags_win(void **state)
{
        struct house *house = *state;
        char path[96], model[300];
        FILE *file;

        snprintf(path, sizeof(path), "%s/conf", house->directory);
        file = fopen(path, "w");
        fprintf(file, "# a house\nmax_seqs = 5\nctx = 512\nthreads=1\nmodel = /no/such/model\n");
        fclose(file);
        snprintf(model, sizeof(model), "%s=urn", given("BABBLE"));
        HOUSE(house, "--config", path, "--ctx", "256", "--model", model);
        assert_int_equal(house_status(house, "limits.max_seqs"), 5);
        assert_int_equal(house_status(house, "model.context"), 256);
        house_stop(house);

        file = fopen(path, "a");
        fprintf(file, "max_seks = 3\n");
        fclose(file);
        REFUSES(house, "conf:6", "max_seqs", "--config", path, "--model", model);
}

/* A file cut short, empty, or of another kind: one line that names the file; never a crash. */
static void model_that_is_none_is_refused_by_name(void **state)
{
        static const long cuts[] = { 0, 3, 4, 24, 100, 700, 5000, 1000000 };
        struct house *house = *state;
        char *whole = file_text(given("BABBLE")), path[96];
        FILE *file;

        snprintf(path, sizeof(path), "%s/bad.gguf", house->directory);
        REFUSES(house, "bad.gguf", "samovard:", "--model", path);
        for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
                file = fopen(path, "w");
                fwrite(whole, 1, (size_t)cuts[i], file);
                fclose(file);
                REFUSES(house, "bad.gguf", "samovard:", "--model", path);
        }
        file = fopen(path, "w");
        for (int i = 0; i < 1000; i++)
                fputs("this is no model at all\n", file);
        fclose(file);
        REFUSES(house, "bad.gguf", "samovard:", "--model", path);
        REFUSES(house, house->directory, "config.json is missing", "--model", house->directory);
        snprintf(path, sizeof(path), "%s/config.json", house->directory);
        file = fopen(path, "w");
        fputs("{}", file);
        fclose(file);
        REFUSES(house, house->directory, "neither model.safetensors nor", "--model",
                house->directory);
        snprintf(path, sizeof(path), "%s/bad.safetensors", house->directory);
        file = fopen(path, "w");
        fwrite(whole, 1, 1000000, file);
        fclose(file);
        REFUSES(house, path, "bad.safetensors: a header of", "--model", path);
        free(whole);
        assert_no_process_left();
}

/* "v1.5" is a version and no suffix. */
static void a_model_is_called_what_its_file_is(void **state)
{
        struct house *house = *state;
        char path[96];

        snprintf(path, sizeof(path), "%s/babble-v1.5", house->directory);
        assert_int_equal(symlink(given("BABBLE"), path), 0);
        HOUSE(house, "--threads", "1", "--model", path);
        assert_true(house_said(house, "model babble-v1.5, "));
        house_stop(house);
        HOUSE(house, "--threads", "1", "--model", given("BABBLE"));
        assert_true(house_said(house, "model babble, "));
        house_stop(house);
}

static void sigterm_lets_what_runs_finish(void **state)
{
        struct house *house = *state;
        struct talk *talk, *idle;
        uint32_t id;

        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K");
        idle = talk_greet(house);
        talk = talk_greet(house);
        id = talk_generate(talk, &unread);
        assert_true(talk_reply(talk, id)->ok);
        kill(house->pid, SIGTERM);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_LENGTH);
        talk_hangup(talk);
        talk_hangup(idle);
        talk_close(talk);
        talk_close(idle);
        assert_int_equal(house_wait(house), 0);
        assert_int_equal(access(house->socket, F_OK), -1);
}

/* The daemon drains as long as one client does not read; another client asks meanwhile. */
static void while_it_drains_nothing_new_is_begun(void **state)
{
        struct house *house = *state;
        struct talk *talk, *other;
        uint32_t id;

        QUICK_HOUSE(house, "--threads", "1", "--drain-ms", "120000", "--ring-bytes", "64K");
        talk = talk_greet(house);
        other = talk_greet(house);
        id = talk_generate(talk, &unread);
        assert_true(talk_reply(talk, id)->ok);
        kill(house->pid, SIGTERM);
        while (!house_said(house, "draining"))
                sleep_ms(1);
        assert_int_equal(talk_reply(other, talk_generate(other, &unread))->code, SMV_SHUTTING_DOWN);
        assert_int_equal(connect_raw(house), -1);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_LENGTH);
        talk_close(talk);
        talk_close(other);
        assert_int_equal(house_wait(house), 0);
}

/* With no time to drain, and with a second signal, each stream still has its END, though none of
 * the streams ends by itself. */
static void stop_in_haste_ends_every_stream_with_its_reason(void **state)
{
        enum { STREAMS = 14 };
        const struct want endless = { .prompt = "Once", .max_tokens = ENDLESS, .ignore_eos = true };
        struct house *house = *state;

        for (int second = 0; second < 2; second++) {
                struct talk *talk;
                uint32_t ids[STREAMS];

                truncate(house->log, 0);
                ENDLESS_HOUSE(house, "--threads", "1", "--max-seqs", "4", "--drain-ms",
                              second ? "3600000" : "0");
                talk = talk_greet(house);
                for (size_t i = 0; i < STREAMS; i++)
                        ids[i] = talk_generate(talk, &endless);
                for (size_t i = 0; i < STREAMS; i++)
                        assert_true(talk_reply(talk, ids[i])->ok);
                kill(house->pid, SIGTERM);
                while (second && !house_said(house, "draining"))
                        sleep_ms(1);
                if (second)
                        kill(house->pid, SIGTERM);
                for (size_t i = 0; i < STREAMS; i++) {
                        const struct stream *stream = talk_end(talk, ids[i]);

                        assert_int_equal(stream->end.reason, SMV_END_ERROR);
                        assert_int_equal(stream->end.code, SMV_SHUTTING_DOWN);
                }
                talk_hangup(talk);
                talk_close(talk);
                assert_int_equal(house_wait(house), 0);
        }
}

/* Every request was answered, and every accepted one has its END; returns how many. */
static uint32_t judge(struct talk *talk, uint32_t *refused)
{
        uint32_t accepted = 0;

        talk_hangup(talk);
        for (size_t i = 0; i < talk->reply_count; i++) {
                const struct reply *reply = talk->replies[i];

                accepted += reply->ok && !reply->taken; /* hello's is taken */
                if (!reply->ok)
                        assert_int_equal(reply->code, SMV_SHUTTING_DOWN);
                *refused += !reply->ok;
        }
        assert_int_equal(talk->stream_count, accepted);
        for (size_t i = 0; i < talk->stream_count; i++) {
                const struct stream *stream = talk->streams[i];

                assert_true(stream->ended);
                if (stream->end.reason == SMV_END_ERROR)
                        assert_int_equal(stream->end.code, SMV_SHUTTING_DOWN);
                else
                        assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        }
        return accepted;
}

/* Some clients have asked before the signal, some ask after it: when the signal comes is chance. */
static void ask_and_stop(struct house *house, struct talk **talks)
{
        struct want want = { .ignore_eos = true, .prompt = "Once" };
        uint32_t asked = 10 + random_below(20);

        for (uint32_t n = 0; n < asked; n++) {
                want.max_tokens = 1 + random_below(1900);
                talk_generate(talks[n % 3], &want);
                if (n == asked / 2) {
                        sleep_ms(random_below(60));
                        kill(house->pid, SIGTERM);
                        sleep_ms(random_below(3));
                }
        }
}

static bool have_hung_up(struct talk *const *talks)
{
        return talks[0]->hung_up && talks[1]->hung_up && talks[2]->hung_up;
}

static void sigterm_under_load_leaves_nobody_without_an_end(void **state)
{
        uint32_t times = scaled(10, 200), ended = 0, refused = 0;
        struct house *house = *state;
        uint64_t end;

        for (uint32_t i = 0; i < times; i++) {
                struct talk *talks[3];

                QUICK_HOUSE(house, "--max-seqs", "6", "--drain-ms",
                            random_below(2) ? "30000" : "20", "--depth",
                            random_below(2) ? "1" : "2");
                for (size_t t = 0; t < 3; t++)
                        talks[t] = talk_greet(house);
                ask_and_stop(house, talks);
                /* the daemon waits for clients that have not read */
                for (end = now_ms() + PATIENCE_MS; !have_hung_up(talks); talks_turn(talks, 3, 100))
                        assert_true(now_ms() < end);
                for (size_t t = 0; t < 3; t++) {
                        ended += judge(talks[t], &refused);
                        talk_close(talks[t]);
                }
                assert_int_equal(house_wait(house), 0);
        }
        printf("# %u SIGTERMs under load: %u streams ended, %u were refused\n", times, ended,
               refused);
        assert_no_process_left();
}

static void daemon_on_a_given_socket_ends_with_it(void **state)
{
        struct house *house = *state;
        int pair[2];

        for (int busy = 0; busy < 2; busy++) {
                struct talk *talk;

                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
                house->pid = house_spawn(
                        house,
                        (const char *const[]){ "--model", given("BABBLE"), "--fd", "3", NULL },
                        pair[1]);
                close(pair[1]);
                talk = talk_take(pair[0]);
                assert_true(talk_hello(talk, talk_transport())->ok);
                talk_generate(talk, &longest);
                if (!busy)
                        talk_end(talk, talk->last_id);
                talk_close(talk);
                assert_int_equal(house_wait(house), 0);
        }
        assert_no_process_left();
}

/* As after `nohup samovard &` in a terminal that is closed. */
static void closed_terminal_leaves_it_serving(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        uint32_t id;

        signal(SIGHUP, SIG_IGN);
        QUICK_HOUSE(house, "--threads", "1", "--ring-bytes", "64K");
        signal(SIGHUP, SIG_DFL);
        talk = talk_greet(house);
        id = talk_generate(talk, &unread);
        assert_true(talk_reply(talk, id)->ok);
        kill(house->pid, SIGHUP);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_LENGTH);
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(directory_and_socket_are_for_their_user_alone),
                STORY(socket_is_found_in_the_runtime_directory),
                STORY(stale_socket_is_reclaimed),
                STORY(second_daemon_says_who_is_there_and_disturbs_nobody),
                STORY(file_in_the_way_is_not_touched),
                STORY(check_prints_the_plan_and_ends),
                STORY(flag_that_is_wrong_is_named),
                STORY(config_file_is_read_and_flags_win),
                STORY(model_that_is_none_is_refused_by_name),
                STORY(a_model_is_called_what_its_file_is),
                STORY(sigterm_lets_what_runs_finish),
                STORY(while_it_drains_nothing_new_is_begun),
                STORY(stop_in_haste_ends_every_stream_with_its_reason),
                STORY(sigterm_under_load_leaves_nobody_without_an_end),
                STORY(daemon_on_a_given_socket_ends_with_it),
                STORY(closed_terminal_leaves_it_serving),
        };
        /* How a daemon starts does not depend on the transport of its clients, so only these run
         * with a ring. */
        const struct CMUnitTest with_a_ring[] = {
                STORY(second_daemon_says_who_is_there_and_disturbs_nobody),
                STORY(sigterm_lets_what_runs_finish),
                STORY(while_it_drains_nothing_new_is_begun),
                STORY(stop_in_haste_ends_every_stream_with_its_reason),
                STORY(sigterm_under_load_leaves_nobody_without_an_end),
                STORY(daemon_on_a_given_socket_ends_with_it),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        random_begin();
        if (talk_transport() != TALK_SOCKET)
                return cmocka_run_group_tests(with_a_ring, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
