/*
 * One table has everything about a key of the reply: its section, its name, where its value comes
 * from, and one sentence that says what it means.  The reply and the manuals are made from it.
 * Three parts of the reply have tables of their own: `limits` has settings (config.c), `users` has
 * a map for each user, and each of these maps has the kinds of quotas.
 */
#include "daemon/edge/op-status.h"

#include <stddef.h>

#include "daemon/start/config.h"
#include "daemon/edge/admission.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/late.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/resumable.h"
#include "daemon/model/load-way.h"
#include "base/log.h"
#include "base/sys.h"
#include "daemon/text/chat.h"
#include "daemon/text/parts/dialect.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* All values that are not counters of the engine or numbers of the model, read at once. */
struct snapshot {
        uint64_t protocol, pid, uid, uptime_s, stops_in_s;
        uint64_t block_positions;
        uint64_t jobs, log_lost, descriptors, mappings, threads;
        uint64_t requests_open, requests_submitted;
        uint64_t connections_open, connections_max, channels_allocated;
        struct handles_sum handles;
        struct resumables_sum streams;
        double temperature, top_p, min_p;
        double tokens_in_per_s, tokens_out_per_s, mean_tokens_out_per_s, busy_s;
        double preemptions_per_100, blocks_lost_per_100;
        uint64_t weight_bytes, parameters, modified_s;
        const char *version, *model, *backend, *draft, *quantisation, *load_method, *architecture,
                *digest, *tool_dialect, *format;
        bool has_chat, has_reasoning, stopping;
        bool has_counts; /* descriptors, mappings and threads: not known without /proc */
};

enum source {
        FROM_STATS,    /* a counter of struct stats */
        FROM_TIMES,    /* a histogram of struct stats */
        FROM_BOUNDS,   /* the bounds of all histograms */
        FROM_STEPS,    /* a histogram of steps of struct stats, with its bounds */
        FROM_DEPTHS,   /* SMV_DRAFT_TOKENS_MAX counters of struct stats */
        FROM_SERVED,   /* uint32_t, of struct served */
        FROM_SNAPSHOT, /* uint64_t, of struct snapshot */
        FROM_PROC,     /* the same; left out if /proc cannot be read */
        FROM_REAL,     /* double, of struct snapshot */
        FROM_TEXT,     /* const char *, of struct snapshot */
        FROM_SWITCH,   /* bool, of struct snapshot */
};

struct key {
        const char *name;
        enum source source;
        size_t offset;
        const char *meaning;
};

#define STATS(member)    FROM_STATS, offsetof(struct stats, member)
#define TIMES(member)    FROM_TIMES, offsetof(struct stats, member)
#define DEPTHS(member)   FROM_DEPTHS, offsetof(struct stats, member)
#define REAL(member)     FROM_REAL, offsetof(struct snapshot, member)
#define SERVED(member)   FROM_SERVED, offsetof(struct served, member)
#define SNAPSHOT(member) FROM_SNAPSHOT, offsetof(struct snapshot, member)
#define PROC(member)     FROM_PROC, offsetof(struct snapshot, member)
#define TEXT(member)     FROM_TEXT, offsetof(struct snapshot, member)
#define SWITCH(member)   FROM_SWITCH, offsetof(struct snapshot, member)

/* clang-format off */
static const struct key daemon_keys[] = {
        { "version",  TEXT(version),      "version of the daemon" },
        { "protocol", SNAPSHOT(protocol), "version of the protocol that it speaks" },
        { "pid",      SNAPSHOT(pid),      "process id of the daemon" },
        { "uid",      SNAPSHOT(uid),      "user that runs the daemon" },
        { "uptime_s", SNAPSHOT(uptime_s), "seconds since the start" },
        { "stopping", SWITCH(stopping),   "true if the daemon takes no new work and ends" },
        { "stops_in_s", SNAPSHOT(stops_in_s), "if it is stopping: the seconds after which it ends the streams that still run" },
};

