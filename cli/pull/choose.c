#include "cli/pull/choose.h"

#include <ctype.h>
#include <stdarg.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SHOWN_MAX     24u /* quantisations in a message */

/* Taken in this order if the user names none: small and good, then larger, then smaller ones. */
static const char *const preferred[] = { "Q4_K_M", "Q8_0",   "Q5_K_M", "Q6_K", "Q4_K_S", "Q4_0",
                                         "Q4_1",   "Q5_K_S", "Q5_0",   "Q5_1", "IQ4_XS", "IQ4_NL",
                                         "MXFP4",  "BF16",   "F16",    "F32" };

int listing_add(struct listing *listing, const char *path, uint64_t bytes, const char *digest)
{
        struct listed *files = realloc(listing->files, (listing->count + 1) * sizeof(*files));

        if (!files)
                return -ENOMEM;
        listing->files = files;
        files[listing->count] = (struct listed){ .path = strdup(path), .bytes = bytes };
        if (!files[listing->count].path)
                return -ENOMEM;
        snprintf(files[listing->count].digest, sizeof(files->digest), "%s", digest);
        listing->count++;
        return 0;
}

void listing_deinit(struct listing *listing)
{
        for (size_t i = 0; i < listing->count; i++)
                free(listing->files[i].path);
        free(listing->files);
        *listing = (struct listing){ 0 };
}

void choice_deinit(struct choice *choice)
{
        free(choice->files);
        choice->files = NULL;
        choice->count = 0;
}

const char *file_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static bool ends_in(const char *text, const char *suffix)
{
        size_t bytes = strlen(text), end = strlen(suffix);

        return bytes > end && !strcasecmp(text + bytes - end, suffix);
}

/* ---- names of GGUF files ---- */

/* A word of a name is a quantisation: Q4_K_M, IQ3_XXS, Q4_0, BF16, MXFP4, TQ1_0, UD-Q4_K_XL. */
static bool is_quantisation(const char *word, size_t bytes)
{
        static const char *const whole[] = { "F16",  "F32",   "BF16",  "FP16",
                                             "FP32", "MXFP4", "NVFP4", "MXFP4_MOE" };
        size_t at = 0;

        for (size_t i = 0; i < LENGTH(whole); i++)
                if (strlen(whole[i]) == bytes && !strncasecmp(word, whole[i], bytes))
                        return true;
        if (at < bytes &&
            (word[at] == 'I' || word[at] == 'i' || word[at] == 'T' || word[at] == 't'))
                at++;
        if (at + 1 >= bytes || (word[at] != 'Q' && word[at] != 'q') ||
            !isdigit((unsigned char)word[at + 1]))
                return false;
        for (at += 2; at < bytes; at++)
                if (!isalnum((unsigned char)word[at]) && word[at] != '_')
                        return false;
        return true;
}

void quantisation_of(const char *path, char to[32])
{
        const char *name = file_name(path), *at = name, *end;

        to[0] = '\0';
        for (; *at; at = *end ? end + 1 : end) {
                end = at + strcspn(at, "-.");
                if (!is_quantisation(at, (size_t)(end - at)) || end - at >= 28)
                        continue;
                /* Unsloth's dynamic quantisations are others than those of the same name. */
                snprintf(to, 32, "%s%.*s",
                         at - name >= 3 && !strncasecmp(at - 3, "UD-", 3) ? "UD-" : "",
                         (int)(end - at), at);
        }
        for (; *to; to++)
                *to = (char)toupper((unsigned char)*to);
}

bool is_gguf_piece(const char *path, unsigned *ret_number, unsigned *ret_count, size_t *ret_stem)
{
        size_t bytes = strlen(path), tail = strlen("-00001-of-00003.gguf");
        unsigned number, count;
        int end = 0;

        if (bytes <= tail ||
            sscanf(path + bytes - tail, "-%5u-of-%5u.gguf%n", &number, &count, &end) != 2 ||
            (size_t)end != tail || !number || number > count)
                return false;
        *ret_number = number;
        *ret_count = count;
        *ret_stem = bytes - tail;
        return true;
}

