/*
 * Reads a vocabulary from a file of ranks, as tiktoken writes it: lines of a token in Base64, a
 * blank, and its rank, which is its id.  Two tokens merge if the result is one, the lowest rank
 * first.
 *
 * Such a file has neither an expression nor control tokens.  Those of some models are known by the
 * number of ranks.  For others the caller names the splitter, and tokenizer_config.json beside the
 * file has the control tokens.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/base64.h"
#include "daemon/files/side-tokens.h"
#include "daemon/files/vocabulary-builder.h"
#include "daemon/files/vocabulary.h"

#define LINE_BYTES_MAX 4096u
#define NAME_BYTES_MAX 64u
#define SPECIALS_MAX   2048u
#define SPARE_IDS      4096u

/* Control tokens: one, or `count` of them that are numbered from `first` on. */
struct specials {
        const char *name; /* with %u if they are numbered */
        uint32_t first, count;
};

static const struct specials llama3[] = {
        { "<|begin_of_text|>", 0, 1 },
        { "<|end_of_text|>", 0, 1 },
        { "<|reserved_special_token_%u|>", 0, 2 },
        { "<|finetune_right_pad_id|>", 0, 1 },
        { "<|step_id|>", 0, 1 },
        { "<|start_header_id|>", 0, 1 },
        { "<|end_header_id|>", 0, 1 },
        { "<|eom_id|>", 0, 1 },
        { "<|eot_id|>", 0, 1 },
        { "<|python_tag|>", 0, 1 },
        { "<|image|>", 0, 1 },
        { "<|reserved_special_token_%u|>", 2, 244 },
        { NULL, 0, 0 },
};

static const struct specials llama4[] = {
        { "<|begin_of_text|>", 0, 1 },
        { "<|end_of_text|>", 0, 1 },
        { "<|fim_prefix|>", 0, 1 },
        { "<|fim_middle|>", 0, 1 },
        { "<|fim_suffix|>", 0, 1 },
        { "<|header_start|>", 0, 1 },
        { "<|header_end|>", 0, 1 },
        { "<|eom|>", 0, 1 },
        { "<|eot|>", 0, 1 },
        { "<|step|>", 0, 1 },
        { "<|text_post_train_reserved_special_token_%u|>", 0, 6 },
        { "<|python_start|>", 0, 1 },
        { "<|python_end|>", 0, 1 },
        { "<|finetune_right_pad|>", 0, 1 },
        { "<|text_post_train_reserved_special_token_%u|>", 8, 61 },
        { "<|image_start|>", 0, 1 },
        { "<|image_end|>", 0, 1 },
        { "<|vision_reserved_special_token_%u|>", 0, 2 },
        { "<|tile_x_separator|>", 0, 1 },
        { "<|tile_y_separator|>", 0, 1 },
        { "<|vision_reserved_special_token_%u|>", 2, 4 },
        { "<|image|>", 0, 1 },
        { "<|vision_reserved_special_token_%u|>", 6, 1 },
        { "<|patch|>", 0, 1 },
        { "<|vision_reserved_special_token_%u|>", 7, 1041 },
        { "<|reasoning_reserved_special_token_%u|>", 0, 8 },
        { "<|reasoning_thinking_start|>", 0, 1 },
        { "<|reasoning_thinking_end|>", 0, 1 },
        { "<|reserved_special_token_%u|>", 0, UINT32_MAX }, /* up to 2048 in all */
        { NULL, 0, 0 },
};

static const struct specials qwen[] = {
        { "<|endoftext|>", 0, 1 },  { "<|im_start|>", 0, 1 }, { "<|im_end|>", 0, 1 },
        { "<|extra_%u|>", 0, 205 }, { NULL, 0, 0 },
};

static const struct specials none[] = { { NULL, 0, 0 } };

static const struct family {
        uint32_t ranks;
        const char *splitter;
        const struct specials *specials;
        uint32_t special_count;
        uint32_t bos, eos; /* which of the control tokens; bos VOCABULARY_NONE: none */
        bool composes;     /* Qwen's own class composes a text (NFC) before tiktoken gets it */
} families[] = {
        { 128000, "llama3", llama3, 256, 0, 1, false },
        { 200000, "gpt-4o", llama4, SPECIALS_MAX, 0, 1, false },
        { 151643, "qwen2", qwen, 208, VOCABULARY_NONE, 0, true },
        { 248044, "qwen35", none, 0, VOCABULARY_NONE, VOCABULARY_NONE, false },
};