static const struct key work_keys[] = {
        { "steps",          STATS(steps),          "forward passes since the start" },
        { "rows",           STATS(rows),           "rows of all steps; a row is one token of one sequence" },
        { "step_rows", FROM_STEPS, offsetof(struct stats, step_rows), "steps by their rows: upper bounds `le` of the buckets, `count` of all steps, and `buckets`: for each bound, how many steps had at most so many rows" },
        { "tokens_in",      STATS(tokens_in),      "tokens of prompts that were computed" },
        { "tokens_out",     STATS(tokens_out),     "tokens that were generated" },
        { "tokens_recomputed", STATS(recomputed),  "tokens of preempted requests that were computed again; others were found in the cache" },
        { "tokens_restored", STATS(restored),      "tokens of preempted requests that were not computed again because their blocks came back from the swap" },
        { "trust",          STATS(trust),          "the margin, in percent: a request begins if the pool has room for answers longer than this share of earlier ones; `preempt_target` moves it; 0: no priority has learned admission" },
        { "streams_ended",  STATS(streams_ended),           "streams that ended, for any reason" },
        { "answers_late", STATS(answers_late), "questions that a client did not answer in time, for masks or for tokens" },
        { "drafted",        STATS(drafted),        "rows of guessed tokens since the start; they are in `rows`, too" },
        { "drafts_right",   STATS(drafts_right),   "of these, rows whose token was confirmed; they brought a token that would have needed another step" },
        { "drafted_by_depth", DEPTHS(drafted_by_depth), "`drafted` of the first token of a guess, of the second, ..." },
        { "drafts_right_by_depth", DEPTHS(drafts_right_by_depth), "`drafts_right` of the same" },
        { "numeric_faults", STATS(numeric_faults), "streams that ended because the model's output was not finite" },
        { "wakes",          STATS(wakes),          "times that the waker thread handled news of a connection" },
        { "doorbells",      STATS(doorbells),      "sleeping readers that were woken" },
        { "text_jobs",      SNAPSHOT(jobs),        "texts that are being encoded, decoded or rendered now" },
        { "log_lines_lost", SNAPSHOT(log_lost),    "lines of the log that were not written because its reader is slow" },
        { "descriptors",    PROC(descriptors),     "open file descriptors of the daemon" },
        { "mappings",       PROC(mappings),        "memory mappings of the daemon" },
        { "threads",        PROC(threads),         "threads of the daemon" },
};

static const struct key rates_keys[] = {
        { "tokens_out_per_s",      REAL(tokens_out_per_s),      "tokens generated a second, in the last ten seconds" },
        { "tokens_in_per_s",       REAL(tokens_in_per_s),       "tokens of prompts computed a second, in the last ten seconds" },
        { "mean_tokens_out_per_s", REAL(mean_tokens_out_per_s), "tokens generated a second of work (`busy_s`), since the start" },
        { "busy_s",                REAL(busy_s),                "seconds in which a forward pass ran, since the start" },
};

static const struct key latency_keys[] = {
        { "le",                          FROM_BOUNDS, 0,       "upper bounds of the buckets, in seconds" },
        { "time_to_first_token_seconds", TIMES(first_token),   "from the request to its first token: `count` of them, their `sum` in seconds, and `buckets`: for each bound, how many took at most so long" },
        { "inter_token_latency_seconds", TIMES(token_gap),     "the same between two tokens of a stream" },
        { "request_queue_time_seconds",  TIMES(queue),         "the same from the request to the first step that has a row of it" },
        { "e2e_request_latency_seconds", TIMES(total),         "the same from the request to its END" },
        { "token_delivery_seconds",      TIMES(delivery),      "the same from the step that has a token to the moment when its client is told" },
};

