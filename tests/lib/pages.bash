# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs the commands of README.md and of the pages in share/doc, for scripts of alone.bash, which source this file. The
# commands find the programs of page_tool in $PATH, and the file etrace in the working directory. The container of a page
# is $PAGE_CONTAINER; it runs the release that app_release has made.
#
#   app_release DIR [APPS [ERTS]]
#                              makes a release of mix, DIR/my_app.release, which calls MyApp.Orders.place/1 again and
#                              again, and includes further applications, such as ", :ssl". ERTS is the directory of
#                              another runtime system
#   release_in TMP-OPTIONS epmd|none
#                              starts the release in the container my_app, as it is or without epmd; RELEASES is DIR
#   page_begin                 prepares $PATH and the working directory
#   page_inside                lets page_run run its commands in the container, as the user of the release
#   page_blocks FILE HEADING   prints the blocks of a section, each with an empty line after it
#   page_data FILE HEADING     prints the block of a section that has no commands
#   page_run FILE HEADING      runs all commands of a section, as they are. A command that traces must print $PAGE_EVENT,
#                              a call of the release by default; then, or when it prints $PAGE_UNTIL, it gets Ctrl-C, or
#                              $PAGE_SIGNAL. Each command must
#                              succeed, or exit with a status of the pattern $PAGE_STATUS. A command with & at its end
#                              stays until the next such command or the end of the section, and must print a line first.
#                              PAGE_EDIT is a script for sed that changes the commands. The file page.ran has them
#   page_command COMMAND       runs a single command in the same way

page_file() { if [[ $1 == README.md ]]; then echo "$ETRACE_ROOT/$1"; else echo "$ETRACE_ROOT/share/doc/$1"; fi; }

page_blocks() {
    awk -v heading="$2" '
        /^#+ / { title = $0; sub(/^#+ /, "", title); inside = title == heading; next }
        inside && /^    / { sub(/^    /, ""); print; open = 1; next }
        open { print ""; open = 0 }' "$1"
}

page_data() { page_blocks "$1" "$2" | awk -v RS= '!/^\$ /'; }

app_release() (
    set -e
    mkdir -p "$1"
    cd "$1"
    set -- "$1" "${2:-}" "${3:-}"
    PATH=${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/bin:${ETRACE_ERL%/*}:$PATH
    mix new my_app
    cd my_app
    cat >lib/my_app.ex <<END
defmodule MyApp do
  use Application
  def start(_, _), do: Supervisor.start_link([{Task, fn -> MyApp.Orders.run(1) end}], strategy: :one_for_one)
end
defmodule MyApp.Orders do
  def place(n), do: {:ok, n}
  def run(n) do
    {:ok, ^n} = place(n)
    Process.sleep(10)
    run(n + 1)
  end
end
END
    sed -i "s/extra_applications: \[:logger\]/extra_applications: [:logger$2], mod: {MyApp, []}/" mix.exs
    [[ ! $3 ]] || sed -i "s#deps: deps()#deps: deps(), releases: [my_app: [include_erts: \"$3\"]]#" mix.exs
    MIX_ENV=prod mix release --quiet --path ../release
    mv ../release ../my_app.release
)

page_app() { "$ETRACE_BIN" nodes 2>&1 | grep -q '^my_app.*  ok'; }

# Containers that share the processes of my_app have the root directory of `beside`.
release_in() {
    container_make beside exec
    container_make my_app "$1"
    cp -r "$RELEASES/my_app.release/." "$ROOT/app"
    [[ $2 == epmd ]] || tee -a "$ROOT"/app/releases/*/vm.args "$ROOT"/app/releases/*/remote.vm.args <<<"$without_epmd" >/dev/null
    container_start my_app env HOME=/ /app/bin/my_app start
    export PAGE_CONTAINER=my_app
    PAGE_COOKIE=$(<"$ROOT/app/releases/COOKIE")
    export PAGE_COOKIE
    await page_app
}

page_begin() {
    local program
    without_epmd=$(page_data "$ETRACE_ROOT/share/doc/releases.md" "Without epmd")
    mkdir -p tools
    cp "$ETRACE_BIN" etrace
    ln -sf "$ETRACE_BIN" tools/etrace
    for program in docker podman crictl kubectl sudo ssh; do ln -sf "$ETRACE_ROOT/tests/lib/page_tool" "tools/$program"; done
    PATH=$PWD/tools:$PATH
    PAGE_BACK=
    PAGE_EVENT='call MyApp.Orders.place('
    # The commands run in a network of their own: a port of the pages may be taken in that of the host.
    mkfifo page.never
    unshare --net sh -c 'ip link set lo up && echo && read -r line' <>page.never >page.network &
    page_where=(nsenter --net --target "$!")
    await [ -s page.network ]
}

page_inside() {
    local tools=$CONTAINERS/$PAGE_CONTAINER/root/tmp/tools
    mkdir -p "$tools"
    cp etrace "$tools/etrace"
    printf '#!/bin/sh\nshift\nexec "$@"\n' >"$tools/ssh"
    chmod 755 "$tools/ssh"
    page_where=(nsenter --target "$(container_pid "$PAGE_CONTAINER")" --all --root --wd
        setpriv --reuid 65534 --regid 65534 --clear-groups env -u TMPDIR -u XDG_RUNTIME_DIR HOME=/ PATH="/tmp/tools:$PATH")
}

# Starts a command as a shell does whose user may press Ctrl-C: in a process group of its own.
page_start() { # COMMAND OUTPUT
    : >"$2"
    setsid "${page_where[@]}" bash -c "$1" </dev/null >"$2" 2>"$2.err" &
    PAGE_PID=$!
}

page_settled() { ! kill -0 "$PAGE_PID" 2>/dev/null || grep -qF -e "${PAGE_UNTIL-$PAGE_EVENT}" page.out; }

page_forwards() {
    [[ -s page.back ]] || kill -0 "$PAGE_PID" 2>/dev/null || is "$(<page.back.err)" 'a command that goes on'
    [[ -s page.back ]]
}

page_end() {
    [[ $PAGE_BACK ]] || return 0
    kill -KILL -- "-$PAGE_BACK" 2>/dev/null || true
    wait "$PAGE_BACK" 2>/dev/null || true
    PAGE_BACK=
}

page_command() {
    local status=0
    echo "$1" >>page.ran
    if [[ $1 == *' &' ]]; then
        page_end
        page_start "${1% &}" page.back
        PAGE_BACK=$PAGE_PID
        await page_forwards
        return
    fi
    page_start "$1" page.out
    await page_settled
    kill "-${PAGE_SIGNAL:-INT}" -- "-$PAGE_PID" 2>/dev/null || true
    wait "$PAGE_PID" || status=$?
    [[ $status =~ ^(${PAGE_STATUS:-0})$ ]] || is "$status: $(cat page.out page.out.err)" "success of $1"
    [[ $1 != *'-> return'* ]] || has "$(<page.out)" "$PAGE_EVENT"
}

page_run() {
    local command count=0
    : >page.ran
    while IFS= read -r command; do
        page_command "$command"
        count=$((count + 1))
    done < <(page_blocks "$(page_file "$1")" "$2" | sed -n 's/^\$ //p' | sed -E "${PAGE_EDIT:-}")
    [[ $count -gt 0 ]] || is "no command" "a command in $2"
    page_end
}
