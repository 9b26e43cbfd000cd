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
#include "daemon/edge/values.h"
#include "daemon/draft/prediction.h"
#include "daemon/text/parts/argument-types.h"
#include "base/error.h"

/* ---- after the text worker ---- */

/* The tokens of its prompt are known. */
static enum answer_reasoning reasoning_of(const struct stream *stream)
{
        const struct request *request = &stream->request;

        return answer_reasoning(request->model, request->parts, request->parts_reasoning);
}

/* Charges a stream for bytes that its job holds, or takes that back. */
static int charge(const struct encode_job *job, size_t bytes, bool on,
                  struct wire_problem *ret_problem)
{
        struct stream *stream = job->stream;
        size_t own = stream->charged_bytes - argument_types_bytes(stream->request.argument_types);

        return error_pass(admission_recharge(job->peer->edge->admission, stream,
                                             on ? own + bytes : own - bytes, ret_problem));
}

static int charge_tools(const struct encode_job *job, bool on, struct wire_problem *ret_problem)
{
        return error_pass(charge(job, values_bytes(&job->chat), on, ret_problem));
}

/* The texts of a form, until constraints.h charges the compiled form with them. */
static int charge_form(const struct encode_job *job, bool on, struct wire_problem *ret_problem)
{
        size_t bytes = (size_t)job->form.constraint.count + job->form.calls.count;

        return error_pass(charge(job, bytes, on, ret_problem));
}

/* The text of a prediction, and the tokens that it may become. */
static int charge_prediction(const struct encode_job *job, bool on,
                             struct wire_problem *ret_problem)
{
        size_t text = buffer_count(&job->prediction);

        return error_pass(charge(job, text + encode_job_ids_bytes(job, text), on, ret_problem));
}

static int start(struct encode_job *job, struct wire_problem *ret_problem)
{
        int r = stream_begin(job->peer, job->stream, ret_problem);

        if (!r)
                job->stream = NULL;
        return error_pass(r);
}

/* A prediction is cut where the answer must end. */
static int on_predicted(struct encode_job *job, struct wire_problem *ret_problem)
{
        uint32_t most = job->stream->request.max_tokens;
        uint32_t count = job->job.id_count < most ? (uint32_t)job->job.id_count : most;
        struct prediction *prediction = NULL;
        int r = charge_prediction(job, false, ret_problem);

        if (!r && count)
                r = prediction_new(job->job.ids, count, &prediction);
        for (struct stream *s = job->stream; s && prediction && !r; s = stream_sibling(s))
                r = admission_give_prediction(job->peer->edge->admission, s, prediction,
                                              ret_problem);
        prediction_unref(prediction);
        return r ? error_pass(r) : error_pass(start(job, ret_problem));
}

/* The stream has its tokens and its form.  A prediction has to become tokens first. */
static int begin(struct encode_job *job, struct wire_problem *ret_problem)
{
        int r;

        if (!buffer_count(&job->prediction) || !job->stream->request.draft_max)
                return error_pass(start(job, ret_problem));
        r = charge_prediction(job, true, ret_problem);
        if (r)
                return error_pass(r);
        encode_job_set_text(job, (const char *)job->prediction.bytes,
                            buffer_count(&job->prediction));
        return encode_job_go_on(job, work_prompt, on_predicted);
}

static int on_constrained(struct encode_job *job, struct wire_problem *ret_problem)
{
        struct constraints *constraints = job->peer->edge->constraints;
        struct grammar *grammar = job->grammar;
        int r;

        job->grammar = NULL;
        r = constraints_add(constraints, job->stream, &job->form, grammar, ret_problem);
        if (!r)
                r = charge_form(job, false, ret_problem);
        return r ? error_pass(r) : error_pass(begin(job, ret_problem));
}

/* The tokens are with the stream.  A constraint that is not known has to be compiled first. */
static int begin_constrained(struct encode_job *job, struct wire_problem *ret_problem)
{
        struct constraints *constraints = job->peer->edge->constraints;
        int r = 0;

        job->form.reasoning = reasoning_of(job->stream);
        if (job->form.constraint.count || job->form.calls.count)
                r = constraints_find(constraints, job->stream, &job->form, ret_problem);
        if (r == CONSTRAINTS_E_UNKNOWN) {
                r = charge_form(job, true, ret_problem);
                return r ? error_pass(r) : encode_job_go_on(job, work_constrain, on_constrained);
        }
        return r ? error_pass(r) : error_pass(begin(job, ret_problem));
}

/* The prompt is encoded, so it is known whether it fits. */
static int on_encoded(struct encode_job *job, struct wire_problem *ret_problem)
{
        struct admission *admission = job->peer->edge->admission;
        const char *field = job->chat.messages.bytes ? "messages" : "prompt";
        int r;

        r = admission_finish(admission, job->stream, field, job->job.ids, job->job.id_count,
                             ret_problem);
        return r ? error_pass(r) : begin_constrained(job, ret_problem);
}