static const struct key model_keys[] = {
        { "name",       TEXT(model),             "name of the model, as requests name it" },
        { "backend",    TEXT(backend),           "where the model runs; with two backends, how many layers each has" },
        { "architecture", TEXT(architecture),    "what its files call its architecture" },
        { "parameters", SNAPSHOT(parameters),    "numbers of all its weights" },
        { "draft",      TEXT(draft),             "name of the draft model, or empty" },
        { "quantisation", TEXT(quantisation),    "type of most weights, as the file has them" },
        { "bytes",      SNAPSHOT(weight_bytes),  "bytes of all weights in memory, without the padding of a backend" },
        { "chat",       SWITCH(has_chat),        "true if the model has a chat template that can be used" },
        { "tool_dialect", TEXT(tool_dialect),    "how the model writes tool calls: `hermes`; empty: in no way that the daemon can read" },
        { "reasoning",  SWITCH(has_reasoning),   "true if the daemon knows the marks around the model's reasoning" },
        { "format",     TEXT(format),            "format of its files: `gguf` or `safetensors`" },
        { "vocab",      SERVED(traits.vocab),    "tokens in the vocabulary" },
        { "context",    SERVED(context),         "positions that a sequence may have" },
        { "trained_context", SERVED(traits.context), "positions that the model was trained for, as its files say" },
        { "digest",     TEXT(digest),            "a hash of its tensors: of names, shapes and types, and of samples of their bytes; it is the same in any folder" },
        { "modified_s", SNAPSHOT(modified_s),    "when its newest file was written, in seconds since 1970" },
        { "layers",     SERVED(traits.layers),   "layers" },
        { "gpu_layers", SERVED(gpu_layers),      "layers whose weights are in the memory of a GPU" },
        { "width",      SERVED(traits.width),    "numbers in a hidden state" },
        { "heads",      SERVED(traits.heads),    "attention heads" },
        { "kv_heads",   SERVED(traits.kv_heads), "heads that have keys and values, in the layer with most" },
        { "head_dim",   SERVED(traits.head_dim), "numbers in a head" },
        { "ffn",        SERVED(traits.ffn),      "width of the feed-forward part" },
        { "temperature", REAL(temperature),      "temperature of requests that give none; the model's files may say it, as the next three" },
        { "top_k",      SERVED(defaults.top_k),  "top_k of requests that give none; 0: all tokens" },
        { "top_p",      REAL(top_p),             "top_p of requests that give none" },
        { "min_p",      REAL(min_p),             "min_p of requests that give none" },
        { "references", SERVED(references),          "requests and handles that refer to the model now" },
};

static const struct key loading_keys[] = {
        { "method", TEXT(load_method),  "how weights are read: cached, uring or plain; auto until it is known" },
        { "bytes",  STATS(load_bytes),  "bytes of weights that are loaded" },
        { "total",  STATS(load_total),  "bytes of all weights; the model is loaded when both are equal" },
};

static const struct key blocks_keys[] = {
        { "total",    STATS(blocks_total),    "blocks of the KV pool: free, cached and in use" },
        { "positions", SNAPSHOT(block_positions), "positions of a sequence that a block has" },
        { "free",     STATS(blocks_free),     "blocks that hold nothing" },
        { "cached",   STATS(blocks_cached),     "blocks that hold a prefix which no request uses now" },
        { "in_use",   STATS(blocks_in_use),     "blocks that running requests refer to" },
        { "shared",   STATS(blocks_shared),   "of those in use, blocks that more than one request refers to" },
        { "reserved", STATS(blocks_reserved), "blocks that running requests may still take" },
        { "evicted",  STATS(blocks_evicted),  "cached blocks that were evicted since the start, to the swap or for good" },
        { "copied",   STATS(blocks_copied),   "blocks that were copied since the start, because only a part matched" },
        { "windows_total",    STATS(windows_total),    "window pages: the keys and values of a block in layers with a sliding window; 0: the blocks have them" },
        { "windows_free",     STATS(windows_free),     "window pages that no block has" },
        { "windows_cached",   STATS(windows_cached),   "window pages that no request sees; another block may take them" },
        { "window_evictions", STATS(window_evictions), "window pages that another block took since the start" },
        { "swap_total",  STATS(swap_total),   "blocks of the swap, in the host's memory; 0: there is none (`swap_bytes`)" },
        { "swap_used",   STATS(swap_used),    "of these, blocks that hold a prefix" },
        { "swapped_out", STATS(swapped_out),  "blocks that moved from the pool to the swap since the start" },
        { "swapped_in",  STATS(swapped_in),   "blocks that came back from the swap since the start" },
};

static const struct key requests_keys[] = {
        { "open",        SNAPSHOT(requests_open),      "requests that were accepted and are not over" },
        { "submitted",   SNAPSHOT(requests_submitted), "of these, requests that are with the engine" },
        { "waiting",     STATS(waiting),               "requests that wait for a slot" },
        { "running",     STATS(running),               "requests that have a slot" },
        { "stalled",     STATS(stalled),               "requests that pause because their client does not read" },
        { "stalls",      STATS(stalls),                "times that requests began such a pause, since the start" },
        { "ending",      STATS(ending),                "requests whose end is decided while a step still has rows of them" },
        { "ends_unsent", STATS(ends_unsent),          "END records that wait until their client reads" },
        { "throttled",   STATS(passed_over),           "requests that wait because their user has its share" },
        { "preemptions", STATS(preemptions),                 "requests that gave up their slot for others, since the start" },
        { "blocks_lost", STATS(blocks_lost),                 "of these, requests that did so because the pool was full" },
        { "submitted_total", STATS(submitted),               "requests that the engine was given, since the start" },
        { "preemptions_per_100", REAL(preemptions_per_100),  "preemptions for each 100 of these" },
        { "blocks_lost_per_100", REAL(blocks_lost_per_100),  "of these preemptions, those because the pool was full" },
        { "forks",       STATS(forks),                       "forks of running streams that the engine was given, since the start" },
        { "received",    STATS(requests_received),         "times that clients asked for a generate or a fork of a stream, since the start" },
        { "refused",     STATS(requests_refused),      "requests for a stream that were refused, since the start" },
};

