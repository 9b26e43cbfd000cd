/*
 * samovard: flags, parts, run, and everything taken down in reverse.
 *
 * The one file that knows everyone.  Nothing is decided while it runs: limits
 * come from the config, sizes follow from them and from the model, and are
 * printed on one line before anything large is taken.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/edge/edge.h"
#include "daemon/edge/listener.h"
#include "daemon/engine/engine.h"
#include "daemon/files/checkpoint.h"
#include "daemon/files/vocabulary.h"
#include "daemon/engine/model.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/waker.h"
#include "daemon/error.h"
#include "daemon/log.h"
#include "daemon/sys.h"
#include "daemon/text/scribe.h"
#include "daemon/text/tokenizer.h"
#include "daemon/utf8.h"

struct house {
        struct config config;
        struct checkpoint *checkpoint;
        struct kernels *kernels;
        struct model_conf model_conf;
        struct model_bytes bytes;
        struct sched_conf sched;
        struct served served;
        struct stats stats;
        int bell;
        struct mailbox *to_engine, *retired, *to_waker, *to_loop, *to_scribe, *from_scribe;
        struct edge *edge;
        char path[4096]; /* of the model */
        struct listener *listener;
        char socket[256]; /* where it listens; empty: it does not */
        struct engine *engine;
        struct waker *waker;
        struct scribe *scribe;
        char load_why[256]; /* the engine's to write until it is joined */
        char why[512];      /* one line for people, where the cause is theirs to mend */
};

static bool may_be_shown(const char *name, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++) {
                if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
                        return false;
        }
        return utf8_valid(name, bytes) == bytes;
}

static size_t name_length(const char *name)
{
        static const char *const suffixes[] = { ".gguf", ".safetensors" };
        size_t bytes = strlen(name);

        for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
                size_t suffix = strlen(suffixes[i]);

                if (bytes > suffix && !strcmp(name + bytes - suffix, suffixes[i]))
                        return bytes - suffix;
        }
        return bytes;
}

/* PATH or PATH=NAME; without a name, the file's or folder's own, less what it is in and a suffix. */
static int split_model(struct house *house)
{
        const char *model = house->config.model, *equals = strrchr(model, '='), *name, *slash;
        size_t bytes = equals ? (size_t)(equals - model) : strlen(model), name_bytes;
        char *path = house->path;

        if (bytes >= sizeof(house->path)) {
                snprintf(house->why, sizeof(house->why), "--model: the path is too long");
                return -EINVAL;
        }
        memcpy(path, model, bytes);
        while (bytes > 1 && path[bytes - 1] == '/')
                bytes--;
        path[bytes] = '\0';

        slash = strrchr(path, '/');
        name = equals ? equals + 1 : slash ? slash + 1 : path;
        name_bytes = equals ? strlen(name) : name_length(name);
        if (name_bytes == 0 || name_bytes > SMV_NAME_BYTES_MAX || !may_be_shown(name, name_bytes)) {
                snprintf(house->why, sizeof(house->why),
                         "--model: a name has 1 to %u bytes of printable UTF-8",
                         SMV_NAME_BYTES_MAX);
                return -EINVAL;
        }
        memcpy(house->served.name, name, name_bytes);
        return 0;
}

/* The file's own modules say what is wrong in it; here is added which file that is. */
static int blame(struct house *house, const char *path, const char *what, int r)
{
        snprintf(house->why, sizeof(house->why), "%.200s: %s", path, what);
        return r;
}

/* Of a folder, itself. */
static const char *folder_of(const char *path, char ret_folder[4096])
{
        size_t bytes = strlen(path), ending = strlen(".safetensors");
        const char *slash = strrchr(path, '/');

        if (bytes < ending || strcmp(path + bytes - ending, ".safetensors"))
                return path;
        if (!slash)
                return ".";
        snprintf(ret_folder, 4096, "%.*s", (int)(slash - path + 1), path);
        return ret_folder;
}

