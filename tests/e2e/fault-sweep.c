#include "tests/e2e/fault-sweep-daemon.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROMPT   "once there was a samovar"
#define TOKENS   8
#define IDS      32 /* of a client, and a bit for each */
#define FIRST    2
#define TOKENIZE 3

static struct stream *alone; /* the stream that the probe gets when nothing fails */
static struct fault_sweep_totals sum;

/* ---- judging ---- */

__attribute__((format(printf, 2, 3))) static void broken(struct fault_trial *trial,
                                                         const char *format, ...)
{
        const struct fault_plan *plan = &trial->plan;
        va_list args;
        char *log;

        if (trial->failed)
                return;
        trial->failed = true;
        printf("# %s: %s %u to %u, flavour %u: ", trial->scenario->name,
               plan->kind == FAULT_ALLOC ? "allocations" : "calls", plan->first,
               plan->first + plan->count - 1, plan->flavour);
        va_start(args, format);
        vprintf(format, args);
        va_end(args);
        printf("\n");
        faults_print(stdout);
        log = file_text(trial->fixture->log);
        printf("# --- the log:\n%s# ---\n", log);
        free(log);
        fflush(stdout);
}

static bool has_timed_out(struct fault_trial *trial, const char *waiting_for)
{
        if (now_ms() <= trial->end_ms)
                return false;
        broken(trial, "a hang: no %s", waiting_for);
        return true;
}

/* The daemon has ended: remembers how, and reports an end that is never right. */
static bool is_over(struct fault_trial *trial)
{
        struct daemon_fixture *fixture = trial->fixture;
        int status;

        if (fixture->pid && waitpid(fixture->pid, &status, WNOHANG)) {
                fixture->pid = 0;
                trial->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
                if (trial->status != 0 && trial->status != 1) {
                        broken(trial, "a crash: the daemon ended with %d", trial->status);
                        sum.crashes++;
                }
        }
        return !fixture->pid;
}

/* Besides its plan, a daemon that refuses to start prints one thing, in words. */
static bool is_one_clear_line(const char *log)
{
        static const char *const unclear[] = { "(null)", "Success", "Unknown error", "()" };
        const char *said = NULL;
        size_t lines = 0;

        for (const char *at = log; (at = strstr(at, "samovard: ")); at++) {
                if ((at != log && at[-1] != '\n') || !strncmp(at, "samovard: model ", 16))
                        continue;
                said = at;
                lines++;
        }
        for (size_t i = 0; said && i < sizeof(unclear) / sizeof(*unclear); i++)
                if (strstr(said, unclear[i]))
                        return false;
        return lines == 1 && strlen(said) > sizeof("samovard: ");
}

static void judge_refusal(struct fault_trial *trial)
{
        char *log = file_text(trial->fixture->log);

        if (trial->served && strstr(log, "loaded "))
                broken(trial, "it served, and then ended by itself with %d", trial->status);
        else if (trial->status != 1)
                broken(trial, "it ended by itself with %d", trial->status);
        else if (!faults_failed())
                broken(trial, "it refused to start though nothing has failed");
        else if (!is_one_clear_line(log))
                broken(trial, "it refused to start, but not with one clear line");
        free(log);
}

/* ---- the daemon ---- */

/* A connection, or NULL when the daemon has ended. */
struct raw_client *trial_connect(struct fault_trial *trial)
{
        int fd;

        while ((fd = fixture_connect(trial->fixture)) < 0) {
                if (is_over(trial) || has_timed_out(trial, "connection"))
                        return NULL;
                sleep_ms(1);
        }
        return raw_client_adopt(fd);
}

