/*
 * What samovar-http adds to the daemon:
 *
 *      bench-http [-r ROUNDS] [-l LLAMA_SERVER] SAMOVARD SAMOVAR_HTTP MODEL [PART ...]
 *
 * Parts: stream, serve, first, crowd, leave, request; all of them, if none is named.  Each part
 * asks the daemon through samovar-http and through a socket client in turns.  `serve` and `request`
 * have a real samovard with MODEL; the others have the pipeline over a null model (pipeline.h),
 * whose steps come at a fixed period.  With -l, `request` asks a llama-server on the same MODEL.
 * docs/internals/bench.md explains the table.
 */
#include <errno.h>
#include <poll.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "bench/child.h"
#include "bench/http-client.h"
#include "bench/own-bridge.h"
#include "bench/own-daemon.h"
#include "bench/pipeline.h"
#include "bench/table.h"

#define MS           UINT64_C(1000000)
#define COMPLETIONS  "POST /v1/completions"
#define STREAMS      32u
#define ACTIVE       200u
#define IDLE         1000u
#define SAMPLES_MAX  4096u
#define POSITIONS    8192u /* a power of two */
#define PROBE_PROMPT 3000u /* more positions than the others reach */
#define PROBE_TOKENS 150u
#define VISITS       40u
#define LASTING      90000u
#define LONG_PROMPT  60000u
#define SLOTS        4u
#define REQUESTS     300u
#define SILENCE_MS   60000

struct shared {
        struct pipeline_facts pipeline;
        counter stamps[POSITIONS];
        uint32_t samples[SAMPLES_MAX];
        uint32_t count;
};

static struct {
        const char *samovard, *bridge, *model, *llama;
        char directory[64], socket[80];
        struct shared *shared;
        int pipeline; /* its pid; 0: none */
        struct smv_client *client;
} b;

static void die(const char *what)
{
        fprintf(stderr, "bench-http: %s\n", what);
        own_bridge_stop();
        own_daemon_stop();
        exit(1);
}

static void must(int good, const char *what)
{
        if (!good)
                die(what);
}

/* ---- the daemon, or what stands for it ---- */

static struct smv_client *reach(const char *socket)
{
        char why[256] = "";
        const struct smv_connect options = { SMV_SIZE(smv_connect), .socket = socket, .any_uid = 1,
                                             .message = why, .message_bytes = sizeof(why) };
        struct smv_client *client;

        must(!smv_connect(&options, &client), why);
        return client;
}

static void start_bridge(const char *socket)
{
        char why[256];

        must(!own_bridge_start(b.bridge, socket, why, sizeof(why)), why);
}

static void open_pipeline(uint64_t period_ns, uint32_t requests, uint32_t slots, uint32_t context)
{
        const struct pipeline_conf conf = {
                .socket = b.socket,
                .connections = 16,
                .requests = requests,
                .slots = slots,
                .context = context,
                .depth = 1,
                .model = { .period_ns = period_ns,
                           .letters = true,
                           .cpu = -1,
                           .stamps = b.shared->stamps,
                           .stamp_count = POSITIONS },
                .facts = &b.shared->pipeline,
        };

        memset(b.shared, 0, sizeof(*b.shared));
        b.pipeline = pipeline_fork(&conf);
        must(b.pipeline > 0, "no pipeline");
        start_bridge(b.socket);
        b.client = reach(b.socket);
}

static void close_pipeline(void)
{
        own_bridge_stop();
        b.client = smv_close(b.client);
        must(!pipeline_stop(b.pipeline), "the pipeline's end");
        b.pipeline = 0;
}

/* threads "0": one for each processor. */
static void open_daemon(const char *threads)
{
        const char *const flags[] = { "--model",   b.model, "--config", "none",
                                      "--threads", threads, NULL };
        char why[256];

        must(!own_daemon_start(b.samovard, flags, &b.client, why, sizeof(why)), why);
        start_bridge(own_daemon_socket());
}

static void close_daemon(void)
{
        own_bridge_stop();
        own_daemon_stop();
        b.client = NULL;
}

/* ---- waves: many streams at a time ---- */