bool is_gguf_model(const char *path)
{
        static const char *const others[] = { "mmproj", "imatrix", "mtp-", "lora", "adapter" };
        const char *name = file_name(path);

        if (!ends_in(name, ".gguf"))
                return false;
        for (size_t i = 0; i < LENGTH(others); i++)
                if (strcasestr(name, others[i]))
                        return false;
        return true;
}

/* ---- choosing a GGUF file ---- */

/* A file that stands for a model: whole, or the first piece. */
static bool stands(const char *path)
{
        unsigned number, count;
        size_t stem;

        return is_gguf_model(path) && (!is_gguf_piece(path, &number, &count, &stem) || number == 1);
}

static bool has_quantisation(const char *path, const char *wanted)
{
        char own[32];

        quantisation_of(path, own);
        return !strcasecmp(own, wanted);
}

/* The file of exactly this path; -1: none. */
static long find_path(const struct listing *listing, const char *path)
{
        for (size_t i = 0; i < listing->count; i++)
                if (!strcmp(listing->files[i].path, path))
                        return (long)i;
        return -1;
}

/* The file of the repository that `want` names, by its path or its last part; -1: none. */
static long find_file(const struct listing *listing, const char *want)
{
        long exact = find_path(listing, want);

        for (size_t i = 0; exact < 0 && i < listing->count; i++)
                if (!strcasecmp(file_name(listing->files[i].path), want))
                        return (long)i;
        return exact;
}

/* How many files stand for a model of this quantisation; *ret_index: the first. */
static size_t count_quantised(const struct listing *listing, const char *wanted, size_t *ret_index)
{
        size_t count = 0;

        for (size_t i = listing->count; i--;) {
                if (!stands(listing->files[i].path) ||
                    !has_quantisation(listing->files[i].path, wanted))
                        continue;
                *ret_index = i;
                count++;
        }
        return count;
}

__attribute__((format(printf, 3, 4))) static void add_text(char *to, size_t bytes,
                                                           const char *format, ...)
{
        size_t used = strlen(to);
        va_list args;

        va_start(args, format);
        vsnprintf(to + used, bytes - used, format, args);
        va_end(args);
}

/* Lists the files that stand for models, or those of one quantisation. */
static void add_choices(const struct listing *listing, const char *quantisation, char *why,
                        size_t why_bytes)
{
        size_t shown = 0, all = 0;

        for (size_t i = 0; i < listing->count; i++) {
                const char *path = listing->files[i].path;
                char own[32];

                if (!stands(path) || (quantisation && !has_quantisation(path, quantisation)))
                        continue;
                quantisation_of(path, own);
                if (++all > SHOWN_MAX)
                        continue;
                add_text(why, why_bytes, "%s%s", shown++ ? ", " : "",
                         *own && !quantisation ? own : path);
        }
        if (all > SHOWN_MAX)
                add_text(why, why_bytes, " and %zu more", all - SHOWN_MAX);
}

static int refuse_quantisation(const struct listing *listing, const char *want, char *why,
                               size_t why_bytes)
{
        size_t first;

        if (*want && count_quantised(listing, want, &first) > 1) {
                snprintf(why, why_bytes,
                         "several files have the quantisation %s; name one: ", want);
                add_choices(listing, want, why, why_bytes);
        } else {
                snprintf(why, why_bytes, "there is no %s%s; there are: ",
                         *want ? "file or quantisation " : "GGUF file of a known quantisation",
                         want);
                add_choices(listing, NULL, why, why_bytes);
        }
        return -ENOENT;
}

