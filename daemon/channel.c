#include "daemon/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/error.h"
#include "daemon/sys.h"

/* One piece of memory: segment D with its records, then segment C. */
static size_t mapped_bytes(uint64_t ring_bytes)
{
        return ring_segment_bytes(ring_bytes) + sizeof(struct smv_ring_control);
}

int channel_new(uint32_t number, uint64_t ring_bytes, struct channel **ret_channel)
{
        struct channel *channel = calloc(1, sizeof(*channel));
        uint8_t *memory;
        int r;

        if (!channel)
                return error_raise(-ENOMEM);
        memory = sys_map(mapped_bytes(ring_bytes));
        if (!memory) {
                channel_free(channel);
                return error_raise(-ENOMEM);
        }

        channel->number = number;
        channel->segment_d = (struct smv_ring *)memory;
        channel->segment_c = (struct smv_ring_control *)(memory + ring_segment_bytes(ring_bytes));
        ring_writer_init(&channel->writer, channel->segment_d, channel->segment_c, ring_bytes);
        r = ring_reader_init(&channel->reader, channel->segment_d, channel->segment_c);
        assert(!r);
        *ret_channel = channel;
        return 0;
}

struct channel *channel_free(struct channel *channel)
{
        if (channel && channel->segment_d)
                sys_unmap(channel->segment_d, mapped_bytes(channel->writer.data_bytes));
        free(channel);
        return NULL;
}
