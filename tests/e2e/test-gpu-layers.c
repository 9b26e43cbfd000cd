/*
 * A daemon whose GPU computes some of the layers: the number that it is told, or the number that
 * fits. It says what does not fit, and `status` says which backend computes.  The GPU is the
 * emulated one, and has as much memory as SMV_DEVICE_MEMORY says.  With a pool of 6 MiB a layer
 * takes 2 MiB of it, more than everything else of this model.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest-client.h"

#define MIB    (UINT64_C(1) << 20)
#define LAYERS 3u
#define MUCH   (UINT64_C(1) << 44)

static void set_device_memory(uint64_t bytes)
{
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, bytes);
        setenv("SMV_DEVICE_MEMORY", text, 1);
}

static struct run_result check(const struct daemon_fixture *fixture, const char *backend,
                               const char *layers, const char *kv_bytes)
{
        return RUN(fixture, NULL, env_path("SAMOVARD"), "--model", env_path("TOY_MODEL"), "--check",
                   "--deterministic", "--backend", backend, "--backend-library",
                   env_path("SMV_TEST_CUDA_LIBRARY"), "--max-seqs", "8", "--kv-bytes", kv_bytes,
                   "--gpu-layers", layers);
}

/* The number of the GPU's layers in the output; 0: the GPU has none. */
static uint32_t gpu_layers_of(const struct run_result *ran)
{
        const char *shared = strstr(ran->err, "info backend name=\"cuda ");
        unsigned ours, all, rest, host;

        if (ran->status)
                fail_msg("%d: %s%s", ran->status, ran->out, ran->err);
        if (!shared) {
                assert_null(strstr(ran->out, "on the host: "));
                if (!strstr(ran->err, "info backend name=cuda\n"))
                        assert_null(strstr(ran->out, "that the backend has left"));
                return strstr(ran->err, "info backend name=cuda\n") ? LAYERS : 0;
        }
        assert_int_equal(sscanf(shared, "info backend name=\"cuda %u of %u layers, cpu/%*s %u\"",
                                &ours, &all, &rest),
                         3);
        assert_int_equal(all, LAYERS);
        assert_int_equal(ours + rest, LAYERS);
        shared = strstr(ran->out, "on the host: layers ");
        assert_non_null(shared);
        assert_int_equal(sscanf(shared, "on the host: layers %u,", &host), 1);
        assert_int_equal(host, rest);
        return ours;
}

static void the_gpu_gets_the_number_of_layers_in_the_flag(void **state)
{
        static const struct {
                const char *backend, *asked;
                uint32_t layers;
        } cases[] = {
                { "cuda", "0", 0 },   { "auto", "0", 0 },      { "cuda", "1", 1 },
                { "auto", "2", 2 },   { "cuda", "3", LAYERS }, { "cuda", "4", LAYERS },
                { "cuda", "all", 3 }, { "cuda", "auto", 3 },   { "auto", "auto", 3 },
        };
        struct daemon_fixture *fixture = *state;

        set_device_memory(MUCH);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct run_result ran = check(fixture, cases[i].backend, cases[i].asked, "0");

                assert_int_equal(gpu_layers_of(&ran), cases[i].layers);
                assert_null(strstr(ran.err, " why="));
                run_result_free(&ran);
        }
}

/* Tries every size between none and enough.  More memory never means fewer layers, and each number
 * of layers occurs. */
static void the_gpu_gets_the_layers_that_fit_and_the_log_says_why_no_more(void **state)
{
        uint32_t seen[LAYERS + 1] = { 0 }, before = 0;
        struct daemon_fixture *fixture = *state;

        for (uint64_t bytes = MIB; bytes <= 12 * MIB; bytes += MIB) {
                struct run_result ran;
                uint32_t layers;

                set_device_memory(bytes);
                ran = check(fixture, "auto", "auto", "6M");
                layers = gpu_layers_of(&ran);
                assert_true(layers >= before);
                before = layers;
                seen[layers]++;
                if (!layers)
                        assert_non_null(strstr(ran.err, "info backend name=cpu why=\""));
                if (layers < LAYERS)
                        assert_non_null(strstr(ran.err, " not fit backend cuda: of "));
                else
                        assert_null(strstr(ran.err, " not fit "));
                run_result_free(&ran);
        }
        for (uint32_t n = 0; n <= LAYERS; n++)
                assert_true(seen[n] >= 2);
}

