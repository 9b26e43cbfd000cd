#include "bench/road.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/edge/edge.h"
#include "daemon/edge/listener.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/waker.h"
#include "daemon/log.h"
#include "daemon/sys.h"
#include "daemon/text/scribe.h"
#include "daemon/text/tokenizer.h"

#define BLOCK 16u

struct road {
        struct config config;
        struct sched_conf sched;
        struct served served;
        struct road_facts *facts;
        int bell;
        struct board *board;
        struct mailbox *to_engine, *retired, *to_waker, *to_loop, *to_scribe, *from_scribe;
        struct loop *loop;
        struct edge *edge;
        struct listener *listener;
        struct engine *engine;
        struct waker *waker;
        struct scribe *scribe;
};

/*
 * ring_stall() does not count stalls, so the linker puts this function in front of it
 * (meson.build).
 */
static struct road_facts *counting;
int __real_ring_stall(struct ring_writer *writer);
int __wrap_ring_stall(struct ring_writer *writer);

int __wrap_ring_stall(struct ring_writer *writer)
{
        int moved = __real_ring_stall(writer);

        if (!moved && counting)
                counter_add(&counting->stalls, 1);
        return moved;
}

/* Limits so high that no bench reaches them. */
static int set_config(struct road *road, const struct road_conf *conf)
{
        struct config *config = &road->config;
        int r = config_init(config);

        if (r)
                return r;
        config->max_seqs = conf->requests;
        config->step_tokens = conf->requests + 64;
        config->depth = conf->depth;
        config->ctx = conf->context;
        config->connections = config->uid_connections = conf->connections;
        config->requests = config->uid_requests = conf->requests;
        config->uid_prompt_bytes = UINT64_C(16) << 30;
        config->uid_ring_bytes = UINT64_C(16) << 30;
        config->uid_connects_burst = config->uid_connects_per_s = 65536;
        config->log_level = LOG_WARN;
        return 0;
}

static int open_served(struct road *road, const struct road_conf *conf)
{
        struct null_conf model = conf->model;
        struct served *served = &road->served;

        strcpy(served->name, "null");
        served->context = conf->context;
        served->traits = (struct traits){ .vocab = NULL_VOCAB,
                                          .context = conf->context,
                                          .bos = TRAITS_NO_TOKEN };
        road->sched = (struct sched_conf){
                .blocks = conf->requests * ((conf->context + BLOCK - 1) / BLOCK),
                .slots = conf->requests,
                .rows = road->config.step_tokens,
                .context = conf->context,
                .depth = conf->depth,
                .requests_max = conf->requests,
                .channels = conf->connections * 2,
                .stall_ns = road->config.stall_ms * 1000000ull,
        };
        model.rows_max = road->sched.rows;
        model.stats = &road->facts->stats;
        model.facts = &road->facts->model;
        if (tokenizer_open_bytes(NULL_VOCAB, &served->tokenizer))
                return -ENOMEM;
        return null_model_new(&model, &served->model);
}

static int open_between(struct road *road)
{
        uint32_t requests = road->sched.requests_max, channels = road->sched.channels;
        int r;

        road->bell = sys_eventfd();
        r = mailbox_new(2 * requests + 2 * channels + 1, -1, &road->to_engine);
        r = r ? r : mailbox_new(3 * requests, -1, &road->retired);
        r = r ? r : mailbox_new(2 * channels + 2, -1, &road->to_waker);
        r = r ? r : mailbox_new(2 * channels + 2, road->bell, &road->to_loop);
        r = r ? r : mailbox_new(requests + 1, -1, &road->to_scribe);
        r = r ? r : mailbox_new(requests + 1, road->bell, &road->from_scribe);
        return r ? r : board_new(road->config.connections, &road->board);
}

static uint64_t no_seed(void)
{
        return 1;
}

static int open_edge(struct road *road, const char *socket)
{
        const struct edge_conf conf = {
                .config = &road->config,
                .loop = road->loop,
                .admit = { .sched = road->sched,
                           .max_tokens = road->config.max_tokens,
                           .requests_max = road->config.requests,
                           .record_bytes_max = publish_record_bytes_max,
                           .end_bytes_max = publish_end_bytes_max,
                           .seed = no_seed },
                .served = &road->served,
                .stats = &road->facts->stats,
                .board = road->board,
                .bell = road->bell,
                .to_engine = road->to_engine,
                .from_engine = road->retired,
                .from_waker = road->to_loop,
                .to_scribe = road->to_scribe,
                .from_scribe = road->from_scribe,
                .started_ns = sys_clock_ns(),
        };
        const struct listener_conf at = { .path = socket, .mode = 0600 };
        char why[256] = "";
        int r;

        r = edge_new(&conf, &road->edge);
        if (!r)
                r = listener_open(road->edge, &at, &road->listener, why, sizeof(why));
        if (r)
                fprintf(stderr, "road: %s %s\n", strerror(r < 0 ? -r : EADDRINUSE), why);
        return r;
}

