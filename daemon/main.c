/*
 * samovard: reads flags, makes the parts, runs them, and takes everything down in reverse order.
 *
 * Like opening.c, inspect.c and preview.c, this file may depend on all others.  Nothing is decided
 * at run time: limits come from the config, and sizes follow from them and from the model.  They
 * are printed on one line before anything large is allocated.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/board.h"
#include "daemon/config.h"
#include "daemon/edge/edge.h"
#include "daemon/edge/listener.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/waker.h"
#include "daemon/error.h"
#include "daemon/inspect.h"
#include "daemon/log.h"
#include "daemon/opening.h"
#include "daemon/preview.h"
#include "daemon/shipped.h"
#include "daemon/sys.h"
#include "daemon/text/chat.h"
#include "daemon/text/scribe.h"
#include "daemon/why.h"

struct house {
        struct config config;
        struct opening opening;
        struct kernels *kernels;
        struct kernels *host; /* NULL, or the backend of the layers that are not on `kernels` */
        struct stats stats;
        int bell;
        struct board *board;
        struct mailbox *to_engine, *retired, *to_waker, *to_loop, *to_scribe, *from_scribe;
        struct loop *loop;
        struct edge *edge;
        struct listener *listener;
        char socket[256]; /* the path it listens on; empty: it does not listen */
        struct engine *engine;
        struct waker *waker;
        struct scribe *scribe;
        char load_why[256]; /* written by the engine until engine_join() */
        char library[4096]; /* path of the backend's library, if it has one */
};

static bool may_be_cpu(const struct config *config)
{
        return !strcmp(config->backend, "auto");
}

static bool wants_gpu(const struct config *config)
{
        return config->gpu_layers && (may_be_cpu(config) || !strcmp(config->backend, "cuda"));
}

static int open_gpu(struct house *house, struct kernels_conf conf)
{
        char *why = house->opening.why;
        size_t why_bytes = sizeof(house->opening.why);
        int r = 0;

        conf.library = house->config.backend_library;
        if (!conf.library) {
                r = shipped_library(house->library, sizeof(house->library), why, why_bytes);
                conf.library = house->library;
        }
        /* How many pages it has space for is known only after it is open. */
        if (!house->config.kv_bytes)
                conf.pages_max = blocks_for(house->opening.served.context);
        if (!r && (r = kernels_open("cuda", &conf, &house->kernels)))
                why_say(why, why_bytes, r, "--backend cuda: %s",
                        *kernels_why() ? kernels_why() : strerror(-r));
        return r;
}

/* Opens a backend that computes in the host's memory. */
static int open_on_host(struct house *house, const char *name, const struct kernels_conf *conf,
                        struct kernels **ret_kernels)
{
        int r = kernels_open(name, conf, ret_kernels);

        if (r)
                snprintf(house->opening.why, sizeof(house->opening.why),
                         "--backend %s --isa %s: %s", name, house->config.isa, strerror(-r));
        return r;
}

static void close_kernels(struct kernels **kernels)
{
        if (*kernels)
                (*kernels)->close(*kernels);
        *kernels = NULL;
}

/* Plans the backend's memory; the remaining layers go to the cpu. */
static int share_layers(struct house *house, struct kernels_conf *conf)
{
        struct opening *o = &house->opening;
        int r = opening_plan(o, house->kernels);

        if (r || !o->model_conf.host_layers)
                return r;
        if (!house->config.kv_bytes)
                conf->pages_max = blocks_for(o->served.context);
        r = open_on_host(house, "cpu", conf, &house->host);
        o->model_conf.host = house->host;
        return r;
}

/* Uses the cpu if there is no GPU, or if the GPU has no space for a layer. */
static int open_cpu_instead(struct house *house, const struct kernels_conf *conf, int r)
{
        log_event(r == -ENOENT ? LOG_DEBUG : LOG_INFO, "backend name=cpu why=%s",
                  house->opening.why);
        house->opening.why[0] = '\0';
        close_kernels(&house->kernels);
        r = opening_plan(&house->opening, NULL);
        return r ? r : open_on_host(house, "cpu", conf, &house->kernels);
}

