#include "cli/top/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/amounts.h"
#include "cli/status-reader.h"
#include "cli/top/stream-table.h"
#include "cli/work-reader.h"
#include "json/plural.h"

#define LABEL_CELLS 9u
#define BAR_MAX     60u
#define HIGH_ROWS   36u /* screens with so many have space for a curve of several lines */
#define FOOT_LINES  2u  /* the selected stream, and the keys */

/* How much of the daemon fits above the streams. */
enum detail {
        DETAIL_LEAST, /* the pool */
        DETAIL_SOME,  /* and the slots, the speed */
        DETAIL_ALL,   /* and the latencies, the users, the socket */
};

static enum detail detail_of(const struct frame *frame)
{
        unsigned rows = frame_left(frame);

        return rows >= 20 ? DETAIL_ALL : rows >= 10 ? DETAIL_SOME : DETAIL_LEAST;
}

void view_remember(struct view *view)
{
        if (view->history_count == VIEW_HISTORY)
                memmove(view->history, view->history + 1,
                        --view->history_count * sizeof(view->history[0]));
        view->history[view->history_count++] = view->snapshot->rate;
}

static double number(const struct view *view, const char *section, const char *name)
{
        return status_number(view->snapshot->status, section, name);
}

static void label(struct frame *frame, const char *text)
{
        frame_add(frame, FRAME_LABEL, "%s", text);
        frame_skip_to(frame, LABEL_CELLS);
}

/* ---- the daemon ---- */

static void add_facts(const struct json_document *status, struct frame *frame)
{
        uint32_t model = json_member(status, 0, "model");
        char up[AMOUNT_BYTES], size[AMOUNT_BYTES];

        frame_add(frame, FRAME_PLAIN, "  %s (%s, %s)  %s  %s, up %s",
                  status_text(status, model, "name"), status_text(status, model, "quantisation"),
                  amount_bytes(status_member(status, model, "bytes"), size),
                  status_text(status, model, "backend"), status_text(status, 0, "version"),
                  amount_uptime((uint64_t)status_top_number(status, "uptime_s"), up));
}

static void draw_title(const struct view *view, struct frame *frame)
{
        size_t clock = view->clock ? strlen(view->clock) : 0;

        frame_line_style(frame, FRAME_TITLE);
        frame_add(frame, FRAME_PLAIN, "samovar top");
        if (view->snapshot->status)
                add_facts(view->snapshot->status, frame);
        if (view->paused)
                frame_add(frame, FRAME_PLAIN, "  paused");
        if (clock && frame->cell + clock < frame->columns)
                frame_skip_to(frame, frame->columns - (unsigned)clock);
        if (clock && frame->cell + clock <= frame->columns)
                frame_add(frame, FRAME_PLAIN, "%s", view->clock);
        frame_end_line(frame);
}

static void draw_daemon(const struct view *view, struct frame *frame)
{
        struct reply_daemon daemon = reply_daemon(view->snapshot->status);
        char owner[REPLY_OWNER_BYTES];

        label(frame, "daemon");
        frame_add(frame, FRAME_PLAIN, "%s%s%s", daemon.socket ? daemon.socket : "",
                  daemon.socket ? ", " : "", reply_owner(&daemon, owner));
        frame_end_line(frame);
}

/* A bar of '#' for the part, and '.' for the rest. */
static void add_bar(struct frame *frame, double part, unsigned cells, enum frame_style style)
{
        char bar[BAR_MAX + 1];
        unsigned full = (unsigned)(part * cells + 0.5);

        full = full > cells ? cells : full;
        memset(bar, '#', full);
        memset(bar + full, '.', cells - full);
        bar[cells] = '\0';
        frame_add(frame, FRAME_PLAIN, "[");
        frame_add(frame, style, "%.*s", (int)full, bar);
        frame_add(frame, FRAME_FAINT, "%s", bar + full);
        frame_add(frame, FRAME_PLAIN, "] ");
}

