#include "daemon/edge/encode-job.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/admission.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/late.h"
#include "daemon/edge/values.h"
#include "daemon/edge/wire.h"
#include "base/error.h"
#include "daemon/text/parts/argument-types.h"

/* ---- life ---- */

static struct encode_job *make(struct peer *peer, int (*work)(struct text_job *job))
{
        const struct config *config = peer->edge->conf.config;
        struct encode_job *job = calloc(1, sizeof(*job));

        if (!job)
                return NULL;
        job->peer = peer;
        job->uid = peer->uid;
        job->frame_max = config->frame_bytes;
        job->reply_front = connection_unsent_max(peer);
        job->reply_behind = peer->out.max - job->reply_front - config->frame_bytes - 4;
        job->job.work = work;
        job->job.first_id = TRAITS_NO_TOKEN;
        job->job.owner = job;
        return job;
}

struct encode_job *encode_job_new(struct peer *peer, const struct wire_request *asked,
                                  const struct served *served, int (*work)(struct text_job *job))
{
        struct encode_job *job = make(peer, work);

        if (!job)
                return NULL;
        job->op = asked->op;
        job->id = asked->id;
        job->served = served;
        job->job.tokenizer = served->tokenizer;
        return job;
}

void encode_job_drop_rendered(struct encode_job *job)
{
        rendered_free(&job->rendered);
        free(job->parts);
        job->parts = NULL;
}

void encode_job_free(struct encode_job *job)
{
        wire_release(&job->asked);
        encode_job_drop_rendered(job);
        argument_types_unref(job->argument_types);
        buffer_deinit(&job->frame);
        buffer_deinit(&job->reply);
        buffer_deinit(&job->constraint);
        buffer_deinit(&job->prediction);
        bytes_deinit(&job->calls);
        grammar_free(job->grammar);
        free(job->job.ids);
        free(job);
}

/* ---- what it works on ---- */

/*
 * If the request owns the frame of the text, the job takes the frame; else the text is short and
 * copied.
 */
int encode_job_take_text(struct encode_job *job, struct wire_request *asked,
                         const struct wire_text *text)
{
        int r;

        job->job.text = text->bytes;
        job->job.text_bytes = text->count;
        if (asked->frame.bytes) {
                job->frame = asked->frame;
                buffer_init(&asked->frame, 0);
                return 0;
        }
        buffer_init(&job->frame, text->count);
        r = buffer_append(&job->frame, text->bytes, text->count);
        job->job.text = (const char *)job->frame.bytes;
        return error_pass(r);
}

int encode_job_take_messages(struct encode_job *job, struct wire_request *asked)
{
        struct wire_values *const all[] = { &job->chat.messages, &job->chat.tools,
                                            &job->chat.template_vars, &job->chat.allowed_tools };
        size_t at = 0, bytes;
        int r;

        job->chat = asked->chat;
        if (asked->frame.bytes) {
                job->frame = asked->frame;
                buffer_init(&asked->frame, 0);
                return 0;
        }
        bytes = values_bytes(&asked->chat) + asked->chat.allowed_tools.size;
        buffer_init(&job->frame, bytes);
        r = buffer_reserve(&job->frame, bytes);
        for (size_t i = 0; !r && i < sizeof(all) / sizeof(*all); i++) {
                if (!all[i]->bytes)
                        continue;
                r = buffer_append(&job->frame, all[i]->bytes, all[i]->size);
                all[i]->bytes = job->frame.bytes + at;
                at += all[i]->size;
        }
        return error_pass(r);
}

int encode_job_take_constraint(struct encode_job *job, const struct wire_text *text)
{
        int r;

        buffer_init(&job->constraint, text->count);
        r = buffer_append(&job->constraint, text->bytes, text->count);
        if (!r && text->count)
                job->form.constraint =
                        (struct wire_text){ (const char *)job->constraint.bytes, text->count };
        return error_pass(r);
}