/* The file to take: 0 and its index, or -ENOENT. */
static int find_gguf(const struct listing *listing, const char *want, size_t *ret_index, char *why,
                     size_t why_bytes)
{
        long file = *want ? find_file(listing, want) : -1;
        size_t models = 0, last = 0;

        if (file >= 0 && is_gguf_model(listing->files[file].path)) {
                *ret_index = (size_t)file;
                return 0;
        }
        if (*want)
                return count_quantised(listing, want, ret_index) == 1
                               ? 0
                               : refuse_quantisation(listing, want, why, why_bytes);
        for (size_t i = 0; i < listing->count; i++)
                if (stands(listing->files[i].path)) {
                        models++;
                        last = i;
                }
        if (models == 1) {
                *ret_index = last;
                return 0;
        }
        for (size_t i = 0; i < LENGTH(preferred); i++) {
                size_t count = count_quantised(listing, preferred[i], ret_index);

                if (count)
                        return count == 1
                                       ? 0
                                       : refuse_quantisation(listing, preferred[i], why, why_bytes);
        }
        return refuse_quantisation(listing, want, why, why_bytes);
}

static int add_file(struct choice *choice, size_t index)
{
        size_t *files = realloc(choice->files, (choice->count + 1) * sizeof(*files));

        if (!files)
                return -ENOMEM;
        choice->files = files;
        files[choice->count++] = index;
        return 0;
}

/* Letters that a name may not have become '-'. */
static void set_name(struct choice *choice, const char *from, size_t bytes)
{
        size_t count = bytes < STORE_NAME_BYTES ? bytes : STORE_NAME_BYTES;

        for (size_t i = 0; i < count; i++)
                choice->name[i] = from[i];
        choice->name[count] = '\0';
        for (size_t i = 0; i < count; i++)
                if (!store_may_name(choice->name + i, 1) && (!i || !strchr(".-", from[i])))
                        choice->name[i] = '-';
        if (*choice->name == '.' || *choice->name == '-')
                *choice->name = '_';
}

/* All pieces, in order. */
static int take_pieces(const struct listing *listing, const char *first, struct choice *choice,
                       char *why, size_t why_bytes)
{
        unsigned number, count = 0;
        size_t stem = 0;

        is_gguf_piece(first, &number, &count, &stem);
        for (unsigned i = 1; i <= count; i++) {
                char path[1024];
                long file;
                int r;

                snprintf(path, sizeof(path), "%.*s-%05u-of-%05u.gguf", (int)stem, first, i, count);
                file = find_path(listing, path);
                if (file < 0) {
                        snprintf(why, why_bytes,
                                 "piece %u of %u is missing, so there is no whole model: no %s", i,
                                 count, path);
                        return -ENOENT;
                }
                r = add_file(choice, (size_t)file);
                if (r)
                        return r;
        }
        choice->form = CHOICE_PIECES;
        first = file_name(first);
        stem = strlen(first) - strlen("-00001-of-00003.gguf");
        set_name(choice, first, stem);
        snprintf(choice->model, sizeof(choice->model), "%.*s.gguf", (int)stem, first);
        return 0;
}

static int take_gguf(const struct listing *listing, size_t index, struct choice *choice, char *why,
                     size_t why_bytes)
{
        const char *path = listing->files[index].path, *name = file_name(path);
        unsigned number, count;
        size_t stem;

        if (is_gguf_piece(path, &number, &count, &stem))
                return take_pieces(listing, path, choice, why, why_bytes);
        choice->form = CHOICE_GGUF;
        set_name(choice, name, strlen(name) - strlen(".gguf"));
        snprintf(choice->model, sizeof(choice->model), "%s", name);
        return add_file(choice, index);
}

/* ---- choosing a folder ---- */

/* What samovard reads beside the weights (daemon/files). */
static const char *const beside[] = {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "vocab.json",
        "merges.txt",
        "encoder.json",
        "vocab.bpe",
        "vocab.txt",
        "tekken.json",
        "tiktoken.model",
        "qwen.tiktoken",
        "chat_template.jinja",
        "chat_template.json",
        "model.safetensors.index.json",
};

/* "model.safetensors", or "model-00001-of-00002.safetensors". */
static bool is_weights(const char *path, bool sharded)
{
        unsigned number, count;
        int end = 0;

        if (!sharded)
                return !strcmp(path, "model.safetensors");
        return sscanf(path, "model-%5u-of-%5u.safetensors%n", &number, &count, &end) == 2 &&
               (size_t)end == strlen(path);
}

