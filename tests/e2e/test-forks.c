/*
 * Forks of live streams, and several streams of one prompt, by clients that can verify them.  A
 * stream that was forked, wherever and however often, must bring what its tokens bring when they
 * are sent as a whole, with the same seed and sample index.  The text that its parents had shown
 * until it branched, and the text that it shows, are one text.
 *
 * A party is several families that live at once.  Random streams of them are forked at random
 * moments, deeper and deeper, while some are cancelled.  When all have ended each is replayed from
 * scratch.  The toy model's tokens are bytes, so the test can make its texts from them, and cut
 * them at a stop string with code of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samovar/client.h>

#include "tests/e2e/raw-client.h"

#define FAMILIES    3
#define MEMBERS     40 /* streams of one family, at most */
#define CONNECTIONS 2
#define CONTEXT     512
#define BOS         256u
#define PENALTIES   " repetition_penalty=f dry_multiplier=f no_repeat_ngram=u"
#define REST                                                                                       \
        " n=u sample_index=u max_tokens=u temperature=f seed=q priority=s ignore_eos=y" PENALTIES

static const char prompt_words[] = "once upon a time there was a samovar and all the guests ";

/* The sampling options of a stream. */
struct drawing {
        double temperature;
        uint64_t seed;
};

struct member {
        uint32_t id;
        struct member *parent; /* NULL: it was begun by the generate */
        struct drawing drawing;
        uint32_t sample_index;
        uint32_t max_tokens; /* its own; 0: the number that its parent had left */
        bool cancelled;
        struct stream *stream; /* set once the stream has ended */
        uint32_t replay;       /* the id of its replay */

        /* Computed when it has ended: all its tokens, and the text of those that are not prompt. */
        uint32_t tokens[CONTEXT];
        uint32_t count, branched, most;
        char text[CONTEXT];
        size_t text_bytes;
};

struct family {
        struct raw_client *client;
        uint32_t prompt[CONTEXT], prompt_count;
        const char *stop, *priority;
        bool ignore_eos;
        /* Penalties of prompt and answer: a replay has all tokens as its prompt. */
        double repetition, dry;
        uint32_t ngram;
        struct member members[MEMBERS];
        uint32_t count, sample_indices; /* that were used */
        uint32_t forks_left;
};

static struct counts {
        uint32_t families, members, forks, late, orphans, stops, held;
} counts;

/* ---- life ---- */

static struct member *add_stream(struct family *family, uint32_t id)
{
        struct member *member = &family->members[family->count++];

        assert_true(family->count <= MEMBERS);
        *member = (struct member){ .id = id };
        counts.members++;
        return member;
}

static void begin_family(struct family *family, struct raw_client *client)
{
        static const char *const stops[] = { NULL, NULL, NULL, "a", "aa", "oo ", "ee", ". " };
        static const char *const priorities[] = { "interactive", "normal", "normal", "background" };
        struct drawing drawing = { .temperature = random_below(4) ? 1.2 : 0,
                                   .seed = random_below(1000) };
        uint32_t n = random_below(3) ? 1 : 1 + random_below(4), id = client->last_id + 1;
        uint32_t max_tokens = 1 + random_below(120),
                 sample_index = random_below(3) ? 0 : random_below(9);
        char text[CONTEXT] = "";

        *family = (struct family){ .client = client,
                                   .prompt_count = 1 + random_below(200),
                                   .stop = stops[random_below(8)],
                                   .priority = priorities[random_below(4)],
                                   .ignore_eos = random_below(2),
                                   .repetition = random_below(3) ? 1 : 1.2,
                                   .dry = random_below(3) ? 0 : 0.8,
                                   .ngram = random_below(4) ? 0 : 3,
                                   .forks_left = random_below(6) };
        family->prompt[0] = BOS;
        for (uint32_t i = 1; i < family->prompt_count; i++)
                family->prompt[i] = (uint8_t)prompt_words[i % (sizeof(prompt_words) - 1)];
        for (uint32_t i = 1; i < family->prompt_count; i++)
                text[i - 1] = (char)family->prompt[i];
        client->last_id += n;
        if (random_below(2))
                raw_client_send_frame(client,
                                      family->stop ? "op=s id=u tokens=I" REST " stop=s"
                                                   : "op=s id=u tokens=I" REST,
                                      "generate", id, family->prompt, (size_t)family->prompt_count,
                                      n, sample_index, max_tokens, drawing.temperature,
                                      drawing.seed, family->priority, family->ignore_eos,
                                      family->repetition, family->dry, family->ngram, family->stop);
        else
                raw_client_send_frame(client,
                                      family->stop ? "op=s id=u prompt=s" REST " stop=s"
                                                   : "op=s id=u prompt=s" REST,
                                      "generate", id, text, n, sample_index, max_tokens,
                                      drawing.temperature, drawing.seed, family->priority,
                                      family->ignore_eos, family->repetition, family->dry,
                                      family->ngram, family->stop);
        for (uint32_t i = 0; i < n; i++) {
                struct member *member = add_stream(family, id + i);

                member->drawing = drawing;
                member->sample_index = sample_index + i;
                member->max_tokens = max_tokens;
        }
        family->sample_indices = sample_index + n;
        counts.families++;
}

