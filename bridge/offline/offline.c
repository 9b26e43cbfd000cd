#include "bridge/offline/offline.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/errtext.h"
#include "base/sys.h"
#include "bridge/core/link.h"
#include "bridge/core/metrics.h"
#include "bridge/core/state-folder.h"
#include "bridge/offline/answer-window.h"
#include "bridge/offline/input-check.h"
#include "bridge/offline/input.h"
#include "bridge/offline/output.h"
#include "bridge/offline/pace.h"
#include "bridge/offline/progress.h"
#include "bridge/openai/batch-request.h"

#define NS_PER_S      UINT64_C(1000000000)
#define SHOW_NS       (NS_PER_S / 4)
#define AGAIN_NS      NS_PER_S             /* when a full disk is tried again */
#define WINDOW_MEMORY (UINT64_C(64) << 20) /* of answers that wait for others */
#define WHY_BYTES     512u

enum phase { COPIES, CHECKS, ASKS, IS_OVER };

struct offline {
        struct bridge *bridge;
        const struct offline_conf *conf;
        struct link *link;
        char folder[256]; /* for files without a name */
        enum phase phase;
        int status; /* the exit status */

        struct input input;
        struct output output;
        struct input_check check;
        struct line_reader lines;
        bool all_begun; /* no line of the input is left */
        struct answer_window *window;
        struct list_head running, again; /* of requests; those to be asked again, in order */
        uint32_t running_count;
        struct pace pace;
        uint64_t generation; /* of the connection that the pace is about */
        struct link_waiter waiter;
        bool waiting; /* for a connection */
        struct progress progress;
        uint64_t prompts_before, tokens_before; /* the counters when the answers began */
        const char *waits;                      /* what it waits for; NULL: nothing special */
        struct loop_timer *step, *show;
};

/* ---- ends ---- */

static void end(struct offline *o, int status)
{
        if (o->phase == IS_OVER)
                return;
        o->phase = IS_OVER;
        o->status = status;
        loop_stop(o->bridge->conf.loop);
}

/* Answers that are written stay, so a batch that has begun can go on. */
static void say_how_to_resume(struct offline *o)
{
        if (o->phase == ASKS && o->output.regular)
                progress_say(&o->progress,
                             "%" PRIu64 " of %" PRIu64 " lines are written; to go on: "
                             "samovar batch %s -o %s --resume",
                             o->progress.lines_before + o->progress.lines, o->progress.total,
                             o->conf->input, o->conf->output);
}

__attribute__((format(printf, 2, 3))) static void fail(struct offline *o, const char *format, ...)
{
        char why[WHY_BYTES];
        va_list values;

        va_start(values, format);
        vsnprintf(why, sizeof(why), format, values);
        va_end(values);
        progress_say(&o->progress, "%s", why);
        say_how_to_resume(o);
        end(o, o->phase == ASKS ? OFFLINE_FAILED : OFFLINE_REFUSED);
}

static void on_signal(void *arg)
{
        struct offline *o = arg;

        if (o->phase == IS_OVER)
                return;
        progress_say(&o->progress, "interrupted");
        say_how_to_resume(o);
        end(o, OFFLINE_INTERRUPTED);
}

static void count_tokens(struct offline *o)
{
        uint64_t prompts, tokens;

        metrics_tokens(o->bridge->metrics, &prompts, &tokens);
        o->progress.prompt_tokens = prompts - o->prompts_before;
        o->progress.tokens = tokens - o->tokens_before;
}

static void finish(struct offline *o)
{
        int r = output_close(&o->output);
        bool failed = o->progress.failed + o->progress.failed_before;

        if (r) {
                fail(o, "%s: %s", o->conf->output, strerror(-r));
                return;
        }
        count_tokens(o);
        progress_end(&o->progress);
        end(o, failed ? OFFLINE_FAILED : OFFLINE_GOOD);
}

/* Waits for space on a disk or in memory; other failures end the batch. */
static void take_failure(struct offline *o, const char *what, int r)
{
        if (r == -EPIPE) { /* as in `samovar batch ... | head` */
                end(o, OFFLINE_FAILED);
                return;
        }
        if (!state_is_shortage(r)) {
                fail(o, "%s: %s", what, strerror(-r));
                return;
        }
        o->waits = strerror(-r);
        loop_timer_set(o->step, AGAIN_NS);
}

