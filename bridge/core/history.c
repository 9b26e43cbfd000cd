#include "bridge/core/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/siphash.h"
#include "base/sys.h"
#include "bridge/core/history-shape.h"
#include "bridge/core/metrics.h"

struct histories {
        struct list_head all; /* those used last are last */
        uint64_t key[2];      /* of the hashes */
};

/* The request to the daemon that has no reply yet, or had the last one. */
enum step { STEP_QUESTION, STEP_SAMPLE, STEP_FORK, STEP_APPEND, STEP_OPEN };

struct history {
        struct list_head of_all;
        struct histories *histories;
        struct link *link;
        uint32_t principal;
        uint64_t handle; /* 0: none yet */
        uint64_t tokens;
        uint64_t settings[2];   /* a hash of what must not change */
        uint32_t tried, steady; /* sets of shapes, by their numbers */
        struct history **place; /* NULL: it was dropped, and waits for its handle to close it */
        bool kept;              /* no call needs it */

        /* While it is made. */
        struct call *call;
        const struct history_plan *plan;
        void (*ready)(struct call *call);
        unsigned shape;       /* 0: all messages are to be rendered */
        uint64_t from;        /* the handle to fork */
        struct text question; /* rendered */
        enum step step;
        struct link_ask ask;
        struct link_stream stream;
};

/* ---- settings ---- */

static void hash_settings(const struct histories *histories, const struct history_plan *plan,
                          uint64_t ret_hash[2])
{
        const struct smv_generate *options = plan->options;
        const struct turn *first = plan->conversation->turns;
        struct text system = first && first->role == TURN_SYSTEM ? first->content : TEXT("");
        uint64_t parts[4][2];

        siphash(histories->key, plan->model.at, plan->model.bytes, parts[0]);
        siphash(histories->key, system.at, system.bytes, parts[1]);
        siphash(histories->key, options->packed_tools.bytes, options->packed_tools.count, parts[2]);
        siphash(histories->key, options->packed_vars.bytes, options->packed_vars.count, parts[3]);
        siphash(histories->key, parts, sizeof(parts), ret_hash);
}

/* ---- ends ---- */

static void free_history(struct history *history)
{
        list_remove(&history->of_all);
        link_remove(&history->ask);
        free(history);
}

/* Its reply interests nobody.  If it cannot be sent, the daemon closes the handle in time. */
static void close_handle(struct history *history)
{
        struct smv_client *client = link_client(history->link);
        uint32_t request;

        if (history->handle && client && !smv_ask_handle_close(client, history->handle, &request))
                link_flush(history->link);
        history->handle = 0;
}

void history_drop(struct history *history)
{
        bool comes;

        if (!history)
                return;
        *history->place = NULL;
        history->place = NULL;
        history->kept = false;
        comes = history->ask.link && (history->step == STEP_FORK || history->step == STEP_OPEN);
        if (comes) /* on_reply() closes what comes */
                return;
        close_handle(history);
        free_history(history);
}

/* ---- bounds ---- */

struct sum {
        uint32_t count;
        uint64_t tokens;
        struct history *oldest; /* that is kept; NULL: none */
};

static struct sum sum_up(const struct histories *histories, uint32_t principal)
{
        struct sum sum = { 0 };

        list_each(at, &histories->all) {
                struct history *history = LIST_ENTRY(at, struct history, of_all);

                if (history->principal != principal)
                        continue;
                sum.count++;
                sum.tokens += history->tokens;
                if (!sum.oldest && history->kept)
                        sum.oldest = history;
        }
        return sum;
}

/* False: there is no room for one more, because calls need all that there are. */
static bool make_room(const struct histories *histories, uint32_t principal)
{
        struct sum sum;

        while ((sum = sum_up(histories, principal)).count >= HISTORIES_MAX) {
                if (!sum.oldest)
                        return false;
                history_drop(sum.oldest);
        }
        return true;
}

