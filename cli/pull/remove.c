/* samovar rm: removes models from the folder, also those that have come only in part. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/amounts.h"
#include "cli/progress.h"
#include "cli/pull/serving.h"
#include "store/incoming.h"

#define CONNECT_MS 1000

/* True: yes.  No answer is no. */
static bool confirm(const char *what)
{
        char answer[16];

        fprintf(stderr, "remove %s? [y/N] ", what);
        if (!fgets(answer, sizeof(answer), stdin))
                return false;
        return *answer == 'y' || *answer == 'Y';
}

static int may_remove(const struct cli *cli, const char *name, const char *entry, uint64_t bytes)
{
        char what[STORE_PATH_BYTES + 128], size[AMOUNT_BYTES];

        if (cli->pull.yes)
                return 0;
        if (!isatty(STDIN_FILENO)) {
                say("%s: rm asks before it removes, but stdin is no terminal: give --yes", name);
                return CLI_USAGE;
        }
        snprintf(what, sizeof(what), "%s (%s, %s)", name, entry, amount_bytes((double)bytes, size));
        if (confirm(what))
                return 0;
        say("%s was not removed", name);
        return CLI_FAILED;
}

static int remove_entry(const char *name, const char *entry, uint64_t bytes)
{
        char size[AMOUNT_BYTES];
        int r = store_remove(entry);

        if (r) {
                say("%s: %s", entry, strerror(-r));
                return CLI_FAILED;
        }
        say("removed %s, %s", name, amount_bytes((double)bytes, size));
        return 0;
}

/* The daemon at the usual socket may have been given the model by its settings. */
static bool is_served_here(const struct store_model *model, char *who, size_t bytes)
{
        struct smv_connect options = { SMV_SIZE(smv_connect), .timeout_ms = CONNECT_MS };
        struct smv_model served = { SMV_SIZE(smv_model) };
        struct smv_client *client;
        bool is = false;

        if (smv_connect(&options, &client))
                return false;
        for (size_t i = 0; !is && !smv_model(client, i, &served); i++)
                is = !strcmp(served.name, model->name);
        snprintf(who, bytes, "the daemon at %s", smv_socket_used(client));
        smv_close(client);
        return is;
}

static int remove_model(struct cli *cli, const struct store_model *model)
{
        char who[256];
        int r;

        if (!cli->pull.force &&
            (serving_model(model, who, sizeof(who)) || is_served_here(model, who, sizeof(who)))) {
                say("%s is served by %s: end it first, or give --force; a daemon that runs keeps "
                    "the model until it ends, but cannot be started again with it",
                    model->name, who);
                return CLI_FAILED;
        }
        r = may_remove(cli, model->name, model->entry, model->bytes);
        return r ? r : remove_entry(model->name, model->entry, model->bytes);
}

/* Removes the parts of a pull that did not end. */
static int remove_part(struct cli *cli, const struct store *store, const char *name)
{
        struct incoming incoming;
        uint64_t bytes;
        pid_t holder;
        int r;

        if (!store_may_name(name, strlen(name)) || incoming_bytes(store, name, &bytes)) {
                say("there is no model %.64s in %s%s%s; samovar models lists them", name,
                    store->places[0], store->place_count > 1 ? " or " : "",
                    store->place_count > 1 ? store->places[1] : "");
                return CLI_FAILED;
        }
        r = incoming_open(store, name, &incoming, &holder);
        if (r == -EBUSY) {
                say("process %d pulls %s: end it first", (int)holder, name);
                return CLI_FAILED;
        }
        if (r) {
                say("%s: %s", store->places[0], strerror(-r));
                return CLI_FAILED;
        }
        r = may_remove(cli, name, incoming.folder, bytes);
        if (!r)
                r = remove_entry(name, incoming.folder, bytes);
        incoming_close(&incoming);
        return r;
}

int cli_rm(struct cli *cli)
{
        struct store_model model;
        struct store store;
        int r = 0;

        if (!cli->argument_count) {
                say("rm takes the names of models; samovar models lists them");
                return CLI_USAGE;
        }
        if (store_open(&store)) {
                say("there is no folder for models: set $HOME, or $SAMOVAR_MODELS to one");
                return CLI_FAILED;
        }
        for (int i = 0; i < cli->argument_count && !r; i++) {
                if (store_find(&store, cli->arguments[i], &model)) {
                        r = remove_part(cli, &store, cli->arguments[i]);
                } else {
                        r = remove_model(cli, &model);
                        store_model_deinit(&model);
                }
        }
        return r;
}