static void refuses(const struct daemon_fixture *fixture, const char *backend, const char *layers,
                    const char *kv_bytes, const char *words)
{
        struct run_result ran = check(fixture, backend, layers, kv_bytes);

        assert_int_equal(ran.status, 1);
        if (!strstr(ran.err, words) || strchr(ran.err, '\n') != ran.err + strlen(ran.err) - 1)
                fail_msg("%s", ran.err);
        assert_string_equal(ran.out, "");
        run_result_free(&ran);
}

static void refuses_layers_that_do_not_fit_and_names_the_backend(void **state)
{
        struct daemon_fixture *fixture = *state;

        set_device_memory(MIB);
        refuses(fixture, "cuda", "auto", "0", "of KV do not fit backend cuda: of ");
        refuses(fixture, "cuda", "2", "0",
                "the layers planned for it and a block of KV do not fit backend cuda: of ");
        refuses(fixture, "auto", "2", "0", " MiB are missing");
        refuses(fixture, "auto", "all", "0", "the model and a block of KV do not fit backend cuda");
        set_device_memory(6 * MIB);
        refuses(fixture, "cuda", "2", "6M", "kv_bytes: 6.0 MiB do not fit backend cuda: of ");
        set_device_memory(MUCH);
        refuses(fixture, "cuda", "1", "4000G", "kv_bytes: 4096000.0 MiB do not fit in memory: of ");
        refuses(fixture, "cpu", "1", "0", "gpu_layers puts layers on a GPU, but backend is ");
}

