#include "daemon/edge/op-handle.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/edge/admission.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/encode-work.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/values.h"
#include "base/error.h"
#include "json/plural.h"

/* ---- length ---- */

/* How many more tokens the handle may have. */
static uint32_t room_of(const struct peer *peer, const struct handle *handle)
{
        return admission_context(peer->edge->admission, handle->model) - handle->count;
}

static int check_room(struct peer *peer, const struct handle *handle, size_t count, uint32_t id,
                      const char *field, struct wire_problem *ret_problem)
{
        if (count <= room_of(peer, handle))
                return 0;
        return wire_refuse(ret_problem, SMV_TOO_LONG, id, field,
                           "the handle has %u token%s and %s has %zu; together they may be %u",
                           handle->count, plural(handle->count), field, count,
                           admission_context(peer->edge->admission, handle->model));
}

static void reply_length(struct peer *peer, const struct handle *handle, uint32_t id, bool opened)
{
        struct wire_writer writer;

        if (!connection_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, opened ? 2 : 1);
        if (opened) {
                wire_put_text(&writer, "handle");
                wire_put_uint(&writer, handle->number);
        }
        wire_put_text(&writer, "length");
        wire_put_uint(&writer, handle->count);
        connection_replied(peer, &writer);
}

/* ---- tokens that come in ---- */

/* Fills a new handle with these ids; on success *ids is taken. */
static int fill_new(struct peer *peer, struct handle *handle, uint32_t **ids, size_t count,
                    uint32_t id, const char *field, struct wire_problem *ret_problem)
{
        int r;

        r = check_room(peer, handle, count, id, field, ret_problem);
        if (!r && !count)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, id, field, "%s has no tokens", field);
        if (!r)
                r = handles_replace(peer->edge->handles, handle, *ids, (uint32_t)count, id,
                                    ret_problem);
        if (!r)
                *ids = NULL;
        return error_pass(r);
}

static int fill_more(struct peer *peer, struct handle *handle, const uint32_t *ids, size_t count,
                     uint32_t id, const char *field, struct wire_problem *ret_problem)
{
        int r;

        r = check_room(peer, handle, count, id, field, ret_problem);
        if (!r)
                r = handles_append(peer->edge->handles, handle, ids, (uint32_t)count, id,
                                   ret_problem);
        return error_pass(r);
}

/* ---- text that goes through the text worker ---- */

static struct handle *handle_of(struct edge *edge, const struct encode_job *job)
{
        return handles_find(edge->handles, job->uid, job->handle);
}

static bool is_end(const struct traits *traits, uint32_t token)
{
        for (uint32_t i = 0; i < traits->eos_count; i++)
                if (traits->eos[i] == token)
                        return true;
        return false;
}

/*
 * Appends the ids of a turn.  They begin with what the template writes behind an answer.  The
 * history may have that already: the token with which the model ended its answer.  So this token
 * stays only if the template writes it, and then only once: the history becomes what the template
 * makes of the whole conversation.
 */
static int fill_turn(struct encode_job *job, struct handle *handle,
                     struct wire_problem *ret_problem)
{
        struct handles *handles = job->peer->edge->handles;
        const uint32_t *ids = job->job.ids;
        size_t count = job->job.id_count;
        uint32_t last = handle->count ? handle->tokens[handle->count - 1] : 0;
        bool ended = handle->count && is_end(&handle->model->traits, last);
        bool repeats = ended && ids && count && ids[0] == last;
        bool drops = ended && ids && !repeats; /* without ids there are too many, see below */
        int r = 0;

        if (repeats) {
                ids++;
                count--;
        }
        handle->job = NULL;
        if (drops)
                r = handles_truncate(handles, handle, handle->count - 1);
        if (r)
                return error_pass(r);
        r = fill_more(job->peer, handle, ids, count, job->id, "messages", ret_problem);
        if (r && drops)
                (void)handles_append(handles, handle, &last, 1, job->id,
                                     &(struct wire_problem){ 0 });
        return error_pass(r);
}

/*
 * The handle is charged for the ids from now on, which are at most as many as were charged before.
 * If it had closed, the job would have been cancelled.
 */
static int on_encoded(struct encode_job *job, struct wire_problem *ret_problem)
{
        struct handle *handle = handle_of(job->peer->edge, job);
        bool opens = job->op == WIRE_OPEN;
        int r;

        encode_job_uncharge(job);
        r = job->chat.tools.count ? handles_give_types(job->peer->edge->handles, handle,
                                                       job->argument_types, job->id, ret_problem)
                                  : 0;
        if (r)
                return error_pass(r);
        if (opens)
                r = fill_new(job->peer, handle, &job->job.ids, job->job.id_count, job->id,
                             job->chat.messages.bytes ? "messages" : "prompt", ret_problem);
        else if (job->continues)
                r = fill_turn(job, handle, ret_problem);
        else
                r = fill_more(job->peer, handle, job->job.ids, job->job.id_count, job->id,
                              job->chat.messages.bytes ? "messages" : "text", ret_problem);
        if (r)
                return error_pass(r);
        handle->job = NULL;
        handle->has_tools |= job->chat.tools.count;
        job->handle = 0;
        reply_length(job->peer, handle, job->id, opens);
        return 0;
}