static uint32_t ask_socket(struct smv_client *client, const uint32_t *prompt, size_t count,
                           uint32_t tokens)
{
        const struct smv_generate options = {
                SMV_SIZE(smv_generate), .tokens = prompt, .token_count = count,
                .max_tokens = tokens,   .ignore_eos = 1,  .set = SMV_SET_TEMPERATURE,
        };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        uint32_t stream;

        if (smv_generate(client, &options, &stream)) {
                smv_error(client, &problem);
                die(problem.message);
        }
        return stream;
}

static void next_event(struct smv_client *client, struct smv_event *event)
{
        must(smv_next(client, event, SILENCE_MS) == 1, "nothing comes");
        if (event->kind == SMV_EVENT_END)
                must(event->reason == SMV_END_LENGTH, "a stream failed");
}

static double wave_socket(uint32_t streams, uint32_t tokens)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint64_t from = sys_clock_ns();

        for (uint32_t i = 0; i < streams; i++)
                ask_socket(b.client, &(uint32_t){ 'a' + i % 26 }, 1, tokens);
        while (streams) {
                next_event(b.client, &event);
                streams -= event.kind == SMV_EVENT_END;
        }
        return (double)(sys_clock_ns() - from) / 1e9;
}

static void ask_http(int fd, uint32_t number, uint32_t n, uint32_t tokens)
{
        char body[256];

        snprintf(body, sizeof(body),
                 "{\"prompt\":\"%c\",\"n\":%u,\"max_tokens\":%u,\"temperature\":%u,"
                 "\"ignore_eos\":true,\"stream\":true}",
                 (char)('a' + number % 26), n, tokens, n > 1);
        http_send(fd, COMPLETIONS, body);
}

static double wave_http(uint32_t streams, uint32_t tokens)
{
        static struct http_stream all[ACTIVE];
        uint64_t from;

        memset(all, 0, sizeof(all));
        for (uint32_t i = 0; i < streams; i++)
                all[i].fd = http_connect(own_bridge_port());
        from = sys_clock_ns();
        for (uint32_t i = 0; i < streams; i++)
                ask_http(all[i].fd, i, 1, tokens);
        http_drain(all, streams);
        from = sys_clock_ns() - from;
        for (uint32_t i = 0; i < streams; i++)
                close(all[i].fd);
        return (double)from / 1e9;
}

/* Both ways in turn: processor time of a token, and the ratio of the rates. */
static void compare_waves(const char *group, uint32_t tokens, const char *cost, const char *ratio)
{
        double count = (double)STREAMS * tokens, socket, http;
        uint64_t spent;

        socket = wave_socket(STREAMS, tokens);
        spent = own_bridge_ns();
        http = wave_http(STREAMS, tokens);
        spent = own_bridge_ns() - spent;
        table_add_one(group, "samovar-http, us of processor for a token", cost,
                      (double)spent / 1e3 / count);
        table_add_one(group, "socket client, tokens/s", "", count / socket);
        table_add_one(group, "samovar-http, tokens/s", "", count / http);
        table_add_one(group, "its rate beside the socket client's", ratio, socket / http);
}

static void part_stream(void)
{
        open_pipeline(5 * MS, 64, 0, 4096);
        wave_http(STREAMS, 20);
        compare_waves("32 streams, a step each 5 ms", 600, "20", "0.9");
        close_pipeline();
        open_pipeline(0, 64, 0, 8192);
        wave_http(STREAMS, 20);
        compare_waves("(32 streams, as fast as samovar-http reads)", 4000, "", "");
        close_pipeline();
}

static void serve(const char *threads, const char *group)
{
        open_daemon(threads);
        wave_http(STREAMS, 20);
        wave_socket(STREAMS, 20);
        compare_waves(group, 600, "20", "0.9");
        close_daemon();
}

static void part_serve(void)
{
        serve("1", "32 streams of the model, computed by one thread");
        serve("0", "32 streams of the model, computed by a thread for each processor");
}

/* ---- the first byte ---- */

/* The prompt has one token, so the token at position 1 is the first one. */
static void part_first(void)
{
        uint32_t count = 100;
        uint64_t came;
        int fd;

        open_pipeline(5 * MS, 64, 0, 4096);
        fd = http_connect(own_bridge_port());
        for (uint32_t i = 0; i < count; i++) {
                struct http_stream stream = { .fd = fd };

                ask_http(fd, i, 1, 3);
                http_await(&stream, "\"text\"");
                came = sys_clock_ns();
                b.shared->samples[i] = (uint32_t)(came - counter_get(&b.shared->stamps[1]));
                http_drain(&stream, 1);
        }
        close(fd);
        table_add("us", "from the first token in the engine to its first byte at the client",
                  "2000", b.shared->samples, count);
        close_pipeline();
}

