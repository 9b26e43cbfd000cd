/*
 * The operations of a peer.  Every request gets one reply: here, or where its task or its stream
 * goes on.  A handler returns 0 if the reply is sent or will be.  Otherwise it returns
 * WIRE_E_REFUSED with the problem, or a negative errno; then nothing has changed.
 */
#include "daemon/edge/handlers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/core/prefix.h"
#include "daemon/edge/hello.h"
#include "daemon/edge/holder.h"
#include "daemon/edge/keeper.h"
#include "daemon/edge/peer.h"
#include "daemon/edge/status.h"
#include "daemon/edge/streams.h"
#include "daemon/edge/task.h"
#include "daemon/error.h"
#include "daemon/log.h"
#include "daemon/sys.h"
#include "daemon/text/chat.h"

/* Checks for every request that leads to work. */
static int check_new(struct peer *peer, const struct wire_request *asked, enum edge_phase until,
                     struct served **ret_served, struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct served *served;

        uint32_t streams = wire_streams(asked), i = 0;

        do
                if (stream_find(peer, asked->id + i) || task_find(peer, asked->id + i) ||
                    kept_find(peer, asked->id + i))
                        return wire_refuse(ret_problem, SMV_DUP_ID, asked->id, "id",
                                           "id %u belongs to a request that is still alive",
                                           asked->id + i);
        while (++i < streams);
        if (edge->phase >= until)
                return wire_refuse(ret_problem, SMV_SHUTTING_DOWN, asked->id, NULL, "%s",
                                   edge->late);
        served = edge_model(edge, asked->model.bytes, asked->model.count);
        if (!served)
                return wire_refuse(ret_problem, SMV_NO_MODEL, asked->id, "model",
                                   "no model of that name is served");
        *ret_served = served;
        return 0;
}

/* Messages need a model that has a chat template. */
static int check_chat(const struct served *served, const struct wire_request *asked,
                      struct wire_problem *ret_problem)
{
        const char *missing = chat_missing(served->chat);

        if (!missing || !asked->talk.messages.bytes)
                return 0;
        return wire_refuse(ret_problem, SMV_NO_TEMPLATE, asked->id, "messages", "%s", missing);
}

static int begin_generate(struct peer *peer, struct wire_request *asked,
                          struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct request *request = NULL;
        struct served *served = NULL;
        struct handle *handle = NULL;
        int r;

        r = check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = check_chat(served, asked, ret_problem);
        if (!r && wire_has(asked, WIRE_F_HANDLE))
                r = holder_lend(peer, asked, &handle, ret_problem);
        if (!r)
                r = admit_ask(edge->admit, peer->uid, served, asked, &request, ret_problem);
        if (r)
                return error_pass(r);
        if (handle)
                holder_begin(handle, request);
        r = stream_claim(peer, request, ret_problem);
        if (!r && !asked->token_count)
                r = task_generate(peer, asked, request);
        else if (!r)
                r = stream_begin(peer, request, ret_problem);
        if (r)
                stream_drop(edge, request);
        return error_pass(r);
}

static int handle_generate(struct peer *peer, struct wire_request *asked,
                           struct wire_problem *ret_problem)
{
        struct stats *stats = peer->edge->conf.stats;
        int r;

        counter_add(&stats->requests_seen, 1);
        r = begin_generate(peer, asked, ret_problem);
        return error_pass(r);
}

static int find_kept(struct peer *peer, const struct wire_request *asked, struct kept **ret_kept,
                     struct wire_problem *ret_problem)
{
        *ret_kept = keeper_find(peer->edge->keeper, peer->uid, asked->kept);
        if (*ret_kept)
                return 0;
        return wire_refuse(ret_problem, SMV_NO_KEPT, asked->id, "kept",
                           "there is no kept stream %" PRIu64, asked->kept);
}

/*
 * `from` may be a record that is there, or the next one; if the stream has ended, at most its END.
 */
static int check_from(const struct kept *kept, const struct wire_request *asked,
                      struct wire_problem *ret_problem)
{
        uint32_t last = kept->reel.count - kept->ended;

        if (asked->from <= last)
                return 0;
        return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "from",
                           "from is %u; the stream has %u records%s", asked->from, kept->reel.count,
                           kept->ended ? ", its END included" : " so far");
}

/* To a client that cancels, a stream that has ended is the same as one that never was. */
static int handle_cancel(struct peer *peer, struct wire_request *asked,
                         struct wire_problem *ret_problem)
{
        struct request *request = stream_find(peer, asked->stream);
        struct peer_task *task = task_find(peer, asked->stream);
        struct kept *kept = kept_find(peer, asked->stream);

        (void)ret_problem;
        if (request)
                stream_cancel(peer->edge, request, SMV_END_CANCELLED, SMV_OK);
        if (task)
                task_cancel(task, asked->stream);
        if (kept)
                kept_cancel(kept);
        peer_reply_ok(peer, asked->id);
        return 0;
}