static bool is_beside(const char *path, bool sharded)
{
        if (!sharded && !strcmp(path, "model.safetensors.index.json"))
                return false;
        for (size_t i = 0; i < LENGTH(beside); i++)
                if (!strcmp(path, beside[i]))
                        return true;
        return !strncmp(path, "tekken_", 7) || !strncmp(path, "tokenizer.model.v", 17);
}

static int refuse_folder(const struct listing *listing, bool has_config, char *why,
                         size_t why_bytes)
{
        bool has_old = false;

        for (size_t i = 0; i < listing->count; i++)
                has_old |= ends_in(listing->files[i].path, ".bin") ||
                           ends_in(listing->files[i].path, ".pth") ||
                           ends_in(listing->files[i].path, ".pt");
        snprintf(why, why_bytes,
                 "it has no model that samovard could serve: no GGUF file, and no %s%s",
                 has_config ? "model.safetensors" : "config.json with model.safetensors",
                 has_old ? "; its weights are in PyTorch's old format, which is not read: look for "
                           "a repository with the same model as safetensors or GGUF"
                         : "");
        return -ENOENT;
}

/* Writes the name of a piece that lacks; false: all are there, as many as the first one says. */
static bool lacks_weights(const struct listing *listing, char to[64])
{
        unsigned number, count = 0;

        for (size_t i = 0; i < listing->count && !count; i++)
                if (is_weights(listing->files[i].path, true))
                        sscanf(listing->files[i].path, "model-%5u-of-%5u.", &number, &count);
        for (unsigned i = 1; i <= count; i++) {
                snprintf(to, 64, "model-%05u-of-%05u.safetensors", i, count);
                if (find_path(listing, to) < 0)
                        return true;
        }
        return false;
}

static int take_folder(const struct listing *listing, const char *repository, struct choice *choice,
                       char *why, size_t why_bytes)
{
        bool sharded = find_path(listing, "model.safetensors") < 0, has_weights = false,
             has_config = false;
        char lacking[64];
        int r = 0;

        for (size_t i = 0; i < listing->count && !r; i++) {
                const char *path = listing->files[i].path;
                bool weights = is_weights(path, sharded);

                has_weights |= weights;
                has_config |= !strcmp(path, "config.json");
                /* A listing that has a path twice does not make two files of it. */
                if ((weights || is_beside(path, sharded)) && find_path(listing, path) == (long)i)
                        r = add_file(choice, i);
        }
        if (r)
                return r;
        if (!has_weights || !has_config)
                return refuse_folder(listing, has_config, why, why_bytes);
        if (sharded && lacks_weights(listing, lacking)) {
                snprintf(why, why_bytes, "%s is missing, so there is no whole model", lacking);
                return -ENOENT;
        }
        choice->form = CHOICE_FOLDER;
        set_name(choice, file_name(repository), strlen(file_name(repository)));
        snprintf(choice->model, sizeof(choice->model), ".");
        return 0;
}

int choose(const struct listing *listing, const char *repository, const char *want,
           struct choice *ret_choice, char *why, size_t why_bytes)
{
        bool has_gguf = false;
        size_t index = 0;
        int r;

        *ret_choice = (struct choice){ 0 };
        for (size_t i = 0; i < listing->count; i++)
                has_gguf |= stands(listing->files[i].path);
        if (!strcasecmp(want, "safetensors") || ends_in(want, ".safetensors") ||
            (!has_gguf && !*want)) {
                r = take_folder(listing, repository, ret_choice, why, why_bytes);
        } else if (!has_gguf) {
                snprintf(why, why_bytes,
                         "it has no GGUF files, so there is no %s; leave out :%s to take its "
                         "safetensors",
                         want, want);
                r = -ENOENT;
        } else {
                r = find_gguf(listing, want, &index, why, why_bytes);
                if (!r)
                        r = take_gguf(listing, index, ret_choice, why, why_bytes);
        }
        if (r)
                choice_deinit(ret_choice);
        return r;
}
