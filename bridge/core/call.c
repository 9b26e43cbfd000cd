#include "bridge/core/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/identifier.h"
#include "bridge/core/metrics.h"
#include "json/reader.h"

#define NODES_MAX 4000000u
#define WHY_BYTES 256u
#define NS_PER_S  UINT64_C(1000000000)

/* ---- HTTP as a sink ---- */

static void http_sink_reply(struct call *call, unsigned status, const char *type, const char *body,
                            size_t bytes)
{
        http_reply(call->sink_arg, status, type, body, bytes);
}

static void http_sink_begin(struct call *call, const char *type)
{
        http_add_header(call->sink_arg, "cache-control", "no-cache, no-transform");
        http_add_header(call->sink_arg, "x-accel-buffering", "no");
        http_stream(call->sink_arg, 200, type);
}

static void http_sink_write(struct call *call, const char *bytes, size_t count)
{
        http_write(call->sink_arg, bytes, count);
}

static void http_sink_finish(struct call *call)
{
        http_finish(call->sink_arg);
}

static void http_sink_cut(struct call *call)
{
        http_cut(call->sink_arg);
}

static size_t http_sink_queued(const struct call *call)
{
        return http_queued(call->sink_arg);
}

static void http_sink_header(struct call *call, const char *name, const char *value)
{
        http_add_header(call->sink_arg, name, value);
}

const struct call_sink call_http_sink = {
        .reply = http_sink_reply,
        .begin = http_sink_begin,
        .write = http_sink_write,
        .finish = http_sink_finish,
        .cut = http_sink_cut,
        .queued = http_sink_queued,
        .header = http_sink_header,
};

/* ---- from the beginning to the end ---- */

struct call *call_new(struct bridge *bridge, const struct call_sink *sink, void *sink_arg)
{
        struct call *call = calloc(1, sizeof(*call));

        if (!call)
                return NULL;
        call->bridge = bridge;
        call->sink = sink;
        call->sink_arg = sink_arg;
        call->body_fd = -1;
        call->begun_ns = sys_clock_ns();
        call->facts.created_s = sys_wall_clock_ns() / NS_PER_S;
        sys_random(call->facts.identity, sizeof(call->facts.identity));
        list_push_back(&bridge->calls, &call->of_bridge);
        bridge->call_count++;
        return call;
}

