#include "bridge/start/config.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "bridge/start/text-list.h"
#include "settings/refuse.h"

#define K          (UINT64_C(1) << 10)
#define M          (UINT64_C(1) << 20)
#define G          (UINT64_C(1) << 30)
#define AT(member) offsetof(struct bridge_config, member)
#define N(array)   (sizeof(array) / sizeof(*(array)))

/*
 * The port 7266 is SAMO on the keys of a telephone.  No service is registered there, it lies below
 * the ports that the kernel gives to clients, browsers do not block it, and no model server that we
 * know of uses it; so samovar-http runs beside them.
 */
/* clang-format off */
static const struct setting rows[] = {
        { "listen",            KIND_TEXT,   AT(listen),            "127.0.0.1:7266,[::1]:7266", 0, 0, { "ADDRESS:PORT,..." }, AT_START, "addresses to listen at; none: at no address; port 0: a free one, which the log names; other than loopback only with keys", "Listening" },
        { "listen_unix",       KIND_TEXT,   AT(listen_unix),       NULL,    0, 0, { "PATH" }, AT_START, "Unix socket to listen at, besides" },
        { "listen_unix_mode",  KIND_MODE,   AT(listen_unix_mode),  "0600",  0, 0, { "0600", "0660", "0666" }, AT_START, "users that may connect to it: the owner (0600), also the group (0660), or all (0666)" },

        { "keys",              KIND_TEXT,   AT(keys),              NULL,    0, 0, { "FILE" }, AT_START, "file of API keys, with a line KEY NAME for each: requests with this key belong to the user NAME; SIGHUP reads it again; default: no keys", "Access" },
        { "any_local_user",    KIND_SWITCH, AT(any_local_user),    "no",    0, 0, { NULL }, AT_START, "without keys, all users of this machine may connect over loopback; no: only the user of samovar-http" },
        { "unix_peers",        KIND_WORD,   AT(unix_peers),        "own",   0, 0, { [BRIDGE_PEERS_OWN] = "own", [BRIDGE_PEERS_ALL] = "all" }, AT_START, "users of the Unix socket that need no key: the user of samovar-http, or all that can connect" },
        { "allow_hosts",       KIND_TEXT,   AT(allow_hosts),       NULL,    0, 0, { "NAME,..." }, AT_START, "names of this server, besides localhost and loopback addresses; requests for other names are refused" },
        { "allow_origins",     KIND_TEXT,   AT(allow_origins),     NULL,    0, 0, { "ORIGIN,..." }, AT_START, "origins of web pages that may ask, such as https://chat.example, besides pages of this machine; *: all" },

        { "socket",            KIND_TEXT,   AT(socket),            NULL,    0, 0, { "PATH" }, AT_START, "socket of samovard; default: $SAMOVAR_SOCKET, else samovar/sock in $XDG_RUNTIME_DIR or /run", "Models" },
        { "alias",             KIND_TEXT,   AT(alias),             NULL,    0, 0, { "NAME=MODEL,..." }, AT_START, "other names for models; *=MODEL: all names that no model has" },

        { "connections",       KIND_COUNT,  AT(connections),       "128",   1, 65536, { NULL }, AT_START, "connections at the same time; others are answered with 503", "Limits" },
        { "body_bytes",        KIND_BYTES,  AT(body_bytes),        "32M",   K, G, { NULL }, AT_START, "size of the body of one request, except for uploads of files" },
        { "bodies_bytes",      KIND_BYTES,  AT(bodies_bytes),      "256M",  K, 64 * G, { NULL }, AT_START, "size of the bodies of all requests together; at least body_bytes" },
        { "queue_bytes",       KIND_BYTES,  AT(queue_bytes),       "4M",    512 * K, G, { NULL }, AT_START, "bytes that a client has not read of its answer, beyond which the connection ends" },
        { "response_max",      KIND_COUNT,  AT(response_max),      "1000",  0, 1000000, { NULL }, AT_START, "responses that are stored for a user; the oldest one goes first" },
        { "response_bytes",    KIND_BYTES,  AT(response_bytes),    "64M",   0, 64 * G, { NULL }, AT_START, "size of the stored responses of a user together, with the items of their conversations; the oldest go first" },
        { "files_max",         KIND_COUNT,  AT(files_max),         "100",   0, 10000, { NULL }, AT_START, "files of a user, uploaded ones and those that batches have written" },
        { "files_bytes",       KIND_BYTES,  AT(files_bytes),       "1G",    0, 1024 * G, { NULL }, AT_START, "size of the files of a user together" },
        { "batch_parallel",    KIND_COUNT,  AT(batch_parallel),    "8",     1, 1024, { NULL }, AT_START, "lines of a batch that run at the same time, in the background" },

        { "header_timeout_ms", KIND_COUNT,  AT(header_timeout_ms), "10000", 1, 3600000, { NULL }, AT_START, "time until all headers of a request must have come", "Times" },
        { "body_timeout_ms",   KIND_COUNT,  AT(body_timeout_ms),   "60000", 1, 3600000, { NULL }, AT_START, "time until its body must have come; 1 s more for each 64 KiB" },
        { "idle_timeout_ms",   KIND_COUNT,  AT(idle_timeout_ms),   "75000", 1, 86400000, { NULL }, AT_START, "time that a connection may stay open between requests" },
        { "write_timeout_ms",  KIND_COUNT,  AT(write_timeout_ms),  "60000", 1, 3600000, { NULL }, AT_START, "a connection ends if its client reads nothing for this time" },
        { "drain_timeout_ms",  KIND_COUNT,  AT(drain_timeout_ms),  "30000", 0, 86400000, { NULL }, LIVE, "how long running requests may continue after SIGTERM" },
        { "ping_ms",           KIND_COUNT,  AT(ping_ms),           "10000", 1000, 3600000, { NULL }, AT_START, "a stream that has nothing to say sends a ping after this time, so that no proxy ends it" },
        { "response_keep_ms",  KIND_COUNT,  AT(response_keep_ms),  "3600000", 1000, 86400000, { NULL }, AT_START, "how long a stored response lives" },

        { "files_keep_ms",     KIND_COUNT,  AT(files_keep_ms),     "2592000000", 1000, UINT32_MAX, { NULL }, AT_START, "how long a file lives, and the record of a batch" },

        { "state",             KIND_TEXT,   AT(state),             NULL,    0, 0, { "DIR" }, AT_START, "folder for files and batches of users, which then survive a restart; it is made if it is missing, and must be private to the user of samovar-http; default: they end with the program", "Files and log" },
        { "spool",             KIND_TEXT,   AT(spool),             "/tmp",  0, 0, { "PATH" }, AT_START, "without state: folder for files of users, uploaded ones and those that batches have written; they have no name there, and go with the program" },
        { "log_level",         KIND_WORD,   AT(log_level),         "info",  0, 0, { [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug" }, LIVE, "the least important level that is logged" },
        { "otel",              KIND_SWITCH, AT(otel),              "no",    0, 0, { NULL }, AT_START, "/metrics also has OpenTelemetry's names for requests (gen_ai_...)" },

        { "batch",             KIND_TEXT,   AT(batch),             NULL,    0, 0, { "FILE" }, FLAG_ONLY, "answer the lines of FILE, as batches have them, and exit; listen at no address, and read no config file; samovar batch starts this", "A batch without HTTP" },
        { "output",            KIND_TEXT,   AT(output),            NULL,    0, 0, { "FILE" }, FLAG_ONLY, "write the answers to this file, in the order of the lines; -: to stdout" },
        { "resume",            KIND_SWITCH, AT(resume),            "no",    0, 0, { NULL }, FLAG_ONLY, "the file may have answers of the first lines; continue behind them" },
        { "parallel",          KIND_COUNT,  AT(parallel),          "0",     0, 4096, { NULL }, FLAG_ONLY, "lines that are asked at the same time; 0: as many as the daemon takes" },
        { "batch_model",       KIND_TEXT,   AT(batch_model),       NULL,    0, 0, { "NAME" }, FLAG_ONLY, "the model for lines that name none that is served" },
        { "daemon_fd",         KIND_INT,    AT(daemon_fd),         NULL,    3, 65535, { NULL }, FLAG_ONLY, "a descriptor that is connected to a samovard for this batch alone, whose model answers all lines" },

        { "config",            KIND_TEXT,   AT(file),              NULL,    0, 0, { "FILE" }, FLAG_ONLY, "read settings from FILE; flags override it; none: from no file; default: samovar/samovar-http.conf in $XDG_CONFIG_HOME, ~/.config or /etc, whichever is there first", "This start" },
        { "check_config",      KIND_SWITCH, AT(check_config),      "no",    0, 0, { NULL }, FLAG_ONLY, "read the settings as a start does, say what is wrong with them, exit" },
        { "help",              KIND_SWITCH, AT(help),              "no",    0, 0, { NULL }, FLAG_ONLY, "print this help" },
        { "version",           KIND_SWITCH, AT(version),           "no",    0, 0, { NULL }, FLAG_ONLY, "print the version" },
};
/* clang-format on */

/* ---- rules ---- */

/* `pairs`: each item must be NAME=MODEL. */
static int check_list(const struct settings_place *at, const char *name, const char *text,
                      bool pairs)
{
        struct text_list list;
        int r = text_list_init(&list, text);

        if (r == -EINVAL)
                return settings_refuse(at, "%s is %.60s; an item between commas is empty", name,
                                       text);
        for (uint32_t i = 0; !r && pairs && i < list.count; i++) {
                const char *equals = strchr(list.items[i], '=');

                if (!equals || equals == list.items[i] || !equals[1])
                        r = settings_refuse(at, "%s has %.60s; an item must be NAME=MODEL", name,
                                            list.items[i]);
        }
        text_list_deinit(&list);
        return r;
}

static int check_together(const void *values, const struct settings_place *at)
{
        const struct bridge_config *c = values;
        int r;

        r = check_list(at, "listen", c->listen, false);
        if (!r)
                r = check_list(at, "alias", c->alias, true);
        if (!r)
                r = check_list(at, "allow_hosts", c->allow_hosts, false);
        if (!r)
                r = check_list(at, "allow_origins", c->allow_origins, false);
        if (r)
                return r;
        if (c->any_local_user && c->keys)
                return settings_refuse(at,
                                       "any_local_user lets users of this machine in without a "
                                       "key, but keys is %.80s; leave one of them out",
                                       c->keys);
        if (!c->batch != !c->output)
                return settings_refuse(at, "batch and output belong together; %s is missing",
                                       c->batch ? "output" : "batch");
        if (c->bodies_bytes < c->body_bytes)
                return settings_refuse(at,
                                       "bodies_bytes is %llu and body_bytes is %llu; there must "
                                       "be space for one body",
                                       (unsigned long long)c->bodies_bytes,
                                       (unsigned long long)c->body_bytes);
        return 0;
}

/* The file is for a server. */
static bool looks_for_file(const void *values)
{
        const struct bridge_config *c = values;

        return !c->batch;
}

const struct settings_table bridge_config_table = {
        .program = "samovar-http",
        .synopsis = "[--listen ADDRESS:PORT,...] [--name VALUE | --name=VALUE] ...",
        .file = "samovar-http.conf",
        .rows = rows,
        .count = N(rows),
        .bytes = sizeof(struct bridge_config),
        .config = AT(file),
        .check_config = AT(check_config),
        .help = AT(help),
        .version = AT(version),
        .looks_for_file = looks_for_file,
        .check = check_together,
};
