/*
 * Reads a vocabulary from tekken.json, which Mistral's models have since Nemo.
 *
 *      config          pattern (the expression), default_vocab_size, default_num_special_tokens
 *      vocab           of each token its rank and its token_bytes, in Base64
 *      special_tokens  of each its rank and its token_str; files before 2025 have no such list, and
 *                      mean the tokens below
 *
 * The ids of control tokens are their ranks, and those of the others follow them.  The list `vocab`
 * is longer than the model: default_vocab_size says how many ids there are.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/base64.h"
#include "daemon/files/vocabulary-builder.h"
#include "daemon/files/vocabulary.h"
#include "json/reader.h"

#define NODES_MAX      (8u * VOCABULARY_ENTRIES_MAX)
#define NAME_BYTES_MAX 32u

static const char *const old_specials[] = {
        "<unk>",
        "<s>",
        "</s>",
        "[INST]",
        "[/INST]",
        "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
        "[TOOL_CALLS]",
        "[IMG]",
        "<pad>",
        "[IMG_BREAK]",
        "[IMG_END]",
        "[PREFIX]",
        "[MIDDLE]",
        "[SUFFIX]",
        "[SYSTEM_PROMPT]",
        "[/SYSTEM_PROMPT]",
        "[TOOL_CONTENT]",
};

struct tekken_reader {
        struct vocabulary_builder m;
        const struct json_document *json;
        uint32_t config, vocab, specials;
        uint64_t ids, special_count;
        char *decoded; /* of all tokens; the builder keeps pointers into it */
        size_t decoded_bytes;
        char *names; /* of control tokens that the file does not list */
};

static int add_token(struct tekken_reader *rd, uint32_t node, uint64_t rank)
{
        size_t bytes, count;
        const char *text =
                json_string(rd->json, json_member(rd->json, node, "token_bytes"), &bytes);
        uint64_t said = UINT64_MAX;
        int r;

        json_whole(rd->json, json_member(rd->json, node, "rank"), &said);
        if (!text || said != rank ||
            !base64_decode(text, bytes, rd->decoded + rd->decoded_bytes, &count) || !count)
                return vocabulary_builder_refuse(&rd->m,
                                                 "entry %" PRIu64 " of 'vocab' has no rank %" PRIu64
                                                 ", or no bytes in Base64",
                                                 rank, rank);
        r = vocabulary_builder_add_entry(&rd->m, rd->special_count + rank,
                                         rd->decoded + rd->decoded_bytes, count, ENTRY_NORMAL,
                                         SPELT_PLAIN, -(float)rank);
        rd->decoded_bytes += count;
        return error_pass(r);
}

static int add_tokens(struct tekken_reader *rd)
{
        uint64_t rank = 0;
        int r = 0;

        for (uint32_t n = json_first(rd->json, rd->vocab);
             !r && n != JSON_NONE && rd->special_count + rank < rd->ids; n = json_next(rd->json, n))
                r = add_token(rd, n, rank++);
        if (!r && rd->special_count + rank < rd->ids)
                r = vocabulary_builder_refuse(
                        &rd->m, "'default_vocab_size' is %" PRIu64 ", but 'vocab' ends at %" PRIu64,
                        rd->ids, rd->special_count + rank);
        return error_pass(r);
}

static int add_special(struct tekken_reader *rd, uint64_t id, const char *name, size_t bytes,
                       bool control)
{
        return error_pass(vocabulary_builder_add_entry(
                &rd->m, id, name, bytes, control ? ENTRY_CONTROL : ENTRY_USER, SPELT_PLAIN, 0));
}

static int add_listed(struct tekken_reader *rd)
{
        int r = 0;

        for (uint32_t n = json_first(rd->json, rd->specials); !r && n != JSON_NONE;
             n = json_next(rd->json, n)) {
                size_t bytes;
                const char *name =
                        json_string(rd->json, json_member(rd->json, n, "token_str"), &bytes);
                uint64_t rank = UINT64_MAX;
                bool control = true;

                json_whole(rd->json, json_member(rd->json, n, "rank"), &rank);
                json_bool(rd->json, json_member(rd->json, n, "is_control"), &control);
                if (!name || rank >= rd->special_count)
                        return vocabulary_builder_refuse(
                                &rd->m,
                                "an entry of 'special_tokens' has no 'token_str', or no "
                                "'rank' below %" PRIu64,
                                rd->special_count);
                r = add_special(rd, rank, name, bytes, control);
        }
        return error_pass(r);
}

