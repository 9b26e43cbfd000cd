#include "daemon/edge/task.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/holder.h"
#include "daemon/edge/streams.h"
#include "daemon/edge/values.h"
#include "daemon/edge/work.h"
#include "daemon/error.h"

/* Besides the outcomes of work.h: the task is with the scribe again. */
enum { TASK_E_GOES_ON = 100 };

/* ---- to the scribe ---- */

static struct peer_task *make(struct peer *peer, int (*work)(struct scribe_job *job))
{
        const struct config *config = peer->edge->conf.config;
        struct peer_task *task = calloc(1, sizeof(*task));

        if (!task)
                return NULL;
        task->peer = peer;
        task->uid = peer->uid;
        task->frame_max = config->frame_bytes;
        task->reply_front = peer_unsent_max(peer);
        task->reply_behind = peer->out.max - task->reply_front - config->frame_bytes - 4;
        task->job.work = work;
        task->job.first_id = TRAITS_NO_TOKEN;
        task->job.owner = task;
        return task;
}

static struct peer_task *make_asked(struct peer *peer, const struct wire_request *asked,
                                    const struct served *served,
                                    int (*work)(struct scribe_job *job))
{
        struct peer_task *task = make(peer, work);

        if (!task)
                return NULL;
        task->op = asked->op;
        task->id = asked->id;
        task->served = served;
        task->job.tokenizer = served->tokenizer;
        return task;
}

void task_drop_rendered(struct peer_task *task)
{
        rendered_free(&task->rendered);
        free(task->parts);
        task->parts = NULL;
}

static void release(struct peer_task *task)
{
        wire_release(&task->asked);
        task_drop_rendered(task);
        buffer_deinit(&task->frame);
        buffer_deinit(&task->reply);
        free(task->job.ids);
        free(task);
}

/*
 * If the request owns the frame of the text, the task takes the frame; else the text is short and
 * copied.
 */
static int keep_text(struct peer_task *task, struct wire_request *asked,
                     const struct wire_text *text)
{
        int r;

        task->job.text = text->bytes;
        task->job.text_bytes = text->count;
        if (asked->frame.bytes) {
                task->frame = asked->frame;
                buffer_init(&asked->frame, 0);
                return 0;
        }
        buffer_init(&task->frame, text->count);
        r = buffer_append(&task->frame, text->bytes, text->count);
        task->job.text = (const char *)task->frame.bytes;
        return error_pass(r);
}

/* The same for messages, tools and template_vars. */
static int keep_talk(struct peer_task *task, struct wire_request *asked)
{
        struct wire_values *const all[] = { &task->talk.messages, &task->talk.tools,
                                            &task->talk.template_vars };
        size_t at = 0;
        int r;

        task->talk = asked->talk;
        task->renders = true;
        if (asked->frame.bytes) {
                task->frame = asked->frame;
                buffer_init(&asked->frame, 0);
                return 0;
        }
        buffer_init(&task->frame, values_bytes(&asked->talk));
        r = buffer_reserve(&task->frame, values_bytes(&asked->talk));
        for (size_t i = 0; !r && i < sizeof(all) / sizeof(*all); i++) {
                if (!all[i]->bytes)
                        continue;
                r = buffer_append(&task->frame, all[i]->bytes, all[i]->size);
                all[i]->bytes = task->frame.bytes + at;
                at += all[i]->size;
        }
        return error_pass(r);
}

static size_t ids_bytes_max(const struct peer_task *task, size_t text_bytes)
{
        return (tokenizer_ids_max(task->job.tokenizer, text_bytes) + 1) * sizeof(uint32_t);
}

static void send_off(struct edge *edge, struct peer_task *task)
{
        edge->jobs_out++;
        mailbox_post(edge->conf.to_scribe, &(struct mail){ .kind = MAIL_JOB, .what = &task->job });
}

static void post(struct peer_task *task)
{
        task->prev = NULL;
        task->next = task->peer->tasks;
        if (task->next)
                task->next->prev = task;
        task->peer->tasks = task;
        send_off(task->peer->edge, task);
}

/* Charges and posts a job that is no generation. */
static int pay_and_post(struct peer_task *task, uint64_t bytes, struct wire_problem *ret_problem)
{
        int r;

        r = admit_job(task->peer->edge->admit, task->uid, task->id, sizeof(*task) + bytes,
                      ret_problem);
        if (r)
                return error_pass(r);
        task->charged = sizeof(*task) + bytes;
        post(task);
        return 0;
}

