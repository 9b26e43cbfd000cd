#include "daemon/edge/op-list.h"

#include <assert.h>
#include <inttypes.h>

#include "daemon/edge/connection.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/resumable.h"
#include "daemon/edge/stream.h"
#include "daemon/edge/wire.h"
#include "base/sys.h"

#define NS_PER_MS UINT64_C(1000000)

/* A walk over all work.  Each visitor may be NULL; `pid` is 0 if no connection has the thing. */
struct walk {
        struct edge *edge;
        uint64_t viewer;
        bool sees_all;
        void (*stream)(struct walk *walk, struct stream *stream, uint32_t pid);
        void (*resumable)(struct walk *walk, struct resumable *resumable);
        void (*handle)(struct walk *walk, struct handle *handle, uint32_t pid);

        struct wire_writer *writer; /* list */
        uint32_t streams, handles;  /* counted before they are written */
        uint64_t now_ns;
        uint64_t target; /* end: the number that is looked for ... */
        bool found;      /* ... and was found, ... */
        bool ending;     /* ... or is a stream whose end is decided already */
        struct handle *closing;
};

static bool shows(const struct walk *walk, uint64_t uid)
{
        return walk->sees_all || uid == walk->viewer;
}

/* Streams whose text is still with the text worker have no record yet, but may be ended. */
static void walk_peer_streams(struct walk *walk, struct peer *peer)
{
        list_each(at, &peer->streams)
                walk->stream(walk, LIST_ENTRY(at, struct stream, peer_link), (uint32_t)peer->pid);
        list_each(at, &peer->jobs) {
                struct stream *stream = LIST_ENTRY(at, struct encode_job, link)->stream;

                for (; stream; stream = stream_sibling(stream))
                        walk->stream(walk, stream, (uint32_t)peer->pid);
        }
}

static void walk_streams(struct walk *walk)
{
        struct resumable *resumable;
        uint32_t index = 0;

        list_each(at, &walk->edge->peers) {
                struct peer *peer = LIST_ENTRY(at, struct peer, peers_link);

                if (shows(walk, peer->uid))
                        walk_peer_streams(walk, peer);
        }
        while ((resumable = resumables_next(walk->edge->resumables, &index)))
                if (shows(walk, resumable->uid))
                        walk->resumable(walk, resumable);
}

static void walk_handles(struct walk *walk)
{
        list_each(at, &walk->edge->peers) {
                struct peer *peer = LIST_ENTRY(at, struct peer, peers_link);

                if (!shows(walk, peer->uid))
                        continue;
                list_each(link, &peer->handles)
                        walk->handle(walk, LIST_ENTRY(link, struct handle, owner_link),
                                     (uint32_t)peer->pid);
        }
        list_each(link, handles_kept(walk->edge->handles)) {
                struct handle *handle = LIST_ENTRY(link, struct handle, owner_link);

                if (shows(walk, handle->uid))
                        walk->handle(walk, handle, 0);
        }
}

static struct walk walk_of(struct peer *peer)
{
        return (struct walk){ .edge = peer->edge,
                              .viewer = peer->uid,
                              .sees_all = !peer->uid || peer->uid == peer->edge->uid,
                              .now_ns = sys_clock_ns() };
}

/* ---- list ---- */

static void put_number(struct wire_writer *writer, const char *name, uint64_t value)
{
        wire_put_text(writer, name);
        wire_put_uint(writer, value);
}

static void put_word(struct wire_writer *writer, const char *name, const char *word)
{
        wire_put_text(writer, name);
        wire_put_text(writer, word);
}

/* A principal with work is not forgotten. */
static void put_user(struct walk *walk, uint64_t uid)
{
        struct user_shown user;
        bool known = principals_show(walk->edge->principals, uid, &user);

        assert(known);
        (void)known;
        put_number(walk->writer, "uid", user.uid);
        put_word(walk->writer, "principal", user.principal);
}

static uint64_t ms_since(const struct walk *walk, uint64_t ns)
{
        return ns && ns < walk->now_ns ? (walk->now_ns - ns) / NS_PER_MS : 0;
}

static const char *priority_word(enum request_priority priority)
{
        static const char *const words[] = {
#define X(name, word) [REQUEST_##name] = word,
                SMV_PRIORITIES(X)
#undef X
        };

        return words[priority];
}

/* It was cancelled, or it has ended and its END is not read yet. */
static bool is_ending(const struct stream *stream)
{
        return stream->unwanted || stream->cancel_sent || stream->retired;
}

/* How far a stream is, from what the engine publishes of it. */
static const char *state_word(struct stream *stream)
{
        struct request *request = &stream->request;

        if (stream->retired)
                return "ended";
        if (is_ending(stream))
                return "ending";
        if (!stream->begun_ns)
                return "encoding";
        if (request_waits_for(request) != REQUEST_WAITS_FOR_NOTHING)
                return request_has_begun(request) ? "paused" : "waiting";
        return request_tokens_made(request) ? "running" : "prefill";
}