static int on_rendered(struct encode_job *job, struct wire_problem *ret_problem)
{
        return error_pass(encode_job_again(job, true, work_prompt, on_encoded, ret_problem));
}

/* If the ids did not come, an append leaves the handle as it was, and an open closes it. */
static void on_over(struct edge *edge, struct encode_job *job)
{
        struct handle *handle = job->handle ? handle_of(edge, job) : NULL;

        if (!handle)
                return;
        handle->job = NULL;
        if (job->op == WIRE_OPEN)
                handle_close(handle);
}

/* Encodes the text, or the messages; the handle waits for it. */
static int encode(struct peer *peer, struct handle *handle, struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        const struct wire_text *text = asked->op == WIRE_OPEN ? &asked->prompt : &asked->text;
        bool has_messages = asked->chat.messages.bytes;
        struct encode_job *job;
        size_t bytes;
        int r;

        job = encode_job_new(peer, asked, handle->model, has_messages ? work_render : work_prompt);
        if (!job)
                return error_raise(-ENOMEM);
        job->done = has_messages ? on_rendered : on_encoded;
        job->over = on_over;
        job->handle = handle->number;
        job->continues = has_messages && handle->count;
        job->ids_max = room_of(peer, handle) + 2; /* a turn may replace the last token */
        /* The first token (BOS) stands only before the first text of a history. */
        if (asked->op == WIRE_OPEN && !has_messages)
                job->job.first_id = handle->model->traits.bos;
        bytes = has_messages ? values_bytes(&asked->chat)
                             : text->count + encode_job_ids_bytes(job, text->count);
        r = has_messages ? encode_job_take_messages(job, asked)
                         : encode_job_take_text(job, asked, text);
        if (!r)
                r = encode_job_pay_and_post(job, bytes, ret_problem);
        if (r)
                encode_job_free(job);
        else
                handle->job = &job->job;
        return error_pass(r);
}

/* ---- open and append ---- */

int op_open(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        struct handle *handle = NULL;
        int r;

        r = op_check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = op_check_chat(served, asked, ret_problem);
        if (!r)
                r = admission_check(peer->edge->admission, served, asked, ret_problem);
        if (!r)
                r = handles_open(peer, served, asked->keep_ms, asked->id, ret_problem, &handle);
        if (r)
                return error_pass(r);
        if (!asked->token_count)
                r = encode(peer, handle, asked, ret_problem);
        else
                r = fill_new(peer, handle, &asked->memory, asked->token_count, asked->id, "tokens",
                             ret_problem);
        if (r)
                handle_close(handle);
        else if (!handle->job)
                reply_length(peer, handle, asked->id, true);
        return error_pass(r);
}

int op_append(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL; /* not used: the handle has its own model */
        struct handle *handle;
        int r;

        r = op_check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = op_find_idle_handle(peer, asked, &handle, ret_problem);
        if (!r)
                r = op_check_chat(handle->model, asked, ret_problem);
        if (!r)
                r = admission_check(peer->edge->admission, handle->model, asked, ret_problem);
        if (r)
                return error_pass(r);
        if (!asked->token_count)
                return error_pass(encode(peer, handle, asked, ret_problem));
        r = fill_more(peer, handle, asked->tokens, asked->token_count, asked->id, "tokens",
                      ret_problem);
        if (!r)
                reply_length(peer, handle, asked->id, false);
        return error_pass(r);
}

/* ---- truncate, fork, close ---- */

int op_truncate(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = op_find_idle_handle(peer, asked, &handle, ret_problem);
        if (!r && asked->length > handle->count)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "length",
                                "length is %u; the handle has %u token%s", asked->length,
                                handle->count, plural(handle->count));
        if (!r)
                r = handles_truncate(peer->edge->handles, handle, asked->length);
        if (!r)
                reply_length(peer, handle, asked->id, false);
        return error_pass(r);
}

static void reply_forks(struct peer *peer, const uint64_t *numbers, uint32_t count, uint32_t id)
{
        struct wire_writer writer;

        if (!connection_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, 1);
        wire_put_text(&writer, "handles");
        wire_put_array(&writer, count);
        for (uint32_t i = 0; i < count; i++)
                wire_put_uint(&writer, numbers[i]);
        connection_replied(peer, &writer);
}

/* Makes all forks or none. */
int op_fork_handle(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handles *handles = peer->edge->handles;
        struct handle *handle, *fork = NULL;
        uint64_t numbers[SMV_FORKS_MAX];
        uint32_t made = 0;
        int r;

        r = op_find_idle_handle(peer, asked, &handle, ret_problem);
        while (!r && made < asked->count) {
                r = handles_fork(peer, handle, asked->keep_ms, asked->id, ret_problem, &fork);
                if (!r)
                        numbers[made++] = fork->number;
        }
        if (!r)
                reply_forks(peer, numbers, made, asked->id);
        else
                while (made)
                        handle_close(handles_find(handles, peer->uid, numbers[--made]));
        return error_pass(r);
}

int op_close(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = op_find_handle(peer, asked, &handle, ret_problem);
        if (r)
                return error_pass(r);
        handle_close(handle);
        connection_reply_ok(peer, asked->id);
        return 0;
}