static struct fault_trial begin_trial(struct daemon_fixture *fixture,
                                      const struct scenario *scenario,
                                      const struct fault_plan *plan)
{
        struct fault_trial trial = { .fixture = fixture,
                                     .scenario = scenario,
                                     .plan = *plan,
                                     .end_ms = now_ms() + TIMEOUT_MS };
        int ends[2] = { -1, -1 };

        if (scenario->by_fd && socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
                assert(!"a pair of sockets");
        trial.fd = ends[0];
        if (scenario->by_config)
                trial_write_config(&trial);
        unlink(fixture->log);
        fflush(NULL);
        sum.trials++;
        fixture->pid = fork();
        assert(fixture->pid >= 0);
        if (!fixture->pid)
                trial_run_daemon(&trial, ends[1]);
        if (ends[1] >= 0)
                close(ends[1]);
        return trial;
}

/* ---- asking ---- */

void send_hello(struct raw_client *client)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

        raw_client_send_frame(client, "op=s id=u versions=I", "hello", HELLO, versions, (size_t)2);
}

void send_hello_for(struct raw_client *client, const char *transport, const char *doorbell)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

        client->transport = strcmp(doorbell, "futex") ? RAW_CLIENT_KICK : RAW_CLIENT_FUTEX;
        raw_client_send_frame(client, "op=s id=u versions=I transport=s doorbell=s", "hello", HELLO,
                              versions, (size_t)2, transport, doorbell);
}

void send_generate(struct raw_client *client, uint32_t id, uint32_t tokens)
{
        raw_client_send_frame(client, "op=s id=u prompt=s max_tokens=u temperature=f ignore_eos=y",
                              "generate", id, PROMPT, tokens, 0.0, 1);
}

/* Every id has its reply, and every accepted stream its END; or the daemon has hung up. */
static bool is_answered(struct fault_trial *trial, struct raw_client *client, uint32_t asked,
                        uint32_t streams)
{
        bool all = true;

        for (uint32_t id = 1; id < IDS; id++) {
                const struct reply *reply = raw_client_find_reply(client, id);
                const struct stream *stream = raw_client_stream(client, id);

                if (!(asked & ID(id)))
                        continue;
                trial->served = trial->served || (reply && reply->ok);
                if (!reply || (streams & ID(id) && reply->ok && !(stream && stream->ended)))
                        all = false;
        }
        return all || client->hung_up;
}

/* Streams of one prompt begin alike. */
static void judge_stream(struct fault_trial *trial, const struct raw_client *client,
                         const struct stream *stream)
{
        const struct reply *reply = raw_client_find_reply(client, stream->id);

        if (raw_client_stream(client, stream->id) != stream)
                broken(trial, "two ENDs of stream %u", stream->id);
        if (reply && !reply->ok)
                broken(trial, "records of stream %u, which was refused", stream->id);
        for (size_t i = 0; alone && i < stream->token_count && i < alone->token_count; i++)
                if (stream->tokens[i] != alone->tokens[i] &&
                    stream->end.prompt_tokens == sizeof(PROMPT) - 1)
                        broken(trial, "stream %u has another token %zu", stream->id, i);
}

static void judge_client(struct fault_trial *trial, const struct raw_client *client)
{
        size_t replies[IDS] = { 0 };

        for (size_t i = 0; i < client->reply_count; i++) {
                uint64_t id = client->replies[i]->id;

                if (id < IDS && id && replies[id]++)
                        broken(trial, "two replies to %u", (unsigned)id);
        }
        for (size_t i = 0; i < client->stream_count; i++)
                judge_stream(trial, client, client->streams[i]);
}

/* A cancel may overtake the request that it cancels, and a fork may come after its parent has
 * ended. */
static bool is_late(const struct reply *reply)
{
        return reply->code == SMV_CANCELLED || reply->code == SMV_NO_STREAM;
}

static void judge_faultless(struct fault_trial *trial, const struct raw_client *client,
                            uint32_t asked)
{
        for (uint32_t id = 1; id < IDS; id++) {
                const struct reply *reply = raw_client_find_reply(client, id);

                if (asked & ID(id) && (!reply || (!reply->ok && !is_late(reply))))
                        broken(trial, "nothing has failed, and to %u it says: %s", id,
                               reply ? reply->message : "nothing");
        }
}

