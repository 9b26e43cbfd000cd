/*
 * Reads the facts about a checkpoint.  The digest needs little of a large file: whoever changes a
 * model's weights changes nearly all of them, so a few bytes of each tensor are enough.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/siphash.h"
#include "base/sys.h"
#include "daemon/files/checkpoint.h"

#define SAMPLE_BYTES 4096u
#define DIGEST_WORDS 4u

/* One hash of 256 bits, of all that was added so far. */
struct digest {
        uint64_t words[DIGEST_WORDS];
};

static void add(struct digest *digest, const void *bytes, size_t count)
{
        /* Fixed, as the digest must be the same everywhere.  There are two hashes of 128 bits. */
        for (uint32_t half = 0; half < DIGEST_WORDS / 2; half++) {
                uint64_t *words = digest->words + 2 * half, key[2] = { words[0], words[1] + half };

                siphash(key, bytes, count, words);
        }
}

static int add_sample(struct digest *digest, const struct checkpoint *checkpoint,
                      const struct tensor *tensor, uint64_t from, char *why, size_t why_bytes)
{
        uint64_t left = tensor->bytes - from;
        uint8_t bytes[SAMPLE_BYTES];
        size_t count = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
        int r = checkpoint_read(checkpoint, tensor, from, bytes, count, why, why_bytes);

        if (!r)
                add(digest, bytes, count);
        return error_pass(r);
}

static int add_tensor(struct digest *digest, const struct checkpoint *checkpoint,
                      const struct tensor *tensor, char *why, size_t why_bytes)
{
        const uint32_t shape[] = { (uint32_t)tensor->type, tensor->rows, tensor->columns };
        int r;

        add(digest, tensor->name, strlen(tensor->name));
        if (tensor->unserved)
                return 0;
        add(digest, shape, sizeof(shape));
        r = add_sample(digest, checkpoint, tensor, 0, why, why_bytes);
        if (!r)
                r = add_sample(digest, checkpoint, tensor, tensor->bytes / 2, why, why_bytes);
        return error_pass(r);
}

/* Other programs print it, so it has letters, digits and the like, or it is left out. */
static bool is_plain(const char *name)
{
        size_t count = strlen(name);

        return count < sizeof(((struct model_facts *)NULL)->architecture) &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
                       count;
}

/* "general.architecture", or "model_type" of config.json. */
static void read_architecture(const struct checkpoint *checkpoint, struct model_facts *facts)
{
        const struct json_document *config = checkpoint_config(checkpoint);
        const char *name =
                config ? json_string(config, json_member(config, 0, "model_type"), NULL)
                       : gguf_string(checkpoint_gguf(checkpoint), "general.architecture");

        snprintf(facts->architecture, sizeof(facts->architecture), "%s",
                 name && is_plain(name) ? name : "");
}

static void note_time(const struct checkpoint *checkpoint, const struct tensor *tensor,
                      struct model_facts *facts)
{
        struct sys_mark mark;

        if (!sys_file_mark(checkpoint_fd(checkpoint, tensor), &mark) &&
            mark.changed_s > facts->modified_s)
                facts->modified_s = mark.changed_s;
}

int checkpoint_facts(const struct checkpoint *checkpoint, struct model_facts *ret_facts, char *why,
                     size_t why_bytes)
{
        const struct tensor_table *table = checkpoint_tensors(checkpoint);
        struct model_facts facts = { .format =
                                             checkpoint_gguf(checkpoint) ? "gguf" : "safetensors" };
        struct digest digest = { { 0 } };
        uint32_t file = UINT32_MAX;

        read_architecture(checkpoint, &facts);
        for (uint32_t i = 0; i < table->count; i++) {
                /* The order in the file says nothing. */
                const struct tensor *tensor = table->sorted[i];
                int r = add_tensor(&digest, checkpoint, tensor, why, why_bytes);

                if (r)
                        return error_pass(r);
                if (!tensor->unserved)
                        facts.parameters += (uint64_t)tensor->rows * tensor->columns;
                if (tensor->file != file)
                        note_time(checkpoint, tensor, &facts);
                file = tensor->file;
        }
        for (uint32_t i = 0; i < DIGEST_WORDS; i++)
                snprintf(facts.digest + (size_t)16 * i, 17, "%016llx",
                         (unsigned long long)digest.words[i]);
        *ret_facts = facts;
        return 0;
}
