#include "tests/e2e/play-daemon.h"

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
#define IDS      32 /* of a talk, and a bit for each */
#define FIRST    2
#define TOKENIZE 3

static struct stream *alone; /* the stream that the probe gets when nothing fails */
static struct plays_sum sum;

/* ---- judging ---- */

__attribute__((format(printf, 2, 3))) static void broken(struct play *play, const char *format, ...)
{
        const struct fault_plan *plan = &play->plan;
        va_list args;
        char *log;

        if (play->failed)
                return;
        play->failed = true;
        printf("# %s: %s %u to %u, flavour %u: ", play->scene->name,
               plan->kind == FAULT_ALLOC ? "allocations" : "calls", plan->first,
               plan->first + plan->count - 1, plan->flavour);
        va_start(args, format);
        vprintf(format, args);
        va_end(args);
        printf("\n");
        faults_tell(stdout);
        log = file_text(play->house->log);
        printf("# --- the log:\n%s# ---\n", log);
        free(log);
        fflush(stdout);
}

static bool out_of_patience(struct play *play, const char *waiting_for)
{
        if (now_ms() <= play->end_ms)
                return false;
        broken(play, "a hang: no %s", waiting_for);
        return true;
}

/* The daemon has ended: remembers how, and reports an end that is never right. */
static bool is_over(struct play *play)
{
        struct house *house = play->house;
        int status;

        if (house->pid && waitpid(house->pid, &status, WNOHANG)) {
                house->pid = 0;
                play->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
                if (play->status != 0 && play->status != 1) {
                        broken(play, "a crash: the daemon ended with %d", play->status);
                        sum.crashes++;
                }
        }
        return !house->pid;
}

/* Besides its plan, a daemon that refuses to start prints one thing, in words. */
static bool one_clear_line(const char *log)
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

static void judge_refusal(struct play *play)
{
        char *log = file_text(play->house->log);

        if (play->served && strstr(log, "loaded "))
                broken(play, "it served, and then ended by itself with %d", play->status);
        else if (play->status != 1)
                broken(play, "it ended by itself with %d", play->status);
        else if (!faults_failed())
                broken(play, "it refused to start though nothing has failed");
        else if (!one_clear_line(log))
                broken(play, "it refused to start, but not with one clear line");
        free(log);
}

/* ---- the daemon ---- */

/* A connection, or NULL when the daemon has ended. */
struct talk *play_reach(struct play *play)
{
        int fd;

        while ((fd = connect_raw(play->house)) < 0) {
                if (is_over(play) || out_of_patience(play, "connection"))
                        return NULL;
                sleep_ms(1);
        }
        return talk_take(fd);
}

static struct play begin_play(struct house *house, const struct scene *scene,
                              const struct fault_plan *plan)
{
        struct play play = {
                .house = house, .scene = scene, .plan = *plan, .end_ms = now_ms() + PATIENCE_MS
        };
        int ends[2] = { -1, -1 };

        if (scene->by_fd && socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
                assert(!"a pair of sockets");
        play.fd = ends[0];
        if (scene->by_config)
                play_write_config(&play);
        unlink(house->log);
        fflush(NULL);
        sum.plays++;
        house->pid = fork();
        assert(house->pid >= 0);
        if (!house->pid)
                play_be_daemon(&play, ends[1]);
        if (ends[1] >= 0)
                close(ends[1]);
        return play;
}

/* ---- asking ---- */

void say_hello(struct talk *talk)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

        talk_say(talk, "op=s id=u versions=I", "hello", HELLO, versions, (size_t)2);
}

void say_hello_for(struct talk *talk, const char *transport, const char *doorbell)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

        talk->transport = strcmp(doorbell, "futex") ? TALK_KICK : TALK_FUTEX;
        talk_say(talk, "op=s id=u versions=I transport=s doorbell=s", "hello", HELLO, versions,
                 (size_t)2, transport, doorbell);
}

void say_generate(struct talk *talk, uint32_t id, uint32_t tokens)
{
        talk_say(talk, "op=s id=u prompt=s max_tokens=u temperature=f ignore_eos=y", "generate", id,
                 PROMPT, tokens, 0.0, 1);
}