static const char *method_name(enum http_method method)
{
        static const char *const names[HTTP_METHODS] = {
                [HTTP_GET] = "GET",         [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",
                [HTTP_PUT] = "PUT",         [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
                [HTTP_OPTIONS] = "OPTIONS",
        };

        return names[method];
}

void call_end(struct call *call)
{
        if (call->over)
                return;
        call->over = true;
        if (call->clean)
                call->clean(call);
        link_forget(&call->waiter);
        link_remove(&call->ask);
        metrics_call(call->bridge->metrics, call->route, method_name(call->method), call->status,
                     sys_clock_ns() - call->begun_ns);
        list_remove(&call->of_bridge);
        call->bridge->call_count--;
        list_push_back(&call->bridge->dead, &call->of_bridge);
        loop_timer_set(call->bridge->burial, 0);
}

struct call *call_free(struct call *call)
{
        json_free(call->json);
        bytes_deinit(&call->out);
        arena_deinit(&call->arena);
        free(call);
        return NULL;
}

const char *call_owner(const struct call *call)
{
        const char *name = http_server_principal(call->bridge->server, call->principal);

        return name ? name : "";
}

void call_identifier(struct call *call, const char *prefix, char *to, size_t size)
{
        identifier_derive(prefix, call->facts.identity, call->ids++, to, size);
}

const char *call_query(const struct call *call, const char *name)
{
        const char *value = NULL;

        if (call->sink == &call_http_sink && http_query(call->sink_arg, name, &value))
                return value;
        return NULL;
}

const char *call_request_header(const struct call *call, const char *name)
{
        return call->sink == &call_http_sink ? http_header(call->sink_arg, name) : NULL;
}

bool call_read_json(struct call *call)
{
        char why[WHY_BYTES];
        struct failure failure;
        int r;

        r = json_parse(call->body.at ? call->body.at : "", call->body.bytes, NODES_MAX, &call->json,
                       why, sizeof(why));
        if (!r && json_kind(call->json, 0) == JSON_OBJECT)
                return true;
        failure = failure_make(FAILURE_REQUEST, NULL, "the body is not JSON: %s",
                               r ? why : "it must be an object");
        call_fail(call, &failure);
        return false;
}

bool call_was_read(struct call *call, const struct fields *fields)
{
        if (call->arena.failed)
                call_no_memory(call);
        else if (fields->failed)
                call_fail(call, &fields->failure);
        else
                return true;
        return false;
}

static void on_connected(struct link_waiter *waiter, const struct failure *failure)
{
        struct call *call = (struct call *)(void *)((char *)waiter - offsetof(struct call, waiter));

        if (failure)
                call_fail(call, failure);
        else
                call->go(call);
}

void call_with_daemon(struct call *call, void (*go)(struct call *call))
{
        call->go = go;
        call->waiter.done = on_connected;
        link_wait(call->link, &call->waiter);
}

/* The words of OpenAI, by which programs know that the conversation must become shorter. */
static void word_too_long(const struct call *call, struct failure *failure)
{
        struct smv_model model = { SMV_SIZE(smv_model) };
        struct smv_client *client = link_client(call->link);
        char why[sizeof(failure->message)];

        if (call->dialect != DIALECT_OPENAI || !client || smv_model(client, 0, &model))
                return;
        snprintf(why, sizeof(why), "%s", failure->message);
        snprintf(failure->message, sizeof(failure->message),
                 "This model's maximum context length is %u tokens. However, %.400s", model.context,
                 why);
}

/* The wording is that of Ollama, whose clients look for it. */
struct failure call_no_model(const struct call *call)
{
        return failure_make(FAILURE_NO_MODEL, "model", "model '%.*s' not found",
                            (int)(call->model.bytes < 200 ? call->model.bytes : 200),
                            call->model.at);
}

/* The daemon knows only that there is a constraint, and not in which field it came. */
static void name_constraint(const struct call *call, struct failure *failure)
{
        char why[sizeof(failure->message)];

        if (!call->constrained_by)
                return;
        snprintf(why, sizeof(why), "%s", failure->message);
        snprintf(failure->param, sizeof(failure->param), "%s", call->constrained_by);
        snprintf(failure->message, sizeof(failure->message), "%s: %.440s", call->constrained_by,
                 why);
}

struct failure call_code_failure(const struct call *call, uint32_t code)
{
        struct failure failure = failure_of_code(code);

        if (code == SMV_NO_TOKEN || code == SMV_CONSTRAINT)
                name_constraint(call, &failure);
        return failure;
}

struct failure call_problem(const struct call *call, const struct smv_problem *problem)
{
        struct failure failure = failure_of_problem(problem);

        if (problem->code == SMV_NO_MODEL && call->model.at)
                return call_no_model(call);
        if (problem->code == SMV_TOO_LONG)
                word_too_long(call, &failure);
        if (problem->field && !strcmp(problem->field, "constraint"))
                name_constraint(call, &failure);
        return failure;
}

static void refuse(struct call *call, const struct failure *failure)
{
        if (call->on_refused)
                call->on_refused(call, failure);
        else
                call_fail(call, failure);
}

static void on_ask_reply(struct link_ask *ask, const struct smv_event *reply,
                         const struct smv_problem *problem)
{
        struct call *call = (struct call *)(void *)((char *)ask - offsetof(struct call, ask));
        struct failure failure;

        if (!problem) {
                call->on_answer(call, reply);
                return;
        }
        failure = call_problem(call, problem);
        refuse(call, &failure);
}

struct failure call_ask_failure(const struct call *call, int r)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct failure failure;

        if (r == -ENOTCONN || !link_client(call->link)) {
                failure = failure_make(FAILURE_UNAVAILABLE, NULL, "no connection to samovard: %s",
                                       link_why(call->link));
                return failure;
        }
        smv_error(link_client(call->link), &problem);
        failure = call_problem(call, &problem);
        if (r == -EMSGSIZE)
                failure.class = FAILURE_TOO_LARGE;
        if (r == -EBUSY)
                failure.class = FAILURE_BUSY;
        return failure;
}

void call_ask(struct call *call, int r, uint32_t request,
              void (*on_answer)(struct call *call, const struct smv_event *reply))
{
        struct failure failure;

        if (r) {
                failure = call_ask_failure(call, r);
                refuse(call, &failure);
                return;
        }
        call->on_answer = on_answer;
        call->ask.on_reply = on_ask_reply;
        link_add(call->link, &call->ask, &call->ask_stream, request, 1);
        link_flush(call->link);
}

/* ---- whole answers ---- */

void call_header(struct call *call, const char *name, const char *value)
{
        call->sink->header(call, name, value);
}

void call_reply(struct call *call, unsigned status, const char *type, const char *body,
                size_t bytes)
{
        if (call->over)
                return;
        call->status = status;
        call->sink->reply(call, status, type, body, bytes);
        call_end(call);
}

void call_reply_json(struct call *call, struct json_builder *built, struct bytes *body)
{
        if (json_put_end(built))
                call_no_memory(call);
        else
                call_reply(call, 200, "application/json", body->at, body->count);
}

static void set_retry_header(struct call *call, const struct failure *failure)
{
        uint32_t seconds = failure->retry_ms / 1000 + (failure->retry_ms % 1000 != 0);
        char value[24];

        if (failure->no_retry)
                call_header(call, "x-should-retry", "false");
        if (failure->class != FAILURE_QUOTA && failure->class != FAILURE_BUSY &&
            failure->class != FAILURE_UNAVAILABLE)
                return;
        if (failure->retry_ms) {
                snprintf(value, sizeof(value), "%u", failure->retry_ms);
                call_header(call, "retry-after-ms", value);
        }
        snprintf(value, sizeof(value), "%u", !seconds ? 1 : seconds > 120 ? 120 : seconds);
        call_header(call, "retry-after", value);
}

/* The end of a stream that has begun: one event, so that no client waits or takes it for whole. */
static void fail_stream(struct call *call, const struct failure *failure)
{
        bool anthropic = call->dialect == DIALECT_ANTHROPIC;
        struct json_builder built = call_event(call, anthropic ? "error" : NULL);

        failure_write(failure, call->dialect, call->request_id, &built);
        if (call_event_send(call, &built))
                call_finish(call);
}

void call_fail(struct call *call, const struct failure *failure)
{
        struct bytes body = { 0 };
        struct json_builder built = json_build(&body);
        unsigned status = failure_status(failure, call->dialect);

        if (call->over)
                return;
        if (call->streaming) {
                fail_stream(call, failure);
                return;
        }
        failure_write(failure, call->dialect, call->request_id, &built);
        set_retry_header(call, failure);
        if (json_put_end(&built))
                call_reply(call, 500, "application/json", "{}", 2);
        else
                call_reply(call, status, "application/json", body.at, body.count);
        bytes_deinit(&body);
}

void call_no_memory(struct call *call)
{
        struct failure failure = failure_make(FAILURE_BUSY, NULL, "samovar-http is out of memory");

        if (call->streaming)
                call_cut(call);
        else
                call_fail(call, &failure);
}

void call_not_stored(struct call *call, int r)
{
        bool full = r == -ENOSPC || r == -EDQUOT;
        struct failure failure =
                failure_make(FAILURE_UNAVAILABLE, NULL,
                             full ? "it was not stored: the disk of samovar-http is full (%s)"
                                  : "it was not stored: samovar-http cannot write it (%s)",
                             strerror(-r));

        failure.status = full ? 507 : 503;
        call_fail(call, &failure);
}

/* ---- answers in pieces ---- */

void call_stream(struct call *call, const char *type, const char *ping)
{
        if (call->over)
                return;
        call->streaming = true;
        call->status = 200;
        call->ping = ping;
        call->written_ns = sys_clock_ns();
        call->sink->begin(call, type);
}

void call_write(struct call *call, const char *bytes, size_t count)
{
        if (call->over)
                return;
        call->written_ns = sys_clock_ns();
        call->sink->write(call, bytes, count);
}

struct json_builder call_event(struct call *call, const char *name)
{
        struct json_builder built;

        call->out.count = 0;
        built = json_build(&call->out);
        if (call->dialect == DIALECT_OLLAMA)
                return built;
        if (name) {
                json_write_raw(&built.out, "event: ");
                json_write_raw(&built.out, name);
                json_write_raw(&built.out, "\n");
        }
        json_write_raw(&built.out, "data: ");
        return built;
}

bool call_event_send(struct call *call, struct json_builder *built)
{
        json_write_raw(&built->out, call->dialect == DIALECT_OLLAMA ? "\n" : "\n\n");
        if (call->over)
                return false;
        if (built->out.result) {
                call_cut(call);
                return false;
        }
        if (call->events++ < call->skip)
                return true;
        call_write(call, call->out.at, call->out.count);
        if (call->sink->queued(call) <= call->bridge->conf.queue_bytes)
                return true;
        metrics_slow_client(call->bridge->metrics);
        call_cut(call);
        return false;
}

void call_ping(struct call *call, uint64_t now_ns)
{
        uint64_t silence_ns = (uint64_t)call->bridge->conf.ping_ms * 1000000u;

        if (call->streaming && call->ping && now_ns - call->written_ns >= silence_ns)
                call_write(call, call->ping, strlen(call->ping));
}

void call_finish(struct call *call)
{
        if (call->over)
                return;
        call->sink->finish(call);
        call_end(call);
}

void call_cut(struct call *call)
{
        if (call->over)
                return;
        call->sink->cut(call);
        call_end(call);
}