static unsigned bar_cells(const struct frame *frame)
{
        unsigned cells = frame->columns / 3;

        return cells > BAR_MAX ? BAR_MAX : cells;
}

static enum frame_style style_of_part(double part)
{
        return part > 0.95 ? FRAME_BAD : part > 0.8 ? FRAME_WARNING : FRAME_GOOD;
}

/* Only while the weights are read, or the daemon ends. */
static void draw_phase(const struct view *view, struct frame *frame)
{
        double loaded = number(view, "loading", "bytes"), total = number(view, "loading", "total");
        bool stopping = false;
        char size[AMOUNT_BYTES];

        if (loaded < total) {
                label(frame, "loading");
                add_bar(frame, loaded / total, bar_cells(frame), FRAME_BUSY);
                frame_add(frame, FRAME_PLAIN, "%.0f%% of %s", 100 * loaded / total,
                          amount_bytes(total, size));
                frame_end_line(frame);
        }
        json_bool(view->snapshot->status, json_member(view->snapshot->status, 0, "stopping"),
                  &stopping);
        if (stopping) {
                label(frame, "stopping");
                frame_add(frame, FRAME_WARNING, "streams that still run are ended in %.0f s",
                          status_top_number(view->snapshot->status, "stops_in_s"));
                frame_end_line(frame);
        }
}

/* ---- pool, slots, queue ---- */

static void draw_pool(const struct view *view, struct frame *frame)
{
        struct status_pool pool = status_pool(view->snapshot->status);
        unsigned cells = bar_cells(frame), used = 0, cached = 0;
        char bar[BAR_MAX + 1];

        status_pool_bar(&pool, cells, bar);
        used = (unsigned)strspn(bar, "#");
        cached = (unsigned)strspn(bar + used, "=");
        label(frame, "pool");
        frame_add(frame, FRAME_PLAIN, "[");
        frame_add(frame, style_of_part(pool.used / pool.total), "%.*s", (int)used, bar);
        frame_add(frame, FRAME_BUSY, "%.*s", (int)cached, bar + used);
        frame_add(frame, FRAME_FAINT, "%s", bar + used + cached);
        frame_add(frame, FRAME_PLAIN, "] #%u%% in use =%u%% cached, %.0f blocks", pool.used_percent,
                  pool.cached_percent, pool.total);
        if (number(view, "blocks", "shared") > 0)
                frame_add(frame, FRAME_PLAIN, ", %.0f shared", number(view, "blocks", "shared"));
        if (number(view, "blocks", "swap_total") > 0)
                frame_add(frame, FRAME_PLAIN, ", swap %.0f of %.0f",
                          number(view, "blocks", "swap_used"),
                          number(view, "blocks", "swap_total"));
        frame_end_line(frame);
}

static void draw_slots(const struct view *view, struct frame *frame)
{
        double running = number(view, "requests", "running");
        double waiting = number(view, "requests", "waiting");
        double stalled = number(view, "requests", "stalled");
        double slots = number(view, "limits", "max_seqs");
        char waits[STATUS_WAITS_BYTES];

        label(frame, "slots");
        if (slots > 0) {
                add_bar(frame, running / slots, bar_cells(frame), style_of_part(running / slots));
                frame_add(frame, FRAME_PLAIN, "%.0f of %.0f", running, slots);
        } else {
                frame_add(frame, FRAME_PLAIN, "%.0f running", running);
        }
        frame_add(frame, FRAME_PLAIN, "; queue ");
        frame_add(frame, waiting > 0 ? FRAME_WARNING : FRAME_PLAIN, "%.0f", waiting);
        if (stalled > 0)
                frame_add(frame, FRAME_WARNING, ", %.0f stalled", stalled);
        if (*status_waits(view->snapshot->status, waits))
                frame_add(frame, FRAME_PLAIN, ": %s", waits);
        frame_end_line(frame);
}