int encode_job_take_prediction(struct encode_job *job, const struct wire_text *text)
{
        buffer_init(&job->prediction, text->count);
        return error_pass(buffer_append(&job->prediction, text->bytes, text->count));
}

void encode_job_set_text(struct encode_job *job, const char *text, size_t bytes)
{
        struct text_job *work = &job->job;

        free(work->ids);
        work->ids = NULL;
        work->id_count = work->control_count = 0;
        work->controls = NULL;
        work->text = text;
        work->text_bytes = bytes;
        work->first_id = TRAITS_NO_TOKEN;
        job->ids_max = SIZE_MAX;
}

size_t encode_job_ids_bytes(const struct encode_job *job, size_t text_bytes)
{
        return (tokenizer_ids_max(job->job.tokenizer, text_bytes) + 1) * sizeof(uint32_t);
}

/* ---- to the text worker ---- */

static void send_off(struct edge *edge, struct encode_job *job)
{
        edge->jobs_out++;
        mailbox_post(edge->conf.to_text_worker,
                     &(struct mail){ .kind = MAIL_JOB, .what = &job->job });
}

void encode_job_post(struct encode_job *job)
{
        list_push_front(&job->peer->jobs, &job->link);
        send_off(job->peer->edge, job);
}

int encode_job_pay_and_post(struct encode_job *job, uint64_t bytes,
                            struct wire_problem *ret_problem)
{
        int r;

        r = admission_job(job->peer->edge->admission, job->uid, job->id, sizeof(*job) + bytes,
                          ret_problem);
        if (r)
                return error_pass(r);
        job->charged = sizeof(*job) + bytes;
        encode_job_post(job);
        return 0;
}

int encode_job_decode(struct peer *peer, size_t bytes, int (*work)(struct text_job *job),
                      void (*decoded)(struct peer *peer, struct wire_request *asked, int r,
                                      struct wire_problem *problem),
                      struct wire_problem *ret_problem)
{
        struct buffer *in = &peer->in, rest;
        const uint8_t *body = in->bytes + in->start + 4;
        struct encode_job *job;
        int r;

        /*
         * The shutdown waits until no job is with the text worker, so no new job may be posted.
         * And all requests that the frame could contain are refused by then.
         */
        if (peer->edge->phase >= EDGE_ENDING)
                return late_refuse(peer->edge, wire_peek_id(body, bytes - 4), ret_problem);
        job = make(peer, work);
        if (!job)
                return error_raise(-ENOMEM);
        job->decoded = decoded;
        job->id = wire_peek_id(body, bytes - 4);
        job->frame = *in; /* lent until the job is posted */
        job->frame.start += 4;
        job->frame.end = in->start + bytes;
        buffer_init(&rest, in->max);
        r = buffer_append(&rest, body + bytes - 4, buffer_count(in) - bytes);
        if (!r)
                r = encode_job_pay_and_post(job, bytes, ret_problem);
        if (r) {
                buffer_init(&job->frame, 0);
                buffer_deinit(&rest);
                encode_job_free(job);
                return error_pass(r);
        }
        *in = rest;
        return 0;
}

/* ---- from done() ---- */

int encode_job_go_on(struct encode_job *job, int (*work)(struct text_job *job),
                     int (*done)(struct encode_job *job, struct wire_problem *ret_problem))
{
        job->job.work = work;
        job->done = done;
        encode_job_post(job);
        return ENCODE_JOB_E_AGAIN;
}

int encode_job_again(struct encode_job *job, bool encodes, int (*work)(struct text_job *job),
                     int (*done)(struct encode_job *job, struct wire_problem *ret_problem),
                     struct wire_problem *ret_problem)
{
        struct admission *admission = job->peer->edge->admission;
        size_t bytes = job->job.text_bytes + job->job.control_count * sizeof(*job->job.controls) +
                       job->calls.count;
        int r;

