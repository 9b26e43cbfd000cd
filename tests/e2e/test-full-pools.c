/*
 * Pools so small that most streams lose their blocks: conversations on handles, resumable streams,
 * forks and beams.  Each is bit for bit what it is alone in a large pool, with its logprobs.  On a
 * GPU (an emulated one) all of it is done with and without a swap.
 *
 * A gate makes it certain that the streams meet.  It is a stream with the whole pool reserved that
 * stalls, because its client does not read.  All others wait behind it, and begin at once when its
 * connection closes.  Short answers came before, so the forecast lets all of them begin.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samovar/client.h>

#include "tests/e2e/raw-client.h"

#define STREAMS_MAX 12u
#define TURNS       2u
#define ANSWER_KEPT 2u
#define LESSONS     16u /* so many short answers, and the forecast counts on them */
#define PARENTS     3u
#define FORKS_MAX   3u /* of each parent */
/* Together nearly as many tokens as a ring of RING_LEAST bytes holds, with all their logprobs. */
#define FILLERS         7u
#define FILLER_TOKENS   25u
#define BLOCK_POSITIONS 16u
#define BEAMERS         3u
#define BEAM_TOKENS     6u
#define BOS             256u
#define KEEP_MS         600000u
#define RING_LEAST      65536u

/* The sizes of the world, on this backend. */
struct sizes {
        uint32_t streams, tokens; /* how many at once, and the answer of each */
        uint32_t small, large;    /* pools, in blocks */
        uint32_t forks;           /* of each parent */
        uint32_t block_bytes;
};

/* All cases run in two worlds.  On the cpu these differ in the plans in flight only. */
struct world {
        const char *name, *depth;
        bool swaps;
};

static const struct world worlds[] = { { "with one plan in flight", "1", false },
                                       { "with two plans in flight", "2", false } };
static const struct world gpu_worlds[] = { { "without a swap", "1", false },
                                           { "with a swap", "2", true } };
static const struct world *world; /* in which the cases run now */

/* What streams are alone.  All cases use these; the first one that needs them makes them. */
static struct {
        struct stream *turns[STREAMS_MAX][TURNS]; /* the first turn is that of a prompt alone */
        struct stream *samples[STREAMS_MAX];      /* the first turn with sample index 1 */
} alone;

static bool is_on_gpu(void)
{
        return getenv("SMV_TEST_CUDA_LIBRARY") != NULL;
}

/* A block of the toy models has K and V of 16 positions, of a head of 32 halves in each layer. */
static struct sizes sizes(void)
{
        uint32_t layers = getenv("SMV_TEST_GPU_LAYERS") ? 3 : 1;

        if (is_on_gpu())
                return (struct sizes){ 6, 64, 16, 100, 1, layers * 2 * 16 * 32 * 2 };
        return (struct sizes){ STREAMS_MAX, 240, 48, 1024, 3, 2 * 16 * 8 * 2 };
}

/* With guesses, streams may be through before the pool is full. */
static void start(struct daemon_fixture *fixture, uint32_t blocks, uint32_t swap_blocks,
                  const char *depth)
{
        char pool[32], swap[32];

        snprintf(pool, sizeof(pool), "%u", blocks * sizes().block_bytes);
        snprintf(swap, sizeof(swap), "%u", swap_blocks ? swap_blocks * sizes().block_bytes + 1 : 0);
        START_DAEMON(fixture, "--kv-bytes", pool, "--swap-bytes", swap, "--pipeline-depth", depth,
                     "--threads", "1", "--max-seqs", "32", "--uid-requests", "64", "--ring-bytes",
                     "1M", "--admission-interactive", "reserve", "--stall-preempt-ms", "86400000",
                     "--uid-cached-percent", "100", "--uid-resumable", "32",
                     "--uid-resumable-bytes", "64M", "--gap-ms", "0", "--draft", "off", "--model",
                     is_on_gpu() ? env_path("TOY_MODEL") : make_quick_model(fixture, "1024"));
        assert_int_equal(fixture_status(fixture, "blocks.total"), blocks);
}