static void a_model_split_over_both_backends_is_served_and_reported(void **state)
{
        static const struct want want = { .prompt = "Once upon a time",
                                          .max_tokens = 20,
                                          .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct stream *alone;
        struct raw_client *client;
        char *shown;
        struct run_result ran;

        set_device_memory(7 * MIB);
        START_DAEMON(fixture, "--max-seqs", "8", "--kv-bytes", "6M", "--log-level", "info");
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "status", "--socket", fixture->socket);
        assert_int_equal(ran.status, 0);
        shown = strstr(ran.out, "cuda ");
        if (!shown || !strstr(shown, " of 3 layers, cpu/"))
                fail_msg("%s", ran.out);
        run_result_free(&ran);
        assert_true(fixture_logged(fixture, "info backend name=\"cuda "));
        client = raw_client_greet(fixture);
        assert_int_equal(raw_client_status(client, "blocks.total"), 1024);
        assert_int_equal(raw_client_status(client, "loading.bytes"),
                         raw_client_status(client, "loading.total"));
        alone = stream_copy(raw_client_complete(client, &want));
        assert_int_equal(alone->token_count, 20);
        assert_same_stream(raw_client_complete(client, &want), alone);
        stream_free(alone);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* ---- streams whose steps use both backends ---- */

#define STREAMS 6u
#define BEGUN   "a story that all of them have in common, as far as here, and it goes on with "

static struct want want_of(uint32_t i)
{
        static const char *const prompts[STREAMS] = {
                BEGUN "tea", BEGUN "milk", BEGUN "sugar and lemon",
                "Once",      BEGUN "tea",  "upon a time",
        };

        return (struct want){ .prompt = prompts[i],
                              .max_tokens = 30,
                              .ignore_eos = true,
                              .temperature = i % 2,
                              .seed = i,
                              .logprobs = i == 2 ? 3 : 0 };
}

/* Each stream alone, in a daemon that has read none of its prompt before. */
static void streams_alone(struct daemon_fixture *fixture, struct stream *ret_alone[STREAMS])
{
        struct raw_client *client = raw_client_greet(fixture);

        for (uint32_t i = STREAMS; i-- > 0;) {
                struct want want = want_of(i);

                ret_alone[i] = stream_copy(raw_client_complete(client, &want));
        }
        raw_client_close(client);
}

/* All streams at once, and one that is cancelled while it runs: the same bits, and the prefix that
 * they share is read once. */
static void streams_together(struct daemon_fixture *fixture, struct stream *const alone[STREAMS])
{
        const struct want endless = { .prompt = BEGUN "nothing else",
                                      .max_tokens = 1500,
                                      .ignore_eos = true };
        struct raw_client *client = raw_client_greet(fixture);
        uint32_t ids[STREAMS], cancelled, cached = 0;

        cancelled = raw_client_generate(client, &endless);
        while (!raw_client_stream(client, cancelled) ||
               !raw_client_stream(client, cancelled)->token_count)
                raw_client_poll(client, 10);
        for (uint32_t i = 0; i < STREAMS; i++) {
                struct want want = want_of(i);

                ids[i] = raw_client_generate(client, &want);
        }
        for (uint32_t i = 0; i < STREAMS; i++) {
                assert_same_stream(raw_client_await_end(client, ids[i]), alone[i]);
                cached += raw_client_stream(client, ids[i])->end.cached_tokens >= sizeof(BEGUN) / 2;
                if (i == 1)
                        raw_client_send_frame(client, "op=s id=u stream=u", "cancel",
                                              ++client->last_id, cancelled);
        }
        assert_int_equal(raw_client_await_end(client, cancelled)->end.reason, SMV_END_CANCELLED);
        /* all streams with this beginning: the cancelled one has read it */
        assert_true(cached >= 4);
        raw_client_close(client);
}

static void batched_streams_on_both_backends_are_as_when_alone(void **state)
{
        static const char *const depths[] = { "1", "2" };
        struct daemon_fixture *fixture = *state;
        struct stream *alone[STREAMS];

        set_device_memory(MUCH);
        START_DAEMON(fixture, "--gpu-layers", "1", "--max-seqs", "8");
        streams_alone(fixture, alone);
        fixture_stop(fixture);
        for (size_t d = 0; d < 2; d++) {
                START_DAEMON(fixture, "--gpu-layers", "1", "--max-seqs", "8", "--step-tokens", "24",
                             "--pipeline-depth", depths[d]);
                streams_together(fixture, alone);
                fixture_stop(fixture);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
}

/* If there is no room for a layer, the cpu computes. */
static void the_cpu_computes_if_no_layer_fits_the_gpu(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        set_device_memory(MIB);
        START_DAEMON(fixture, "--backend", "auto", "--max-seqs", "8");
        assert_true(
                fixture_logged(fixture, "info backend name=cpu why=\"the layers planned for it"));
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "status", "--socket", fixture->socket);
        if (ran.status || !strstr(ran.out, "cpu/") || strstr(ran.out, "cuda"))
                fail_msg("%s%s", ran.out, ran.err);
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_gpu_gets_the_number_of_layers_in_the_flag),
                DAEMON_TEST(the_gpu_gets_the_layers_that_fit_and_the_log_says_why_no_more),
                DAEMON_TEST(refuses_layers_that_do_not_fit_and_names_the_backend),
                DAEMON_TEST(a_model_split_over_both_backends_is_served_and_reported),
                DAEMON_TEST(batched_streams_on_both_backends_are_as_when_alone),
                DAEMON_TEST(the_cpu_computes_if_no_layer_fits_the_gpu),
        };

        unsetenv("SMV_DEVICE_SEED"); /* it is mentioned on stderr */
        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "SMV_TEST_CUDA_LIBRARY", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
