/*
 * Facts about a model, for people and other programs.  Nothing in the daemon depends on them.
 */
#ifndef DAEMON_MODEL_FACTS_H
#define DAEMON_MODEL_FACTS_H

#include <stdint.h>

#define MODEL_DIGEST_CHARS 64u

struct model_facts {
        /* as the files name it: "llama"; "" if they do not, or not in plain letters and digits */
        char architecture[32];
        const char *format;  /* of its files: "gguf" or "safetensors" */
        uint64_t parameters; /* numbers of all weights; a tied head counts once */
        uint64_t modified_s; /* when its newest file was written, in seconds since 1970 */
        /*
         * Hexadecimal.  Models with the same tensors have the same digest, in any folder and under
         * any name.  It covers names, shapes and types, and samples of each tensor's bytes, so it
         * recognises another model and does not prove that two are equal.
         */
        char digest[MODEL_DIGEST_CHARS + 1];
};

#endif
