#include "daemon/edge/streams.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/core/prefill-budget.h"
#include "daemon/draw/asking.h"
#include "daemon/edge/admission.h"
#include "daemon/edge/ask-slots.h"
#include "daemon/edge/channels.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/record-frames.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/sampler-chain.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "json/plural.h"

#define MAILS 64u

static struct stream *linked(struct list_head *link)
{
        return link ? LIST_ENTRY(link, struct stream, peer_link) : NULL;
}

/* ---- to the engine ---- */

int stream_claim(struct peer *peer, struct stream *stream, struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        int r = 0;

        if (!peer->channel && !stream->keep_ms)
                r = channels_make_for(peer, CHANNEL_LOOP, edge->conf.config->ring_bytes,
                                      stream->request.stream, ret_problem);
        if (r)
                return error_pass(r);
        for (; stream; stream = stream_sibling(stream)) {
                struct request *request = &stream->request;

                stream->peer = peer;
                request->channel = peer->channel;
                request->sees_public = edge->conf.config->publish;
                request->group_count = peer->group_count;
                memcpy(request->groups, peer->groups, sizeof(request->groups));
        }
        return 0;
}

void stream_drop(struct edge *edge, struct stream *stream)
{
        handles_return(edge->handles, stream);
        admission_forget_all(edge->admission, stream);
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
                 counter_get(&stats->prompt_far_ns) * (prompt / 2) / PREFILL_FAR;
        ns = turns * counter_get(&stats->slot_ns) / slots + prompt * row_ns;
        *ret_wait_ms = ns / 1000000;
}

/* The parameters that the draws have in effect, also where the request gave none. */
static void put_sampling(struct wire_writer *writer, const struct request *request)
{
        const struct sampling *sampling = &request->sampling;
        char chain[SMV_CHAIN_BYTES];

        sampler_chain(request, chain);
        wire_put_text(writer, "chain");
        wire_put_text(writer, chain);
        wire_put_text(writer, "temperature");
        wire_put_float(writer, (double)sampling->temperature);
        wire_put_text(writer, "top_k");
        wire_put_uint(writer, sampling->top_k);
        wire_put_text(writer, "top_p");
        wire_put_float(writer, (double)sampling->top_p);
        wire_put_text(writer, "min_p");
        wire_put_float(writer, (double)sampling->min_p);
        wire_put_text(writer, "seed");
        wire_put_uint(writer, sampling->seed);
}

/* Where the client answers. */
static void put_slot(struct wire_writer *writer, const struct asking *asking)
{
        wire_put_text(writer, "ask_slot");
        wire_put_uint(writer, asking->slot);
        wire_put_text(writer, "ask_ticket");
        wire_put_uint(writer, asking->ticket);
}

/* What list shows and end takes, for each stream of the request, in the order of their ids. */
static void put_numbers(struct wire_writer *writer, const struct stream *first)
{
        uint32_t count = 0;

        for (const struct stream *at = first; at; at = stream_sibling(at))
                count++;
        wire_put_text(writer, "numbers");
        wire_put_array(writer, count);
        for (const struct stream *at = first; at; at = stream_sibling(at))
                wire_put_uint(writer, at->number);
}

static void reply_begun(struct peer *peer, const struct stream *stream,
                        const struct resumable *resumable, uint64_t position, uint64_t wait_ms)
{
        const struct request *request = &stream->request;
        uint32_t pairs = (request->parent ? 4 : 5) + (stream->reads_only ? 0 : 6) +
                         (request->asking ? 2 : 0);
        struct wire_writer writer;

        if (!connection_reply(peer, &writer))
                return;
        wire_put_ok(&writer, resumable ? resumable->id : request->stream, pairs);
        if (resumable) {
                wire_put_text(&writer, "resume_id");
                wire_put_uint(&writer, resumable->number);
        } else {
                put_numbers(&writer, stream);
        }
        wire_put_text(&writer, "queue_position");
        wire_put_uint(&writer, position);
        wire_put_text(&writer, "wait_ms");
        wire_put_uint(&writer, wait_ms);
        if (request->parent) {
                wire_put_text(&writer, "sample_index");
                wire_put_uint(&writer, request->sampling.sample_index);
        } else {
                wire_put_text(&writer, "prompt_tokens");
                wire_put_uint(&writer, request->prompt_count);
                wire_put_text(&writer, "max_tokens");
                wire_put_uint(&writer, request->max_tokens);
        }
        if (!stream->reads_only)
                put_sampling(&writer, request);
        if (request->asking)
                put_slot(&writer, request->asking);
        connection_replied(peer, &writer);
}

