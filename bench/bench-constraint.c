/*
 * What constrained output costs: bench-constraint VOCABULARY FILE...
 *
 * VOCABULARY is any file that --tokenizer takes.  A FILE has a schema and values, as those of
 * MaskBench: {"schema": ..., "tests": [{"valid": true, "data": ...}, ...]}.  Each schema is
 * compiled.  Each valid value is written and cut into the longest tokens that are legal, with a
 * mask before each token.  The last lines count schemas and values.
 *
 * -v tells why a schema is refused, and which values are wrongly taken or refused.
 *
 * -t: each FILE is a text instead, and is followed as free text in which a tool call may come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "daemon/constraint/json-schema.h"
#include "daemon/constraint/matcher.h"
#include "daemon/constraint/structure.h"
#include "daemon/files/vocabulary.h"
#include "daemon/text/tokenizer.h"
#include "json/builder.h"
#include "json/reader.h"

struct samples {
        uint64_t *ns;
        size_t count, size;
};

struct counts {
        unsigned files, compiled, valid, accepted, invalid, leaked, spent;
};

static bool verbose;

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench-constraint: %s: %s\n", what, why);
        exit(1);
}

static void add_sample(struct samples *samples, uint64_t ns)
{
        if (samples->count == samples->size) {
                samples->size = samples->size ? 2 * samples->size : 1024;
                samples->ns = realloc(samples->ns, samples->size * sizeof(*samples->ns));
                if (!samples->ns)
                        die("samples", "no memory");
        }
        samples->ns[samples->count++] = ns;
}

static int compare(const void *one, const void *other)
{
        uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

        return (a > b) - (a < b);
}

static void print_samples(const char *name, struct samples *samples)
{
        static const struct {
                const char *name;
                double part;
        } parts[] = {
                { "p50", .5 }, { "p90", .9 }, { "p95", .95 }, { "p99", .99 }, { "p99.9", .999 }
        };
        double sum = 0;

        if (samples->count == 0)
                return;
        qsort(samples->ns, samples->count, sizeof(*samples->ns), compare);
        for (size_t i = 0; i < samples->count; i++)
                sum += (double)samples->ns[i];
        printf("%s, %zu, us: mean %.1f", name, samples->count, sum / 1e3 / samples->count);
        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
                printf(", %s %.1f", parts[i].name,
                       samples->ns[(size_t)((samples->count - 1) * parts[i].part)] / 1e3);
        printf(", most %.1f\n", samples->ns[samples->count - 1] / 1e3);
}

static struct token_trie *open_trie(const char *path)
{
        struct vocabulary *vocabulary = NULL;
        struct tokenizer *tokenizer = NULL;
        struct token_text *texts;
        struct token_trie *trie;
        char why[256];
        uint32_t count;

        if (vocabulary_open(path, NULL, &vocabulary, why, sizeof(why)) ||
            tokenizer_open(vocabulary, vocabulary->entry_count, &tokenizer, why, sizeof(why)))
                die(path, why);
        count = vocabulary->entry_count;
        texts = calloc(count, sizeof(*texts));
        for (uint32_t i = 0; texts && i < count; i++) {
                size_t bytes;

                texts[i].bytes = tokenizer_piece(tokenizer, i, &bytes);
                texts[i].count = bytes;
        }
        trie = texts ? token_trie_new(texts, count, NULL, 0) : NULL;
        if (!trie)
                die(path, "no memory");
        free(texts);
        vocabulary_close(vocabulary);
        return trie;
}

/* The longest token of the mask that the text begins with; its bytes, or 0. */
static uint32_t longest_token(const struct token_trie *trie, const uint32_t *bits, const char *text,
                              size_t bytes, uint32_t *ret_token)
{
        uint32_t best = 0;

        for (uint32_t token = 0; token < trie->token_count; token++) {
                uint32_t begin = trie->offsets[token], count = trie->offsets[token + 1] - begin;

                if (count > best && count <= bytes && text[0] == trie->texts[begin] &&
                    (bits[token >> 5] >> (token & 31) & 1) &&
                    memcmp(text, trie->texts + begin, count) == 0) {
                        best = count;
                        *ret_token = token;
                }
        }
        return best;
}

static bool follow(struct matcher *matcher, const struct token_trie *trie, const struct bytes *text,
                   struct samples *masks, struct samples *takes)
{
        static uint32_t bits[TOKEN_TRIE_MAX / 32];
        uint32_t token = 0, count;

        matcher_reset(matcher);
        for (size_t at = 0; at < text->count; at += count) {
                uint64_t began = sys_clock_ns();
                enum matcher_outcome outcome = matcher_mask(matcher, bits);

                add_sample(masks, sys_clock_ns() - began);
                count = outcome == MATCHER_FINE
                                ? longest_token(trie, bits, text->at + at, text->count - at, &token)
                                : 0;
                if (count == 0)
                        return false;
                began = sys_clock_ns();
                if (matcher_take(matcher, token) != MATCHER_FINE)
                        die("a token of the mask", "it is not taken");
                add_sample(takes, sys_clock_ns() - began);
        }
        return matcher_can_end(matcher);
}

static struct bytes text_of(const struct json_document *json, uint32_t node)
{
        struct bytes text = { 0 };
        struct json_builder builder = json_build(&text);

        json_put_node(&builder, json, node);
        if (json_put_end(&builder))
                die("a value", "no memory");
        return text;
}

static void run_values(const struct json_document *json, const char *path, struct matcher *matcher,
                       const struct token_trie *trie, struct samples *masks, struct samples *takes,
                       struct counts *counts)
{
        uint32_t tests = json_member(json, 0, "tests");

