#include "tests/e2e/other-user.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"

#define SKIPPED 77

/* ---- in the other process: no cmocka, because its fail() would continue the parent's test ---- */

static const char *become(uint32_t uid, uint32_t group)
{
        gid_t groups[] = { group };

        if (setgroups(group ? 1 : 0, groups))
                return "setgroups";
        if (setresgid(uid, uid, uid))
                return "setresgid";
        if (setresuid(uid, uid, uid))
                return "setresuid";
        /* The process has changed its user, and so the kernel has reset both of these. */
        prctl(PR_SET_DUMPABLE, 1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return NULL;
}

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool put(int fd, const void *bytes, size_t count)
{
        return write(fd, bytes, count) == (ssize_t)count; /* a pipe takes it as a whole */
}

static bool get(int fd, void *bytes, size_t count)
{
        char *to = bytes;

        for (ssize_t n; count; to += n, count -= (size_t)n) {
                n = read(fd, to, count);
                if (n < 0 && errno == EINTR)
                        n = 0;
                else if (n <= 0)
                        return false;
        }
        return true;
}

static void take(struct answer *answer, const struct smv_event *event, uint64_t start)
{
        if (!answer->first_ns)
                answer->first_ns = now_ns() - start;
        for (size_t i = 0; i < event->token_count && answer->output_tokens < OTHER_USER_OUTPUT_MAX;
             i++)
                answer->tokens[answer->output_tokens++] = event->tokens[i];
}

/* Begins the stream that the question asks for. */
static int begin(struct smv_client *client, const struct question *question)
{
        struct smv_generate options = { SMV_SIZE(smv_generate),
                                        .tokens = question->tokens,
                                        .token_count = question->count,
                                        .max_tokens = question->max_tokens,
                                        .temperature = question->seed ? 1 : 0,
                                        .seed = question->seed,
                                        .set = SMV_SET_TEMPERATURE |
                                               (question->seed ? SMV_SET_SEED : 0),
                                        .ignore_eos = 1 };
        static uint64_t handle;
        uint32_t stream;
        int r;

        if (question->action == USER_GENERATES)
                return smv_generate(client, &options, &stream);
        if (question->action == USER_REVOKES)
                return smv_handle_revoke(client, handle);
        r = smv_handle_open(client, &options, &handle, NULL);
        return r ? r
                 : smv_handle_publish(client, handle, 0, question->group ? &question->group : NULL,
                                      &stream);
}

/* Requests that are alive when it returns go on, and are counted the next time. */
static struct answer flood(struct smv_client *client, const struct question *question, int in)
{
        struct smv_generate options = {
                SMV_SIZE(smv_generate),         .tokens = question->tokens,
                .token_count = question->count, .max_tokens = question->max_tokens,
                .priority = question->priority, .ignore_eos = 1
        };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct answer answer = { .reason = SMV_END_LENGTH };
        struct pollfd next = { .fd = in, .events = POLLIN };
        static uint32_t alive;
        uint32_t stream;

        while (!answer.result && poll(&next, 1, 0) <= 0) {
                int r = 0;

                for (; !r && alive < OTHER_USER_FLOOD; alive += !r)
                        r = smv_generate(client, &options, &stream);
                if (!r)
                        r = smv_next(client, &event, 10);
                if (r < 0)
                        answer.result = r;
                else if (r && event.kind == SMV_EVENT_TOKENS)
                        answer.output_tokens += (uint32_t)event.token_count;
                else if (r && event.kind == SMV_EVENT_END)
                        alive--;
        }
        return answer;
}

static struct answer ask(struct smv_client *client, const struct question *question, int in)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct answer answer = { .reason = SMV_END_LENGTH };
        uint64_t start = now_ns();

        if (question->action == USER_READS_STATUS) {
                const char *json;

                answer.result = smv_status(client, &json);
                if (!answer.result)
                        snprintf(answer.status, sizeof(answer.status), "%s", json);
                return answer;
        }
        if (question->action == USER_FLOODS)
                return flood(client, question, in);
        answer.result = begin(client, question);
        if (question->action == USER_REVOKES)
                return answer;
        while (!answer.result && event.kind != SMV_EVENT_END) {
                int r = smv_next(client, &event, -1);

                if (r <= 0)
                        answer.result = r ? r : -ETIMEDOUT;
                else if (event.kind == SMV_EVENT_TOKENS)
                        take(&answer, &event, start);
        }
        answer.all_ns = now_ns() - start;
        answer.decode_ns = event.decode_ns;
        answer.drafts_right = event.drafts_right;
        answer.reason = event.reason;
        answer.prompt_tokens = event.prompt_tokens;
        answer.cached_tokens = event.cached_tokens;
        answer.prefill_ns = event.prefill_ns;
        return answer;
}

