/*
 * Reads a vocabulary, makes a tokenizer of it and encodes a text, each time with another allocation
 * or system call that fails: the result is a sentence or -ENOMEM, and nothing is left behind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/vocabulary.h"
#include "daemon/text/tokenizer.h"
#include "tests/e2e/fault-injection.h"
#include "tests/e2e/daemon-fixture.h"

#define TEXT  "Ho\xCC\x88lzer <|end|> it's 1234 \xE2\x96\x81 tea\n\n"
#define MOST  5000u /* allocations and calls of one run; far fewer are reached */
#define FRESH 100u

static uint32_t said; /* failures that were reported as such */

/* Returns 0, or the error of the failed step. */
static int go(const char *path, const char *splitter)
{
        struct encoding how = { .controls = &text_whole, .control_count = 1 };
        struct vocabulary *vocabulary;
        struct tokenizer *tokenizer;
        char why[256] = "";
        uint32_t *ids;
        size_t count;
        int r;

        r = vocabulary_open(path, splitter, &vocabulary, why, sizeof(why));
        if (r) {
                assert_true(*why);
                return r;
        }
        *why = '\0';
        r = tokenizer_open(vocabulary, vocabulary->entry_count, &tokenizer, why, sizeof(why));
        vocabulary_close(vocabulary);
        if (r) {
                assert_true(*why);
                return r;
        }
        ids = calloc(tokenizer_ids_max(tokenizer, strlen(TEXT)), sizeof(*ids));
        r = !ids ? -ENOMEM : tokenizer_encode(tokenizer, TEXT, strlen(TEXT), &how, ids, &count);
        free(ids);
        tokenizer_close(tokenizer);
        return r;
}

static void check_file(const char *name, enum fault_kind kind)
{
        char path[1024];
        uint32_t failed, n;
        bool spare;

        snprintf(path, sizeof(path), "%s/tests/golden/tokenizers/%s", env_path("SOURCES"), name);
        for (n = 0; n < MOST; n++) {
                const struct fault_plan plan = { .kind = kind, .first = n, .count = 1 };
                int r;

                faults_arm(&plan);
                r = go(path, NULL);
                failed = faults_failed();
                spare = faults_failed_in_libc();
                faults_disarm();
                if (!failed) {
                        assert_int_equal(r, 0);
                        break;
                }
                /* A failed system call that is started again leaves no trace. */
                if (kind == FAULT_ALLOC)
                        assert_true(r == -ENOMEM || (spare && !r));
                else
                        assert_true(r <= 0);
                said += r < 0;
        }
        assert_in_range(n, 3, MOST - 1);
}

static void opening_a_vocabulary_survives_each_failed_allocation_or_call(void **state)
{
        static const char *const names[] = { "llama3.json", "qwen2.json",    "gpt2.json",
                                             "llama2.json", "unknown.model", "bytes.model" };

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                for (int kind = FAULT_ALLOC; kind <= FAULT_CALL; kind++)
                        check_file(names[i], (enum fault_kind)kind);
        assert_true(said >= FRESH);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(opening_a_vocabulary_survives_each_failed_allocation_or_call),
        };

        require_env_paths((const char *const[]){ "SOURCES", NULL });
        faults_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
