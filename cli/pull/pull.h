/*
 * samovar pull and samovar rm: the folder of models (store/store.h).
 *
 * source.c reads where a model is to come from, hub.c asks the hub which files there are, and
 * choose.c chooses those that samovard can serve; selection.c puts these steps together.
 * preview.c fetches only their heads and asks samovard what it thinks of the model (verdict.c);
 * plan.c prints that for --dry-run.  fetch.c fetches the files, import.c takes them from this
 * machine; retry.c says when to try again, get.c gets small answers, and progress.c draws the bar.
 * command.c does these steps in order, and puts the model into its place when samovard has accepted
 * it.  remove.c is rm; serving.c finds daemons that serve a model.
 */
#ifndef CLI_PULL_PULL_H
#define CLI_PULL_PULL_H

#include <stdbool.h>
#include <stdint.h>

#define PULL_RETRIES 8u

struct pull_options {
        const char *name;   /* of the model in the folder; NULL: by its file */
        const char *sha256; /* that the file must have; NULL: that of the hub, if any */
        uint32_t retries;   /* failures in a row that are borne; PULL_RETRIES by default */
        bool dry_run;
        bool yes;   /* rm: do not ask */
        bool force; /* pull: keep what samovard cannot serve; rm: also what a daemon serves */
};

#endif
