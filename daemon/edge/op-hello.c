#include "daemon/edge/op-hello.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/edge/channels.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/late.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/quota.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "daemon/text/chat.h"
#include "daemon/text/parts/dialect.h"

#define SEGMENTS_MAX 4u

static void put_models(struct wire_writer *writer, const struct served *served)
{
        wire_put_text(writer, "models");
        wire_put_array(writer, 1);
        wire_put_map(writer, 19);
        wire_put_text(writer, "name");
        wire_put_text(writer, served->name);
        wire_put_text(writer, "vocab");
        wire_put_uint(writer, served->traits.vocab);
        wire_put_text(writer, "context");
        wire_put_uint(writer, served->context);
        wire_put_text(writer, "trained_context");
        wire_put_uint(writer, served->traits.context);
        wire_put_text(writer, "architecture");
        wire_put_text(writer, served->facts.architecture);
        wire_put_text(writer, "quantisation");
        wire_put_text(writer, served->quantisation);
        wire_put_text(writer, "parameters");
        wire_put_uint(writer, served->facts.parameters);
        wire_put_text(writer, "bytes");
        wire_put_uint(writer, served->weight_bytes);
        wire_put_text(writer, "digest");
        wire_put_text(writer, served->facts.digest);
        wire_put_text(writer, "modified_s");
        wire_put_uint(writer, served->facts.modified_s);
        wire_put_text(writer, "chat");
        wire_put_bool(writer, !chat_refusal(served->chat));
        wire_put_text(writer, "tool_dialect");
        wire_put_text(writer, served->dialect ? served->dialect->name : "");
        wire_put_text(writer, "tool_dialect_by");
        wire_put_text(writer, served->dialect_by ? served->dialect_by : "");
        wire_put_text(writer, "reasoning");
        wire_put_bool(writer, served->dialect && dialect_has_reasoning(served->dialect));
        wire_put_text(writer, "format");
        wire_put_text(writer, served->facts.format ? served->facts.format : "");
        wire_put_text(writer, "layers");
        wire_put_uint(writer, served->traits.layers);
        wire_put_text(writer, "gpu_layers");
        wire_put_uint(writer, served->gpu_layers);
        wire_put_text(writer, "default");
        wire_put_bool(writer, true);
        wire_put_text(writer, "end_tokens");
        wire_put_array(writer, served->traits.eos_count);
        for (uint32_t i = 0; i < served->traits.eos_count; i++)
                wire_put_uint(writer, served->traits.eos[i]);
}

/* The ring's own two; then that of answers, if it has slots, and that of whole rows. */
static uint32_t count_segments(const struct channel *channel)
{
        return 2 + (channel->segment_answers.at != NULL) + (channel->segment_rows.at != NULL);
}

static void put_segments(struct wire_writer *writer, const struct channel *channel)
{
        const struct {
                const char *kind;
                size_t bytes;
        } segments[] = {
                { "ring", channel ? channel->segment_d.bytes : 0 },
                { "control", channel ? channel->segment_c.bytes : 0 },
                { "answers", channel ? channel->segment_answers.bytes : 0 },
                { "rows", channel ? channel->segment_rows.bytes : 0 },
        };
        uint32_t count = channel ? count_segments(channel) : 0;

        wire_put_text(writer, "transport");
        wire_put_text(writer, channel ? "ring" : "socket");
        wire_put_text(writer, "segments");
        wire_put_array(writer, count);
        for (uint32_t i = 0; i < count; i++) {
                wire_put_map(writer, 3);
                wire_put_text(writer, "kind");
                wire_put_text(writer, segments[i].kind);
                wire_put_text(writer, "fd");
                wire_put_uint(writer, i);
                wire_put_text(writer, "bytes");
                wire_put_uint(writer, segments[i].bytes);
        }
}

static void put_welcome(struct peer *peer, uint32_t id)
{
        struct edge *edge = peer->edge;
        struct wire_writer writer;

        if (!connection_reply(peer, &writer))
                return;
        wire_put_ok(&writer, id, 9);
        wire_put_text(&writer, "version");
        wire_put_uint(&writer, SMV_PROTOCOL_VERSION);
        wire_put_text(&writer, "server");
        wire_put_text(&writer, "samovard " SAMOVAR_VERSION);
        wire_put_text(&writer, "pid");
        wire_put_uint(&writer, edge->pid);
        wire_put_text(&writer, "uid");
        wire_put_uint(&writer, peer->process_uid);
        wire_put_text(&writer, "frame_bytes");
        wire_put_uint(&writer, edge->conf.config->frame_bytes);
        wire_put_text(&writer, "features");
        wire_put_array(&writer, 0);
        put_segments(&writer, peer->channel);
        put_models(&writer, edge->conf.served);
        connection_replied(peer, &writer);
}

/* Sends the reply and the descriptors together, or takes the reply back. 0 or a negative errno. */
static int welcome_with_ring(struct peer *peer, uint32_t id)
{
        struct channel *channel = peer->channel;
        const struct segment *const segments[SEGMENTS_MAX] = { &channel->segment_d,
                                                               &channel->segment_c,
                                                               &channel->segment_answers,
                                                               &channel->segment_rows };
        uint32_t count = count_segments(channel), lent = 0;
        int fds[SEGMENTS_MAX], r = 0;

        while (lent < count && !r) {
                fds[lent] = segment_lend(segments[lent]);
                r = fds[lent] < 0 ? fds[lent] : 0;
                lent += !r;
        }
        if (!r) {
                put_welcome(peer, id);
                if (!peer->doomed)
                        r = connection_pass(peer, fds, count);
        }
        if (r)
                buffer_take(&peer->out, buffer_count(&peer->out));
        else
                /* From now on the channel closes the descriptor. */
                channel->socket = peer->fd;
        while (lent)
                sys_close(fds[--lent]);
        return error_pass(r);
}