/* Ids of control tokens without a name have a number. */
static int add_specials(struct tekken_reader *rd)
{
        const size_t known = sizeof(old_specials) / sizeof(*old_specials);
        bool listed = json_count(rd->json, rd->specials);
        int r = listed ? add_listed(rd) : 0;

        for (uint64_t id = 0; !r && id < rd->special_count; id++) {
                char *name = rd->names + id * NAME_BYTES_MAX;

                if (vocabulary_builder_has(&rd->m, id))
                        continue;
                if (!listed && id < known)
                        snprintf(name, NAME_BYTES_MAX, "%s", old_specials[id]);
                else
                        snprintf(name, NAME_BYTES_MAX, "<SPECIAL_%" PRIu64 ">", id);
                r = add_special(rd, id, name, strlen(name), true);
        }
        return error_pass(r);
}

static int begin(struct tekken_reader *rd)
{
        const char *pattern =
                json_string(rd->json, json_member(rd->json, rd->config, "pattern"), NULL);
        uint64_t all = json_count(rd->json, rd->vocab);
        size_t bytes = 0, n;

        if (!pattern || !all)
                return vocabulary_builder_refuse(&rd->m,
                                                 "it has no 'config.pattern' or no 'vocab'");
        if (!json_whole(rd->json, json_member(rd->json, rd->config, "default_vocab_size"),
                        &rd->ids) ||
            !json_whole(rd->json, json_member(rd->json, rd->config, "default_num_special_tokens"),
                        &rd->special_count) ||
            rd->special_count > rd->ids || rd->ids - rd->special_count > all ||
            rd->special_count > (1u << 16))
                return vocabulary_builder_refuse(
                        &rd->m,
                        "'default_vocab_size' or 'default_num_special_tokens' is missing, "
                        "or does not fit 'vocab', which has %" PRIu64 " entries",
                        all);
        for (uint32_t node = json_first(rd->json, rd->vocab); node != JSON_NONE;
             node = json_next(rd->json, node))
                if (json_string(rd->json, json_member(rd->json, node, "token_bytes"), &n))
                        bytes += n;
        rd->decoded = malloc(bytes + 4);
        rd->names = malloc((size_t)rd->special_count * NAME_BYTES_MAX + 1);
        if (!rd->decoded || !rd->names)
                return error_raise(
                        errtext_set(rd->m.why, rd->m.why_bytes, -ENOMEM, "out of memory"));
        for (uint32_t node = json_first(rd->json, rd->specials); node != JSON_NONE;
             node = json_next(rd->json, node))
                if (json_string(rd->json, json_member(rd->json, node, "token_str"), &n))
                        bytes += n;
        return error_pass(vocabulary_builder_begin(
                &rd->m, rd->ids, 0, bytes + (size_t)rd->special_count * NAME_BYTES_MAX, rd->m.why,
                rd->m.why_bytes));
}

static uint32_t find(struct tekken_reader *rd, const char *name)
{
        return vocabulary_builder_find(&rd->m, name, strlen(name));
}

static int read_all(struct tekken_reader *rd)
{
        const char *pattern;
        int r;

        rd->config = json_member(rd->json, 0, "config");
        rd->vocab = json_member(rd->json, 0, "vocab");
        rd->specials = json_member(rd->json, 0, "special_tokens");
        pattern = json_string(rd->json, json_member(rd->json, rd->config, "pattern"), NULL);
        if ((r = begin(rd)) || (r = add_specials(rd)) || (r = add_tokens(rd)) ||
            (r = vocabulary_builder_add_cut(&rd->m, pattern, CUT_APART, false)))
                return error_pass(r);
        rd->m.v.kind = VOCABULARY_BYTE_LEVEL;
        rd->m.v.whole_wins = rd->m.v.by_score = true;
        rd->m.v.bos = find(rd, "<s>");
        rd->m.v.eos = find(rd, "</s>");
        rd->m.v.add_bos = rd->m.v.bos != VOCABULARY_NONE;
        return 0;
}

int vocabulary_from_tekken(const char *text, size_t bytes, struct vocabulary **ret_vocabulary,
                           char *why, size_t why_bytes)
{
        struct tekken_reader rd = { .m = { .why = why, .why_bytes = why_bytes } };
        struct json_document *json = NULL;
        int r = error_raise(json_parse(text, bytes, NODES_MAX, &json, why, why_bytes));

        rd.json = json;
        if (!r)
                r = read_all(&rd);
        if (!r)
                r = vocabulary_builder_finish(&rd.m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&rd.m);
        free(rd.decoded);
        free(rd.names);
        json_free(json);
        return error_pass(r);
}
