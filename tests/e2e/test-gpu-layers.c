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

#include "tests/e2e/honest.h"

#define MIB    (UINT64_C(1) << 20)
#define LAYERS 3u
#define MUCH   (UINT64_C(1) << 44)

static void give_device(uint64_t bytes)
{
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, bytes);
        setenv("SMV_DEVICE_MEMORY", text, 1);
}

static struct ran check(const struct house *house, const char *backend, const char *layers,
                        const char *kv_bytes)
{
        return RUN(house, NULL, given("SAMOVARD"), "--model", given("BABBLE"), "--check",
                   "--deterministic", "--backend", backend, "--backend-library",
                   given("SMV_TEST_CUDA_LIBRARY"), "--max-seqs", "8", "--kv-bytes", kv_bytes,
                   "--gpu-layers", layers);
}

/* The number of the GPU's layers in the output; 0: the GPU has none. */
static uint32_t gpu_layers_of(const struct ran *ran)
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

static void as_many_are_the_gpus_as_it_is_told(void **state)
{
        static const struct {
                const char *backend, *asked;
                uint32_t layers;
        } cases[] = {
                { "cuda", "0", 0 },   { "auto", "0", 0 },      { "cuda", "1", 1 },
                { "auto", "2", 2 },   { "cuda", "3", LAYERS }, { "cuda", "4", LAYERS },
                { "cuda", "all", 3 }, { "cuda", "auto", 3 },   { "auto", "auto", 3 },
        };
        struct house *house = *state;

        give_device(MUCH);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct ran ran = check(house, cases[i].backend, cases[i].asked, "0");

                assert_int_equal(gpu_layers_of(&ran), cases[i].layers);
                assert_null(strstr(ran.err, " why="));
                ran_free(&ran);
        }
}

/* Tries every size between none and enough.  More memory never means fewer layers, and each number
 * of layers occurs. */
static void as_many_are_the_gpus_as_fit_and_it_is_said_why_no_more(void **state)
{
        uint32_t seen[LAYERS + 1] = { 0 }, before = 0;
        struct house *house = *state;

        for (uint64_t bytes = MIB; bytes <= 12 * MIB; bytes += MIB) {
                struct ran ran;
                uint32_t layers;

                give_device(bytes);
                ran = check(house, "auto", "auto", "6M");
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
                ran_free(&ran);
        }
        for (uint32_t n = 0; n <= LAYERS; n++)
                assert_true(seen[n] >= 2);
}

static void refuses(const struct house *house, const char *backend, const char *layers,
                    const char *kv_bytes, const char *words)
{
        struct ran ran = check(house, backend, layers, kv_bytes);

        assert_int_equal(ran.status, 1);
        if (!strstr(ran.err, words) || strchr(ran.err, '\n') != ran.err + strlen(ran.err) - 1)
                fail_msg("%s", ran.err);
        assert_string_equal(ran.out, "");
        ran_free(&ran);
}

static void what_does_not_fit_is_refused_in_a_line_that_says_where(void **state)
{
        struct house *house = *state;

        give_device(MIB);
        refuses(house, "cuda", "auto", "0", "of KV do not fit backend cuda: of ");
        refuses(house, "cuda", "2", "0",
                "the layers that are to be there and a block of KV do not fit backend cuda: of ");
        refuses(house, "auto", "2", "0", " MiB are missing");
        refuses(house, "auto", "all", "0", "the model and a block of KV do not fit backend cuda");
        give_device(6 * MIB);
        refuses(house, "cuda", "2", "6M", "--kv-bytes: 6.0 MiB do not fit backend cuda: of ");
        give_device(MUCH);
        refuses(house, "cuda", "1", "4000G", "--kv-bytes: 4096000.0 MiB do not fit in memory: of ");
        refuses(house, "cpu", "1", "0", "gpu_layers says that layers are a GPU's and backend is ");
}