static bool has_ended(const struct family *family, const struct member *member)
{
        const struct stream *stream = raw_client_stream(family->client, member->id);

        return stream && stream->ended;
}

static void cancel(const struct family *family, struct member *member)
{
        struct raw_client *client = family->client;

        member->cancelled = true;
        raw_client_send_frame(client, "op=s id=u stream=u", "cancel", ++client->last_id,
                              member->id);
}

static void send_fork(struct raw_client *client, uint32_t id, uint32_t stream, uint32_t count,
                      const struct drawing *drawing, uint32_t max_tokens)
{
        if (drawing && max_tokens)
                raw_client_send_frame(
                        client, "op=s id=u stream=u count=u temperature=f seed=q max_tokens=u",
                        "fork", id, stream, count, drawing->temperature, drawing->seed, max_tokens);
        else if (drawing)
                raw_client_send_frame(client, "op=s id=u stream=u count=u temperature=f seed=q",
                                      "fork", id, stream, count, drawing->temperature,
                                      drawing->seed);
        else if (max_tokens)
                raw_client_send_frame(client, "op=s id=u stream=u count=u max_tokens=u", "fork", id,
                                      stream, count, max_tokens);
        else
                raw_client_send_frame(client, "op=s id=u stream=u count=u", "fork", id, stream,
                                      count);
}

/* The parent may be cancelled right after; it may also have ended without our knowing it. */
static void fork_stream(struct family *family, struct member *parent)
{
        struct raw_client *client = family->client;
        struct drawing drawing = parent->drawing;
        bool other = !random_below(3), over = parent->cancelled || has_ended(family, parent);
        uint32_t count = 1 + random_below(3),
                 max_tokens = random_below(2) ? 1 + random_below(60) : 0;
        uint32_t id = client->last_id + 1;
        struct reply *reply;

        if (family->count + count > MEMBERS)
                return;
        if (other)
                drawing = (struct drawing){ .temperature = 0.9, .seed = random_below(1000) };
        client->last_id += count;
        send_fork(client, id, parent->id, count, other ? &drawing : NULL, max_tokens);
        if (!parent->cancelled && !random_below(4))
                cancel(family, parent);
        reply = raw_client_await_reply(client, id);
        counts.forks++;
        if (!reply->ok) {
                if (reply->code != SMV_NO_STREAM)
                        fail_msg("%s", reply->message);
                assert_string_equal(reply->field, "stream");
                if (!parent->cancelled) /* it had ended, and its END is on its way */
                        assert_int_not_equal(raw_client_await_end(client, parent->id)->end.reason,
                                             SMV_END_CANCELLED);
                counts.late++;
                return;
        }
        assert_false(over);
        assert_int_equal(reply_uint(reply, "sample_index"), family->sample_indices);
        for (uint32_t i = 0; i < count; i++) {
                struct member *member = add_stream(family, id + i);

                member->parent = parent;
                member->drawing = drawing;
                member->sample_index = family->sample_indices + i;
                member->max_tokens = max_tokens;
        }
        family->sample_indices += count;
}

/* Perhaps forks or cancels one of the streams now. */
static bool act(struct family *family)
{
        struct member *member = &family->members[random_below(family->count)];
        const struct stream *stream = raw_client_stream(family->client, member->id);
        uint32_t moment = random_below(40);

        if (!family->forks_left)
                return false;
        if (stream && stream->token_count < moment && !stream->ended)
                return true;
        family->forks_left--;
        if (!random_below(8) && !member->cancelled)
                cancel(family, member);
        else
                fork_stream(family, member);
        return true;
}

/* ---- after they have ended ---- */

static uint32_t add_text(uint32_t token, char *text, uint32_t bytes)
{
        assert_true(bytes < CONTEXT);
        if (token < 256)
                text[bytes++] = (char)token;
        return bytes;
}