/* A key for each code; the first one is OK, which refuses nothing. */
static const struct key refusals_keys[] = {
#define X(number, name, word, text) { word, STATS(refusals[number]), text },
        SMV_ERRORS(X)
#undef X
};

static const struct key waits_keys[] = {
        { "turn",     STATS(waits_turn),     "others come before them, and wait themselves" },
        { "slot",     STATS(waits_slot),     "all slots are taken (`max_seqs`)" },
        { "windows",  STATS(waits_windows),  "too few window pages are left that nobody was promised" },
        { "blocks",   STATS(waits_blocks),   "the pool has too few blocks that nobody was promised" },
        { "forecast", STATS(waits_forecast), "the pool has blocks for them, and would have too few before they are over" },
        { "share",    STATS(waits_share),    "their user has its share" },
        { "prefix",   STATS(waits_prefix),   "their beginning is being computed for another request" },
        { "reader",   STATS(waits_reader),   "they were preempted, and their client does not read" },
};

static const struct key connections_keys[] = {
        { "open",     SNAPSHOT(connections_open),  "connections now; one that has closed counts until its ring is freed" },
        { "received", STATS(connections_received),     "connections since the start, refused ones included" },
        { "refused",  STATS(connections_refused),  "connections that were refused since the start" },
        { "max",      SNAPSHOT(connections_max),   "the setting `connections`" },
};

static const struct key channels_keys[] = {
        { "active",    STATS(channels_open),         "channels with requests in the engine; a channel carries the records of a connection or of a resumable stream" },
        { "allocated", SNAPSHOT(channels_allocated), "channels that exist" },
};

static const struct key handles_keys[] = {
        { "open",     SNAPSHOT(handles.open),     "histories that the daemon holds for clients" },
        { "tokens",   SNAPSHOT(handles.tokens),   "tokens in all of them" },
        { "bytes",    SNAPSHOT(handles.bytes),    "bytes that they are charged with" },
        { "expiring", SNAPSHOT(handles.kept),     "handles that outlive their connection (`keep_ms`)" },
};

static const struct key resumable_keys[] = {
        { "open",     SNAPSHOT(streams.open),     "streams that outlive their connection" },
        { "attached", SNAPSHOT(streams.attached), "of these, streams that a connection reads now" },
        { "ended",    SNAPSHOT(streams.ended),    "of these, streams that have ended" },
        { "bytes",    SNAPSHOT(streams.bytes),    "bytes that their records are charged with" },
};

enum visible { TO_EVERYBODY, TO_OWNER };

/* The reply, in its order.  A section without a name puts its keys into the outer map. */
static const struct section {
        const char *name;
        enum visible visible;
        const struct key *keys;
        size_t count;
        const char *meaning;
} sections[] = {
        { "",            TO_EVERYBODY, daemon_keys,      COUNT_OF(daemon_keys),      "the daemon" },
        { "",            TO_OWNER,     work_keys,        COUNT_OF(work_keys),        "its work" },
        { "rates",       TO_OWNER,     rates_keys,       COUNT_OF(rates_keys),       "how fast the daemon works" },
        { "latency",     TO_OWNER,     latency_keys,     COUNT_OF(latency_keys),     "how long requests take, from the moment when the engine has them" },
        { "model",       TO_EVERYBODY, model_keys,       COUNT_OF(model_keys),       "the served model" },
        { "loading",     TO_EVERYBODY, loading_keys,     COUNT_OF(loading_keys),     "how far the weights are loaded" },
        { "blocks",      TO_EVERYBODY, blocks_keys,      COUNT_OF(blocks_keys),      "the KV pool" },
        { "requests",    TO_EVERYBODY, requests_keys,    COUNT_OF(requests_keys),    "requests of all users" },
        { "refusals",    TO_OWNER,     refusals_keys + 1, COUNT_OF(refusals_keys) - 1,   "the requests of `requests.refused`, by the name of their error" },
        { "waits",       TO_EVERYBODY, waits_keys,       COUNT_OF(waits_keys),       "why requests of all users wait now (`requests.waiting`): how many for each reason" },
        { "connections", TO_OWNER,     connections_keys, COUNT_OF(connections_keys), "connections of all users" },
        { "channels",    TO_OWNER,     channels_keys,    COUNT_OF(channels_keys),    "channels of all users" },
        { "handles",     TO_OWNER,     handles_keys,     COUNT_OF(handles_keys),     "handles of all users" },
        { "resumable",   TO_OWNER,     resumable_keys,   COUNT_OF(resumable_keys),   "streams that outlive their connection" },
};

