/*
 * status: one screen.  Rates and times come only to root and the user of the daemon; other users
 * get a line that says so.
 */
#include "cli/amounts.h"
#include "cli/cells.h"
#include "cli/reply.h"
#include "cli/status-reader.h"
#include "cli/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BAR_CELLS 40u

struct making {
        const struct json_document *status;
        struct status_size size;
        struct bytes *to;
        unsigned rows; /* lines so far */
        int result;    /* 0 or -ENOMEM */
};

/* ---- the reply ---- */

static uint32_t member(const struct making *m, uint32_t map, const char *name)
{
        return json_member(m->status, map, name);
}

static double number(const struct making *m, const char *section, const char *name)
{
        return status_number(m->status, section, name);
}

static double top_number(const struct making *m, const char *name)
{
        return status_top_number(m->status, name);
}

static const char *text(const struct making *m, uint32_t map, const char *name)
{
        return status_text(m->status, map, name);
}

/* ---- lines ---- */

/* Appends a line, cut at the width of the screen; control characters become "?". */
__attribute__((format(printf, 2, 3))) static void add_line(struct making *m, const char *format,
                                                           ...)
{
        char line[512];
        va_list values;

        if (m->rows == m->size.rows)
                return;
        va_start(values, format);
        vsnprintf(line, sizeof(line), format, values);
        va_end(values);
        if (!m->result)
                m->result = cells_add(m->to, line, m->size.columns, NULL);
        if (!m->result)
                m->result = bytes_add(m->to, "\n", 1);
        m->rows++;
}

/* ---- histograms ---- */

/* "p50 42 ms, p95 310 ms", or "-" if nothing was counted yet. */
static const char *quantiles(const struct making *m, const char *name, char to[96])
{
        double half = status_quantile(m->status, name, 0.5);
        double most = status_quantile(m->status, name, 0.95);
        char p50[AMOUNT_BYTES], p95[AMOUNT_BYTES];

        if (half >= 0)
                snprintf(to, 96, "p50 %s, p95 %s", amount_duration(half, p50),
                         amount_duration(most, p95));
        else
                snprintf(to, 96, "-");
        return to;
}

/* ---- parts of the screen ---- */

static void add_daemon(struct making *m)
{
        uint32_t model = member(m, 0, "model");
        double loaded = number(m, "loading", "bytes"), total = number(m, "loading", "total");
        struct reply_daemon daemon = reply_daemon(m->status);
        char up[AMOUNT_BYTES], size[AMOUNT_BYTES], owner[REPLY_OWNER_BYTES];
        bool chat = false, stopping = false;

        json_bool(m->status, member(m, model, "chat"), &chat);
        add_line(m, "samovard   %s, %s, up %s", text(m, 0, "version"), reply_owner(&daemon, owner),
                 amount_uptime((uint64_t)top_number(m, "uptime_s"), up));
        if (daemon.socket)
                add_line(m, "socket     %s", daemon.socket);
        add_line(m, "model      %s (%s, %s), context %.0f%s", text(m, model, "name"),
                 text(m, model, "quantisation"), amount_bytes(number(m, "model", "bytes"), size),
                 number(m, "model", "context"), chat ? ", chat" : "");
        add_line(m, "backend    %s", text(m, model, "backend"));
        if (loaded < total)
                add_line(m, "loading    %.0f %% of %s", 100 * loaded / total,
                         amount_bytes(total, size));
        json_bool(m->status, member(m, 0, "stopping"), &stopping);
        if (stopping)
                add_line(m, "stopping   streams that still run are ended in %.0f s",
                         top_number(m, "stops_in_s"));
}

static void add_times(struct making *m)
{
        char times[96];

        if (!status_sees_all(m->status)) {
                add_line(m, "times      only root and the user of the daemon see rates and times");
                return;
        }
        add_line(m, "tokens/s   %.1f now, %.1f mean; prompts %.1f now",
                 number(m, "rates", "tokens_out_per_s"),
                 number(m, "rates", "mean_tokens_out_per_s"),
                 number(m, "rates", "tokens_in_per_s"));
        add_line(m, "first      token %s", quantiles(m, "time_to_first_token_seconds", times));
        add_line(m, "next       token %s", quantiles(m, "inter_token_latency_seconds", times));
        add_line(m, "request    %s", quantiles(m, "e2e_request_latency_seconds", times));
}

static void add_queue(struct making *m)
{
        char times[96];

        add_line(m, "queue      %.0f waiting, %.0f running, %.0f stalled%s%s",
                 number(m, "requests", "waiting"), number(m, "requests", "running"),
                 number(m, "requests", "stalled"), !status_sees_all(m->status) ? "" : "; waited ",
                 !status_sees_all(m->status) ? ""
                                             : quantiles(m, "request_queue_time_seconds", times));
}

