/*
 * What a model's files say of conversations: templates, as texts, and how bos and eos are written.
 *
 *      GGUF        tokenizer.chat_template, tokenizer.chat_template.tool_use
 *      a folder    chat_template.jinja, additional_chat_templates/tool_use.jinja, and where there
 *                  is no such file tokenizer_config.json: its chat_template, one text or a list of
 *                  {name, template}; and its bos_token and eos_token
 *
 * Whether a template can be parsed is not known here.
 */
#ifndef DAEMON_FILES_CHAT_SOURCE_H
#define DAEMON_FILES_CHAT_SOURCE_H

#include <stddef.h>

#define CHAT_TEMPLATE_BYTES_MAX (1u << 20)

struct checkpoint;

/* Each is NUL-ended, the struct's own, and NULL where the files say nothing. */
struct chat_source {
        char *plain;
        char *tools; /* instead of it, where tools are given */
        char *bos, *eos;
};

/* 0, or negative errno and *why: then there is nothing in it.  -EINVAL: the model may be served without. */
int chat_source_read(const struct checkpoint *checkpoint, struct chat_source *ret_source, char *why,
                     size_t why_bytes);

/* Without a model: a folder that may have nothing else of one; a file, by itself: one that is called
 * *.json is a tokenizer_config.json, any other a template.  -ENOENT: it is not there. */
int chat_source_folder(int folder, struct chat_source *ret_source, char *why, size_t why_bytes);
int chat_source_file(const char *path, struct chat_source *ret_source, char *why, size_t why_bytes);

void chat_source_deinit(struct chat_source *source);

#endif