/* The kinds of quotas: a user holds so much of each. */
static const char *const kind_meanings[QUOTA_KIND_N] = {
        [QUOTA_CONNECTIONS]  = "open connections",
        [QUOTA_REQUESTS]     = "requests, running and waiting, and texts that are being encoded",
        [QUOTA_PROMPT_BYTES] = "bytes of prompts, and of the histories in handles",
        [QUOTA_RING_BYTES]   = "bytes of shared rings",
        [QUOTA_PINS]         = "histories that are pinned or published",
        [QUOTA_PINNED_BLOCKS]  = "blocks of the KV pool that are pinned or published",
        [QUOTA_HANDLES]      = "handles",
        [QUOTA_RESUMABLE]         = "resumable streams",
        [QUOTA_RESUMABLE_BYTES]   = "bytes that the records of these streams take",
        [QUOTA_CONSTRAINT_BYTES]  = "bytes that the constraints of running and waiting streams may take",
};
/* clang-format on */

#define UID_MEANING       "the user"
#define PRINCIPAL_MEANING "the principal of this user, a gateway; otherwise empty"
#define BLOCKS_MEANING                                                                             \
        "blocks that its running requests have and were promised; shared ones in parts"
#define CACHED_MEANING  "its blocks that no request uses now"
#define RUNNING_MEANING "its requests that have a slot"
#define WAITING_MEANING "its requests that wait for a slot"
#define TOKENS_MEANING                                                                             \
        "tokens that its streams have generated, of those that have ended; it begins at 0 again "  \
        "for a user that was away"

/* ---- values ---- */

static const struct edge_resources *count_resources(struct edge *edge)
{
        struct edge_resources *resources = &edge->resources;

        if (resources->turn != edge->turn)
                resources->result = sys_resources(&resources->counts);
        resources->turn = edge->turn;
        return resources;
}

/* How fast the engine works; its counters are read one after the other, which is exact enough. */
static void read_rates(const struct edge *edge, struct snapshot *to)
{
        const struct stats *stats = edge->conf.stats;
        uint64_t now = sys_clock_ns(), started = edge->conf.started_ns;

        to->tokens_in_per_s = rate_per_s(&stats->tokens_in_rate, now, started);
        to->tokens_out_per_s = rate_per_s(&stats->tokens_out_rate, now, started);
        to->busy_s = (double)counter_get(&stats->busy_ns) / 1e9;
        if (to->busy_s > 0)
                to->mean_tokens_out_per_s = (double)counter_get(&stats->tokens_out) / to->busy_s;
}

/* How often requests have been preempted, for each 100 of them. */
static void read_preemptions(const struct stats *stats, struct snapshot *to)
{
        uint64_t submitted = counter_get(&stats->submitted);

        if (!submitted)
                return;
        to->preemptions_per_100 =
                100 * (double)counter_get(&stats->preemptions) / (double)submitted;
        to->blocks_lost_per_100 =
                100 * (double)counter_get(&stats->blocks_lost) / (double)submitted;
}