static int open_backend(struct house *house, struct kernels_conf *conf)
{
        const struct config *config = &house->config;
        int r;

        if (!wants_gpu(config))
                return open_on_host(house, strcmp(config->backend, "ref") ? "cpu" : "ref", conf,
                                    &house->kernels);
        r = open_gpu(house, *conf);
        if (r)
                return may_be_cpu(config) ? open_cpu_instead(house, conf, r) : r;
        r = share_layers(house, conf);
        if (r == OPENING_E_NO_ROOM)
                return may_be_cpu(config) ? open_cpu_instead(house, conf, r) : -EINVAL;
        return r;
}

/*
 * A text for people: in `status`, and in the log if a GPU is used.  The GPU's backend may also
 * report an extra library that it uses or lacks.
 */
static void tell_backend(struct house *house)
{
        const struct opening *o = &house->opening;
        uint32_t layers = o->served.traits.layers, host = o->model_conf.host_layers;
        char *to = house->opening.served.backend;
        size_t bytes = sizeof(house->opening.served.backend);

        if (!house->host) {
                snprintf(to, bytes, "%s", house->kernels->name);
        } else {
                snprintf(to, bytes, "%s %u of %u layers, %s %u", house->kernels->name,
                         layers - host, layers, house->host->name, host);
        }
        if (house->kernels->memory && o->fewer[0])
                log_info("backend name=%s why=%s", to, o->fewer);
        else if (house->kernels->memory)
                log_info("backend name=%s", to);
        if (house->kernels->about)
                log_info("backend-uses %s", house->kernels->about);
        if (house->kernels->missing)
                log_warn("backend-lacks why=%s", house->kernels->missing);
}

static int open_kernels(struct house *house)
{
        const struct config *config = &house->config;
        uint32_t pages = blocks_for(house->opening.served.context);
        uint32_t blocks = house->opening.sched.blocks;
        struct kernels_conf conf = {
                .threads = config->threads,
                .pin = config->pin == CONFIG_PIN_AUTO,
                .isa = config->isa,
                .rows_max = config->step_tokens,
                .slots_max = config->max_seqs,
                .pages_max = pages < blocks ? pages : blocks,
                .vocab_max = house->opening.served.traits.vocab,
                .wants_max = config->max_seqs,
                .deterministic = config->deterministic,
        };

        return open_backend(house, &conf);
}

static int open_model(struct house *house)
{
        char what[256];
        int r;

        r = model_open(house->opening.checkpoint, &house->opening.served.traits, house->kernels,
                       &house->opening.model_conf, &house->opening.served.model, what,
                       sizeof(what));
        if (r)
                return opening_blame(&house->opening, house->opening.path, what, r);
        counter_set(&house->stats.load_total, model_to_load(house->opening.served.model));
        return 0;
}

/* For --check; otherwise the engine loads the weights. */
static int check_weights(struct house *house)
{
        const struct weights_conf conf = { .way = (enum load_way)house->config.load,
                                           .threads = house->config.threads };
        enum load_way way;
        char what[256];
        int r = model_load(house->opening.served.model, &conf, &way, what, sizeof(what));

        return r ? opening_blame(&house->opening, house->opening.path, what, r) : 0;
}

/* Each has space for all mails that can be under way: mailbox.h says which. */
static int open_mailboxes(struct house *house)
{
        uint32_t requests = house->opening.sched.requests_max,
                 channels = house->opening.sched.channels,
                 anchors = house->opening.sched.prefix.anchors;
        int r;

        house->bell = sys_eventfd();
        if (house->bell < 0)
                return error_pass(house->bell);
        /*
         * An anchor is lifted once for each request that was to set it.  The request may never have
         * been submitted, if its peer was lost while the reply was sent.  The anchor may also be
         * set already.
         */
        r = mailbox_new(3 * requests + anchors + 3 * channels + 1, -1, &house->to_engine);
        if (!r)
                r = mailbox_new(3 * requests, -1, &house->retired);
        if (!r)
                r = mailbox_new(2 * channels + 2, -1, &house->to_waker);
        if (!r)
                r = mailbox_new(2 * channels + 2, house->bell, &house->to_loop);
        if (!r)
                r = mailbox_new(requests + 1, -1, &house->to_scribe);
        if (!r)
                r = mailbox_new(requests + 1, house->bell, &house->from_scribe);
        return error_pass(r);
}