/* ---- speed and latency ---- */

/* A cell that is filled from below by a part: 0 to 1, or beyond. */
static const char *curve_cell(const struct view *view, double part)
{
        static const char *const blocks[] = { "\u2581", "\u2582", "\u2583", "\u2584",
                                              "\u2585", "\u2586", "\u2587", "\u2588" };
        static const char *const letters[] = { "_", ".", ",", "-", "=", "+", "*", "#" };
        unsigned level = part > 0 ? (unsigned)(part * 7 + 0.5) : 0;

        level = level > 7 ? 7 : level;
        return view->unicode ? blocks[level] : letters[level];
}

/*
 * Row `row` of a curve of `height` rows, the highest first: the last rates, a cell each, up to the
 * end of the line.  The largest of them has the full height.
 */
static void add_curve(const struct view *view, struct frame *frame, unsigned row, unsigned height)
{
        unsigned cells = frame->columns > frame->cell ? frame->columns - frame->cell : 0;
        unsigned count = view->history_count < cells ? view->history_count : cells;
        const double *from = view->history + view->history_count - count;
        double largest = 0;

        for (unsigned i = 0; i < count; i++)
                largest = from[i] > largest ? from[i] : largest;
        for (unsigned i = 0; i < count; i++) {
                double part = largest > 0 ? from[i] / largest * height - (height - 1 - row) : 0;

                frame_add(frame, FRAME_GOOD, "%s",
                          part > 0 || row + 1 == height ? curve_cell(view, part) : " ");
        }
}

/* A high screen has a higher curve, in lines of its own. */
static void draw_curve(const struct view *view, struct frame *frame)
{
        unsigned height = frame->rows >= 50 ? 6 : 3;

        for (unsigned row = 0; row < height; row++) {
                frame_skip_to(frame, LABEL_CELLS);
                add_curve(view, frame, row, height);
                frame_end_line(frame);
        }
}

static void draw_speed(const struct view *view, struct frame *frame)
{
        label(frame, "tokens/s");
        frame_add(frame, FRAME_PLAIN, "%.1f", view->snapshot->rate);
        if (view->snapshot->sees_all && frame->columns >= 60)
                frame_add(frame, FRAME_PLAIN, "; mean %.1f, prompts %.1f",
                          number(view, "rates", "mean_tokens_out_per_s"),
                          number(view, "rates", "tokens_in_per_s"));
        if (!view->snapshot->sees_all)
                frame_add(frame, FRAME_PLAIN, " of your streams");
        if (!frame->plain && frame->rows < HIGH_ROWS) {
                frame_add(frame, FRAME_PLAIN, " ");
                add_curve(view, frame, 0, 1);
        }
        frame_end_line(frame);
        if (!frame->plain && frame->rows >= HIGH_ROWS)
                draw_curve(view, frame);
}

/* The third one needs a wide screen. */
static unsigned quantiles_shown(const struct frame *frame)
{
        return frame->columns >= 120 ? 3 : 2;
}

static void add_quantiles(const struct view *view, struct frame *frame, const char *name,
                          const char *histogram)
{
        static const double parts[] = { 0.5, 0.95, 0.99 };
        const struct json_document *status = view->snapshot->status;
        bool counted = status_quantile(status, histogram, 0.5) >= 0;
        char text[AMOUNT_BYTES];

        frame_add(frame, FRAME_PLAIN, "  %s ", name);
        if (!counted)
                frame_add(frame, FRAME_PLAIN, "-");
        for (unsigned i = 0; counted && i < quantiles_shown(frame); i++)
                frame_add(frame, FRAME_PLAIN, "%s%s", i ? "/" : "",
                          amount_duration(status_quantile(status, histogram, parts[i]), text));
}

