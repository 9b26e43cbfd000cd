/*
 * How fast texts become ids, and ids texts: bench-text [-r ROUNDS] VOCABULARY TEXT
 *
 * The whole file is converted by one call, on one thread.  Then its tokens are divided into parts:
 * as text, and in calls or messages of the dialects whose readers differ most.  VOCABULARY is any
 * file that --tokenizer takes; the splitter is the one that it names.  contrib/bench/text runs the
 * same conversion with another program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/table.h"
#include "daemon/files/vocabulary.h"
#include "base/sys.h"
#include "daemon/text/parts.h"
#include "daemon/text/tokenizer.h"

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench-text: %s: %s\n", what, why);
        exit(1);
}

static char *read_whole(const char *path, size_t *ret_bytes)
{
        FILE *in = fopen(path, "rb");
        char *text = NULL;
        long bytes = -1;

        if (in && !fseek(in, 0, SEEK_END))
                bytes = ftell(in);
        if (bytes > 0)
                text = malloc((size_t)bytes);
        if (!text || fseek(in, 0, SEEK_SET) || fread(text, 1, (size_t)bytes, in) != (size_t)bytes)
                die(path, "it cannot be read, or is empty");
        fclose(in);
        *ret_bytes = (size_t)bytes;
        return text;
}

static struct tokenizer *open_tokenizer(const char *path)
{
        struct vocabulary *vocabulary = NULL;
        struct tokenizer *tokenizer = NULL;
        char why[256];

        if (vocabulary_open(path, NULL, &vocabulary, why, sizeof(why)) ||
            tokenizer_open(vocabulary, vocabulary->entry_count, &tokenizer, why, sizeof(why)))
                die(path, why);
        vocabulary_close(vocabulary);
        return tokenizer;
}

static double mb_a_second(size_t bytes, uint64_t began)
{
        return (double)bytes * 1e3 / (double)(sys_clock_ns() - began);
}

/* Their pieces, one after the other; how many bytes. */
static size_t spell(const struct tokenizer *tokenizer, const uint32_t *ids, size_t count, char *to)
{
        size_t at = 0, bytes;

        for (size_t i = 0; i < count; i++) {
                const char *piece = tokenizer_piece(tokenizer, ids[i], &bytes);

                memcpy(to + at, piece, bytes);
                at += bytes;
        }
        return at;
}

/* ---- parts ---- */

/* An argument in JSON would end at the first quote of the text. */
static const struct {
        const char *what, *dialect, *sign;
        const char *before; /* the call, up to the argument; NULL: the tokens are text */
} readers[] = {
        { "parts of a text", "hermes", "<tool_call> <think>", NULL },
        { "parts of an argument in tags", "qwen3-coder",
          "<tool_call> <function= <parameter=", "<tool_call>\n<function=f>\n<parameter=a>\nx" },
        { "parts of a literal argument", "gemma4",
          "<|tool_call>call:", "<|tool_call>call:f{a:<|\"|>" },
        { "parts of a message in a channel", "harmony", "<|channel|> <|message|>",
          "<|channel|>final<|message|>" },
};

/* Nanoseconds for each of these tokens. */
static double divide(const struct tokenizer *tokenizer, const struct dialect *dialect,
                     const char *before, const uint32_t *ids, size_t count)
{
        size_t space = parts_bytes_max(dialect->piece_max + 4096), bytes;
        size_t entries = parts_count_max(dialect, dialect->piece_max + 4096);
        struct parts_out out = { .text = malloc(space),
                                 .parts = calloc(entries, sizeof(*out.parts)) };
        struct parts parts;
        uint64_t began;

        if (!out.text || !out.parts)
                die("parts", "no memory");
        parts_begin(&parts, dialect, NULL, true, false);
        if (before)
                parts_feed(&parts, before, strlen(before), &out);
        began = sys_clock_ns();
        for (size_t i = 0; i < count; i++) {
                const char *piece = tokenizer_piece(tokenizer, ids[i], &bytes);

                out.bytes = out.count = 0;
                parts_feed(&parts, piece, bytes, &out);
                parts_count(&parts);
        }
        began = sys_clock_ns() - began;
        free(out.text);
        free(out.parts);
        return (double)began / (double)count;
}

static void add_parts(const struct tokenizer *tokenizer, const uint32_t *ids, size_t count)
{
        for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
                const struct dialect_conf conf = { .tokenizer = tokenizer,
                                                   .templates = { readers[i].sign } };
                struct dialect dialect;

                dialect_open(&conf, &dialect);
                if (strcmp(dialect.name, readers[i].dialect))
                        die(readers[i].dialect, "it has other signs now");
                table_add_one("ns for a token", readers[i].what, "< 1000",
                              divide(tokenizer, &dialect, readers[i].before, ids, count));
        }
}

int main(int argc, char **argv)
{
        static const char rate[] = "MB/s of text, one thread";
        struct tokenizer *tokenizer;
        size_t bytes, count = 0, spelt = 0;
        uint32_t *ids, rounds = 3;
        char *text, *again;
        uint64_t began;
        int option;

        while ((option = getopt(argc, argv, "r:")) == 'r' && atoi(optarg) > 0)
                rounds = (uint32_t)atoi(optarg);
        if (option != -1 || optind + 2 != argc) {
                fputs("usage: bench-text [-r ROUNDS] VOCABULARY TEXT\n", stderr);
                return 2;
        }
        tokenizer = open_tokenizer(argv[optind]);
        text = read_whole(argv[optind + 1], &bytes);
        ids = calloc(tokenizer_ids_max(tokenizer, bytes), sizeof(*ids));
        if (!ids)
                die("ids", "no memory");
        for (uint32_t i = 0; i < rounds; i++) {
                began = sys_clock_ns();
                if (tokenizer_encode(tokenizer, text, bytes, NULL, ids, &count))
                        die(argv[optind + 1], "no memory");
                table_add_one(rate, "ids of a text", "", mb_a_second(bytes, began));
                if (i == 0 && !(again = malloc(count * tokenizer_piece_max(tokenizer))))
                        die("a text", "no memory");
                began = sys_clock_ns();
                spelt = spell(tokenizer, ids, count, again);
                table_add_one(rate, "text of ids", "", mb_a_second(bytes, began));
                add_parts(tokenizer, ids, count);
        }
        printf("# %zu bytes, %zu ids, whose text has %zu bytes\n", bytes, count, spelt);
        table_print();
        return 0;
}
