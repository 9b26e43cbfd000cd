/*
 * status: one screen.  Rates and times come only to root and the user of the daemon; other users
 * get a line that says so.
 */
#include "cli/status.h"
#include "cli/reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/utf8.h"

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

/* The number at that path; 0 if the reply has none. */
static double number(const struct making *m, const char *section, const char *name)
{
        double real = 0;

        json_real(m->status, member(m, member(m, 0, section), name), &real);
        return real;
}

static double top_number(const struct making *m, const char *name)
{
        double real = 0;

        json_real(m->status, member(m, 0, name), &real);
        return real;
}

static const char *text(const struct making *m, uint32_t map, const char *name)
{
        const char *found = json_string(m->status, member(m, map, name), NULL);

        return found ? found : "?";
}

/* ---- lines ---- */

/* Appends a line, cut at the width of the screen; control characters become "?". */
__attribute__((format(printf, 2, 3))) static void add_line(struct making *m, const char *format,
                                                           ...)
{
        char line[512];
        va_list values;
        unsigned cells = 0;

        if (m->rows == m->size.rows)
                return;
        va_start(values, format);
        vsnprintf(line, sizeof(line), format, values);
        va_end(values);
        for (size_t at = 0, length; line[at] && cells < m->size.columns; at += length, cells++) {
                int32_t point = utf8_next(line + at, strlen(line + at), &length);
                bool safe = point >= ' ' && !utf8_is_control(point);

                if (!m->result)
                        m->result = bytes_add(m->to, safe ? line + at : "?", safe ? length : 1);
        }
        if (!m->result)
                m->result = bytes_add(m->to, "\n", 1);
        m->rows++;
}

static const char *bytes_text(double count, char to[32])
{
        static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
        unsigned unit = 0;

        for (; count >= 1000 && unit < 4; unit++)
                count /= 1024;
        snprintf(to, 32, unit ? "%.1f %s" : "%.0f %s", count, units[unit]);
        return to;
}

static const char *time_text(double seconds, char to[32])
{
        if (seconds < 0.0995)
                snprintf(to, 32, "%.2g ms", seconds * 1e3);
        else if (seconds < 0.9995)
                snprintf(to, 32, "%.0f ms", seconds * 1e3);
        else if (seconds < 99.5)
                snprintf(to, 32, "%.1f s", seconds);
        else if (seconds < 6000)
                snprintf(to, 32, "%.0f min", seconds / 60);
        else
                snprintf(to, 32, "%.1f h", seconds / 3600);
        return to;
}

