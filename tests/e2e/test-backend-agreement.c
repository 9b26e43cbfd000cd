/*
 * Compares the shipped model in two daemons: one computes with the definition (kernels/ref), the
 * other with the CPU, or with the GPU's kernels under their emulator.
 *
 * Both answer the same questions, always with the likeliest token.  They round differently, so
 * their log-probabilities are near each other and not equal.  Where the definition's two best
 * tokens are a near tie the answers may differ.  The rest of such an answer follows another text
 * and is not compared.  The amount that was compared is printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define LOGPROBS 9u /* the chosen token's, and those of the eight likeliest */
#define TOKENS   12u

/* Limits for the difference of a log-probability l, in units of 1 - l: the worst one, and the root
 * of the mean square of all. */
struct nearness {
        double worst, mean;
};
static const struct nearness bfloats = { 0.02, 0.004 }; /* a GPU rounds the rows of x to bfloats */
static const struct nearness bytes = { 0.04, 0.008 };   /* the CPU rounds them to bytes */
static const struct nearness *near;                     /* the limits that hold now */

/* The first question is read alone, in one step: it is long enough for the kernels for prompts. */
static const char *const questions[] = {
        "Here is what I wrote down yesterday, please tell me in a few words what it is about. "
        "In the morning we went down to the river with the two dogs, because the sun was out and "
        "nobody had to work. My sister had bread, cheese and apples in her bag, and we sat under "
        "the old tree until noon. Then the wind came up and it began to rain, so we ran back home, "
        "made a fire, and drank tea. In the evening our neighbour came over with her guitar, and "
        "we sang until it was late. The dogs slept in front of the fire the whole time.",
        "How do I stop the daemon?",
        "What is two plus three?",
        "Tell me a story.",
        "Name three fruits.",
};
#define QUESTIONS (sizeof(questions) / sizeof(*questions))
#define LONG      150u /* the first question has at least this many tokens */

static char library[512];

struct answers {
        struct stream *to[QUESTIONS];
};

static uint32_t ask(struct raw_client *client, const char *question)
{
        msgpack_sbuffer said;
        msgpack_packer packer;
        struct reply *reply;

        msgpack_sbuffer_init(&said);
        msgpack_packer_init(&packer, &said, msgpack_sbuffer_write);
        msgpack_pack_array(&packer, 1);
        msgpack_pack_map(&packer, 2);
        for (uint32_t i = 0; i < 4; i++) {
                const char *text = (const char *const[]){ "role", "user", "content", question }[i];

                msgpack_pack_str_with_body(&packer, text, strlen(text));
        }
        reply = raw_client_call(client, "op=s messages=x temperature=f max_tokens=u logprobs=u",
                                "generate", said.data, said.size, 0.0, TOKENS, LOGPROBS - 1);
        msgpack_sbuffer_destroy(&said);
        if (!reply->ok)
                fail_msg("generate was refused: %s", reply->message);
        return client->last_id;
}

/* The other questions come together: while one is read, others are answered. */
static struct answers ask_all(const struct daemon_fixture *fixture)
{
        struct raw_client *client = raw_client_greet(fixture);
        struct answers answers;
        uint32_t ids[QUESTIONS];

        ids[0] = ask(client, questions[0]);
        answers.to[0] = stream_copy(raw_client_await_end(client, ids[0]));
        for (uint32_t i = 1; i < QUESTIONS; i++)
                ids[i] = ask(client, questions[i]);
        for (uint32_t i = 1; i < QUESTIONS; i++)
                answers.to[i] = stream_copy(raw_client_await_end(client, ids[i]));
        raw_client_close(client);
        return answers;
}

/* The pool is small, because the emulator is slow.  For the same reason a prompt may hold up
 * streams for as long as it takes. */
static struct answers answers_by(struct daemon_fixture *fixture, const char *backend,
                                 const char *way)
{
        struct answers answers;
        char path[512];

        snprintf(path, sizeof(path), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", path, "--kv-bytes", "16M", "--max-seqs", "8",
                     "--step-tokens", "192", "--gap-ms", "0", "--backend-library", library,
                     "--backend", backend, way);
        answers = ask_all(fixture);
        fixture_stop(fixture);
        return answers;
}

struct sum {
        /* of the definition's answers; of these, those that both daemons chose from the beginning
         * on */
        uint32_t tokens, same;
        uint32_t count; /* the number of differences */
        double squares;
};

static double allowed(const struct token_logprob *logprobs)
{
        return near->worst * (1 - (double)logprobs->logprob);
}

/* The likeliest token leads by so little that the permitted differences can reverse the order. */
static bool is_near_tie(const struct stream *stream, uint32_t at)
{
        const struct token_logprob *logprobs = &stream->logprobs[at * LOGPROBS];

        return (double)logprobs[1].logprob - (double)logprobs[2].logprob <
               allowed(&logprobs[1]) + allowed(&logprobs[2]);
}