/* 0: the reply is sent.  Else there is no ring, and *ret_problem or the errno says why. */
static int give_ring(struct peer *peer, const struct wire_request *asked,
                     struct wire_problem *ret_problem)
{
        static const enum channel_bell bells[] = {
                [WIRE_KICK] = CHANNEL_KICK, [WIRE_FUTEX] = CHANNEL_FUTEX, [WIRE_NONE] = CHANNEL_NONE
        };
        struct edge *edge = peer->edge;
        uint64_t bytes = asked->ring_bytes ? asked->ring_bytes : edge->conf.config->ring_bytes;
        int r;

        if (buffer_count(&peer->out))
                /* The client has not read earlier replies. */
                return error_raise(-EAGAIN);
        r = channels_make_for(peer, bells[asked->doorbell], bytes, asked->id, ret_problem);
        if (r)
                return error_pass(r);
        r = channels_add_slots(peer, asked, ret_problem);
        if (!r)
                r = welcome_with_ring(peer, asked->id);
        if (r)
                channels_take_back(peer);
        return error_pass(r);
}

static int welcome(struct peer *peer, const struct wire_request *asked,
                   struct wire_problem *ret_problem)
{
        int r = 0;

        if (asked->transport != WIRE_SOCKET) {
                r = give_ring(peer, asked, ret_problem);
                if (!r)
                        return 0;
                log_limited(LOG_DEBUG, "no_ring uid=%u principal=%s pid=%d why=%s at=%s",
                            peer->process_uid, principal_name(peer->principal), peer->pid,
                            r < 0 ? strerror(-r) : ret_problem->message, error_trail());
        }
        if (asked->transport == WIRE_RING && r < 0)
                return wire_refuse(ret_problem, SMV_BUSY, asked->id, "transport",
                                   "the daemon cannot give a ring now: %s", strerror(-r));
        if (asked->transport == WIRE_RING)
                return r;
        put_welcome(peer, asked->id);
        return 0;
}

/* ---- the principal ---- */

/* Until now the connection was charged to the process: it moves to the principal, if that may. */
static int move_charge(struct peer *peer, const struct principal *principal, uint32_t id,
                       struct wire_problem *ret_problem)
{
        struct quota *quota = peer->edge->quota;
        int r;

        assert(!peer->channel && !peer->frame_charged);
        r = quota_connect(quota, principal->uid, sys_clock_ns(), ret_problem);
        if (r > 0)
                ret_problem->id = id;
        if (!r)
                r = quota_ask(quota, principal->uid, QUOTA_CONNECTIONS, 1, id, ret_problem);
        if (r)
                return error_pass(r);
        quota_uncharge(quota, peer->process_uid, QUOTA_CONNECTIONS, 1);
        quota_connect_back(quota, peer->process_uid);
        return 0;
}

/* A hello may come again, if the one before was refused: then it must be for the same principal. */
static bool is_same(const struct principal *principal, const struct wire_request *asked)
{
        const struct wire_text *name = &asked->principal;

        return wire_has(asked, WIRE_F_PRINCIPAL) && strlen(principal->name) == name->count &&
               !memcmp(principal->name, name->bytes, name->count);
}

/* The peer counts as the principal that hello names, if it names one, from now on. */
static int take_principal(struct peer *peer, const struct wire_request *asked,
                          struct wire_problem *ret_problem)
{
        struct principal *principal;
        int r;

        if (peer->principal && !is_same(peer->principal, asked))
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "principal",
                                   "an earlier hello of this connection was for the principal %s",
                                   peer->principal->name);
        if (peer->principal || !wire_has(asked, WIRE_F_PRINCIPAL))
                return 0;
        r = principals_enter(peer->edge->principals, peer->process_uid, &asked->principal,
                             asked->id, ret_problem, &principal);
        if (r)
                return error_pass(r);
        r = move_charge(peer, principal, asked->id, ret_problem);
        if (r) {
                principal_leave(principal);
                return error_pass(r);
        }
        peer->principal = principal;
        peer->uid = principal->uid;
        peer->group_count = 0;
        log_limited(LOG_DEBUG, "peer_principal uid=%u principal=%s pid=%d", peer->process_uid,
                    principal_name(peer->principal), peer->pid);
        return 0;
}

/* ---- hello ---- */

int op_hello(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        int r;

        if (peer->state != PEER_NEW)
                return wire_refuse(ret_problem, SMV_NO_HELLO, asked->id, "op",
                                   "hello was sent already");
        if (asked->version_min > SMV_PROTOCOL_VERSION) {
                wire_refuse(ret_problem, SMV_VERSION, asked->id, "versions",
                            "versions are %u to %u; this daemon speaks %u", asked->version_min,
                            asked->version_max, SMV_PROTOCOL_VERSION);
                ret_problem->fatal = true;
                return WIRE_E_REFUSED;
        }
        if (peer->edge->phase > EDGE_SERVING && !asked->while_stopping) {
                late_refuse(peer->edge, asked->id, ret_problem);
                ret_problem->fatal = true;
                return WIRE_E_REFUSED;
        }
        r = take_principal(peer, asked, ret_problem);
        if (!r)
                r = welcome(peer, asked, ret_problem);
        if (r)
                return error_pass(r);
        loop_timer_clear(peer->deadline);
        peer->state = PEER_OPEN;
        return 0;
}