static const char *uptime_text(uint64_t s, char to[32])
{
        if (s < 120)
                snprintf(to, 32, "%u s", (unsigned)s);
        else if (s < 7200)
                snprintf(to, 32, "%u min", (unsigned)(s / 60));
        else if (s < 172800)
                snprintf(to, 32, "%u h %u min", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
        else
                snprintf(to, 32, "%u days %u h", (unsigned)(s / 86400), (unsigned)(s / 3600 % 24));
        return to;
}

/* ---- histograms ---- */

/*
 * The duration that a part q of all durations does not exceed.  Inside a bucket, durations are
 * taken as spread evenly, as Prometheus does.  Beyond the last bound, it is that bound.
 */
static double quantile(const struct making *m, uint32_t histogram, double q)
{
        uint32_t bound = json_first(m->status, member(m, member(m, 0, "latency"), "le"));
        uint32_t bucket = json_first(m->status, member(m, histogram, "buckets"));
        double low = 0, high = 0, below = 0, up_to = 0, rank = 0;

        json_real(m->status, member(m, histogram, "count"), &rank);
        rank *= q;
        while (json_real(m->status, bound, &high) && json_real(m->status, bucket, &up_to)) {
                if (up_to >= rank && up_to > below)
                        return low + (high - low) * (rank - below) / (up_to - below);
                low = high;
                below = up_to;
                bound = json_next(m->status, bound);
                bucket = json_next(m->status, bucket);
        }
        return low;
}

/* "p50 42 ms, p95 310 ms", or "-" if nothing was counted yet. */
static const char *quantiles(const struct making *m, const char *name, char to[96])
{
        uint32_t histogram = member(m, member(m, 0, "latency"), name);
        char half[32], most[32];
        double count = 0;

        json_real(m->status, member(m, histogram, "count"), &count);
        if (count > 0)
                snprintf(to, 96, "p50 %s, p95 %s", time_text(quantile(m, histogram, 0.5), half),
                         time_text(quantile(m, histogram, 0.95), most));
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
        char up[32], size[32], owner[REPLY_OWNER_BYTES];
        bool chat = false, stopping = false;

        json_bool(m->status, member(m, model, "chat"), &chat);
        add_line(m, "samovard   %s, %s, up %s", text(m, 0, "version"), reply_owner(&daemon, owner),
                 uptime_text((uint64_t)top_number(m, "uptime_s"), up));
        if (daemon.socket)
                add_line(m, "socket     %s", daemon.socket);
        add_line(m, "model      %s (%s, %s), context %.0f%s", text(m, model, "name"),
                 text(m, model, "quantisation"), bytes_text(number(m, "model", "bytes"), size),
                 number(m, "model", "context"), chat ? ", chat" : "");
        add_line(m, "backend    %s", text(m, model, "backend"));
        if (loaded < total)
                add_line(m, "loading    %.0f %% of %s", 100 * loaded / total,
                         bytes_text(total, size));
        json_bool(m->status, member(m, 0, "stopping"), &stopping);
        if (stopping)
                add_line(m, "stopping   streams that still run are ended in %.0f s",
                         top_number(m, "stops_in_s"));
}

static void add_times(struct making *m)
{
        char times[96];

        if (member(m, 0, "latency") == JSON_NONE) {
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
                 number(m, "requests", "stalled"),
                 member(m, 0, "latency") == JSON_NONE ? "" : "; waited ",
                 member(m, 0, "latency") == JSON_NONE
                         ? ""
                         : quantiles(m, "request_queue_time_seconds", times));
}

/* Nothing if no request waits.  An older daemon does not say why they wait. */
static void add_waits(struct making *m)
{
        static const char *const why[][2] = {
                { "blocks", "need blocks" },
                { "forecast", "would outgrow the pool" },
                { "slot", "need a slot" },
                { "windows", "need window pages" },
                { "share", "of a user with its share" },
                { "turn", "behind others" },
                { "prefix", "for a common beginning" },
                { "reader", "of clients that do not read" },
        };
        char line[256] = "";
        size_t used = 0;

        for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++) {
                double count = number(m, "waits", why[i][0]);

                if (count > 0)
                        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%.0f %s",
                                                 used ? ", " : "", count, why[i][1]);
        }
        if (used)
                add_line(m, "waiting    %s", line);
}

/*
 * A block is in use, cached or free.  The daemon may count a block twice while it moves between
 * these; `free` is what remains here, so the three numbers and their shares add up.
 */
static void add_pool(struct making *m)
{
        double total = number(m, "blocks", "total"), used = number(m, "blocks", "in_use"),
               cached = number(m, "blocks", "cached"), free;
        unsigned to_used, to_cached;
        char bar[BAR_CELLS + 1];

        total = total > 0 ? total : 1;
        free = total > used + cached ? total - used - cached : 0;
        to_used = (unsigned)(100 * used / total + 0.5);
        to_cached = (unsigned)(100 * (used + cached) / total + 0.5);
        for (unsigned i = 0; i < BAR_CELLS; i++) {
                double at = (i + 0.5) / BAR_CELLS * total;

                bar[i] = at < used ? '#' : at < used + cached ? '=' : '.';
        }
        bar[BAR_CELLS] = '\0';
        add_line(m, "pool       [%s] of %.0f blocks", bar, total);
        add_line(m, "           # %.0f in use (%u %%), = %.0f cached (%u %%), . %.0f free (%u %%)",
                 used, to_used, cached, to_cached - to_used, free,
                 to_cached < 100 ? 100 - to_cached : 0);
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

static double user_number(const struct making *m, uint32_t user, const char *name)
{
        double real = 0;

        json_real(m->status, member(m, user, name), &real);
        return real;
}

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
                        .uid = (uint32_t)user_number(m, at, "uid"),
                        .principal = json_string(m->status, member(m, at, "principal"), NULL),
                        .requests = user_number(m, at, "requests"),
                        .blocks = user_number(m, at, "blocks"),
                        .cached = user_number(m, at, "cached_blocks"),
                        .pinned = user_number(m, at, "pinned_blocks"),
                        .handles = user_number(m, at, "handles"),
                        .connections = user_number(m, at, "connections"),
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