void trial_await(struct fault_trial *trial, struct raw_client *client, uint32_t asked,
                 uint32_t streams)
{
        while (!is_answered(trial, client, asked, streams)) {
                if (has_timed_out(trial, "answer, END or hang-up"))
                        return;
                raw_client_poll(client, 100);
        }
        judge_client(trial, client);
        if (!trial->plan.count)
                judge_faultless(trial, client, asked);
}

void trial_await_hangup(struct fault_trial *trial, struct raw_client *client)
{
        while (!client->hung_up && !has_timed_out(trial, "hang-up"))
                raw_client_poll(client, 100);
}

/* ---- when the fault is over ---- */

static const struct {
        const char *path;
        uint64_t idle;
} gauges[] = {
        { "status.requests.open", 0 },      { "status.requests.submitted", 0 },
        { "status.requests.waiting", 0 },   { "status.requests.running", 0 },
        { "status.requests.stalled", 0 },   { "status.requests.ending", 0 },
        { "status.text_jobs", 0 },          { "status.model.references", 0 },
        { "status.blocks.in_use", 0 },      { "status.blocks.reserved", 0 },
        { "status.connections.open", 1 },   { "status.channels.active", 0 },
        { "status.channels.allocated", 0 }, { "status.users.0.connections", 1 },
        { "status.users.0.requests", 0 },   { "status.users.0.prompt_bytes", 0 },
        { "status.users.0.ring_bytes", 0 }, { "status.users.0.handles", 0 },
        { "status.users.0.resumable", 0 },  { "status.users.0.resumable_bytes", 0 },
        { "status.users.0.blocks", 0 },     { "status.handles.bytes", 0 },
        { "status.resumable.bytes", 0 },    { "status.numeric_faults", 0 },
};
#define GAUGES (sizeof(gauges) / sizeof(*gauges))

/* Numbers of the first trial, in which nothing failed. */
static struct {
        uint64_t descriptors, threads;
} rest;

static struct reply *ask_status(struct fault_trial *trial, struct raw_client *client, uint32_t id)
{
        raw_client_send_frame(client, "op=s id=u", "status", id);
        while (!raw_client_find_reply(client, id) && !client->hung_up)
                if (!raw_client_poll(client, 100) && has_timed_out(trial, "status"))
                        return NULL;
        return raw_client_find_reply(client, id);
}

/* One descriptor fewer is the listener's spare; one more is the one that the log opens if fstat()
 * fails. */
static const char *not_at_rest(const struct reply *status, uint64_t *ret_is)
{
        uint64_t more = faults_failed_call("fstat");

        for (size_t i = 0; i < GAUGES; i++) {
                *ret_is = reply_uint(status, gauges[i].path);
                if (*ret_is != gauges[i].idle)
                        return gauges[i].path;
        }
        *ret_is = reply_uint(status, "status.descriptors");
        if (rest.descriptors && *ret_is > rest.descriptors + more)
                return "status.descriptors";
        *ret_is = reply_uint(status, "status.threads");
        return rest.threads && *ret_is != rest.threads ? "status.threads" : NULL;
}

/* Asks over a connection that has never had a stream. */
static void look_for_rest(struct fault_trial *trial, struct raw_client *client)
{
        uint32_t id = IDS;
        struct reply *status;
        const char *what;
        uint64_t is;

        send_hello(client);
        while ((status = ask_status(trial, client, id++))) {
                what = not_at_rest(status, &is);
                if (!what)
                        break;
                if (now_ms() > trial->end_ms) {
                        broken(trial, "not at rest: %s is %" PRIu64, what, is);
                        return;
                }
                sleep_ms(5);
        }
        if (!status) {
                broken(trial, "no status when the fault was over");
        } else if (!rest.threads) {
                rest.descriptors = reply_uint(status, "status.descriptors");
                rest.threads = reply_uint(status, "status.threads");
        }
}