struct rank_reader {
        struct vocabulary_builder m;
        const char *text;
        size_t left;
        uint64_t line;
        char *decoded; /* of all tokens; the builder keeps pointers into it */
        size_t decoded_bytes;
        char *names;                 /* of control tokens */
        const struct family *family; /* NULL: none that is known */
        const struct splitter *cuts;
};

/* The next line that is not empty.  False: there is none. */
static bool next_line(struct rank_reader *rd, const char **ret_line, size_t *ret_bytes)
{
        while (rd->left) {
                const char *end = memchr(rd->text, '\n', rd->left);
                size_t bytes = end ? (size_t)(end - rd->text) : rd->left;

                *ret_line = rd->text;
                *ret_bytes = bytes && rd->text[bytes - 1] == '\r' ? bytes - 1 : bytes;
                rd->text += bytes + (end != NULL);
                rd->left -= bytes + (end != NULL);
                rd->line++;
                if (*ret_bytes)
                        return true;
        }
        return false;
}

/* The token of a line, in rd->decoded. */
static int read_line(struct rank_reader *rd, const char *line, size_t bytes, size_t *ret_count,
                     uint64_t *ret_rank)
{
        const char *blank = memchr(line, ' ', bytes);
        size_t token = blank ? (size_t)(blank - line) : bytes;

        *ret_rank = 0;
        if (!blank || bytes > LINE_BYTES_MAX ||
            !base64_decode(line, token, rd->decoded + rd->decoded_bytes, ret_count) || !*ret_count)
                return vocabulary_builder_refuse(
                        &rd->m, "line %" PRIu64 " is not a token in Base64 and its rank", rd->line);
        for (size_t at = token + 1; at < bytes; at++) {
                if (line[at] < '0' || line[at] > '9' || *ret_rank >= VOCABULARY_ENTRIES_MAX)
                        return vocabulary_builder_refuse(
                                &rd->m, "the rank in line %" PRIu64 " is not a number below %u",
                                rd->line, VOCABULARY_ENTRIES_MAX);
                *ret_rank = 10 * *ret_rank + (uint64_t)(line[at] - '0');
        }
        if (token + 1 == bytes || *ret_rank >= VOCABULARY_ENTRIES_MAX)
                return vocabulary_builder_refuse(
                        &rd->m, "the rank in line %" PRIu64 " is not a number below %u", rd->line,
                        VOCABULARY_ENTRIES_MAX);
        return 0;
}

static int read_lines(struct rank_reader *rd)
{
        const char *line;
        size_t bytes, count;
        uint64_t rank;
        int r = 0;

        while (!r && next_line(rd, &line, &bytes)) {
                r = read_line(rd, line, bytes, &count, &rank);
                if (!r)
                        r = vocabulary_builder_add_entry(&rd->m, rank,
                                                         rd->decoded + rd->decoded_bytes, count,
                                                         ENTRY_NORMAL, SPELT_PLAIN, -(float)rank);
                rd->decoded_bytes += count;
        }
        return error_pass(r);
}

static int add_specials(struct rank_reader *rd, const struct family *family)
{
        uint32_t id = family->ranks, end = id + family->special_count;
        char *name = rd->names;
        int r = 0;

        for (const struct specials *s = family->specials; s->name; s++)
                for (uint32_t i = 0; !r && i < s->count && id < end; i++, id++) {
                        char number[16], *hole;

                        snprintf(name, NAME_BYTES_MAX, "%s", s->name);
                        hole = strstr(name, "%u");
                        if (hole) {
                                const char *tail = s->name + (hole - name) + 2;

                                snprintf(number, sizeof(number), "%u", s->first + i);
                                snprintf(hole, NAME_BYTES_MAX - (size_t)(hole - name), "%s%s",
                                         number, tail);
                        }
                        if (!vocabulary_builder_has(&rd->m, id))
                                r = vocabulary_builder_add_entry(&rd->m, id, name, strlen(name),
                                                                 ENTRY_CONTROL, SPELT_PLAIN, 0);
                        name += NAME_BYTES_MAX;
                }
        if (r)
                return error_pass(r);
        if (family->bos != VOCABULARY_NONE)
                rd->m.v.bos = family->ranks + family->bos;
        rd->m.v.add_bos = family->bos != VOCABULARY_NONE;
        if (family->eos != VOCABULARY_NONE)
                rd->m.v.eos = family->ranks + family->eos;
        return 0;
}