void history_keep(struct history *history, struct history **place, uint64_t tokens)
{
        struct sum sum;

        *history->place = NULL;
        *place = history;
        history->place = place;
        history->tokens = tokens;
        history->kept = true;
        while ((sum = sum_up(history->histories, history->principal)).tokens > HISTORY_TOKENS_MAX)
                history_drop(sum.oldest);
}

/* ---- steps ---- */

/* It is made, or there is none. */
static void end(struct history *history, enum history_way way)
{
        struct call *call = history->call;
        void (*ready)(struct call * ready_call) = history->ready;

        metrics_history(call->bridge->metrics, way);
        if (way == HISTORY_NONE)
                history_drop(history);
        ready(call);
}

static void on_reply(struct link_ask *ask, const struct smv_event *reply,
                     const struct smv_problem *problem);
static void give_up(struct history *history);

/* The daemon was asked, or was not with `r`. */
static void ask(struct history *history, enum step step, int r, uint32_t request)
{
        history->step = step;
        if (r) {
                give_up(history);
                return;
        }
        history->ask.on_reply = on_reply;
        link_add(history->link, &history->ask, &history->stream, request, 1);
        link_flush(history->link);
}

/* The conversation with these messages, and nothing else of the options. */
static struct smv_generate about(const struct history *history, struct smv_packed messages)
{
        const struct smv_generate *options = history->plan->options;
        uint32_t keep_ms = history->plan->keep_ms;

        return (struct smv_generate){
                SMV_SIZE(smv_generate),
                .model = options->model,
                .packed_messages = messages,
                .packed_tools = options->packed_tools,
                .packed_vars = options->packed_vars,
                .keep_ms = keep_ms < HISTORY_KEEP_MS_MAX ? keep_ms : HISTORY_KEEP_MS_MAX,
        };
}

static void render(struct history *history, enum step step)
{
        struct smv_packed messages = { 0 };
        struct smv_generate options;
        uint32_t request = 0;
        int r = history_shape_pack(history->plan->conversation, history->shape, step == STEP_SAMPLE,
                                   &messages);

        options = about(history, messages);
        if (!r)
                r = smv_ask_template(link_client(history->link), &options, 0, &request);
        ask(history, step, r, request);
}

static void fork_handle(struct history *history)
{
        struct smv_generate options = about(history, (struct smv_packed){ 0 });
        uint32_t request = 0;
        int r = smv_ask_handle_fork(link_client(history->link), history->from, options.keep_ms,
                                    &request);

        ask(history, STEP_FORK, r, request);
}

static void append(struct history *history)
{
        const struct history_plan *plan = history->plan;
        struct smv_packed messages = { 0 };
        struct smv_generate options;
        uint32_t request = 0;
        int r = conversation_pack_behind(plan->conversation, plan->last, &messages);

        options = about(history, messages);
        if (!r)
                r = smv_ask_handle_append_messages(link_client(history->link), history->handle,
                                                   &options, &request);
        ask(history, STEP_APPEND, r, request);
}

static void open_handle(struct history *history)
{
        struct smv_generate options = about(history, history->plan->options->packed_messages);
        uint32_t request = 0;
        int r = smv_ask_handle_open(link_client(history->link), &options, &request);

        history->shape = 0;
        ask(history, STEP_OPEN, r, request);
}

static void begin(struct history *history)
{
        if (!history->shape)
                open_handle(history);
        else if (history->steady & 1u << history->shape)
                fork_handle(history);
        else if (history->tried & 1u << history->shape)
                open_handle(history);
        else
                render(history, STEP_QUESTION);
}

/* This way does not go: the next one is to render all messages, and the last is no history. */
static void give_up(struct history *history)
{
        if (history->step == STEP_OPEN) {
                end(history, HISTORY_NONE);
                return;
        }
        close_handle(history);
        open_handle(history);
}