static void start_large(struct daemon_fixture *fixture)
{
        start(fixture, sizes().large, 0, "1");
}

static void start_small(struct daemon_fixture *fixture)
{
        start(fixture, sizes().small, world->swaps ? 4 * sizes().small : 0, world->depth);
}

/* ---- the gate ---- */

/* A client whose ring is as small as a ring may be; `leaves_ring`: it never reads it. */
static struct raw_client *greet_with_a_small_ring(const struct daemon_fixture *fixture,
                                                  bool leaves_ring)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        struct raw_client *client = raw_client_connect(fixture);

        client->transport = RAW_CLIENT_KICK;
        client->leaves_ring = leaves_ring;
        assert_true(raw_client_call(client, "op=s versions=I transport=s doorbell=s ring_bytes=u",
                                    "hello", versions, (size_t)2, "ring", "kick", RING_LEAST)
                            ->ok);
        return client;
}

static void send_filler(struct raw_client *client, uint32_t id, uint32_t n, uint32_t tokens)
{
        raw_client_send_frame(client,
                              "op=s id=u prompt=s n=u max_tokens=u logprobs=u priority=s "
                              "ignore_eos=y",
                              "generate", id, "tea", n, tokens, LOGPROBS_MOST - 1, "interactive",
                              1);
}

/* Fills nearly all of a ring.  Several streams at once take fewer steps. */
static void fill_ring(const struct daemon_fixture *fixture, struct raw_client *client)
{
        uint32_t id = client->last_id + 1;

        client->last_id += FILLERS;
        send_filler(client, id, FILLERS, FILLER_TOKENS);
        assert_true(raw_client_await_reply(client, id)->ok);
        fixture_await_status(fixture, "requests.open", 0);
}

static struct raw_client *close_gate(const struct daemon_fixture *fixture)
{
        struct raw_client *gate = greet_with_a_small_ring(fixture, true);

        fill_ring(fixture, gate);
        send_filler(gate, ++gate->last_id, 1, sizes().small * BLOCK_POSITIONS - 4);
        assert_true(raw_client_await_reply(gate, gate->last_id)->ok);
        fixture_await_status(fixture, "requests.stalled", 1);
        return gate;
}

/* Returns when the streams behind the gate have begun, or soon will. */
static void open_gate(const struct daemon_fixture *fixture, struct raw_client *gate,
                      uint32_t behind)
{
        fixture_await_status(fixture, "requests.waiting", behind);
        raw_client_close(gate);
}

static void teach_short_answers(struct raw_client *client, const char *priority)
{
        const struct want want = {
                .prompt = "T", .max_tokens = 1, .ignore_eos = true, .priority = priority
        };
        uint32_t ids[LESSONS];

        for (uint32_t i = 0; i < LESSONS; i++)
                ids[i] = raw_client_generate(client, &want);
        for (uint32_t i = 0; i < LESSONS; i++)
                raw_client_await_end(client, ids[i]);
}

/* ---- the streams ---- */

/* Stream `i` of a case: some are greedy, some are not, and their logprobs have several widths. */
#define ASK                " max_tokens=u temperature=f seed=u logprobs=u priority=s ignore_eos=y"
#define ASKED(i, priority) sizes().tokens, (i) % 4 ? 1.0 : 0.0, (i), (i) % 3 * 2, (priority), 1

static const char *prompt_of(uint32_t i)
{
        static const char words[] = "A samovar, and tea";

        return words + i % STREAMS_MAX;
}

static struct stream *end_of(struct raw_client *client, uint32_t id)
{
        const struct reply *reply = raw_client_await_reply(client, id);

        if (!reply->ok)
                fail_msg("%s", reply->message);
        return raw_client_await_end(client, id);
}

static uint32_t begin_text(struct raw_client *client, uint32_t i)
{
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client, "op=s id=u prompt=s" ASK, "generate", id, prompt_of(i),
                              ASKED(i, "normal"));
        return id;
}

static uint32_t begin_turn(struct raw_client *client, uint64_t handle, uint32_t i,
                           const char *priority)
{
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client, "op=s id=u handle=q" ASK, "generate", id, handle,
                              ASKED(i, priority));
        return id;
}

