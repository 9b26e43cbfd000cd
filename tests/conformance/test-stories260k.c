/*
 * A model that somebody else trained, against numbers that somebody else computed:
 * stories260K, greedy, from a forward pass in double without a KV cache.
 *
 * SAMOVAR_DATA says where the files are; without it there is nothing to test.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/model-rig.h"

#define CONTEXT     128u
#define VOCAB       512u
#define NUMBERS_MAX 1024u
#define CASES       3u

struct story {
        double prompt[NUMBERS_MAX], greedy[NUMBERS_MAX], logits[NUMBERS_MAX];
        size_t prompt_count, greedy_count, logit_count;
};

static struct story stories[CASES];
static char model_path[1024];

/* The list of numbers behind the next "key" after *at; *at moves behind it.  False: no more. */
static bool list_next(const char **at, const char *key, double *ret_numbers, size_t *ret_count)
{
        const char *p = strstr(*at, key);
        size_t count = 0;
        char *end;

        if (!p || !(p = strchr(p, '[')))
                return false;
        while (*p != ']') {
                assert_true(count < NUMBERS_MAX);
                ret_numbers[count++] = strtod(p + 1, &end);
                assert_true(end > p + 1);
                p = end + strspn(end, " \n");
                assert_true(*p == ',' || *p == ']');
        }
        *at = p;
        *ret_count = count;
        return true;
}

static int read_goldens(void **state)
{
        static char text[1 << 16];
        const char *data = getenv("SAMOVAR_DATA"), *at = text;
        char path[1024];
        FILE *in;

        (void)state;
        snprintf(model_path, sizeof(model_path), "%s/models/stories260K/stories260K.gguf", data);
        snprintf(path, sizeof(path), "%s/models/goldens-stories260K.json", data);
        in = fopen(path, "rb");
        if (!in) {
                perror(path);
                return -1;
        }
        assert_true(fread(text, 1, sizeof(text) - 1, in) > 0 && feof(in));
        fclose(in);
        for (unsigned i = 0; i < CASES; i++) {
                struct story *s = &stories[i];

                assert_true(list_next(&at, "\"prompt_tokens\"", s->prompt, &s->prompt_count));
                assert_true(list_next(&at, "\"greedy_tokens\"", s->greedy, &s->greedy_count));
                assert_true(list_next(&at, "\"first_logits\"", s->logits, &s->logit_count));
                assert_int_equal(s->logit_count, VOCAB);
                assert_true(s->greedy_count > 50 && s->prompt_count <= RIG_ROWS);
        }
        return 0;
}

static void check_story(struct rig *rig, const struct story *s, double tolerance)
{
        static float logits[RIG_ROWS][VOCAB];
        uint32_t prompt[RIG_ROWS], tokens[RIG_ROWS], token;
        struct rig_part part = { 0, 0, (uint32_t)s->prompt_count, prompt };
        double worst = 0;

        for (size_t i = 0; i < s->prompt_count; i++)
                prompt[i] = (uint32_t)s->prompt[i];
        assert_int_equal(rig_run(rig, &part, 1, tokens, logits[0]), 0);
        for (size_t i = 0; i < VOCAB; i++)
                worst = fmax(worst, fabs((double)logits[s->prompt_count - 1][i] - s->logits[i]));
        if (!(worst <= tolerance))
                fail_msg("logits differ by %g", worst);
        token = tokens[s->prompt_count - 1];
        for (size_t i = 0; i < s->greedy_count; i++) {
                assert_int_equal(token, (uint32_t)s->greedy[i]);
                part = (struct rig_part){ 0, (uint32_t)(s->prompt_count + i), 1, &token };
                assert_int_equal(rig_run(rig, &part, 1, tokens, NULL), 0);
                token = tokens[0];
        }
}

static void check_backend(const char *backend)
{
        for (unsigned i = 0; i < CASES; i++) {
                struct rig rig;
                int r = rig_open(&rig, model_path, backend, 2, CONTEXT);

                if (r)
                        fail_msg("%s: %s", model_path, rig.why);
                check_story(&rig, &stories[i], 1e-4);
                rig_close(&rig);
        }
}

static void ref_tells_the_same_stories(void **state)
{
        (void)state;
        check_backend("ref");
}

static void cpu_tells_the_same_stories(void **state)
{
        (void)state;
        check_backend("cpu");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ref_tells_the_same_stories),
                cmocka_unit_test(cpu_tells_the_same_stories),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("skipped: SAMOVAR_DATA does not say where the models are");
                return 77;
        }
        return cmocka_run_group_tests(tests, read_goldens, NULL);
}
