/*
 * Which files of a repository make a model that samovard can serve.  Pure.
 *
 * A model is a GGUF file, the pieces of one, or a folder of safetensors: the weights, config.json,
 * and the files of the tokenizer and of the chat template.  If there are GGUF files, one of them is
 * taken: of the wanted quantisation, or of the best known one.
 */
#ifndef CLI_PULL_CHOOSE_H
#define CLI_PULL_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* A larger file is a lie; sums of so many bytes cannot overflow. */
#define LISTED_BYTES_MAX (UINT64_C(1) << 50)

struct listed {
        char *path; /* in the repository */
        uint64_t bytes;
        char digest[65]; /* SHA-256; or 40 digits: git's object id; or empty */
};

struct listing {
        struct listed *files;
        size_t count;
};
/* 0 or -ENOMEM. */
int listing_add(struct listing *listing, const char *path, uint64_t bytes, const char *digest);
void listing_deinit(struct listing *listing);

enum choice_form { CHOICE_GGUF, CHOICE_PIECES, CHOICE_FOLDER };

struct choice {
        enum choice_form form;
        size_t *files; /* indices in the listing; pieces are in order */
        size_t count;
        char name[STORE_NAME_BYTES + 1];
        char model[256]; /* the file that samovard opens, "." for a folder */
};

/*
 * `want` is a quantisation, a file, "safetensors", or "".  `repository` names a folder.  0;
 * -ENOENT: nothing fits, and `why` lists what is there; or -ENOMEM.
 */
int choose(const struct listing *listing, const char *repository, const char *want,
           struct choice *ret_choice, char *why, size_t why_bytes);
void choice_deinit(struct choice *choice);

/* The last part of a path. */
const char *file_name(const char *path);
/* "Q4_K_M" of "model-Q4_K_M.gguf", in capitals; "" if the name has none. */
void quantisation_of(const char *path, char to[32]);
/* A GGUF file with a model's weights, and not with something beside them. */
bool is_gguf_model(const char *path);
/*
 * If the path is a piece, as in "a-00001-of-00003.gguf": its number, from 1, and how many there
 * are; *ret_stem is how many bytes stand before "-00001".
 */
bool is_gguf_piece(const char *path, unsigned *ret_number, unsigned *ret_count, size_t *ret_stem);

#endif
