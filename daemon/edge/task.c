#include "daemon/edge/task.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/streams.h"
#include "daemon/error.h"

#define REPLY_HEAD_BYTES 64u /* of a reply, at most, beside what is counted */

/* ---- to the scribe ---- */

static struct peer_task *make(struct peer *peer, const struct wire_request *asked,
                              const struct served *served, enum scribe_work work)
{
        struct peer_task *task = calloc(1, sizeof(*task));

        if (!task)
                return NULL;
        task->peer = peer;
        task->op = asked->op;
        task->id = asked->id;
        task->uid = peer->uid;
        task->job.work = work;
        task->job.tokenizer = served->tokenizer;
        task->job.first_id = TRAITS_NO_TOKEN;
        task->job.owner = task;
        return task;
}

static void release(struct peer_task *task)
{
        free(task->job.text);
        free(task->job.ids);
        free(task);
}

static int copy_text(struct peer_task *task, const struct wire_text *text)
{
        task->job.text = malloc(text->count ? text->count : 1);
        if (!task->job.text)
                return error_raise(-ENOMEM);
        memcpy(task->job.text, text->bytes ? text->bytes : "", text->count);
        task->job.text_bytes = text->count;
        return 0;
}

static void post(struct peer_task *task)
{
        struct edge *edge = task->peer->edge;

        task->next = task->peer->tasks;
        if (task->next)
                task->next->prev = task;
        task->peer->tasks = task;
        edge->jobs_out++;
        mailbox_post(edge->conf.to_scribe, &(struct mail){ .kind = MAIL_JOB, .what = &task->job });
}

int task_generate(struct peer *peer, const struct wire_request *asked, struct request *request)
{
        struct peer_task *task = make(peer, asked, request->model, SCRIBE_ENCODE);
        int r;

        if (!task)
                return error_raise(-ENOMEM);
        r = copy_text(task, &asked->prompt);
        if (r) {
                release(task);
                return error_pass(r);
        }
        task->job.first_id = request->model->traits.bos;
        task->request = request;
        post(task);
        return 0;
}

/* The rest of a job that is no generation: it is paid for, then it goes. */
static int pay_and_post(struct peer_task *task, uint64_t bytes, struct wire_problem *ret_problem)
{
        int r;

        r = admit_job(task->peer->edge->admit, task->uid, task->id, sizeof(*task) + bytes,
                      ret_problem);
        if (r) {
                release(task);
                return error_pass(r);
        }
        task->charged = sizeof(*task) + bytes;
        post(task);
        return 0;
}

int task_tokenize(struct peer *peer, struct served *served, const struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        size_t ids_max = tokenizer_ids_max(served->tokenizer, asked->text.count) + 1;
        struct peer_task *task = make(peer, asked, served, SCRIBE_ENCODE);
        int r;

        if (!task)
                return error_raise(-ENOMEM);
        r = copy_text(task, &asked->text);
        if (r) {
                release(task);
                return error_pass(r);
        }
        r = pay_and_post(task, asked->text.count + ids_max * sizeof(uint32_t), ret_problem);
        return error_pass(r);
}

static int refuse_long(struct edge *edge, uint32_t id, const char *field, size_t bytes,
                       struct wire_problem *ret_problem)
{
        return wire_refuse(ret_problem, SMV_BAD_VALUE, id, field,
                           "the answer to %s would have %zu bytes; a frame may have %llu", field,
                           bytes, (unsigned long long)edge->conf.config->frame_bytes);
}

/* The text of these ids is measured first: a few bytes of an id may be many of its piece. */
int task_detokenize(struct peer *peer, struct served *served, const struct wire_request *asked,
                    struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        size_t text_bytes = 0, ids_bytes = asked->token_count * sizeof(uint32_t);
        struct peer_task *task;
        int r;

        for (uint32_t i = 0; i < asked->token_count; i++) {
                size_t piece;

                tokenizer_piece(served->tokenizer, asked->tokens[i], &piece);
                text_bytes += piece;
        }
        if (text_bytes + REPLY_HEAD_BYTES > edge->conf.config->frame_bytes)
                return refuse_long(edge, asked->id, "tokens", text_bytes, ret_problem);
        task = make(peer, asked, served, SCRIBE_DECODE);
        if (!task)
                return error_raise(-ENOMEM);
        task->job.ids = malloc(ids_bytes ? ids_bytes : 1);
        if (!task->job.ids) {
                release(task);
                return error_raise(-ENOMEM);
        }
        memcpy(task->job.ids, asked->tokens, ids_bytes);
        task->job.id_count = asked->token_count;
        r = pay_and_post(task, ids_bytes + text_bytes, ret_problem);
        return error_pass(r);
}

