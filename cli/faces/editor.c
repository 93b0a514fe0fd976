/* SPDX-License-Identifier: Apache-2.0 */
#include "editor.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../ground/utf8.h"

#define REMEMBERED 1000
#define CELLS_MOST (4u << 20)
#define EDITRC_MOST (1 << 20)
#define DRAIN_MS 500 /* longest time that Ctrl-Z waits for pending output before it stops the program */

struct editor {
    struct loop *loop;
    struct out *out;
    struct editor_host host;
    EditLine *el;
    History *history;
    FILE *to; /* writes into `out` */
    const char *prompt;
    bool reading, ended, stopped, lent;
    bool readable;
    struct loop_fd keys, signals;
    struct buf typed; /* keys that were read and that libedit has not taken yet */
    struct termios found;
};

/* ---- signals of the terminal: the handler only writes the number of the signal into a pipe ---- */

static int signal_pipe[2] = {-1, -1};

static void on_signal(int signal)
{
    int saved = errno;
    char c = (char)signal;
    ssize_t n = write(signal_pipe[1], &c, 1);

    (void)n; /* a full pipe already contains enough signals to wake the loop */
    errno = saved;
}

/* ---- where the cursor is ---- */

static unsigned terminal_columns(void)
{
    struct winsize w;

    return !ioctl(STDIN_FILENO, TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

static unsigned terminal_rows(void)
{
    struct winsize w;

    return !ioctl(STDIN_FILENO, TIOCGWINSZ, &w) && w.ws_row ? w.ws_row : 24;
}

unsigned editor_width(const struct editor *l UNUSED)
{
    return terminal_columns();
}

unsigned editor_height(const struct editor *l UNUSED)
{
    return terminal_rows();
}

/* libedit allocates memory for each cell of the screen, so too large a size would exhaust the memory. */
bool editor_fits(void)
{
    return terminal_columns() * terminal_rows() <= CELLS_MOST;
}

/*
 * Advances *row and *col by the cells that the text takes on the screen. libedit shows a control character in 2 cells,
 * an invalid byte in 4, and an unprintable character in 8.
 */
static void advance_cells(const char *at, const char *end, unsigned cols, size_t *row, size_t *col)
{
    while (at < end) {
        uint32_t c = utf8_next(&at, end);
        int wide = c == UTF8_BAD ? 4 : c < 32 || c == 127 ? 2 : wcwidth((wchar_t)c);
        size_t n = wide < 0 ? 8 : (size_t)wide;
        if (c == '\t')
            n = 8 - *col % 8;
        if (*col + n > cols) {
            ++*row;
            *col = 0;
        }
        *col += n;
        if (*col >= cols) {
            ++*row;
            *col = 0;
        }
    }
}

static void editor_place(const struct editor *l, bool end, size_t *row, size_t *col)
{
    const LineInfo *info = el_line(l->el);

    *row = *col = 0;
    advance_cells(l->prompt, l->prompt + strlen(l->prompt), terminal_columns(), row, col);
    advance_cells(info->buffer, end ? info->lastchar : info->cursor, terminal_columns(), row, col);
}

size_t editor_column(const struct editor *l UNUSED, const char *prompt, const char *text, size_t len)
{
    size_t row = 0, col = 0;

    advance_cells(prompt, prompt + strlen(prompt), UINT32_MAX, &row, &col);
    advance_cells(text, text + len, UINT32_MAX, &row, &col);
    return col;
}

/* ---- printing ---- */

static void erase_line(struct editor *l)
{
    size_t row, col;

    editor_place(l, false, &row, &col);
    fputc('\r', l->to);
    if (row)
        fprintf(l->to, "\033[%zuA", row);
    fputs("\033[J", l->to);
}

static void redraw_line(struct editor *l)
{
    el_set(l->el, EL_REFRESH);
    fflush(l->to);
}

void editor_above(struct editor *l, struct str text)
{
    if (!text.len)
        return;
    if (l->reading)
        erase_line(l);
    fwrite(text.at, 1, text.len, l->to);
    if (text.at[text.len - 1] != '\n')
        fputc('\n', l->to);
    if (l->reading)
        redraw_line(l);
    fflush(l->to);
}

static ssize_t to_out(void *data, const char *bytes, size_t len)
{
    struct editor *l = data;

    out_write(l->out, bytes, len);
    return (ssize_t)len;
}

/* ---- the terminal's modes ---- */

static struct editor *only; /* the one editor, for editor_panic() */

/* Sets the terminal for the time between two lines, so that keys that are typed ahead are neither echoed nor edited. */
static void mute_terminal(struct editor *l)
{
    struct termios t = l->found;

    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    t.c_iflag &= ~(tcflag_t)IXON; /* turns off Ctrl-S: while it stops the terminal, changing the modes would block */
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

void editor_lend(struct editor *l)
{
    fflush(l->to);
    l->lent = true;
    loop_remove(l->loop, &l->keys);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &l->found);
}

void editor_return(struct editor *l)
{
    l->lent = false;
    loop_add(l->loop, &l->keys);
    mute_terminal(l);
}

static void editor_drain(struct editor *l)
{
    int64_t until = loop_now() + DRAIN_MS;
    struct timespec nap = {0, 2000000};

    fflush(l->to);
    while (out_backlog(l->out, 0) && loop_now() < until)
        nanosleep(&nap, NULL);
}

static void suspend_etrace(struct editor *l)
{
    struct termios now;
    size_t row, col, last;

    tcgetattr(STDIN_FILENO, &now);
    if (l->reading) {
        editor_place(l, false, &row, &col);
        editor_place(l, true, &last, &col);
        for (; row < last; row++)
            fputs("\033[B", l->to);
        fputs("\r\n", l->to);
    }
    editor_drain(l);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &l->found);
    int64_t since = loop_now();
    kill(getpid(), SIGSTOP);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
    if (l->reading)
        redraw_line(l);
    l->host.resumed(l->host.data, loop_now() - since);
}

static void on_resize(struct editor *l)
{
    l->ended = l->ended || !editor_fits();
    if (l->ended)
        return;
    if (l->reading)
        erase_line(l);
    el_resize(l->el);
    if (l->reading)
        redraw_line(l);
}

static void serve_signals(void *owner)
{
    struct editor *l = owner;
    char c;

    while (read(l->signals.fd, &c, 1) == 1) {
        if (c == SIGTSTP)
            suspend_etrace(l);
        else if (c == SIGWINCH)
            on_resize(l);
    }
}

/* ---- keys ---- */

static void keys_ready(void *owner)
{
    struct editor *l = owner;

    l->readable = true;
    l->keys.want_read = false; /* read_keys() sets want_read again */
}

/* Reads the available keys into l->typed. Returns false if the terminal is gone. */
static bool read_keys(struct editor *l)
{
    l->readable = false;
    l->keys.want_read = true;
    ssize_t n = read(STDIN_FILENO, buf_room(&l->typed, 1024), 1024);
    if (n > 0)
        l->typed.len += (size_t)n;
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static bool editor_take(struct editor *l, uint32_t *ret)
{
    const char *at = l->typed.data, *end = at + l->typed.len;

    if (!l->typed.len)
        return false;
    unsigned char first = (unsigned char)*at;
    size_t need = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (l->typed.len < need)
        return false;
    *ret = utf8_next(&at, end);
    l->typed.len = (size_t)(end - at);
    memmove(l->typed.data, at, l->typed.len);
    return true;
}

static int get_key(EditLine *el, wchar_t *ret)
{
    struct editor *l;
    uint32_t c;

    el_get(el, EL_CLIENTDATA, &l);
    fflush(l->to);
    for (;;) {
        while (editor_take(l, &c))
            if (c != UTF8_BAD) {
                l->host.typed(l->host.data);
                *ret = (wchar_t)c;
                return 1;
            }
        if (l->host.stops(l->host.data)) {
            l->stopped = true;
            return 0;
        }
        l->host.serve(l->host.data);
        l->ended = l->ended || (l->readable && !read_keys(l));
        if (l->ended)
            return 0;
    }
}

int editor_key(struct editor *l)
{
    uint32_t c;

    if (l->readable && !read_keys(l))
        return 4;
    return editor_take(l, &c) && c != UTF8_BAD ? (int)c : -1;
}

static unsigned char editor_complete(EditLine *el, int key UNUSED)
{
    struct editor *l;

    el_get(el, EL_CLIENTDATA, &l);
    const LineInfo *info = el_line(el);
    char *before = mem_strndup(info->buffer, (size_t)(info->cursor - info->buffer));
    l->host.complete(l->host.data, (struct str){before, strlen(before)});
    free(before);
    return CC_REFRESH;
}

void editor_insert(struct editor *l, struct str text)
{
    char *copy = mem_strndup(text.at, text.len);

    el_insertstr(l->el, copy);
    free(copy);
}

bool editor_is_empty(const struct editor *l)
{
    const LineInfo *info = el_line(l->el);

    return !l->reading || info->lastchar == info->buffer;
}

/* ---- lines ---- */

static char *prompt_of(EditLine *el)
{
    struct editor *l;

    el_get(el, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)l->prompt;
}

enum editor_got editor_read(struct editor *l, const char *prompt, struct buf *ret)
{
    int n = 0;

    l->prompt = prompt;
    l->stopped = false;
    l->reading = editor_fits(); /* libedit reads the size of the terminal before each line */
    l->ended = !l->reading;
    const char *text = l->reading ? el_gets(l->el, &n) : NULL;
    bool broken = l->stopped || l->ended;
    if (broken && l->reading) {
        size_t row, col, last;
        editor_place(l, false, &row, &col);
        editor_place(l, true, &last, &col);
        for (; row < last; row++)
            fputs("\033[B", l->to);
    }
    l->reading = false;
    if (broken || !text)
        fputs("\r\n", l->to);
    fflush(l->to);
    mute_terminal(l);
    if (l->stopped)
        return EDITOR_STOPPED;
    if (l->ended || !text || n <= 0)
        return EDITOR_END;
    buf_clear(ret);
    buf_add(ret, text, (size_t)n - (text[n - 1] == '\n'));
    return EDITOR_TEXT;
}

void editor_remember(struct editor *l, const char *text)
{
    HistEvent ev;

    history(l->history, &ev, H_ENTER, text);
}

/* ---- beginning and end ---- */

bool editor_possible(void)
{
    const char *term = getenv("TERM");

    return tty_is(STDIN_FILENO) && tty_is(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0 && editor_fits();
}

static void bind_keys(EditLine *el)
{
    static const char *const keys[][2] = {
        {"^I", "etrace-complete"},     {"^R", "em-inc-search-prev"}, {"^S", "em-inc-search-next"},
        {"^W", "ed-delete-prev-word"}, {"\\e[200~", "ed-ignore"},    {"\\e[201~", "ed-ignore"},
        {"\\e[1~", "ed-move-to-beg"},  {"\\e[4~", "ed-move-to-end"}, {"\\e[7~", "ed-move-to-beg"},
        {"\\e[8~", "ed-move-to-end"},  {"\\e[H", "ed-move-to-beg"},  {"\\e[F", "ed-move-to-end"},
        {"\\eOH", "ed-move-to-beg"},   {"\\eOF", "ed-move-to-end"},  {"\\e[3~", "ed-delete-next-char"},
        {"\\e[1;5C", "em-next-word"},  {"\\e[1;5D", "ed-prev-word"}, {"\\e[1;3C", "em-next-word"},
        {"\\e[1;3D", "ed-prev-word"},  {"\\e[A", "ed-prev-history"}, {"\\e[B", "ed-next-history"},
        {"\\e[C", "ed-next-char"},     {"\\e[D", "ed-prev-char"},    {"\\eOA", "ed-prev-history"},
        {"\\eOB", "ed-next-history"},  {"\\eOC", "ed-next-char"},    {"\\eOD", "ed-prev-char"},
    };

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        el_set(el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

/*
 * Reads the configuration file of libedit, if it is a regular file of at most EDITRC_MOST bytes. libedit would also
 * read a device or a pipe, which may never end.
 */
static void read_editrc(EditLine *el)
{
    const char *named = getenv("EDITRC"), *home = getenv("HOME");
    struct buf path = {0};
    struct stat st;

    if (!named && !home)
        return;
    buf_printf(&path, "%s%s", named ? named : home, named ? "" : "/.editrc");
    buf_cstr(&path);
    if (!stat(path.data, &st) && S_ISREG(st.st_mode) && st.st_size <= EDITRC_MOST)
        el_source(el, path.data);
    buf_release(&path);
}

static void watch_terminal(struct editor *l)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    sigemptyset(&act.sa_mask);
    sigaction(SIGTSTP, &act, NULL);
    sigaction(SIGWINCH, &act, NULL);
    l->signals = (struct loop_fd){.fd = signal_pipe[0], .want_read = true, .ready = serve_signals, .owner = l};
    loop_add(l->loop, &l->signals);
    l->keys = (struct loop_fd){.fd = STDIN_FILENO, .want_read = true, .ready = keys_ready, .owner = l};
    loop_add(l->loop, &l->keys);
}

struct editor *editor_new(struct loop *loop, struct out *out, const struct editor_host *host, struct err *e)
{
    struct editor *l = mem_zalloc(sizeof(*l));
    HistEvent ev;

    *l = (struct editor){.loop = loop, .out = out, .host = *host, .prompt = ""};
    if (!tcgetattr(STDIN_FILENO, &l->found)) {
        only = l;
        mute_terminal(l); /* must precede el_init_fd(), which saves the current modes */
    }
    /* Uses UTF-8 in the line editor, whatever the environment says. */
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        setlocale(LC_CTYPE, "");
    l->to = fopencookie(l, "w", (cookie_io_functions_t){.write = to_out});
    if (!l->to || pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) ||
        !(l->el = el_init_fd("etrace", stdin, l->to, l->to, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO))) {
        err_set(e, ERR_RUN, "cannot use the terminal: %s", strerror(errno));
        if (l->to)
            fclose(l->to);
        editor_panic();
        only = NULL;
        free(l);
        return NULL;
    }
    l->history = history_init();
    history(l->history, &ev, H_SETSIZE, REMEMBERED);
    history(l->history, &ev, H_SETUNIQUE, 1);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_PROMPT, prompt_of);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_SIGNAL, 0);
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_GETCFN, get_key);
    /* Uses el_wset(), because el_set() leaks copies of these strings. */
    el_wset(l->el, EL_ADDFN, L"etrace-complete", L"Complete what stands before the cursor", editor_complete);
    bind_keys(l->el);
    read_editrc(l->el);
    watch_terminal(l);
    mute_terminal(l);
    return l;
}

void editor_panic(void)
{
    if (only)
        tcsetattr(STDIN_FILENO, TCSANOW, &only->found);
}

void editor_free(struct editor *l)
{
    if (!l)
        return;
    only = NULL;
    loop_remove(l->loop, &l->keys);
    loop_remove(l->loop, &l->signals);
    signal(SIGTSTP, SIG_DFL);
    signal(SIGWINCH, SIG_DFL);
    fflush(l->to);
    el_end(l->el);
    history_end(l->history);
    fclose(l->to);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &l->found);
    close(signal_pipe[0]);
    close(signal_pipe[1]);
    buf_release(&l->typed);
    free(l);
}
