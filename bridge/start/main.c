/*
 * samovar-http: reads settings, makes the parts, runs them, and takes them down in reverse order.
 *
 * Like daemon/start for samovard, bridge/start may depend on all of bridge/.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/service-manager.h"
#include "base/sys.h"
#include "bridge/core/bridge.h"
#include "bridge/core/kept.h"
#include "bridge/core/state-folder.h"
#include "bridge/http/server.h"
#include "bridge/offline/offline.h"
#include "bridge/openai/batch-store.h"
#include "bridge/openai/file-store.h"
#include "bridge/openai/response-store.h"
#include "bridge/openai/restore.h"
#include "bridge/start/config.h"
#include "bridge/start/routes.h"
#include "bridge/start/service.h"
#include "bridge/start/text-list.h"

/* Of records: half a ring.  Ends of streams wake it, too. */
#define BATCH_WAKE_BYTES (512u << 10)

/* How long a private daemon may take to end: 2 s. */
#define END_TRIES  400u
#define END_TRY_NS UINT64_C(5000000)

/* The sockets that a service manager may pass. */
#define SOCKETS_TAKEN "samovar-http takes 8 at most"

struct program {
        int argc;
        char **argv;
        struct bridge_config config;
        struct service_manager manager;
        struct text_list addresses, hosts, origins, pairs;
        struct alias *aliases;
        struct loop *loop;
        struct bridge *bridge;
        struct bridge_service *service;
        uint32_t sockets; /* that it listens at */
        char why[512];
        int status; /* of the process, if nothing fails */
};

/* ---- settings as the parts take them ---- */

static int split_lists(struct program *program)
{
        const struct bridge_config *config = &program->config;
        const char *listen = strcmp(config->listen, "none") ? config->listen : NULL;
        int r;

        r = text_list_init(&program->addresses, listen);
        if (!r)
                r = text_list_init(&program->hosts, config->allow_hosts);
        if (!r)
                r = text_list_init(&program->origins, config->allow_origins);
        if (!r)
                r = text_list_init(&program->pairs, config->alias);
        if (r)
                return error_pass(r);
        program->aliases = calloc(program->pairs.count + 1, sizeof(*program->aliases));
        if (!program->aliases)
                return error_raise(-ENOMEM);
        for (uint32_t i = 0; i < program->pairs.count; i++) {
                char *model = strchr(program->pairs.items[i], '=');

                *model++ = '\0';
                program->aliases[i] = (struct alias){ program->pairs.items[i], model };
        }
        return 0;
}

/*
 * A batch names one model for all names that are not served; a private daemon has only one.  Its
 * answers go nowhere but into its output, so nothing is stored.  The daemon need not wake it for
 * each token.
 */
static void adapt_to_batch(struct program *program, struct bridge_conf *conf)
{
        static struct alias any = { "*", "" };

        any.model = program->config.batch_model ? program->config.batch_model : "";
        if (program->config.batch_model || program->config.daemon_fd >= 0) {
                conf->aliases = &any;
                conf->alias_count = 1;
        }
        conf->use_daemon_fd = program->config.daemon_fd >= 0;
        conf->daemon_fd = program->config.daemon_fd;
        conf->response_max = 0;
        conf->wake_bytes = BATCH_WAKE_BYTES;
}

static int make_bridge(struct program *program)
{
        const struct bridge_config *config = &program->config;
        struct bridge_conf conf = {
                .loop = program->loop,
                .socket = config->socket,
                .aliases = program->aliases,
                .alias_count = program->pairs.count,
                .queue_bytes = config->queue_bytes,
                .ping_ms = config->ping_ms,
                .response_keep_ms = config->response_keep_ms,
                .response_max = config->response_max,
                .response_bytes = config->response_bytes,
                .spool = config->spool,
                .files_keep_ms = config->files_keep_ms,
                .files_max = config->files_max,
                .files_bytes = config->files_bytes,
                .batch_parallel = config->batch_parallel,
                .otel = config->otel,
                .serves_strangers =
                        config->any_local_user || config->unix_peers == BRIDGE_PEERS_ALL,
        };

        int r;

        if (config->batch)
                adapt_to_batch(program, &conf);
        r = bridge_new(&conf, routes, route_count, &program->bridge);
        if (r)
                return error_pass(r);
        if (config->state && !config->batch)
                r = state_folder_open(config->state, program->loop, &program->bridge->state,
                                      program->why, sizeof(program->why));
        if (r)
                return error_pass(r);
        program->bridge->responses = response_store_new();
        program->bridge->files = file_store_new(program->bridge);
        program->bridge->batches = batch_store_new(program->bridge);
        program->bridge->kept = kept_store_new();
        if (!program->bridge->responses || !program->bridge->files || !program->bridge->batches ||
            !program->bridge->kept)
                return error_raise(-ENOMEM);
        return 0;
}