int task_read(struct peer *peer, size_t bytes, struct wire_problem *ret_problem)
{
        struct buffer *in = &peer->in, rest;
        const uint8_t *body = in->bytes + in->start + 4;
        struct peer_task *task;
        int r;

        /*
         * The shutdown waits until no job is with the scribe, so no new job may be posted.  And all
         * requests that the frame could contain are refused by then.
         */
        if (peer->edge->phase >= EDGE_ENDING)
                return wire_refuse(ret_problem, SMV_SHUTTING_DOWN, wire_peek_id(body, bytes - 4),
                                   NULL, "%s", peer->edge->late);
        task = make(peer, work_read);
        if (!task)
                return error_raise(-ENOMEM);
        task->reads = true;
        task->id = wire_peek_id(body, bytes - 4);
        task->frame = *in; /* lent until the task is posted */
        task->frame.start += 4;
        task->frame.end = in->start + bytes;
        buffer_init(&rest, in->max);
        r = buffer_append(&rest, body + bytes - 4, buffer_count(in) - bytes);
        if (!r)
                r = pay_and_post(task, bytes, ret_problem);
        if (r) {
                buffer_init(&task->frame, 0);
                buffer_deinit(&rest);
                release(task);
                return error_pass(r);
        }
        *in = rest;
        return 0;
}

int task_generate(struct peer *peer, struct wire_request *asked, struct request *request)
{
        bool talks = asked->talk.messages.bytes;
        struct peer_task *task =
                make_asked(peer, asked, request->model, talks ? work_render : work_prompt);
        int r;

        if (!task)
                return error_raise(-ENOMEM);
        r = talks ? keep_talk(task, asked) : keep_text(task, asked, &asked->prompt);
        if (r) {
                release(task);
                return error_pass(r);
        }
        /* With messages the template writes the first token itself, if it wants it. */
        task->job.first_id = talks ? TRAITS_NO_TOKEN : request->model->traits.bos;
        task->ids_max = request->model->context;
        task->request = request;
        post(task);
        return 0;
}

int task_tokenize(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        size_t ids_max = tokenizer_ids_max(served->tokenizer, asked->text.count) + 1;
        struct peer_task *task = make_asked(peer, asked, served, work_tokenize);
        int r;

        if (!task)
                return error_raise(-ENOMEM);
        r = keep_text(task, asked, &asked->text);
        if (!r)
                r = pay_and_post(task, asked->text.count + ids_max * sizeof(uint32_t), ret_problem);
        if (r)
                release(task);
        return error_pass(r);
}

int task_detokenize(struct peer *peer, struct served *served, struct wire_request *asked,
                    struct wire_problem *ret_problem)
{
        size_t text_max = asked->token_count * tokenizer_piece_max(served->tokenizer);
        size_t ids_bytes = asked->token_count * sizeof(uint32_t);
        struct peer_task *task = make_asked(peer, asked, served, work_detokenize);
        int r;

        if (!task)
                return error_raise(-ENOMEM);
        if (text_max > task->frame_max)
                /* A longer text is refused before it is made. */
                text_max = task->frame_max;
        task->job.ids = asked->memory;
        task->job.id_count = asked->token_count;
        asked->memory = NULL;
        r = pay_and_post(task, ids_bytes + text_max, ret_problem);
        if (r)
                release(task);
        return error_pass(r);
}

int task_template(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        struct peer_task *task = make_asked(peer, asked, served, work_render);
        int r;

        if (!task)
                return error_raise(-ENOMEM);
        task->tokenizes = asked->tokenize;
        r = keep_talk(task, asked);
        if (!r)
                r = pay_and_post(task, values_bytes(&task->talk), ret_problem);
        if (r)
                release(task);
        return error_pass(r);
}

int task_history(struct peer *peer, struct handle *handle, struct wire_request *asked,
                 struct wire_problem *ret_problem)
{
        const struct wire_text *text = asked->op == WIRE_OPEN ? &asked->prompt : &asked->text;
        bool talks = asked->talk.messages.bytes;
        struct peer_task *task =
                make_asked(peer, asked, handle->model, talks ? work_render : work_prompt);
        size_t bytes;
        int r;

        if (!task)
                return error_raise(-ENOMEM);
        /* The first token (BOS) stands only before the first text of a history. */
        if (asked->op == WIRE_OPEN && !talks)
                task->job.first_id = handle->model->traits.bos;
        task->ids_max = holder_room(peer, handle) + 1;
        r = talks ? keep_talk(task, asked) : keep_text(task, asked, text);
        bytes = talks ? values_bytes(&task->talk) : text->count + ids_bytes_max(task, text->count);
        if (!r)
                r = pay_and_post(task, bytes, ret_problem);
        if (r) {
                release(task);
                return error_pass(r);
        }
        task->handle = handle;
        handle->task = task;
        return 0;
}

