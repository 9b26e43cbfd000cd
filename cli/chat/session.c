#include "cli/chat/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

int session_init(struct session *session, struct link *link)
{
        struct branch *branch = calloc(1, sizeof(*branch));

        *session = (struct session){ .link = link };
        return branch ? session_add(session, branch, "main") : -ENOMEM;
}

void session_deinit(struct session *session)
{
        for (size_t i = 0; i < session->count; i++)
                branch_free(session->branches[i]);
        session->count = 0;
}

struct branch *session_branch(const struct session *session)
{
        return session->branches[session->current];
}

size_t session_find(const struct session *session, const char *which)
{
        unsigned long number;
        char *end;

        for (size_t i = 0; i < session->count; i++)
                if (!strcmp(session->branches[i]->name, which))
                        return i;
        number = strtoul(which, &end, 10);
        return *which >= '1' && *which <= '9' && !*end && number <= session->count ? number - 1
                                                                                   : session->count;
}

static bool is_taken(const struct session *session, const char *name)
{
        return session_find(session, name) < session->count;
}

int session_add(struct session *session, struct branch *branch, const char *name)
{
        if (session->count == SESSION_BRANCHES_MAX)
                return -ENOSPC;
        snprintf(branch->name, sizeof(branch->name), "%s", name);
        for (size_t n = session->count + 1; !*branch->name || is_taken(session, branch->name); n++)
                snprintf(branch->name, sizeof(branch->name), "%.20s%s%zu", name,
                         *name ? "-" : "fork-", n);
        session->branches[session->count] = branch;
        session->current = session->count++;
        return 0;
}

/* ---- the handle ---- */

/* The options of a request, and the msgpack that they point at. */
struct parcel {
        struct bytes packed;
        struct smv_generate options;
};

static int pack(struct parcel *parcel, const struct bytes *json, size_t *ret_begin)
{
        const char *wrong = NULL;

        *ret_begin = parcel->packed.count;
        if (!json->count || !cli_pack_json(json->at, json->count, &parcel->packed, &wrong))
                return 0;
        note("The conversation cannot be sent: it %s.", wrong);
        return -EINVAL;
}

static struct smv_packed piece(const struct parcel *parcel, size_t begin, size_t end)
{
        return end > begin ? (struct smv_packed){ parcel->packed.at + begin, end - begin }
                           : (struct smv_packed){ 0 };
}

/* The messages from `from` on, with the tools and variables.  The caller frees `packed`. */
static int make_parcel(const struct session *session, size_t from, struct parcel *parcel)
{
        const struct branch *branch = session_branch(session);
        struct bytes json = { 0 };
        size_t messages, tools, vars;
        int r = branch_messages(branch, from, &json);

        *parcel = (struct parcel){ .options = { SMV_SIZE(smv_generate),
                                                .model = session->link->cli->model } };
        if (!r)
                r = pack(parcel, &json, &messages);
        if (!r)
                r = pack(parcel, &branch->tools, &tools);
        if (!r)
                r = pack(parcel, &branch->vars, &vars);
        if (!r) {
                parcel->options.packed_messages = piece(parcel, messages, tools);
                parcel->options.packed_tools = piece(parcel, tools, vars);
                parcel->options.packed_vars = piece(parcel, vars, parcel->packed.count);
        }
        bytes_deinit(&json);
        return r;
}

static enum outcome open_handle(struct session *session, const struct smv_generate *options)
{
        struct branch *branch = session_branch(session);
        struct smv_event reply = { SMV_SIZE(smv_event) };
        uint32_t request = 0;
        int r = smv_ask_handle_open(session->link->cli->client, options, &request);
        enum outcome o = link_reply(session->link, r, request, &reply);

        if (o == OUTCOME_DONE) {
                branch->handle = reply.number;
                branch->length = reply.length;
                session->opened++;
        }
        return o;
}

static enum outcome append(struct session *session, const struct smv_generate *options)
{
        struct branch *branch = session_branch(session);
        struct smv_event reply = { SMV_SIZE(smv_event) };
        uint32_t request = 0;
        int r = smv_ask_handle_append_messages(session->link->cli->client, branch->handle,
                                               &(struct smv_generate){
                                                       SMV_SIZE(smv_generate),
                                                       .packed_messages = options->packed_messages,
                                                       .packed_tools = options->packed_tools,
                                                       .packed_vars = options->packed_vars,
                                               },
                                               &request);
        enum outcome o = link_reply(session->link, r, request, &reply);

        if (o == OUTCOME_DONE) {
                branch->length = reply.length;
                session->appended++;
        }
        return o;
}

static enum outcome send_messages(struct session *session)
{
        struct branch *branch = session_branch(session);
        struct parcel parcel;
        enum outcome o;

