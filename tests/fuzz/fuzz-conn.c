/*
 * Connections by script, against the real edge, in one thread.
 *
 * An input is a script: a byte chooses an action, and the next byte says which client or request
 * and how much.  Clients connect, send frames cut anywhere, read or do not, shut and close.  The
 * loop, the text worker, the engine and the waker each act when the script lets them, so every
 * order in which their mail may cross can occur.  The edge, the mailboxes, publish and the rings
 * are the daemon's own.  The text worker, the engine and the waker are short versions that keep the
 * same rules without a thread.
 *
 * A script runs inside the loop: the handler of a timer takes actions until it is to let the loop
 * turn.  Each script has an edge of its own, which is checked at the end:
 *
 *      with all clients gone, after some turns: nothing is held;
 *      after a drain: everything has stopped, and edge_free() finds nothing;
 *      now and then: no descriptor is left open.
 *
 * Clients must read frames that the scan takes, and records in sequence.
 */
#include "tests/fuzz/conn-rig.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sys.h"
#include "daemon/edge/admission.h"
#include "daemon/edge/edge.h"
#include "daemon/edge/peer.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/resumable.h"
#include "daemon/start/token-texts.h"
#include "daemon/text/chat.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/tokenizer.h"

struct world world;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count);

/* ---- the script ---- */

static uint8_t next_byte(void)
{
        return world.script.at < world.script.end ? *world.script.at++ : 0;
}

static void say_raw(struct client *client, size_t count)
{
        size_t left = (size_t)(world.script.end - world.script.at);

        if (count > left)
                count = left;
        say(client, world.script.at, count);
        world.script.at += count;
        push(client, PENDING_MAX);
}

static void say_frame(struct client *client, uint32_t which, bool hold)
{
        const struct buffer *frame = &world.frames[which % world.frame_count];

        if (frame == world.flood && world.floods++ >= FLOODS_MAX)
                return;
        say(client, frame->bytes + frame->start, buffer_count(frame));
        if (!hold)
                push(client, PENDING_MAX);
}

static void stop(uint8_t how)
{
        if (how == 0xff)
                fail();
        else if (how >= 0xf0)
                edge_drain(world.edge);
}

static bool others_move(void)
{
        bool moved = false;

        while (text_worker() || engine() || waker())
                moved = true;
        return moved;
}

enum action {
        CONNECT,
        FRAME,
        PUSH,
        RAW,
        READ,
        SHUT,
        CLOSE,
        TURN,
        TEXT_WORKER,
        ENGINE,
        WAKER,
        TOKEN,
        BURST,
        END,
        OTHERS,
        STOP,
        HOLD, /* a frame about a handle, or a fork */
        KEEP, /* ... about a stream that outlives its client */
        ACTION_N,
};

/* False: it is the loop's turn now. */
static bool act(enum action action, uint8_t how)
{
        struct client *client = &world.clients[(how & 3u) % CLIENTS];
        uint32_t much = how >> 2;

        switch (action) {
        case CONNECT:
                return connect_client(client), true;
        case FRAME:
                return say_frame(client, much & 31u, how & 0x80), true;
        case PUSH:
                return push(client, much + 1), true;
        case RAW:
                return say_raw(client, much), true;
        case READ:
                return listen_to_edge(client, much == 63 ? READ_MAX : much * 32 + 1), true;
        case SHUT:
                if (client->fd >= 0)
                        shutdown(client->fd, SHUT_WR);
                return true;
        case CLOSE:
                return close_client(client), true;
        case TURN:
                return false;
        case TEXT_WORKER:
                return text_worker(), true;
        case ENGINE:
                return engine(), true;
        case WAKER:
                return waker(), true;
        case TOKEN:
                return emit(how % REQUESTS, next_byte(), 1 + how / REQUESTS), true;
        case BURST:
                return emit(how % REQUESTS, 'x', 16u << how / REQUESTS % 8), true;
        case END: {
                struct request *request = nth_live(how % REQUESTS);

                if (request)
                        retire(request, SMV_END_EOS, SMV_OK);
                return true;
        }
        case OTHERS:
                return others_move(), true;
        case STOP:
                return stop(how), true;
        case HOLD:
                much = much % (world.kept_frames - world.handle_frames);
                return say_frame(client, world.handle_frames + much, false), true;
        case KEEP:
                much = much % (world.frame_count - world.kept_frames);
                return say_frame(client, world.kept_frames + much, false), true;
        case ACTION_N:
                break;
        }
        abort();
}

/* ---- the end of a script ---- */

/* True if nothing is under way and nothing is held. */
static void check_nothing_left(void)
{
        const struct edge *edge = world.edge;
        uint32_t index = 0;

        assert(list_is_empty(&edge->peers) && !edge->peer_count && !edge->channels_open);
        assert(!edge->live_count && !edge->jobs_out);
        assert(!admission_alive(edge->admission) && !admission_jobs(edge->admission));
        assert(!quota_next(edge->quota, &index));
        assert(!world.served.references && !nth_live(0));
        for (uint32_t i = 0; i < edge->channel_count; i++)
                assert(!edge->channels[i]);
}