/* Reads the values that are members of the edge. */
static void take_snapshot(struct edge *edge, struct snapshot *to)
{
        const struct edge_resources *resources = count_resources(edge);
        const struct served *served = edge->conf.served;

        *to = (struct snapshot){
                .protocol = SMV_PROTOCOL_VERSION,
                .pid = edge->pid,
                .uid = edge->uid,
                .uptime_s = (sys_clock_ns() - edge->conf.started_ns) / 1000000000u,
                .stopping = edge->phase != EDGE_SERVING,
                .stops_in_s = late_left_s(edge),
                .block_positions = BLOCK_POSITIONS,
                .jobs = edge->jobs_out,
                .log_lost = log_lost(),
                .descriptors = resources->counts.descriptors,
                .mappings = resources->counts.mappings,
                .threads = resources->counts.threads,
                .requests_open = admission_alive(edge->admission),
                .requests_submitted = edge->live_count,
                .connections_open = quota_used(edge->quota, QUOTA_CONNECTIONS),
                .connections_max = edge->conf.config->connections,
                .channels_allocated = edge->channels_open,
                .handles = handles_sum(edge->handles),
                .streams = resumables_sum(edge->resumables),
                .temperature = (double)served->defaults.temperature,
                .top_p = (double)served->defaults.top_p,
                .min_p = (double)served->defaults.min_p,
                .version = SAMOVAR_VERSION,
                .model = served->name,
                .backend = served->backend,
                .load_method =
                        load_way_name((enum load_way)counter_get(&edge->conf.stats->load_way)),
                .has_chat = !chat_refusal(served->chat),
                .has_counts = !resources->result,
                .draft = served->draft,
                .quantisation = served->quantisation,
                .weight_bytes = served->weight_bytes,
                .architecture = served->facts.architecture,
                .digest = served->facts.digest,
                .tool_dialect = served->dialect ? served->dialect->name : "",
                .has_reasoning = served->dialect && dialect_has_reasoning(served->dialect),
                .format = served->facts.format ? served->facts.format : "",
                .parameters = served->facts.parameters,
                .modified_s = served->facts.modified_s,
        };
        read_rates(edge, to);
        read_preemptions(edge->conf.stats, to);
}

/*
 * True for root and for the user that runs the daemon.  Other users see their own row, and the
 * figures that explain why a request waits.
 */
static bool sees_all(const struct edge *edge, uint64_t viewer)
{
        return !viewer || viewer == edge->uid;
}

/* Totals say nothing of a single user.  The gateway shows them as metrics. */
static bool sees_totals(const struct edge *edge, uint64_t viewer)
{
        return sees_all(edge, viewer) || principals_is_gateway(edge->principals, viewer);
}

/* ---- users ---- */

/* The next user that this viewer may see: itself, or any. */
static const struct quota_user *next_shown(const struct edge *edge, uint64_t viewer,
                                           uint32_t *index)
{
        const struct quota_user *user;

        do
                user = quota_next(edge->quota, index);
        while (user && user->uid != viewer && !sees_all(edge, viewer));
        return user;
}

/* The rows of the usage snapshot: what the engine has written for all users. */
struct written {
        const struct usage_row *rows;
        uint32_t count;
};

static struct usage_row row_of(const struct written *written, uint64_t uid)
{
        for (uint32_t i = 0; i < written->count; i++)
                if (written->rows[i].uid == uid)
                        return written->rows[i];
        return (struct usage_row){ .uid = uid };
}

/*
 * The next row of a user that holds nothing here, but that has blocks in the pool.  Principals that
 * were forgotten are left out.
 */
static const struct usage_row *next_gone(const struct edge *edge, uint64_t viewer,
                                         const struct written *written, uint32_t *index)
{
        while (*index < written->count) {
                const struct usage_row *row = &written->rows[(*index)++];
                struct user_shown shown;

                if ((row->blocks || row->cached) &&
                    principals_show(edge->principals, row->uid, &shown) &&
                    (row->uid == viewer || sees_all(edge, viewer)) &&
                    !quota_holds(edge->quota, row->uid))
                        return row;
        }
        return NULL;
}

static void put_number(struct wire_writer *writer, const char *name, uint64_t value)
{
        wire_put_text(writer, name);
        wire_put_uint(writer, value);
}

static void put_user(struct wire_writer *writer, const struct edge *edge,
                     const struct quota_user *user, const struct usage_row *row)
{
        struct user_shown shown;

        (void)principals_show(edge->principals, row->uid, &shown);
        wire_put_map(writer, 7 + QUOTA_KIND_N);
        put_number(writer, "uid", shown.uid);
        wire_put_text(writer, "principal");
        wire_put_text(writer, shown.principal);
        for (uint32_t kind = 0; kind < QUOTA_KIND_N; kind++)
                put_number(writer, quota_name(kind), user ? user->held[kind] : 0);
        put_number(writer, "blocks", row->blocks);
        put_number(writer, "cached_blocks", row->cached);
        put_number(writer, "running", row->running);
        put_number(writer, "waiting", row->waiting);
        put_number(writer, "tokens_out", user ? user->tokens : 0);
}

