#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/doctor/checks.h"
#include "cli/doctor/here.h"
#include "json/builder.h"

#define LINE_BYTES 1200
#define INDENT     22u /* of findings */

struct printing {
        struct screen screen;
        bool coloured;
        unsigned width;    /* of the terminal; 0: lines are not broken */
        const char *topic; /* of the last row */
        unsigned counts[VERDICT_COUNT];
};

/* What may be wrong shows more clearly in colour; the word says the same. */
static int print_verdict(const struct printing *printing, enum verdict verdict)
{
        static const char *const colours[] = { [VERDICT_OK] = "\x1b[32m",
                                               [VERDICT_WARN] = "\x1b[33m",
                                               [VERDICT_FAIL] = "\x1b[1;31m" };
        char text[64];

        snprintf(text, sizeof(text), "  %s%-4s%s  ", printing->coloured ? colours[verdict] : "",
                 verdict_name(verdict), printing->coloured ? "\x1b[m" : "");
        return screen_raw(text, strlen(text));
}

/*
 * Prints a text that begins at that cell, and breaks its lines at blanks.  A file gets one line, so
 * that programs for lines find all of it.
 */
static int print_wrapped(struct printing *printing, const char *text, unsigned indent)
{
        unsigned width = printing->width > indent + 20 ? printing->width - indent : 0;
        char line[LINE_BYTES];
        int r = 0;

        while (!r && *text) {
                size_t bytes = strlen(text);

                if (width && bytes > width) {
                        for (bytes = width; bytes && text[bytes] != ' ';)
                                bytes--;
                        for (bytes = bytes ? bytes : width; (text[bytes] & 0xc0) == 0x80;)
                                bytes--; /* not within a character */
                }
                snprintf(line, sizeof(line), "%.*s\n%*s", (int)bytes, text,
                         text[bytes] ? (int)indent : 0, "");
                text += bytes;
                text += strspn(text, " ");
                r = screen_text(&printing->screen, line, strlen(line));
        }
        return r;
}

static int print_row(struct printing *printing, const struct check *check,
                     const struct finding *finding)
{
        char line[LINE_BYTES];
        int r = 0;

        if (!printing->topic || strcmp(printing->topic, check->topic) != 0) {
                snprintf(line, sizeof(line), "%s%s\n", printing->topic ? "\n" : "", check->topic);
                r = screen_text(&printing->screen, line, strlen(line));
        }
        printing->topic = check->topic;
        printing->counts[finding->verdict]++;
        if (!r)
                r = print_verdict(printing, finding->verdict);
        snprintf(line, sizeof(line), "%-12s  ", check->name);
        if (!r)
                r = screen_text(&printing->screen, line, strlen(line));
        if (!r)
                r = print_wrapped(printing, finding->found, INDENT);
        snprintf(line, sizeof(line), "%*s-> ", (int)INDENT, "");
        if (!r && *finding->advice)
                r = screen_text(&printing->screen, line, strlen(line));
        if (!r && *finding->advice)
                r = print_wrapped(printing, finding->advice, INDENT + 3);
        return r;
}

static int print_table(const struct machine *machine)
{
        const char *no_colour = getenv("NO_COLOR");
        struct printing printing = { 0 };
        struct winsize size;
        char line[LINE_BYTES];
        int r = 0;

        screen_open(&printing.screen, STDOUT_FILENO);
        if (printing.screen.terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
                printing.width = size.ws_col;
        printing.coloured = printing.screen.terminal && !(no_colour && *no_colour);
        for (size_t i = 0; i < check_count && !r; i++) {
                struct finding finding = { 0 };

                checks[i].run(machine, &finding);
                r = print_row(&printing, &checks[i], &finding);
        }
        snprintf(line, sizeof(line), "\n%zu checks: %u ok, %u warn, %u fail\n", check_count,
                 printing.counts[VERDICT_OK], printing.counts[VERDICT_WARN],
                 printing.counts[VERDICT_FAIL]);
        if (!r)
                r = screen_text(&printing.screen, line, strlen(line));
        return r || printing.counts[VERDICT_FAIL] ? CLI_FAILED : CLI_GOOD;
}

static int print_json(const struct machine *machine)
{
        struct bytes out = { 0 };
        struct json_builder json = json_build(&out);
        unsigned counts[VERDICT_COUNT] = { 0 };
        int r;

        json_put_object(&json);
        json_put_key(&json, "checks");
        json_put_array(&json);
        for (size_t i = 0; i < check_count; i++) {
                struct finding finding = { 0 };

                checks[i].run(machine, &finding);
                counts[finding.verdict]++;
                json_put_object(&json);
                json_put_key_word(&json, "topic", checks[i].topic);
                json_put_key_word(&json, "name", checks[i].name);
                json_put_key_word(&json, "result", verdict_name(finding.verdict));
                json_put_key_word(&json, "found", finding.found);
                json_put_key_word(&json, "advice", finding.advice);
                json_put_object_end(&json);
        }
        json_put_array_end(&json);
        for (enum verdict i = 0; i < VERDICT_COUNT; i++)
                json_put_key_uint(&json, verdict_name(i), counts[i]);
        json_put_object_end(&json);
        r = json_put_end(&json);
        if (!r)
                r = bytes_add(&out, "\n", 1);
        if (r)
                say("out of memory");
        else
                r = screen_raw(out.at, out.count);
        bytes_deinit(&out);
        return r || counts[VERDICT_FAIL] ? CLI_FAILED : CLI_GOOD;
}

int cli_doctor(struct cli *cli)
{
        struct machine machine;

        machine_here(cli, &machine);
        return cli->json ? print_json(&machine) : print_table(&machine);
}
