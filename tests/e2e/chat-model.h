/*
 * A small model with a chat template, and a vocabulary with control tokens, as ChatML has them.
 * Its ids are bytes, then <|im_start|> and <|im_end|>.  Then comes <tool_call>, which is text as
 * well as a token.  The ids behind these have no text.
 */
#ifndef TESTS_E2E_CHAT_MODEL_H
#define TESTS_E2E_CHAT_MODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define START 256u
#define END   257u
#define CALL  258u

#define CHATML                                                                                     \
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "                 \
        "'<|im_end|>\\n' }}{% endfor %}"                                                           \
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

/* GPT-2's letter for a byte: a printable byte stands for itself, the others come behind. */
static inline size_t put_chat_vocabulary(char *to)
{
        unsigned other = 256;
        size_t n = (size_t)sprintf(
                to, "{\"added_tokens\":["
                    "{\"id\":256,\"content\":\"<|im_start|>\",\"special\":true},"
                    "{\"id\":257,\"content\":\"<|im_end|>\",\"special\":true},"
                    "{\"id\":258,\"content\":\"<tool_call>\",\"special\":false}],"
                    "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\","
                    "\"add_prefix_space\":false},\"post_processor\":null,"
                    "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{");

        for (unsigned b = 0; b < 256; b++) {
                bool own = (b > 32 && b < 127) || (b > 160 && b != 173);

                n += (size_t)sprintf(to + n, "%s\"\\u%04x\":%u", b ? "," : "", own ? b : other++,
                                     b);
        }
        return n + (size_t)sprintf(to + n, "},\"merges\":[]}}");
}

static inline void write_chat_file(const struct daemon_fixture *fixture, const char *name,
                                   const char *text, char path[128])
{
        FILE *out;

        snprintf(path, 128, "%s/%s", fixture->directory, name);
        out = fopen(path, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(text, 1, strlen(text), out), strlen(text));
        assert_int_equal(fclose(out), 0);
}

/* Starts the daemon with a model that has this template, or none if NULL, and so many slots. */
static inline void start_chat_model_with(struct daemon_fixture *fixture, const char *chat_template,
                                         const char *slots)
{
        char model[128], vocabulary[128], text[16384];
        struct run_result ran;

        put_chat_vocabulary(text);
        write_chat_file(fixture, "tokenizer.json", text, vocabulary);
        snprintf(model, sizeof(model), "%s/chat.gguf", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), model, "--layers", "1", "--vocab",
                  "300", chat_template ? "--template" : "--tied", chat_template);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        START_DAEMON(fixture, "--model", model, "--tokenizer", vocabulary, "--threads", "1",
                     "--constraints-kept", "0", "--max-seqs", slots, "--draft", "always");
}

static inline void start_chat_model(struct daemon_fixture *fixture, const char *chat_template)
{
        start_chat_model_with(fixture, chat_template, "64");
}

#endif
