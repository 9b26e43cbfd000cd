#include "daemon/edge/op-generate.h"

#include <errno.h>

#include "daemon/edge/admission.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/constraints.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/encode-work.h"
#include "daemon/edge/fork.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "base/error.h"

/* ---- after the text worker ---- */

static int begin(struct encode_job *job, struct wire_problem *ret_problem)
{
        int r = stream_begin(job->peer, job->stream, ret_problem);

        if (!r)
                job->stream = NULL;
        return error_pass(r);
}

/* The prompt is encoded, so it is known whether it fits. */
static int on_encoded(struct encode_job *job, struct wire_problem *ret_problem)
{
        struct admission *admission = job->peer->edge->admission;
        const char *field = job->chat.messages.bytes ? "messages" : "prompt";
        int r;

        r = admission_finish(admission, job->stream, field, job->job.ids, job->job.id_count,
                             ret_problem);
        return r ? error_pass(r) : error_pass(begin(job, ret_problem));
}

static int on_rendered(struct encode_job *job, struct wire_problem *ret_problem)
{
        return error_pass(encode_job_again(job, true, work_prompt, on_encoded, ret_problem));
}

/* The job's text or messages are worked on. */
static int encode_text(struct encode_job *job)
{
        return job->chat.messages.bytes ? encode_job_go_on(job, work_render, on_rendered)
                                        : encode_job_go_on(job, work_prompt, on_encoded);
}

/* The constraint is compiled; ids that were in the frame are with the stream already. */
static int on_constrained(struct encode_job *job, struct wire_problem *ret_problem)
{
        struct buffer *buffer = &job->constraint;
        const struct wire_text text = { (const char *)buffer->bytes + buffer->start,
                                        (uint32_t)buffer_count(buffer) };
        struct grammar *grammar = job->grammar;
        int r;

        job->grammar = NULL;
        r = constraints_add(job->peer->edge->constraints, job->stream, &text, grammar, ret_problem);
        if (r)
                return error_pass(r);
        buffer_deinit(buffer);
        if (job->stream->request.sequence.tokens)
                return error_pass(begin(job, ret_problem));
        return encode_text(job);
}

/* The stream was not begun: it was refused, or cancelled, or its peer is gone. */
static void on_over(struct edge *edge, struct encode_job *job)
{
        if (job->stream)
                stream_drop(edge, job->stream);
}

/* ---- before ---- */

/* Makes the stream and its siblings; if the frame had ids, they have them.  All or nothing. */
static int make_streams(struct peer *peer, struct served *served, const struct wire_request *asked,
                        struct stream **ret_stream, struct wire_problem *ret_problem)
{
        struct admission *admission = peer->edge->admission;
        struct stream *stream = NULL;
        int r;

        r = admission_ask(admission, peer->uid, served, asked, &stream, ret_problem);
        if (r)
                return error_pass(r);
        r = fork_siblings(admission, stream, asked, ret_problem);
        if (!r && asked->token_count)
                r = admission_finish(admission, stream,
                                     wire_has(asked, WIRE_F_HANDLE) ? "handle" : "tokens",
                                     asked->tokens, asked->token_count, ret_problem);
        if (r) {
                admission_forget_all(admission, stream);
                return error_pass(r);
        }
        *ret_stream = stream;
        return 0;
}

static int take_work(struct encode_job *job, struct wire_request *asked, bool compiles)
{
        int r = compiles ? encode_job_take_constraint(job, &asked->constraint) : 0;

        if (!r && asked->chat.messages.bytes)
                r = encode_job_take_messages(job, asked);
        else if (!r && !asked->token_count)
                r = encode_job_take_text(job, asked, &asked->prompt);
        return error_pass(r);
}

/* 0: the stream is the job's; or -ENOMEM.  Takes what it needs of `asked`. */
static int encode(struct peer *peer, struct wire_request *asked, struct stream *stream,
                  bool compiles)
{
        const struct served *served = stream->request.model;
        bool has_messages = asked->chat.messages.bytes;
        struct encode_job *job;
        int r;

        job = encode_job_new(peer, asked, served, work_constrain);
        if (!job)
                return error_raise(-ENOMEM);
        r = take_work(job, asked, compiles);
        if (r) {
                encode_job_free(job);
                return error_pass(r);
        }
        /* With messages the template writes the first token itself, if it wants it. */
        job->job.first_id = has_messages ? TRAITS_NO_TOKEN : served->traits.bos;
        job->ids_max = served->context;
        job->stream = stream;
        job->over = on_over;
        if (compiles)
                (void)encode_job_go_on(job, work_constrain, on_constrained);
        else
                (void)encode_text(job);
        return 0;
}

/* Gives the stream its guide, if it has a constraint that was compiled before. */
static int constrain(struct peer *peer, const struct wire_request *asked, struct stream *stream,
                     bool *ret_compiles, struct wire_problem *ret_problem)
{
        int r = asked->constraint.count ? constraints_find(peer->edge->constraints, stream,
                                                           &asked->constraint, ret_problem)
                                        : 0;

        *ret_compiles = r == CONSTRAINTS_E_UNKNOWN;
        return *ret_compiles ? 0 : error_pass(r);
}

int op_generate(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        struct stream *stream = NULL;
        struct handle *handle = NULL;
        bool compiles = false;
        int r;

        counter_add(&peer->edge->conf.stats->requests_received, 1);
        r = op_check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = op_check_chat(served, asked, ret_problem);
        if (!r && wire_has(asked, WIRE_F_HANDLE))
                r = op_borrow_tokens(peer, asked, &handle, ret_problem);
        if (!r)
                r = make_streams(peer, served, asked, &stream, ret_problem);
        if (r)
                return error_pass(r);
        if (handle)
                handle_lend(handle, stream);
        r = stream_claim(peer, stream, ret_problem);
        if (!r)
                r = constrain(peer, asked, stream, &compiles, ret_problem);
        if (!r && asked->token_count && !compiles)
                r = stream_begin(peer, stream, ret_problem);
        else if (!r)
                r = encode(peer, asked, stream, compiles);
        if (r)
                stream_drop(peer->edge, stream);
        return error_pass(r);
}

/* ---- cancel ---- */

int op_cancel(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct resumable *resumable = resumable_attached(peer, asked->stream);
        struct encode_job *job = encode_job_find(peer, asked->stream);
        struct stream *stream = streams_find(peer, asked->stream);

        (void)ret_problem;
        if (stream)
                stream_cancel(peer->edge, stream, SMV_END_CANCELLED, SMV_OK);
        if (job)
                encode_job_cancel(job, asked->stream);
        if (resumable)
                resumable_cancel(resumable);
        connection_reply_ok(peer, asked->id);
        return 0;
}