/* From --tokenizer, PATH or PATH=SPLITTER, or from the model's own file or what lies beside it. */
static int open_vocabulary(struct house *house, const char *model_path,
                           struct vocabulary **ret_vocabulary)
{
        const char *given = house->config.tokenizer, *equals = given ? strrchr(given, '=') : NULL;
        const struct gguf *gguf = checkpoint_gguf(house->checkpoint);
        char path[4096], what[256];
        int r;

        if (!given) {
                r = gguf ? vocabulary_from_gguf(gguf, NULL, ret_vocabulary, what, sizeof(what))
                         : vocabulary_open(folder_of(model_path, path), NULL, ret_vocabulary, what,
                                           sizeof(what));
                return r ? blame(house, model_path, what, r) : 0;
        }
        snprintf(path, sizeof(path), "%.*s", equals ? (int)(equals - given) : (int)strlen(given),
                 given);
        r = vocabulary_open(path, equals ? equals + 1 : NULL, ret_vocabulary, what, sizeof(what));
        return r ? blame(house, path, what, r) : 0;
}

static int open_tokenizer(struct house *house, const char *model_path)
{
        struct served *served = &house->served;
        struct vocabulary *vocabulary;
        char what[256];
        int r;

        r = open_vocabulary(house, model_path, &vocabulary);
        if (r)
                return r;
        r = tokenizer_open(vocabulary, served->traits.vocab, &served->tokenizer, what,
                           sizeof(what));
        if (r)
                blame(house, house->config.tokenizer ? house->config.tokenizer : model_path, what,
                      r);
        /* Whether a text begins with the model's first token is for its vocabulary to say. */
        else if (!house->config.tokenizer && vocabulary->kind != VOCABULARY_BYTES)
                served->traits.bos = vocabulary->add_bos ? vocabulary->bos : TRAITS_NO_TOKEN;
        vocabulary_close(vocabulary);
        return error_pass(r);
}

static int open_file(struct house *house)
{
        struct served *served = &house->served;
        char what[256];
        int r;

        r = split_model(house);
        if (r)
                return r;
        r = checkpoint_open(house->path, &house->checkpoint, what, sizeof(what));
        if (!r)
                r = checkpoint_traits(house->checkpoint, &served->traits, what, sizeof(what));
        if (r)
                return blame(house, house->path, what, r);
        return error_pass(open_tokenizer(house, house->path));
}

static uint64_t pool_bytes(const struct house *house, uint64_t block_bytes, uint32_t blocks_one)
{
        const struct config *config = &house->config;
        uint64_t wanted = (uint64_t)config->max_seqs / 4 * blocks_one * block_bytes;
        uint64_t quarter = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;

        if (config->kv_bytes)
                return config->kv_bytes;
        if (wanted < blocks_one * block_bytes)
                wanted = blocks_one * block_bytes;
        return wanted < quarter ? wanted : quarter;
}

/* The smallest ring has to hold many of the largest record (publish.c counts on it). */
static int check_records(struct house *house)
{
        size_t piece = tokenizer_piece_max(house->served.tokenizer);
        size_t record = publish_record_bytes_max(piece, SMV_STOP_BYTES_MAX);

        if (record <= SMV_RING_BYTES_MIN / 64)
                return 0;
        snprintf(house->why, sizeof(house->why),
                 "--model: its longest token has %zu bytes, too many for a record", piece);
        return -EINVAL;
}

