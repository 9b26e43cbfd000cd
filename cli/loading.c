/*
 * A daemon that has just been started may still be loading its weights.  If stderr is a terminal,
 * shows a bar there; the bar is removed before the tokens come.
 */
#include "cli/cli.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"

#define POLL_MS 100

/* The number after `name` in JSON that our library wrote; 0 if it is not there. */
static uint64_t number(const char *text, const char *name)
{
        const char *at = strstr(text, name);

        return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* False: the model is loaded, or the daemon does not say. */
static bool read_loading(struct cli *cli, uint64_t *ret_bytes, uint64_t *ret_total)
{
        const char *json, *loading;

        if (smv_status(cli->client, &json))
                return false;
        loading = strstr(json, "\"loading\":{");
        if (!loading)
                return false;
        *ret_bytes = number(loading, "\"bytes\":");
        *ret_total = number(loading, "\"total\":");
        return *ret_bytes < *ret_total;
}

void cli_wait_until_loaded(struct cli *cli)
{
        struct progress progress = { 0 };
        uint64_t bytes, total;

        if (!isatty(STDERR_FILENO))
                return;
        while (read_loading(cli, &bytes, &total)) {
                if (!progress.total)
                        progress_begin(&progress, "loading", total);
                progress_show(&progress, bytes);
                poll(NULL, 0, POLL_MS);
        }
        progress_clear(&progress);
}
