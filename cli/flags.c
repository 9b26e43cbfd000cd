/* Reads the command line.  Anything that is not in the tables (flag-table.c) is refused. */
#include "cli/cli.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/flag.h"
#include "json/distance.h"

#define DOCTOR_S 3  /* a daemon that is well answers at once */
#define SHORT_S  10 /* to ask the daemon what it does */
#define LONG_S   60 /* to ask it for work: a daemon that is restarted drains for 30 s */

static bool same(const char *name, const char *given, size_t bytes)
{
        return strlen(name) == bytes && !memcmp(name, given, bytes);
}

/* The flag of that name which one of the commands `takers` takes, or NULL. */
static const struct flag *find_flag(unsigned takers, const char *given, size_t bytes)
{
        for (size_t i = 0; i < flag_count; i++)
                if ((flag_table[i].commands & takers) && same(flag_table[i].name, given, bytes))
                        return &flag_table[i];
        return NULL;
}

bool cli_takes(const struct cli *cli, const char *flag)
{
        return find_flag(cli->command, flag, strlen(flag));
}

/* A flag begins as its field does, with dashes: --keep sets keep_ms, --temp sets temperature. */
static bool sets_field(const struct flag *flag, const char *field)
{
        const char *name = flag->name + strspn(flag->name, "-");

        for (; *name && *field && *name == (*field == '_' ? '-' : *field); name++)
                field++;
        return !*name && (!*field || strlen(flag->name) > 4);
}

bool cli_name_flag(const struct cli *cli, const char *field, char *to, size_t bytes)
{
        if (!strcmp(field, "messages") && cli->command & (CLI_ASK | CLI_TEMPLATE | CLI_CHAT) &&
            !cli->messages) {
                snprintf(to, bytes, "%sthe question", cli->system ? "--system and " : "");
                return true;
        }
        if (!strcmp(field, "constraint") && cli->constraint.count)
                field = cli->schema    ? "schema"
                        : cli->regex   ? "regex"
                        : cli->grammar ? "grammar"
                                       : "choice";
        for (size_t i = 0; i < flag_count; i++) {
                const void *value = (const char *)cli + flag_table[i].offset;
                const char *text =
                        flag_table[i].kind == FLAG_TEXT ? *(const char *const *)value : NULL;

                if (!(flag_table[i].commands & cli->command) || !sets_field(&flag_table[i], field))
                        continue;
                snprintf(to, bytes, "%s%s%.64s", flag_table[i].name, text ? " " : "",
                         text ? text : "");
                return true;
        }
        return false;
}

/* Names the flag that was probably meant: it begins with what was given, or is nearly the same. */
static int refuse_flag(const struct cli *cli, const char *given, size_t bytes)
{
        unsigned takers = cli->name ? cli->command : ~0u;
        const char *taker = cli->name ? cli->name : "samovar", *meant = NULL;
        uint32_t best = DISTANCE_NONE;

        if (distance_is_hint(given, bytes, "--help", &best))
                meant = "--help"; /* all take it, and it is no row */
        if (!cli->name && distance_is_hint(given, bytes, "--version", &best))
                meant = "--version"; /* stands only before a command */
        for (size_t i = 0; i < flag_count; i++) {
                if (!(flag_table[i].commands & takers))
                        continue;
                if (bytes > 3 && !strncmp(flag_table[i].name, given, bytes)) {
                        meant = flag_table[i].name;
                        break;
                }
                if (distance_is_hint(given, bytes, flag_table[i].name, &best))
                        meant = flag_table[i].name;
        }
        if (meant)
                say("%s has no flag %.*s; is %s meant?", taker, (int)bytes, given, meant);
        else
                say("%s has no flag %.*s; see samovar%s%s --help", taker, (int)bytes, given,
                    cli->name ? " " : "", cli->name ? cli->name : "");
        return CLI_USAGE;
}

/*
 * Reads one flag; if its value is the next argument, *at moves to that.  While the command is not
 * known yet, the flag is only skipped.
 */
static int read_flag(struct cli *cli, int argc, char **argv, int *at)
{
        const char *given = argv[*at], *equals = strchr(given, '=');
        size_t bytes = equals ? (size_t)(equals - given) : strlen(given);
        const struct flag *flag = find_flag(cli->name ? cli->command : ~0u, given, bytes);
        const char *value = equals ? equals + 1 : NULL;

        if (!flag)
                return refuse_flag(cli, given, bytes);
        if (!flag->value && equals) {
                say("%s takes no value", flag->name);
                return CLI_USAGE;
        }
        if (!equals && flag_takes(flag, *at + 1 < argc ? argv[*at + 1] : NULL)) {
                if (*at + 1 == argc) {
                        say("%s needs a value: %s", flag->name, flag->value);
                        return CLI_USAGE;
                }
                value = argv[++*at];
        }
        return cli->name ? flag_set(cli, flag, value) : 0;
}