/* ---- a crowd ---- */

/* A process with one stream, which notes the gaps between its tokens. */
static pid_t start_probe(void)
{
        static uint32_t prompt[PROBE_PROMPT];
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint64_t last = 0, now;
        pid_t pid = fork();

        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        client = reach(b.socket);
        for (uint32_t i = 0; i < PROBE_PROMPT; i++)
                prompt[i] = 'a';
        ask_socket(client, prompt, PROBE_PROMPT, PROBE_TOKENS);
        do {
                next_event(client, &event);
                now = sys_clock_ns();
                if (event.kind == SMV_EVENT_TOKENS && last)
                        b.shared->samples[b.shared->count++] = (uint32_t)(now - last);
                last = now;
        } while (event.kind != SMV_EVENT_END);
        smv_close(client);
        _exit(0);
}

static void note_gaps(pid_t probe, const char *engine, const char *reader)
{
        static const char group[] = "gaps between tokens, us, 200 streams, a step each 20 ms";
        static uint32_t gaps[PROBE_TOKENS];
        int status = -1;

        waitpid(probe, &status, 0);
        must(!status, "the probe failed");
        table_add(group, reader, "", b.shared->samples, b.shared->count);
        for (uint32_t i = 1; i < PROBE_TOKENS; i++)
                gaps[i - 1] = (uint32_t)(counter_get(&b.shared->stamps[PROBE_PROMPT + i]) -
                                         counter_get(&b.shared->stamps[PROBE_PROMPT + i - 1]));
        table_add(group, engine, "", gaps, PROBE_TOKENS - 1);
        b.shared->count = 0;
}

static void open_idle(int *fds)
{
        uint64_t before = own_bridge_bytes();

        for (uint32_t i = 0; i < IDLE; i++) {
                fds[i] = http_connect(own_bridge_port());
                http_send(fds[i], "GET /v1/models", "");
                must(http_receive(fds[i]) != NULL, "no answer");
        }
        table_add_one("an idle connection, after a request", "memory, KiB", "64",
                      (double)(own_bridge_bytes() - before) / 1024 / IDLE);
}

static void part_crowd(void)
{
        static int idle[IDLE];
        pid_t probe;

        open_pipeline(20 * MS, 256, 0, 4096);
        probe = start_probe();
        wave_socket(ACTIVE, 250);
        note_gaps(probe, "the engine's, beside a socket client", "a reader's, the same");
        open_idle(idle);
        probe = start_probe();
        wave_http(ACTIVE, 250);
        note_gaps(probe, "the engine's, beside 200 active and 1000 idle of HTTP",
                  "a reader's, the same, HTTP");
        for (uint32_t i = 0; i < IDLE; i++)
                close(idle[i]);
        close_pipeline();
}

/* ---- clients that leave ---- */

static void await_count(counter *at, uint64_t count)
{
        uint64_t end = sys_clock_ns() + SILENCE_MS * MS;

        while (counter_get(at) != count) {
                must(sys_clock_ns() < end, "a request did not begin or end");
                poll(NULL, 0, 0);
        }
}

enum leaving { LEAVES_QUEUE, LEAVES_PREFILL, LEAVES_DECODE, LEAVES_FOUR };

static int visit(enum leaving state)
{
        static char body[LONG_PROMPT + 256];
        struct stats *stats = &b.shared->pipeline.stats;
        int fd = http_connect(own_bridge_port());

        if (state == LEAVES_PREFILL) {
                snprintf(body, sizeof(body), "{\"prompt\":\"%0*u\",\"max_tokens\":%u}",
                         (int)LONG_PROMPT, 0u, 20000u);
                http_send(fd, COMPLETIONS, body);
                await_count(&stats->running, 1);
        } else if (state == LEAVES_QUEUE) {
                ask_http(fd, 1, 1, LASTING);
                await_count(&stats->waiting, 1);
        } else {
                ask_http(fd, 1, state == LEAVES_FOUR ? 4 : 1, LASTING);
                http_await(&(struct http_stream){ .fd = fd }, "\"text\"");
                await_count(&stats->running, state == LEAVES_FOUR ? 4 : 1);
        }
        return fd;
}