static int check_end(const struct encode_job *job, struct wire_problem *ret_problem)
{
        if (!job->form.calls.count || !job->stream->request.ignore_eos)
                return 0;
        return wire_refuse(ret_problem, SMV_BAD_VALUE, job->id, "ignore_eos",
                           "ignore_eos goes with no constrained calls: an answer ends where its "
                           "form says so");
}

/* The stream continues a handle. */
static int on_wished(struct encode_job *job, struct wire_problem *ret_problem)
{
        int r = charge_tools(job, false, ret_problem);

        if (!r)
                r = check_end(job, ret_problem);
        return r ? error_pass(r) : error_pass(begin_constrained(job, ret_problem));
}

static int on_rendered(struct encode_job *job, struct wire_problem *ret_problem)
{
        int r = check_end(job, ret_problem);

        if (r)
                return error_pass(r);
        for (struct stream *s = job->stream; s; s = stream_sibling(s))
                admission_give_types(s, job->argument_types);
        return error_pass(encode_job_again(job, true, work_prompt, on_encoded, ret_problem));
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

/* Takes what the work needs of `asked`: 0 or -ENOMEM. */
static int take_text(struct encode_job *job, struct wire_request *asked)
{
        int r = encode_job_take_constraint(job, &asked->constraint);

        if (!r)
                r = encode_job_take_prediction(job, &asked->prediction);
        if (r || (asked->token_count && !asked->chat.tools.count))
                return error_pass(r);
        return error_pass(asked->chat.messages.bytes || asked->token_count
                                  ? encode_job_take_messages(job, asked)
                                  : encode_job_take_text(job, asked, &asked->prompt));
}

/* The stream has its tokens, and no constraint. */
static int predict_or_free(struct encode_job *job, struct wire_problem *ret_problem)
{
        int r = begin(job, ret_problem);

        if (r == ENCODE_JOB_E_AGAIN)
                return 0;
        encode_job_free(job);
        return error_pass(r);
}

/*
 * The stream waits for its tokens, or for its constraint: then it is the job's.  Or WIRE_E_REFUSED,
 * or -ENOMEM.
 */
static int encode(struct peer *peer, struct wire_request *asked, struct stream *stream,
                  struct wire_problem *ret_problem)
{
        const struct served *served = stream->request.model;
        bool has_messages = asked->chat.messages.bytes;
        struct encode_job *job;
        int r;

        job = encode_job_new(peer, asked, served, work_constrain);
        if (!job)
                return error_raise(-ENOMEM);
        job->stream = stream;
        r = take_text(job, asked);
        if (!r && asked->token_count && asked->chat.tools.count)
                r = charge_tools(job, true, ret_problem);
        if (r) {
                encode_job_free(job);
                return error_pass(r);
        }
        /* With messages the template writes the first token itself, if it wants it. */
        job->job.first_id = has_messages ? TRAITS_NO_TOKEN : served->traits.bos;
        job->ids_max = served->context;
        job->over = on_over;
        job->form.reasoning = reasoning_of(stream); /* if it has its tokens */
        if (asked->token_count && asked->chat.tools.count)
                (void)encode_job_go_on(job, work_wish, on_wished);
        else if (asked->token_count && !asked->constraint.count)
                return predict_or_free(job, ret_problem);
        else if (asked->token_count)
                (void)encode_job_go_on(job, work_constrain, on_constrained);
        else if (has_messages)
                (void)encode_job_go_on(job, work_render, on_rendered);
        else
                (void)encode_job_go_on(job, work_prompt, on_encoded);
        return 0;
}

/* The stream has its tokens.  0, CONSTRAINTS_E_UNKNOWN, WIRE_E_REFUSED or -ENOMEM. */
static int begin_or_compile(struct peer *peer, const struct wire_request *asked,
                            struct stream *stream, struct wire_problem *ret_problem)
{
        const struct answer_form form = { reasoning_of(stream), asked->constraint, { 0 } };
        int r = form.constraint.count
                        ? constraints_find(peer->edge->constraints, stream, &form, ret_problem)
                        : 0;

        return r ? error_pass(r) : error_pass(stream_begin(peer, stream, ret_problem));
}

int op_generate(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        struct stream *stream = NULL;
        struct handle *handle = NULL;
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
                r = asked->token_count && !asked->chat.tools.count && !asked->prediction.count
                            ? begin_or_compile(peer, asked, stream, ret_problem)
                            : encode(peer, asked, stream, ret_problem);
        if (r == CONSTRAINTS_E_UNKNOWN)
                r = encode(peer, asked, stream, ret_problem);
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
