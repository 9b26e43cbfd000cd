/* The folders of models, what is in them, and the disk below them. */
#include "cli/doctor/checks.h"

#include <errno.h>
#include <string.h>

#include "cli/amounts.h"

#define GIB        1073741824.0
#define LEAST_DISK (10 * GIB) /* a model of seven billion weights has 4 to 8 GiB */

void check_models(const struct machine *machine, struct finding *finding)
{
        const struct model_facts *models = &machine->models;
        char text[AMOUNT_BYTES];

        if (models->result) {
                find(finding, VERDICT_WARN, "%.300s: %s",
                     models->place_count ? models->places[0] : "there is no home folder",
                     strerror(-models->result));
                advise(finding, "models are found by their path only; SAMOVAR_MODELS names another "
                                "folder");
                return;
        }
        find(finding, VERDICT_OK, "%zu model%s, %s, in %.120s%s%.120s", models->count,
             models->count == 1 ? "" : "s", amount_bytes((double)models->bytes, text),
             models->places[0], models->place_count > 1 ? " and " : "",
             models->place_count > 1 ? models->places[1] : "");
}

/*
 * Another user that may write into the folder can put another model in the place of one.  Root and
 * this user may; the folder of all users belongs to root.
 */
void check_model_owners(const struct machine *machine, struct finding *finding)
{
        const struct model_facts *models = &machine->models;
        struct stat folder;

        find(finding, VERDICT_OK, "nobody else can replace models");
        for (size_t i = 0; i < models->place_count; i++) {
                const char *place = models->places[i];

                if (machine_stat(machine, place, &folder) ||
                    (!(folder.st_mode & 022) &&
                     (folder.st_uid == machine->uid || folder.st_uid == 0)))
                        continue;
                if (folder.st_mode & 022) {
                        find(finding, VERDICT_WARN, "%.300s can be written by %s", place,
                             folder.st_mode & 02 ? "everyone" : "its group");
                        advise(finding,
                               "a model there may be replaced by another one: chmod go-w "
                               "%.300s",
                               place);
                } else {
                        find(finding, VERDICT_WARN, "%.300s belongs to user %u", place,
                             folder.st_uid);
                        advise(finding, "this user can replace models: serve models of a folder of "
                                        "your own, or of root");
                }
                return;
        }
}

void check_model_files(const struct machine *machine, struct finding *finding)
{
        const struct model_facts *models = &machine->models;
        char text[AMOUNT_BYTES];

        if (models->wrong) {
                find(finding, VERDICT_FAIL, "%zu of %zu pulled models %s not as %s came: %s",
                     models->wrong, models->pulled, models->wrong == 1 ? "is" : "are",
                     models->wrong == 1 ? "it" : "they", models->why);
                advise(finding,
                       "the disk may be failing, or the file was changed: samovar rm it, "
                       "then samovar pull %s",
                       models->source);
                return;
        }
        if (!models->pulled) {
                find(finding, VERDICT_OK, "no model was pulled, so there is no digest to compare");
                return;
        }
        find(finding, VERDICT_OK, "%zu pulled model%s, %s: %s", models->pulled,
             models->pulled == 1 ? "" : "s", amount_bytes((double)models->pulled_bytes, text),
             models->read ? "all bytes have the digests of their source"
                          : "sizes are right; --digests reads all bytes");
}

void check_disk(const struct machine *machine, struct finding *finding)
{
        const char *place = machine->models.place_count ? machine->models.places[0] : "/";
        char text[AMOUNT_BYTES];

        if (machine->disk_result) {
                find(finding, VERDICT_WARN, "%.300s: %s", place, strerror(-machine->disk_result));
                advise(finding, "samovar pull needs a folder that it can read and write; "
                                "SAMOVAR_MODELS names another one");
                return;
        }
        find(finding, VERDICT_OK, "%s are free for models in %.300s",
             amount_bytes((double)machine->disk_free, text), place);
        if ((double)machine->disk_free < LEAST_DISK) {
                finding->verdict = VERDICT_WARN;
                advise(finding, "many models have more than 4 GiB: make space, or keep them on "
                                "another disk (SAMOVAR_MODELS)");
        }
}
