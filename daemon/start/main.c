/*
 * samovard: reads flags, makes the parts, runs them, and takes everything down in reverse order.
 *
 * Like all of daemon/start, this file may depend on all others.  Nothing is decided
 * at run time: limits come from the config, and sizes follow from them and from the model.  They
 * are printed on one line before anything large is allocated.
 */
#include <errno.h>
#include <samovar/protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/sys.h"
#include "daemon/edge/accept.h"
#include "daemon/edge/edge.h"
#include "daemon/edge/listener.h"
#include "daemon/edge/subuid.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/waker.h"
#include "daemon/ipc/usage-snapshot.h"
#include "daemon/start/config.h"
#include "daemon/start/inspect.h"
#include "daemon/start/model-setup.h"
#include "daemon/start/render-template.h"
#include "base/service-manager.h"
#include "daemon/start/service.h"
#include "daemon/start/shipped.h"
#include "daemon/text/chat.h"
#include "daemon/text/worker.h"

/* How much longer than its draining another daemon may take to end. */
#define REPLACE_MS 15000u

/* The sockets that a service manager may pass. */
#define SOCKETS_MAX 2u
#define SOCKETS_TAKEN                                                                              \
        "samovard takes 2 at most: its own, and that of the same name and " SMV_CONTROL_SUFFIX

struct daemon {
        int argc;
        char **argv;
        struct config config;
        struct model_setup setup;
        struct kernels *kernels;
        struct kernels *host; /* NULL, or the backend of the layers that are not on `kernels` */
        struct stats stats;
        int bell;
        struct usage_snapshot *usage_snapshot;
        struct mailbox *to_engine, *retired, *to_waker, *to_loop, *to_text_worker,
                *from_text_worker;
        struct loop *loop;
        struct edge *edge;
        struct service_manager manager;
        struct service *service;
        struct listener *listener; /* NULL: it does not listen */
        struct listener *control;  /* stays while the daemon drains; or NULL */
        struct engine *engine;
        struct waker *waker;
        struct text_worker *text_worker;
        char load_why[512]; /* written by the engine until engine_join() */
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

static int open_gpu(struct daemon *daemon, struct kernels_conf conf)
{
        char *why = daemon->setup.why;
        size_t why_bytes = sizeof(daemon->setup.why);
        int r = 0;

        conf.library = daemon->config.backend_library;
        if (!conf.library) {
                r = shipped_library(daemon->library, sizeof(daemon->library), why, why_bytes);
                conf.library = daemon->library;
        }
        /* How many pages it has space for is known only after it is open. */
        if (!daemon->config.kv_bytes)
                conf.pages_max = blocks_for(daemon->setup.served.context);
        if (!r && (r = kernels_open("cuda", &conf, &daemon->kernels)))
                errtext_set(why, why_bytes, r, "backend cuda: %s",
                            *kernels_errtext() ? kernels_errtext() : strerror(-r));
        return r;
}

/* Opens a backend that computes in the host's memory. */
static int open_on_host(struct daemon *daemon, const char *name, const struct kernels_conf *conf,
                        struct kernels **ret_kernels)
{
        int r = kernels_open(name, conf, ret_kernels);

