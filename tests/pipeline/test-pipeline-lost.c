/*
 * The pipeline when its model is lost while it runs, in one process, so that a race detector
 * sees all of it: for every transport, and for a step that fails when it begins or when its result
 * is asked for.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/pipeline/pipeline-rig.h"

#define EACH    12u
#define LONGEST 4000u

static void *loop_main(void *arg)
{
        return (void *)(intptr_t)pipeline_run(arg);
}

static struct smv_client *meet(const struct pipeline_rig *rig, const struct variant *variant)
{
        const struct smv_connect connect = { SMV_SIZE(smv_connect), .socket = rig->socket,
                                             .transport = variant->transport,
                                             .doorbell = variant->doorbell };
        struct smv_client *client;

        assert_int_equal(smv_connect(&connect, &client), 0);
        return client;
}

/* A request that comes late is refused with the reason, or the connection is over. */
static uint32_t begin_streams(struct smv_client *client)
{
        const struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "a",
                                          .max_tokens = LONGEST, .ignore_eos = 1 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        uint32_t begun = 0, stream;
        int r = 0;

        while (!r && begun < EACH) {
                r = smv_generate(client, &ask, &stream);
                begun += !r;
        }
        if (r == -EREMOTEIO) {
                smv_error(client, &problem);
                assert_int_equal(problem.code, SMV_SHUTTING_DOWN);
                assert_string_equal(problem.message, "the null model was lost, as a test wished");
        }
        return begun;
}

static void read_ends(struct smv_client *client, uint32_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        while (count) {
                assert_int_equal(smv_next(client, &event, 20000), 1);
                if (event.kind != SMV_EVENT_END)
                        continue;
                assert_int_equal(event.reason, SMV_END_ERROR);
                assert_int_equal(event.code, SMV_BACKEND);
                count--;
        }
}

static void go(const struct variant *variant, uint64_t step, bool late)
{
        struct pipeline_rig *rig = pipeline_rig_new();
        struct pipeline_conf conf = pipeline_rig_conf(rig, variant);
        struct smv_client *clients[CLIENTS];
        struct pipeline *pipeline = NULL;
        uint32_t begun[CLIENTS];
        pthread_t loop;
        void *result;

        conf.depth = 2;
        conf.model.meet_every = 0;
        conf.model.lost_at = step;
        conf.model.lost_late = late;
        assert_int_equal(pipeline_open(&conf, &pipeline), 0);
        assert_int_equal(pthread_create(&loop, NULL, loop_main, pipeline), 0);
        for (uint32_t i = 0; i < CLIENTS; i++)
                clients[i] = meet(rig, variant);
        for (uint32_t i = 0; i < CLIENTS; i++)
                begun[i] = begin_streams(clients[i]);
        assert_true(begun[0]);
        for (uint32_t i = 0; i < CLIENTS; i++)
                read_ends(clients[i], begun[i]);
        assert_int_equal(pthread_join(loop, &result), 0);
        assert_int_equal((intptr_t)result, -EIO);
        for (uint32_t i = 0; i < CLIENTS; i++)
                smv_close(clients[i]);
        pipeline_close(pipeline);
        pipeline_rig_free(rig);
}

static const struct variant variants[] = {
        { "socket", SMV_TRANSPORT_SOCKET, SMV_DOORBELL_KICK, CLIENT_SLEEPS, 0 },
        { "ring, kick", SMV_TRANSPORT_RING, SMV_DOORBELL_KICK, CLIENT_SLEEPS, 0 },
        { "ring, futex", SMV_TRANSPORT_RING, SMV_DOORBELL_FUTEX, CLIENT_SLEEPS, 0 },
};

static void each_stream_has_its_end(bool late)
{
        for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++)
                for (uint64_t step = 1; step < LONGEST / 2; step = step * 7 + 3)
                        go(&variants[i], step, late);
}

static void each_stream_ends_when_a_step_fails_to_begin(void **state)
{
        (void)state;
        each_stream_has_its_end(false);
}

static void each_stream_ends_when_a_result_does_not_come(void **state)
{
        (void)state;
        each_stream_has_its_end(true);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_stream_ends_when_a_step_fails_to_begin),
                cmocka_unit_test(each_stream_ends_when_a_result_does_not_come),
        };

        return cmocka_run_group_tests_name("pipeline-lost", tests, NULL, NULL);
}