/* Drops the resumable streams of a script: they would end only after a time that a run does not
 * have. */
static bool drop_resumable(void)
{
        bool some = false;

        for (uint64_t number = 1; number < world.drawn; number++) {
                struct resumable *resumable =
                        resumables_find(world.edge->resumables, getuid(), number);

                if (resumable)
                        resumable_drop(resumable);
                some |= resumable != NULL;
        }
        return some;
}

/* Every actor does all that it can; the world is quiet when that was nothing for some turns. */
static void clean_up(void)
{
        struct request *request;
        bool moved = others_move();

        while ((request = nth_live(0)) && retire(request, SMV_END_CANCELLED, SMV_OK))
                moved = true;
        moved |= drop_resumable() || !list_is_empty(&world.edge->peers) || world.edge->gone;
        world.quiet = moved ? 0 : world.quiet + 1;
        assert(++world.turns < TURNS_MAX);
        if (world.quiet < QUIET_TURNS || world.drained)
                return;
        check_nothing_left();
        world.drained = true;
        edge_drain(world.edge);
        edge_drain(world.edge);
        others_move(); /* they stop */
}

static void on_tick(void *arg)
{
        int r = loop_timer_set(world.tick, 0);

        (void)arg;
        assert(!r);
        while (world.script.at < world.script.end) {
                enum action action = next_byte() % ACTION_N;

                if (!act(action, next_byte()))
                        return;
        }
        if (!world.cleaning)
                for (uint32_t i = 0; i < CLIENTS; i++)
                        close_client(&world.clients[i]);
        world.cleaning = true;
        clean_up();
}

/* Counts sockets, epolls and eventfds only, because libFuzzer's symbolizer opens pipes at some
 * time. */
static uint32_t count_descriptors(void)
{
        DIR *directory = opendir("/proc/self/fd");
        const struct dirent *entry;
        uint32_t count = 0;

        assert(directory);
        while ((entry = readdir(directory))) {
                char name[8] = "";

                if (readlinkat(dirfd(directory), entry->d_name, name, sizeof(name) - 1) > 0)
                        count += !strncmp(name, "socket:", 7) || !strncmp(name, "anon_in", 7);
        }
        closedir(directory);
        return count;
}

static void check_descriptors(void)
{
        if (world.runs++ % RUNS_A_COUNT)
                return;
        if (world.runs == 1)
                world.descriptors = count_descriptors();
        assert(count_descriptors() == world.descriptors);
}

/* ---- life ---- */

static struct dialect dialect;
static struct token_trie *trie;
static const char chat_template[] =
        "{% for m in messages %}{{ m.role }}:{% if m.content is string %}{{ m.content }}"
        "{% else %}{{ raise_exception('content is no text') }}{% endif %}{% endfor %}";

static struct edge_conf edge_conf(void)
{
        return (struct edge_conf){
                .config = &world.config,
                .loop = world.loop,
                .admission = { .sched = { .blocks = 64,
                                          .user_blocks = 60,
                                          .slots = 8,
                                          .rows = 64,
                                          .context = 2048,
                                          .depth = 1,
                                          .requests_max = REQUESTS,
                                          .channels = CHANNELS,
                                          .prefix.pins = ANCHORS },
                               .max_tokens = 1024,
                               .requests_max = REQUESTS,
                               .record_bytes_max = publish_record_bytes_max,
                               .score_bytes_max = publish_score_bytes_max,
                               .row_bytes_max = publish_row_bytes_max,
                               .ask_bytes_max = publish_ask_bytes_max,
                               .end_bytes_max = publish_end_bytes_max,
                               .parts_bytes_max = publish_parts_bytes_max },
                .served = &world.served,
                .stats = &world.stats,
                .usage_snapshot = world.usage_snapshot,
                .bell = world.bell,
                .to_engine = world.to_engine,
                .from_engine = world.from_engine,
                .from_waker = world.from_waker,
                .to_text_worker = world.to_text_worker,
                .from_text_worker = world.from_text_worker,
        };
}

/* In place of libc's: scripts name handles and streams by small numbers. */
ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
        (void)flags;
        memset(bytes, 0, count);
        memcpy(bytes, &world.drawn, count < sizeof(world.drawn) ? count : sizeof(world.drawn));
        world.drawn++;
        return (ssize_t)count;
}

static uint64_t seed(void)
{
        return 42;
}