/* The text that its parents had shown when it branched, and then its own. */
static void join_texts(struct member *member, uint32_t prompt_count)
{
        const struct member *parent = member->parent;
        const struct stream *stream = member->stream;
        size_t before = 0;

        if (parent && member->branched > parent->branched)
                before = parent->text_bytes - parent->stream->text_bytes +
                         parent->stream->text_ends[member->branched - parent->branched - 1];
        else if (parent)
                before = parent->text_bytes - parent->stream->text_bytes;
        assert_true(before + stream->text_bytes <= CONTEXT);
        if (before)
                memcpy(member->text, parent->text, before);
        if (stream->text_bytes)
                memcpy(member->text + before, stream->text, stream->text_bytes);
        member->text_bytes = before + stream->text_bytes;
        if (before < member->branched - prompt_count)
                counts.held++;
}

/* Computes all tokens and text of a stream, and the room it had: its parents come before it. */
static void compute_tokens(struct family *family, struct member *member)
{
        const struct stream *stream = member->stream =
                raw_client_await_end(family->client, member->id);
        const uint32_t *from = family->prompt;
        uint32_t most = family->prompt_count + family->members[0].max_tokens;

        if (stream->end.code == SMV_NO_STREAM) {
                assert_non_null(member->parent);
                counts.orphans++;
                return;
        }
        member->branched = stream->end.prompt_tokens;
        if (member->parent) {
                assert_in_range(member->branched, member->parent->branched, member->parent->count);
                from = member->parent->tokens;
                most = member->max_tokens ? member->branched + member->max_tokens
                                          : member->parent->most;
        }
        member->most = most;
        assert_true(member->branched + stream->token_count <= most);
        memcpy(member->tokens, from, member->branched * sizeof(*from));
        if (stream->token_count)
                memcpy(member->tokens + member->branched, stream->tokens,
                       stream->token_count * sizeof(*from));
        member->count = member->branched + (uint32_t)stream->token_count;
        join_texts(member, family->prompt_count);
}

static void send_replay(struct family *family, struct raw_client *other, struct member *member)
{
        if (member->stream->end.code == SMV_NO_STREAM)
                return;
        member->replay = ++other->last_id;
        raw_client_send_frame(other,
                              "op=s id=u tokens=I max_tokens=u temperature=f seed=q sample_index=u "
                              "ignore_eos=y" PENALTIES,
                              "generate", member->replay, member->tokens, (size_t)member->branched,
                              member->most - member->branched, member->drawing.temperature,
                              member->drawing.seed, member->sample_index, family->ignore_eos,
                              family->repetition, family->dry, family->ngram);
}

/*
 * Its tokens are the replay's, which has no stop string.  So the test makes the text of the tokens
 * after the prompt, and the text ends where a stop string is complete.
 */
static void check_against_replay(const struct family *family, struct raw_client *other,
                                 const struct member *member)
{
        const struct stream *stream = member->stream, *whole;
        char text[CONTEXT + 1];
        uint32_t bytes = 0, i = 0;
        enum smv_reason reason;
        const char *stop = NULL;

        if (!member->replay)
                return;
        whole = raw_client_await_end(other, member->replay);
        reason = (enum smv_reason)whole->end.reason;
        for (i = family->prompt_count; i < member->branched; i++)
                bytes = add_text(member->tokens[i], text, bytes);
        for (i = 0; i < whole->token_count && !stop; i++) {
                if (i == stream->token_count && stream->end.reason == SMV_END_CANCELLED)
                        break;
                assert_true(i < stream->token_count);
                assert_int_equal(stream->tokens[i], whole->tokens[i]);
                bytes = add_text(whole->tokens[i], text, bytes);
                text[bytes] = '\0';
                stop = family->stop ? strstr(text, family->stop) : NULL;
        }
        assert_int_equal(i, stream->token_count);
        if (stop) {
                reason = SMV_END_STOP;
                bytes = (uint32_t)(stop - text);
                counts.stops++;
        }
        if (stream->end.reason != SMV_END_CANCELLED || !member->cancelled)
                assert_int_equal(stream->end.reason, reason);
        assert_int_equal(member->text_bytes, bytes);
        assert_memory_equal(member->text, text, bytes);
}

static void check(struct family *family, struct raw_client *other)
{
        for (uint32_t i = 0; i < family->count; i++) {
                compute_tokens(family, &family->members[i]);
                send_replay(family, other, &family->members[i]);
        }
        for (uint32_t i = 0; i < family->count; i++)
                check_against_replay(family, other, &family->members[i]);
}

static void run_families(struct raw_client **clients, struct raw_client *other,
                         struct family *families)
{
        uint32_t count = 1 + random_below(FAMILIES);
        bool more = true;