/* What happened to the streams of one case, by their ENDs. */
struct losses {
        uint64_t before; /* `requests.blocks_lost` in status */
        uint32_t streams, losers, count, recomputed, restored;
};

static struct losses begin_losses(const struct daemon_fixture *fixture)
{
        return (struct losses){ .before = fixture_status(fixture, "requests.blocks_lost") };
}

static void note_end(struct losses *losses, const struct stream *stream)
{
        losses->streams++;
        losses->losers += stream->end.blocks_lost > 0;
        losses->count += stream->end.blocks_lost;
        losses->recomputed += stream->end.recomputed;
        losses->restored += stream->end.restored;
}

/* `others`: there were more streams than those noted. */
static void assert_half_lost(const struct daemon_fixture *fixture, const struct losses *losses,
                             bool others)
{
        uint64_t said = fixture_status(fixture, "requests.blocks_lost") - losses->before;

        printf("# %u of %u streams lost blocks, %u times of %u; %u positions again, %u restored\n",
               losses->losers, losses->streams, losses->count, (unsigned)said, losses->recomputed,
               losses->restored);
        assert_true(2 * losses->losers >= losses->streams);
        assert_in_range(losses->count, losses->losers, said);
        assert_true(others || losses->count == said);
        assert_true(losses->recomputed + losses->restored > 0);
        assert_true(world->swaps ? losses->restored > 0 : !losses->restored);
}

/* As assert_same_stream(), but for the text: it may have begun within a character. */
static void assert_same_tokens(const struct stream *a, const struct stream *b)
{
        assert_int_equal(a->token_count, b->token_count);
        assert_memory_equal(a->tokens, b->tokens, a->token_count * sizeof(*a->tokens));
        assert_int_equal(a->logprob_count, b->logprob_count);
        assert_int_equal(a->logprobs_each, b->logprobs_each);
        assert_memory_equal(a->logprobs, b->logprobs,
                            a->logprob_count * a->logprobs_each * sizeof(*a->logprobs));
        assert_int_equal(a->end.reason, b->end.reason);
        assert_int_equal(a->end.prompt_tokens, b->end.prompt_tokens);
}

/* ---- handles ---- */

static uint64_t open_handle(struct raw_client *client, uint32_t i)
{
        struct reply *reply =
                raw_client_call(client, "op=s prompt=s keep_ms=u", "open", prompt_of(i), KEEP_MS);

        if (!reply->ok)
                fail_msg("%s", reply->message);
        return reply_uint(reply, "handle");
}

/* Keeps the beginning of the answer only, so that all conversations fit the pool to begin with. */
static void prepare_next_turn(struct raw_client *client, uint64_t handle, uint32_t i)
{
        uint32_t prompt = 1 + (uint32_t)strlen(prompt_of(i));

        assert_true(raw_client_call(client, "op=s handle=q length=u", "truncate", handle,
                                    prompt + ANSWER_KEPT)
                            ->ok);
        assert_true(raw_client_call(client, "op=s handle=q text=s", "append", handle, "!")->ok);
}

static void close_handle(struct raw_client *client, uint64_t handle)
{
        assert_true(raw_client_call(client, "op=s handle=q", "close", handle)->ok);
}

static void converse_alone(struct raw_client *client, uint32_t i)
{
        uint64_t handle = open_handle(client, i);

        for (uint32_t turn = 0; turn < TURNS; turn++) {
                uint32_t id = begin_turn(client, handle, i, "normal");

                alone.turns[i][turn] = stream_copy(end_of(client, id));
                prepare_next_turn(client, handle, i);
        }
        close_handle(client, handle);
}

static void sample_alone(struct raw_client *client, uint32_t i)
{
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client, "op=s id=u prompt=s sample_index=u" ASK, "generate", id,
                              prompt_of(i), 1u, ASKED(i, "normal"));
        alone.samples[i] = stream_copy(end_of(client, id));
}