static int handle_attach(struct peer *peer, struct wire_request *asked,
                         struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        struct wire_writer writer;
        struct kept *kept = NULL;
        int r;

        r = check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = find_kept(peer, asked, &kept, ret_problem);
        if (!r)
                r = check_from(kept, asked, ret_problem);
        if (r)
                return error_pass(r);
        if (!peer_reply(peer, &writer))
                return 0;
        wire_put_ok(&writer, asked->id, 3);
        wire_put_text(&writer, "sequence");
        wire_put_uint(&writer, kept->reel.count);
        wire_put_text(&writer, "prompt_tokens");
        wire_put_uint(&writer, kept->prompt_tokens);
        wire_put_text(&writer, "max_tokens");
        wire_put_uint(&writer, kept->max_tokens);
        peer_replied(peer, &writer);
        if (!peer->doomed)
                kept_attach(kept, peer, asked->id, asked->from);
        return 0;
}

/* A stream that has ended is not attached any more; to detach it is no error. */
static int handle_detach(struct peer *peer, struct wire_request *asked,
                         struct wire_problem *ret_problem)
{
        struct kept *kept = kept_find(peer, asked->stream);

        if (stream_find(peer, asked->stream) || task_find(peer, asked->stream))
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "stream",
                                   "stream %u was not asked to be kept", asked->stream);
        if (kept)
                kept_detach(kept);
        peer_reply_ok(peer, asked->id);
        return 0;
}

static int handle_drop(struct peer *peer, struct wire_request *asked,
                       struct wire_problem *ret_problem)
{
        struct kept *kept = NULL;
        int r;

        r = find_kept(peer, asked, &kept, ret_problem);
        if (r)
                return error_pass(r);
        keeper_drop(kept);
        peer_reply_ok(peer, asked->id);
        return 0;
}

static int handle_tokenize(struct peer *peer, struct wire_request *asked,
                           struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = task_tokenize(peer, served, asked, ret_problem);
        return error_pass(r);
}

static int handle_detokenize(struct peer *peer, struct wire_request *asked,
                             struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = task_detokenize(peer, served, asked, ret_problem);
        return error_pass(r);
}

static int handle_template(struct peer *peer, struct wire_request *asked,
                           struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = check_chat(served, asked, ret_problem);
        if (!r)
                r = task_template(peer, served, asked, ret_problem);
        return error_pass(r);
}

static int handle_open(struct peer *peer, struct wire_request *asked,
                       struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = check_chat(served, asked, ret_problem);
        if (!r)
                r = holder_open(peer, served, asked, ret_problem);
        return error_pass(r);
}

static int handle_append(struct peer *peer, struct wire_request *asked,
                         struct wire_problem *ret_problem)
{
        struct served *served = NULL; /* not used: the handle has its own model */
        int r;

        r = check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = holder_append(peer, asked, ret_problem);
        return error_pass(r);
}

/* The engine may have ended the parent in the meantime; then the forks' ENDs say so. */
static int begin_fork(struct peer *peer, struct wire_request *asked,
                      struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct kept *kept = kept_find(peer, asked->stream);
        struct request *parent = kept ? kept->request : stream_find(peer, asked->stream);
        struct request *first = NULL;
        int r;

        counter_add(&edge->conf.stats->requests_seen, 1);
        if (!parent || parent->retired || parent->cancel_sent || parent->reads_only)
                return wire_refuse(ret_problem, SMV_NO_STREAM, asked->id, "stream", "stream %u %s",
                                   asked->stream,
                                   parent && parent->reads_only     ? "only reads"
                                   : parent || kept                 ? "has ended"
                                   : task_find(peer, asked->stream) ? "has not begun"
                                                                    : "is none that is alive");
        r = admit_fork(edge->admit, parent, asked, &first, ret_problem);
        if (r)
                return error_pass(r);
        r = stream_claim(peer, first, ret_problem);
        if (!r)
                r = stream_begin(peer, first, ret_problem);
        if (r)
                stream_drop(edge, first);
        return error_pass(r);
}

static int handle_fork(struct peer *peer, struct wire_request *asked,
                       struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (r)
                return error_pass(r);
        if (wire_has(asked, WIRE_F_STREAM))
                r = begin_fork(peer, asked, ret_problem);
        else
                r = holder_fork(peer, asked, ret_problem);
        return error_pass(r);
}

/*
 * Begins a request that only reads the handle's history, or its beginning.  `publish` is 0, or the
 * public domain to publish to.
 */
