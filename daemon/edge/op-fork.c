#include "daemon/edge/op-fork.h"

#include "daemon/edge/encode-job.h"
#include "daemon/edge/fork.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/op-handle.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "base/error.h"

/* NULL: it can not be forked, and the problem says why. */
static struct stream *find_parent(struct peer *peer, const struct wire_request *asked,
                                  struct wire_problem *ret_problem)
{
        struct resumable *resumable = resumable_attached(peer, asked->stream);
        struct stream *parent = resumable ? resumable->stream : streams_find(peer, asked->stream);
        const char *why;

        if (parent && !parent->retired && !parent->cancel_sent && !parent->makes_none &&
            !parent->request.asking)
                return parent;
        if (parent && parent->makes_none)
                why = "stream %u only reads";
        else if (parent && parent->request.asking)
                why = "stream %u asks its client before each token, so it cannot be forked";
        else if (parent || resumable)
                why = "stream %u has ended";
        else if (encode_job_find(peer, asked->stream))
                why = "stream %u has not begun";
        else
                why = "there is no running stream %u";
        wire_refuse(ret_problem, SMV_NO_STREAM, asked->id, "stream", why, asked->stream);
        return NULL;
}

/* The engine may have ended the parent in the meantime; then the forks' ENDs say so. */
static int fork_parent(struct peer *peer, const struct wire_request *asked,
                       struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct stream *parent, *first = NULL;
        int r;

        counter_add(&edge->conf.stats->requests_received, 1);
        parent = find_parent(peer, asked, ret_problem);
        if (!parent)
                return WIRE_E_REFUSED;
        r = fork_stream(edge->admission, parent, asked, &first, ret_problem);
        if (r)
                return error_pass(r);
        r = stream_claim(peer, first, ret_problem);
        if (!r)
                r = stream_begin(peer, first, ret_problem);
        if (r)
                stream_drop(edge, first);
        return error_pass(r);
}

int op_fork(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL; /* not used: forks have the model of what is forked */
        int r;

        r = op_check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (r)
                return error_pass(r);
        if (wire_has(asked, WIRE_F_STREAM))
                return error_pass(fork_parent(peer, asked, ret_problem));
        return error_pass(op_fork_handle(peer, asked, ret_problem));
}