static void put_users(struct wire_writer *writer, const struct edge *edge, uint64_t viewer)
{
        const struct quota_user *user;
        const struct usage_row *gone;
        struct written written;
        uint32_t index = 0, count = 0;

        written.count = usage_snapshot_read(edge->conf.usage_snapshot, &written.rows);
        while (next_shown(edge, viewer, &index))
                count++;
        index = 0;
        while (next_gone(edge, viewer, &written, &index))
                count++;
        wire_put_text(writer, "users");
        wire_put_array(writer, count);
        index = 0;
        while ((user = next_shown(edge, viewer, &index))) {
                struct usage_row row = row_of(&written, user->uid);

                put_user(writer, edge, user, &row);
        }
        index = 0;
        while ((gone = next_gone(edge, viewer, &written, &index)))
                put_user(writer, edge, NULL, gone);
}

/* ---- the reply ---- */

static void put_limits(struct wire_writer *writer, const struct config *config)
{
        const char *name;
        uint32_t index = 0, count = 0;
        uint64_t value;

        while (settings_limit(&config_table, config, &index, &name, &value))
                count++;
        wire_put_text(writer, "limits");
        wire_put_map(writer, count);
        index = 0;
        while (settings_limit(&config_table, config, &index, &name, &value))
                put_number(writer, name, value);
}

static void put_bounds(struct wire_writer *writer)
{
        wire_put_array(writer, HISTOGRAM_BOUNDS);
        for (uint32_t i = 0; i < HISTOGRAM_BOUNDS; i++)
                wire_put_float(writer, (double)histogram_bound_ns(i) / 1e9);
}

static void put_times(struct wire_writer *writer, const struct histogram *histogram)
{
        uint64_t counts[HISTOGRAM_BOUNDS];

        wire_put_map(writer, 3);
        put_number(writer, "count", histogram_read(histogram, counts));
        wire_put_text(writer, "sum");
        wire_put_float(writer, (double)counter_get(&histogram->sum_ns) / 1e9);
        wire_put_text(writer, "buckets");
        wire_put_array(writer, HISTOGRAM_BOUNDS);
        for (uint32_t i = 0; i < HISTOGRAM_BOUNDS; i++)
                wire_put_uint(writer, counts[i]);
}

static void put_steps(struct wire_writer *writer, const struct step_histogram *histogram)
{
        uint64_t counts[STEP_BOUNDS];

        wire_put_map(writer, 3);
        put_number(writer, "count", step_histogram_read(histogram, counts));
        wire_put_text(writer, "le");
        wire_put_array(writer, STEP_BOUNDS);
        for (uint32_t i = 0; i < STEP_BOUNDS; i++)
                wire_put_uint(writer, step_bound(i));
        wire_put_text(writer, "buckets");
        wire_put_array(writer, STEP_BOUNDS);
        for (uint32_t i = 0; i < STEP_BOUNDS; i++)
                wire_put_uint(writer, counts[i]);
}

static void put_depths(struct wire_writer *writer, const counter *counts)
{
        wire_put_array(writer, SMV_DRAFT_TOKENS_MAX);
        for (uint32_t i = 0; i < SMV_DRAFT_TOKENS_MAX; i++)
                wire_put_uint(writer, counter_get(&counts[i]));
}

static void put_key(struct wire_writer *writer, const struct edge *edge,
                    const struct snapshot *snapshot, const struct key *key)
{
        const char *stats = (const char *)edge->conf.stats + key->offset;
        const char *served = (const char *)edge->conf.served + key->offset;
        const char *other = (const char *)snapshot + key->offset;

        wire_put_text(writer, key->name);
        switch (key->source) {
        case FROM_STATS:
                wire_put_uint(writer, counter_get((const counter *)(const void *)stats));
                break;
        case FROM_TIMES:
                put_times(writer, (const struct histogram *)(const void *)stats);
                break;
        case FROM_BOUNDS:
                put_bounds(writer);
                break;
        case FROM_STEPS:
                put_steps(writer, (const struct step_histogram *)(const void *)stats);
                break;
        case FROM_DEPTHS:
                put_depths(writer, (const counter *)(const void *)stats);
                break;
        case FROM_SERVED:
                wire_put_uint(writer, *(const uint32_t *)(const void *)served);
                break;
        case FROM_SNAPSHOT:
        case FROM_PROC:
                wire_put_uint(writer, *(const uint64_t *)(const void *)other);
                break;
        case FROM_REAL:
                wire_put_float(writer, *(const double *)(const void *)other);
                break;
        case FROM_TEXT:
                wire_put_text(writer, *(const char *const *)(const void *)other);
                break;
        case FROM_SWITCH:
                wire_put_bool(writer, *(const bool *)(const void *)other);
                break;
        }
}

