/*
 * The model that is shipped, served by two daemons: by the CPU, and by the GPU's kernels under their
 * emulator.
 *
 * Both answer the same questions, always with the likeliest token.  They round apart, so their
 * log-probabilities are near each other and not the same, and where the CPU's two best tokens are a
 * near tie the answers may part: what comes behind that has another text before it and is not compared.
 * What is compared is printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/talk.h"

#define TOLERANCE 0.02  /* of a log-probability of l, times 1 - l: the worst there may be ... */
#define MEAN      0.004 /* ... and the root of the mean square of all */
#define TOLD      9u    /* the picked token's, and the eight likeliest ones' */
#define TOKENS    12u

/* The first is read alone, in one step: it is long enough for the kernels that are for prompts. */
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
#define LONG      150u /* tokens that the first one has at least */

static char library[512];

struct answers {
        struct stream *to[QUESTIONS];
};

static uint32_t ask(struct talk *talk, const char *question)
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
        reply = talk_ask(talk, "op=s messages=x temperature=f max_tokens=u logprobs=u", "generate",
                         said.data, said.size, 0.0, TOKENS, TOLD - 1);
        msgpack_sbuffer_destroy(&said);
        if (!reply->ok)
                fail_msg("generate was refused: %s", reply->message);
        return talk->last_id;
}

/* The others come together: while one is read, others are answered. */
static struct answers ask_all(const struct house *house)
{
        struct talk *talk = talk_greet(house);
        struct answers answers;
        uint32_t ids[QUESTIONS];

        ids[0] = ask(talk, questions[0]);
        answers.to[0] = stream_copy(talk_end(talk, ids[0]));
        for (uint32_t i = 1; i < QUESTIONS; i++)
                ids[i] = ask(talk, questions[i]);
        for (uint32_t i = 1; i < QUESTIONS; i++)
                answers.to[i] = stream_copy(talk_end(talk, ids[i]));
        talk_close(talk);
        return answers;
}

/* Small, for the emulator's sake; and a prompt may hold up streams for as long as it takes there. */
static struct answers answers_by(struct house *house, const char *backend, const char *way)
{
        struct answers answers;
        char path[512];

        snprintf(path, sizeof(path), "%s/models/teaspoon-q8_0.gguf", given("SOURCES"));
        HOUSE(house, "--model", path, "--kv-bytes", "16M", "--max-seqs", "8", "--step-tokens",
              "192", "--gap-ms", "0", "--backend-library", library, "--backend", backend, way);
        answers = ask_all(house);
        house_stop(house);
        return answers;
}

struct sum {
        uint32_t tokens, same; /* of the CPU's answers, and of both from their beginnings */
        uint32_t count;        /* of differences */
        double squares;
};

static double allowed(const struct told *told)
{
        return TOLERANCE * (1 - (double)told->logprob);
}

/* The likeliest token is not, by so little that what is allowed to both can turn them around. */
static bool is_near_tie(const struct stream *stream, uint32_t at)
{
        const struct told *told = &stream->told[at * TOLD];

        return (double)told[1].logprob - (double)told[2].logprob <
               allowed(&told[1]) + allowed(&told[2]);
}

/* The largest difference in what they tell of tokens that both tell of, of what is allowed. */
static double differ_at(const struct stream *cpu, const struct stream *gpu, uint32_t at,
                        struct sum *sum)
{
        const struct told *here = &cpu->told[at * TOLD], *there = &gpu->told[at * TOLD];
        uint32_t before = sum->count;
        double worst = 0;

        assert_true(cpu->told_each == TOLD && gpu->told_each == TOLD);
        for (uint32_t i = 1; i < TOLD; i++)
                for (uint32_t j = 1; j < TOLD; j++) {
                        double by = (double)there[j].logprob - (double)here[i].logprob;

                        if (here[i].token != there[j].token)
                                continue;
                        by = fabs(by) / allowed(&here[i]);
                        worst = fmax(worst, by);
                        sum->squares += by * by;
                        sum->count++;
                }
        assert_true(sum->count - before > TOLD / 2);
        return worst;
}

/* Where answers to one question part, having the same text up to there. */
static uint32_t part(const struct stream *cpu, const struct stream *gpu)
{
        uint32_t at = 0;

        while (at < cpu->token_count && at < gpu->token_count && cpu->tokens[at] == gpu->tokens[at])
                at++;
        return at;
}

static void print(uint32_t question, const struct stream *cpu, uint32_t parted, bool whole,
                  double worst, uint32_t worst_at)
{
        uint32_t tie = 0;
        char first[16] = "none", parts[16] = "nowhere";

        while (tie < cpu->token_count && !is_near_tie(cpu, tie))
                tie++;
        if (tie < cpu->token_count)
                snprintf(first, sizeof(first), "%u", tie);
        if (!whole)
                snprintf(parts, sizeof(parts), "at %u", parted);
        print_message("# question %u of %u tokens: first near tie %s, they part %s of %zu; %.2f of "
                      "what is allowed at most, at %u\n",
                      question, cpu->end.prompt_tokens, first, parts, cpu->token_count, worst,
                      worst_at);
}

static void compare(uint32_t question, const struct stream *cpu, const struct stream *gpu,
                    struct sum *sum)
{
        uint32_t parted = part(cpu, gpu), worst_at = 0;
        bool whole = parted == cpu->token_count && parted == gpu->token_count;
        double worst = 0;

        for (uint32_t at = 0; at < parted + !whole; at++) {
                double by;

                assert_true(at < cpu->told_count && at < gpu->told_count);
                by = differ_at(cpu, gpu, at, sum);
                if (by > worst)
                        worst_at = at;
                worst = fmax(worst, by);
        }
        print(question, cpu, parted, whole, worst, worst_at);
        sum->tokens += (uint32_t)cpu->token_count;
        sum->same += parted;
        assert_true(worst < 1);
        assert_true(whole || is_near_tie(cpu, parted));
}

/* `name` is what the backend calls itself in that way. */
static void compare_all(struct house *house, const char *way, const char *name)
{
        struct answers cpu = answers_by(house, "cpu", way), gpu = answers_by(house, "cuda", way);
        struct sum sum = { 0 };
        double mean;

        if (!house_said(house, name))
                fail_msg("it was not %s", name);
        assert_true(cpu.to[0]->end.prompt_tokens >= LONG);
        for (uint32_t i = 0; i < QUESTIONS; i++) {
                compare(i, cpu.to[i], gpu.to[i], &sum);
                stream_free(cpu.to[i]);
                stream_free(gpu.to[i]);
        }
        mean = sqrt(sum.squares / sum.count) * TOLERANCE;
        print_message("# %u of %u tokens are the same, differences are %.4f in the mean\n",
                      sum.same, sum.tokens, mean);
        assert_true(mean < MEAN);
        assert_true(sum.same > sum.tokens / 2);
}

static void gpu_that_is_to_be_deterministic_answers_as_the_cpu_does(void **state)
{
        compare_all(*state, "--deterministic", "backend name=cuda\n");
}

static void gpu_answers_as_the_cpu_does(void **state)
{
        compare_all(*state, NULL, "backend name=cuda/blas\n");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(gpu_that_is_to_be_deterministic_answers_as_the_cpu_does),
                STORY(gpu_answers_as_the_cpu_does),
        };

        need((const char *const[]){ "SAMOVARD", "SOURCES", "SMV_TEST_CUDA_LIBRARY", NULL });
        snprintf(library, sizeof(library), "%s", given("SMV_TEST_CUDA_LIBRARY"));
        unsetenv("SMV_TEST_CUDA_LIBRARY"); /* else all houses were the GPU's */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