static int refuse_command(const char *given)
{
        const char *meant = NULL;
        uint32_t best = DISTANCE_NONE;
        char names[256] = "";
        size_t used = 0;

        for (size_t i = 0; i < command_count; i++) {
                if (distance_is_hint(given, strlen(given), command_table[i].name, &best))
                        meant = command_table[i].name;
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                         command_table[i].name);
        }
        if (meant)
                say("there is no command %.40s; is %s meant?", given, meant);
        else
                say("there is no command %.40s; the commands are %s", given, names);
        return CLI_USAGE;
}

static bool is_help(const char *given)
{
        return !strcmp(given, "--help") || !strcmp(given, "-h");
}

static bool read_command(struct cli *cli, const char *given)
{
        for (size_t i = 0; i < command_count; i++) {
                if (!strcmp(given, command_table[i].name)) {
                        cli->name = command_table[i].name;
                        cli->command = command_table[i].command;
                        return true;
                }
        }
        return false;
}

static int print_version(void)
{
        printf("samovar %s\n", smv_version());
        return -1;
}

/* `help`, `help COMMAND` and `version` are what many type instead of the flags. */
static int answer_word(struct cli *cli, const char *word, const char *next)
{
        if (!strcmp(word, "version"))
                return print_version();
        if (strcmp(word, "help") || (next && !read_command(cli, next)))
                return refuse_command(next && !strcmp(word, "help") ? next : word);
        flag_help(cli);
        return -1;
}

/* Finds the command behind the flags that stand before it; *ret_at is its place. */
static int find_command(struct cli *cli, int argc, char **argv, int *ret_at)
{
        int at = 1, r = 0;

        for (; at < argc && *argv[at] == '-' && argv[at][1]; at++) {
                if (is_help(argv[at])) {
                        flag_help(cli);
                        return -1;
                }
                if (!strcmp(argv[at], "--version"))
                        return print_version();
                r = read_flag(cli, argc, argv, &at);
                if (r)
                        return r;
        }
        if (at == argc) {
                say("no command is given; samovar --help lists them");
                return CLI_USAGE;
        }
        *ret_at = at;
        return read_command(cli, argv[at]) ? 0 : answer_word(cli, argv[at], argv[at + 1]);
}

/* The first argument of `template` may be a file; the prompt follows it. */
static int read_template_file(struct cli *cli)
{
        if (!cli->argument_count || !template_is_file(cli->arguments[0]))
                return 0;
        cli->file = cli->arguments[0];
        cli->argument_count--;
        memmove(cli->arguments, cli->arguments + 1,
                (size_t)cli->argument_count * sizeof(*cli->arguments));
        if (!cli->model && !cli->socket && !cli->any_uid && !cli->principal && !cli->timeout_s)
                return 0;
        say("the template of the file %s is rendered without a running daemon: leave out %s",
            cli->file,
            cli->model       ? "--model"
            : cli->socket    ? "--socket"
            : cli->any_uid   ? "--any-uid"
            : cli->principal ? "--principal"
                             : "--timeout");
        return CLI_USAGE;
}

static int read_resume_id(struct cli *cli)
{
        static const struct flag number = { .name = "the resume id",
                                            .kind = FLAG_UINT64,
                                            .offset = offsetof(struct cli, resume_id),
                                            .low = 1 };

        if (cli->argument_count == 1)
                return flag_set(cli, &number, cli->arguments[0]);
        say("attach takes one resume id, which --keep has printed on stderr");
        return CLI_USAGE;
}

static int read_number(struct cli *cli)
{
        static const struct flag number = { .name = "the number",
                                            .kind = FLAG_UINT64,
                                            .offset = offsetof(struct cli, number),
                                            .low = 1 };

        if (cli->argument_count == 1)
                return flag_set(cli, &number, cli->arguments[0]);
        say("cancel takes one number, of a stream or a handle; samovar ps shows them");
        return CLI_USAGE;
}

/* --beams and --best-of print one answer out of many: they exclude -n, --keep and each other. */
static int check_search(struct cli *cli)
{
        const char *other = cli->generate.n                   ? "-n"
                            : cli->keep_s                     ? "--keep"
                            : cli->beam.width && cli->best_of ? "--best-of"
                                                              : NULL;
        const char *form = cli->beam.width ? cli_form_flag(cli) : NULL;

        if (form) {
                say("--beams searches without a form of the answer: leave out %s", form);
                return CLI_USAGE;
        }

        if (other) {
                say("%s prints one answer and excludes %s: leave one of them out",
                    cli->beam.width ? "--beams" : "--best-of", other);
                return CLI_USAGE;
        }
        if (cli->best_of) {
                cli->generate.n = cli->best_of;
                cli->generate.set |= SMV_SET_LOGPROBS;
        }
        return 0;
}

