#include "cli/top/top.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/amounts.h"
#include "cli/clock.h"
#include "cli/top/link.h"
#include "cli/top/report.h"
#include "cli/top/terminal.h"
#include "cli/top/view.h"

#define MESSAGE_MS  4000
#define PLAIN_CELLS 100u /* of a frame that goes to no terminal */

struct top {
        struct cli *cli;
        struct link link;
        struct terminal terminal;
        struct snapshot snapshot;
        struct view view;
        uint64_t interval_ms, look_ms; /* look_ms: when the daemon is asked next */
        uint64_t message_ms;           /* until when the message is shown */
        bool coloured, changed, done;
        int result;
};

/* ---- what the environment says ---- */

static bool wants_colours(void)
{
        const char *no_colour = getenv("NO_COLOR");

        return !(no_colour && *no_colour);
}

/* The first of these variables that is set says what characters the terminal shows. */
static bool shows_unicode(void)
{
        static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                const char *value = getenv(names[i]);

                if (value && *value)
                        return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
        return false;
}

static uint64_t interval_of(const struct cli *cli)
{
        return cli->top.interval_s > 0 ? (uint64_t)(cli->top.interval_s * 1000) : 1000;
}

/* ---- a look at the daemon ---- */

/* The snapshot of what the link has; the selection stays, or goes to a neighbour. */
static int take_snapshot(struct top *top, char *why)
{
        size_t at = snapshot_find(&top->snapshot, top->view.selected);
        struct snapshot made;
        int r;

        r = snapshot_make(top->link.status.at, top->link.list.at, clock_ms(), &top->snapshot, &made,
                          why);
        if (r)
                return r;
        snapshot_sort(&made, top->view.sort, top->view.reversed);
        snapshot_deinit(&top->snapshot);
        top->snapshot = made;
        if (top->view.selected && snapshot_find(&made, top->view.selected) == made.stream_count)
                top->view.selected =
                        made.stream_count
                                ? made.streams[at < made.stream_count ? at : made.stream_count - 1]
                                          .number
                                : 0;
        view_remember(&top->view);
        return 0;
}

/* Asks, and waits for the answers. */
static int look(struct top *top)
{
        enum link_news news;
        bool writable;

        link_ask(&top->link);
        while ((news = link_take(&top->link)) != LINK_ANSWERED) {
                struct pollfd wait = { .fd = link_fd(&top->link, &writable), .events = POLLIN };
                uint64_t now = clock_ms();
                uint64_t limit = top->link.asked_ms + (uint64_t)top->cli->wait_s * 1000;

                if (news == LINK_LOST || wait.fd < 0) {
                        say("%s", top->link.why);
                        return CLI_FAILED;
                }
                if (now >= limit) {
                        say("the daemon did not answer within %u s (--timeout)", top->cli->wait_s);
                        return CLI_FAILED;
                }
                if (writable)
                        wait.events |= POLLOUT;
                poll(&wait, 1, (int)(limit - now));
        }
        return 0;
}

static int look_and_read(struct top *top)
{
        char why[SNAPSHOT_WHY_BYTES];
        int r = look(top);

        if (!r && take_snapshot(top, why)) {
                say("%s", why);
                r = CLI_FAILED;
        }
        return r;
}

/* ---- --once ---- */

static unsigned plain_width(void)
{
        struct winsize size;

        return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : PLAIN_CELLS;
}

static int print_frame(struct top *top)
{
        struct frame frame = frame_plain(plain_width());
        int r;

        view_draw(&top->view, &frame);
        r = frame.result ? frame.result : screen_raw(frame.text.at, frame.text.count);
        if (frame.result)
                say("out of memory");
        frame_deinit(&frame);
        return r ? CLI_FAILED : CLI_GOOD;
}

static int print_report(struct top *top)
{
        struct bytes json = { 0 };
        int r = report_write(&top->snapshot, &json);

        if (r)
                say("out of memory");
        else
                r = screen_raw(json.at, json.count);
        bytes_deinit(&json);
        return r ? CLI_FAILED : CLI_GOOD;
}

/* Rates need a second look; if no stream runs, there are none. */
static int run_once(struct top *top)
{
        int r = look_and_read(top);

        if (!r && top->snapshot.stream_count) {
                poll(NULL, 0, (int)top->interval_ms);
                r = look_and_read(top);
        }
        if (r)
                return r;
        return top->cli->json ? print_report(top) : print_frame(top);
}

