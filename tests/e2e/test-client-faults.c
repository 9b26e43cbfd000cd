/*
 * Makes allocations of libsamovar fail, each time another one, once or twenty times in a row,
 * beside a daemon that works.
 *
 * The promise: no crash and no hang.  The call returns -ENOMEM and can be made again, or the
 * connection is lost and every stream still has its END.  The daemon keeps nothing.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/fault-injection.h"
#include "tests/e2e/daemon-fixture.h"

#define PERSISTENT 20
#define BEYOND     3
#define PROMPT     "once there was a samovar"
#define TOKENS     40     /* of each stream */
#define LARGE      200000 /* bytes of a text, more than the library has room for at first */
#define STREAMS    9      /* more than the library has room for at first */

struct seen {
        uint32_t id;
        uint32_t tokens[TOKENS];
        size_t token_count;
        bool asked; /* its reply has not come yet */
        bool ended, lost;
};

struct library_run {
        struct smv_client *client;
        enum smv_transport transport;
        struct seen streams[STREAMS];
        size_t stream_count;
        uint32_t asked;     /* a request without a stream whose reply has not come yet; 0: none */
        uint32_t no_memory; /* the number of calls that returned -ENOMEM */
        bool lost;
};

static struct seen alone;        /* the stream's content when nothing fails */
static uint32_t no_memory, lost; /* calls that returned -ENOMEM, connections that were lost */

/* The result of a call: true: it is done; false: the connection is lost. */
static bool is_done(struct library_run *run, int r)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        if (r >= 0)
                return true;
        if (r != -ENOTCONN) {
                smv_error(run->client, &problem);
                fail_msg("a call says %d: %s", r, problem.message);
        }
        assert_true(faults_failed() > 0);
        run->lost = true;
        return false;
}

/* Repeats the call while it returns -ENOMEM, each time for another failure, until it returns
 * another result. */
#define PERSIST(run, call)                                                                         \
        ({                                                                                         \
                int persist_r;                                                                     \
                                                                                                   \
                while ((persist_r = (call)) == -ENOMEM)                                            \
                        assert_true(++(run)->no_memory <= faults_failed());                        \
                persist_r;                                                                         \
        })

static bool connect_library(struct library_run *run, const struct daemon_fixture *fixture)
{
        char why[200] = "";
        struct smv_connect options = {
                SMV_SIZE(smv_connect), .socket = fixture->socket,    .transport = run->transport,
                .message = why,        .message_bytes = sizeof(why),
        };
        int r = PERSIST(run, smv_connect(&options, &run->client));

        if (r)
                fail_msg("smv_connect says %d: %s", r, why);
        assert_int_equal(smv_transport_used(run->client), run->transport);
        return true;
}

static char large[LARGE];

static bool ask(struct library_run *run)
{
        const char *json, *text;
        const uint32_t *tokens;
        size_t count;

        if (!is_done(run, PERSIST(run, smv_tokenize(run->client, NULL, "hi", 2, &tokens, &count))))
                return false;
        assert_int_equal(count, 2);
        assert_int_equal(tokens[0], 'h');
        if (!is_done(run,
                     PERSIST(run, smv_tokenize(run->client, NULL, large, LARGE, &tokens, &count))))
                return false;
        assert_int_equal(count, LARGE);
        if (!is_done(run,
                     PERSIST(run, smv_detokenize(run->client, NULL, tokens, count, &text, &count))))
                return false;
        assert_int_equal(count, LARGE);
        if (!is_done(run, PERSIST(run, smv_detokenize(run->client, NULL, (uint32_t[]){ 'h', 'o' },
                                                      2, &text, &count))))
                return false;
        assert_int_equal(count, 2);
        assert_memory_equal(text, "ho", 2);
        if (!is_done(run, PERSIST(run, smv_status(run->client, &json))))
                return false;
        assert_int_equal(json[0], '{');
        return true;
}

static bool begin(struct library_run *run)
{
        static const char *const stops[] = { "zzzz", "qqqq" };
        static const uint32_t stop_ids[] = { 1, 2 };
        const struct smv_generate options = {
                SMV_SIZE(smv_generate),     .prompt = PROMPT,      .max_tokens = TOKENS,
                .set = SMV_SET_TEMPERATURE, .stops = stops,        .stop_count = 2,
                .stop_tokens = stop_ids,    .stop_token_count = 2, .ignore_eos = 1,
        };
        struct seen *seen = &run->streams[run->stream_count];
        int r;

        seen->asked = run->stream_count % 3 == 2;
        if (seen->asked)
                r = PERSIST(run, smv_ask_generate(run->client, &options, &seen->id));
        else
                r = PERSIST(run, smv_generate(run->client, &options, &seen->id));
        if (!is_done(run, r))
                return false;
        run->stream_count++;
        return true;
}

/* A question whose answer comes between the events of the streams. */
static bool ask_beside(struct library_run *run)
{
        return is_done(run, PERSIST(run, smv_ask_tokenize(run->client, NULL, large, LARGE / 10,
                                                          &run->asked)));
}

/* The reply to a question, or to a stream's request: if the connection is lost, it ends that. */
static void take_reply(struct library_run *run, struct seen *seen, const struct smv_event *event)
{
        bool lost_now = event->code == SMV_LOST;

        assert_true(lost_now || event->code == SMV_OK);
        if (event->stream == run->asked) {
                assert_int_equal(event->token_count, lost_now ? 0 : LARGE / 10);
                run->asked = 0;
                return;
        }
        assert_true(seen->asked);
        seen->asked = false;
        seen->ended = seen->lost = lost_now;
}

