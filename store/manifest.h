/*
 * The manifest of a pulled model: where it came from, and its files.  It lies as MANIFEST_FILE in
 * the model's folder, and it is written last: a folder with a manifest is complete.
 */
#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "json/builder.h"
#include "store/sha256.h"

#define MANIFEST_FILE      ".samovar.json"
#define MANIFEST_FILES_MAX 4096u

struct manifest_file {
        char *name; /* inside the folder */
        uint64_t bytes;
        char sha256[SHA256_HEX_BYTES];
};

struct manifest {
        char *source;   /* as `samovar pull` takes it: "hf:OWNER/REPO:Q4_K_M" */
        char *revision; /* the commit, or the ETag; or empty */
        char *model;    /* the file that samovard opens; "." is the folder */
        uint64_t pulled_s;
        struct manifest_file *files;
        size_t file_count;
};

/* Copies: 0 or -ENOMEM. */
int manifest_set(struct manifest *manifest, const char *source, const char *revision,
                 const char *model);
int manifest_add(struct manifest *manifest, const char *name, uint64_t bytes, const char *sha256);
void manifest_deinit(struct manifest *manifest);

uint64_t manifest_bytes(const struct manifest *manifest);

/* 0; -ENOENT: there is none; -EINVAL: it is none; or another negative errno. */
int manifest_read(const char *folder, struct manifest *ret_manifest);
/* 0 or a negative errno.  The file is there as a whole, or not at all. */
int manifest_write(const char *folder, const struct manifest *manifest);
/* Puts the members of an object: source, revision, pulled_s, model, files. */
void manifest_put(struct json_builder *builder, const struct manifest *manifest);

#endif