/* One after the other, in a pool with space for all of them. */
static void need_streams_alone(struct daemon_fixture *fixture)
{
        struct raw_client *client;

        if (alone.turns[0][0])
                return;
        start_large(fixture);
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < sizes().streams; i++)
                converse_alone(client, i);
        for (uint32_t i = 0; i < sizes().streams / 2; i++)
                sample_alone(client, i);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void take_turns(struct daemon_fixture *fixture, struct raw_client *client,
                       const uint64_t *handles, uint32_t turn)
{
        /* a class of its own, of which the forecast knows short answers only */
        const char *priority = turn ? "background" : "normal";
        struct losses losses;
        struct raw_client *gate;
        uint32_t ids[STREAMS_MAX];

        teach_short_answers(client, priority);
        losses = begin_losses(fixture);
        gate = close_gate(fixture);
        for (uint32_t i = 0; i < sizes().streams; i++)
                ids[i] = begin_turn(client, handles[i], i, priority);
        open_gate(fixture, gate, sizes().streams);
        for (uint32_t i = 0; i < sizes().streams; i++) {
                struct stream *stream = end_of(client, ids[i]);

                assert_same_stream(stream, alone.turns[i][turn]);
                note_end(&losses, stream);
                prepare_next_turn(client, handles[i], i);
        }
        assert_half_lost(fixture, &losses, false);
}

static void conversations_on_handles_are_as_when_alone(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint64_t handles[STREAMS_MAX];

        need_streams_alone(fixture);
        start_small(fixture);
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < sizes().streams; i++)
                handles[i] = open_handle(client, i);
        for (uint32_t turn = 0; turn < TURNS; turn++)
                take_turns(fixture, client, handles, turn);
        for (uint32_t i = 0; i < sizes().streams; i++)
                close_handle(client, handles[i]);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* ---- resumable streams ---- */

/* A resumable stream; every second one is on a handle, which outlives its connection as well. */
struct kept {
        uint64_t resume_id, handle; /* handle 0: none */
};

static struct kept begin_kept(struct raw_client *client, uint32_t i)
{
        struct kept kept = { .handle = i % 2 ? open_handle(client, i) : 0 };
        uint32_t id = ++client->last_id;
        const struct reply *reply;

        if (kept.handle)
                raw_client_send_frame(client, "op=s id=u handle=q keep_ms=u" ASK, "generate", id,
                                      kept.handle, KEEP_MS, ASKED(i, "normal"));
        else
                raw_client_send_frame(client, "op=s id=u prompt=s keep_ms=u" ASK, "generate", id,
                                      prompt_of(i), KEEP_MS, ASKED(i, "normal"));
        reply = raw_client_await_reply(client, id);
        if (!reply->ok)
                fail_msg("%s", reply->message);
        kept.resume_id = reply_uint(reply, "resume_id");
        return kept;
}

/* Reads all of them from their first record, and compares. */
static void attach_and_compare(const struct daemon_fixture *fixture, const struct kept *kept,
                               struct losses *losses)
{
        /* the records of an attached stream come in frames, whichever transport began it */
        struct raw_client *client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        uint32_t ids[STREAMS_MAX];

        for (uint32_t i = 0; i < sizes().streams; i++) {
                ids[i] = ++client->last_id;
                raw_client_send_frame(client, "op=s id=u resume_id=q", "attach", ids[i],
                                      kept[i].resume_id);
        }
        for (uint32_t i = 0; i < sizes().streams; i++) {
                struct stream *stream = end_of(client, ids[i]);

                assert_same_stream(stream, alone.turns[i][0]);
                note_end(losses, stream);
        }
        raw_client_close(client);
}

static void drop_all(const struct daemon_fixture *fixture, const struct kept *kept)
{
        struct raw_client *client = raw_client_greet(fixture);

        for (uint32_t i = 0; i < sizes().streams; i++) {
                assert_true(
                        raw_client_call(client, "op=s resume_id=q", "drop", kept[i].resume_id)->ok);
                if (kept[i].handle)
                        close_handle(client, kept[i].handle);
        }
        raw_client_close(client);
}

