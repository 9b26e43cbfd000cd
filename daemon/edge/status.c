#include "daemon/edge/status.h"

#include "daemon/edge/keeper.h"
#include "daemon/edge/shelf.h"
#include "daemon/load-way.h"
#include "daemon/log.h"
#include "daemon/sys.h"
#include "daemon/text/chat.h"

/* The first pairs, which every user may see. */
#define OF_EVERYBODY    4u
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define PAIR(text, number)                                                                         \
        {                                                                                          \
                .name = (text), .bytes = sizeof(text) - 1, .value = (number)                       \
        }

struct pair {
        const char *name;
        uint32_t bytes; /* of the name, counted by the compiler */
        uint64_t value;
};

static void put_pairs(struct wire_writer *writer, const struct pair *pairs, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                wire_put_bytes(writer, pairs[i].name, pairs[i].bytes);
                wire_put_uint(writer, pairs[i].value);
        }
}

static void put_map(struct wire_writer *writer, const char *name, const struct pair *pairs,
                    uint32_t count)
{
        wire_put_text(writer, name);
        wire_put_map(writer, count);
        put_pairs(writer, pairs, count);
}

/*
 * True for root and for the user that runs the daemon.  Other users see their own row, and what
 * explains why a request waits.
 */
static bool sees_all(const struct edge *edge, uint32_t viewer)
{
        return !viewer || viewer == edge->uid;
}

static void put_model(struct wire_writer *writer, const struct served *served)
{
        const struct traits *traits = &served->traits;
        const struct pair pairs[] = {
                PAIR("vocab", traits->vocab),       PAIR("context", served->context),
                PAIR("layers", traits->layers),     PAIR("width", traits->width),
                PAIR("heads", traits->heads),       PAIR("kv_heads", traits->kv_heads),
                PAIR("head_dim", traits->head_dim), PAIR("ffn", traits->ffn),
                PAIR("holds", served->holds),
        };

        wire_put_text(writer, "model");
        wire_put_map(writer, 3 + COUNT_OF(pairs));
        wire_put_text(writer, "name");
        wire_put_text(writer, served->name);
        wire_put_text(writer, "backend");
        wire_put_text(writer, served->backend);
        wire_put_text(writer, "chat");
        wire_put_bool(writer, !chat_missing(served->chat));
        put_pairs(writer, pairs, COUNT_OF(pairs));
}

static void put_blocks(struct wire_writer *writer, const struct stats *stats)
{
        const struct pair pairs[] = {
                PAIR("total", counter_get(&stats->blocks_total)),
                PAIR("free", counter_get(&stats->blocks_free)),
                PAIR("cached", counter_get(&stats->blocks_kept)),
                PAIR("held", counter_get(&stats->blocks_held)),
                PAIR("promised", counter_get(&stats->blocks_promised)),
                PAIR("evicted", counter_get(&stats->blocks_evicted)),
                PAIR("copied", counter_get(&stats->blocks_copied)),
        };

        put_map(writer, "blocks", pairs, COUNT_OF(pairs));
}

/* Loaded when bytes == total. */
static void put_loading(struct wire_writer *writer, const struct stats *stats)
{
        const struct pair pairs[] = {
                PAIR("bytes", counter_get(&stats->load_bytes)),
                PAIR("total", counter_get(&stats->load_total)),
        };

        wire_put_text(writer, "loading");
        wire_put_map(writer, 1 + COUNT_OF(pairs));
        wire_put_text(writer, "way");
        wire_put_text(writer, load_way_name((enum load_way)counter_get(&stats->load_way)));
        put_pairs(writer, pairs, COUNT_OF(pairs));
}

static void put_requests(struct wire_writer *writer, const struct edge *edge)
{
        const struct stats *stats = edge->conf.stats;
        const struct pair pairs[] = {
                PAIR("alive", admit_alive(edge->admit)),
                PAIR("live", edge->live_count),
                PAIR("waiting", counter_get(&stats->waiting)),
                PAIR("running", counter_get(&stats->running)),
                PAIR("stalled", counter_get(&stats->stalled)),
                PAIR("ending", counter_get(&stats->ending)),
                PAIR("ends_waiting", counter_get(&stats->ends_waiting)),
                PAIR("passed_over", counter_get(&stats->passed_over)),
                PAIR("parked", counter_get(&stats->parks)),
                PAIR("seen", counter_get(&stats->requests_seen)),
                PAIR("refused", counter_get(&stats->requests_refused)),
        };

        put_map(writer, "requests", pairs, COUNT_OF(pairs));
}

