/*
 * Prints the tables of the daemon, of samovar-http and of the command, as lines of fields with tabs
 * between them.  contrib/dev/reference makes reference pages and man pages from these lines, and
 * contrib/completion/make makes completions of shells.  The first field names the table, and its
 * other fields are below.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <string.h>

#include "bridge/start/config.h"
#include "cli/cli.h"
#include "daemon/start/config.h"
#include "daemon/edge/op-status.h"

/*
 * setting, http_setting: group or "", name, value, values, default, help, and its use: "flag" if it
 * may not be in a file, "live" if SIGHUP reloads it, or "start"
 */
static void print_settings(const char *kind, const struct settings_table *table)
{
        struct settings_row row;

        for (size_t i = 0; settings_describe(table, i, &row); i++)
                printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", kind, row.group ? row.group : "",
                       row.name, row.value, row.values, row.initial, row.help,
                       row.flag_only ? "flag"
                       : row.live    ? "live"
                                     : "start");
}

/* command: name, arguments, help.  flag: group or "", name, value, words, its commands, help */
static void print_command(void)
{
        struct cli_row row, command;

        for (size_t i = 0; cli_describe_command(i, &row); i++)
                printf("command\t%s\t%s\t%s\n", row.name, row.value, row.help);
        for (size_t i = 0; cli_describe_flag(i, &row); i++) {
                const char *between = "";

                printf("flag\t%s\t%s\t%s\t", row.group ? row.group : "", row.name, row.value);
                for (size_t j = 0; row.words && row.words[j]; j++)
                        printf("%s%s", j ? " " : "", row.words[j]);
                printf("\t");
                for (size_t j = 0; cli_describe_command(j, &command); j++) {
                        if (!(row.commands & command.commands))
                                continue;
                        printf("%s%s", between, command.name);
                        between = " ";
                }
                printf("\t%s\n", row.help);
        }
}

/* chat_command: name, arguments, help */
static void print_chat_commands(void)
{
        struct chat_row row;

        for (size_t i = 0; chat_describe_command(i, &row); i++)
                printf("chat_command\t%s\t%s\t%s\n", row.name, row.arguments, row.help);
}

/* status: section, its meaning, name, "owner" if only root and the owner see it, meaning */
static void print_status(void)
{
        struct status_row row;

        for (size_t i = 0; status_describe(i, &row); i++)
                printf("status\t%s\t%s\t%s\t%s\t%s\n", row.section, row.about, row.name,
                       row.owner_only ? "owner" : "", row.meaning);
}

/* code: number, name, meaning */
static void print_codes(void)
{
        for (unsigned i = 1; strcmp(smv_code_name((enum smv_code)i), "unknown"); i++)
                printf("code\t%u\t%s\t%s\n", i, smv_code_name((enum smv_code)i),
                       smv_code_text((enum smv_code)i));
}

int main(void)
{
        print_settings("setting", &config_table);
        print_settings("http_setting", &bridge_config_table);
        print_command();
        print_chat_commands();
        print_status();
        print_codes();
        return fflush(stdout) ? 1 : 0;
}