/* Their connection closes before they begin.  Others read them while they run, and once more. */
static void resumable_streams_are_as_when_alone(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct losses losses, again = { 0 };
        struct raw_client *client, *gate;
        struct kept kept[STREAMS_MAX];

        need_streams_alone(fixture);
        start_small(fixture);
        client = raw_client_greet(fixture);
        teach_short_answers(client, "normal");
        losses = begin_losses(fixture);
        gate = close_gate(fixture);
        for (uint32_t i = 0; i < sizes().streams; i++)
                kept[i] = begin_kept(client, i);
        raw_client_close(client);
        open_gate(fixture, gate, sizes().streams);
        attach_and_compare(fixture, kept, &losses);
        assert_half_lost(fixture, &losses, false);
        attach_and_compare(fixture, kept, &again);
        assert_int_equal(again.count, losses.count);
        drop_all(fixture, kept);
        fixture_stop(fixture);
}

/* ---- forks ---- */

/* Each parent is forked while it waits, so its forks branch at the end of the prompt. */
static void begin_families(struct raw_client *client, uint32_t *ids, uint32_t families)
{
        for (uint32_t i = 0; i < families; i++) {
                ids[2 * i] = begin_text(client, i);
                assert_true(raw_client_await_reply(client, ids[2 * i])->ok);
                ids[2 * i + 1] = ++client->last_id;
                raw_client_send_frame(client, "op=s id=u stream=u count=u", "fork", ids[2 * i + 1],
                                      ids[2 * i], 1u);
                assert_true(raw_client_await_reply(client, ids[2 * i + 1])->ok);
        }
}