static void judge_new_talk(struct fault_trial *trial, const struct raw_client *client)
{
        const struct reply *hello = raw_client_find_reply(client, HELLO),
                           *tokens = raw_client_find_reply(client, TOKENIZE);
        const struct stream *stream = raw_client_stream(client, FIRST);

        if (!hello || !hello->ok || !tokens || !tokens->ok)
                broken(trial, "the fault is over and somebody new is not served");
        else if (!stream || !stream->ended || stream->end.reason != SMV_END_LENGTH)
                broken(trial, "the fault is over and a stream does not end as it should");
        else if (!alone)
                alone = stream_copy(stream);
        else
                assert_same_stream(stream, alone);
}

/* A new client is served as if nothing had happened. */
static void serve_new(struct fault_trial *trial)
{
        struct raw_client *client = trial_connect(trial);

        if (!client)
                return;
        send_hello(client);
        raw_client_send_frame(client, "op=s id=u text=s", "tokenize", TOKENIZE, "hi");
        send_generate(client, FIRST, TOKENS);
        trial_await(trial, client, ID(HELLO) | ID(TOKENIZE) | ID(FIRST), ID(FIRST));
        if (!trial->failed && !is_over(trial))
                judge_new_talk(trial, client);
        raw_client_close(client);
}

static void await_rest(struct fault_trial *trial)
{
        struct raw_client *client = trial_connect(trial);

        if (client)
                look_for_rest(trial, client);
        raw_client_close(client);
}

/* The daemon is told to end or, if by_fd, its client leaves it. */
static void end_trial(struct fault_trial *trial)
{
        struct daemon_fixture *fixture = trial->fixture;

        if (!trial->scenario->by_fd)
                kill(fixture->pid, SIGTERM);
        while (!is_over(trial)) {
                if (!has_timed_out(trial, "end")) {
                        sleep_ms(1);
                        continue;
                }
                kill(fixture->pid, SIGKILL);
                waitpid(fixture->pid, NULL, 0);
                fixture->pid = 0;
                return;
        }
        if (trial->status && !trial->scenario->by_fd)
                broken(trial, "after SIGTERM it ended with %d", trial->status);
}

/* Waits until the daemon has its weights, or has ended because it could not read them. */
static void await_load(struct fault_trial *trial)
{
        while (!is_over(trial) && !fixture_logged(trial->fixture, "loaded ") &&
               !has_timed_out(trial, "end of loading"))
                sleep_ms(1);
}

/* After the scenario, with the faults paused. */
static void probe(struct fault_trial *trial)
{
        await_load(trial);
        if (!trial->failed && !is_over(trial))
                serve_new(trial);
        if (!trial->failed && !is_over(trial))
                await_rest(trial);
}

bool fault_sweep_try(struct daemon_fixture *fixture, const struct scenario *scenario,
                     const struct fault_plan *plan)
{
        struct fault_trial trial = begin_trial(fixture, scenario, plan);

        scenario->act(&trial);
        if (scenario->by_fd) {
                end_trial(&trial);
                if (trial.status)
                        judge_refusal(&trial);
        } else {
                faults_pause(true);
                probe(&trial);
                faults_pause(false);
                if (is_over(&trial))
                        judge_refusal(&trial);
                else
                        end_trial(&trial);
        }
        if (fixture_logged(fixture, "Sanitizer") || fixture_logged(fixture, "runtime error:"))
                broken(&trial, "a sanitizer has reported");
        return !trial.failed;
}

struct fault_sweep_totals fault_sweep_totals(void)
{
        return sum;
}

void fault_sweep_prepare(struct daemon_fixture *fixture)
{
        const struct scenario *scenarios[] = { &scenario_requests, &scenario_load, &scenario_rings,
                                               &scenario_forms, &scenario_single_client };
        const struct fault_plan none = { .count = 0 };
        char model[96];
        struct run_result ran;

        snprintf(model, sizeof(model), "%s/toy-model.gguf", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), model, "--layers", "1", "--width",
                  "32", "--heads", "2", "--kv-heads", "1", "--head-dim", "16", "--ffn", "32",
                  "--context", "128");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
                assert_true(fault_sweep_try(fixture, scenarios[i], &none));
}