static void live(const struct daemon_fixture *fixture, int in, int out)
{
        static struct question question;
        enum raw_client_transport transport = raw_client_transport();
        struct other_user met = { 0 };
        struct smv_connect at = {
                SMV_SIZE(smv_connect),
                .socket = fixture->socket,
                .transport =
                        transport == RAW_CLIENT_SOCKET ? SMV_TRANSPORT_SOCKET : SMV_TRANSPORT_RING,
                .doorbell = transport == RAW_CLIENT_FUTEX ? SMV_DOORBELL_FUTEX : SMV_DOORBELL_KICK,
                .message = met.message,
                .message_bytes = sizeof(met.message),
        };
        struct smv_client *client = NULL;

        met.connected = smv_connect(&at, &client);
        if (!put(out, &met, sizeof(met)))
                return;
        while (get(in, &question, sizeof(question)) && question.count) {
                struct answer answer = ask(client, &question, in);

                if (!put(out, &answer, sizeof(answer)))
                        return;
        }
        smv_close(client);
}

/* ---- the test's side ---- */

/* NULL: a second user can be made. */
static const char *reason_for_one_user(void)
{
        int status = 0;
        pid_t pid;

        if (geteuid())
                return "only root can";
        pid = fork();
        assert(pid >= 0);
        if (!pid)
                _exit(become(65533, 0) ? 1 : 0);
        waitpid(pid, &status, 0);
        return status ? "this root may not" : NULL;
}

bool can_become_another_user(void)
{
        return !reason_for_one_user();
}

void require_other_users(void)
{
        const char *failed = reason_for_one_user();

        if (failed) {
                printf("1..0 # SKIP two users are needed, and %s make a process of another\n",
                       failed);
                fflush(stdout);
                _exit(SKIPPED);
        }
}

struct other_user other_user_start(const struct daemon_fixture *fixture, uint32_t uid,
                                   uint32_t group)
{
        struct other_user other_user, met = { 0 };
        int to[2], from[2];

        assert_int_equal(pipe(to) | pipe(from), 0);
        other_user.pid = fork();
        assert_true(other_user.pid >= 0);
        if (!other_user.pid) {
                close(to[1]);
                close(from[0]);
                if (!become(uid, group))
                        live(fixture, to[0], from[1]);
                _exit(0);
        }
        close(to[0]);
        close(from[1]);
        if (!get(from[0], &met, sizeof(met)))
                fail_msg("%s", "the other user's process did not start");
        met.pid = other_user.pid;
        met.to = to[1];
        met.from = from[0];
        return met;
}

void other_user_send(const struct other_user *other_user, const struct question *question)
{
        assert_true(put(other_user->to, question, sizeof(*question)));
}

struct answer other_user_receive(const struct other_user *other_user)
{
        struct answer answer;

        if (!get(other_user->from, &answer, sizeof(answer)))
                fail_msg("%s", "the other user's process has died");
        assert_int_equal(answer.result, 0);
        assert_int_equal(answer.reason, SMV_END_LENGTH);
        return answer;
}

void other_user_stop(struct other_user *other_user)
{
        static const struct question farewell;

        other_user_send(other_user, &farewell);
        assert_int_equal(await_process(other_user->pid), 0);
        close(other_user->to);
        close(other_user->from);
        *other_user = (struct other_user){ 0 };
}

void await_other_users_gone(const struct daemon_fixture *fixture)
{
        struct raw_client *client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (reply_shows_others(raw_client_call(client, "op=s", "status"))) {
                assert_true(now_ms() < end);
                sleep_ms(5);
        }
        raw_client_close(client);
}
