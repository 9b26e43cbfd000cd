/* Answers the questions of streams. */
#include <errno.h>

#include "client/state.h"

/*
 * The stream, if it has asked for this and has no answer yet; or NULL, and the failure is recorded.
 */
static struct client_stream *find_question(struct smv_client *client, uint32_t id, enum smv_ask ask)
{
        struct client_stream *stream = client_stream(client, id);

        if (stream && stream->is_asking && !stream->asks_first && stream->ask == ask)
                return stream;
        client_refuse(client, -EINVAL, "stream", "stream %u has no question for a %s", id,
                      ask == SMV_ASK_MASK ? "mask" : "token");
        return NULL;
}

/* The slot may be another stream's by now: then this one has ended, and wants no answer. */
static bool is_wanted(const struct smv_client *client, const struct client_stream *stream)
{
        return slots_has(&client->slots, stream->ask_slot, stream->ask_ticket);
}

/* The answer is written.  A daemon that sleeps is told. */
static int tell(struct smv_client *client, struct client_stream *stream)
{
        if (!client->connection.lost && shared_ring_has_sleeper(&client->ring) &&
            connection_send_empty(&client->connection))
                return client_fail(client, -ENOMEM, "out of memory");
        stream->is_asking = false;
        return 0;
}

int smv_answer_mask(struct smv_client *client, uint32_t stream, const uint32_t *mask, size_t count)
{
        struct client_stream *asking;
        int r = client_begin(client);

        if (r)
                return r;
        asking = find_question(client, stream, SMV_ASK_MASK);
        if (!asking)
                return -EINVAL;
        if (mask && count != slots_mask_count(&client->slots))
                return client_refuse(client, -EINVAL, "count",
                                     "the mask has %zu numbers; for %u tokens it must have %zu",
                                     count, client->slots.vocab, slots_mask_count(&client->slots));
        if (is_wanted(client, asking))
                slots_answer_mask(&client->slots, asking->ask_slot, asking->ask_position, mask);
        return tell(client, asking);
}

int smv_answer_token(struct smv_client *client, uint32_t stream, uint32_t token)
{
        struct client_stream *asking;
        int r = client_begin(client);

        if (r)
                return r;
        asking = find_question(client, stream, SMV_ASK_TOKEN);
        if (!asking)
                return -EINVAL;
        if (is_wanted(client, asking))
                slots_answer_token(&client->slots, asking->ask_slot, asking->ask_position, token);
        return tell(client, asking);
}
