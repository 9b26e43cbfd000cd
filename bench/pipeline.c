#include "bench/pipeline.h"

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
#include "base/log.h"
#include "base/sys.h"
#include "daemon/text/worker.h"
#include "daemon/text/tokenizer.h"

#define BLOCK 16u

struct pipeline {
        struct config config;
        struct sched_conf sched;
        struct served served;
        struct pipeline_facts *facts;
        int bell;
        struct usage_snapshot *usage_snapshot;
        struct mailbox *to_engine, *retired, *to_waker, *to_loop, *to_text_worker,
                *from_text_worker;
        struct loop *loop;
        struct edge *edge;
        struct listener *listener;
        struct engine *engine;
        struct waker *waker;
        struct text_worker *text_worker;
};

/*
 * ring_stall() does not count stalls, so the linker puts this function in front of it
 * (meson.build).
 */
static struct pipeline_facts *counting;
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
static int set_config(struct pipeline *pipeline, const struct pipeline_conf *conf)
{
        struct config *config = &pipeline->config;
        int r = settings_init(&config_table, config);

        if (r)
                return r;
        config->max_seqs = conf->requests;
        config->step_tokens = conf->requests + 64;
        config->pipeline_depth = conf->depth;
        config->ctx = conf->context;
        config->connections = config->uid_connections = conf->connections;
        config->requests = config->uid_requests = conf->requests;
        config->uid_prompt_bytes = UINT64_C(16) << 30;
        config->uid_ring_bytes = UINT64_C(16) << 30;
        config->uid_connects_burst = config->uid_connects_per_s = 65536;
        config->log_level = LOG_WARN;
        return 0;
}

static int open_served(struct pipeline *pipeline, const struct pipeline_conf *conf)
{
        struct null_conf model = conf->model;
        struct served *served = &pipeline->served;

        strcpy(served->name, "null");
        served->context = conf->context;
        served->traits = (struct traits){ .vocab = NULL_VOCAB,
                                          .context = conf->context,
                                          .bos = TRAITS_NO_TOKEN };
        pipeline->sched = (struct sched_conf){
                .blocks = conf->requests * ((conf->context + BLOCK - 1) / BLOCK),
                .slots = conf->slots ? conf->slots : conf->requests,
                .rows = pipeline->config.step_tokens,
                .context = conf->context,
                .depth = conf->depth,
                .requests_max = conf->requests,
                .channels = conf->connections * 2,
                .stall_timeout_ns = pipeline->config.stall_timeout_ms * 1000000ull,
                .lead_ns = 1000000000ull,
        };
        model.rows_max = pipeline->sched.rows;
        model.stats = &pipeline->facts->stats;
        model.facts = &pipeline->facts->model;
        if (tokenizer_open_bytes(NULL_VOCAB, &served->tokenizer))
                return -ENOMEM;
        return null_model_new(&model, &served->model);
}

static int open_between(struct pipeline *pipeline)
{
        uint32_t requests = pipeline->sched.requests_max, channels = pipeline->sched.channels;
        int r;

        pipeline->bell = sys_eventfd();
        r = mailbox_new(2 * requests + 2 * channels + 1, -1, &pipeline->to_engine);
        r = r ? r : mailbox_new(3 * requests, -1, &pipeline->retired);
        r = r ? r : mailbox_new(2 * channels + 2, -1, &pipeline->to_waker);
        r = r ? r : mailbox_new(2 * channels + 2, pipeline->bell, &pipeline->to_loop);
        r = r ? r : mailbox_new(requests + 1, -1, &pipeline->to_text_worker);
        r = r ? r : mailbox_new(requests + 1, pipeline->bell, &pipeline->from_text_worker);
        return r ? r : usage_snapshot_new(pipeline->config.connections, &pipeline->usage_snapshot);
}

static uint64_t no_seed(void)
{
        return 1;
}

static int open_edge(struct pipeline *pipeline, const char *socket)
{
        const struct edge_conf conf = {
                .config = &pipeline->config,
                .loop = pipeline->loop,
                .admission = { .sched = pipeline->sched,
                               .max_tokens = pipeline->config.max_tokens,
                               .requests_max = pipeline->config.requests,
                               .record_bytes_max = publish_record_bytes_max,
                               .end_bytes_max = publish_end_bytes_max,
                               .seed = no_seed },
                .served = &pipeline->served,
                .stats = &pipeline->facts->stats,
                .usage_snapshot = pipeline->usage_snapshot,
                .bell = pipeline->bell,
                .to_engine = pipeline->to_engine,
                .from_engine = pipeline->retired,
                .from_waker = pipeline->to_loop,
                .to_text_worker = pipeline->to_text_worker,
                .from_text_worker = pipeline->from_text_worker,
                .started_ns = sys_clock_ns(),
        };
        const struct listener_conf at = { .path = socket, .mode = 0600, .passed_fd = -1 };
        char why[256] = "";
        int r;

        r = edge_new(&conf, &pipeline->edge);
        if (!r)
                r = listener_new(&at, &pipeline->listener, why, sizeof(why));
        if (!r)
                r = listener_start(pipeline->listener, pipeline->edge, why, sizeof(why));
        if (r)
                fprintf(stderr, "road: %s %s\n", strerror(r < 0 ? -r : EADDRINUSE), why);
        return r;
}