/* Every id has its reply, and every accepted stream its END; or the daemon has hung up. */
static bool is_answered(struct play *play, struct talk *talk, uint32_t asked, uint32_t streams)
{
        bool all = true;

        for (uint32_t id = 1; id < IDS; id++) {
                const struct reply *reply = talk_replied(talk, id);
                const struct stream *stream = talk_stream(talk, id);

                if (!(asked & ID(id)))
                        continue;
                play->served = play->served || (reply && reply->ok);
                if (!reply || (streams & ID(id) && reply->ok && !(stream && stream->ended)))
                        all = false;
        }
        return all || talk->hung_up;
}

/* Streams of one prompt begin alike. */
static void judge_stream(struct play *play, const struct talk *talk, const struct stream *stream)
{
        const struct reply *reply = talk_replied(talk, stream->id);

        if (talk_stream(talk, stream->id) != stream)
                broken(play, "two ENDs of stream %u", stream->id);
        if (reply && !reply->ok)
                broken(play, "records of stream %u, which was refused", stream->id);
        for (size_t i = 0; alone && i < stream->token_count && i < alone->token_count; i++)
                if (stream->tokens[i] != alone->tokens[i] &&
                    stream->end.prompt_tokens == sizeof(PROMPT) - 1)
                        broken(play, "stream %u has another token %zu", stream->id, i);
}

static void judge_talk(struct play *play, const struct talk *talk)
{
        size_t replies[IDS] = { 0 };

        for (size_t i = 0; i < talk->reply_count; i++) {
                uint64_t id = talk->replies[i]->id;

                if (id < IDS && id && replies[id]++)
                        broken(play, "two replies to %u", (unsigned)id);
        }
        for (size_t i = 0; i < talk->stream_count; i++)
                judge_stream(play, talk, talk->streams[i]);
}

/* A cancel may overtake the request that it cancels, and a fork may come after its parent has
 * ended. */
static bool is_late(const struct reply *reply)
{
        return reply->code == SMV_CANCELLED || reply->code == SMV_NO_STREAM;
}

static void judge_faultless(struct play *play, const struct talk *talk, uint32_t asked)
{
        for (uint32_t id = 1; id < IDS; id++) {
                const struct reply *reply = talk_replied(talk, id);

                if (asked & ID(id) && (!reply || (!reply->ok && !is_late(reply))))
                        broken(play, "nothing has failed, and to %u it says: %s", id,
                               reply ? reply->message : "nothing");
        }
}

void play_await(struct play *play, struct talk *talk, uint32_t asked, uint32_t streams)
{
        while (!is_answered(play, talk, asked, streams)) {
                if (out_of_patience(play, "answer, END or hang-up"))
                        return;
                talk_turn(talk, 100);
        }
        judge_talk(play, talk);
        if (!play->plan.count)
                judge_faultless(play, talk, asked);
}

void play_await_hangup(struct play *play, struct talk *talk)
{
        while (!talk->hung_up && !out_of_patience(play, "hang-up"))
                talk_turn(talk, 100);
}

/* ---- when the fault is over ---- */

static const struct {
        const char *path;
        uint64_t idle;
} gauges[] = {
        { "status.requests.alive", 0 },
        { "status.requests.live", 0 },
        { "status.requests.waiting", 0 },
        { "status.requests.running", 0 },
        { "status.requests.stalled", 0 },
        { "status.requests.ending", 0 },
        { "status.jobs", 0 },
        { "status.model.holds", 0 },
        { "status.blocks.held", 0 },
        { "status.blocks.promised", 0 },
        { "status.connections.open", 1 },
        { "status.channels.open", 0 },
        { "status.channels.made", 0 },
        { "status.charges.0.connections", 1 },
        { "status.charges.0.requests", 0 },
        { "status.charges.0.prompt_bytes", 0 },
        { "status.charges.0.ring_bytes", 0 },
        { "status.charges.0.handles", 0 },
        { "status.charges.0.kept", 0 },
        { "status.charges.0.kept_bytes", 0 },
        { "status.charges.0.blocks", 0 },
        { "status.handles.bytes", 0 },
        { "status.kept.bytes", 0 },
        { "status.numeric_faults", 0 },
};
#define GAUGES (sizeof(gauges) / sizeof(*gauges))

/* Numbers of the first play, in which nothing failed. */
static struct {
        uint64_t descriptors, threads;
} rest;