/* ---- before the answers ---- */

static void on_wrong_line(void *arg, const char *why)
{
        struct offline *o = arg;

        progress_say(&o->progress, "%s", why);
}

static int begin_check(struct offline *o)
{
        int answers = o->conf->resume ? o->output.file.fd : -1, r;

        o->phase = CHECKS;
        o->check.name = strcmp(o->conf->input, "-") ? o->conf->input : "stdin";
        o->check.answers_name = o->conf->output;
        o->check.tell = on_wrong_line;
        o->check.arg = o;
        r = input_check_init(&o->check, o->input.fd, answers, o->folder);
        return r ? r : loop_timer_set(o->step, 0);
}

/* Answers that are there stay, and a torn one behind them goes. */
static int begin_asking(struct offline *o)
{
        int r = 0;

        if (o->output.regular)
                r = batch_answers_cut(&o->output.file, o->check.answers_bytes);
        if (r)
                return r;
        o->window = answer_window_new(o->folder, WINDOW_MEMORY);
        if (!o->window)
                return -ENOMEM;
        line_reader_init(&o->lines, o->input.fd, o->check.goes_on);
        o->progress.total = o->check.lines;
        o->progress.lines_before = o->check.answered;
        o->progress.failed_before = o->check.failed;
        metrics_tokens(o->bridge->metrics, &o->prompts_before, &o->tokens_before);
        input_check_deinit(&o->check);
        progress_begin(&o->progress);
        o->phase = ASKS;
        return loop_timer_set(o->step, 0);
}

static void check_some(struct offline *o)
{
        uint64_t at = line_reader_place(&o->check.input).at;
        int r = input_check_step(&o->check);

        if (r > 0)
                r = begin_asking(o);
        else if (!r)
                r = loop_timer_set(o->step, 0);
        if (r == -EINVAL && o->phase == CHECKS)
                fail(o, "nothing was asked");
        else if (r)
                fail(o, "%s: %s", o->conf->input, strerror(-r));
        else if (o->phase == CHECKS && (at >> 24) != (line_reader_place(&o->check.input).at >> 24))
                progress_prepares(&o->progress, "checking",
                                  (double)at / (double)(o->input.bytes + 1));
}

static void copy_some(struct offline *o)
{
        int r = input_step(&o->input);

        if (!r && o->input.ready)
                r = begin_check(o);
        if (r)
                fail(o, "%s: %s", o->conf->input, strerror(-r));
}

/* ---- answers ---- */

/* In the order of the lines, so that the first one is not asked last. */
static void ask_again_later(struct offline *o, struct batch_request *request)
{
        struct list_head *at = o->again.prev;

        while (at != &o->again &&
               LIST_ENTRY(at, struct batch_request, of_batch)->number > request->number)
                at = at->prev;
        list_insert_before(at->next, &request->of_batch);
}

/* Its answer waits for those of the lines before it. */
static int keep_answer(struct offline *o, const struct batch_request *request)
{
        struct bytes line = { 0 };
        struct json_builder to = json_build(&line);
        int r = batch_request_put(&to, request);

        if (r) {
                bytes_deinit(&line);
                return r;
        }
        answer_window_put(o->window, request->number, &line, batch_request_succeeded(request));
        return 0;
}

static int take_done(struct offline *o)
{
        list_each_safe(at, &o->running) {
                struct batch_request *request = LIST_ENTRY(at, struct batch_request, of_batch);
                bool again = batch_request_found_no_place(request);
                int r = request->done && !again ? keep_answer(o, request) : 0;

                if (r)
                        return r;
                if (!request->done)
                        continue;
                list_remove(&request->of_batch);
                o->running_count--;
                if (!again) {
                        batch_request_free(request);
                        continue;
                }
                ask_again_later(o, request);
                pace_refused(&o->pace, o->running_count);
        }
        return 0;
}

/* 1: there is no answer to write; 0: the output takes no more now; or a negative errno. */
static int write_some(struct offline *o)
{
        struct text answer;
        bool good;
        int r;

        while ((r = answer_window_next(o->window, &answer, &good)) > 0) {
                r = output_write(&o->output, answer);
                if (r <= 0)
                        return r;
                answer_window_leave(o->window);
                o->progress.lines++;
                o->progress.failed += !good;
        }
        return r ? r : 1;
}