static void leave_often(enum leaving state, const char *name)
{
        struct stats *stats = &b.shared->pipeline.stats;
        uint32_t *samples = b.shared->samples;

        for (uint32_t i = 0; i < VISITS; i++) {
                int fd = visit(state);
                uint64_t left = sys_clock_ns();

                close(fd);
                await_count(state == LEAVES_QUEUE ? &stats->waiting : &stats->running, 0);
                samples[i] = (uint32_t)(sys_clock_ns() - left);
        }
        table_add("us from leaving until the slot is free, a step each 5 ms", name, "100000",
                  samples, VISITS);
}

static void part_leave(void)
{
        struct stats *stats = &b.shared->pipeline.stats;
        int holder;

        open_pipeline(5 * MS, 16, SLOTS, 100000);
        leave_often(LEAVES_PREFILL, "while the prompt is read");
        leave_often(LEAVES_DECODE, "while it is answered");
        leave_often(LEAVES_FOUR, "while it is answered, n = 4");
        holder = http_connect(own_bridge_port());
        ask_http(holder, 1, SLOTS, LASTING);
        await_count(&stats->running, SLOTS);
        leave_often(LEAVES_QUEUE, "in the queue");
        close(holder);
        close_pipeline();
}

/* ---- short requests ---- */

#define WORDS "Once upon a time"
#define SHORT                                                                                      \
        "{\"messages\":[{\"role\":\"user\",\"content\":\"" WORDS                                   \
        "\"}],\"max_tokens\":1,\"temperature\":0}"

/* The time that the model took, as the server says. */
static double told_ms(const char *answer, const char *key)
{
        const char *at = strstr(answer, key);

        return at ? atof(at + strlen(key)) : 0;
}

static void ask_shortly(int fd, uint32_t *ret_all, uint32_t *ret_over)
{
        uint64_t from = sys_clock_ns();
        const char *answer;
        double model_ns;

        http_send(fd, "POST /v1/chat/completions", SHORT);
        answer = http_receive(fd);
        must(answer && !strncmp(answer, "HTTP/1.1 200", 12), "a short request failed");
        from = sys_clock_ns() - from;
        model_ns = 1e6 * (told_ms(answer, "\"prompt_ms\":") + told_ms(answer, "\"predicted_ms\":") +
                          told_ms(answer, "\"queued_ms\":"));
        *ret_all = (uint32_t)from;
        *ret_over = (double)from > model_ns ? (uint32_t)((double)from - model_ns) : 0;
}

static const char whole[] = "a request of one token, us";
static const char over[] = "the same without what the model took, us";

static void ask_server(uint16_t port, const char *name)
{
        static uint32_t all[REQUESTS], rest[REQUESTS];
        int fd = -1;

        /* llama-server closes a connection after 100 requests. */
        for (uint32_t i = 0; i < REQUESTS; i++) {
                if (i % 50 == 0) {
                        close(fd);
                        fd = http_connect(port);
                }
                ask_shortly(fd, &all[i], &rest[i]);
        }
        close(fd);
        table_add(whole, name, "", all, REQUESTS);
        table_add(over, name, "", rest, REQUESTS);
}

static void ask_daemon(void)
{
        static uint32_t all[REQUESTS], rest[REQUESTS];
        const struct smv_message message = { "user", WORDS, sizeof(WORDS) - 1 };
        const struct smv_generate options = {
                SMV_SIZE(smv_generate), .messages = &message,       .message_count = 1,
                .max_tokens = 1,        .set = SMV_SET_TEMPERATURE,
        };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;
        uint64_t took;

        for (uint32_t i = 0; i < REQUESTS; i++) {
                uint64_t from = sys_clock_ns();

                must(!smv_generate(b.client, &options, &stream), "a short request failed");
                do
                        must(smv_next(b.client, &event, SILENCE_MS) == 1, "nothing comes");
                while (event.kind != SMV_EVENT_END);
                from = sys_clock_ns() - from;
                took = event.queued_ns + event.prefill_ns + event.decode_ns;
                all[i] = (uint32_t)from;
                rest[i] = from > took ? (uint32_t)(from - took) : 0;
        }
        table_add(whole, "socket client", "", all, REQUESTS);
        table_add(over, "socket client", "", rest, REQUESTS);
}