static void add_waits(struct making *m)
{
        char waits[STATUS_WAITS_BYTES];

        if (*status_waits(m->status, waits))
                add_line(m, "waiting    %s", waits);
}

static void add_pool(struct making *m)
{
        struct status_pool pool = status_pool(m->status);
        char bar[BAR_CELLS + 1];

        status_pool_bar(&pool, BAR_CELLS, bar);
        add_line(m, "pool       [%s] of %.0f blocks", bar, pool.total);
        add_line(m, "           # %.0f in use (%u %%), = %.0f cached (%u %%), . %.0f free (%u %%)",
                 pool.used, pool.used_percent, pool.cached, pool.cached_percent, pool.free,
                 pool.free_percent);
        if (number(m, "blocks", "swap_total") > 0)
                add_line(m, "swap       %.0f of %.0f blocks, %.0f moved out, %.0f came back",
                         number(m, "blocks", "swap_used"), number(m, "blocks", "swap_total"),
                         number(m, "blocks", "swapped_out"), number(m, "blocks", "swapped_in"));
}

/*
 * How careful the daemon is when it lets requests begin, and how often it was wrong.  Only root and
 * the user of the daemon are told `trust`.
 */
static void add_margin(struct making *m)
{
        double trust = top_number(m, "trust");

        if (trust > 0)
                add_line(m,
                         "margin     requests begin with room for answers longer than %.0f %% of "
                         "earlier ones",
                         trust);
        if (number(m, "requests", "preemptions") > 0)
                add_line(m, "preempted  %.1f times in 100 requests, %.1f because the pool was full",
                         number(m, "requests", "preemptions_per_100"),
                         number(m, "requests", "blocks_lost_per_100"));
}

/* ---- users ---- */

struct user {
        uint32_t uid;
        const char *principal; /* of this gateway; or NULL, or "" */
        double requests, blocks, cached, pinned, handles, connections;
};

/* The user with most requests comes first, then the one with most blocks. */
static int compare_users(const void *a, const void *b)
{
        const struct user *x = a, *y = b;

        if (x->requests != y->requests)
                return x->requests < y->requests ? 1 : -1;
        if (x->blocks + x->cached != y->blocks + y->cached)
                return x->blocks + x->cached < y->blocks + y->cached ? 1 : -1;
        return (x->uid > y->uid) - (x->uid < y->uid);
}

static void add_user(struct making *m, const struct user *user)
{
        char name[USER_NAME_BYTES];

        add_line(m, "           %-14.14s %8.0f %7.0f %7.0f %7.0f %8.0f %8.0f",
                 user_name(user->uid, user->principal, name), user->requests, user->blocks,
                 user->cached, user->pinned, user->handles, user->connections);
}

static void add_users(struct making *m)
{
        uint32_t list = member(m, 0, "users"), count = json_count(m->status, list), shown, i = 0;
        struct user *users = calloc(count + 1, sizeof(*users));

        if (!users) {
                m->result = -ENOMEM;
                return;
        }
        for (uint32_t at = json_first(m->status, list); at != JSON_NONE && i < count;
             at = json_next(m->status, at))
                users[i++] = (struct user){
                        .uid = (uint32_t)status_member(m->status, at, "uid"),
                        .principal = json_string(m->status, member(m, at, "principal"), NULL),
                        .requests = status_member(m->status, at, "requests"),
                        .blocks = status_member(m->status, at, "blocks"),
                        .cached = status_member(m->status, at, "cached_blocks"),
                        .pinned = status_member(m->status, at, "pinned_blocks"),
                        .handles = status_member(m->status, at, "handles"),
                        .connections = status_member(m->status, at, "connections"),
                };
        qsort(users, i, sizeof(*users), compare_users);
        add_line(m, "users      %-14s %8s %7s %7s %7s %8s %8s", "", "requests", "blocks", "cached",
                 "pinned", "handles", "clients");
        /* If not all fit, the last line is for the rest. */
        shown = m->size.rows > m->rows ? m->size.rows - m->rows : 0;
        if (shown < i)
                shown = shown ? shown - 1 : 0;
        for (uint32_t u = 0; u < i && u < shown; u++)
                add_user(m, &users[u]);
        if (shown < i)
                add_line(m, "           and %u more: samovar status --all", i - shown);
        free(users);
}

int status_make_screen(const struct json_document *status, struct status_size size,
                       struct bytes *to)
{
        struct making m = { .status = status, .size = size, .to = to };

        add_daemon(&m);
        add_times(&m);
        add_queue(&m);
        add_waits(&m);
        add_pool(&m);
        add_margin(&m);
        add_users(&m);
        return m.result;
}
