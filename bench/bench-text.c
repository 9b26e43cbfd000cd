/*
 * How fast texts become ids, and ids texts: bench-text [-r ROUNDS] VOCABULARY TEXT
 *
 * The whole file is converted by one call, on one thread.  VOCABULARY is any file that
 * --tokenizer takes; the splitter is the one that it names.  contrib/bench/text runs the same
 * conversion with another program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/table.h"
#include "daemon/files/vocabulary.h"
#include "base/sys.h"
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
        }
        printf("# %zu bytes, %zu ids, whose text has %zu bytes\n", bytes, count, spelt);
        table_print();
        return 0;
}
