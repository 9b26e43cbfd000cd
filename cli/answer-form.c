/*
 * The form of an answer: makes the constraint of the request from --schema, --regex, --grammar or
 * --choice.  --constraint gives it as it is.  Such an answer, and one that may have tool calls, is
 * divided into parts, so that reasoning is not part of what must have the form.
 */
#include "cli/cli.h"

#include <string.h>

#include "json/reader.h"
#include "json/writer.h"

#define SCHEMA_NODES_MAX 500000u
#define WHY_BYTES        128u

static int check_json(const char *path, const struct bytes *text)
{
        struct json_document *json = NULL;
        char why[WHY_BYTES];
        int r = json_parse(text->at, text->count, SCHEMA_NODES_MAX, &json, why, sizeof(why));

        json_free(json);
        if (r)
                say("%s is no JSON: %s", path, why);
        return r ? CLI_FAILED : 0;
}

/* Members that the schema does not name are excluded: nobody asks for them. */
static int write_schema(const struct cli *cli, struct json_writer *to)
{
        struct bytes text = { 0 };
        int r = input_file(cli->schema, &text);

        if (!r)
                r = check_json(cli->schema, &text);
        if (!r) {
                json_write_raw(to, "{\"only_named\":true,\"schema\":");
                json_write_raw(to, text.at);
        }
        bytes_deinit(&text);
        return r;
}

static int write_grammar(const struct cli *cli, struct json_writer *to)
{
        struct bytes text = { 0 };
        int r = input_file(cli->grammar, &text);

        json_write_raw(to, "{\"grammar\":");
        json_write_text(to, text.at ? text.at : "", text.count);
        bytes_deinit(&text);
        return r;
}

static void write_choices(const struct cli *cli, struct json_writer *to)
{
        json_write_raw(to, "{\"choices\":");
        for (size_t i = 0; i < cli->choice_count; i++) {
                json_write_raw(to, i ? "," : "[");
                json_write_text(to, cli->choices[i], strlen(cli->choices[i]));
        }
        json_write_raw(to, "]");
}

/* One of the flags at most says what the answer must be. */
static int check_flags(const struct cli *cli)
{
        const char *given[] = {
                cli->schema ? "--schema" : NULL,
                cli->regex ? "--regex" : NULL,
                cli->grammar ? "--grammar" : NULL,
                cli->choice_count ? "--choice" : NULL,
                cli->generate.constraint ? "--constraint" : NULL,
        };
        const char *first = NULL;

        for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
                if (given[i] && first) {
                        say("%s and %s both say what the answer must be: leave one of them out",
                            first, given[i]);
                        return CLI_USAGE;
                }
                if (given[i])
                        first = given[i];
        }
        return 0;
}

const char *cli_form_flag(const struct cli *cli)
{
        return cli->schema                        ? "--schema"
               : cli->regex                       ? "--regex"
               : cli->grammar                     ? "--grammar"
               : cli->choice_count                ? "--choice"
               : cli->generate.constraint         ? "--constraint"
               : cli->generate.tool_choice        ? "--tool-choice"
               : cli->generate.allowed_tool_count ? "--tool"
               : cli->generate.calls_max          ? "--calls-max"
               : cli->parts                       ? "--parts"
                                                  : NULL;
}

static bool has_parts(const struct cli *cli)
{
        return cli->parts || cli->schema || cli->regex || cli->grammar || cli->choice_count ||
               cli->tools || cli->generate.tool_choice || cli->generate.allowed_tool_count ||
               cli->generate.calls_max;
}

static int read_prediction(struct cli *cli)
{
        int r;

        bytes_deinit(&cli->predicted); /* chat reads it for each question */
        r = input_file(cli->prediction, &cli->predicted);
        if (r)
                return r;
        if (cli->predicted.count > SMV_PREDICTION_BYTES_MAX) {
                say("--prediction %s has %zu bytes; it may have %u", cli->prediction,
                    cli->predicted.count, SMV_PREDICTION_BYTES_MAX);
                return CLI_USAGE;
        }
        cli->generate.prediction = cli->predicted.count ? cli->predicted.at : NULL;
        cli->generate.prediction_bytes = cli->predicted.count;
        return 0;
}

int cli_answer_form(struct cli *cli)
{
        struct json_writer to = { .to = &cli->constraint };
        int r = check_flags(cli);

        if (!r && cli->prediction)
                r = read_prediction(cli);
        if (cli->command == CLI_ASK && has_parts(cli))
                cli->generate.parts = 1;
        if (r || (!cli->schema && !cli->regex && !cli->grammar && !cli->choice_count))
                return r;
        if (cli->schema) {
                r = write_schema(cli, &to);
        } else if (cli->regex) {
                json_write_raw(&to, "{\"regex\":");
                json_write_text(&to, cli->regex, strlen(cli->regex));
        } else if (cli->grammar) {
                r = write_grammar(cli, &to);
        } else {
                write_choices(cli, &to);
        }
        json_write_raw(&to, "}");
        if (!r && json_write_end(&to)) {
                say("out of memory");
                r = CLI_FAILED;
        }
        cli->generate.constraint = cli->constraint.at;
        return r;
}