static void draw_latency(const struct view *view, struct frame *frame)
{
        label(frame, "latency");
        if (view->snapshot->sees_all) {
                frame_add(frame, FRAME_PLAIN, "%s",
                          quantiles_shown(frame) == 3 ? "p50/p95/p99" : "p50/p95");
                add_quantiles(view, frame, "first", "time_to_first_token_seconds");
                add_quantiles(view, frame, "next", "inter_token_latency_seconds");
                add_quantiles(view, frame, "whole", "e2e_request_latency_seconds");
                if (quantiles_shown(frame) == 3)
                        add_quantiles(view, frame, "queued", "request_queue_time_seconds");
        } else {
                frame_add(frame, FRAME_FAINT,
                          "only root and the user of the daemon see times, and all streams");
        }
        frame_end_line(frame);
}

/* ---- users ---- */

static void draw_user(const struct view *view, struct frame *frame, const struct user_row *user)
{
        double total = number(view, "blocks", "total"), slots = number(view, "limits", "max_seqs");
        double has = user->blocks / (total > 0 ? total : 1);

        frame_column(frame, user->user, frame->columns >= 110 ? 24 : 12, false);
        frame_add(frame, FRAME_PLAIN, " ");
        add_bar(frame, has, 10, style_of_part(has));
        frame_add(frame, FRAME_PLAIN, "%.0f%% of pool, %.0f%% cached", 100 * has,
                  100 * user->cached / (total > 0 ? total : 1));
        if (slots > 0)
                frame_add(frame, FRAME_PLAIN, ", %.0f/%.0f slots", user->running, slots);
        if (user->waiting > 0)
                frame_add(frame, FRAME_WARNING, ", %.0f wait", user->waiting);
        if (user->rate > 0)
                frame_add(frame, FRAME_PLAIN, ", %.1f/s", user->rate);
        if (user->handles > 0)
                frame_add(frame, FRAME_PLAIN, ", %.0f handle%s", user->handles,
                          plural((uint64_t)user->handles));
        if (user->pinned > 0)
                frame_add(frame, FRAME_PLAIN, ", %.0f pinned", user->pinned);
        frame_end_line(frame);
}

/* A quarter of the screen at most is for users.  The last line counts those that do not fit. */
static void draw_users(const struct view *view, struct frame *frame)
{
        size_t count = view->snapshot->user_count, shown = frame->rows ? frame->rows / 6 : count;

        if (shown < count)
                shown = shown ? shown - 1 : 0;
        for (size_t i = 0; i < count && i < shown; i++)
                draw_user(view, frame, &view->snapshot->users[i]);
        if (shown < count) {
                frame_add(frame, FRAME_FAINT, "and %zu more user%s: samovar status --all",
                          count - shown, plural(count - shown));
                frame_end_line(frame);
        }
}

/* ---- the foot ---- */

/* The whole text about the selected stream, for which its row may have no space. */
static void draw_selected(const struct view *view, struct frame *frame)
{
        const struct snapshot *snapshot = view->snapshot;
        size_t at = snapshot_find(snapshot, view->selected);
        bool known = at < snapshot->stream_count;
        const struct stream_row *row = known ? &snapshot->streams[at] : NULL;
        char facts[WORK_FACTS_BYTES], place[64];

        if (view->ending) {
                frame_line_style(frame, FRAME_WARNING);
                frame_add(frame, FRAME_PLAIN,
                          "end stream %" PRIu64 "%s%s? y: end it; other keys: no", view->ending,
                          known ? " of " : "", known ? row->user : "");
        } else if (*view->message) {
                frame_add(frame, FRAME_WARNING, "%s", view->message);
        } else if (known) {
                work_facts(snapshot->work, row->node, facts);
                frame_add(frame, FRAME_PLAIN, "%s %" PRIu64 " of %s%s%s", row->kind, row->number,
                          row->user, *facts ? ": " : "", facts);
        } else if (snapshot->stream_count > view->page) {
                snprintf(place, sizeof(place), "streams %zu to %zu of %zu", view->first + 1,
                         view->first + view->page, snapshot->stream_count);
                frame_add(frame, FRAME_FAINT, "%s", place);
        }
        frame_end_line(frame);
}

