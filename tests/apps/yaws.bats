#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces the web server Yaws under curl: the events match the server's access log. The server is Debian's, unpacked by
# tests/otp --apps and started by its own script.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/app

REQUESTS=200

setup_file() {
    local root
    root=$("$ETRACE_ROOT/tests/otp" --apps "$ETRACE_OTP") || return 1
    HTTP_PORT=$(free_port)
    export HTTP_PORT YAWS=$BATS_FILE_TMPDIR/yaws
    mkdir -p "$YAWS/www"
    # The script has Debian's paths built in.
    sed "s#^yawsdir=.*#yawsdir=$root/usr/lib/yaws#; s#^erl=.*#erl=${ETRACE_ERL}#" "$root/usr/bin/yaws" >"$YAWS/yaws"
    chmod +x "$YAWS/yaws"
    cat >"$YAWS/yaws.conf" <<CONF
logdir = $YAWS
ebin_dir = $YAWS
<server localhost>
  port = $HTTP_PORT
  listen = 127.0.0.1
  docroot = $YAWS/www
</server>
CONF
    echo 'a file' >"$YAWS/www/file.txt"
    # The page echoes its parameter, and is slow for every hundredth request.
    cat >"$YAWS/www/page.yaws" <<'PAGE'
<erl>
out(Arg) ->
    {ok, N} = queryvar(Arg, "n"),
    list_to_integer(N) rem 100 =:= 0 andalso timer:sleep(20),
    {html, ["page ", N]}.
</erl>
PAGE
    app_begin yaws || return 1
    app_load "$REQUESTS"
}
teardown_file() { app_end; }
setup() { app_setup; }
teardown() { app_teardown; }

answers() { curl -sf "http://127.0.0.1:$HTTP_PORT/file.txt" >/dev/null; }

start_app() {
    (cd "$YAWS" && "$YAWS/yaws" --daemon --id "${NODE%@*}" --conf "$YAWS/yaws.conf" --name "$NODE" \
        --erlarg "-noshell -start_epmd false -kernel inet_dist_use_interface {127,0,0,1}" </dev/null >>"$APP_LOG" 2>&1 3>&-) &
    until_true 60 answers
}

# Fetches N pages over four concurrent connections; each page contains its number.
app_load() {
    curl -s -f -Z --parallel-max 4 "http://127.0.0.1:$HTTP_PORT/page.yaws?n=[1-$1]" 2>/dev/null | grep -o 'page [0-9]*' >"$BATS_FILE_TMPDIR/pages" || true
    assert_equal "$(sort -u "$BATS_FILE_TMPDIR/pages" | wc -l)" "$1"
}

logged() { cat "$YAWS"/*.access | wc -l; }
# The server logs a request after it has sent the answer.
has_logged() { [[ $(logged) -ge $1 ]]; }

@test "numbers of calls equal the requests that the server logged and the client sent" {
    before=$(logged)
    trace --json --rate 0 "yaws_server:'GET'/4 -> arity" 'yaws_server:finish_up_dyn_file/2 -> arity' 'yaws_log:accesslog(_, _, _, _, Request, Status) -> msg({Request, Status}), arity' \
        'yaws_server:handle_out_reply({html, Page}, _, _, _, _) -> msg(Page), arity'
    app_load "$REQUESTS"
    run ! curl -sf "http://127.0.0.1:$HTTP_PORT/none.html"
    until_true 20 has_logged $((before + REQUESTS + 1))
    trace_end
    assert_success
    assert_account any
    run app_counts call
    assert_line "$((REQUESTS + 1)) yaws_server:GET/4"
    assert_line "$((REQUESTS + 1)) yaws_server:finish_up_dyn_file/2"
    assert_line "$((REQUESTS + 1)) yaws_log:accesslog/6"
    assert_equal "$(($(logged) - before))" $((REQUESTS + 1))
    # The calls are those of the pages that the client got.
    assert_equal "$(json_of call 'select(.f == "handle_out_reply") | .message' | grep -o '^\["page ","[0-9]*"\]$' | grep -o '[0-9]*' | sort -n)" "$(seq "$REQUESTS")"
}

@test "a condition on the duration shows the slow pages" {
    trace --json --rate 0 -e 'dur > 15ms' 'm_*:out/1 -> return'
    app_load "$REQUESTS"
    trace_end
    assert_success
    assert_account $((2 * REQUESTS))
    # On a busy machine other pages may be slow, too.
    assert_equal "$(json_of return 'select(.dur_us <= 15000)')" ''
    assert_equal "$(json_of return .value | grep -cE '"[12]00"\]')" 2
}

@test "-c counts every function of the server, and a tree nests the calls of a request" {
    trace -c --force 'app(yaws) -> return'
    functions=$(app_functions)
    [[ $functions -gt 450 ]] || fail "$talk"
    before=$(logged)
    app_load "$REQUESTS"
    until_true 20 has_logged $((before + REQUESTS))
    trace_end
    assert_success
    # The server has loops. While the node finds them, it may reject calls of their processes; it counts these as lost.
    refute_regex "$(totals)" ' lost \([^g]'
    for function in yaws_log:accesslog/6 yaws_server:finish_up_dyn_file/2; do
        if [[ $(totals) == *' lost (guard)'* ]]; then
            figures=$(app_figures "$function")
            ((${figures% *} <= REQUESTS && ${figures% *} > 0))
        else
            assert_equal "$(app_figures "$function")" "$REQUESTS 0"
        fi
    done
    echo "# $functions functions, $(tail -n 1 <<<"$talk")" >&3
    trace --as tree --rate 0 "yaws_server:'GET'/4 -> return" 'm_*:out/1 -> return'
    app_load 20
    trace_end
    assert_success
    # The page runs inside the function that handles the request.
    assert_equal "$(grep -cE "^[^ ]* [^ ]* yaws_server:'?GET'?\(" "$OUT")" 20
    assert_equal "$(grep -cE '^[^ ]* [^ ]*   +m_[0-9_]*:out\(' "$OUT")" 20
}

@test "--reattach continues the trace after the server restarts" {
    trace --json --rate 0 --reattach "yaws_server:'GET'/4 -> arity"
    app_load 50
    app_restart "$YAWS/yaws" --stop --id "${NODE%@*}"
    until_true 60 grep -q '"type":"node_up"' "$OUT"
    app_load 50
    trace_end
    assert_success
    # start_app fetches one page, which is traced if the server is traced again by then.
    assert_equal "$(json_of summary '"\(.lost | length) \(.missing) \(.seen == .shown)"')" '0 0 true'
    calls=$(json_of call .f | wc -l)
    [[ $calls -ge 100 && $calls -le 101 ]] || fail "etrace showed $calls calls"
}

@test "the load succeeds in alternating traced and untraced windows" {
    app_windows app_load "$REQUESTS" -- -c --force 'app(yaws)'
    app_windows app_load "$REQUESTS" -- -a -o "$BATS_TEST_TMPDIR/w.etr" 'yaws_server -> return' 'send(_, _)' 'recv(_)'
}