/* The keys of a section that are known.  Those of FROM_PROC may not be. */
static uint32_t known_keys(const struct section *section, const struct snapshot *snapshot)
{
        uint32_t count = 0;

        for (size_t i = 0; i < section->count; i++)
                count += snapshot->has_counts || section->keys[i].source != FROM_PROC;
        return count;
}

static void put_section(struct wire_writer *writer, const struct edge *edge,
                        const struct snapshot *snapshot, const struct section *section)
{
        if (*section->name) {
                wire_put_text(writer, section->name);
                wire_put_map(writer, known_keys(section, snapshot));
        }
        for (size_t i = 0; i < section->count; i++)
                if (snapshot->has_counts || section->keys[i].source != FROM_PROC)
                        put_key(writer, edge, snapshot, &section->keys[i]);
}

static void put_status(struct edge *edge, uint64_t viewer, struct wire_writer *writer, uint32_t id)
{
        bool all = sees_totals(edge, viewer);
        struct snapshot snapshot;
        uint32_t count = 2; /* users and limits */

        take_snapshot(edge, &snapshot);
        for (size_t i = 0; i < COUNT_OF(sections); i++)
                if (all || sections[i].visible == TO_EVERYBODY)
                        count += *sections[i].name ? 1 : known_keys(&sections[i], &snapshot);

        wire_put_ok(writer, id, 1);
        wire_put_text(writer, "status");
        wire_put_map(writer, count);
        for (size_t i = 0; i < COUNT_OF(sections); i++)
                if (all || sections[i].visible == TO_EVERYBODY)
                        put_section(writer, edge, &snapshot, &sections[i]);
        put_users(writer, edge, viewer);
        put_limits(writer, edge->conf.config);
}

int op_status(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct wire_writer writer;

        (void)ret_problem;
        if (!connection_reply(peer, &writer))
                return 0;
        put_status(peer->edge, peer->uid, &writer, asked->id);
        connection_replied(peer, &writer);
        return 0;
}

/* ---- manuals ---- */

static bool describe_user(size_t index, struct status_row *ret_row)
{
        static const struct {
                const char *name, *meaning;
        } last[] = {
                { "blocks", BLOCKS_MEANING },     { "cached_blocks", CACHED_MEANING },
                { "running", RUNNING_MEANING },   { "waiting", WAITING_MEANING },
                { "tokens_out", TOKENS_MEANING },
        };

        *ret_row = (struct status_row){
                .section = "users",
                .about = "an array: what each user holds; a user sees its own map only",
        };
        if (index == 0) {
                ret_row->name = "uid";
                ret_row->meaning = UID_MEANING;
        } else if (index == 1) {
                ret_row->name = "principal";
                ret_row->meaning = PRINCIPAL_MEANING;
        } else if (index <= QUOTA_KIND_N + 1) {
                ret_row->name = quota_name((enum quota_kind)(index - 2));
                ret_row->meaning = kind_meanings[index - 2];
        } else if (index - QUOTA_KIND_N - 2 < COUNT_OF(last)) {
                ret_row->name = last[index - QUOTA_KIND_N - 2].name;
                ret_row->meaning = last[index - QUOTA_KIND_N - 2].meaning;
        } else {
                return false;
        }
        return true;
}

bool status_describe(size_t index, struct status_row *ret_row)
{
        for (size_t i = 0; i < COUNT_OF(sections); i++) {
                const struct section *section = &sections[i];

                if (index < section->count) {
                        *ret_row = (struct status_row){
                                .section = section->name,
                                .about = section->meaning,
                                .name = section->keys[index].name,
                                .meaning = section->keys[index].meaning,
                                .owner_only = section->visible == TO_OWNER,
                        };
                        return true;
                }
                index -= section->count;
        }
        return describe_user(index, ret_row);
}