/* ---- back from the scribe ---- */

/* True if the ids are to be continued, not shown. */
static bool makes_prompt(const struct peer_task *task)
{
        return task->op == WIRE_GENERATE || task->op == WIRE_OPEN;
}

/* The bytes of the rendered text, its parts, and the ids that it may become. */
static size_t rendered_bytes(const struct peer_task *task)
{
        const struct scribe_job *job = &task->job;
        size_t bytes = job->text_bytes + job->control_count * sizeof(*job->controls);

        if (makes_prompt(task) || task->tokenizes)
                bytes += ids_bytes_max(task, job->text_bytes);
        return bytes;
}

/* The messages are a text now: charges the text, and posts it to the scribe again. */
static int go_on(struct edge *edge, struct peer_task *task, struct wire_problem *ret_problem)
{
        size_t bytes = rendered_bytes(task);
        int r;

        if (task->op == WIRE_GENERATE)
                r = admit_rendered(edge->admit, task->request, bytes, ret_problem);
        else
                r = admit_job_more(edge->admit, task->uid, task->id, bytes, ret_problem);
        if (r)
                return error_pass(r);
        if (task->op != WIRE_GENERATE)
                task->charged += bytes;
        task->renders = false;
        task->job.work = makes_prompt(task) ? work_prompt : work_template;
        post(task);
        return TASK_E_GOES_ON;
}

/* The prompt is tokenized, so it is known whether it fits. */
static int begin_stream(struct edge *edge, struct peer_task *task, struct wire_problem *ret_problem)
{
        const char *field = task->talk.messages.bytes ? "messages" : "prompt";
        int r;

        r = admit_finish(edge->admit, task->request, field, task->job.ids, task->job.id_count,
                         ret_problem);
        if (r)
                return error_pass(r);
        r = stream_begin(task->peer, task->request, ret_problem);
        if (!r)
                task->request = NULL;
        return error_pass(r);
}

/*
 * From now on the handle is charged for the ids, which are at most as many as were charged before.
 */
static int fill_handle(struct edge *edge, struct peer_task *task, struct wire_problem *ret_problem)
{
        admit_job_done(edge->admit, task->uid, task->charged);
        task->charged = 0;
        return error_pass(holder_fill(task, ret_problem));
}

static int refuse_ids(const struct peer_task *task, struct wire_problem *ret_problem)
{
        return wire_refuse(ret_problem, SMV_BAD_VALUE, task->id, "tokens",
                           "tokens has %u at index %zu; the largest id is %u", task->bad_id,
                           task->at, tokenizer_vocab(task->job.tokenizer) - 1);
}

static int refuse_long(const struct peer_task *task, struct wire_problem *ret_problem)
{
        const char *field = task->op == WIRE_TOKENIZE   ? "text"
                            : task->op == WIRE_TEMPLATE ? "messages"
                                                        : "tokens";

        return wire_refuse(ret_problem, SMV_BAD_VALUE, task->id, field,
                           "the answer to %s would have %zu bytes; a frame may have %zu", field,
                           task->answer_bytes, task->frame_max);
}

static int answer(struct edge *edge, struct peer_task *task, struct wire_problem *ret_problem)
{
        int r = task->job.result;

        if (task->called_off)
                return wire_refuse(ret_problem, task->called_off, task->id, NULL, "%s",
                                   task->called_off == SMV_SHUTTING_DOWN ? edge->late
                                   : task->called_off == SMV_NO_HANDLE
                                           ? "the handle was closed meanwhile"
                                           : "cancelled before it had begun");
        if (r < 0)
                return error_raise(r);
        if (r == WIRE_E_REFUSED)
                *ret_problem = task->problem;
        if (r == WIRE_E_REFUSED)
                return r;
        if (r == WORK_E_BAD_ID)
                return refuse_ids(task, ret_problem);
        if (r == WORK_E_LONG)
                return refuse_long(task, ret_problem);
        if (task->renders)
                r = go_on(edge, task, ret_problem);
        else if (task->op == WIRE_GENERATE)
                r = begin_stream(edge, task, ret_problem);
        else if (task->handle)
                r = fill_handle(edge, task, ret_problem);
        else
                peer_reply_made(task->peer, &task->reply);
        return error_pass(r);
}

static void unlist(struct peer_task *task)
{
        if (task->prev)
                task->prev->next = task->next;
        else
                task->peer->tasks = task->next;
        if (task->next)
                task->next->prev = task->prev;
}