/* Reads the command, the flags before and after it, and the arguments. */
static int read_words(struct cli *cli, int argc, char **argv)
{
        bool only_arguments = false;
        int command = 0, r;

        r = find_command(cli, argc, argv, &command);
        for (int i = 1; i < argc && !r; i++) {
                const char *given = argv[i];

                if (i == command)
                        continue;
                if (only_arguments || *given != '-' || !given[1]) {
                        cli->arguments[cli->argument_count++] = given;
                } else if (!strcmp(given, "--")) {
                        only_arguments = true;
                } else if (is_help(given)) {
                        flag_help(cli);
                        return -1;
                } else {
                        r = read_flag(cli, argc, argv, &i);
                }
        }
        return r;
}

static void copy_switches(struct cli *cli)
{
        cli->generate.ignore_eos = cli->ignore_eos;
        cli->generate.clamp = cli->clamp;
        cli->generate.control_text = cli->control_text;
        cli->generate.keep_ms = cli->keep_s * 1000;
}

/* By the name of the flag, or of the field that it sets. */
static const struct flag *named_flag(const struct cli *cli, const char *name)
{
        char dashed[66];
        const struct flag *flag;

        snprintf(dashed, sizeof(dashed), "--%.63s", name);
        for (char *c = dashed; *c; c++)
                if (*c == '_')
                        *c = '-';
        flag = find_flag(cli->command, dashed, strlen(dashed));
        for (size_t i = 0; !flag && i < flag_count; i++)
                if ((flag_table[i].commands & cli->command) && sets_field(&flag_table[i], name))
                        flag = &flag_table[i];
        return flag;
}

int cli_set_flag(struct cli *cli, const char *name, const char *value)
{
        const struct flag *flag = named_flag(cli, name);
        bool turns = flag && flag->kind == FLAG_SWITCH && value;
        int r = 0;

        if (!flag) {
                say("there is no setting %.40s; /set lists them", name);
                return CLI_USAGE;
        }
        if (turns && strcmp(value, "on") && strcmp(value, "off")) {
                say("%s is %.40s; it may be on or off", flag->name + 2, value);
                return CLI_USAGE;
        }
        if (!value || (turns && !strcmp(value, "off")))
                flag_unset(cli, flag);
        else
                r = flag_set(cli, flag, value);
        copy_switches(cli);
        return r;
}

bool cli_show_flag(const struct cli *cli, size_t index, char *to, size_t bytes)
{
        return index < flag_count && (flag_table[index].commands & cli->command) &&
               flag_show(cli, &flag_table[index], to, bytes);
}

/* How long the command waits for a connection. */
static uint32_t wait_of(const struct cli *cli)
{
        if (cli->timeout_s)
                return cli->timeout_s;
        if (cli->command == CLI_DOCTOR)
                return DOCTOR_S;
        return cli->command & LOOKS ? SHORT_S : LONG_S;
}

int cli_flags(struct cli *cli, int argc, char **argv)
{
        int r;

        cli->beam.length_penalty = 1;
        cli->bench.warm_up = 1;
        r = read_words(cli, argc, argv);
        if (!r && cli->command == CLI_TEMPLATE)
                r = read_template_file(cli);
        if (!r && cli->messages &&
            (cli->system || cli->answer || (cli->argument_count && cli->command != CLI_CHAT))) {
                say("--messages has the whole conversation: leave out %s",
                    cli->system   ? "--system"
                    : cli->answer ? "--answer"
                                  : "the question");
                r = CLI_USAGE;
        }
        if (!r && cli->messages && cli->tools) {
                say("--messages may have tools itself: leave out --tools, and write them there");
                r = CLI_USAGE;
        }
        if (!r && (cli->beam.width || cli->best_of))
                r = check_search(cli);
        if (!r && cli->generate.set & SMV_SET_LOGPROBS && !cli->json && !cli->best_of) {
                say("--logprobs needs --json");
                r = CLI_USAGE;
        }
        if (!r && cli->command == CLI_ATTACH)
                r = read_resume_id(cli);
        if (!r && cli->command == CLI_CANCEL)
                r = read_number(cli);
        if (!r && cli->command & ((LOOKS & ~CLI_CANCEL) | CLI_DOCTOR) && cli->argument_count) {
                say("%s takes no argument, but %.40s is one", cli->name, cli->arguments[0]);
                r = CLI_USAGE;
        }
        if (!r && cli->command == CLI_BATCH && cli->argument_count > 1) {
                say("batch takes one file, but %.40s is another one", cli->arguments[1]);
                r = CLI_USAGE;
        }
        cli->wait_s = wait_of(cli);
        /* Commands with one short answer need no shared memory. */
        if (!(cli->command & (SAMPLING | CLI_BENCH)))
                cli->transport = SMV_TRANSPORT_SOCKET;
        cli->beam.size = sizeof(cli->beam);
        cli->generate.size = sizeof(cli->generate);
        cli->generate.stops = cli->stops;
        cli->generate.banned_texts = cli->bans;
        cli->generate.allowed_tools = cli->allowed_tools;
        copy_switches(cli);
        return r;
}