        for (uint32_t at = json_first(json, tests); at != JSON_NONE; at = json_next(json, at)) {
                struct bytes text = text_of(json, json_member(json, at, "data"));
                bool valid = false, accepted;

                json_bool(json, json_member(json, at, "valid"), &valid);
                if (valid) {
                        accepted = follow(matcher, trie, &text, masks, takes);
                } else {
                        matcher_reset(matcher);
                        accepted =
                                matcher_take_bytes(matcher, text.at, text.count) == MATCHER_FINE &&
                                matcher_can_end(matcher);
                }
                counts->valid += valid;
                counts->invalid += !valid;
                counts->accepted += valid && accepted;
                counts->leaked += !valid && accepted;
                if (verbose && valid != accepted)
                        printf("# %s: %s: %.300s\n", path, valid ? "refused" : "taken", text.at);
                bytes_deinit(&text);
                if (matcher_take_bytes(matcher, "", 0) == MATCHER_SPENT) {
                        counts->spent++;
                        printf("# %s: %s\n", path, matcher_why(matcher));
                        return;
                }
        }
}

static void run_text(const char *path, const struct token_trie *trie, struct samples *compiles,
                     struct samples *masks, struct samples *takes)
{
        static const struct structure call[] = {
                { .kind = STRUCTURE_LITERAL, .text = { "<tool_call>", 11 } },
                { .kind = STRUCTURE_SCHEMA, .text = { "{\"type\":\"object\"}", 17 } },
                { .kind = STRUCTURE_LITERAL, .text = { "</tool_call>", 12 } },
        };
        static const struct structure calls = { .kind = STRUCTURE_SEQUENCE,
                                                .parts = call,
                                                .count = 3 };
        static const struct structure free_text = {
                .kind = STRUCTURE_TEXT, .parts = &calls, .count = 1, .max = REGEX_FOREVER
        };
        static char text[1 << 20];
        struct bytes piece = { .at = text };
        struct grammar *grammar;
        struct matcher *matcher;
        char why[400];
        FILE *in = fopen(path, "rb");
        uint64_t began = sys_clock_ns();

        if (!in ||
            structure_compile(&free_text, &grammar_limits_default, &grammar, why, sizeof(why)) < 0)
                die(path, in ? why : "it cannot be read");
        add_sample(compiles, sys_clock_ns() - began);
        matcher = matcher_new(grammar, trie, &matcher_limits_default);
        piece.count = fread(text, 1, sizeof(text), in);
        if (!matcher || !follow(matcher, trie, &piece, masks, takes))
                die(path, "it is no free text");
        fclose(in);
        matcher_free(matcher);
        grammar_free(grammar);
}

static void run_file(const char *path, const struct token_trie *trie, struct samples *compiles,
                     struct samples *masks, struct samples *takes, struct counts *counts)
{
        static const struct json_schema_options options = { JSON_SPACE_ONE, true };
        static char text[8 << 20];
        struct json_document *json;
        struct grammar *grammar;
        struct bytes schema;
        char why[400];
        FILE *in = fopen(path, "rb");
        size_t bytes = in ? fread(text, 1, sizeof(text), in) : 0;
        uint64_t began;

        if (!in || json_parse(text, bytes, 1 << 20, &json, why, sizeof(why)) < 0)
                die(path, in ? why : "it cannot be read");
        fclose(in);
        schema = text_of(json, json_member(json, 0, "schema"));
        counts->files++;
        began = sys_clock_ns();
        if (json_schema_compile(schema.at, schema.count, &options, &grammar_limits_default,
                                &grammar, why, sizeof(why)) == 0) {
                struct matcher *matcher;

                add_sample(compiles, sys_clock_ns() - began);
                matcher = matcher_new(grammar, trie, &matcher_limits_default);
                if (!matcher)
                        die(path, "no memory");
                counts->compiled++;
                run_values(json, path, matcher, trie, masks, takes, counts);
                matcher_free(matcher);
                grammar_free(grammar);
        } else if (verbose) {
                printf("# %s: %s\n", path, why);
        }
        bytes_deinit(&schema);
        json_free(json);
}

int main(int argc, char **argv)
{
        struct samples compiles = { 0 }, masks = { 0 }, takes = { 0 };
        struct counts counts = { 0 };
        struct token_trie *trie;
        uint32_t nodes = 0;
        bool texts = false;
        int option;

        while ((option = getopt(argc, argv, "tv")) == 't' || option == 'v')
                *(option == 'v' ? &verbose : &texts) = true;
        if (option != -1 || optind + 2 > argc) {
                fputs("usage: bench-constraint [-tv] VOCABULARY FILE...\n", stderr);
                return 2;
        }
        trie = open_trie(argv[optind]);
        for (enum token_slice which = 0; which < SLICE_COUNT; which++)
                nodes += trie->slices[which].count;
        printf("# %u tokens, %u nodes, %u nodes that are not plain\n", trie->token_count, nodes,
               trie->slices[SLICE_OTHER].count);
        for (int i = optind + 1; i < argc && !texts; i++)
                run_file(argv[i], trie, &compiles, &masks, &takes, &counts);
        for (int i = optind + 1; i < argc && texts; i++)
                run_text(argv[i], trie, &compiles, &masks, &takes);
        print_samples("compile", &compiles);
        print_samples("mask", &masks);
        print_samples("take", &takes);
        if (!texts)
                printf("schemas compiled: %u of %u; valid values accepted: %u of %u; "
                       "invalid values refused: %u of %u; budgets spent: %u\n",
                       counts.compiled, counts.files, counts.accepted, counts.valid,
                       counts.invalid - counts.leaked, counts.invalid, counts.spent);
        token_trie_free(trie);
        return 0;
}