static pid_t start_llama(uint16_t port)
{
        char text[8], log[] = "/dev/null";
        const char *const none[] = { NULL },
                          *flags[] = { "-m", b.model, "--host", "127.0.0.1", "--port",
                                       text, "-np",   "4",      NULL };
        pid_t pid;

        snprintf(text, sizeof(text), "%u", (unsigned)port);
        pid = child_spawn(b.llama, none, flags, log);
        for (int i = 0; i < 1000 && http_ask(port, "GET /health", "") != 200; i++)
                poll(NULL, 0, 50);
        return pid;
}

static void part_request(void)
{
        const uint16_t port = 18577;
        pid_t llama = b.llama ? start_llama(port) : 0;
        uint64_t spent;

        open_daemon("0");
        ask_daemon();
        spent = own_bridge_ns();
        ask_server(own_bridge_port(), "samovar-http");
        spent = own_bridge_ns() - spent;
        table_add_one("us of processor", "samovar-http, for a request of one token", "",
                      (double)spent / 1e3 / REQUESTS);
        if (llama > 0) {
                ask_server(port, "llama-server");
                kill(llama, SIGKILL);
                waitpid(llama, NULL, 0);
        }
        close_daemon();
}

/* ---- rounds ---- */

static const struct {
        const char *name;
        void (*round)(void);
} parts[] = {
        { "stream", part_stream }, { "serve", part_serve }, { "first", part_first },
        { "crowd", part_crowd },   { "leave", part_leave }, { "request", part_request },
};
#define PARTS (sizeof(parts) / sizeof(*parts))

static int wanted(int count, char **names, const char *name)
{
        for (int i = 0; i < count; i++)
                if (!strcmp(names[i], name))
                        return 1;
        return count == 0;
}

static void print_machine(const char *when)
{
        struct utsname name;
        double loads[3] = { 0 };

        uname(&name);
        (void)getloadavg(loads, 3);
        printf("%s: %s %s, %ld processors, load %.2f\n", when, name.machine, name.release,
               sysconf(_SC_NPROCESSORS_ONLN), loads[0]);
        fflush(stdout);
}

static void make_socket(void)
{
        strcpy(b.directory, "/tmp/bench-http-XXXXXX");
        must(mkdtemp(b.directory) != NULL, "mkdtemp");
        snprintf(b.socket, sizeof(b.socket), "%s/sock", b.directory);
        b.shared = mmap(NULL, sizeof(*b.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
        must(b.shared != MAP_FAILED, "mmap");
}

static void remove_socket(void)
{
        char lock[sizeof(b.socket) + sizeof(".lock")];

        snprintf(lock, sizeof(lock), "%s.lock", b.socket);
        unlink(lock);
        unlink(b.socket);
        rmdir(b.directory);
}

int main(int argc, char **argv)
{
        const struct rlimit files = { 8192, 8192 };
        int rounds = 3, option;

        while ((option = getopt(argc, argv, "+r:l:")) > 0) {
                if (option == 'r' && atoi(optarg) > 0 && atoi(optarg) <= 64)
                        rounds = atoi(optarg);
                else if (option == 'l')
                        b.llama = optarg;
                else
                        optind = argc;
        }
        if (optind + 3 > argc)
                return fputs("usage: bench-http [-r ROUNDS] [-l LLAMA_SERVER] SAMOVARD "
                             "SAMOVAR_HTTP MODEL [PART ...]\n",
                             stderr),
                       2;
        b.samovard = argv[optind];
        b.bridge = argv[optind + 1];
        b.model = argv[optind + 2];
        signal(SIGPIPE, SIG_IGN);
        must(!setrlimit(RLIMIT_NOFILE, &files), "setrlimit");
        make_socket();
        print_machine("before");
        for (int i = 0; i < rounds; i++)
                for (size_t j = 0; j < PARTS; j++)
                        if (wanted(argc - optind - 3, argv + optind + 3, parts[j].name))
                                parts[j].round();
        print_machine("after");
        table_print();
        remove_socket();
        return 0;
}