static void begin(const uint8_t *data, size_t count)
{
        struct edge_conf conf = edge_conf();
        uint64_t rung;
        int r;

        conf.admission.seed = seed;
        world.drawn = 1;
        (void)sys_read(world.bell, &rung, sizeof(rung));
        world.script = (struct script){ .at = data, .end = data + count };
        world.cleaning = world.drained = world.failed = false;
        world.turns = world.quiet = world.tokens = world.floods = 0;
        r = edge_new(&conf, &world.edge);
        assert(!r);
        r = loop_timer_set(world.tick, 0);
        assert(!r);
}

/* A script that drains may have stopped the edge before the script's end. */
static void end(void)
{
        struct mail mail;

        for (uint32_t i = 0; i < CLIENTS; i++)
                close_client(&world.clients[i]);
        check_nothing_left();
        while (text_worker())
                ;
        assert(!mailbox_take(world.to_engine, &mail, 1, 0));
        assert(!mailbox_take(world.from_engine, &mail, 1, 0));
        assert(!mailbox_take(world.to_waker, &mail, 1, 0));
        assert(!mailbox_take(world.from_waker, &mail, 1, 0));
        assert(!mailbox_take(world.from_text_worker, &mail, 1, 0));
        loop_timer_clear(world.tick);
        world.edge = edge_free(world.edge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count)
{
        int r;

        if (count > SCRIPT_MAX)
                return -1;
        begin(data, count);
        r = edge_run(world.edge);
        assert(r == (world.failed ? -EIO : 0));
        end();
        check_descriptors();
        return 0;
}

/* Reading /proc for every status would be most of the work, so replies omit it. */
static int no_files(const char *call, void *arg)
{
        (void)arg;
        return strcmp(call, "open") ? 0 : -EMFILE;
}

static int open_publish(void)
{
        const struct publish_conf conf = {
                .requests_max = REQUESTS,
                .channels = CHANNELS,
                .piece_max = tokenizer_piece_max(world.served.tokenizer),
                .dialect = world.served.dialect,
                .waker = world.to_waker,
        };

        return publish_new(&conf, &world.publish);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        int r;

        (void)argc;
        (void)argv;
        log_open(LOG_ERROR);
        sys_set_fault(no_files, NULL);
        world.config = (struct config){
                .fd = -1,
                .max_seqs = 4,
                .max_tokens = 1024,
                .uid_connections = CLIENTS - 1,
                .uid_requests = REQUESTS - 4,
                .uid_prompt_bytes = 48 << 10,
                .uid_handles = 6,
                .uid_blocks_percent = 95,
                .uid_cached_percent = 50,
                .uid_pinned_percent = 25,
                .uid_resumable = 3,
                .uid_resumable_bytes = 256 << 10,
                .resumable = 4,
                .publish = true,
                .uid_connects_burst = 1000000,
                .uid_connects_per_s = 1000000,
                .uid_constraint_bytes = 64 << 20,
                .constraints_kept = 1,
                .whole_row_streams = 1,
                .uid_ring_bytes = 16 << 20,
                .ring_bytes = 64 << 10,
                .frame_bytes = 128 << 10,
                .reply_bytes = 4 << 10,
                .hello_timeout_ms = 3600000,
                .frame_timeout_ms = 3600000,
                .connections = CHANNELS / 2,
                .requests = REQUESTS,
                .stall_timeout_ms = 60000,
                .drain_timeout_ms = 3600000,
        };
        strcpy(world.served.name, "tiny");
        world.served.context = 2048;
        world.served.traits = (struct traits){ .vocab = VOCAB, .context = 2048, .bos = BOS };
        for (uint32_t i = 0; i < CLIENTS; i++)
                world.clients[i].fd = -1;
        r = chat_open(&(struct chat_conf){ .plain = chat_template }, &world.served.chat);
        assert(!r && !chat_refusal(world.served.chat));
        r = tokenizer_open_bytes(VOCAB, &world.served.tokenizer);
        assert(!r);
        r = token_texts_trie(world.served.tokenizer, VOCAB, &trie);
        assert(!r);
        world.served.trie = trie;
        dialect_open(&(struct dialect_conf){ .tokenizer = world.served.tokenizer,
                                             .templates = { "<think>" } },
                     &dialect);
        world.served.dialect = &dialect;
        world.bell = sys_eventfd();
        assert(world.bell >= 0);
        r = mailbox_new(MAILS, -1, &world.to_engine);
        r |= mailbox_new(MAILS, -1, &world.from_engine);
        r |= mailbox_new(MAILS, -1, &world.to_waker);
        r |= mailbox_new(MAILS, world.bell, &world.from_waker);
        r |= mailbox_new(MAILS, -1, &world.to_text_worker);
        r |= mailbox_new(MAILS, world.bell, &world.from_text_worker);
        r |= usage_snapshot_new(CHANNELS, &world.usage_snapshot);
        r |= loop_new(&world.loop);
        r |= loop_timer_new(world.loop, on_tick, NULL, &world.tick);
        r |= open_publish();
        assert(!r);
        make_frames();
        return 0;
}