struct peer_task *task_find(struct peer *peer, uint32_t id)
{
        for (struct peer_task *task = peer->tasks; task; task = task->next)
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

void tasks_leave(struct peer *peer)
{
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

/* ---- and back ---- */

/* What msgpack makes of these ids. */
static size_t ids_reply_bytes(const uint32_t *ids, size_t count)
{
        size_t bytes = REPLY_HEAD_BYTES;

        for (size_t i = 0; i < count; i++)
                bytes += ids[i] < 0x80 ? 1 : ids[i] < 0x100 ? 2 : ids[i] < 0x10000 ? 3 : 5;
        return bytes;
}

static int reply_tokens(struct peer_task *task, struct wire_problem *ret_problem)
{
        size_t bytes = ids_reply_bytes(task->job.ids, task->job.id_count);
        struct wire_writer writer;

        if (bytes > task->peer->edge->conf.config->frame_bytes)
                return refuse_long(task->peer->edge, task->id, "text", bytes, ret_problem);
        if (!peer_reply(task->peer, &writer))
                return 0;
        wire_put_ok(&writer, task->id, 1);
        wire_put_text(&writer, "tokens");
        wire_put_array(&writer, (uint32_t)task->job.id_count);
        for (size_t i = 0; i < task->job.id_count; i++)
                wire_put_uint(&writer, task->job.ids[i]);
        peer_replied(task->peer, &writer);
        return 0;
}

static int reply_text(struct peer_task *task)
{
        struct wire_writer writer;

        if (!peer_reply(task->peer, &writer))
                return 0;
        wire_put_ok(&writer, task->id, 1);
        wire_put_text(&writer, "text");
        wire_put_bin(&writer, task->job.text, task->job.text_bytes);
        peer_replied(task->peer, &writer);
        return 0;
}

/* The prompt is counted: now it is known whether it fits. */
static int begin_stream(struct edge *edge, struct peer_task *task, struct wire_problem *ret_problem)
{
        int r;

        r = admit_finish(edge->admit, task->request, task->job.ids, task->job.id_count,
                         ret_problem);
        if (r)
                return error_pass(r);
        stream_begin(task->peer, task->request);
        task->request = NULL;
        return 0;
}

static int answer(struct edge *edge, struct peer_task *task, struct wire_problem *ret_problem)
{
        int r;

        if (task->called_off)
                return wire_refuse(ret_problem, task->called_off, task->id, NULL,
                                   task->called_off == SMV_SHUTTING_DOWN
                                           ? "the daemon is stopping"
                                           : "cancelled before it had begun");
        if (task->job.result < 0)
                return error_raise(task->job.result);
        if (task->op == WIRE_GENERATE)
                r = begin_stream(edge, task, ret_problem);
        else if (task->op == WIRE_TOKENIZE)
                r = reply_tokens(task, ret_problem);
        else
                r = reply_text(task);
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

void peer_job_done(struct edge *edge, struct scribe_job *job)
{
        struct peer_task *task = job->owner;
        struct peer *peer = task->peer;
        struct wire_problem problem;

        assert(edge->jobs_out);
        edge->jobs_out--;
        if (peer) {
                int r;

                unlist(task);
                r = answer(edge, task, &problem);
                if (r && task->op == WIRE_GENERATE)
                        counter_add(&edge->conf.stats->requests_refused, 1);
                if (r)
                        peer_answer_failure(peer, task->id, r, &problem);
        }
        if (task->request)
                stream_drop(edge, task->request);
        if (task->charged)
                admit_job_done(edge->admit, task->uid, task->charged);
        release(task);
        if (peer)
                peer_settle(peer);
}