static void model_that_is_in_both_serves_and_says_so(void **state)
{
        static const struct want want = { .prompt = "Once upon a time",
                                          .max_tokens = 20,
                                          .ignore_eos = true };
        struct house *house = *state;
        struct stream *alone;
        struct talk *talk;
        char *shown;
        struct ran ran;

        give_device(7 * MIB);
        HOUSE(house, "--max-seqs", "8", "--kv-bytes", "6M", "--log-level", "info");
        ran = RUN(house, NULL, given("SAMOVAR"), "status", "--socket", house->socket);
        assert_int_equal(ran.status, 0);
        shown = strstr(ran.out, "cuda ");
        if (!shown || !strstr(shown, " of 3 layers, cpu/"))
                fail_msg("%s", ran.out);
        ran_free(&ran);
        assert_true(house_said(house, "info backend name=\"cuda "));
        talk = talk_greet(house);
        assert_int_equal(talk_status(talk, "blocks.total"), 1024);
        assert_int_equal(talk_status(talk, "loading.bytes"), talk_status(talk, "loading.total"));
        alone = stream_copy(talk_whole(talk, &want));
        assert_int_equal(alone->token_count, 20);
        assert_same_stream(talk_whole(talk, &want), alone);
        stream_free(alone);
        talk_close(talk);
        house_stop(house);
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
                              .told = i == 2 ? 3 : 0 };
}

/* Each stream alone, in a daemon that has read none of its prompt before. */
static void streams_alone(struct house *house, struct stream *ret_alone[STREAMS])
{
        struct talk *talk = talk_greet(house);

        for (uint32_t i = STREAMS; i-- > 0;) {
                struct want want = want_of(i);

                ret_alone[i] = stream_copy(talk_whole(talk, &want));
        }
        talk_close(talk);
}

/* All streams at once, and one that is cancelled while it runs: the same bits, and the prefix that
 * they share is read once. */
static void streams_together(struct house *house, struct stream *const alone[STREAMS])
{
        const struct want endless = { .prompt = BEGUN "nothing else",
                                      .max_tokens = 1500,
                                      .ignore_eos = true };
        struct talk *talk = talk_greet(house);
        uint32_t ids[STREAMS], cancelled, cached = 0;

        cancelled = talk_generate(talk, &endless);
        while (!talk_stream(talk, cancelled) || !talk_stream(talk, cancelled)->token_count)
                talk_turn(talk, 10);
        for (uint32_t i = 0; i < STREAMS; i++) {
                struct want want = want_of(i);

                ids[i] = talk_generate(talk, &want);
        }
        for (uint32_t i = 0; i < STREAMS; i++) {
                assert_same_stream(talk_end(talk, ids[i]), alone[i]);
                cached += talk_stream(talk, ids[i])->end.cached_tokens >= sizeof(BEGUN) / 2;
                if (i == 1)
                        talk_say(talk, "op=s id=u stream=u", "cancel", ++talk->last_id, cancelled);
        }
        assert_int_equal(talk_end(talk, cancelled)->end.reason, SMV_END_CANCELLED);
        /* all streams with this beginning: the cancelled one has read it */
        assert_true(cached >= 4);
        talk_close(talk);
}

static void together_and_in_small_steps_streams_are_what_they_are_alone(void **state)
{
        static const char *const depths[] = { "1", "2" };
        struct house *house = *state;
        struct stream *alone[STREAMS];

        give_device(MUCH);
        HOUSE(house, "--gpu-layers", "1", "--max-seqs", "8");
        streams_alone(house, alone);
        house_stop(house);
        for (size_t d = 0; d < 2; d++) {
                HOUSE(house, "--gpu-layers", "1", "--max-seqs", "8", "--step-tokens", "24",
                      "--depth", depths[d]);
                streams_together(house, alone);
                house_stop(house);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
}

/* If there is no room for a layer, the cpu computes. */
static void model_that_a_gpu_has_no_room_for_is_the_cpus(void **state)
{
        struct house *house = *state;
        struct ran ran;

        give_device(MIB);
        HOUSE(house, "--backend", "auto", "--max-seqs", "8");
        assert_true(
                house_said(house, "info backend name=cpu why=\"the layers that are to be there"));
        ran = RUN(house, NULL, given("SAMOVAR"), "status", "--socket", house->socket);
        if (ran.status || !strstr(ran.out, "cpu/") || strstr(ran.out, "cuda"))
                fail_msg("%s%s", ran.out, ran.err);
        ran_free(&ran);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(as_many_are_the_gpus_as_it_is_told),
                STORY(as_many_are_the_gpus_as_fit_and_it_is_said_why_no_more),
                STORY(what_does_not_fit_is_refused_in_a_line_that_says_where),
                STORY(model_that_is_in_both_serves_and_says_so),
                STORY(together_and_in_small_steps_streams_are_what_they_are_alone),
                STORY(model_that_a_gpu_has_no_room_for_is_the_cpus),
        };

        unsetenv("SMV_DEVICE_SEED"); /* it is mentioned on stderr */
        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE", "SMV_TEST_CUDA_LIBRARY",
                                    NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