/*
 * With the mail the engine owns the stream and its siblings, so the unwanted ones are collected
 * before.
 */
static void submit(struct edge *edge, struct stream *first)
{
        struct stream *unwanted[SMV_SAMPLES_MAX];
        uint64_t now_ns = sys_clock_ns();
        uint32_t count = 0;

        for (struct stream *stream = first; stream; stream = stream_sibling(stream)) {
                stream->begun_ns = now_ns;
                if (!stream->is_resumable)
                        list_push_front(&stream->peer->streams, &stream->peer_link);
                edge->live_count++;
                if (stream->unwanted)
                        unwanted[count++] = stream;
        }
        if (first->request.parent)
                stream_of(first->request.parent)->mails_sent++;
        mailbox_post(edge->conf.to_engine, &(struct mail){ .kind = MAIL_SUBMIT,
                                                           .what = &first->request,
                                                           .control_text = first->control_text });
        while (count)
                stream_cancel(edge, unwanted[--count], SMV_END_CANCELLED, SMV_OK);
}

/* The deadline is refused now if the first token would come after it. */
static int check_deadline(const struct request *request, uint64_t position, uint64_t wait_ms,
                          struct wire_problem *ret_problem)
{
        uint64_t now_ns = sys_clock_ns();

        if (!request->deadline_ns || now_ns + wait_ms * 1000000 < request->deadline_ns)
                return 0;
        return wire_refuse(
                ret_problem, SMV_TIMEOUT, request->stream, "deadline_ms",
                "%" PRIu64 " request%s %s ahead of it, and its first token would come in "
                "about %" PRIu64 " ms; %" PRIu64 " ms are left",
                position, plural(position), position == 1 ? "is" : "are", wait_ms,
                now_ns < request->deadline_ns ? (request->deadline_ns - now_ns) / 1000000 : 0);
}

/* Over a socket the reply comes before every record, because both go through peer->out. */
int stream_begin(struct peer *peer, struct stream *stream, struct wire_problem *ret_problem)
{
        const struct request *request = &stream->request;
        struct resumable *resumable = NULL;
        struct edge *edge = peer->edge;
        uint64_t position, wait_ms;
        int r;

        foresee(edge, request, &position, &wait_ms);
        r = check_deadline(request, position, wait_ms, ret_problem);
        if (!r && stream->keep_ms)
                r = resumable_begin(peer, stream, &resumable, ret_problem);
        if (!r)
                r = ask_slot_take(edge, stream, ret_problem);
        if (r)
                return error_pass(r);
        reply_begun(peer, stream, resumable, position, wait_ms);
        if (peer->doomed && resumable)
                resumable_take_back(resumable);
        if (peer->doomed) {
                ask_slot_give_back(edge, stream);
                stream_drop(edge, stream);
        } else {
                submit(edge, stream);
        }
        return 0;
}

struct stream *streams_find(struct peer *peer, uint32_t id)
{
        list_each(at, &peer->streams)
                if (linked(at)->request.stream == id)
                        return linked(at);
        return NULL;
}

void streams_cancel(struct peer *peer, enum smv_reason reason, enum smv_code code)
{
        list_each(at, &peer->streams)
                stream_cancel(peer->edge, linked(at), reason, code);
}

/* ---- back from the engine ---- */