static void put_connections(struct wire_writer *writer, const struct edge *edge)
{
        const struct stats *stats = edge->conf.stats;
        const struct pair connections[] = {
                PAIR("open", edge->peer_count),
                PAIR("seen", counter_get(&stats->connections_seen)),
                PAIR("refused", counter_get(&stats->connections_refused)),
                PAIR("max", edge->conf.config->connections),
        };
        const struct pair channels[] = {
                PAIR("open", counter_get(&stats->channels_open)),
                PAIR("made", edge->channels_open),
        };

        put_map(writer, "connections", connections, COUNT_OF(connections));
        put_map(writer, "channels", channels, COUNT_OF(channels));
}

static void put_handles(struct wire_writer *writer, const struct edge *edge)
{
        struct handles_sum sum = handles_sum(edge->handles);
        struct pair pairs[] = {
                PAIR("open", sum.open),
                PAIR("tokens", sum.tokens),
                PAIR("bytes", sum.bytes),
                PAIR("kept", 0),
        };

        for (const struct shelf *shelf = edge->shelves; shelf; shelf = shelf->next)
                pairs[COUNT_OF(pairs) - 1].value++;
        put_map(writer, "handles", pairs, COUNT_OF(pairs));
}

static void put_kept(struct wire_writer *writer, const struct edge *edge)
{
        struct keeper_sum sum = keeper_sum(edge->keeper);
        const struct pair pairs[] = {
                PAIR("open", sum.open),
                PAIR("attached", sum.attached),
                PAIR("ended", sum.ended),
                PAIR("bytes", sum.bytes),
        };

        put_map(writer, "kept", pairs, COUNT_OF(pairs));
}

/* The next account that this viewer may see: its own, or any. */
static const struct quota_account *next_shown(const struct edge *edge, uint32_t viewer,
                                              uint32_t *index)
{
        const struct quota_account *account;

        do
                account = quota_next(edge->quota, index);
        while (account && account->uid != viewer && !sees_all(edge, viewer));
        return account;
}

/* The rows of the board: what the engine has written for all users. */
struct written {
        const struct board_row *rows;
        uint32_t count;
};

static struct board_row row_of(const struct written *written, uint32_t uid)
{
        for (uint32_t i = 0; i < written->count; i++)
                if (written->rows[i].uid == uid)
                        return written->rows[i];
        return (struct board_row){ .uid = uid };
}

/* The next row of a user whose account holds nothing, but that has blocks in the pool. */
static const struct board_row *next_gone(const struct edge *edge, uint32_t viewer,
                                         const struct written *written, uint32_t *index)
{
        while (*index < written->count) {
                const struct board_row *row = &written->rows[(*index)++];

                if ((row->blocks || row->cached) &&
                    (row->uid == viewer || sees_all(edge, viewer)) &&
                    !quota_holds(edge->quota, row->uid))
                        return row;
        }
        return NULL;
}

static void put_user(struct wire_writer *writer, const struct quota_account *account,
                     const struct board_row *row)
{
        wire_put_map(writer, 3 + QUOTA_KIND_N);
        wire_put_text(writer, "uid");
        wire_put_uint(writer, row->uid);
        for (uint32_t kind = 0; kind < QUOTA_KIND_N; kind++) {
                wire_put_text(writer, quota_name(kind));
                wire_put_uint(writer, account ? account->held[kind] : 0);
        }
        wire_put_text(writer, "blocks");
        wire_put_uint(writer, row->blocks);
        wire_put_text(writer, "cached_blocks");
        wire_put_uint(writer, row->cached);
}

static void put_charges(struct wire_writer *writer, const struct edge *edge, uint32_t viewer)
{
        const struct quota_account *account;
        const struct board_row *gone;
        struct written written;
        uint32_t index = 0, count = 0;

        written.count = board_look(edge->conf.board, &written.rows);
        while (next_shown(edge, viewer, &index))
                count++;
        index = 0;
        while (next_gone(edge, viewer, &written, &index))
                count++;
        wire_put_text(writer, "charges");
        wire_put_array(writer, count);
        index = 0;
        while ((account = next_shown(edge, viewer, &index))) {
                struct board_row row = row_of(&written, account->uid);

                put_user(writer, account, &row);
        }
        index = 0;
        while ((gone = next_gone(edge, viewer, &written, &index)))
                put_user(writer, NULL, gone);
}

