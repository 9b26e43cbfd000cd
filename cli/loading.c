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

#define POLL_MS 100
#define CELLS   40

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

static void draw(uint64_t bytes, uint64_t total)
{
        static const char full[] = "########################################";
        double part = (double)bytes / (double)total;
        int cells = (int)(part * CELLS);

        _Static_assert(sizeof(full) == CELLS + 1, "a cell each");
        fprintf(stderr, "\rloading [%-*.*s] %3d%% of %.1f GB", CELLS, cells, full,
                (int)(part * 100), (double)total / 1e9);
}

void cli_wait_until_loaded(struct cli *cli)
{
        uint64_t bytes, total;
        bool drawn = false;

        if (!isatty(STDERR_FILENO))
                return;
        while (read_loading(cli, &bytes, &total)) {
                draw(bytes, total);
                drawn = true;
                poll(NULL, 0, POLL_MS);
        }
        if (drawn)
                fputs("\r\x1b[K", stderr);
}
