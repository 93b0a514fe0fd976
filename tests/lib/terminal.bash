# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs a program in a terminal, for the suites that type: a private tmux, which terminal_end closes. Load it after
# live.bash, or after process.bash in a suite without a node.
#
#   terminal COLUMNS ROWS COMMAND   starts COMMAND, a command line for sh
#   typed TEXT                      types TEXT literally
#   keys KEY...                     presses keys with their names in tmux: Enter Tab Up C-c
#   entered TEXT                    types TEXT and presses Enter
#   screen                          prints the visible screen
#   await REGEX [SECONDS]           waits until a line of the screen matches (30 seconds)
#   await_not REGEX [SECONDS]       waits until no line matches
#   await_last REGEX [SECONDS]      waits until the last line that is not empty matches
#   resized COLUMNS ROWS            changes the size of the window
#   terminal_end                    closes the window: its programs get a hangup
#   terminal_pid                    prints the process that runs in the window

TERMINAL=

terminal_tmux() { tmux -S "$TERMINAL" -f /dev/null "$@"; }

terminal() {
    TERMINAL=$(mktemp -d "${TMPDIR:-/tmp}/tty.XXXXXX")/s
    TERM=screen-256color LANG=C.UTF-8 terminal_tmux new-session -d -s t -x "$1" -y "$2" \
        "TERM=screen-256color LANG=C.UTF-8; export TERM LANG; unset TMUX; $3" </dev/null 3>&-
}

typed() { terminal_tmux send-keys -t t -l -- "$1"; }
keys() { terminal_tmux send-keys -t t "$@"; }
entered() { terminal_tmux send-keys -t t -l -- "$1" \; send-keys -t t Enter; }
screen() { terminal_tmux capture-pane -p -t t 2>/dev/null; }
screen_codes() { terminal_tmux capture-pane -p -e -t t 2>/dev/null; } # with the codes of colours
resized() { terminal_tmux resize-window -t t -x "$1" -y "$2"; }

# Sets rows to the lines of the screen. A look starts one process; grep would be the second one.
terminal_rows() { mapfile -t rows < <(exec tmux -S "$TERMINAL" -f /dev/null capture-pane -p -t t 2>/dev/null); }

terminal_shows() {
    local rows row
    terminal_rows
    for row in "${rows[@]}"; do [[ ! $row =~ $1 ]] || return 0; done
    return 1
}

terminal_hides() { ! terminal_shows "$1"; }

terminal_ends_with() {
    local rows row last=
    terminal_rows
    for row in "${rows[@]}"; do [[ $row != *[!\ ]* ]] || last=$row; done
    [[ $last =~ $1 ]]
}

await() { until_true "${2:-30}" terminal_shows "$1" || fail "the terminal does not show $1: $(screen)"; }
await_not() { until_true "${2:-30}" terminal_hides "$1" || fail "the terminal still shows $1: $(screen)"; }
await_last() { until_true "${2:-30}" terminal_ends_with "$1" || fail "the terminal does not end with $1: $(screen)"; }

terminal_pid() { terminal_tmux list-panes -t t -F '#{pane_pid}'; }

# terminal_is 1 0: the other screen is shown, without a cursor; 0 1: the usual screen with a cursor.
terminal_is() { [[ $(terminal_tmux display-message -p -t t '#{alternate_on} #{cursor_flag}') == "$1 $2" ]]; }
terminal_gone() { ! terminal_tmux has-session -t t 2>/dev/null; }

terminal_end() {
    [[ $TERMINAL ]] || return 0
    terminal_tmux kill-server 2>/dev/null || true
    until_true 5 terminal_gone || true
    rm -rf "${TERMINAL%/s}"
    TERMINAL=
}