static uint64_t fresh_seed(void)
{
        uint64_t seed = 0;

        if (sys_random(&seed, sizeof(seed)))
                seed = sys_clock_ns();
        return seed;
}

static int open_edge(struct house *house)
{
        const struct edge_conf conf = {
                .config = &house->config,
                .loop = house->loop,
                .admit = { .sched = house->opening.sched,
                           .max_tokens = house->config.max_tokens,
                           .requests_max = house->config.requests,
                           .record_bytes_max = publish_record_bytes_max,
                           .end_bytes_max = publish_end_bytes_max,
                           .seed = fresh_seed },
                .served = &house->opening.served,
                .stats = &house->stats,
                .board = house->board,
                .bell = house->bell,
                .to_engine = house->to_engine,
                .from_engine = house->retired,
                .from_waker = house->to_loop,
                .to_scribe = house->to_scribe,
                .from_scribe = house->from_scribe,
                .started_ns = sys_clock_ns(),
        };

        return error_pass(edge_new(&conf, &house->edge));
}

static int open_listener(struct house *house)
{
        const struct listener_conf conf = { .path = house->socket,
                                            .mode = house->config.socket_mode,
                                            .group = house->config.socket_group };
        int r;

        if (house->config.fd >= 0) {
                edge_arrive(house->edge, house->config.fd);
                return 0;
        }
        if (house->config.socket) {
                snprintf(house->socket, sizeof(house->socket), "%s", house->config.socket);
                r = strlen(house->config.socket) < sizeof(house->socket) ? 0 : -ENAMETOOLONG;
        } else {
                r = listener_default_path(house->socket, sizeof(house->socket));
        }
        if (r) {
                snprintf(house->opening.why, sizeof(house->opening.why), "--socket: %s",
                         strerror(-r));
                return r;
        }
        r = listener_open(house->edge, &conf, &house->listener, house->opening.why,
                          sizeof(house->opening.why));
        return r == LISTENER_E_HELD ? -EADDRINUSE : r;
}

static int start_threads(struct house *house)
{
        struct engine_conf conf = {
                .sched = house->opening.sched,
                .served = &house->opening.served,
                .loading = { .way = (enum load_way)house->config.load,
                             .threads = house->config.threads,
                             .why = house->load_why,
                             .why_bytes = sizeof(house->load_why) },
                .inbox = house->to_engine,
                .waker = house->to_waker,
                .loop = house->retired,
                .stats = &house->stats,
                .board = house->board,
                .clock_ns = sys_clock_ns,
        };
        int r;

        r = scribe_start(house->to_scribe, house->from_scribe, &house->scribe);
        if (!r)
                r = waker_start(house->to_waker, house->to_loop, &house->stats, &house->waker);
        conf.stand_in = house->waker;
        if (!r)
                r = engine_start(&conf, &house->engine);
        return error_pass(r);
}

/* Threads that were started before a failure still wait for their last mail. */
static void stop_threads(struct house *house, bool by_edge)
{
        const struct mail stop = { .kind = MAIL_STOP }, stopped = { .kind = MAIL_STOPPED };

        if (house->engine && !by_edge)
                mailbox_post(house->to_engine, &stop);
        house->engine = engine_join(house->engine);
        if (house->waker && !by_edge)
                mailbox_post(house->to_waker, &stopped);
        house->waker = waker_join(house->waker);
        if (house->scribe && !by_edge)
                mailbox_post(house->to_scribe, &stop);
        house->scribe = scribe_join(house->scribe);
}

static void on_stop(void *arg)
{
        struct house *house = arg;

        log_info("stopping");
        edge_drain(house->edge);
        /* Requests that wait for the weights would not finish in time, so they end now. */
        if (counter_get(&house->stats.load_bytes) < counter_get(&house->stats.load_total))
                edge_drain(house->edge);
}

/*
 * For each channel: a socket and the two segments of its ring.  This includes new connections that
 * arrive while old ones are still closing.
 */