static int start_threads(struct pipeline *pipeline)
{
        struct engine_conf conf = {
                .sched = pipeline->sched,
                .served = &pipeline->served,
                .inbox = pipeline->to_engine,
                .waker = pipeline->to_waker,
                .loop = pipeline->retired,
                .stats = &pipeline->facts->stats,
                .usage_snapshot = pipeline->usage_snapshot,
                .clock_ns = sys_clock_ns,
        };
        int r;

        r = text_worker_start(pipeline->to_text_worker, pipeline->from_text_worker,
                              &pipeline->text_worker);
        if (!r)
                r = waker_start(pipeline->to_waker, pipeline->to_loop, &pipeline->facts->stats,
                                &pipeline->waker);
        conf.wake_inline = pipeline->waker;
        return r ? r : engine_start(&conf, &pipeline->engine);
}

static void on_stop(void *arg)
{
        struct pipeline *pipeline = arg;

        edge_drain(pipeline->edge);
}

static void print_channel(struct channel *channel)
{
        const struct smv_ring *ring = channel->segment_d.at;
        const struct smv_ring_control *control = channel->segment_c.at;

        fprintf(stderr,
                "ring %u: bell %d tail %llu head %llu wake_position %lld state %u; waking %d "
                "calling %d draining %d resume_sent %d send_lock %u peer %d\n",
                channel->number, (int)channel->bell,
                (unsigned long long)__atomic_load_n(&ring->tail, __ATOMIC_RELAXED),
                (unsigned long long)ring_head(control),
                (long long)__atomic_load_n(&control->wake_position, __ATOMIC_RELAXED),
                __atomic_load_n(&ring->state, __ATOMIC_RELAXED), channel->waking, channel->calling,
                channel->draining, channel->resume_sent, channel->send_lock.word,
                channel->owner != NULL);
}

static void on_show(void *arg)
{
        struct pipeline *pipeline = arg;

        pipeline_print(pipeline->facts, stderr);
        for (uint32_t i = 0; i < pipeline->edge->channel_count; i++)
                if (pipeline->edge->channels[i])
                        print_channel(pipeline->edge->channels[i]);
}

void pipeline_print(const struct pipeline_facts *facts, FILE *to)
{
        const struct stats *s = &facts->stats;
        const struct null_facts *m = &facts->model;

#define SHOW(c) (unsigned long long)counter_get(&(c))
        fprintf(to,
                "%llu steps (%llu with somebody stalled), %llu tokens, %llu ends, %llu wakes, "
                "%llu doorbells, %llu stalls, %llu meetings (%llu slow, %llu lost, slowest %.1f "
                "ms); running %llu waiting %llu stalled %llu ending %llu\n",
                SHOW(s->steps), SHOW(m->stalled_steps), SHOW(s->tokens_out), SHOW(s->streams_ended),
                SHOW(s->wakes), SHOW(s->doorbells), SHOW(facts->stalls), SHOW(m->meetings),
                SHOW(m->slow_meetings), SHOW(m->lost), (double)counter_get(&m->slowest_ns) / 1e6,
                SHOW(s->running), SHOW(s->waiting), SHOW(s->stalled), SHOW(s->ending));
#undef SHOW
}

int pipeline_open(const struct pipeline_conf *conf, struct pipeline **ret_road)
{
        struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
        int r;

        if (!pipeline)
                return -ENOMEM;
        signal(SIGPIPE, SIG_IGN);
        log_open(LOG_WARN);
        pipeline->facts = counting = conf->facts;
        r = set_config(pipeline, conf);
        if (!r)
                r = open_served(pipeline, conf);
        if (!r)
                r = open_between(pipeline);
        if (!r)
                r = loop_new(&pipeline->loop);
        if (!r)
                r = open_edge(pipeline, conf->socket);
        if (!r)
                r = loop_signal(pipeline->loop, SIGTERM, on_stop, pipeline);
        if (!r)
                r = loop_signal(pipeline->loop, SIGUSR1, on_show, pipeline);
        if (!r)
                r = start_threads(pipeline);
        *ret_road = pipeline;
        if (!r)
                counter_set(&conf->facts->ready, 1);
        return r;
}

int pipeline_run(struct pipeline *pipeline)
{
        int r = edge_run(pipeline->edge);

        pipeline->engine = engine_join(pipeline->engine);
        pipeline->waker = waker_join(pipeline->waker);
        pipeline->text_worker = text_worker_join(pipeline->text_worker);
        return r;
}

struct pipeline *pipeline_close(struct pipeline *pipeline)
{
        if (!pipeline)
                return NULL;
        listener_close(pipeline->listener);
        edge_free(pipeline->edge);
        loop_free(pipeline->loop);
        mailbox_free(pipeline->from_text_worker);
        mailbox_free(pipeline->to_text_worker);
        mailbox_free(pipeline->to_loop);
        mailbox_free(pipeline->retired);
        mailbox_free(pipeline->to_waker);
        mailbox_free(pipeline->to_engine);
        usage_snapshot_free(pipeline->usage_snapshot);
        sys_close(pipeline->bell);
        null_model_free(pipeline->served.model);
        tokenizer_close(pipeline->served.tokenizer);
        settings_deinit(&config_table, &pipeline->config);
        counting = NULL;
        free(pipeline);
        return NULL;
}

int pipeline_fork(const struct pipeline_conf *conf)
{
        struct pipeline *pipeline = NULL;
        int pid = fork(), r;

        if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                r = pipeline_open(conf, &pipeline);
                if (!r)
                        r = pipeline_run(pipeline);
                if (!r)
                        pipeline_close(pipeline);
                _exit(r != 0);
        }
        for (uint32_t i = 0; pid > 0 && !counter_get(&conf->facts->ready); i++) {
                usleep(1000);
                if (i == 10000 || waitpid(pid, NULL, WNOHANG) == pid)
                        return -1;
        }
        return pid;
}

int pipeline_stop(int pid)
{
        int status = -1;

        kill(pid, SIGTERM);
        return waitpid(pid, &status, 0) == pid ? status : -1;
}
