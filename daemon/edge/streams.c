#include "daemon/edge/streams.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/core/pace.h"
#include "daemon/edge/holder.h"
#include "daemon/edge/keeper.h"
#include "daemon/error.h"
#include "daemon/log.h"
#include "daemon/sys.h"

#define FRAME_RECORDS (32u << 10) /* bytes of records in one frame, about */

static void list_add(struct request **list, struct request *request)
{
        request->peer_prev = NULL;
        request->peer_next = *list;
        if (*list)
                (*list)->peer_prev = request;
        *list = request;
}

static void list_remove(struct request **list, struct request *request)
{
        if (request->peer_prev)
                request->peer_prev->peer_next = request->peer_next;
        else
                *list = request->peer_next;
        if (request->peer_next)
                request->peer_next->peer_prev = request->peer_prev;
        request->peer_next = request->peer_prev = NULL;
}

static bool is_over(const struct request *request)
{
        return request->retired && !request->crossing;
}

/* ---- to the engine ---- */

int stream_claim(struct peer *peer, struct request *request, struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        int r = 0;

        if (!peer->channel && !request->keep_ms)
                r = edge_open_channel(edge, peer, CHANNEL_LOOP, edge->conf.config->ring_bytes,
                                      request->stream, ret_problem);
        if (r)
                return error_pass(r);
        for (; request; request = request->sibling) {
                request->channel = peer->channel;
                request->peer = peer;
                request->sees_public = edge->conf.config->publish;
                request->group_count = peer->group_count;
                memcpy(request->groups, peer->groups, sizeof(request->groups));
        }
        return 0;
}

void stream_drop(struct edge *edge, struct request *request)
{
        holder_return(edge, request);
        admit_forget_all(edge->admit, request);
}

/*
 * How many requests stand before it, and about how long until its first token.  This is a guess,
 * from how long other requests had their slots and how long their prompts took.
 */
static void foresee(const struct edge *edge, const struct request *request, uint64_t *ret_position,
                    uint64_t *ret_wait_ms)
{
        const struct stats *stats = edge->conf.stats;
        uint64_t slots = edge->conf.config->max_seqs, waiting = counter_get(&stats->waiting);
        uint64_t row_ns, prompt = request->prompt_count;
        uint64_t over = edge->live_count >= slots ? edge->live_count - slots + 1 : 0, turns, ns;

        *ret_position = over > waiting + 1 ? over - 1 : waiting;
        turns = over || waiting ? *ret_position + 1 : 0;
        row_ns = counter_get(&stats->prompt_row_ns) +
                 /* The mean position of a prompt's row is half its length. */
                 counter_get(&stats->prompt_far_ns) * (prompt / 2) / PACE_FAR;
        ns = turns * counter_get(&stats->slot_ns) / slots + prompt * row_ns;
        *ret_wait_ms = ns / 1000000;
}

static void reply_begun(struct peer *peer, const struct request *request, const struct kept *kept,
                        uint64_t position, uint64_t wait_ms)
{
        struct wire_writer writer;

        if (!peer_reply(peer, &writer))
                return;
        wire_put_ok(&writer, kept ? kept->stream : request->stream,
                    kept              ? 5
                    : request->parent ? 3
                                      : 4);
        if (kept) {
                wire_put_text(&writer, "kept");
                wire_put_uint(&writer, kept->number);
        }
        wire_put_text(&writer, "position");
        wire_put_uint(&writer, position);
        wire_put_text(&writer, "wait_ms");
        wire_put_uint(&writer, wait_ms);
        if (request->parent) {
                wire_put_text(&writer, "choice");
                wire_put_uint(&writer, request->sampling.choice);
        } else {
                wire_put_text(&writer, "prompt_tokens");
                wire_put_uint(&writer, request->prompt_count);
                wire_put_text(&writer, "max_tokens");
                wire_put_uint(&writer, request->max_tokens);
        }
        peer_replied(peer, &writer);
}

/*
 * With the mail the engine owns the request and its siblings, so the unwanted ones are collected
 * before.
 */
static void submit(struct edge *edge, struct request *first)
{
        struct request *unwanted[SMV_CHOICES_MAX];
        uint32_t count = 0;

        for (struct request *request = first; request; request = request->sibling) {
                if (!request->kept)
                        list_add(&request->peer->requests, request);
                edge->live_count++;
                if (request->unwanted)
                        unwanted[count++] = request;
        }
        if (first->parent)
                first->parent->mails_sent++;
        mailbox_post(edge->conf.to_engine, &(struct mail){ .kind = MAIL_SUBMIT, .what = first });
        while (count)
                stream_cancel(edge, unwanted[--count], SMV_END_CANCELLED, SMV_OK);
}

/* Over a socket the reply comes before every record, because both go through peer->out. */
int stream_begin(struct peer *peer, struct request *request, struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        uint64_t position, wait_ms, now_ns = sys_clock_ns();
        struct kept *kept = NULL;
        int r = 0;

        foresee(edge, request, &position, &wait_ms);
        if (request->deadline_ns && now_ns + wait_ms * 1000000 >= request->deadline_ns)
                return wire_refuse(ret_problem, SMV_TIMEOUT, request->stream, "deadline_ms",
                                   "%" PRIu64 " requests are before it, and its first token would "
                                   "come in about %" PRIu64 " ms; %" PRIu64 " ms are left",
                                   position, wait_ms,
                                   now_ns < request->deadline_ns
                                           ? (request->deadline_ns - now_ns) / 1000000
                                           : 0);
        if (request->keep_ms)
                r = keeper_begin(peer, request, &kept, ret_problem);
        if (r)
                return error_pass(r);
        reply_begun(peer, request, kept, position, wait_ms);
        if (peer->doomed && kept)
                keeper_take_back(kept);
        if (peer->doomed)
                stream_drop(edge, request);
        else
                submit(edge, request);
        return 0;
}

