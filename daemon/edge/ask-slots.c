#include "daemon/edge/ask-slots.h"

#include <assert.h>
#include <errno.h>

#include "base/error.h"
#include "daemon/draw/asking.h"
#include "daemon/model/served.h"
#include "json/plural.h"

#define NONE 64u

int ask_make(const struct served *served, const struct wire_request *asked,
             struct asking **ret_asking)
{
        struct asking *asking;

        *ret_asking = NULL;
        if (asked->ask == SMV_ASK_NOTHING)
                return 0;
        asking = asking_new(asked->ask, served->traits.vocab);
        if (!asking)
                return error_raise(-ENOMEM);
        asking->whole_row = asked->whole_row;
        asking->late_draws = asked->late_draws;
        asking->wait_ns = asked->ask_ms * UINT64_C(1000000);
        *ret_asking = asking;
        return 0;
}

/* Takes the lowest of `count` numbers that is not in `used`; NONE if all are. */
static uint32_t take(uint64_t *used, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if (!(*used >> i & 1)) {
                        *used |= UINT64_C(1) << i;
                        return i;
                }
        return NONE;
}

static void give_back(uint64_t *used, uint32_t number)
{
        assert(*used >> number & 1);
        *used &= ~(UINT64_C(1) << number);
}

static int refuse_slots(const struct stream *stream, uint32_t count,
                        struct wire_problem *ret_problem)
{
        uint32_t id = stream->request.stream;

        if (!count)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, id, "ask",
                                   "ask needs a slot; this connection has none: its hello must "
                                   "have ask_slots, and get a ring");
        return wire_refuse(ret_problem, SMV_BUSY, id, "ask",
                           "all %u slot%s of this connection %s in use (ask_slots)", count,
                           plural(count), count == 1 ? "is" : "are");
}

static int refuse_rows(const struct edge *edge, const struct stream *stream,
                       struct wire_problem *ret_problem)
{
        uint32_t id = stream->request.stream, most = edge->conf.config->whole_row_streams;

        if (!most)
                return wire_refuse(
                        ret_problem, SMV_BAD_VALUE, id, "whole_row",
                        "this daemon shows no whole rows (its setting whole_row_streams is 0)");
        return wire_refuse(ret_problem, SMV_BUSY, id, "whole_row",
                           "the daemon shows the rows of %u stream%s at a time (whole_row_streams)",
                           most, plural(most));
}

int ask_slot_take(struct edge *edge, struct stream *stream, struct wire_problem *ret_problem)
{
        struct asking *asking = stream->request.asking;
        struct channel *channel = stream->request.channel;

        if (!asking)
                return 0;
        assert(channel->ask_slots <= NONE && !stream_sibling(stream));
        if (asking->whole_row && channel->ask_slots && !channel->segment_rows.at)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, stream->request.stream, "whole_row",
                                   "whole_row needs whole_rows in the hello of the connection");
        asking->slot = take(&channel->ask_slots_used, channel->ask_slots);
        if (asking->slot == NONE)
                return refuse_slots(stream, channel->ask_slots, ret_problem);
        if (asking->whole_row) {
                asking->row_copy =
                        take(&edge->row_copies_used, edge->conf.config->whole_row_streams);
                if (asking->row_copy == NONE) {
                        give_back(&channel->ask_slots_used, asking->slot);
                        return refuse_rows(edge, stream, ret_problem);
                }
                asking->shown = channel_row(channel, asking->slot, asking->vocab);
        }
        asking->answer = channel_answer(channel, asking->slot, asking->vocab);
        asking->ticket = ++channel->ask_tickets;
        return 0;
}

void ask_slot_give_back(struct edge *edge, struct stream *stream)
{
        struct asking *asking = stream->request.asking;

        if (!asking || !asking->answer)
                return;
        give_back(&stream->request.channel->ask_slots_used, asking->slot);
        if (asking->whole_row)
                give_back(&edge->row_copies_used, asking->row_copy);
        asking->answer = NULL;
}
