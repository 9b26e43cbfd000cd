#include "daemon/edge/op-generate.h"

#include <errno.h>

#include "daemon/edge/admission.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/encode-work.h"
#include "daemon/edge/fork.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "base/error.h"

/* ---- after the text worker ---- */

/* The prompt is encoded, so it is known whether it fits. */
static int on_encoded(struct encode_job *job, struct wire_problem *ret_problem)
{
        struct admission *admission = job->peer->edge->admission;
        const char *field = job->chat.messages.bytes ? "messages" : "prompt";
        int r;

        r = admission_finish(admission, job->stream, field, job->job.ids, job->job.id_count,
                             ret_problem);
        if (!r)
                r = stream_begin(job->peer, job->stream, ret_problem);
        if (!r)
                job->stream = NULL;
        return error_pass(r);
}

static int on_rendered(struct encode_job *job, struct wire_problem *ret_problem)
{
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

/* 0: the stream is the job's; or -ENOMEM.  Takes what it needs of `asked`. */
static int encode(struct peer *peer, struct wire_request *asked, struct stream *stream)
{
        const struct served *served = stream->request.model;
        bool has_messages = asked->chat.messages.bytes;
        struct encode_job *job;
        int r;

        job = encode_job_new(peer, asked, served, has_messages ? work_render : work_prompt);
        if (!job)
                return error_raise(-ENOMEM);
        r = has_messages ? encode_job_take_messages(job, asked)
                         : encode_job_take_text(job, asked, &asked->prompt);
        if (r) {
                encode_job_free(job);
                return error_pass(r);
        }
        /* With messages the template writes the first token itself, if it wants it. */
        job->job.first_id = has_messages ? TRAITS_NO_TOKEN : served->traits.bos;
        job->ids_max = served->context;
        job->stream = stream;
        job->done = has_messages ? on_rendered : on_encoded;
        job->over = on_over;
        encode_job_post(job);
        return 0;
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
        if (!r && asked->token_count)
                r = stream_begin(peer, stream, ret_problem);
        else if (!r)
                r = encode(peer, asked, stream);
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