static int count_ranks(struct rank_reader *rd, uint64_t *ret_count, uint64_t *ret_ids)
{
        struct rank_reader copy = *rd;
        const char *line;
        size_t bytes, count;
        uint64_t rank;
        int r = 0;

        *ret_count = *ret_ids = 0;
        while (!r && next_line(&copy, &line, &bytes)) {
                r = read_line(&copy, line, bytes, &count, &rank);
                *ret_count += 1;
                if (rank >= *ret_ids)
                        *ret_ids = rank + 1;
        }
        return error_pass(r);
}

static const struct family *find_family(uint64_t count, uint64_t ids)
{
        for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
                if (families[i].ranks == count && ids == count)
                        return &families[i];
        return NULL;
}

static int choose_cuts(struct rank_reader *rd, const char *splitter, const struct family *family,
                       uint64_t count, const struct splitter **ret_cuts)
{
        if (!splitter && !family)
                return vocabulary_builder_refuse(&rd->m,
                                                 "a vocabulary of %" PRIu64 " ranks does not name "
                                                 "its splitter: use tokenizer = PATH=SPLITTER",
                                                 count);
        *ret_cuts = splitter_named(splitter ? splitter : family->splitter);
        if (!*ret_cuts)
                return vocabulary_builder_refuse(&rd->m, "the splitter '%s' is not supported",
                                                 shown(splitter).text);
        return 0;
}

/* Files beside it that have tokens know better than the family. */
static bool has_tokens(const struct side_files *side)
{
        return side && side->count;
}

/* Chooses the family and the splitter, and begins the builder. */
static int prepare(struct rank_reader *rd, const char *splitter, const struct side_files *side)
{
        size_t bytes = rd->left + side_files_bytes(side) + SPECIALS_MAX * NAME_BYTES_MAX;
        uint64_t count, ids;
        int r = count_ranks(rd, &count, &ids);

        if (r)
                return error_pass(r);
        if (!count)
                return vocabulary_builder_refuse(&rd->m, "it has no tokens");
        rd->family = find_family(count, ids);
        r = choose_cuts(rd, splitter, rd->family, count, &rd->cuts);
        if (r)
                return error_pass(r);
        if (side && side->fault[0]) /* it may have the control tokens */
                return vocabulary_builder_refuse(&rd->m, "%s", side->fault);
        if (ids > 2 * count + SPARE_IDS)
                return vocabulary_builder_refuse(
                        &rd->m, "its largest id is %" PRIu64 ", but it has %" PRIu64 " tokens",
                        ids - 1, count);
        r = side_files_fit(side, ids, &ids, rd->m.why, rd->m.why_bytes);
        if (r)
                return error_pass(r);
        if (rd->family && !has_tokens(side))
                ids += rd->family->special_count;
        return error_pass(
                vocabulary_builder_begin(&rd->m, ids, 0, bytes, rd->m.why, rd->m.why_bytes));
}

static int read_all(struct rank_reader *rd, const char *splitter, const struct side_files *side)
{
        int r = prepare(rd, splitter, side);

        rd->m.v.kind = VOCABULARY_BYTE_LEVEL;
        rd->m.v.whole_wins = rd->m.v.by_score = true;
        if (!r)
                r = read_lines(rd);
        if (!r)
                r = side_tokens_add(side, &rd->m);
        if (!r && rd->family && !has_tokens(side))
                r = add_specials(rd, rd->family);
        if (!r)
                side_tokens_set_ends(side, &rd->m);
        if (!r && rd->family && rd->family->composes)
                r = vocabulary_builder_add_normal(&rd->m, NORMAL_NFC, NULL, NULL, 0);
        return r ? error_pass(r) : error_pass(vocabulary_builder_add_cuts(&rd->m, rd->cuts));
}

int vocabulary_from_ranks(const char *text, size_t bytes, const char *splitter,
                          const struct side_files *side, struct vocabulary **ret_vocabulary,
                          char *why, size_t why_bytes)
{
        struct rank_reader rd = { .m = { .why = why, .why_bytes = why_bytes },
                                  .text = text,
                                  .left = bytes };
        int r;

        rd.decoded = malloc(bytes + 4);
        rd.names = malloc(SPECIALS_MAX * NAME_BYTES_MAX);
        if (rd.decoded && rd.names)
                r = read_all(&rd, splitter, side);
        else
                r = error_raise(errtext_set(why, why_bytes, -ENOMEM, "out of memory"));
        if (!r)
                r = vocabulary_builder_finish(&rd.m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&rd.m);
        free(rd.decoded);
        free(rd.names);
        return error_pass(r);
}
