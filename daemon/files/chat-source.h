/*
 * Reads what a model's files say about conversations: the texts of templates, and the texts of the
 * bos and eos tokens.
 *
 *      GGUF        tokenizer.chat_template, tokenizer.chat_template.tool_use
 *      a folder    chat_template.jinja, additional_chat_templates/tool_use.jinja.  If there is no
 *                  such file, tokenizer_config.json: its chat_template, one text or a list of
 *                  {name, template}.  Its bos_token and eos_token in any case.
 *
 * This module does not check whether a template can be parsed.
 */
#ifndef DAEMON_FILES_CHAT_SOURCE_H
#define DAEMON_FILES_CHAT_SOURCE_H

#include <stddef.h>

#define CHAT_TEMPLATE_BYTES_MAX (1u << 20)

struct checkpoint;

/* Each text is NUL-ended, owned by the struct, and NULL if the files do not have it. */
struct chat_source {
        char *plain;
        char *tools; /* used instead of `plain` when tools are given */
        char *bos, *eos;
};

/*
 * Returns 0, or negative errno and *why; then *ret_source is empty.  -EINVAL: the model may still
 * be served without templates.
 */
int chat_source_read(const struct checkpoint *checkpoint, struct chat_source *ret_source, char *why,
                     size_t why_bytes);

/*
 * For use without a model.  The folder may have nothing else of a model.  A file named *.json is a
 * tokenizer_config.json; any other file is a template.  -ENOENT: it does not exist.
 */
int chat_source_folder(int folder, struct chat_source *ret_source, char *why, size_t why_bytes);
int chat_source_file(const char *path, struct chat_source *ret_source, char *why, size_t why_bytes);

void chat_source_deinit(struct chat_source *source);

#endif