        if (make_parcel(session, branch->handle ? branch->sent : 0, &parcel))
                o = OUTCOME_FAILED;
        else
                o = branch->handle ? append(session, &parcel.options)
                                   : open_handle(session, &parcel.options);
        bytes_deinit(&parcel.packed);
        if (o == OUTCOME_DONE)
                branch->sent = branch->count;
        return o;
}

enum outcome session_prepare(struct session *session)
{
        struct branch *branch = session_branch(session);
        enum outcome o = link_connect(session->link);

        if (o == OUTCOME_DONE && (!branch->handle || branch->sent < branch->count))
                o = send_messages(session);
        if (!session->link->cli->client)
                session_lose_handles(session);
        return o;
}

void session_answered(struct session *session, const struct smv_event *end)
{
        struct branch *branch = session_branch(session);
        struct message *message = &branch->messages[branch->count - 1];

        branch->length = (size_t)end->prompt_tokens + end->output_tokens;
        branch->sent = branch->count;
        message->begin = end->prompt_tokens;
        /* The daemon decides anew whether the end token stays when the next turn comes. */
        message->end = branch->length - (end->reason == SMV_END_EOS && end->output_tokens);
}

void session_close_handle(struct session *session)
{
        struct branch *branch = session_branch(session);
        struct smv_event reply = { SMV_SIZE(smv_event) };
        uint32_t request = 0;
        int r;

        if (branch->handle && session->link->cli->client) {
                r = smv_ask_handle_close(session->link->cli->client, branch->handle, &request);
                link_reply(session->link, r, request, &reply);
        }
        branch_lose_handle(branch);
        if (!session->link->cli->client)
                session_lose_handles(session);
}

static bool truncate_handle(struct session *session, size_t length)
{
        struct branch *branch = session_branch(session);
        struct smv_event reply = { SMV_SIZE(smv_event) };
        uint32_t request = 0;
        int r;

        if (!length || !branch->handle || !session->link->cli->client)
                return false;
        r = smv_ask_handle_truncate(session->link->cli->client, branch->handle, length, &request);
        if (link_reply(session->link, r, request, &reply) != OUTCOME_DONE)
                return false;
        branch->length = length;
        return true;
}

void session_cut(struct session *session, size_t count, bool again)
{
        struct branch *branch = session_branch(session);
        size_t length = 0;

        if (count == branch->count && !again)
                return;
        if (again && count < branch->count)
                length = branch->messages[count].begin;
        else if (!again && count && branch->messages[count - 1].role == MESSAGE_ASSISTANT)
                length = branch->messages[count - 1].end;
        if (branch->handle && (count < branch->sent || again)) {
                if (truncate_handle(session, length))
                        branch->sent = count;
                else
                        session_close_handle(session);
        }
        branch_cut(branch, count);
}

void session_lose_handles(struct session *session)
{
        for (size_t i = 0; i < session->count; i++)
                branch_lose_handle(session->branches[i]);
}

/* The history of the new branch; without one, its next question opens a handle. */
static enum outcome fork_handle(struct session *session, const struct branch *from,
                                struct branch *branch)
{
        struct smv_event reply = { SMV_SIZE(smv_event) };
        uint32_t request = 0;
        enum outcome o;
        int r;

        if (!from->handle || !session->link->cli->client)
                return OUTCOME_DONE;
        r = smv_ask_handle_fork(session->link->cli->client, from->handle, 0, &request);
        o = link_reply(session->link, r, request, &reply);
        if (o == OUTCOME_DONE) {
                branch->handle = reply.number;
                branch->sent = from->sent;
                branch->length = from->length;
        }
        return o;
}

enum outcome session_fork(struct session *session, const char *name)
{
        const struct branch *from = session_branch(session);
        struct branch *branch = branch_copy(from);
        enum outcome o;

        if (!branch || session_add(session, branch, name)) {
                branch_free(branch);
                note("There is no room for another branch; %u may be open at a time.",
                     SESSION_BRANCHES_MAX);
                return OUTCOME_FAILED;
        }
        o = fork_handle(session, from, branch);
        if (o == OUTCOME_REFUSED)
                link_say(session->link);
        if (!session->link->cli->client)
                session_lose_handles(session);
        else if (!branch->handle)
                branch_lose_handle(branch);
        return OUTCOME_DONE;
}

void session_remove(struct session *session, size_t which)
{
        size_t stay = session->current;

        session->current = which;
        session_close_handle(session);
        branch_free(session->branches[which]);
        session->count--;
        memmove(session->branches + which, session->branches + which + 1,
                (session->count - which) * sizeof(*session->branches));
        session->current = stay > which || stay == session->count ? stay - 1 : stay;
}