static void want_descriptors(const struct house *house)
{
        uint64_t wanted = 3ull * house->opening.sched.channels + 64;
        int64_t have = sys_want_descriptors(wanted);

        if (have < (int64_t)wanted)
                log_warn("few_descriptors wanted=%llu have=%lld; connections=%u may be refused",
                         (unsigned long long)wanted, (long long)have, house->config.connections);
}

static int run(struct house *house)
{
        int r;

        want_descriptors(house);
        r = open_mailboxes(house);
        if (!r)
                r = board_new(house->config.connections, &house->board);
        if (!r)
                r = loop_new(&house->loop);
        if (!r)
                r = open_edge(house);
        if (!r)
                r = loop_signal(house->loop, SIGTERM, on_stop, house);
        if (!r)
                r = loop_signal(house->loop, SIGINT, on_stop, house);
        if (!r)
                r = open_listener(house);
        if (!r)
                r = start_threads(house);
        if (r)
                return r;
        if (house->listener)
                log_info("listening socket=%s pid=%d", house->socket, (int)getpid());
        r = edge_run(house->edge);
        stop_threads(house, true);
        if (r && house->load_why[0])
                return opening_blame(&house->opening, house->opening.path, house->load_why, r);
        return error_pass(r);
}

static void close_house(struct house *house)
{
        stop_threads(house, false);
        listener_close(house->listener);
        edge_free(house->edge);
        loop_free(house->loop);
        mailbox_free(house->from_scribe);
        mailbox_free(house->to_scribe);
        mailbox_free(house->to_loop);
        mailbox_free(house->retired);
        mailbox_free(house->to_waker);
        mailbox_free(house->to_engine);
        board_free(house->board);
        sys_close(house->bell);
        model_close(house->opening.served.model);
        close_kernels(&house->kernels);
        close_kernels(&house->host);
        opening_close(&house->opening);
        config_deinit(&house->config);
}

/* The model is served anyway. */
static void warn_of_template(const struct served *served)
{
        if (!chat_is_absent(served->chat) && chat_missing(served->chat))
                log_warn("no_template model=%s why=\"%s\"", served->name,
                         chat_missing(served->chat));
}

static int start(struct house *house, int argc, char **argv)
{
        int r;

        r = config_read(&house->config, argc, argv, house->opening.why, sizeof(house->opening.why));
        if (r)
                return r;
        if (house->config.help) {
                config_help(stdout);
                return 0;
        }
        if (house->config.version) {
                printf("samovard %s\n", SAMOVAR_VERSION);
                return 0;
        }
        log_open(house->config.log_level);
        if (house->config.inspect)
                return inspect(&house->opening, stdout);
        if (house->config.preview)
                return preview(&house->opening, stdout);
        r = opening_checkpoint(&house->opening);
        if (!r)
                r = opening_traits(&house->opening);
        if (!r)
                r = opening_tokenizer(&house->opening);
        if (!r)
                r = opening_plan(&house->opening, NULL);
        if (!r)
                r = open_kernels(house);
        if (r)
                return r;
        warn_of_template(&house->opening.served);
        if (house->config.check)
                opening_print(&house->opening, stdout);
        else if (house->config.log_level >= LOG_INFO)
                opening_print(&house->opening, stderr);
        tell_backend(house);
        r = open_model(house);
        if (r)
                return r;
        return house->config.check ? check_weights(house) : run(house);
}

/*
 * Returns the exit status (docs/users.md), and prints a line if the user can fix something.  If a
 * backend was lost, there is nothing to fix here: a new process may get it back, so the exit status
 * tells the supervisor to restart us.
 */
static int tell(const struct house *house, int r)
{
        const char *lost = house->kernels ? house->kernels->lost(house->kernels) : NULL;

        if (r >= 0)
                return r ? EXIT_FAILURE : EXIT_SUCCESS;
        if (lost)
                fprintf(stderr, "samovard: %s\n", lost);
        else if (house->opening.why[0])
                fprintf(stderr, "samovard: %s\n", house->opening.why);
        else
                fprintf(stderr, "samovard: %s (%s)\n", strerror(-r), error_trail());
        return lost ? EX_TEMPFAIL : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
        struct house house = { .bell = -1, .opening.config = &house.config };
        int status;

        signal(SIGPIPE, SIG_IGN);
        status = tell(&house, start(&house, argc, argv));
        close_house(&house);
        return status;
}