/* A fork is what its parent's request is with the next sample index. */
static void forks_of_waiting_streams_are_as_when_alone(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint32_t ids[STREAMS_MAX], count = sizes().streams;
        struct raw_client *client, *gate;
        struct losses losses;

        need_streams_alone(fixture);
        start_small(fixture);
        client = raw_client_greet(fixture);
        teach_short_answers(client, "normal");
        losses = begin_losses(fixture);
        gate = close_gate(fixture);
        begin_families(client, ids, count / 2);
        open_gate(fixture, gate, count);
        for (uint32_t i = 0; i < count; i++) {
                struct stream *stream = raw_client_await_end(client, ids[i]);

                assert_same_stream(stream, i % 2 ? alone.samples[i / 2] : alone.turns[i / 2][0]);
                note_end(&losses, stream);
        }
        assert_half_lost(fixture, &losses, false);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A stream of a family whose parent was forked while it ran. */
struct member {
        uint32_t id, parent, sample_index;
        struct stream *stream;
};

static const char *const parent_prompts[PARENTS] = { "One", "And", "The" };

#define MEMBERS_MAX (PARENTS * (1 + FORKS_MAX))
#define WIDE        " max_tokens=u temperature=f seed=u logprobs=u ignore_eos=y"
#define WIDELY      1.0, 7u, LOGPROBS_MOST - 1, 1

static void fork_stalled(struct raw_client *client, struct member *members, uint32_t parent)
{
        uint32_t id = client->last_id + 1;

        client->last_id += sizes().forks;
        raw_client_send_frame(client, "op=s id=u stream=u count=u", "fork", id, members[parent].id,
                              sizes().forks);
        assert_true(raw_client_await_reply(client, id)->ok);
        for (uint32_t i = 0; i < sizes().forks; i++)
                members[PARENTS + parent * sizes().forks + i] =
                        (struct member){ .id = id + i, .parent = parent, .sample_index = 1 + i };
}

static uint32_t member_tokens(void)
{
        return sizes().tokens * 5 / 4;
}

static uint32_t member_count(void)
{
        return PARENTS * (1 + sizes().forks);
}

/*
 * While the ring is set aside, the client does not read it.  So it fills, and the parents stall
 * after some tokens.  There they are forked, and then all go on.
 */
static void run_members(struct daemon_fixture *fixture, struct member *members)
{
        struct losses losses = begin_losses(fixture);
        struct raw_client *client = greet_with_a_small_ring(fixture, false);
        struct raw_client_ring *ring = client->ring;

        client->ring = NULL;
        fill_ring(fixture, client);
        for (uint32_t i = 0; i < PARENTS; i++) {
                members[i] = (struct member){ .id = ++client->last_id, .parent = i };
                raw_client_send_frame(client, "op=s id=u prompt=s" WIDE, "generate", members[i].id,
                                      parent_prompts[i], member_tokens(), WIDELY);
        }
        fixture_await_status(fixture, "requests.stalled", PARENTS);
        for (uint32_t i = 0; i < PARENTS; i++)
                fork_stalled(client, members, i);
        client->ring = ring;
        for (uint32_t i = 0; i < member_count(); i++) {
                struct stream *stream = raw_client_await_end(client, members[i].id);

                members[i].stream = stream_copy(stream);
                note_end(&losses, stream);
        }
        assert_half_lost(fixture, &losses, false);
        raw_client_close(client);
}

/* Sends the tokens until the fork branched as a prompt, with its sample index. */
static void replay_member(struct raw_client *client, const struct member *members, uint32_t which)
{
        const struct member *member = &members[which], *parent = &members[member->parent];
        const char *text = parent_prompts[member->parent];
        uint32_t branched = member->stream->end.prompt_tokens, tokens[512], id = ++client->last_id;
        uint32_t prompt = 1 + (uint32_t)strlen(text);

        assert_in_range(branched, prompt, prompt + member_tokens() - 1);
        tokens[0] = BOS;
        for (uint32_t i = 1; i < prompt; i++)
                tokens[i] = (uint8_t)text[i - 1];
        memcpy(tokens + prompt, parent->stream->tokens, (branched - prompt) * sizeof(*tokens));
        raw_client_send_frame(client, "op=s id=u tokens=I sample_index=u" WIDE, "generate", id,
                              tokens, (size_t)branched, member->sample_index,
                              member_tokens() - (branched - prompt), WIDELY);
        assert_same_tokens(end_of(client, id), member->stream);
}

/* The ring has space for some tokens, so at least one parent had a token before it stalled. */
static void assert_some_branched_late(const struct member *members)
{
        uint32_t late = 0;

        for (uint32_t i = PARENTS; i < member_count(); i++)
                late += members[i].stream->end.prompt_tokens >
                        1 + strlen(parent_prompts[members[i].parent]);
        assert_true(late > 0);
}

static void forks_of_running_streams_are_as_when_alone(void **state)
{
        struct member members[MEMBERS_MAX] = { 0 };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        start_small(fixture);
        client = raw_client_greet(fixture);
        teach_short_answers(client, "normal");
        raw_client_close(client);
        run_members(fixture, members);
        assert_some_branched_late(members);
        fixture_stop(fixture);
        start_large(fixture);
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < member_count(); i++)
                replay_member(client, members, i);
        raw_client_close(client);
        fixture_stop(fixture);
        for (uint32_t i = 0; i < member_count(); i++)
                stream_free(members[i].stream);
}

/* ---- beams ---- */

static const char *const beam_prompts[BEAMERS] = { "Once upon a time there was a samovar, and",
                                                   "Twice upon a time there were two of them, and",
                                                   "The guests came, and" };

/* A beam search, which a thread of its own runs; it asserts nothing. */
struct search {
        const struct daemon_fixture *fixture;
        uint32_t which;
        pthread_t thread;
        int error;
        size_t count;
        double scores[4];
        size_t token_counts[4];
        uint32_t tokens[4][BEAM_TOKENS];
};

static void note_beam(struct search *search, const struct smv_beam_result *beam)
{
        size_t at = search->count++;

        search->scores[at] = beam->score;
        search->token_counts[at] = beam->token_count;
        memcpy(search->tokens[at], beam->tokens, beam->token_count * sizeof(*beam->tokens));
}