static struct http_conf http_conf(const struct program *program)
{
        const struct bridge_config *config = &program->config;
        struct http_conf conf = http_conf_default();

        conf.connections_max = config->connections;
        conf.body_max = config->body_bytes;
        conf.bodies_max = config->bodies_bytes;
        conf.head_ms = config->header_timeout_ms;
        conf.body_ms = config->body_timeout_ms;
        conf.idle_ms = config->idle_timeout_ms;
        conf.write_ms = config->write_timeout_ms;
        /* A file can get a name only in the file system in which it was made. */
        conf.spool = config->state ? config->state : config->spool;
        conf.key_file = config->keys;
        conf.hosts = (const char *const *)program->hosts.items;
        conf.origins = (const char *const *)program->origins.items;
        conf.loopback_everyone = config->any_local_user;
        conf.unix_everyone = config->unix_peers == BRIDGE_PEERS_ALL;
        return conf;
}

/* The server is stopped, and its last connection has ended. */
static void on_idle(void *arg)
{
        struct bridge *bridge = arg;

        loop_stop(bridge->conf.loop);
}

static int make_server(struct program *program)
{
        const struct http_conf conf = http_conf(program);
        struct http_handlers handlers = bridge_handlers(program->bridge);

        handlers.on_idle = on_idle;
        return http_server_new(&conf, program->loop, &handlers, &program->bridge->server,
                               program->why, sizeof(program->why));
}

/* Batches that go on ask the server for their principals. */
static int restore(struct program *program)
{
        return program->bridge->state
                       ? openai_restore(program->bridge, program->why, sizeof(program->why))
                       : 0;
}

/* ---- listening ---- */

static int listen_passed(struct program *program)
{
        int r = 0;

        for (uint32_t i = 0; !r && i < program->manager.passed_count; i++) {
                r = http_server_listen_fd(program->bridge->server, program->manager.passed_fds[i],
                                          program->why, sizeof(program->why));
                program->sockets += !r;
        }
        return r;
}

/* A machine without IPv6 has no [::1]; that is no fault as long as there is another address. */
static bool is_absent(const char *address, int r)
{
        return !strncmp(address, "[::1]:", 6) && (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT);
}

static int listen_tcp(struct program *program)
{
        for (uint32_t i = 0; i < program->addresses.count; i++) {
                const char *address = program->addresses.items[i];
                uint16_t port = 0;
                int r = http_server_listen_tcp(program->bridge->server, address, &port,
                                               program->why, sizeof(program->why));

                if (is_absent(address, r)) {
                        log_warn("address_is_absent %s", program->why);
                        continue;
                }
                if (r)
                        return r;
                program->sockets++;
                log_info("listening address=%.*s:%u", (int)(strrchr(address, ':') - address),
                         address, (unsigned)port);
        }
        return 0;
}

static int listen_unix(struct program *program)
{
        const struct bridge_config *config = &program->config;
        int r;

        if (!config->listen_unix)
                return 0;
        r = http_server_listen_unix(program->bridge->server, config->listen_unix,
                                    config->listen_unix_mode, program->why, sizeof(program->why));
        if (r)
                return r;
        program->sockets++;
        log_info("listening socket=%s", config->listen_unix);
        return 0;
}

/* Sockets of the service manager replace those of the settings. */
static int start_listening(struct program *program)
{
        int r;

        if (program->manager.passed_count) {
                r = listen_passed(program);
                if (!r)
                        log_info("listening passed=%u", (unsigned)program->sockets);
                return r;
        }
        r = listen_tcp(program);
        if (!r)
                r = listen_unix(program);
        if (!r && !program->sockets)
                r = errtext_set(program->why, sizeof(program->why), -EINVAL,
                                "there is nothing to listen at: listen is %s and listen_unix is %s",
                                program->config.listen,
                                program->config.listen_unix ? program->config.listen_unix
                                                            : "not set");
        return r;
}

/* ---- the program ---- */