        if (r)
                snprintf(daemon->setup.why, sizeof(daemon->setup.why), "backend %s with isa %s: %s",
                         name, daemon->config.isa, strerror(-r));
        return r;
}

/* A file that the sandbox hides is absent as far as the daemon can see, so say what hides it. */
static int tell_sandbox(struct daemon *daemon, const char *path, int r)
{
        char *why = daemon->setup.why;
        size_t used = strlen(why);
        const char *folder = r ? service_manager_hides(&daemon->manager, path) : NULL;

        if (folder)
                snprintf(why + used, sizeof(daemon->setup.why) - used,
                         "; the unit's ProtectHome= hides %s from the daemon: copy the model to "
                         "/var/lib/samovar/models, or add BindReadOnlyPaths= to the unit "
                         "(docs/guide/install.md, Serve another model)",
                         folder);
        return r;
}

static int open_files(struct daemon *daemon)
{
        struct model_setup *setup = &daemon->setup;
        const char *tokenizer = setup->config->tokenizer;
        int r;

        r = model_setup_checkpoint(setup);
        if (!r)
                r = model_setup_traits(setup);
        if (r)
                return tell_sandbox(daemon, setup->path, r);
        r = model_setup_tokenizer(setup);
        if (r)
                return tell_sandbox(daemon, tokenizer ? tokenizer : setup->path, r);
        r = model_setup_draft(setup);
        return r ? tell_sandbox(daemon, setup->config->draft_model, r) : 0;
}

static void close_kernels(struct kernels **kernels)
{
        if (*kernels)
                (*kernels)->close(*kernels);
        *kernels = NULL;
}

/* Plans the backend's memory; the remaining layers go to the cpu. */
static int share_layers(struct daemon *daemon, struct kernels_conf *conf)
{
        struct model_setup *setup = &daemon->setup;
        int r = model_setup_plan(setup, daemon->kernels);

        if (r || !setup->model_conf.host_layers)
                return r;
        if (!daemon->config.kv_bytes)
                conf->pages_max = blocks_for(setup->served.context);
        conf->row_copies_max = 0; /* the other stage has the logits */
        r = open_on_host(daemon, "cpu", conf, &daemon->host);
        setup->model_conf.host = daemon->host;
        return r;
}

/* Uses the cpu if there is no GPU, or if the GPU has no space for a layer. */
static int open_cpu_instead(struct daemon *daemon, const struct kernels_conf *conf, int r)
{
        char *why = daemon->setup.why;

        log_event(r == -ENOENT ? LOG_DEBUG : LOG_INFO, "backend name=cpu why=%s", why);
        if (daemon->config.swap_bytes)
                return errtext_set(why, sizeof(daemon->setup.why), -EINVAL,
                                   "swap_bytes is for pools on a GPU, but backend auto could use "
                                   "only the cpu; backend cuda says why, or raise kv_bytes "
                                   "instead");
        why[0] = '\0';
        close_kernels(&daemon->kernels);
        r = model_setup_plan(&daemon->setup, NULL);
        return r ? r : open_on_host(daemon, "cpu", conf, &daemon->kernels);
}

static int open_backend(struct daemon *daemon, struct kernels_conf *conf)
{
        const struct config *config = &daemon->config;
        int r;

        if (!wants_gpu(config))
                return open_on_host(daemon, strcmp(config->backend, "ref") ? "cpu" : "ref", conf,
                                    &daemon->kernels);
        r = open_gpu(daemon, *conf);
        if (r)
                return may_be_cpu(config) ? open_cpu_instead(daemon, conf, r) : r;
        r = share_layers(daemon, conf);
        if (r == MODEL_SETUP_E_TOO_SMALL)
                return may_be_cpu(config) ? open_cpu_instead(daemon, conf, r) : -EINVAL;
        return r;
}

/*
 * A text for people: in `status`, and in the log if a GPU is used.  The GPU's backend may also
 * report an extra library that it uses or lacks.
 */
static void tell_backend(struct daemon *daemon)
{
        const struct model_setup *setup = &daemon->setup;
        uint32_t layers = setup->served.traits.layers, host = setup->model_conf.host_layers;
        char *to = daemon->setup.served.backend;
        size_t bytes = sizeof(daemon->setup.served.backend);

        daemon->setup.served.gpu_layers = daemon->kernels->memory ? layers - host : 0;
        if (!daemon->host) {
                snprintf(to, bytes, "%s", daemon->kernels->name);
        } else {
                snprintf(to, bytes, "%s %u of %u layers, %s %u", daemon->kernels->name,
                         layers - host, layers, daemon->host->name, host);
        }
        if (daemon->kernels->memory && setup->fewer[0])
                log_info("backend name=%s why=%s", to, setup->fewer);
        else if (daemon->kernels->memory)
                log_info("backend name=%s", to);
        if (daemon->kernels->about)
                log_info("backend-uses %s", daemon->kernels->about);
        if (daemon->kernels->missing)
                log_warn("backend-lacks why=%s", daemon->kernels->missing);
}

/* The draft model is beside the last layers of the served model. */
static int open_draft(struct daemon *daemon, struct kernels_conf conf)
{
        conf.library = daemon->library[0] ? daemon->library : daemon->config.backend_library;
        conf.pages_max = blocks_for(daemon->setup.served.context);
        return model_setup_draft_open(&daemon->setup, &conf, daemon->kernels);
}

static int open_kernels(struct daemon *daemon)
{
        const struct config *config = &daemon->config;
        uint32_t pages = blocks_for(daemon->setup.served.context);
        uint32_t blocks = daemon->setup.sched.blocks;
        struct kernels_conf conf = {
                .threads = config->threads,
                .pin = config->affinity == CONFIG_AFFINITY_AUTO,
                .isa = config->isa,
                .rows_max = config->step_tokens,
                .groups = daemon->setup.model_conf.windows ? 2 : 1,
                .slots_max = config->max_seqs,
                .pages_max = pages < blocks ? pages : blocks,
                .vocab_max = daemon->setup.served.traits.vocab,
                .wants_max = config->max_seqs + config_draft_rows(config),
                .row_copies_max = config->whole_row_streams,
                .deterministic = config->deterministic,
        };
        int r;

        r = open_backend(daemon, &conf);
        if (!r && daemon->setup.draft)
                r = open_draft(daemon, conf);
        return r;
}

/* The scheduler compares this time with that of the rows that a block saves. */
static void measure_swap(struct daemon *daemon)
{
        struct sched_conf *sched = &daemon->setup.sched;

        if (!sched->prefix.swap_blocks)
                return;
        sched->swap_copy_ns = model_swap_copy_ns(daemon->setup.served.model);
        log_info("swap blocks=%u copy_us=%.1f", sched->prefix.swap_blocks,
                 (double)sched->swap_copy_ns / 1e3);
}

static int open_model(struct daemon *daemon)
{
        char what[256];
        int r;

        r = model_open(daemon->setup.checkpoint, &daemon->setup.served.traits, daemon->kernels,
                       &daemon->setup.model_conf, &daemon->setup.served.model, what, sizeof(what));
        if (r)
                return model_setup_fail(&daemon->setup, daemon->setup.path, what, r);
        counter_set(&daemon->stats.load_total, model_to_load(daemon->setup.served.model));
        measure_swap(daemon);
        return 0;
}

/* For --check; otherwise the engine loads the weights. */
static int check_weights(struct daemon *daemon)
{
        const struct weights_conf conf = { .way = (enum load_way)daemon->config.load,
                                           .threads = daemon->config.threads };
        enum load_way way;
        char what[256];
        int r;

        if (daemon->setup.draft && (r = model_setup_draft_load(&daemon->setup, &conf)))
                return r;
        r = model_load(daemon->setup.served.model, &conf, &way, what, sizeof(what));
        return r ? model_setup_fail(&daemon->setup, daemon->setup.path, what, r) : 0;
}

/* Each has space for all mails that can be under way: daemon/ipc/mailbox.h says which. */
static int open_mailboxes(struct daemon *daemon)
{
        uint32_t requests = daemon->setup.sched.requests_max,
                 channels = daemon->setup.sched.channels, pins = daemon->setup.sched.prefix.pins;
        int r;

        daemon->bell = sys_eventfd();
        if (daemon->bell < 0)
                return error_pass(daemon->bell);
        /*
         * A history is unpinned once for each request that was to pin it.  The request may never
         * have been submitted, if its peer was lost while the reply was sent.  The history may also
         * be pinned already.
         */
        r = mailbox_new(3 * requests + pins + 3 * channels + 3, -1, &daemon->to_engine);
        if (!r)
                r = mailbox_new(3 * requests, -1, &daemon->retired);
        if (!r)
                r = mailbox_new(2 * channels + 3, -1, &daemon->to_waker);
        if (!r)
                r = mailbox_new(2 * channels + 3, daemon->bell, &daemon->to_loop);
        if (!r)
                r = mailbox_new(requests + 1, -1, &daemon->to_text_worker);
        if (!r)
                r = mailbox_new(requests + 1, daemon->bell, &daemon->from_text_worker);
        return error_pass(r);
}

static uint64_t fresh_seed(void)
{
        uint64_t seed = 0;

        if (sys_random(&seed, sizeof(seed)))
                seed = sys_clock_ns();
        return seed;
}

static void drain_listener(void *arg)
{
        struct daemon *daemon = arg;

        if (daemon->listener)
                listener_drain(daemon->listener);
}

static int open_edge(struct daemon *daemon)
{
        const struct edge_conf conf = {
                .config = &daemon->config,
                .loop = daemon->loop,
                .admission = { .sched = daemon->setup.sched,
                               .max_tokens = daemon->config.max_tokens,
                               .requests_max = daemon->config.requests,
                               .draft_tokens = config_draft_rows(&daemon->config)
                                                       ? daemon->config.draft_tokens
                                                       : 0,
                               .record_bytes_max = publish_record_bytes_max,
                               .score_bytes_max = publish_score_bytes_max,
                               .row_bytes_max = publish_row_bytes_max,
                               .ask_bytes_max = publish_ask_bytes_max,
                               .end_bytes_max = publish_end_bytes_max,
                               .parts_bytes_max = publish_parts_bytes_max,
                               .seed = fresh_seed },
                .served = &daemon->setup.served,
                .stats = &daemon->stats,
                .usage_snapshot = daemon->usage_snapshot,
                .bell = daemon->bell,
                .to_engine = daemon->to_engine,
                .from_engine = daemon->retired,
                .from_waker = daemon->to_loop,
                .to_text_worker = daemon->to_text_worker,
                .from_text_worker = daemon->from_text_worker,
                .started_ns = sys_clock_ns(),
                .on_drain = drain_listener,
                .on_drain_arg = daemon,
                .subuid_path = SUBUID_PATH,
        };

        return error_pass(edge_new(&conf, &daemon->edge));
}

/* Which of the two sockets that the service manager passed is the control socket? */
static int sort_sockets(struct daemon *daemon)
{
        struct listener *first = daemon->listener, *second = daemon->control;

        if (listener_is_control_of(second, first))
                return 0;
        if (listener_is_control_of(first, second)) {
                daemon->listener = second;
                daemon->control = first;
                return 0;
        }
        snprintf(daemon->setup.why, sizeof(daemon->setup.why),
                 "the service manager passes the sockets %s and %s; the second one must be at the "
                 "path of the first and " SMV_CONTROL_SUFFIX " (ListenStream=)",
                 listener_path(first), listener_path(second));
        return -EINVAL;
}

/*
 * Makes sure that the socket is ours, and waits for another daemon to leave it if that is asked
 * for.  It also leaves its memory then, so this comes before the memory is planned.
 */
static int claim_socket(struct daemon *daemon)
{
        const struct config *config = &daemon->config;
        char *why = daemon->setup.why;
        size_t why_bytes = sizeof(daemon->setup.why);
        char usual[256];
        struct listener_conf conf = {
                .path = config->socket,
                .mode = config->socket_mode,
                .group = config->socket_group,
                .passed_fd = daemon->manager.passed_count ? daemon->manager.passed_fds[0] : -1,
                .replace_ms = config->replace ? config->drain_timeout_ms + REPLACE_MS : 0,
        };
        int r = 0;

        if (config->fd >= 0 || config->check)
                return 0;
        if (!conf.path) {
                r = listener_default_path(usual, sizeof(usual));
                conf.path = usual;
        }
        if (r) {
                snprintf(why, why_bytes, "socket: %s", strerror(-r));
                return r;
        }
        r = listener_new(&conf, &daemon->listener, why, why_bytes);
        if (!r && daemon->manager.passed_count > 1) {
                conf.passed_fd = daemon->manager.passed_fds[1];
                r = listener_new(&conf, &daemon->control, why, why_bytes);
                if (!r)
                        r = sort_sockets(daemon);
        }
        return r == LISTENER_E_HELD ? -EADDRINUSE : r;
}

static int start_listening(struct daemon *daemon)
{
        char *why = daemon->setup.why;
        size_t why_bytes = sizeof(daemon->setup.why);
        int r;

        if (daemon->listener) {
                r = listener_start(daemon->listener, daemon->edge, why, why_bytes);
                if (!r && daemon->control)
                        r = listener_start(daemon->control, daemon->edge, why, why_bytes);
                return r;
        }
        r = accept_check(daemon->config.fd, why, why_bytes);
        if (!r)
                accept_peer(daemon->edge, daemon->config.fd);
        return r;
}

static int start_threads(struct daemon *daemon)
{
        struct engine_conf conf = {
                .sched = daemon->setup.sched,
                .served = &daemon->setup.served,
                .draft_pool = daemon->config.draft_pool,
                .always_draft = daemon->config.draft == CONFIG_DRAFT_ALWAYS,
                /* One program waits for its answer, and no other for a step. */
                .leave_pool = daemon->config.fd >= 0,
                .loading = { .way = (enum load_way)daemon->config.load,
                             .threads = daemon->config.threads,
                             .path = daemon->setup.path,
                             .draft_path =
                                     daemon->setup.draft ? daemon->setup.draft->setup.path : NULL,
                             .why = daemon->load_why,
                             .why_bytes = sizeof(daemon->load_why) },
                .inbox = daemon->to_engine,
                .waker = daemon->to_waker,
                .loop = daemon->retired,
                .stats = &daemon->stats,
                .usage_snapshot = daemon->usage_snapshot,
                .clock_ns = sys_clock_ns,
        };
        int r;

        if (daemon->setup.draft) {
                const struct model_setup *draft = &daemon->setup.draft->setup;

                conf.draft_model = draft->served.model;
                conf.draft_context = draft->served.context;
                conf.draft_vocab = draft->served.traits.vocab;
        }
        r = text_worker_start(daemon->to_text_worker, daemon->from_text_worker,
                              &daemon->text_worker);
        if (!r)
                r = waker_start(daemon->to_waker, daemon->to_loop, &daemon->stats, &daemon->waker);
        conf.wake_inline = daemon->waker;
        if (!r)
                r = engine_start(&conf, &daemon->engine);
        return error_pass(r);
}

/* Threads that were started before a failure still wait for their last mail. */
static void stop_threads(struct daemon *daemon, bool by_edge)
{
        const struct mail stop = { .kind = MAIL_STOP }, stopped = { .kind = MAIL_STOPPED };

        if (daemon->engine && !by_edge)
                mailbox_post(daemon->to_engine, &stop);
        daemon->engine = engine_join(daemon->engine);
        if (daemon->waker && !by_edge)
                mailbox_post(daemon->to_waker, &stopped);
        daemon->waker = waker_join(daemon->waker);
        if (daemon->text_worker && !by_edge)
                mailbox_post(daemon->to_text_worker, &stop);
        daemon->text_worker = text_worker_join(daemon->text_worker);
}

/*
 * For each channel: a socket, the two segments of its ring, and two of slots.  This includes new
 * connections that arrive while old ones are still closing.
 */
static void want_descriptors(const struct daemon *daemon)
{
        uint64_t wanted = 5ull * daemon->setup.sched.channels + 64;
        int64_t have = sys_raise_descriptor_limit(wanted);

        if (have < (int64_t)wanted)
                log_warn("few_descriptors wanted=%llu have=%lld; connections=%u may be refused",
                         (unsigned long long)wanted, (long long)have, daemon->config.connections);
}

static int open_service(struct daemon *daemon)
{
        const struct service_conf conf = {
                .manager = &daemon->manager,
                .config = &daemon->config,
                .argc = daemon->argc,
                .argv = daemon->argv,
                .edge = daemon->edge,
                .loop = daemon->loop,
                .stats = &daemon->stats,
                .to_engine = daemon->to_engine,
                .model = daemon->setup.served.name,
        };

        return error_pass(service_new(&conf, &daemon->service));
}

static int open_parts(struct daemon *daemon)
{
        int r;

        r = open_mailboxes(daemon);
        if (!r)
                r = usage_snapshot_new(daemon->config.connections, &daemon->usage_snapshot);
        if (!r)
                r = loop_new(&daemon->loop);
        if (!r)
                r = open_edge(daemon);
        if (!r)
                r = open_service(daemon);
        return error_pass(r);
}

/* The listener tells late clients that the daemon stops, until the last one has left. */
static int run(struct daemon *daemon)
{
        int r;

        want_descriptors(daemon);
        r = open_parts(daemon);
        if (!r)
                r = start_listening(daemon);
        if (!r)
                r = start_threads(daemon);
        if (r)
                return r;
        if (daemon->listener)
                log_info("listening socket=%s pid=%d passed=%s config=%s",
                         listener_path(daemon->listener), (int)getpid(),
                         daemon->manager.passed_count ? "yes" : "no", daemon->config.file);
        service_is_ready(daemon->service);
        r = edge_run(daemon->edge);
        if (daemon->listener)
                listener_stop(daemon->listener);
        if (daemon->control)
                listener_stop(daemon->control);
        stop_threads(daemon, true);
        if (r && daemon->load_why[0])
                return errtext_set(daemon->setup.why, sizeof(daemon->setup.why), r, "%s",
                                   daemon->load_why);
        return error_pass(r);
}

static void close_daemon(struct daemon *daemon)
{
        stop_threads(daemon, false);
        listener_close(daemon->control);
        listener_close(daemon->listener);
        service_free(daemon->service);
        edge_free(daemon->edge);
        loop_free(daemon->loop);
        mailbox_free(daemon->from_text_worker);
        mailbox_free(daemon->to_text_worker);
        mailbox_free(daemon->to_loop);
        mailbox_free(daemon->retired);
        mailbox_free(daemon->to_waker);
        mailbox_free(daemon->to_engine);
        usage_snapshot_free(daemon->usage_snapshot);
        sys_close(daemon->bell);
        model_setup_draft_close(&daemon->setup);
        model_close(daemon->setup.served.model);
        close_kernels(&daemon->kernels);
        close_kernels(&daemon->host);
        model_setup_close(&daemon->setup);
        service_manager_close(&daemon->manager);
        settings_deinit(&config_table, &daemon->config);
}

/* The model is served anyway. */
static void warn_of_template(const struct served *served)
{
        if (!chat_is_absent(served->chat) && chat_refusal(served->chat))
                log_warn("no_template model=%s why=\"%s\"", served->name,
                         chat_refusal(served->chat));
}

static int start(struct daemon *daemon)
{
        int r;

        r = settings_read(&config_table, &daemon->config, daemon->argc, daemon->argv,
                          daemon->setup.why, sizeof(daemon->setup.why));
        if (r)
                return r;
        if (settings_answer(&config_table, &daemon->config, stdout))
                return 0;
        log_open(daemon->config.log_level);
        if (daemon->config.inspect)
                return inspect(&daemon->setup, stdout);
        if (daemon->config.preview)
                return render_template(&daemon->setup, stdout);
        r = service_manager_open(&daemon->manager, SOCKETS_MAX, SOCKETS_TAKEN, daemon->setup.why,
                                 sizeof(daemon->setup.why));
        if (!r)
                r = open_files(daemon);
        if (!r)
                r = claim_socket(daemon);
        if (!r)
                r = model_setup_plan(&daemon->setup, NULL);
        if (!r)
                r = open_kernels(daemon);
        if (r)
                return r;
        warn_of_template(&daemon->setup.served);
        if (daemon->config.check)
                model_setup_print(&daemon->setup, stdout);
        else if (daemon->config.log_level >= LOG_INFO)
                model_setup_print(&daemon->setup, stderr);
        tell_backend(daemon);
        r = open_model(daemon);
        if (!r && !daemon->config.check)
                r = model_setup_texts(&daemon->setup);
        if (r)
                return r;
        return daemon->config.check ? check_weights(daemon) : run(daemon);
}

/*
 * Returns the exit status (samovard.8), and prints a line if the user can fix something.  If a
 * backend was lost, there is nothing to fix here: a new process may get it back, so the exit status
 * tells the supervisor to restart us.
 */
static int tell(const struct daemon *daemon, int r)
{
        const char *lost = daemon->kernels ? daemon->kernels->lost(daemon->kernels) : NULL;

        if (r >= 0)
                return r ? EXIT_FAILURE : EXIT_SUCCESS;
        if (lost)
                fprintf(stderr, "samovard: %s\n", lost);
        else if (daemon->setup.why[0])
                fprintf(stderr, "samovard: %s\n", daemon->setup.why);
        else
                fprintf(stderr, "samovard: %s (%s)\n", strerror(-r), error_trail());
        return lost ? EX_TEMPFAIL : EXIT_FAILURE;
}

/* A compiled constraint has arrays that are as large as its limits, and uses little of them. */
#define MAP_FROM (128u * 1024u)

int main(int argc, char **argv)
{
        struct daemon daemon = { .bell = -1,
                                 .setup.config = &daemon.config,
                                 .argc = argc,
                                 .argv = argv,
                                 .manager = { .fd = -1 } };
        int status;

        sys_ignore_io_signals();
        sys_map_from(MAP_FROM);
        status = tell(&daemon, start(&daemon));
        close_daemon(&daemon);
        return status;
}