        for (uint32_t i = 0; i < count; i++)
                begin_family(&families[i], clients[random_below(CONNECTIONS)]);
        for (uint32_t i = 0; i < count; i++)
                assert_true(
                        raw_client_await_reply(families[i].client, families[i].members[0].id)->ok);
        while (more) {
                more = false;
                for (uint32_t i = 0; i < count; i++)
                        more |= act(&families[i]);
                if (random_below(10)) /* otherwise the clients are slow to read */
                        raw_clients_poll(clients, CONNECTIONS, 1);
                else
                        sleep_ms(random_below(5));
        }
        for (uint32_t i = 0; i < count; i++)
                check(&families[i], other);
}

static void run_random_forks(struct daemon_fixture *fixture, uint32_t times)
{
        struct family *families = calloc(FAMILIES, sizeof(*families));
        uint64_t preempted, evicted, copied;

        counts = (struct counts){ 0 };
        times = fixture->sanitized ? (times + 3) / 4 : times; /* rows are expensive then */
        for (uint32_t i = 0; i < times;) {
                struct raw_client *clients[CONNECTIONS], *other = raw_client_greet(fixture);

                for (uint32_t j = 0; j < CONNECTIONS; j++)
                        clients[j] = raw_client_greet(fixture);
                /* A raw client stores everything that it has read. */
                for (uint32_t j = 0; j < 25 && i < times; j++, i++)
                        run_families(clients, other, families);
                for (uint32_t j = 0; j < CONNECTIONS; j++)
                        raw_client_close(clients[j]);
                raw_client_close(other);
        }
        preempted = fixture_status(fixture, "requests.preemptions");
        evicted = fixture_status(fixture, "blocks.evicted");
        copied = fixture_status(fixture, "blocks.copied");
        printf("# %u parties: %u families, %u streams, %u forks, %u late, %u orphans; %u stops, %u "
               "held; "
               "%u preempted, %u blocks evicted, %u copied\n",
               times, counts.families, counts.members, counts.forks, counts.late, counts.orphans,
               counts.stops, counts.held, (unsigned)preempted, (unsigned)evicted, (unsigned)copied);
        if (times >= 10) /* in fewer, perhaps none has happened */
                assert_true(counts.forks > counts.late && copied > 0);
        free(families);
        fixture_stop(fixture);
}

static void forks_match_a_replay_of_their_tokens(void **state)
{
        START_DAEMON(*state, "--uid-requests", "512");
        run_random_forks(*state, scaled(20, 4000));
}

static void forks_match_a_replay_with_two_plans_in_flight(void **state)
{
        START_DAEMON(*state, "--uid-requests", "512", "--pipeline-depth", "2", "--threads", "1");
        run_random_forks(*state, scaled(15, 3000));
}

static void forks_match_a_replay_with_two_slots(void **state)
{
        START_DAEMON(*state, "--uid-requests", "512", "--max-seqs", "2", "--step-tokens", "16",
                     "--ctx", "512", "--kv-bytes", "1048576", "--threads", "1");
        run_random_forks(*state, scaled(10, 2000));
}

static void forks_match_a_replay_with_three_slots_and_two_plans_in_flight(void **state)
{
        START_DAEMON(*state, "--uid-requests", "512", "--max-seqs", "3", "--step-tokens", "7",
                     "--ctx", "512", "--kv-bytes", "720896", "--threads", "1", "--pipeline-depth",
                     "2");
        run_random_forks(*state, scaled(10, 2000));
}

/* The pool has 40 blocks, and a stream may need 20. */
static void forks_match_a_replay_in_a_pool_that_runs_full(void **state)
{
        START_DAEMON(*state, "--uid-requests", "512", "--ctx", "512", "--kv-bytes", "655360",
                     "--preempt-target", "50", "--threads", "1");
        run_random_forks(*state, scaled(10, 2000));
}

static void forks_match_a_replay_with_an_int8_cache(void **state)
{
        START_DAEMON(*state, "--uid-requests", "512", "--kv", "int8", "--max-seqs", "3",
                     "--step-tokens", "16", "--threads", "1");
        run_random_forks(*state, scaled(10, 2000));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(forks_match_a_replay_of_their_tokens),
                DAEMON_TEST(forks_match_a_replay_with_two_plans_in_flight),
                DAEMON_TEST(forks_match_a_replay_with_two_slots),
                DAEMON_TEST(forks_match_a_replay_with_three_slots_and_two_plans_in_flight),
                DAEMON_TEST(forks_match_a_replay_in_a_pool_that_runs_full),
                DAEMON_TEST(forks_match_a_replay_with_an_int8_cache),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