/* For each connection: its socket, and a file for an upload. */
static void want_descriptors(const struct program *program)
{
        uint64_t wanted = 2ull * program->config.connections + 256;
        int64_t have = sys_raise_descriptor_limit(wanted);

        if (have < (int64_t)wanted)
                log_warn("few_descriptors wanted=%llu have=%lld; connections=%u may be refused",
                         (unsigned long long)wanted, (long long)have, program->config.connections);
}

static int make_service(struct program *program)
{
        const struct bridge_service_conf conf = {
                .manager = &program->manager,
                .config = &program->config,
                .argc = program->argc,
                .argv = program->argv,
                .bridge = program->bridge,
                .loop = program->loop,
        };

        return error_pass(bridge_service_new(&conf, &program->service));
}

static int make_all(struct program *program)
{
        int r = split_lists(program);

        if (!r)
                r = loop_new(&program->loop);
        if (!r)
                r = make_bridge(program);
        return r ? r : make_server(program);
}

/* The server of a batch listens nowhere; it only knows that nobody needs a key. */
static int run_batch(struct program *program)
{
        const struct bridge_config *config = &program->config;
        const struct offline_conf conf = { .input = config->batch,
                                           .output = config->output,
                                           .resume = config->resume,
                                           .parallel = config->parallel };
        int r = make_all(program);

        if (r)
                return r;
        program->why[0] = '\0';
        program->status = offline_run(program->bridge, &conf);
        return 0;
}

static int run(struct program *program)
{
        int r;

        want_descriptors(program);
        r = make_all(program);
        if (!r)
                r = restore(program);
        if (!r)
                r = start_listening(program);
        if (!r)
                r = make_service(program);
        if (r)
                return r;
        program->why[0] = '\0';
        log_info("ready config=%s", program->config.file ? program->config.file : "none");
        bridge_service_is_ready(program->service);
        return error_pass(loop_run(program->loop));
}

static int start(struct program *program)
{
        int r;

        r = settings_read(&bridge_config_table, &program->config, program->argc, program->argv,
                          program->why, sizeof(program->why));
        if (r)
                return r;
        if (settings_answer(&bridge_config_table, &program->config, stdout))
                return 0;
        log_open((enum log_level)program->config.log_level);
        if (program->config.batch)
                return run_batch(program);
        r = service_manager_open(&program->manager, SERVICE_SOCKETS_MAX, SOCKETS_TAKEN,
                                 program->why, sizeof(program->why));
        return r ? r : run(program);
}

/*
 * Changes of the state folder are finished first: stores and waiting calls hear of them.  Batches
 * may have calls that run, so they go before the bridge.
 */
static void close_bridge(struct bridge *bridge)
{
        if (!bridge)
                return;
        bridge->server = http_server_free(bridge->server);
        bridge->state = state_folder_close(bridge->state);
        bridge->batches = batch_store_free(bridge->batches);
        bridge->files = file_store_free(bridge->files);
        bridge->responses = response_store_free(bridge->responses);
        bridge->kept = kept_store_free(bridge->kept);
        bridge_free(bridge);
}

/* It ends because its connection has closed, and dies with us at the latest. */
static void await_private_daemon(const struct bridge_config *config)
{
        for (unsigned i = 0; config->daemon_fd >= 0 && i < END_TRIES; i++) {
                if (waitpid(-1, NULL, WNOHANG))
                        return;
                sys_sleep_ns(END_TRY_NS);
        }
}

static void close_program(struct program *program)
{
        bridge_service_free(program->service);
        close_bridge(program->bridge);
        await_private_daemon(&program->config);
        loop_free(program->loop);
        free(program->aliases);
        text_list_deinit(&program->pairs);
        text_list_deinit(&program->origins);
        text_list_deinit(&program->hosts);
        text_list_deinit(&program->addresses);
        service_manager_close(&program->manager);
        settings_deinit(&bridge_config_table, &program->config);
}

/* Prints why it cannot run, if it cannot. */
static int tell(const struct program *program, int r)
{
        if (r >= 0)
                return program->status;
        if (program->why[0])
                fprintf(stderr, "samovar-http: %s\n", program->why);
        else
                fprintf(stderr, "samovar-http: %s (%s)\n", strerror(-r), error_trail());
        return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
        struct program program = { .argc = argc, .argv = argv, .manager = { .fd = -1 } };
        int status;

        sys_ignore_io_signals();
        status = tell(&program, start(&program));
        close_program(&program);
        return status;
}