/* Every size, from the config and the model.  Nothing is taken yet. */
static int plan_memory(struct house *house)
{
        const struct config *config = &house->config;
        struct served *served = &house->served;
        uint32_t blocks_one;
        uint64_t blocks;

        served->context = config->ctx ? config->ctx : served->traits.context;
        if (served->context > served->traits.context) {
                snprintf(house->why, sizeof(house->why),
                         "--ctx %u: the model was made for %u positions", served->context,
                         served->traits.context);
                return -EINVAL;
        }
        house->model_conf = (struct model_conf){ .rows_max = config->step_tokens,
                                                 .wants_max = config->max_seqs,
                                                 .kv = config->kv };
        house->model_conf.blocks = 1;
        model_measure(house->checkpoint, &served->traits, &house->model_conf, &house->bytes);

        blocks_one = blocks_for(served->context);
        blocks = pool_bytes(house, house->bytes.block, blocks_one) / house->bytes.block;
        if (blocks > UINT32_MAX / 2)
                blocks = UINT32_MAX / 2;
        if (blocks == 0) {
                snprintf(house->why, sizeof(house->why),
                         "--kv-bytes: one block of 16 positions alone takes %llu bytes",
                         (unsigned long long)house->bytes.block);
                return -EINVAL;
        }
        house->model_conf.blocks = (uint32_t)blocks;
        model_measure(house->checkpoint, &served->traits, &house->model_conf, &house->bytes);

        house->sched = (struct sched_conf){ .blocks = (uint32_t)blocks,
                                            .slots = config->max_seqs,
                                            .rows = config->step_tokens,
                                            .context = served->context,
                                            .depth = config->depth,
                                            .requests_max = config->requests,
                                            .channels = config->connections * 2,
                                            .stall_ns = config->stall_ms * 1000000ull };
        return 0;
}

static int open_model(struct house *house)
{
        const struct config *config = &house->config;
        struct kernels_conf conf = {
                .threads = config->threads,
                .isa = config->isa,
                .rows_max = config->step_tokens,
                .slots_max = config->max_seqs,
                .pages_max = blocks_for(house->served.context),
                .vocab_max = house->served.traits.vocab,
                .wants_max = config->max_seqs,
        };
        char what[256];
        int r;

        r = kernels_open(config->backend, &conf, &house->kernels);
        if (r) {
                snprintf(house->why, sizeof(house->why), "--backend %s --isa %s: %s",
                         config->backend, config->isa, strerror(-r));
                return r;
        }
        r = model_open(house->checkpoint, &house->served.traits, house->kernels, &house->model_conf,
                       &house->served.model, what, sizeof(what));
        if (r)
                return blame(house, house->path, what, r);
        counter_set(&house->stats.load_total, model_to_load(house->served.model));
        return 0;
}

/* For --check; else the engine does it. */
static int check_weights(struct house *house)
{
        const struct weights_conf conf = { .way = (enum load_way)house->config.load,
                                           .threads = house->config.threads };
        enum load_way way;
        char what[256];
        int r = model_load(house->served.model, &conf, &way, what, sizeof(what));

        return r ? blame(house, house->path, what, r) : 0;
}

/* One line with the sums: what the daemon will hold, before it takes it. */
static void print_plan(const struct house *house, FILE *to)
{
        const struct model_bytes *bytes = &house->bytes;
        const struct served *served = &house->served;
        uint64_t rings = house->config.ring_bytes * house->config.connections;
        double mib = 1 << 20;

        fprintf(to,
                "samovard: model %s, %u layers, vocabulary %u, context %u; weights %.1f MiB, "
                "activations %.1f MiB, KV %.1f MiB (%u blocks of %llu bytes, %.1f full sequences), "
                "rings at most %.1f MiB; sequences at once %u, rows a step %u, requests %u\n",
                served->name, served->traits.layers, served->traits.vocab, served->context,
                (double)bytes->weights / mib, (double)bytes->activations / mib,
                (double)bytes->kv / mib, house->sched.blocks, (unsigned long long)bytes->block,
                (double)house->sched.blocks / blocks_for(served->context), (double)rings / mib,
                house->sched.slots, house->sched.rows, house->sched.requests_max);
}