static void take_event(struct library_run *run, const struct smv_event *event)
{
        struct seen *seen = run->streams;

        while (seen < run->streams + run->stream_count && seen->id != event->stream)
                seen++;
        if (event->kind == SMV_EVENT_REPLY) {
                take_reply(run, seen, event);
                return;
        }
        assert_true(seen < run->streams + run->stream_count);
        assert_false(seen->asked || seen->ended);
        if (event->kind == SMV_EVENT_TOKENS) {
                assert_true(event->token_count <= TOKENS - seen->token_count);
                memcpy(seen->tokens + seen->token_count, event->tokens,
                       event->token_count * sizeof(uint32_t));
                seen->token_count += event->token_count;
                return;
        }
        assert_int_equal(event->kind, SMV_EVENT_END);
        seen->ended = true;
        seen->lost = event->reason == SMV_END_ERROR;
        if (seen->lost)
                assert_int_equal(event->code, SMV_LOST);
}

/* Reads to the last END; a lost connection also ends its streams first. */
static void read_all(struct library_run *run)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r;

        for (;;) {
                r = PERSIST(run, smv_next(run->client, &event, TIMEOUT_MS));
                if (r == 0)
                        fail_msg("%s", "a hang: no event");
                if (r < 0)
                        break;
                take_event(run, &event);
        }
        if (r != -ENODATA && is_done(run, r))
                fail_msg("smv_next says %d", r);
}

static void check_streams(const struct library_run *run)
{
        for (size_t i = 0; i < run->stream_count; i++) {
                const struct seen *seen = &run->streams[i];

                assert_true(seen->ended && !run->asked);
                assert_true(!seen->lost || run->lost);
                if (i != 1 && !seen->lost)
                        assert_int_equal(seen->token_count, TOKENS);
                assert_memory_equal(seen->tokens, alone.tokens,
                                    seen->token_count * sizeof(uint32_t));
        }
        if (!run->lost)
                assert_int_equal(run->stream_count, STREAMS);
}

/* Uses every call; the second stream is cancelled. */
static void act(struct library_run *run, const struct daemon_fixture *fixture)
{
        bool open = connect_library(run, fixture) && ask(run);

        while (open && run->stream_count < STREAMS) {
                open = begin(run);
                if (open && run->stream_count == 2)
                        open = ask_beside(run);
        }
        if (open)
                is_done(run, PERSIST(run, smv_cancel(run->client, run->streams[1].id)));
        read_all(run);
        run->client = smv_close(run->client);
}

static void run_with_faults(const struct daemon_fixture *fixture, enum smv_transport transport,
                            const struct fault_plan *plan)
{
        struct library_run run = { .transport = transport };

        faults_arm(plan);
        act(&run, fixture);
        faults_disarm();
        if (!alone.token_count)
                alone = run.streams[0];
        check_streams(&run);
        no_memory += run.no_memory;
        lost += run.lost;
        assert_true(!faults_failed() || run.no_memory || run.lost);
}

static void sweep(struct daemon_fixture *fixture, enum smv_transport transport, uint32_t count)
{
        struct fault_plan plan = { .kind = FAULT_ALLOC, .count = count };
        uint64_t failed_before = faults_sum().failed;
        uint32_t begin = 2 * (transport == SMV_TRANSPORT_RING) + (count > 1);

        plan.first = begin % faults_stride();
        for (uint32_t beyond = 0; beyond < BEYOND; plan.first += faults_stride()) {
                run_with_faults(fixture, transport, &plan);
                beyond = faults_failed() ? 0 : beyond + 1;
        }
        printf("# %u at a time: up to number %u\n", count, plan.first);
        assert_true(faults_sum().failed > failed_before);
}

static void sweep_allocations(void **state, enum smv_transport transport, uint32_t count)
{
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--isa", "c", "--uid-connects-burst", "65536");
        run_with_faults(fixture, transport, &(struct fault_plan){ .kind = FAULT_ALLOC });
        sweep(fixture, transport, count);
        fixture_stop(fixture);
}

static void survives_one_failed_allocation_over_a_socket(void **state)
{
        sweep_allocations(state, SMV_TRANSPORT_SOCKET, 1);
}

static void survives_twenty_failed_allocations_over_a_socket(void **state)
{
        sweep_allocations(state, SMV_TRANSPORT_SOCKET, PERSISTENT);
}

static void survives_one_failed_allocation_over_a_ring(void **state)
{
        sweep_allocations(state, SMV_TRANSPORT_RING, 1);
}

static void survives_twenty_failed_allocations_over_a_ring(void **state)
{
        sweep_allocations(state, SMV_TRANSPORT_RING, PERSISTENT);
}

/* When a test fails in the middle, the armed faults must not fail the others. */
static int tear_down(void **state)
{
        struct daemon_fixture *fixture = *state;

        faults_disarm();
        if (fixture->pid)
                faults_print(stdout);
        return fixture_tear_down(state);
}

#define FAULT_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                FAULT_TEST(survives_one_failed_allocation_over_a_socket),
                FAULT_TEST(survives_twenty_failed_allocations_over_a_socket),
                FAULT_TEST(survives_one_failed_allocation_over_a_ring),
                FAULT_TEST(survives_twenty_failed_allocations_over_a_ring),
        };
        struct faults_sum faults;
        int r;

        memset(large, 'x', LARGE);
        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        faults_begin();
        r = cmocka_run_group_tests(tests, NULL, NULL);
        faults = faults_sum();
        faults_print_missed(stdout);
        printf("# %" PRIu64 " faults injected, %u calls said -ENOMEM, %u connections were lost, "
               "%u of %u allocation sites\n",
               faults.failed, no_memory, lost, faults.sites_failed[FAULT_ALLOC],
               faults.sites_met[FAULT_ALLOC]);
        return r;
}