/* The numbers of each reason to wait, and their names. */
static const struct fact {
        enum request_wait of;
        enum request_fact fact;
        const char *name;
} facts[] = {
        { REQUEST_WAITS_FOR_WINDOWS, REQUEST_FREE, "free" },
        { REQUEST_WAITS_FOR_BLOCKS, REQUEST_FREE, "free" },
        { REQUEST_WAITS_FOR_BLOCKS, REQUEST_CACHED, "free_cached" },
        { REQUEST_WAITS_FOR_BLOCKS, REQUEST_OWN, "free_cached_own" },
        { REQUEST_WAITS_FOR_FORECAST, REQUEST_EXPECTED, "expected" },
        { REQUEST_WAITS_FOR_FORECAST, REQUEST_POOL, "pool" },
        { REQUEST_WAITS_FOR_SHARE, REQUEST_USER_SLOTS, "user_slots" },
        { REQUEST_WAITS_FOR_SHARE, REQUEST_USER_SLOTS_MAX, "user_slots_max" },
        { REQUEST_WAITS_FOR_SHARE, REQUEST_USER_BLOCKS, "user_blocks" },
        { REQUEST_WAITS_FOR_SHARE, REQUEST_USER_BLOCKS_MAX, "user_blocks_max" },
};

static uint32_t count_facts(enum request_wait wait)
{
        uint32_t count = 0;

        for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
                count += facts[i].of == wait;
        return count;
}

/* The reason is read once: the engine may change it between two keys. */
static enum request_wait wait_of(const struct stream *stream)
{
        return stream ? request_waits_for(&stream->request) : REQUEST_WAITS_FOR_NOTHING;
}

/* Why it has no slot, for a stream that is still to run. */
static void put_wait(struct walk *walk, const struct stream *stream, enum request_wait wait)
{
        static const char *const words[REQUEST_WAIT_N] = {
                [REQUEST_WAITS_FOR_NOTHING] = "",          [REQUEST_WAITS_FOR_TURN] = "turn",
                [REQUEST_WAITS_FOR_SLOT] = "slot",         [REQUEST_WAITS_FOR_BLOCKS] = "blocks",
                [REQUEST_WAITS_FOR_FORECAST] = "forecast", [REQUEST_WAITS_FOR_SHARE] = "share",
                [REQUEST_WAITS_FOR_PREFIX] = "prefix",     [REQUEST_WAITS_FOR_READER] = "reader",
                [REQUEST_WAITS_FOR_WINDOWS] = "windows",
        };

        put_word(walk->writer, "waits_for", words[wait]);
        put_number(walk->writer, "needs",
                   wait == REQUEST_WAITS_FOR_BLOCKS || wait == REQUEST_WAITS_FOR_WINDOWS
                           ? request_fact(&stream->request, REQUEST_NEEDS)
                           : 0);
        for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
                if (facts[i].of == wait)
                        put_number(walk->writer, facts[i].name,
                                   request_fact(&stream->request, facts[i].fact));
}

/* How much of its prompt is read, and how much of that was found in the cache. */
static void put_prompt(struct walk *walk, uint32_t prompt, uint32_t found, uint32_t read)
{
        put_number(walk->writer, "prompt", prompt);
        put_number(walk->writer, "prompt_found", found);
        put_number(walk->writer, "prompt_done", read);
}

/* The text of one that has not begun is still with the text worker. */
static void put_prompt_of(struct walk *walk, const struct stream *stream)
{
        const struct request *request = &stream->request;
        uint32_t prompt = stream->begun_ns ? request->prompt_count : 0;

        put_prompt(walk, prompt, request_fact(request, REQUEST_FOUND),
                   request_tokens_made(request) ? prompt : request_fact(request, REQUEST_READ));
}

static void put_stream(struct walk *walk, struct stream *stream, uint32_t pid)
{
        struct wire_writer *writer = walk->writer;
        enum request_wait wait = wait_of(stream);

        wire_put_map(writer, 17 + count_facts(wait));
        put_number(writer, "number", stream->number);
        put_word(writer, "kind", stream->reads_only ? "pin" : "stream");
        put_word(writer, "state", state_word(stream));
        put_user(walk, stream->request.uid);
        put_number(writer, "pid", pid);
        put_word(writer, "priority", priority_word(stream->request.priority));
        put_number(writer, "age_ms", ms_since(walk, stream->begun_ns));
        put_number(writer, "tokens", request_tokens_made(&stream->request));
        put_prompt_of(walk, stream);
        put_number(writer, "handle", stream->handle);
        put_number(writer, "keep_ms", 0);
        put_number(writer, "preemptions", request_pauses(&stream->request));
        put_wait(walk, stream, wait);
}