/* The largest difference between log-probabilities of tokens that both daemons report, as a share
 * of the permitted one. */
static double differ_at(const struct stream *ref, const struct stream *is, uint32_t at,
                        struct sum *sum)
{
        const struct token_logprob *here = &ref->logprobs[at * LOGPROBS],
                                   *there = &is->logprobs[at * LOGPROBS];
        uint32_t before = sum->count;
        double worst = 0;

        assert_true(ref->logprobs_each == LOGPROBS && is->logprobs_each == LOGPROBS);
        for (uint32_t i = 1; i < LOGPROBS; i++)
                for (uint32_t j = 1; j < LOGPROBS; j++) {
                        double by = (double)there[j].logprob - (double)here[i].logprob;

                        if (here[i].token != there[j].token)
                                continue;
                        by = fabs(by) / allowed(&here[i]);
                        worst = fmax(worst, by);
                        sum->squares += by * by;
                        sum->count++;
                }
        assert_true(sum->count - before > LOGPROBS / 2);
        return worst;
}

/* The position where two answers to one question begin to differ; up to there the text is the
 * same. */
static uint32_t part(const struct stream *ref, const struct stream *is)
{
        uint32_t at = 0;

        while (at < ref->token_count && at < is->token_count && ref->tokens[at] == is->tokens[at])
                at++;
        return at;
}

static void print(uint32_t question, const struct stream *ref, uint32_t parted, bool whole,
                  double worst, uint32_t worst_at)
{
        uint32_t tie = 0;
        char first[16] = "none", parts[16] = "nowhere";

        while (tie < ref->token_count && !is_near_tie(ref, tie))
                tie++;
        if (tie < ref->token_count)
                snprintf(first, sizeof(first), "%u", tie);
        if (!whole)
                snprintf(parts, sizeof(parts), "at %u", parted);
        print_message("# question %u of %u tokens: first near tie %s, they part %s of %zu; %.2f of "
                      "what is allowed at most, at %u\n",
                      question, ref->end.prompt_tokens, first, parts, ref->token_count, worst,
                      worst_at);
}

static void compare(uint32_t question, const struct stream *ref, const struct stream *is,
                    struct sum *sum)
{
        uint32_t parted = part(ref, is), worst_at = 0;
        bool whole = parted == ref->token_count && parted == is->token_count;
        double worst = 0;

        for (uint32_t at = 0; at < parted + !whole; at++) {
                double by;

                assert_true(at < ref->logprob_count && at < is->logprob_count);
                by = differ_at(ref, is, at, sum);
                if (by > worst)
                        worst_at = at;
                worst = fmax(worst, by);
        }
        print(question, ref, parted, whole, worst, worst_at);
        sum->tokens += (uint32_t)ref->token_count;
        sum->same += parted;
        assert_true(worst < 1);
        assert_true(whole || is_near_tie(ref, parted));
}

/* `name` is the name that the backend reports in that way of computing, if it reports one. */
static void compare_all(struct daemon_fixture *fixture, const char *backend, const char *way,
                        const char *name, const struct nearness *how_near)
{
        struct answers ref = answers_by(fixture, "ref", way),
                       is = answers_by(fixture, backend, way);
        struct sum sum = { 0 };
        double mean;

        near = how_near;
        if (name && !fixture_logged(fixture, name))
                fail_msg("it was not %s", name);
        assert_true(ref.to[0]->end.prompt_tokens >= LONG);
        for (uint32_t i = 0; i < QUESTIONS; i++) {
                compare(i, ref.to[i], is.to[i], &sum);
                stream_free(ref.to[i]);
                stream_free(is.to[i]);
        }
        mean = sqrt(sum.squares / sum.count) * near->worst;
        print_message("# %u of %u tokens are the same, differences are %.4f in the mean\n",
                      sum.same, sum.tokens, mean);
        assert_true(mean < near->mean);
        assert_true(sum.same > sum.tokens / 2);
}

static void deterministic_gpu_agrees_with_the_reference_backend(void **state)
{
        compare_all(*state, "cuda", "--deterministic", "backend name=cuda\n", &bfloats);
}

static void gpu_agrees_with_the_reference_backend(void **state)
{
        compare_all(*state, "cuda", NULL, "backend name=cuda/blas\n", &bfloats);
}

static void cpu_agrees_with_the_reference_backend(void **state)
{
        compare_all(*state, "cpu", NULL, NULL, &bytes);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(deterministic_gpu_agrees_with_the_reference_backend),
                DAEMON_TEST(gpu_agrees_with_the_reference_backend),
                DAEMON_TEST(cpu_agrees_with_the_reference_backend),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "SOURCES", "SMV_TEST_CUDA_LIBRARY", NULL });
        snprintf(library, sizeof(library), "%s", env_path("SMV_TEST_CUDA_LIBRARY"));
        unsetenv("SMV_TEST_CUDA_LIBRARY"); /* otherwise all daemons would compute with the GPU */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