/* Takes back the charge of the frame first, because the request is charged separately. */
static void frame_is_read(struct edge *edge, struct peer_task *task)
{
        struct peer *peer = task->peer;
        struct wire_problem *problem = &task->problem;
        int r = task->job.result;

        admit_job_done(edge->admit, task->uid, task->charged);
        task->charged = 0;
        if (!peer)
                return;
        if (r == -ECANCELED)
                r = wire_refuse(problem, task->called_off, task->id, NULL, "%s", edge->late);
        peer_frame_is_read(peer, &task->asked, r, problem);
}

static void finish(struct edge *edge, struct peer_task *task)
{
        struct wire_problem problem;
        int r = 0;

        if (task->reads)
                frame_is_read(edge, task);
        else if (task->peer)
                r = answer(edge, task, &problem);
        if (r == TASK_E_GOES_ON)
                return;
        if (r && task->op == WIRE_GENERATE)
                counter_add(&edge->conf.stats->requests_refused, 1);
        if (r)
                peer_answer_failure(task->peer, task->id, r, &problem);
        if (task->request)
                stream_drop(edge, task->request);
        if (task->handle)
                holder_give_up(edge, task);
        if (task->charged)
                admit_job_done(edge->admit, task->uid, task->charged);
        release(task);
}

/*
 * A reply that the scribe made waits for those made before it.  That includes replies that wait
 * themselves, even if the one they waited for has just been sent.  So replies that are not read
 * stay charged.
 */
static bool must_wait(const struct peer_task *task)
{
        const struct peer *peer = task->peer;

        return peer && (peer->long_left || peer->made) && buffer_count(&task->reply);
}

static void wait_its_turn(struct peer_task *task)
{
        struct peer *peer = task->peer;

        if (!peer->made)
                peer->made_end = &peer->made;
        task->next = NULL;
        *peer->made_end = task;
        peer->made_end = &task->next;
}

bool tasks_may_pass_reply(const struct peer *peer)
{
        return peer->made && !peer->long_left && !peer->doomed;
}

void tasks_pass_reply(struct peer *peer)
{
        struct peer_task *task = peer->made;

        peer->made = task->next;
        finish(peer->edge, task);
}

void peer_job_done(struct edge *edge, struct scribe_job *job)
{
        struct peer_task *task = job->owner;
        struct peer *peer = task->peer;

        assert(edge->jobs_out);
        edge->jobs_out--;
        if (peer)
                unlist(task);
        if (must_wait(task))
                wait_its_turn(task);
        else
                finish(edge, task);
        if (peer)
                peer_settle(peer);
}

/* ---- while a task is with the scribe ---- */

/* True if the task, or one of its streams, has this id. */
static bool is_of(const struct peer_task *task, uint32_t id)
{
        const struct request *request = task->request;

        while (request && request->stream != id)
                request = request->sibling;
        return request || task->id == id;
}

struct peer_task *task_find(struct peer *peer, uint32_t id)
{
        for (struct peer_task *task = peer->tasks; task; task = task->next)
                if (!task->reads && is_of(task, id))
                        return task;
        for (struct peer_task *task = peer->made; task; task = task->next)
                if (task->id == id)
                        return task;
        return NULL;
}

void task_call_off(struct peer_task *task, enum smv_code code)
{
        if (!task->called_off)
                task->called_off = code;
        task->job.cancelled = true;
}

void task_cancel(struct peer_task *task, uint32_t stream)
{
        bool wanted = false;

        for (struct request *request = task->request; request; request = request->sibling) {
                request->unwanted |= request->stream == stream;
                wanted |= !request->unwanted;
        }
        if (!wanted)
                task_call_off(task, SMV_CANCELLED);
}

/* The reply may have many megabytes.  The scribe frees it, as long as jobs are still allowed. */
static void clear_made(struct edge *edge, struct peer_task *task)
{
        task->peer = NULL;
        task->job.work = work_clear;
        if (edge->phase >= EDGE_ENDING)
                finish(edge, task);
        else
                send_off(edge, task);
}

void tasks_leave(struct peer *peer)
{
        while (peer->made) {
                struct peer_task *task = peer->made;

                peer->made = task->next;
                clear_made(peer->edge, task);
        }
        while (peer->tasks) {
                struct peer_task *task = peer->tasks;

                peer->tasks = task->next;
                task_call_off(task, SMV_CANCELLED);
                task->peer = NULL;
                task->next = task->prev = NULL;
                if (task->request)
                        task->request->peer = NULL;
        }
}