static int start_threads(struct road *road)
{
        struct engine_conf conf = {
                .sched = road->sched,
                .served = &road->served,
                .inbox = road->to_engine,
                .waker = road->to_waker,
                .loop = road->retired,
                .stats = &road->facts->stats,
                .board = road->board,
                .clock_ns = sys_clock_ns,
        };
        int r;

        r = scribe_start(road->to_scribe, road->from_scribe, &road->scribe);
        if (!r)
                r = waker_start(road->to_waker, road->to_loop, &road->facts->stats, &road->waker);
        conf.stand_in = road->waker;
        return r ? r : engine_start(&conf, &road->engine);
}

static void on_stop(void *arg)
{
        struct road *road = arg;

        edge_drain(road->edge);
}

static void print_channel(struct channel *channel)
{
        const struct smv_ring *ring = channel->segment_d.at;
        const struct smv_ring_control *control = channel->segment_c.at;

        fprintf(stderr,
                "ring %u: bell %d tail %llu head %llu wake_position %lld state %u; waking %d "
                "calling %d draining %d nudging %d line %u peer %d\n",
                channel->number, (int)channel->bell,
                (unsigned long long)__atomic_load_n(&ring->tail, __ATOMIC_RELAXED),
                (unsigned long long)ring_head(control),
                (long long)__atomic_load_n(&control->wake_position, __ATOMIC_RELAXED),
                __atomic_load_n(&ring->state, __ATOMIC_RELAXED), channel->waking, channel->calling,
                channel->draining, channel->nudging, channel->line.word, channel->peer != NULL);
}

static void on_show(void *arg)
{
        struct road *road = arg;

        road_print(road->facts, stderr);
        for (uint32_t i = 0; i < road->edge->channel_count; i++)
                if (road->edge->channels[i])
                        print_channel(road->edge->channels[i]);
}

void road_print(const struct road_facts *facts, FILE *to)
{
        const struct stats *s = &facts->stats;
        const struct null_facts *m = &facts->model;

#define SHOW(c) (unsigned long long)counter_get(&(c))
        fprintf(to,
                "%llu steps (%llu with somebody stalled), %llu tokens, %llu ends, %llu wakes, "
                "%llu doorbells, %llu stalls, %llu meetings (%llu slow, %llu lost, slowest %.1f "
                "ms); running %llu waiting %llu stalled %llu ending %llu\n",
                SHOW(s->steps), SHOW(m->stalled_steps), SHOW(s->tokens_out), SHOW(s->ends),
                SHOW(s->wakes), SHOW(s->doorbells), SHOW(facts->stalls), SHOW(m->meetings),
                SHOW(m->slow_meetings), SHOW(m->lost), (double)counter_get(&m->slowest_ns) / 1e6,
                SHOW(s->running), SHOW(s->waiting), SHOW(s->stalled), SHOW(s->ending));
#undef SHOW
}

int road_open(const struct road_conf *conf, struct road **ret_road)
{
        struct road *road = calloc(1, sizeof(*road));
        int r;

        if (!road)
                return -ENOMEM;
        signal(SIGPIPE, SIG_IGN);
        log_open(LOG_WARN);
        road->facts = counting = conf->facts;
        r = set_config(road, conf);
        if (!r)
                r = open_served(road, conf);
        if (!r)
                r = open_between(road);
        if (!r)
                r = loop_new(&road->loop);
        if (!r)
                r = open_edge(road, conf->socket);
        if (!r)
                r = loop_signal(road->loop, SIGTERM, on_stop, road);
        if (!r)
                r = loop_signal(road->loop, SIGUSR1, on_show, road);
        if (!r)
                r = start_threads(road);
        *ret_road = road;
        if (!r)
                counter_set(&conf->facts->ready, 1);
        return r;
}

int road_run(struct road *road)
{
        int r = edge_run(road->edge);

        road->engine = engine_join(road->engine);
        road->waker = waker_join(road->waker);
        road->scribe = scribe_join(road->scribe);
        return r;
}

struct road *road_close(struct road *road)
{
        if (!road)
                return NULL;
        listener_close(road->listener);
        edge_free(road->edge);
        loop_free(road->loop);
        mailbox_free(road->from_scribe);
        mailbox_free(road->to_scribe);
        mailbox_free(road->to_loop);
        mailbox_free(road->retired);
        mailbox_free(road->to_waker);
        mailbox_free(road->to_engine);
        board_free(road->board);
        sys_close(road->bell);
        null_model_free(road->served.model);
        tokenizer_close(road->served.tokenizer);
        config_deinit(&road->config);
        counting = NULL;
        free(road);
        return NULL;
}

int road_fork(const struct road_conf *conf)
{
        struct road *road = NULL;
        int pid = fork(), r;

        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                r = road_open(conf, &road);
                if (!r)
                        r = road_run(road);
                if (!r)
                        road_close(road);
                _exit(r != 0);
        }
        for (uint32_t i = 0; pid > 0 && !counter_get(&conf->facts->ready); i++) {
                usleep(1000);
                if (i == 10000 || waitpid(pid, NULL, WNOHANG) == pid)
                        return -1;
        }
        return pid;
}

int road_stop(int pid)
{
        int status = -1;

        kill(pid, SIGTERM);
        return waitpid(pid, &status, 0) == pid ? status : -1;
}
