/*
 * Hostile vocabulary files.
 *
 *      the kind of file | the file; of a pair: the vocabulary, 0, the merges; of words: they, 0,
 *      the configuration; if the kind says so, 0, a file that lies beside it
 *
 * An accepted file keeps the limits that vocabulary.h names.  It either makes a tokenizer that
 * gives a text back, or is refused with a sentence.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/gguf.h"
#include "daemon/files/side-files.h"
#include "daemon/files/vocabulary.h"
#include "daemon/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NODES_MAX (1u << 16)

/* Bits of the kind of file. */
enum { HAS_SIDE = 16, SIDE_IS_ADDED = 32 };

static char why[256];

static int read_one(const char *file, size_t size, unsigned what, const struct side_files *side,
                    struct vocabulary **ret)
{
        static const char *const splitters[] = { NULL, "gpt2", "llama3", "qwen2" };
        const char *splitter = splitters[what / 4 % 4], *end;
        struct gguf *gguf;
        int r;

        if (what >= 192)
                return vocabulary_from_tekken(file, size, ret, why, sizeof(why));
        if (what >= 128)
                return vocabulary_from_ranks(file, size, splitter, side, ret, why, sizeof(why));
        if (what >= 64) {
                end = memchr(file, 0, size);
                return vocabulary_from_words(
                        file, end ? (size_t)(end - file) : size, end ? end + 1 : NULL,
                        end ? (size_t)(file + size - end) - 1 : 0, side, ret, why, sizeof(why));
        }
        switch (what % 4) {
        case 0:
                r = gguf_parse((const uint8_t *)file, size, size, &gguf, why, sizeof(why));
                if (r)
                        return r;
                r = vocabulary_from_gguf(gguf, splitter, ret, why, sizeof(why));
                gguf_close(gguf);
                return r;
        case 1:
                return vocabulary_from_json(file, size, splitter, ret, why, sizeof(why));
        case 2:
                return vocabulary_from_model(file, size, side, ret, why, sizeof(why));
        default:
                end = memchr(file, 0, size);
                if (!end)
                        end = file + size;
                return vocabulary_from_pair(file, (size_t)(end - file), end + (end < file + size),
                                            (size_t)(file + size - end) - (end < file + size),
                                            splitter, side, ret, why, sizeof(why));
        }
}

/* One text is the configuration and the map of special tokens, or a list of added tokens. */
static int read_side(const char *text, size_t bytes, unsigned what, struct side_files *side)
{
        struct json_document **first = what & SIDE_IS_ADDED ? &side->added : &side->config;
        int r = json_parse_python(text, bytes, NODES_MAX, first, why, sizeof(why));

        if (!r)
                r = json_parse_python(text, bytes, NODES_MAX, &side->map, why, sizeof(why));
        return r ? r : side_files_measure(side, why, sizeof(why));
}

static int read_both(const char *file, size_t size, unsigned what, struct vocabulary **ret)
{
        const char *end = what & HAS_SIDE ? memrchr(file, 0, size) : NULL;
        struct side_files side = { 0 };
        int r;

        if (!end)
                return read_one(file, size, what, NULL, ret);
        r = read_side(end + 1, (size_t)(file + size - end) - 1, what, &side);
        if (!r)
                r = read_one(file, (size_t)(end - file), what, &side, ret);
        side_files_close(&side);
        return r;
}

static void check(const struct vocabulary *v)
{
        assert(v->entry_count && v->entry_count <= VOCABULARY_ENTRIES_MAX);
        for (uint32_t id = 0; v->kind != VOCABULARY_BYTES && id < v->entry_count; id++) {
                assert(v->entries[id].count <= VOCABULARY_ENTRY_BYTES_MAX);
                assert(v->entries[id].kind < ENTRY_KIND_N);
        }
        for (uint32_t i = 0; i < v->merge_count; i++)
                assert(v->merges[i].left < v->entry_count && v->merges[i].right < v->entry_count &&
                       v->merges[i].result < v->entry_count);
        assert(v->bos == VOCABULARY_NONE || v->bos < v->entry_count);
        assert(v->end_count <= VOCABULARY_ENDS_MAX);
        for (uint32_t i = 0; i < v->end_count; i++)
                assert(v->ends[i] < v->entry_count);
}

static void use(const struct vocabulary *v)
{
        static const char text[] = "a b\n<s> 12\xC3\xA9\xFF\r\n\xEF\xB7\xBA";
        struct encoding how = { .controls = &text_whole, .control_count = 1 };
        uint32_t *ids, vocab = v->entry_count < 256 ? 256 : v->entry_count;
        struct tokenizer *t;
        size_t count, bytes;

        why[0] = 0;
        if (tokenizer_open(v, vocab, &t, why, sizeof(why))) {
                assert(why[0]);
                return;
        }
        ids = calloc(tokenizer_ids_max(t, sizeof(text) - 1) + 1, sizeof(*ids));
        assert(ids);
        assert(!tokenizer_encode(t, text, sizeof(text) - 1, &how, ids, &count));
        for (size_t i = 0; i < count; i++) {
                assert(ids[i] < vocab);
                tokenizer_piece(t, ids[i], &bytes);
                assert(bytes <= tokenizer_piece_max(t));
        }
        free(ids);
        tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct vocabulary *v;

        if (!size)
                return 0;
        why[0] = 0;
        if (read_both((const char *)data + 1, size - 1, data[0], &v)) {
                assert(why[0]);
                return 0;
        }
        check(v);
        use(v);
        vocabulary_close(v);
        return 0;
}