/* ---- lines ---- */

static int ask(struct offline *o, struct batch_request *request)
{
        int r = batch_request_ask(request, o->bridge, 0);

        if (r)
                return r;
        list_push_back(&o->running, &request->of_batch);
        o->running_count++;
        return 0;
}

/* It has a place in the window, so from now on it must get an answer. */
static int begin_request(struct offline *o, const struct batch_line_request *line)
{
        struct batch_request *request = batch_request_new(line, o->step);
        int r;

        if (!request)
                return -ENOMEM;
        r = answer_window_enter(o->window, &request->number);
        if (r)
                batch_request_free(request);
        else if (ask(o, request))
                ask_again_later(o, request);
        return r;
}

/* 1: the next line has begun; 0: there is none. */
static int begin_line(struct offline *o)
{
        struct batch_line_request line;
        struct text text;
        char why[128];
        int r = line_reader_next(&o->lines, &text);

        if (r <= 0) {
                o->all_begun = !r;
                return r;
        }
        if (!batch_line_read(text, NULL, &line, why, sizeof(why))) {
                fail(o, "%s:%u: it has changed since it was checked: %s", o->conf->input,
                     line_reader_place(&o->lines).number, why);
                return 0;
        }
        r = begin_request(o, &line);
        json_free(line.json);
        return r ? r : 1;
}

static int begin_some(struct offline *o)
{
        struct list_head *at;
        int r = 1;

        while (r > 0 && o->phase == ASKS && o->running_count < pace_limit(&o->pace)) {
                at = list_pop_front(&o->again);
                if (!at && (o->all_begun || !answer_window_has_space(o->window)))
                        return 0;
                r = at ? ask(o, LIST_ENTRY(at, struct batch_request, of_batch)) : begin_line(o);
                if (at && r)
                        list_push_front(&o->again, at);
                else if (at)
                        r = 1;
        }
        return r < 0 ? r : 0;
}

/* ---- steps ---- */

/* If the next dial is not due yet, on_show() looks again. */
static void on_connected(struct link_waiter *waiter, const struct failure *failure)
{
        struct offline *o =
                (struct offline *)(void *)((char *)waiter - offsetof(struct offline, waiter));

        o->waiting = false;
        if (!failure)
                loop_timer_set(o->step, 0);
}

/* False: nothing can be asked now. */
static bool is_connected(struct offline *o)
{
        if (!link_client(o->link)) {
                o->waits = *link_why(o->link) ? link_why(o->link) : "connecting to samovard";
                if (o->waiting)
                        return false;
                o->waiting = true;
                o->waiter.done = on_connected;
                link_wait(o->link, &o->waiter);
                return false;
        }
        if (o->generation != link_generation(o->link)) {
                o->generation = link_generation(o->link);
                pace_connected(&o->pace);
        }
        return true;
}

/* A private daemon that is gone does not come back. */
static void look_after_private_daemon(struct offline *o)
{
        if (!o->bridge->conf.use_daemon_fd || link_client(o->link) || !*link_why(o->link))
                return;
        if (link_generation(o->link)) {
                fail(o, "the private samovard has ended");
                return;
        }
        progress_say(&o->progress, "the private samovard did not start");
        end(o, OFFLINE_NO_DAEMON);
}

static void ask_some(struct offline *o)
{
        int r = take_done(o), written = 0;

        o->waits = NULL;
        if (!r)
                written = write_some(o);
        if (written < 0) {
                take_failure(o, o->conf->output, written);
                return;
        }
        if (!r && o->all_begun && !answer_window_count(o->window)) {
                finish(o);
                return;
        }
        if (!r && is_connected(o))
                r = begin_some(o);
        if (r < 0)
                take_failure(o, o->conf->input, r);
}

static void on_step(void *arg)
{
        struct offline *o = arg;

        if (o->phase == COPIES)
                copy_some(o);
        else if (o->phase == CHECKS)
                check_some(o);
        else if (o->phase == ASKS)
                ask_some(o);
}