static void put_resumable(struct walk *walk, struct resumable *resumable)
{
        struct wire_writer *writer = walk->writer;
        struct stream *stream = resumable->stream;
        enum request_wait wait = wait_of(stream);

        wire_put_map(writer, 17 + count_facts(wait));
        put_number(writer, "number", resumable->number);
        put_word(writer, "kind", "resumable");
        put_word(writer, "state", stream ? state_word(stream) : "ended");
        put_user(walk, resumable->uid);
        put_number(writer, "pid", resumable->peer ? (uint32_t)resumable->peer->pid : 0);
        put_word(writer, "priority", priority_word(resumable->priority));
        put_number(writer, "age_ms", ms_since(walk, resumable->begun_ns));
        put_number(writer, "tokens",
                   stream ? request_tokens_made(&stream->request) : resumable->tokens_made);
        if (stream)
                put_prompt_of(walk, stream);
        else
                put_prompt(walk, resumable->prompt_tokens, resumable->found,
                           resumable->prompt_tokens);
        put_number(writer, "handle", stream ? stream->handle : 0);
        put_number(writer, "keep_ms", resumable->keep_ms);
        put_number(writer, "preemptions",
                   stream ? request_pauses(&stream->request) : resumable->pauses);
        put_wait(walk, stream, wait);
}

static void put_handle(struct walk *walk, struct handle *handle, uint32_t pid)
{
        struct wire_writer *writer = walk->writer;

        wire_put_map(writer, 8);
        put_number(writer, "number", handle->number);
        put_user(walk, handle->uid);
        put_number(writer, "pid", pid);
        put_number(writer, "age_ms", ms_since(walk, handle->made_ns));
        put_number(writer, "tokens", handle->count);
        put_number(writer, "keep_ms", handle->keep_ns / NS_PER_MS);
        wire_put_text(writer, "busy");
        wire_put_bool(writer, handle_is_busy(handle));
}

static void count_stream(struct walk *walk, struct stream *stream, uint32_t pid)
{
        (void)stream;
        (void)pid;
        walk->streams++;
}

static void count_resumable(struct walk *walk, struct resumable *resumable)
{
        (void)resumable;
        walk->streams++;
}

static void count_handle(struct walk *walk, struct handle *handle, uint32_t pid)
{
        (void)handle;
        (void)pid;
        walk->handles++;
}

int op_list(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct walk walk = walk_of(peer);
        struct wire_writer writer;

        (void)ret_problem;
        walk.stream = count_stream;
        walk.resumable = count_resumable;
        walk.handle = count_handle;
        walk_streams(&walk);
        walk_handles(&walk);
        if (!connection_reply(peer, &writer))
                return 0;
        walk.writer = &writer;
        walk.stream = put_stream;
        walk.resumable = put_resumable;
        walk.handle = put_handle;
        wire_put_ok(&writer, asked->id, 1);
        wire_put_text(&writer, "work");
        wire_put_map(&writer, 2);
        wire_put_text(&writer, "streams");
        wire_put_array(&writer, walk.streams);
        walk_streams(&walk);
        wire_put_text(&writer, "handles");
        wire_put_array(&writer, walk.handles);
        walk_handles(&walk);
        connection_replied(peer, &writer);
        return 0;
}

/* ---- end ---- */

/* A stream that was not submitted yet is left out when its text comes back. */
static void end_stream(struct walk *walk, struct stream *stream, uint32_t pid)
{
        (void)pid;
        if (stream->number != walk->target)
                return;
        walk->ending = is_ending(stream);
        walk->found = !walk->ending;
        if (walk->ending)
                return;
        if (stream->begun_ns)
                stream_cancel(walk->edge, stream, SMV_END_CANCELLED, SMV_OK);
        else
                encode_job_cancel(encode_job_find(stream->peer, stream->request.stream),
                                  stream->request.stream);
}

/* Its records stay for its reader, unless it had ended already: then nobody waits for them. */
static void end_resumable(struct walk *walk, struct resumable *resumable)
{
        if (resumable->number != walk->target || resumable->dropped)
                return;
        walk->ending = !resumable->ended && (!resumable->stream || is_ending(resumable->stream));
        walk->found = !walk->ending;
        if (resumable->ended)
                resumable_drop(resumable);
        else if (walk->found)
                resumable_cancel(resumable);
}

/* A handle is closed after the walk, which goes over the list that it is in. */
static void find_handle(struct walk *walk, struct handle *handle, uint32_t pid)
{
        (void)pid;
        if (handle->number == walk->target)
                walk->closing = handle;
}

int op_end(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct walk walk = walk_of(peer);

        walk.target = asked->number;
        walk.stream = end_stream;
        walk.resumable = end_resumable;
        walk.handle = find_handle;
        walk_streams(&walk);
        if (walk.ending)
                return wire_refuse(ret_problem, SMV_NO_STREAM, asked->id, "number",
                                   "stream %" PRIu64 " is ending already", asked->number);
        if (!walk.found)
                walk_handles(&walk);
        if (walk.closing)
                handle_close(walk.closing);
        else if (!walk.found)
                return wire_refuse(ret_problem, SMV_NO_STREAM, asked->id, "number",
                                   "there is no running stream or handle %" PRIu64, asked->number);
        connection_reply_ok(peer, asked->id);
        return 0;
}