/* The stream leaves its peer, and is freed when no other thread has it. */
static void let_go(struct edge *edge, struct stream *stream)
{
        list_remove(&stream->peer_link);
        stream->peer = NULL;
        if (stream_is_over(stream))
                admission_forget(edge->admission, stream);
}

/* RETIRED has come, perhaps for a peer that is gone. */
static void retired(struct edge *edge, struct stream *stream)
{
        if (!stream->retired) {
                stream->retired = true;
                stream->crossing = stream->mails_sent - stream->request.mails_taken;
                if (stream->peer)
                        stream->peer->channel->retired_received++;
                quota_note_tokens(edge->quota, stream->request.uid,
                                  request_tokens_made(&stream->request));
                ask_slot_give_back(edge, stream);
                handles_take_back(edge->handles, stream);
                if (stream->is_resumable)
                        resumables_retired(edge->resumables, stream);
        } else {
                assert(stream->crossing);
                stream->crossing--;
        }
        if (!stream->crossing) {
                assert(edge->live_count);
                edge->live_count--;
        }
        if (!stream->peer || channel_is_shared(stream->peer->channel))
                let_go(edge, stream);
}

void streams_catch_up(struct edge *edge)
{
        struct mail mails[MAILS];
        uint32_t count;

        do {
                count = mailbox_take(edge->conf.from_engine, mails, MAILS, 0);
                for (uint32_t i = 0; i < count; i++) {
                        assert(mails[i].kind == MAIL_RETIRED);
                        retired(edge, stream_of(mails[i].what));
                }
        } while (count == MAILS);
}

/* RETIRED was posted before the END became visible; we may not have taken it yet. */
static struct stream *ended_by(struct peer *peer, const struct smv_record *record)
{
        struct stream *stream = streams_find(peer, record->stream);

        if (stream && !stream->retired)
                streams_catch_up(peer->edge);
        assert(stream && stream->retired);
        return stream;
}

/* 0, or an error for which the peer is hung up. */
static int copy_records(struct peer *peer, struct buffer *frame)
{
        struct ring_reader *reader = &peer->channel->reader;
        bool more = false;
        int r = 0;

        while (!r && (more || !record_frame_is_full(frame))) {
                const struct smv_record *record;
                r = ring_next(reader, &record);
                if (r == RING_E_EMPTY)
                        return 0;
                if (r < 0)
                        return error_raise(r);
                r = record_frame_add(frame, record, record->stream);
                more = record_frame_needs_next(record);
                if (!r && record->type == SMV_RECORD_END)
                        let_go(peer->edge, ended_by(peer, record));
        }
        return error_pass(r);
}

bool streams_take(struct peer *peer)
{
        struct channel *channel = peer->channel;
        struct buffer frame;
        bool some;

        if (!channel || channel_is_shared(channel))
                return false;
        buffer_init(&frame, peer->out.max);
        if (copy_records(peer, &frame)) {
                log_limited(LOG_ERROR, "ring_unreadable uid=%u principal=%s pid=%d at=%s",
                            peer->process_uid, principal_name(peer->principal), peer->pid,
                            error_trail());
                connection_hang_up(peer, "its ring cannot be read");
        }
        some = buffer_count(&frame) && !peer->doomed;
        if (some) {
                if (ring_release(&channel->reader))
                        channels_resume(peer->edge, channel);
                record_frame_put(peer, frame.bytes + frame.start, buffer_count(&frame));
        }
        buffer_deinit(&frame);
        return some;
}

/* ---- the end ---- */

/* Cancels stand before HANGUP in the mail, so the engine ends each request first. */
void streams_leave(struct peer *peer)
{
        struct edge *edge = peer->edge;
        struct stream *stream;

        while ((stream = linked(list_first(&peer->streams)))) {
                stream_cancel(edge, stream, SMV_END_CANCELLED, SMV_OK);
                let_go(edge, stream);
        }
        if (peer->channel) {
                peer->channel->owner = NULL;
                mailbox_post(edge->conf.to_engine,
                             &(struct mail){ .kind = MAIL_HANGUP, .what = peer->channel });
        }
}