/* Room in each for all that can be under way: mailbox.h says what that is. */
static int open_mailboxes(struct house *house)
{
        uint32_t requests = house->sched.requests_max, channels = house->sched.channels;
        int r;

        house->bell = sys_eventfd();
        if (house->bell < 0)
                return error_pass(house->bell);
        r = mailbox_new(2 * requests + 2 * channels + 1, -1, &house->to_engine);
        if (!r)
                r = mailbox_new(2 * requests, -1, &house->retired);
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
                .admit = { .sched = house->sched,
                           .max_tokens = house->config.max_tokens,
                           .requests_max = house->config.requests,
                           .record_bytes_max = publish_record_bytes_max,
                           .end_bytes_max = publish_end_bytes_max,
                           .seed = fresh_seed },
                .served = &house->served,
                .stats = &house->stats,
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
                snprintf(house->why, sizeof(house->why), "--socket: %s", strerror(-r));
                return r;
        }
        r = listener_open(house->edge, house->socket, &house->listener, house->why,
                          sizeof(house->why));
        return r == LISTENER_E_HELD ? -EADDRINUSE : r;
}

static int start_threads(struct house *house)
{
        struct engine_conf conf = {
                .sched = house->sched,
                .served = &house->served,
                .loading = { .way = (enum load_way)house->config.load,
                             .threads = house->config.threads,
                             .why = house->load_why,
                             .why_bytes = sizeof(house->load_why) },
                .inbox = house->to_engine,
                .waker = house->to_waker,
                .loop = house->retired,
                .stats = &house->stats,
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

/* Threads that were started before something failed still wait for their last mail. */
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
        /* What waits for the weights would not finish in time, so it ends now. */
        if (counter_get(&house->stats.load_bytes) < counter_get(&house->stats.load_total))
                edge_drain(house->edge);
}

/* A connection's socket and its ring's two segments, for those who come while others still go. */
static void want_descriptors(const struct house *house)
{
        uint64_t wanted = 3ull * house->sched.channels + 64;
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
                r = open_edge(house);
        if (!r)
                r = loop_signal(house->edge->loop, SIGTERM, on_stop, house);
        if (!r)
                r = loop_signal(house->edge->loop, SIGINT, on_stop, house);
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
        if (r && counter_get(&house->stats.load_bytes) < counter_get(&house->stats.load_total))
                return blame(house, house->path, house->load_why, r);
        return error_pass(r);
}

static void close_house(struct house *house)
{
        stop_threads(house, false);
        listener_close(house->listener);
        edge_free(house->edge);
        mailbox_free(house->from_scribe);
        mailbox_free(house->to_scribe);
        mailbox_free(house->to_loop);
        mailbox_free(house->retired);
        mailbox_free(house->to_waker);
        mailbox_free(house->to_engine);
        sys_close(house->bell);
        model_close(house->served.model);
        tokenizer_close(house->served.tokenizer);
        if (house->kernels)
                house->kernels->close(house->kernels);
        checkpoint_close(house->checkpoint);
        config_deinit(&house->config);
}

static int start(struct house *house, int argc, char **argv)
{
        int r;

        r = config_read(&house->config, argc, argv, house->why, sizeof(house->why));
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
        r = open_file(house);
        if (!r)
                r = check_records(house);
        if (!r)
                r = plan_memory(house);
        if (r)
                return r;
        if (house->config.check)
                print_plan(house, stdout);
        else if (house->config.log_level >= LOG_INFO)
                print_plan(house, stderr);
        r = open_model(house);
        if (r)
                return r;
        return house->config.check ? check_weights(house) : run(house);
}

int main(int argc, char **argv)
{
        struct house house = { .bell = -1 };
        int r;

        signal(SIGPIPE, SIG_IGN);
        r = start(&house, argc, argv);
        if (r && house.why[0])
                fprintf(stderr, "samovard: %s\n", house.why);
        else if (r)
                fprintf(stderr, "samovard: %s (%s)\n", strerror(-r), error_trail());
        close_house(&house);
        return r ? 1 : 0;
}