static struct reply *ask_status(struct play *play, struct talk *talk, uint32_t id)
{
        talk_say(talk, "op=s id=u", "status", id);
        while (!talk_replied(talk, id) && !talk->hung_up)
                if (!talk_turn(talk, 100) && out_of_patience(play, "status"))
                        return NULL;
        return talk_replied(talk, id);
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
static void look_for_rest(struct play *play, struct talk *talk)
{
        uint32_t id = IDS;
        struct reply *status;
        const char *what;
        uint64_t is;

        say_hello(talk);
        while ((status = ask_status(play, talk, id++))) {
                what = not_at_rest(status, &is);
                if (!what)
                        break;
                if (now_ms() > play->end_ms) {
                        broken(play, "not at rest: %s is %" PRIu64, what, is);
                        return;
                }
                sleep_ms(5);
        }
        if (!status) {
                broken(play, "no status when the fault was over");
        } else if (!rest.threads) {
                rest.descriptors = reply_uint(status, "status.descriptors");
                rest.threads = reply_uint(status, "status.threads");
        }
}

static void judge_new_talk(struct play *play, const struct talk *talk)
{
        const struct reply *hello = talk_replied(talk, HELLO),
                           *tokens = talk_replied(talk, TOKENIZE);
        const struct stream *stream = talk_stream(talk, FIRST);

        if (!hello || !hello->ok || !tokens || !tokens->ok)
                broken(play, "the fault is over and somebody new is not served");
        else if (!stream || !stream->ended || stream->end.reason != SMV_END_LENGTH)
                broken(play, "the fault is over and a stream does not end as it should");
        else if (!alone)
                alone = stream_copy(stream);
        else
                assert_same_stream(stream, alone);
}

/* A new client is served as if nothing had happened. */
static void serve_new(struct play *play)
{
        struct talk *talk = play_reach(play);

        if (!talk)
                return;
        say_hello(talk);
        talk_say(talk, "op=s id=u text=s", "tokenize", TOKENIZE, "hi");
        say_generate(talk, FIRST, TOKENS);
        play_await(play, talk, ID(HELLO) | ID(TOKENIZE) | ID(FIRST), ID(FIRST));
        if (!play->failed && !is_over(play))
                judge_new_talk(play, talk);
        talk_close(talk);
}

static void await_rest(struct play *play)
{
        struct talk *talk = play_reach(play);

        if (talk)
                look_for_rest(play, talk);
        talk_close(talk);
}

/* The daemon is told to end or, if by_fd, its client leaves it. */
static void end_play(struct play *play)
{
        struct house *house = play->house;

        if (!play->scene->by_fd)
                kill(house->pid, SIGTERM);
        while (!is_over(play)) {
                if (!out_of_patience(play, "end")) {
                        sleep_ms(1);
                        continue;
                }
                kill(house->pid, SIGKILL);
                waitpid(house->pid, NULL, 0);
                house->pid = 0;
                return;
        }
        if (play->status && !play->scene->by_fd)
                broken(play, "after SIGTERM it ended with %d", play->status);
}

/* Waits until the daemon has its weights, or has ended because it could not read them. */
static void await_load(struct play *play)
{
        while (!is_over(play) && !house_said(play->house, "loaded ") &&
               !out_of_patience(play, "end of loading"))
                sleep_ms(1);
}

/* After the scene, with the faults held back. */
static void probe(struct play *play)
{
        await_load(play);
        if (!play->failed && !is_over(play))
                serve_new(play);
        if (!play->failed && !is_over(play))
                await_rest(play);
}

bool play_once(struct house *house, const struct scene *scene, const struct fault_plan *plan)
{
        struct play play = begin_play(house, scene, plan);

        scene->act(&play);
        if (scene->by_fd) {
                end_play(&play);
                if (play.status)
                        judge_refusal(&play);
        } else {
                faults_pause(true);
                probe(&play);
                faults_pause(false);
                if (is_over(&play))
                        judge_refusal(&play);
                else
                        end_play(&play);
        }
        if (house_said(house, "Sanitizer") || house_said(house, "runtime error:"))
                broken(&play, "a sanitizer has reported");
        return !play.failed;
}

struct plays_sum plays_sum(void)
{
        return sum;
}

void play_prepare(struct house *house)
{
        const struct scene *scenes[] = { &scene_asking, &scene_crowd, &scene_rings, &scene_alone };
        const struct fault_plan none = { .count = 0 };
        char model[96];
        struct ran ran;

        snprintf(model, sizeof(model), "%s/babble.gguf", house->directory);
        ran = RUN(house, NULL, given("BABBLE_MAKER"), model, "--layers", "1", "--width", "32",
                  "--heads", "2", "--kv-heads", "1", "--head-dim", "16", "--ffn", "32", "--context",
                  "128");
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
                assert_true(play_once(house, scenes[i], &none));
}