        if (encodes)
                bytes += encode_job_ids_bytes(job, job->job.text_bytes);
        if (job->stream)
                r = admission_rendered(admission, job->stream, bytes, ret_problem);
        else
                r = admission_job_more(admission, job->uid, job->id, bytes, ret_problem);
        if (r)
                return error_pass(r);
        if (!job->stream)
                job->charged += bytes;
        return encode_job_go_on(job, work, done);
}

static void uncharge(struct edge *edge, struct encode_job *job)
{
        if (job->charged)
                admission_job_done(edge->admission, job->uid, job->charged);
        job->charged = 0;
}

void encode_job_uncharge(struct encode_job *job)
{
        uncharge(job->peer->edge, job);
}

int encode_job_reply(struct encode_job *job, struct wire_problem *ret_problem)
{
        (void)ret_problem;
        connection_reply_made(job->peer, &job->reply);
        return 0;
}

/* ---- back from the text worker ---- */

static int refuse_cancelled(const struct edge *edge, const struct encode_job *job,
                            struct wire_problem *ret_problem)
{
        enum smv_code reason = text_job_cancel_reason(&job->job);
        const char *why = "cancelled before it began";

        if (reason == SMV_SHUTTING_DOWN)
                return late_refuse(edge, job->id, ret_problem);
        if (reason == SMV_NO_HANDLE)
                why = "the handle was closed in the meantime";
        return wire_refuse(ret_problem, reason, job->id, NULL, "%s", why);
}

static int refuse_ids(const struct encode_job *job, struct wire_problem *ret_problem)
{
        return wire_refuse(ret_problem, SMV_BAD_VALUE, job->id, "tokens",
                           "tokens has %u at index %zu; the largest id is %u", job->bad_id, job->at,
                           tokenizer_vocab(job->job.tokenizer) - 1);
}

static int refuse_long(const struct encode_job *job, struct wire_problem *ret_problem)
{
        const char *field = job->op == WIRE_TOKENIZE   ? "text"
                            : job->op == WIRE_TEMPLATE ? "messages"
                                                       : "tokens";

        return wire_refuse(ret_problem, SMV_BAD_VALUE, job->id, field,
                           "the answer to %s would have %zu bytes; a frame may have %zu", field,
                           job->answer_bytes, job->frame_max);
}

static int answer(struct edge *edge, struct encode_job *job, struct wire_problem *ret_problem)
{
        int r = job->job.result;

        /* The peer has begun to close in this turn, and its jobs are not cancelled yet. */
        if (job->peer->cancels)
                text_job_cancel(&job->job, SMV_CANCELLED);
        if (text_job_is_cancelled(&job->job))
                return refuse_cancelled(edge, job, ret_problem);
        if (r < 0)
                return error_raise(r);
        if (r == WIRE_E_REFUSED) {
                *ret_problem = job->problem;
                return r;
        }
        if (r == WORK_E_BAD_ID)
                return refuse_ids(job, ret_problem);
        if (r == WORK_E_LONG)
                return refuse_long(job, ret_problem);
        return error_pass(job->done(job, ret_problem));
}

/* Takes back the charge of the frame first, because the request is charged separately. */
static void frame_is_decoded(struct edge *edge, struct encode_job *job)
{
        struct wire_problem *problem = &job->problem;
        int r = job->job.result;

        uncharge(edge, job);
        if (!job->peer)
                return;
        if (r == -ECANCELED)
                r = refuse_cancelled(edge, job, problem);
        job->decoded(job->peer, &job->asked, r, problem);
}

static void finish(struct edge *edge, struct encode_job *job)
{
        struct wire_problem problem;
        int r = 0;

        if (job->decoded)
                frame_is_decoded(edge, job);
        else if (job->peer && !job->peer->doomed)
                r = answer(edge, job, &problem);
        if (r == ENCODE_JOB_E_AGAIN)
                return;
        if (r && job->op == WIRE_GENERATE)
                connection_count_refusal(edge, r, &problem);
        if (r)
                connection_answer_failure(job->peer, job->id, r, &problem);
        if (job->over)
                job->over(edge, job);
        uncharge(edge, job);
        encode_job_free(job);
}

