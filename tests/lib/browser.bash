# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Drives a headless browser for the suites of pages: Debian's chromium, over HTTP by its chromedriver.
#
#   setup_file() { browser_begin; }        one browser serves a whole file
#   teardown_file() { browser_end; }
#
#   browser_open FILE [light|dark] [WIDTH HEIGHT]
#                          opens a file and waits until its script is done
#   js 'return ...'        runs a script in the page and prints its result as JSON
#   js_text 'return ...'   runs a script that returns a string, and prints it without quotes
#   until_js 'EXPR'        waits until the expression is true; fails after 30 seconds
#   keys KEY...            presses keys: characters, or Enter Escape Up Down Left Right Home End PageDown
#   click SELECTOR         clicks into the middle of an element
#   picture FILE           writes a screenshot as PNG

# shellcheck source=tests/lib/process.bash
. "${BASH_SOURCE[0]%/*}/process.bash"

BROWSER_URL=${BROWSER_URL:-}
BROWSER_SESSION=${BROWSER_SESSION:-}

# browser_call METHOD PATH [BODY]: prints the value of the answer; returns 1 if the browser reports an error.
browser_call() {
    local answer
    answer=$(curl -sS --max-time 60 -X "$1" -H 'Content-Type: application/json' ${3:+--data-binary @-} \
        "$BROWSER_URL$2" <<<"${3:-}") || return 1
    jq -c '.value | if type == "object" and has("error") then "\(.error): \(.message)\n" | halt_error else . end' <<<"$answer"
}

# Encodes a text as a JSON string.
json_text() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//$'\n'/\\n}"
}

browser_begin() {
    local log=$BATS_FILE_TMPDIR/chromedriver line='' end=$((${EPOCHREALTIME/./} + 60000000)) args
    chromedriver --port=0 >"$log" 2>&1 </dev/null 3>&- &
    echo $! >"$BATS_FILE_TMPDIR/chromedriver.pid"
    until line=$(grep -o 'started successfully on port [0-9]*' "$log"); do
        ((${EPOCHREALTIME/./} < end)) || { cat "$log" >&2; return 1; }
        pause 0.02
    done
    BROWSER_URL=http://127.0.0.1:${line##* }
    args='["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1200,800"]'
    BROWSER_SESSION=$(browser_call POST /session \
        "{\"capabilities\": {\"alwaysMatch\": {\"browserName\": \"chrome\", \"goog:chromeOptions\": {\"args\": $args}}}}" | jq -r .sessionId)
    [[ $BROWSER_SESSION ]] || return 1
    export BROWSER_URL BROWSER_SESSION
}

browser_end() {
    local pid
    browser_call DELETE "/session/$BROWSER_SESSION" >/dev/null || true
    pid=$(<"$BATS_FILE_TMPDIR/chromedriver.pid")
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}

browser_do() { browser_call "$1" "/session/$BROWSER_SESSION$2" "${3:-}"; }

js() { browser_do POST /execute/sync "{\"script\": $(json_text "$1"), \"args\": []}"; }

js_text() { js "$1" | jq -r .; }

until_js() {
    local end=$((${EPOCHREALTIME/./} + 30000000))
    until [[ $(js "return Boolean($1)") == true ]]; do
        ((${EPOCHREALTIME/./} < end)) || { echo "the page did not meet the condition: $1" >&2; return 1; }
        pause 0.02
    done
}

browser_cdp() { browser_do POST /goog/cdp/execute "{\"cmd\": \"$1\", \"params\": $2}" >/dev/null; }

browser_open() {
    browser_cdp Emulation.setEmulatedMedia "{\"features\": [{\"name\": \"prefers-color-scheme\", \"value\": \"${2:-light}\"}]}"
    browser_cdp Emulation.setDeviceMetricsOverride "{\"width\": ${3:-1200}, \"height\": ${4:-800}, \"deviceScaleFactor\": 1, \"mobile\": false}"
    browser_do POST /url "{\"url\": \"file://$1\"}" >/dev/null
    until_js 'document.querySelector("[data-ready]")'
}

keys() {
    local key list=
    for key in "$@"; do
        case $key in
            Enter) key=$'\uE007' ;;
            Escape) key=$'\uE00C' ;;
            PageDown) key=$'\uE00F' ;;
            End) key=$'\uE010' ;;
            Home) key=$'\uE011' ;;
            Left) key=$'\uE012' ;;
            Up) key=$'\uE013' ;;
            Right) key=$'\uE014' ;;
            Down) key=$'\uE015' ;;
        esac
        key=$(json_text "$key")
        list+=${list:+, }"{\"type\": \"keyDown\", \"value\": $key}, {\"type\": \"keyUp\", \"value\": $key}"
    done
    browser_do POST /actions "{\"actions\": [{\"type\": \"key\", \"id\": \"keyboard\", \"actions\": [$list]}]}" >/dev/null
}

click() {
    local id
    id=$(browser_do POST /element "{\"using\": \"css selector\", \"value\": $(json_text "$1")}" | jq -r '.[]')
    browser_do POST "/element/$id/click" '{}' >/dev/null
}

picture() { browser_do GET /screenshot | jq -r . | base64 -d >"$1"; }
