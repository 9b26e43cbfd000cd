#include "daemon/edge/op-checks.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/edge/encode-job.h"
#include "daemon/edge/late.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/streams.h"
#include "base/error.h"

/* "" is the default model.  NULL: there is none of that name. */
static struct served *find_model(struct edge *edge, const struct wire_text *name)
{
        struct served *served = edge->conf.served;

        if (!name->count || (strlen(served->name) == name->count &&
                             !memcmp(served->name, name->bytes, name->count)))
                return served;
        return NULL;
}

static bool is_taken(struct peer *peer, uint32_t id)
{
        return streams_find(peer, id) || encode_job_find(peer, id) || resumable_attached(peer, id);
}

int op_check_new(struct peer *peer, const struct wire_request *asked, enum edge_phase until,
                 struct served **ret_served, struct wire_problem *ret_problem)
{
        uint32_t streams = wire_streams(asked), i = 0;
        struct edge *edge = peer->edge;

        do
                if (is_taken(peer, asked->id + i))
                        return wire_refuse(ret_problem, SMV_DUP_ID, asked->id, "id",
                                           "id %u belongs to a request that is still alive",
                                           asked->id + i);
        while (++i < streams);
        if (edge->phase >= until)
                return late_refuse(edge, asked->id, ret_problem);
        *ret_served = find_model(edge, &asked->model);
        if (!*ret_served)
                return wire_refuse(ret_problem, SMV_NO_MODEL, asked->id, "model",
                                   "no model of that name is served; this daemon serves %s",
                                   edge->conf.served->name);
        return 0;
}

int op_check_chat(const struct served *served, const struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        const char *missing = chat_refusal(served->chat);

        if (!missing || !asked->chat.messages.bytes)
                return 0;
        return wire_refuse(ret_problem, SMV_NO_TEMPLATE, asked->id, "messages", "%s", missing);
}

int op_find_handle(struct peer *peer, const struct wire_request *asked, struct handle **ret_handle,
                   struct wire_problem *ret_problem)
{
        *ret_handle = handles_find(peer->edge->handles, peer->uid, asked->handle);
        if (!*ret_handle)
                return wire_refuse(ret_problem, SMV_NO_HANDLE, asked->id, "handle",
                                   "there is no handle %" PRIu64, asked->handle);
        handle_renew(*ret_handle);
        return 0;
}

int op_find_idle_handle(struct peer *peer, const struct wire_request *asked,
                        struct handle **ret_handle, struct wire_problem *ret_problem)
{
        int r = op_find_handle(peer, asked, ret_handle, ret_problem);

        if (r || !handle_is_busy(*ret_handle))
                return r;
        return wire_refuse(ret_problem, SMV_HANDLE_BUSY, asked->id, "handle",
                           "handle %" PRIu64 " %s", asked->handle,
                           (*ret_handle)->stream
                                   ? "is generating; its END has not come yet, but that "
                                     "stream can be forked"
                                   : "waits for a text that is being read");
}

int op_borrow_tokens(struct peer *peer, struct wire_request *asked, struct handle **ret_handle,
                     struct wire_problem *ret_problem)
{
        struct handle *handle;
        int r;

        r = op_find_idle_handle(peer, asked, &handle, ret_problem);
        if (r)
                return error_pass(r);
        if (!handle->count)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "handle",
                                   "handle %" PRIu64 " has no tokens to continue", asked->handle);
        /* A stream that outlives its connection would lose its history. */
        if (asked->keep_ms && !handle->timer)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "keep_ms",
                                   "keep_ms is %u, but handle %" PRIu64
                                   " closes with its connection; open it with keep_ms, too",
                                   asked->keep_ms, asked->handle);
        asked->tokens = handle->tokens;
        asked->token_count = handle->count;
        asked->had_tools = handle->has_tools;
        asked->argument_types = handle->argument_types;
        *ret_handle = handle;
        return 0;
}