struct request *stream_find(struct peer *peer, uint32_t stream)
{
        for (struct request *r = peer->requests; r; r = r->peer_next)
                if (r->stream == stream)
                        return r;
        return NULL;
}

void stream_cancel(struct edge *edge, struct request *request, enum smv_reason reason,
                   enum smv_code code)
{
        if (request->cancel_sent || request->retired)
                return;
        request->cancel_sent = true;
        request->mails_sent++;
        mailbox_post(edge->conf.to_engine, &(struct mail){ .kind = MAIL_CANCEL,
                                                           .reason = reason,
                                                           .code = code,
                                                           .what = request });
}

/* ---- back from the engine ---- */

static void let_go(struct edge *edge, struct request *request)
{
        if (request->peer)
                list_remove(&request->peer->requests, request);
        request->peer = NULL;
        if (is_over(request))
                admit_forget(edge->admit, request);
}

void stream_retired(struct edge *edge, struct request *request)
{
        if (!request->retired) {
                request->retired = true;
                request->crossing = request->mails_sent - request->mails_taken;
                if (request->peer)
                        request->peer->channel->retired_heard++;
                holder_take_back(edge, request);
                if (request->kept)
                        keeper_retired(request->kept);
        } else {
                assert(request->crossing);
                request->crossing--;
        }
        if (!request->crossing) {
                assert(edge->live_count);
                edge->live_count--;
        }
        if (!request->peer || channel_is_shared(request->peer->channel))
                let_go(edge, request);
}

static int copy_record(struct buffer *to, const struct smv_record *record)
{
        static const uint8_t zeros[SMV_RING_ALIGN];
        int r;

        r = buffer_append(to, record, record->size);
        if (!r)
                r = buffer_append(to, zeros, -record->size % SMV_RING_ALIGN);
        return error_pass(r);
}

/* RETIRED was posted before the END became visible; we may not have taken it yet. */
static struct request *ended_by(struct peer *peer, const struct smv_record *record)
{
        struct request *request = stream_find(peer, record->stream);

        if (request && !request->retired)
                edge_catch_up(peer->edge);
        assert(request && request->retired);
        return request;
}

/* 0, or an error for which the peer is hung up. */
static int copy_records(struct peer *peer, struct buffer *to)
{
        struct ring_reader *reader = &peer->channel->reader;
        int r = 0;

        while (!r && buffer_count(to) < FRAME_RECORDS) {
                const struct smv_record *record;
                r = ring_next(reader, &record);
                if (r == RING_E_EMPTY)
                        return 0;
                if (r < 0)
                        return error_raise(r);
                r = copy_record(to, record);
                if (!r && record->type == SMV_RECORD_END)
                        let_go(peer->edge, ended_by(peer, record));
        }
        return error_pass(r);
}

void streams_put(struct peer *peer, const void *records, size_t bytes)
{
        struct wire_writer writer;

        wire_begin(&writer, &peer->out);
        wire_put_map(&writer, 1);
        wire_put_text(&writer, "records");
        wire_put_bin(&writer, records, bytes);
        peer_replied(peer, &writer);
}

void streams_nudge(struct edge *edge, struct channel *channel)
{
        if (channel_is_up(&channel->stalled) && channel_raise(&channel->nudging))
                mailbox_post(edge->conf.to_engine,
                             &(struct mail){ .kind = MAIL_ROOM, .what = channel });
}

bool streams_take(struct peer *peer)
{
        struct channel *channel = peer->channel;
        struct buffer records;
        bool some;

        if (!channel || channel_is_shared(channel))
                return false;
        buffer_init(&records, peer->out.max);
        if (copy_records(peer, &records)) {
                log_error("ring_unreadable uid=%u at=%s", peer->uid, error_trail());
                peer_hang_up(peer, "its ring cannot be read");
        }
        some = buffer_count(&records) && !peer->doomed;
        if (some) {
                if (ring_release(&channel->reader))
                        streams_nudge(peer->edge, channel);
                streams_put(peer, records.bytes + records.start, buffer_count(&records));
        }
        buffer_deinit(&records);
        return some;
}

/* ---- the end ---- */

/* Cancels stand before HANGUP in the mail, so the engine ends each request first. */
void streams_leave(struct peer *peer)
{
        struct edge *edge = peer->edge;
        struct request *request;

        while ((request = peer->requests)) {
                list_remove(&peer->requests, request);
                stream_cancel(edge, request, SMV_END_CANCELLED, SMV_OK);
                request->peer = NULL;
                if (is_over(request))
                        admit_forget(edge->admit, request);
        }
        if (peer->channel) {
                peer->channel->peer = NULL;
                mailbox_post(edge->conf.to_engine,
                             &(struct mail){ .kind = MAIL_HANGUP, .what = peer->channel });
        }
}