/* ---- the screen ---- */

static void fill_trouble(struct top *top)
{
        uint64_t silent = link_silent_ms(&top->link);
        char age[AMOUNT_BYTES];

        top->view.trouble[0] = '\0';
        if (!top->cli->client)
                snprintf(top->view.trouble, sizeof(top->view.trouble),
                         "no daemon for %s, trying again: %s",
                         amount_age(clock_ms() - top->link.lost_ms, age), top->link.why);
        else if (silent)
                snprintf(top->view.trouble, sizeof(top->view.trouble),
                         "the daemon has not answered for %s: it is stopped or overloaded",
                         amount_age(silent, age));
}

static void draw(struct top *top)
{
        struct terminal_size size = top_terminal_size();
        struct frame frame = frame_screen(size.rows, size.columns, top->coloured);
        time_t now = time(NULL);
        struct tm local;
        char clock[16] = "";

        if (localtime_r(&now, &local))
                strftime(clock, sizeof(clock), "%H:%M:%S", &local);
        top->view.clock = clock;
        fill_trouble(top);
        if (top->message_ms && clock_ms() > top->message_ms) {
                top->view.message[0] = '\0';
                top->message_ms = 0;
        }
        view_draw(&top->view, &frame);
        if (frame.result || screen_raw(frame.text.at, frame.text.count)) {
                top->result = CLI_FAILED;
                top->done = true;
        }
        frame_deinit(&frame);
        top->view.clock = NULL;
        top->changed = false;
}

static void tell(struct top *top, const char *message)
{
        snprintf(top->view.message, sizeof(top->view.message), "%s", message);
        top->message_ms = clock_ms() + MESSAGE_MS;
        top->changed = true;
}

/* ---- keys ---- */

static void sort_by(struct top *top, enum top_sort by)
{
        top->view.reversed = top->view.sort == by && !top->view.reversed;
        top->view.sort = by;
        snapshot_sort(&top->snapshot, by, top->view.reversed);
}

/* Selects the row that is so many rows away from the selected one, or the nearest there is. */
static void move(struct top *top, long by)
{
        long count = (long)top->snapshot.stream_count;
        long at = (long)snapshot_find(&top->snapshot, top->view.selected);

        if (!count)
                return;
        if (at == count) /* no row is selected: begin with one that is on the screen */
                at = (long)top->view.first + (by < 0 ? (long)top->view.page : -1);
        at += by;
        at = at < 0 ? 0 : at >= count ? count - 1 : at;
        top->view.selected = top->snapshot.streams[at].number;
}

static void ask_to_end(struct top *top)
{
        if (!top->view.selected)
                tell(top, "select a stream first, with the arrow keys");
        else if (!top->cli->client)
                tell(top, "there is no daemon now");
        else
                top->view.ending = top->view.selected;
}

static void answer_to_end(struct top *top, int key)
{
        if (key == 'y' || key == 'Y')
                link_end(&top->link, top->view.ending);
        top->view.ending = 0;
}

static void leave(struct top *top)
{
        if (top->view.help)
                top->view.help = false;
        else
                top->view.selected = 0;
}

static bool on_move(struct top *top, int key)
{
        long page = top->view.page ? (long)top->view.page : 1;
        long all = (long)top->snapshot.stream_count;

        switch (key) {
        case KEY_UP:
                move(top, -1);
                return true;
        case KEY_DOWN:
                move(top, 1);
                return true;
        case KEY_PAGE_UP:
                move(top, -page);
                return true;
        case KEY_PAGE_DOWN:
                move(top, page);
                return true;
        case KEY_HOME:
                move(top, -all);
                return true;
        case KEY_END:
                move(top, all);
                return true;
        default:
                return false;
        }
}

static bool on_sort(struct top *top, int key)
{
        switch (key) {
        case 'u':
                sort_by(top, TOP_BY_USER);
                return true;
        case 'a':
                sort_by(top, TOP_BY_AGE);
                return true;
        case 't':
                sort_by(top, TOP_BY_TOKENS);
                return true;
        case 'r':
                sort_by(top, TOP_BY_RATE);
                return true;
        default:
                return false;
        }
}

