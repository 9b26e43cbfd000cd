#include "daemon/edge/channels.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/edge/quota.h"
#include "base/error.h"
#include "daemon/model/served.h"

/*
 * A client that has left, or was hung up, keeps no page of ours.  If the daemon itself ends, the
 * client may still read its last records.
 */
static void free_channel(struct edge *edge, struct channel *channel)
{
        assert(edge->channels[channel->number] == channel && !channel->owner);
        assert(edge->channels_open);
        quota_uncharge(edge->quota, channel->uid, QUOTA_RING_BYTES, channel->charged);
        quota_uncharge(edge->quota, channel->uid, QUOTA_CONNECTIONS, channel->holds_connection);
        edge->channels[channel->number] = NULL;
        edge->channels_open--;
        channel_free(channel, edge->phase >= EDGE_FLUSHING);
}

static void free_one(struct edge *edge)
{
        struct channel *channel = edge->gone;

        edge->gone = channel->gone_next;
        free_channel(edge, channel);
}

static void free_next_turn(struct edge *edge)
{
        if (edge->gone && !loop_timer_set(edge->gone_timer, 0))
                return;
        while (edge->gone)
                free_one(edge);
}

static void on_gone_timer(void *arg)
{
        struct edge *edge = arg;

        free_one(edge);
        free_next_turn(edge);
}

int channels_begin(struct edge *edge)
{
        edge->channel_count = edge->conf.admission.sched.channels;
        edge->channels = calloc(edge->channel_count, sizeof(struct channel *));
        if (!edge->channels)
                return error_raise(-ENOMEM);
        return error_pass(loop_timer_new(edge->loop, on_gone_timer, edge, &edge->gone_timer));
}

void channels_end(struct edge *edge)
{
        assert(!edge->channels_open);
        free(edge->channels);
        loop_timer_free(edge->gone_timer);
}

static int find_number(struct edge *edge, uint32_t id, uint32_t *ret_number,
                       struct wire_problem *ret_problem)
{
        uint32_t number = 0;

        while (number < edge->channel_count && edge->channels[number])
                number++;
        if (number == edge->channel_count)
                return wire_refuse(ret_problem, SMV_BUSY, id, NULL,
                                   "all %u rings of the daemon are in use", edge->channel_count);
        *ret_number = number;
        return 0;
}

int channels_make(struct edge *edge, enum channel_bell bell, uint64_t ring_bytes, uint32_t id,
                  struct wire_problem *ret_problem, struct channel **ret_channel)
{
        struct channel *channel = NULL;
        uint32_t number = 0;
        int r;

        r = find_number(edge, id, &number, ret_problem);
        if (r)
                return error_pass(r);
        if (bell == CHANNEL_LOOP)
                r = channel_new(number, ring_bytes, &channel);
        else
                r = channel_new_shared(number, ring_bytes, bell, &channel);
        if (r)
                return error_pass(r);
        edge->channels[number] = channel;
        edge->channels_open++;
        *ret_channel = channel;
        return 0;
}

int channels_make_for(struct peer *peer, enum channel_bell bell, uint64_t ring_bytes, uint32_t id,
                      struct wire_problem *ret_problem)
{
        uint64_t charged = bell == CHANNEL_LOOP ? 0 : ring_bytes;
        struct edge *edge = peer->edge;
        struct channel *channel = NULL;
        int r;

        r = quota_ask(edge->quota, peer->uid, QUOTA_RING_BYTES, charged, id, ret_problem);
        if (r)
                return error_pass(r);
        r = channels_make(edge, bell, ring_bytes, id, ret_problem, &channel);
        if (r) {
                quota_uncharge(edge->quota, peer->uid, QUOTA_RING_BYTES, charged);
                return error_pass(r);
        }
        channel->owner = peer;
        channel->uid = peer->uid;
        channel->charged = charged;
        peer->channel = channel;
        return 0;
}

int channels_add_slots(struct peer *peer, const struct wire_request *asked,
                       struct wire_problem *ret_problem)
{
        struct edge *edge = peer->edge;
        struct channel *channel = peer->channel;
        uint32_t vocab = edge->conf.served->traits.vocab;
        size_t bytes = channel_slots_bytes(asked->ask_slots, vocab, asked->whole_rows);
        int r;

        if (!asked->ask_slots)
                return 0;
        r = quota_ask(edge->quota, peer->uid, QUOTA_RING_BYTES, bytes, asked->id, ret_problem);
        if (r)
                return error_pass(r);
        channel->charged += bytes;
        return error_pass(channel_add_slots(channel, asked->ask_slots, vocab, asked->whole_rows));
}

void channels_take_back(struct peer *peer)
{
        struct channel *channel = peer->channel;

        assert(channel->socket < 0);
        peer->channel = NULL;
        channel->owner = NULL;
        free_channel(peer->edge, channel);
}

void channels_resume(struct edge *edge, struct channel *channel)
{
        if (channel_is_up(&channel->stalled) && channel_raise(&channel->resume_sent))
                mailbox_post(edge->conf.to_engine,
                             &(struct mail){ .kind = MAIL_SPACE, .what = channel });
}

void channels_gone(struct edge *edge, struct channel *channel)
{
        channel->gone_next = edge->gone;
        edge->gone = channel;
        free_next_turn(edge);
}