static void learn(struct history *history, struct text whole)
{
        history->tried |= 1u << history->shape;
        if (history_shape_is_steady(history->shape, history->question, whole))
                history->steady |= 1u << history->shape;
        begin(history);
}

static void go_on(struct history *history, const struct smv_event *reply)
{
        switch (history->step) {
        case STEP_QUESTION:
                history->question =
                        arena_copy(&history->call->arena, reply->text, reply->text_bytes);
                if (history->question.at)
                        render(history, STEP_SAMPLE);
                else
                        give_up(history);
                break;
        case STEP_SAMPLE:
                learn(history, (struct text){ reply->text, reply->text_bytes });
                break;
        case STEP_FORK:
                history->handle = reply->number;
                append(history);
                break;
        case STEP_OPEN:
                history->handle = reply->number;
                end(history, HISTORY_RENDERED);
                break;
        case STEP_APPEND:
                end(history, HISTORY_CONTINUED);
        }
}

static void on_reply(struct link_ask *ask, const struct smv_event *reply,
                     const struct smv_problem *problem)
{
        struct history *history =
                (struct history *)(void *)((char *)ask - offsetof(struct history, ask));

        if (!history->place) {
                history->handle = problem ? 0 : reply->number;
                close_handle(history);
                free_history(history);
                return;
        }
        if (problem && problem->code == SMV_BAD_VALUE && history->step == STEP_SAMPLE)
                history->tried |= 1u << history->shape;
        if (problem) {
                log_debug("history_refused step=%d code=%s message=%s", (int)history->step,
                          smv_code_name(problem->code), problem->message);
                give_up(history);
        } else {
                go_on(history, reply);
        }
}

/* ---- for calls ---- */

/* May it continue `before`?  Then it learns what was learned there. */
static void look_back(struct history *history, const struct history *before)
{
        const struct history_plan *plan = history->plan;

        if (!before || memcmp(before->settings, history->settings, sizeof(before->settings)))
                return;
        history->tried = before->tried;
        history->steady = before->steady;
        history->from = before->handle;
        if (plan->last)
                history->shape = history_shape(plan->conversation, plan->last);
}

void history_make(struct call *call, const struct history_plan *plan, struct history *before,
                  struct history **ret_history, void (*ready)(struct call *call))
{
        struct histories *histories = call->bridge->histories;
        struct history *history = calloc(1, sizeof(*history));

        *ret_history = NULL;
        if (!history) {
                metrics_history(call->bridge->metrics, HISTORY_NONE);
                ready(call);
                return;
        }
        history->place = ret_history;
        *ret_history = history;
        history->histories = histories;
        history->link = call->link;
        history->principal = call->principal;
        history->call = call;
        history->plan = plan;
        history->ready = ready;
        hash_settings(histories, plan, history->settings);
        look_back(history, before);
        if (before) { /* it was used */
                list_remove(&before->of_all);
                list_push_back(&histories->all, &before->of_all);
        }
        if (!make_room(histories, call->principal)) {
                end(history, HISTORY_NONE);
                return;
        }
        list_push_back(&histories->all, &history->of_all);
        begin(history);
}

uint64_t history_handle(const struct history *history)
{
        return history->handle;
}

/* ---- all of them ---- */

int histories_new(struct histories **ret_histories)
{
        struct histories *histories = calloc(1, sizeof(*histories));
        int r;

        if (!histories)
                return error_raise(-ENOMEM);
        list_init(&histories->all);
        r = sys_random(histories->key, sizeof(histories->key));
        if (r) {
                free(histories);
                return error_pass(r);
        }
        *ret_histories = histories;
        return 0;
}

struct histories *histories_free(struct histories *histories)
{
        if (!histories)
                return NULL;
        list_each_safe(at, &histories->all) {
                struct history *history = LIST_ENTRY(at, struct history, of_all);

                if (history->place)
                        *history->place = NULL;
                close_handle(history);
                free_history(history);
        }
        free(histories);
        return NULL;
}