static void draw_keys(const struct view *view, struct frame *frame)
{
        static const struct {
                enum top_sort by;
                const char *text;
        } sorts[] = { { TOP_BY_USER, "user" },
                      { TOP_BY_AGE, "age" },
                      { TOP_BY_TOKENS, "tokens" },
                      { TOP_BY_RATE, "rate" } };

        frame_add(frame, FRAME_LABEL, "sort: ");
        for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
                bool on = sorts[i].by == view->sort;

                frame_add(frame, on ? FRAME_SELECTED : FRAME_PLAIN, "%c %s%s", sorts[i].text[0],
                          sorts[i].text,
                          !on              ? ""
                          : view->reversed ? "-"
                                           : "+");
                frame_add(frame, FRAME_PLAIN, "  ");
        }
        frame_add(frame, FRAME_PLAIN, " arrows select  k end  h help  q quit");
        frame_end_line(frame);
}

static void draw_help(struct frame *frame)
{
        static const char *const lines[] = {
                "up, down        select a stream; page up, page down, home and end go far",
                "k               end the selected stream; it asks first",
                "u a t r         sort by user, age, tokens or rate; the same key again reverses",
                "space           pause: the view stands still; again: it goes on",
                "escape          select no stream; leave this page",
                "h ?             this page",
                "q ^C            quit; ^Z stops it for a while",
                "",
                "pool            # blocks in use, = cached ones, . free ones",
                "slots           streams that run at once; the queue says why others wait",
                "tokens/s        now, as a mean of working time, and prompts; then its curve",
                "latency         to the first token, between tokens, of whole requests",
                "prompt          how much of a stream's prompt is read",
                "cached          tokens of the prompt that were in the cache",
        };

        frame_line_style(frame, FRAME_TITLE);
        frame_add(frame, FRAME_PLAIN, "keys");
        frame_end_line(frame);
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
                if (frame_left(frame) <= 1)
                        break;
                frame_add(frame, FRAME_PLAIN, "%s", lines[i]);
                frame_end_line(frame);
        }
        while (frame_left(frame) > 1)
                frame_end_line(frame);
        frame_add(frame, FRAME_LABEL, "h or escape: back to the streams");
        frame_end_line(frame);
}

/* ---- all of it ---- */

static void draw_above(const struct view *view, struct frame *frame, enum detail detail)
{
        if (detail == DETAIL_ALL)
                draw_daemon(view, frame);
        draw_phase(view, frame);
        draw_pool(view, frame);
        if (detail == DETAIL_LEAST)
                return;
        draw_slots(view, frame);
        draw_speed(view, frame);
        if (detail == DETAIL_SOME)
                return;
        draw_latency(view, frame);
        draw_users(view, frame);
}

/* A screen needs its last lines for the selected stream and the keys. */
static void draw_streams(struct view *view, struct frame *frame)
{
        unsigned foot = frame->plain ? 0 : frame->rows >= 10 ? FOOT_LINES : 1;

        stream_table_draw(view, frame, foot);
        if (!foot)
                return;
        while (frame_left(frame) > foot)
                frame_end_line(frame);
        if (foot == FOOT_LINES || view->ending || *view->message)
                draw_selected(view, frame);
        draw_keys(view, frame);
}

void view_draw(struct view *view, struct frame *frame)
{
        enum detail detail = detail_of(frame);

        draw_title(view, frame);
        if (*view->trouble) {
                frame_add(frame, FRAME_BAD, "%s", view->trouble);
                frame_end_line(frame);
        }
        if (view->help)
                draw_help(frame);
        else if (view->snapshot->status) {
                draw_above(view, frame, detail);
                draw_streams(view, frame);
        }
        frame_end(frame);
}
