#include "daemon/edge/op-attach.h"

#include <inttypes.h>

#include "daemon/edge/connection.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "base/error.h"

static int find_resumable(struct peer *peer, const struct wire_request *asked,
                          struct resumable **ret_resumable, struct wire_problem *ret_problem)
{
        *ret_resumable = resumables_find(peer->edge->resumables, peer->uid, asked->resume_id);
        if (*ret_resumable)
                return 0;
        return wire_refuse(ret_problem, SMV_NO_RESUMABLE, asked->id, "resume_id",
                           "there is no resumable stream %" PRIu64, asked->resume_id);
}

/*
 * `from` may be a record that is there, or the next one; if the stream has ended, at most its END.
 */
static int check_from(const struct resumable *resumable, const struct wire_request *asked,
                      struct wire_problem *ret_problem)
{
        uint32_t last = resumable->log.count - resumable->ended;

        if (asked->from <= last)
                return 0;
        return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "from",
                           "from is %u; the stream has %u records%s", asked->from,
                           resumable->log.count,
                           resumable->ended ? ", its END included" : " so far");
}

static void reply(struct peer *peer, const struct resumable *resumable, uint32_t id)
{
        struct wire_writer writer;

        if (!connection_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, 3);
        wire_put_text(&writer, "sequence");
        wire_put_uint(&writer, resumable->log.count);
        wire_put_text(&writer, "prompt_tokens");
        wire_put_uint(&writer, resumable->prompt_tokens);
        wire_put_text(&writer, "max_tokens");
        wire_put_uint(&writer, resumable->max_tokens);
        connection_replied(peer, &writer);
}

int op_attach(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL; /* not used: the stream has its own model */
        struct resumable *resumable = NULL;
        int r;

        r = op_check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = find_resumable(peer, asked, &resumable, ret_problem);
        if (!r)
                r = check_from(resumable, asked, ret_problem);
        if (r)
                return error_pass(r);
        reply(peer, resumable, asked->id);
        if (!peer->doomed)
                resumable_attach(resumable, peer, asked->id, asked->from);
        return 0;
}

/* A stream that has ended is not attached any more; to detach it is no error. */
int op_detach(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct resumable *resumable = resumable_attached(peer, asked->stream);

        if (encode_job_find(peer, asked->stream))
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "stream",
                                   "request %u has no reply yet; detach its stream after the reply",
                                   asked->stream);
        if (streams_find(peer, asked->stream))
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "stream",
                                   "stream %u is not resumable: it was started without keep_ms",
                                   asked->stream);
        if (resumable)
                resumable_detach(resumable);
        connection_reply_ok(peer, asked->id);
        return 0;
}

int op_drop(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct resumable *resumable = NULL;
        int r;

        r = find_resumable(peer, asked, &resumable, ret_problem);
        if (r)
                return error_pass(r);
        resumable_drop(resumable);
        connection_reply_ok(peer, asked->id);
        return 0;
}
