/* --beams: beam search.  Prints the text of the best result, or with --json all results. */
#include "cli/cli.h"

#include <unistd.h>

#include "json/writer.h"

static int print_all(const struct smv_beam_result *results, size_t count)
{
        struct bytes out = { 0 };
        struct json_writer json = { .to = &out };
        int r;

        for (size_t i = 0; i < count; i++) {
                json_write_raw(&json, "{\"tokens\":[");
                for (size_t j = 0; j < results[i].token_count; j++) {
                        json_write_raw(&json, j ? "," : "");
                        json_write_uint(&json, results[i].tokens[j]);
                }
                json_write_raw(&json, "],\"text\":");
                json_write_text(&json, results[i].text, results[i].text_bytes);
                json_write_raw(&json, ",\"score\":");
                json_write_float(&json, results[i].score);
                json_write_raw(&json,
                               results[i].ended ? ",\"ended\":true}\n" : ",\"ended\":false}\n");
        }
        if (json_write_end(&json)) {
                say("out of memory");
                r = CLI_FAILED;
        } else {
                r = screen_raw(out.at, out.count);
        }
        bytes_deinit(&out);
        return r;
}

static int print_best(const struct cli *cli, const struct smv_beam_result *best)
{
        struct screen screen;
        int r;

        screen_open(&screen, STDOUT_FILENO);
        r = screen_text(&screen, best->text, best->text_bytes);
        if (!r)
                r = screen_close(&screen);
        if (!r && !screen.terminal && cli->command == CLI_ASK)
                r = screen_raw("\n", 1);
        return r;
}

int cli_beams(struct cli *cli)
{
        const struct smv_beam_result *results;
        size_t count;
        int r;

        cli->beam.start = &cli->generate;
        r = smv_beam(cli->client, &cli->beam, &results, &count);
        if (r)
                return say_failed(cli, r);
        return cli->json ? print_all(results, count) : print_best(cli, results);
}
