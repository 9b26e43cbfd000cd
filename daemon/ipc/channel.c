#include "daemon/ipc/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sys.h"

#define SEGMENT_PAGE ((size_t)4096)

static int make_segments(struct channel *channel, uint64_t ring_bytes)
{
        size_t d = ring_segment_bytes(ring_bytes), c = sizeof(struct smv_ring_control);
        int r;

        if (channel_is_shared(channel)) {
                r = segment_new("samovar-ring", d, SEGMENT_DAEMON_WRITES, &channel->segment_d);
                if (!r)
                        r = segment_new("samovar-control", c, SEGMENT_CLIENT_WRITES,
                                        &channel->segment_c);
        } else {
                r = segment_new_private(d, &channel->segment_d);
                if (!r)
                        r = segment_new_private(c, &channel->segment_c);
        }
        return error_pass(r);
}

static int make(uint32_t number, uint64_t ring_bytes, enum channel_bell bell,
                struct channel **ret_channel)
{
        struct channel *channel = calloc(1, sizeof(*channel));
        int r;

        if (!channel)
                return error_raise(-ENOMEM);
        channel->number = number;
        channel->bell = bell;
        channel->socket = -1;
        r = make_segments(channel, ring_bytes);
        if (r) {
                channel_free(channel, false);
                return error_pass(r);
        }
        ring_writer_init(&channel->writer, channel->segment_d.at, channel->segment_c.at,
                         ring_bytes);
        channel->doorbell.control = channel->segment_c.at;
        *ret_channel = channel;
        return 0;
}

int channel_new(uint32_t number, uint64_t ring_bytes, struct channel **ret_channel)
{
        struct channel *channel;
        int r = make(number, ring_bytes, CHANNEL_LOOP, &channel);

        if (r)
                return error_pass(r);
        r = ring_reader_init(&channel->reader, channel->segment_d.at, channel->segment_c.at);
        assert(!r);
        *ret_channel = channel;
        return 0;
}

int channel_new_shared(uint32_t number, uint64_t ring_bytes, enum channel_bell bell,
                       struct channel **ret_channel)
{
        assert(bell != CHANNEL_LOOP);
        return error_pass(make(number, ring_bytes, bell, ret_channel));
}

/* Whole pages: of others no part can be given back while a client maps them. */
static size_t slots_bytes(uint32_t slots, size_t stride)
{
        return (slots * stride + SEGMENT_PAGE - 1) / SEGMENT_PAGE * SEGMENT_PAGE;
}

size_t channel_slots_bytes(uint32_t slots, uint32_t vocab, bool rows)
{
        return slots_bytes(slots, SMV_ANSWER_STRIDE(vocab)) +
               (rows ? slots_bytes(slots, SMV_SHOWN_ROW_STRIDE(vocab)) : 0);
}

int channel_add_slots(struct channel *channel, uint32_t slots, uint32_t vocab, bool rows)
{
        int r = segment_new("samovar-answers", slots_bytes(slots, SMV_ANSWER_STRIDE(vocab)),
                            SEGMENT_CLIENT_WRITES, &channel->segment_answers);

        assert(channel_is_shared(channel) && !channel->ask_slots && slots);
        if (!r && rows)
                r = segment_new("samovar-rows", slots_bytes(slots, SMV_SHOWN_ROW_STRIDE(vocab)),
                                SEGMENT_DAEMON_WRITES, &channel->segment_rows);
        if (r) {
                segment_free(&channel->segment_answers, false);
                return error_pass(r);
        }
        channel->ask_slots = slots;
        return 0;
}

const struct smv_answer *channel_answer(const struct channel *channel, uint32_t slot,
                                        uint32_t vocab)
{
        const char *at = channel->segment_answers.at;

        assert(slot < channel->ask_slots);
        return (const struct smv_answer *)(const void *)(at + slot * SMV_ANSWER_STRIDE(vocab));
}

struct smv_shown_row *channel_row(const struct channel *channel, uint32_t slot, uint32_t vocab)
{
        char *at = channel->segment_rows.at;

        assert(slot < channel->ask_slots && at);
        return (struct smv_shown_row *)(void *)(at + slot * SMV_SHOWN_ROW_STRIDE(vocab));
}

struct channel *channel_free(struct channel *channel, bool keep)
{
        if (!channel)
                return NULL;
        segment_free(&channel->segment_d, keep);
        segment_free(&channel->segment_c, keep);
        segment_free(&channel->segment_answers, keep);
        segment_free(&channel->segment_rows, keep);
        sys_close(channel->socket);
        free(channel);
        return NULL;
}

bool channel_stall(struct channel *channel)
{
        channel_raise(&channel->stalled);
        channel->asking = false;
        if (!ring_stall(&channel->writer))
                return true;
        channel_lower(&channel->stalled);
        return false;
}

void channel_ask(struct channel *channel)
{
        if (!channel_raise(&channel->stalled))
                return;
        channel->asking = true;
        ring_ask(&channel->writer);
}

void channel_resume(struct channel *channel)
{
        channel->asking = false;
        if (channel_lower(&channel->stalled))
                ring_resume(&channel->writer);
}

/*
 * The waker may look while the next step is being published.  The tail is stored last and loaded
 * first.  So the END that the waker sees is at least as new as the tail that it sees.
 */
void channel_show(struct channel *channel)
{
        const struct ring_writer *writer = &channel->writer;

        atomic_store_explicit(&channel->shown_end, channel->end, memory_order_relaxed);
        atomic_store_explicit(&channel->shown_wake_level, doorbell_wake_level(writer),
                              memory_order_relaxed);
        atomic_store_explicit(&channel->shown_tail, writer->published, memory_order_release);
        atomic_store_explicit(&channel->shown_retired, channel->retired, memory_order_release);
}

bool channel_is_shown(const struct channel *channel)
{
        return atomic_load_explicit(&channel->shown_retired, memory_order_acquire) >=
               channel->retired_received;
}

bool channel_is_due(struct channel *channel)
{
        struct doorbell_news news;

        news.tail = atomic_load_explicit(&channel->shown_tail, memory_order_acquire);
        news.end = atomic_load_explicit(&channel->shown_end, memory_order_relaxed);
        news.wake_level = atomic_load_explicit(&channel->shown_wake_level, memory_order_relaxed);
        return doorbell_is_due(&channel->doorbell, &news);
}

/*
 * Sends an empty frame.  If the loop is writing, the loop rings instead, after its write.  A full
 * socket is readable at the other end, and a closed one needs no ring, so the result of sending
 * does not matter.  Returns true if the loop wants to be called.
 */
static bool kick(struct channel *channel)
{
        static const uint8_t frame[4];
        bool called = false;

        if (!send_lock_take(&channel->send_lock, SEND_LOCK_RING))
                return false;
        (void)sys_send(channel->socket, frame, sizeof(frame));
        while (send_lock_release(&channel->send_lock))
                called = true;
        return called;
}

bool channel_ring(struct channel *channel)
{
        if (channel->bell == CHANNEL_KICK)
                return kick(channel);
        if (channel->bell == CHANNEL_FUTEX)
                (void)sys_futex_wake_shared((const uint32_t *)&channel->writer.page->tail);
        return false;
}

bool channel_is_unread(const struct channel *channel)
{
        return atomic_load_explicit(&channel->shown_tail, memory_order_relaxed) !=
               ring_head(channel->segment_c.at);
}
