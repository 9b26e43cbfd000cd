#include "daemon/edge/op-fork.h"

#include "daemon/edge/encode-job.h"
#include "daemon/edge/fork.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/op-handle.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "daemon/base/error.h"

/* NULL: it can not be forked, and *ret_why continues "stream 7 ..."; NULL: there is no such one. */
static struct stream *find_parent(struct peer *peer, uint32_t id, const char **ret_why)
{
        struct resumable *resumable = resumable_attached(peer, id);
        struct stream *parent = resumable ? resumable->stream : streams_find(peer, id);

        if (parent && !parent->retired && !parent->cancel_sent && !parent->reads_only)
                return parent;
        if (parent && parent->reads_only)
                *ret_why = "only reads";
        else if (parent || resumable)
                *ret_why = "has ended";
        else if (encode_job_find(peer, id))
                *ret_why = "has not begun";
        else
                *ret_why = NULL;
        return NULL;
}

/* The engine may have ended the parent in the meantime; then the forks' ENDs say so. */
static int fork_parent(struct peer *peer, const struct wire_request *asked,
                       struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct stream *parent, *first = NULL;
        const char *why = NULL;
        int r;

        counter_add(&edge->conf.stats->requests_received, 1);
        parent = find_parent(peer, asked->stream, &why);
        if (!parent && !why)
                return wire_refuse(ret_problem, SMV_NO_STREAM, asked->id, "stream",
                                   "there is no running stream %u", asked->stream);
        if (!parent)
                return wire_refuse(ret_problem, SMV_NO_STREAM, asked->id, "stream", "stream %u %s",
                                   asked->stream, why);
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