static int begin_reading(struct peer *peer, struct wire_request *asked, uint64_t publish,
                         struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct request *request = NULL;
        struct served *served = NULL; /* not used: the handle has its own model */
        struct handle *handle = NULL;
        int r;

        r = check_new(peer, asked, EDGE_DRAINING, &served, ret_problem);
        if (!r)
                r = holder_lend(peer, asked, &handle, ret_problem);
        if (!r && wire_has(asked, WIRE_F_LENGTH)) {
                if (!asked->length || asked->length > handle->count)
                        r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "length",
                                        "length is %u; it may be from 1 to the handle's %u tokens",
                                        asked->length, handle->count);
                asked->token_count = asked->length;
        }
        if (!r)
                r = admit_ask(edge->admit, peer->uid, handle->model, asked, &request, ret_problem);
        if (r)
                return error_pass(r);
        request->publish = publish;
        r = stream_claim(peer, request, ret_problem);
        if (!r)
                r = holder_anchor(edge, handle, request, asked->ms, ret_problem);
        if (!r)
                r = stream_begin(peer, request, ret_problem);
        if (r)
                stream_drop(edge, request);
        return error_pass(r);
}

static int handle_hold(struct peer *peer, struct wire_request *asked,
                       struct wire_problem *ret_problem)
{
        if (!asked->ms)
                return error_pass(holder_let_go(peer, asked, ret_problem));
        return error_pass(begin_reading(peer, asked, 0, ret_problem));
}

/* Publishes to everyone, or to a group of the peer. */
static int handle_publish(struct peer *peer, struct wire_request *asked,
                          struct wire_problem *ret_problem)
{
        if (!peer->edge->conf.config->publish)
                return wire_refuse(
                        ret_problem, SMV_BAD_VALUE, asked->id, "op",
                        "nobody may publish here: the daemon's setting `publish` is off");
        if (asked->to == WIRE_ALL)
                return error_pass(begin_reading(peer, asked, PREFIX_EVERYONE, ret_problem));
        for (uint32_t i = 0; i < peer->group_count; i++)
                if (peer->groups[i] == asked->group)
                        return error_pass(begin_reading(peer, asked, PREFIX_GROUP(asked->group),
                                                        ret_problem));
        return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "group",
                           "group is %u, and its members are published to by one of them only; of "
                           "this process's groups the daemon knows %u",
                           asked->group, peer->group_count);
}

static int handle_status(struct peer *peer, struct wire_request *asked,
                         struct wire_problem *ret_problem)
{
        struct wire_writer writer;

        (void)ret_problem;
        if (!peer_reply(peer, &writer))
                return 0;
        status_put(peer->edge, peer->uid, &writer, asked->id);
        peer_replied(peer, &writer);
        return 0;
}

static int (*const handlers[WIRE_OP_N])(struct peer *peer, struct wire_request *asked,
                                        struct wire_problem *ret_problem) = {
        [WIRE_HELLO] = hello_handle,
        [WIRE_GENERATE] = handle_generate,
        [WIRE_CANCEL] = handle_cancel,
        [WIRE_TOKENIZE] = handle_tokenize,
        [WIRE_DETOKENIZE] = handle_detokenize,
        [WIRE_STATUS] = handle_status,
        [WIRE_TEMPLATE] = handle_template,
        [WIRE_OPEN] = handle_open,
        [WIRE_APPEND] = handle_append,
        [WIRE_TRUNCATE] = holder_truncate,
        [WIRE_FORK] = handle_fork,
        [WIRE_CLOSE] = holder_close,
        [WIRE_HOLD] = handle_hold,
        [WIRE_ATTACH] = handle_attach,
        [WIRE_DETACH] = handle_detach,
        [WIRE_DROP] = handle_drop,
        [WIRE_PUBLISH] = handle_publish,
        [WIRE_REVOKE] = holder_revoke,
};

static int handle(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        int r;

        if (peer->state == PEER_NEW && asked->op != WIRE_HELLO) {
                wire_refuse(ret_problem, SMV_NO_HELLO, asked->id, "op",
                            "the first request must be hello");
                ret_problem->fatal = true;
                return WIRE_E_REFUSED;
        }
        r = handlers[asked->op](peer, asked, ret_problem);
        if (r && wire_streams(asked))
                counter_add(&peer->edge->conf.stats->requests_refused, 1);
        return error_pass(r);
}

void handle_request(struct peer *peer, struct wire_request *asked, int r,
                    struct wire_problem *problem)
{
        if (!r) {
                problem->id = asked->id;
                r = handle(peer, asked, problem);
        }
        if (r)
                peer_answer_failure(peer, problem->id, r, problem);
}

/* An empty frame is a client's doorbell: the client has read on. */
void handle_frame(struct peer *peer, const uint8_t *body, size_t count)
{
        struct wire_problem problem = { .id = 0 };
        struct wire_request asked;
        int r;

        if (!count && peer->state == PEER_OPEN) {
                if (peer->channel)
                        streams_nudge(peer->edge, peer->channel);
                return;
        }
        r = wire_decode(body, count, &asked, &problem);
        handle_request(peer, &asked, r, &problem);
        if (!r)
                wire_release(&asked);
}