static void put_limits(struct wire_writer *writer, const struct config *config)
{
        const struct pair pairs[] = {
                PAIR("ctx", config->ctx),
                PAIR("kv_bytes", config->kv_bytes),
                PAIR("max_seqs", config->max_seqs),
                PAIR("step_tokens", config->step_tokens),
                PAIR("threads", config->threads),
                PAIR("depth", config->depth),
                PAIR("gap_ms", config->gap_ms),
                PAIR("max_parks", config->max_parks),
                PAIR("batch_size", config->batch_size),
                PAIR("batch_window_ms", config->batch_window_ms),
                PAIR("max_tokens", config->max_tokens),
                PAIR("uid_connections", config->uid_connections),
                PAIR("uid_requests", config->uid_requests),
                PAIR("uid_prompt_bytes", config->uid_prompt_bytes),
                PAIR("uid_handles", config->uid_handles),
                PAIR("uid_blocks_percent", config->uid_blocks_percent),
                PAIR("uid_cached_percent", config->uid_cached_percent),
                PAIR("uid_held_percent", config->uid_held_percent),
                PAIR("uid_kept", config->uid_kept),
                PAIR("uid_kept_bytes", config->uid_kept_bytes),
                PAIR("publish", config->publish),
                PAIR("uid_connects_burst", config->uid_connects_burst),
                PAIR("uid_connects_per_s", config->uid_connects_per_s),
                PAIR("uid_ring_bytes", config->uid_ring_bytes),
                PAIR("ring_bytes", config->ring_bytes),
                PAIR("frame_bytes", config->frame_bytes),
                PAIR("reply_bytes", config->reply_bytes),
                PAIR("hello_ms", config->hello_ms),
                PAIR("frame_ms", config->frame_ms),
                PAIR("connections", config->connections),
                PAIR("requests", config->requests),
                PAIR("kept", config->kept),
                PAIR("stall_ms", config->stall_ms),
                PAIR("grace_ms", config->grace_ms),
                PAIR("drain_ms", config->drain_ms),
        };

        put_map(writer, "limits", pairs, COUNT_OF(pairs));
}

static const struct edge_holds *count_holds(struct edge *edge)
{
        struct edge_holds *holds = &edge->holds;

        if (holds->turn != edge->turn)
                holds->result = sys_holds(&holds->counts);
        holds->turn = edge->turn;
        return holds;
}

void status_put(struct edge *edge, uint32_t viewer, struct wire_writer *writer, uint32_t id)
{
        const struct stats *stats = edge->conf.stats;
        const struct edge_holds *holds = count_holds(edge);
        bool all = sees_all(edge, viewer);
        struct pair pairs[] = {
                PAIR("protocol", SMV_PROTOCOL_VERSION),
                PAIR("pid", edge->pid),
                PAIR("uid", edge->uid),
                PAIR("uptime_s", (sys_clock_ns() - edge->conf.started_ns) / 1000000000u),
                /* Every user may see the pairs up to here. */
                PAIR("steps", counter_get(&stats->steps)),
                PAIR("rows", counter_get(&stats->rows)),
                PAIR("tokens_in", counter_get(&stats->tokens_in)),
                PAIR("tokens_out", counter_get(&stats->tokens_out)),
                PAIR("ends", counter_get(&stats->ends)),
                PAIR("numeric_faults", counter_get(&stats->numeric_faults)),
                PAIR("wakes", counter_get(&stats->wakes)),
                PAIR("doorbells", counter_get(&stats->doorbells)),
                PAIR("jobs", edge->jobs_out),
                PAIR("log_lost", log_lost()),
                PAIR("descriptors", 0),
                PAIR("mappings", 0),
                PAIR("threads", 0),
        };
        uint32_t count = COUNT_OF(pairs);

        /* Without /proc the last three are not known, and left out. */
        if (!all)
                count = OF_EVERYBODY;
        else if (holds->result)
                count -= 3;
        pairs[COUNT_OF(pairs) - 3].value = holds->counts.descriptors;
        pairs[COUNT_OF(pairs) - 2].value = holds->counts.mappings;
        pairs[COUNT_OF(pairs) - 1].value = holds->counts.threads;

        wire_put_ok(writer, id, 1);
        wire_put_text(writer, "status");
        wire_put_map(writer, (all ? 11 : 7) + count);
        wire_put_text(writer, "version");
        wire_put_text(writer, SAMOVAR_VERSION);
        put_pairs(writer, pairs, count);
        put_model(writer, edge->conf.served);
        put_loading(writer, stats);
        put_blocks(writer, stats);
        put_requests(writer, edge);
        if (all) {
                put_connections(writer, edge);
                put_handles(writer, edge);
                put_kept(writer, edge);
        }
        put_charges(writer, edge, viewer);
        put_limits(writer, edge->conf.config);
}