static void *search_beams(void *arg)
{
        struct search *search = arg;
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = search->fixture->socket,
                                  .transport = raw_client_transport() == RAW_CLIENT_SOCKET
                                                       ? SMV_TRANSPORT_SOCKET
                                                       : SMV_TRANSPORT_RING };
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = beam_prompts[search->which],
                                    .max_tokens = BEAM_TOKENS };
        struct smv_beam beam = { SMV_SIZE(smv_beam), .start = &ask, .width = 4 };
        const struct smv_beam_result *found;
        struct smv_client *client;
        size_t count = 0;

        search->error = smv_connect(&at, &client);
        if (search->error)
                return NULL;
        search->error = smv_beam(client, &beam, &found, &count);
        for (size_t i = 0; !search->error && i < count; i++)
                note_beam(search, &found[i]);
        smv_close(client);
        return NULL;
}

static void assert_same_beams(const struct search *a, const struct search *b)
{
        assert_int_equal(a->error, 0);
        assert_int_equal(b->error, 0);
        assert_true(a->count > 0);
        assert_int_equal(a->count, b->count);
        for (size_t i = 0; i < a->count; i++) {
                assert_int_equal(a->token_counts[i], b->token_counts[i]);
                assert_memory_equal(a->tokens[i], b->tokens[i],
                                    a->token_counts[i] * sizeof(*a->tokens[i]));
                assert_memory_equal(&a->scores[i], &b->scores[i], sizeof(a->scores[i]));
        }
}

static void search_alone(struct daemon_fixture *fixture, struct search *searches)
{
        start_large(fixture);
        for (uint32_t i = 0; i < BEAMERS; i++) {
                searches[i] = (struct search){ .fixture = fixture, .which = i };
                search_beams(&searches[i]);
        }
        fixture_stop(fixture);
}

/* The searches take their steps while the streams beside them fill the pool. */
static void beams_beside_streams_are_as_when_alone(void **state)
{
        struct search beams_alone[BEAMERS], beams[BEAMERS];
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *gate;
        uint32_t ids[STREAMS_MAX];
        struct losses losses;

        search_alone(fixture, beams_alone);
        need_streams_alone(fixture);
        start_small(fixture);
        client = raw_client_greet(fixture);
        teach_short_answers(client, "normal");
        losses = begin_losses(fixture);
        gate = close_gate(fixture);
        for (uint32_t i = 0; i < BEAMERS; i++) {
                beams[i] = (struct search){ .fixture = fixture, .which = i };
                assert_int_equal(pthread_create(&beams[i].thread, NULL, search_beams, &beams[i]),
                                 0);
        }
        for (uint32_t i = 0; i < sizes().streams; i++)
                ids[i] = begin_text(client, i);
        open_gate(fixture, gate, sizes().streams + BEAMERS);
        for (uint32_t i = 0; i < BEAMERS; i++)
                assert_int_equal(pthread_join(beams[i].thread, NULL), 0);
        for (uint32_t i = 0; i < BEAMERS; i++)
                assert_same_beams(&beams[i], &beams_alone[i]);
        for (uint32_t i = 0; i < sizes().streams; i++) {
                struct stream *stream = end_of(client, ids[i]);

                assert_same_stream(stream, alone.turns[i][0]);
                note_end(&losses, stream);
        }
        assert_half_lost(fixture, &losses, true);
        raw_client_close(client);
        fixture_stop(fixture);
}

static int forget(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < STREAMS_MAX; i++) {
                for (uint32_t turn = 0; turn < TURNS; turn++)
                        alone.turns[i][turn] = stream_free(alone.turns[i][turn]);
                alone.samples[i] = stream_free(alone.samples[i]);
        }
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(conversations_on_handles_are_as_when_alone),
                DAEMON_TEST(resumable_streams_are_as_when_alone),
                DAEMON_TEST(forks_of_waiting_streams_are_as_when_alone),
                DAEMON_TEST(forks_of_running_streams_are_as_when_alone),
                DAEMON_TEST(beams_beside_streams_are_as_when_alone),
        };
        int failed = 0;

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        for (uint32_t i = 0; i < 2; i++) {
                world = is_on_gpu() ? &gpu_worlds[i] : &worlds[i];
                failed += cmocka_run_group_tests_name(world->name, tests, NULL, i ? forget : NULL);
        }
        return failed;
}