/*
 * A reply that the text worker made waits for those made before it.  That includes replies that
 * wait themselves, even if the one they waited for has just been sent.  So replies that are not
 * read stay charged.
 */
static bool must_wait(const struct encode_job *job)
{
        const struct peer *peer = job->peer;

        return peer && (peer->long_left || !list_is_empty(&peer->replies)) &&
               buffer_count(&job->reply);
}

bool encode_jobs_may_pass_reply(const struct peer *peer)
{
        return !list_is_empty(&peer->replies) && !peer->long_left && !peer->doomed;
}

static struct encode_job *job_of(struct list_head *link)
{
        return link ? LIST_ENTRY(link, struct encode_job, link) : NULL;
}

void encode_jobs_pass_reply(struct peer *peer)
{
        struct encode_job *job = job_of(list_first(&peer->replies));

        list_remove(&job->link);
        finish(peer->edge, job);
}

void encode_job_come_back(struct edge *edge, struct text_job *text_job)
{
        struct encode_job *job = text_job->owner;

        assert(edge->jobs_out);
        edge->jobs_out--;
        list_remove(&job->link);
        if (job->peer)
                connection_mark(job->peer);
        if (must_wait(job))
                list_push_back(&job->peer->replies, &job->link);
        else
                finish(edge, job);
}

/* ---- while a job is with the text worker ---- */

/* True if the job, or one of its streams, has this id. */
static bool is_of(const struct encode_job *job, uint32_t id)
{
        const struct stream *stream = job->stream;

        while (stream && stream->request.stream != id)
                stream = stream_sibling(stream);
        return stream || job->id == id;
}

struct encode_job *encode_job_find(struct peer *peer, uint32_t id)
{
        list_each(at, &peer->jobs)
                if (!job_of(at)->decoded && is_of(job_of(at), id))
                        return job_of(at);
        list_each(at, &peer->replies)
                if (job_of(at)->id == id)
                        return job_of(at);
        return NULL;
}

void encode_job_cancel(struct encode_job *job, uint32_t stream)
{
        bool wanted = false;

        for (struct stream *s = job->stream; s; s = stream_sibling(s)) {
                s->unwanted |= s->request.stream == stream;
                wanted |= !s->unwanted;
        }
        if (!wanted)
                text_job_cancel(&job->job, SMV_CANCELLED);
}

void encode_jobs_cancel(struct peer *peer, enum smv_code reason)
{
        list_each(at, &peer->jobs)
                text_job_cancel(&job_of(at)->job, reason);
}

/* Runs on the text worker's thread: the reply may have many megabytes. */
static int work_clear(struct text_job *text_job)
{
        struct encode_job *job = text_job->owner;

        buffer_deinit(&job->reply);
        return 0;
}

/*
 * The reply is not wanted any more.  The text worker frees it, as long as jobs are still allowed.
 */
static void clear_reply(struct edge *edge, struct encode_job *job)
{
        job->peer = NULL;
        job->job.work = work_clear;
        if (edge->phase >= EDGE_ENDING)
                finish(edge, job);
        else
                send_off(edge, job);
}

void encode_jobs_leave(struct peer *peer)
{
        struct encode_job *job;

        while ((job = job_of(list_first(&peer->replies)))) {
                list_remove(&job->link);
                clear_reply(peer->edge, job);
        }
        while ((job = job_of(list_first(&peer->jobs)))) {
                list_remove(&job->link);
                text_job_cancel(&job->job, SMV_CANCELLED);
                job->peer = NULL;
                if (job->stream)
                        job->stream->peer = NULL;
        }
}
