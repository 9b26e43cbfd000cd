/*
 * The masks of a schema as a filter, for contrib/dev/masks.
 *
 * The standard input has frames: a letter, a length of 4 bytes, and as many bytes.  Numbers are
 * little endian.
 *
 *      V       the vocabulary: for each token, a length of 4 bytes and its text
 *      S       a schema: one byte, the space (enum json_space), then its text.  The answer is a
 *              line: the nanoseconds that it took, and `compiled` or the reason
 *      T       tokens, of 4 bytes each.  The answer is for the beginning of the text and behind
 *              each token: one byte, whether the text may end; 4 bytes, the nanoseconds of the
 *              token before and the mask; and the mask.  Then comes a byte 0xff, and one that
 *              says why it stopped: `e` behind the last token, `i` before an illegal one, `s` if
 *              a budget is spent
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "daemon/constraint/json-schema.h"
#include "daemon/constraint/matcher.h"

struct filter {
        struct token_trie *trie;
        struct grammar *grammar;
        struct matcher *matcher;
        uint32_t *bits;
};

static uint32_t number(const char *at)
{
        const unsigned char *bytes = (const unsigned char *)at;

        return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void *must(void *memory)
{
        if (!memory) {
                fputs("token-masks: no memory\n", stderr);
                exit(1);
        }
        return memory;
}

static void take_vocabulary(struct filter *filter, const char *at, size_t count)
{
        struct token_text *texts = must(malloc((count / 4 + 1) * sizeof(*texts)));
        const char *end = at + count;
        uint32_t tokens = 0;

        while (end - at >= 4) {
                uint32_t bytes = number(at);

                texts[tokens++] = (struct token_text){ at + 4, bytes };
                at += 4 + bytes;
        }
        filter->trie = must(token_trie_new(texts, tokens, NULL, 0));
        filter->bits = must(malloc(filter->trie->words * sizeof(*filter->bits)));
        free(texts);
}

static void take_schema(struct filter *filter, const char *at, size_t count)
{
        struct json_schema_options options = { (enum json_space)at[0], false };
        uint64_t begun = sys_clock_ns();
        char why[400];
        int r;

        filter->matcher = matcher_free(filter->matcher);
        filter->grammar = grammar_free(filter->grammar);
        r = json_schema_compile(at + 1, count - 1, &options, &grammar_limits_default,
                                &filter->grammar, why, sizeof(why));
        if (r < 0) {
                filter->grammar = NULL;
        } else {
                filter->matcher =
                        must(matcher_new(filter->grammar, filter->trie, &matcher_limits_default));
                matcher_reset(filter->matcher);
        }
        printf("%" PRIu64 " %s\n", sys_clock_ns() - begun, r < 0 ? why : "compiled");
}

static char put_masks(struct filter *filter, const char *at, size_t count)
{
        enum matcher_outcome outcome;
        uint64_t begun;
        uint32_t ns;

        matcher_reset(filter->matcher);
        for (begun = sys_clock_ns();; at += 4, count -= 4) {
                if (matcher_mask(filter->matcher, filter->bits) != MATCHER_FINE)
                        return 's';
                ns = (uint32_t)(sys_clock_ns() - begun);
                putchar(matcher_can_end(filter->matcher));
                fwrite(&ns, sizeof(ns), 1, stdout);
                fwrite(filter->bits, sizeof(*filter->bits), filter->trie->words, stdout);
                if (count < 4)
                        return 'e';
                begun = sys_clock_ns();
                outcome = matcher_take(filter->matcher, number(at));
                if (outcome != MATCHER_FINE)
                        return outcome == MATCHER_ILLEGAL ? 'i' : 's';
        }
}

int main(void)
{
        struct filter filter = { 0 };
        char head[5];

        while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
                size_t count = number(head + 1);
                char *frame = must(malloc(count + 1));

                if (fread(frame, 1, count, stdin) != count)
                        return 1;
                if (head[0] == 'V')
                        take_vocabulary(&filter, frame, count);
                else if (head[0] == 'S' && count)
                        take_schema(&filter, frame, count);
                else if (head[0] == 'T' && filter.matcher)
                        printf("\xff%c", put_masks(&filter, frame, count));
                else
                        return 1;
                free(frame);
                fflush(stdout);
        }
        matcher_free(filter.matcher);
        grammar_free(filter.grammar);
        token_trie_free(filter.trie);
        free(filter.bits);
        return 0;
}