static void on_letter(struct top *top, int key)
{
        switch (key) {
        case 'q':
        case 'Q':
                top->done = true;
                break;
        case 'k':
                ask_to_end(top);
                break;
        case 'h':
        case '?':
                top->view.help = !top->view.help;
                break;
        case ' ':
                top->view.paused = !top->view.paused;
                break;
        case KEY_ESCAPE:
                leave(top);
                break;
        default:
                break;
        }
}

static void on_key(struct top *top, int key)
{
        top->changed = true;
        if (key == KEY_CTRL('C')) {
                top->result = CLI_INTERRUPTED;
                top->done = true;
        } else if (key == KEY_CTRL('Z')) {
                raise(SIGTSTP); /* it is blocked, and comes as an event */
        } else if (top->view.ending) {
                answer_to_end(top, key);
        } else if (!on_move(top, key) && !on_sort(top, key)) {
                on_letter(top, key);
        }
}

/* ---- the loop ---- */

static void on_news(struct top *top, enum link_news news)
{
        char why[SNAPSHOT_WHY_BYTES];

        if (news == LINK_ENDED) {
                tell(top, top->link.ended);
                top->look_ms = clock_ms();
        } else if (news == LINK_LOST) {
                /* Its streams and users are gone with it. */
                snapshot_deinit(&top->snapshot);
                top->view.selected = top->view.ending = 0;
        } else if (!top->view.paused && take_snapshot(top, why)) {
                tell(top, why);
        }
        top->changed = true;
}

static void read_daemon(struct top *top)
{
        enum link_news news;

        while ((news = link_take(&top->link)) != LINK_QUIET)
                on_news(top, news);
}

/* Asks if it is time to, and returns the milliseconds until the next time. */
static int keep_time(struct top *top)
{
        uint64_t now = clock_ms();

        if (now >= top->look_ms) {
                link_ask(&top->link);
                read_daemon(top);
                now = clock_ms();
                top->look_ms = now + top->interval_ms;
                /* The clock, and how long the daemon is silent. */
                top->changed = true;
        }
        return (int)(top->look_ms - now);
}

static void handle(struct top *top, enum terminal_event event)
{
        switch (event) {
        case TERMINAL_KEY:
                on_key(top, top->terminal.key);
                break;
        case TERMINAL_RESIZED:
                top->changed = true;
                break;
        case TERMINAL_READY:
                read_daemon(top);
                break;
        case TERMINAL_SIGNAL:
                top_terminal_die(&top->terminal, top->terminal.signal);
                break;
        case TERMINAL_GONE:
                top->result = CLI_FAILED;
                top->done = true;
                break;
        case TERMINAL_NOTHING:
                break;
        }
}

static int run_live(struct top *top)
{
        int r = top_terminal_open(&top->terminal);

        if (r) {
                say("cannot use the terminal: %s", strerror(-r));
                return CLI_FAILED;
        }
        while (!top->done) {
                int ms = keep_time(top), fd;
                bool writable;

                if (top->changed)
                        draw(top);
                if (top->done)
                        break;
                fd = link_fd(&top->link, &writable);
                handle(top, top_terminal_wait(&top->terminal, fd, writable, ms));
        }
        top_terminal_close(&top->terminal);
        return top->result;
}

static int check(const struct cli *cli)
{
        if (cli->json && !cli->top.once) {
                say("--json needs --once: the live view is for people");
                return CLI_USAGE;
        }
        if (cli->top.once || top_terminal_is_usable())
                return 0;
        say("the live view needs a terminal (stdin, stdout, TERM); --once prints one frame, and "
            "--once --json data");
        return CLI_USAGE;
}

int cli_top(struct cli *cli)
{
        struct top top = { .cli = cli,
                           .link = link_to(cli),
                           .interval_ms = interval_of(cli),
                           .coloured = wants_colours() };
        int r = check(cli);

        if (r)
                return r;
        top.view = (struct view){ .snapshot = &top.snapshot,
                                  .sort = cli->top.sort,
                                  .unicode = shows_unicode() };
        r = cli->top.once ? run_once(&top) : run_live(&top);
        snapshot_deinit(&top.snapshot);
        link_deinit(&top.link);
        return r;
}