/* Also notices that the daemon is there again. */
static void on_show(void *arg)
{
        struct offline *o = arg;

        loop_timer_set(o->show, SHOW_NS);
        look_after_private_daemon(o);
        if (o->phase != ASKS)
                return;
        count_tokens(o);
        progress_show(&o->progress, o->running_count, o->waits);
        if (!o->running_count)
                loop_timer_set(o->step, 0);
}

/* ---- life ---- */

/* Files without a name lie beside the output, where there is space; or where the settings say. */
static void choose_folder(struct offline *o)
{
        const char *path = o->conf->output, *slash = strrchr(path, '/');
        int fd;

        snprintf(o->folder, sizeof(o->folder), "%.*s", slash ? (int)(slash - path + 1) : 1,
                 slash ? path : ".");
        fd = strcmp(path, "-") ? sys_open(o->folder, O_TMPFILE | O_RDWR, 0600) : -1;
        if (fd < 0)
                snprintf(o->folder, sizeof(o->folder), "%s", o->bridge->conf.spool);
        else
                sys_close(fd);
}

static int open_files(struct offline *o, char *why, size_t why_bytes)
{
        uint64_t ids[2][2];
        int r;

        choose_folder(o);
        r = output_open(&o->output, o->conf->output, o->conf->resume, o->bridge->conf.loop, o->step,
                        why, why_bytes);
        if (r)
                return r;
        r = input_open(&o->input, o->conf->input, o->folder, o->bridge->conf.loop, o->step, why,
                       why_bytes);
        if (!r && o->input.ready && o->output.regular && !sys_fd_identity(o->input.fd, ids[0]) &&
            !sys_fd_identity(o->output.file.fd, ids[1]) && !memcmp(ids[0], ids[1], sizeof(ids[0])))
                r = errtext_set(why, why_bytes, -EINVAL, "%s is the input and the output",
                                o->conf->input);
        return r;
}

static int open_all(struct offline *o, char *why, size_t why_bytes)
{
        struct loop *loop = o->bridge->conf.loop;
        int r;

        o->link = links_get(o->bridge->links, 0, NULL);
        r = o->link ? loop_timer_new(loop, on_step, o, &o->step) : -ENOMEM;
        if (!r)
                r = loop_timer_new(loop, on_show, o, &o->show);
        if (!r)
                r = loop_timer_set(o->show, SHOW_NS);
        if (!r)
                r = pace_init(&o->pace, o->bridge, o->conf->parallel, o->step);
        if (!r)
                r = loop_signal(loop, SIGINT, on_signal, o);
        if (!r)
                r = loop_signal(loop, SIGTERM, on_signal, o);
        if (r)
                snprintf(why, why_bytes, "%s", strerror(-r));
        return r ? r : open_files(o, why, why_bytes);
}

static void free_requests(struct list_head *requests)
{
        list_each_safe(at, requests)
                batch_request_free(LIST_ENTRY(at, struct batch_request, of_batch));
}

static void close_all(struct offline *o)
{
        if (o->waiting)
                link_forget(&o->waiter);
        free_requests(&o->running);
        free_requests(&o->again);
        pace_deinit(&o->pace);
        input_check_deinit(&o->check);
        line_reader_deinit(&o->lines);
        o->window = answer_window_free(o->window);
        input_close(&o->input);
        (void)output_close(&o->output);
        o->step = loop_timer_free(o->step);
        o->show = loop_timer_free(o->show);
        /* A private daemon that has not answered yet: the dial that waits for it ends. */
        if (o->bridge->conf.use_daemon_fd && !link_generation(o->link) && !*link_why(o->link))
                sys_shutdown(o->bridge->conf.daemon_fd);
}

int offline_run(struct bridge *bridge, const struct offline_conf *conf)
{
        struct offline o = { .bridge = bridge,
                             .conf = conf,
                             .input = { .fd = -1, .from = -1 },
                             .output = { .file = { .fd = -1 } } };
        char why[WHY_BYTES] = "";

        progress_init(&o.progress);
        list_init(&o.running);
        list_init(&o.again);
        if (open_all(&o, why, sizeof(why)))
                fail(&o, "%s", why);
        else if (loop_run(bridge->conf.loop))
                fail(&o, "the event loop failed");
        close_all(&o);
        return o.status;
}
