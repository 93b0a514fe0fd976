#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace requests` and its views against servers with a known answer (tests/lib/asks.erl, asks_machine.erl). Times
# are compared with those that the servers and the callers measured themselves.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

COMMAND=requests

setup_file() {
    live_begin requests
    on_node 'asks:start(), asks_machine:start(state_functions)'
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    [[ ! $TERMINAL ]] || terminal_end
    live_teardown
}

# Prints a member of each request with this shape.
of_shape() { jq -r --arg shape "$1" "select(.type == \"request\" and .shape == \$shape) | $2" "$OUT"; }

# Prints the columns after this request, without the spaces that align them. If a server of OTP is asked meanwhile, too, the
# table names the servers.
row() { sed -nE "s/^(asks  +)?$1  +//p" <<<"$output" | sed -E 's/  +/|/g'; }

armed_probes() { [[ $(grep -c 'Ctrl-C stops' "$ERR") -ge $1 ]]; }

# bats test_tags=each
@test "the times of a request lie within those that its server and its caller measured" {
    trace --json
    local elapsed worked
    elapsed=$(node_eval "$NODE" 'asks:timed_call({sleep, 20})')
    worked=$(node_eval "$NODE" 'element(2, lists:last([X || {{sleep, 20}, _} = X <- asks:work()]))')
    trace_end
    assert_success
    # The virtual machine's clock and the tracer's differ by less than a millisecond.
    of_shape '{sleep,_}' '.' | jq -es --argjson elapsed "$elapsed" --argjson worked "$worked" 'length == 1 and (.[0] |
        .worked_us * 1000 > $worked - 1000000 and (.waited_us + .worked_us + .reply_us) * 1000 < $elapsed + 1000000 and
        .server == "asks" and .name == "asks" and .request == "{sleep,20}" and .answered and .timed_out == false)'
    json_of requests 'select(.shape == "{sleep,_}") | "\(.server) \(.calls) \(.timed_out) \(.unanswered)"' >"$BATS_TEST_TMPDIR/rows"
    assert_equal "$(<"$BATS_TEST_TMPDIR/rows")" 'asks 1 0 0'
}

@test "the table groups requests by shape and names what the longest wait was behind" {
    traced -- 'asks:behind(300, {sleep, 2}), asks:calls({sleep, 1}, 4), asks:call({put, {item, <<"x">>}, #{a => 1}}), asks:call(count)'
    assert_success
    assert_line -n 0 --regexp '^(server +)?request +calls +waited p50/p99 +worked p50/p99 +reply p99 +timed out$'
    assert_regex "$(row '\{sleep,_\}')" '^5\|[0-9.]+[mu]s / [0-9.]+ms\|[0-9.]+ms / [0-9.]+ms\|[0-9.]+[mun]s\|0$'
    assert_regex "$(row count)" '^1\|'
    assert_regex "$(row '\{put,\{item,_\},_\}')" '^1\|'
    assert_line --regexp '^longest wait: [0-9.]+ms behind handle_info\(\{recount,_\}\)$'
}

@test "a request that is no atom or tuple has the shape _, live and in a recording" {
    local load='[ok = asks:call(X) || X <- [1, [1, 2], #{a => 1}, <<"b">>, self(), 1.5]]'
    traced -P asks -- "$load"
    assert_success
    assert_regex "$(row _)" '^6\|'
    traced -P asks -o "$BATS_TEST_TMPDIR/x.etr" -- "$load"
    run "$ETRACE_BIN" replay -q --as requests "$BATS_TEST_TMPDIR/x.etr"
    assert_regex "$(row _)" '^6\|'
}

@test "a request that is never answered has waited until its callback began, and is counted" {
    local load='timeout = asks:call(never, 5), timeout = asks:call(never, 5)' all
    for all in asks all; do
        traced -P "$all" -- "$load"
        assert_success
        assert_regex "$(row never)" '^2\|[0-9.]+[mun]s / [0-9.]+[mun]s\|-\|'
    done
    traced --json -- "$load"
    json_of requests 'select(.shape == "never") | "\(.waited.calls) \(.unanswered) \(has("worked"))"' >"$BATS_TEST_TMPDIR/rows"
    assert_equal "$(<"$BATS_TEST_TMPDIR/rows")" '2 2 false'
    run of_shape never '.waited_us > 0'
    assert_output "$(printf 'true\ntrue')"
}

# bats test_tags=long
@test "a caller's requests that no traced process received are counted, also if the caller gave them up" {
    local late="{'EXIT', {timeout, _}} = (catch gen_server:call(asks, never, 5))" note='not shown: 5 requests that no traced process received'
    local load="work:ask(w, fun() -> [ok = asks:call(count) || _ <- [1, 2]], [$late || _ <- [1, 2, 3]] end)"
    traced -P w -- "$load"
    assert_success
    assert_line "$note"
    traced -P w --as text -- "$load"
    assert_line "$note"
    traced -P w --json -- "$load"
    run json_of requests_missing .elsewhere
    assert_output 5
    traced -P w -o "$BATS_TEST_TMPDIR/x.etr" -- "$load"
    run "$ETRACE_BIN" replay -q --as requests "$BATS_TEST_TMPDIR/x.etr"
    assert_line "$note"
    traced -P w -- "work:ask(w, fun() -> $late end)"
    assert_line 'not shown: 1 request that no traced process received'
}

@test "another process may reply, and the work lasts until then" {
    traced --json -- 'asks:later(30), asks:call({early, 300})'
    assert_success
    run of_shape '{later,_}' '"\(.worked_us >= 29000) \(.replier | test("^<[0-9.]+>")) \(.answered)"'
    assert_output 'true true true'
    # The callback goes on after its reply, and that is no work for this caller.
    run of_shape '{early,_}' '.worked_us < 250000 and (has("replier") | not)'
    assert_output true
}

@test "a pool replies to clients when a place is free" {
    traced --json -- 'asks:pool(4, 60)'
    assert_success
    run of_shape checkout '.worked_us >= 55000'
    assert_output "$(printf '%s\n' false true true true)"
}

@test "a caller that gives up has timed out, and the reply after that is late" {
    traced --json -- '{timeout, timeout} = {asks:given_up(), asks:call(never, 5)}, asks:call(settled)'
    assert_success
    run of_shape '{sleep,_}' '"\(.timed_out) \(.late) \(.answered) \(has("reply_us"))"'
    assert_output 'true true true false'
    run of_shape never '"\(.timed_out) \(.late) \(.answered) \(has("worked_us"))"'
    assert_output 'true null false false'
    run of_shape settled .timed_out
    assert_output false
    json_of requests 'select(.server == "asks") | "\(.shape) \(.timed_out) \(.late) \(.unanswered)"' | sort >"$BATS_TEST_TMPDIR/rows"
    assert_equal "$(<"$BATS_TEST_TMPDIR/rows")" "$(printf '%s\n' 'never 1 0 1' 'settled 0 0 0' '{sleep,_} 1 1 0')"
    traced -- 'timeout = asks:given_up(), asks:call(settled)'
    assert_line 'late: 1 reply after the caller had given up'
}

# bats test_tags=each
@test "every kind of From is paired, and waiting for a reply in steps is no time out" {
    traced --json -- 'asks:requests({sleep, 1})'
    assert_success
    run of_shape '{sleep,_}' '"\(.timed_out) \(.waited_us >= 0) \(.worked_us > 900) \(.reply_us >= 0)"'
    assert_output "$(printf 'false true true true\n%.0s' 1 2 3)"
}

# bats test_tags=each
@test "a state machine's postponed request waits until its last callback" {
    local mode
    for mode in state_functions handle_event_function; do
        on_node "gen_statem:stop(asks_machine), asks_machine:start($mode)"
        traced --json -- 'asks_machine:locked(300, 5)'
        assert_success
        run of_shape '{work,_}' '"\(.server) \(.postponed) \(.waited_us > 290000) \(.worked_us > 4900)"'
        assert_output 'asks_machine true true true'
        # It waits until the machine has begun to unlock, or longer.
        run -0 jq -se 'def began: (.ts[:19] + "Z" | fromdate) + (.ts[19:26] | tonumber);
            [.[] | select(.type == "request")] | (map(select(.shape == "unlock"))[0] | began + .waited_us / 1e6) as $unlock |
            map(select(.shape == "{work,_}"))[0] | began + .waited_us / 1e6 >= $unlock' "$OUT"
        run of_shape lock '"\(.postponed) \(.answered)"'
        assert_output 'null true'
    done
}

@test "with -P, what is not traced is unknown and not zero" {
    traced -P asks -- 'asks:call({sleep, 1}), asks:later(5)'
    assert_success
    refute_line --partial server
    assert_regex "$(row '\{sleep,_\}')" '^1\|[0-9.]+[mu]s / [0-9.]+[mu]s\|[0-9.]+ms / [0-9.]+ms\|-\|-\|0$'
    # A process that is not traced replied.
    assert_regex "$(row '\{later,_\}')" '^1\|[0-9.]+[mu]s / [0-9.]+[mu]s\|-\|-\|-\|1$'
}

@test "--server shows one server, with the parts of its callers" {
    on_node 'asks:start(asks_other)'
    live_snapshot
    local pid
    pid=$(node_eval "$NODE" '{pid, pid_to_list(whereis(asks))}' | sed 's/.*"\(.*\)".*/\1/')
    trace --server "#PID$pid" --server never_seen
    on_node 'ok = gen_server:call(asks_other, {sleep, 1}), timeout = asks:given_up(), asks:later(5)'
    trace_end
    assert_success
    refute_line --partial server
    assert_regex "$(row '\{sleep,_\}')" '^1\|[0-9.]+[mu]s / [0-9.]+[mu]s\|[0-9.]+ms / [0-9.]+ms\|-\|1$'
    assert_regex "$(row '\{later,_\}')" '^1\|[0-9.]+[mu]s / [0-9.]+[mu]s\|[0-9.]+ms / [0-9.]+ms\|[0-9.]+[mun]s\|0$'
    assert_regex "$talk" 'etrace: --server never_seen: no request to it was seen'
    refute grep -q "$pid: no request" "$ERR"
    # A registered name selects its process, and the callback module all servers of the module.
    traced --server asks_other -- 'ok = gen_server:call(asks_other, {sleep, 1}), asks:call(settled)'
    assert_regex "$(row '\{sleep,_\}')" '^1\|'
    refute_line --partial settled
    traced --server asks -- 'ok = gen_server:call(asks_other, {sleep, 1}), asks:call({sleep, 1})'
    assert_regex "$(row '\{sleep,_\}')" '^2\|'
    on_node 'gen_server:stop(asks_other)'
    live_snapshot
    local who
    for who in '' 'foo bar' 'app(kernel)' '{via,a,b}' all; do
        run "$ETRACE_BIN" requests -n "$NODE" --server "$who"
        assert_failure 2
        assert_line -n 0 "etrace: --server does not take '$who'"
    done
}

@test "what selects or counts single events does not go with a view of requests" {
    refused() { # TEXT OPTION...
        local text=$1
        shift
        run -2 "$ETRACE_BIN" requests -n "$NODE" "$@"
        assert_line -n 0 "etrace: $text"
        run -2 "$ETRACE_BIN" replay "$ETRACE_ROOT/tests/fixtures/shop.etr" --as requests "$@"
        assert_line -n 0 "etrace: $text"
    }
    refused '-e selects single events, but a request has several' -e 'dur > 10ms'
    refused '-g selects single events, but a request has several' -g sleep
    refused '--by counts events, but a view of requests is chosen' --by 'pid: count'
    refused '--format is for the lines of events, not of requests' --format '{time}'
    # A text file gets the view of standard output.
    refused '--format is for the lines of events, not of requests' --format '{time}' -o "$BATS_TEST_TMPDIR/a.txt"
    refused '-e selects single events, but a request has several' -e 'dur > 10ms' -o "$BATS_TEST_TMPDIR/a.log"
    run -0 "$ETRACE_BIN" replay "$ETRACE_ROOT/tests/fixtures/shop.etr" --as text -g reserve
}

@test "--rate leaves out whole requests, and those that are shown have all parts" {
    local rate
    for rate in 60 1000; do
        traced --json --rate "$rate" -- 'asks:calls(count, 2000)'
        assert_success
        run jq -es '([.[] | select(.type == "requests_missing")][0] | .lost.request > 100 and .shown_percent > 0 and .shown_percent < 90) and
            ([.[] | select(.type == "request" and .shape == "count")] | length > 5 and length < 1800 and
                all(.[]; .waited_us > 0 and .worked_us > 0 and .reply_us > 0 and .answered and (.timed_out | not) and (has("behind") | not)))' "$OUT"
        assert_output true
    done
    traced --as text --rate 60 -- 'asks:calls(count, 2000)'
    assert_line --regexp '^\*\*\* about [0-9.]+% of the requests are shown: --rate or full buffers leave out the others \*\*\*$'
    refute_line --regexp ' count .* -( |$)'
    refute_line --regexp ' -> - '
}

# bats test_tags=long
@test "requests that are open when the rate begins to leave out others keep their parts" {
    traced --json --rate 60 -- 'asks:open({later, 500}, 5), asks:call(count), asks:calls(count, 2000), timer:sleep(700)'
    assert_success
    run of_shape '{later,_}' '"\(.waited_us >= 0) \(.worked_us > 400000) \(.reply_us >= 0)"'
    assert_output "$(printf 'true true true\n%.0s' 1 2 3 4 5)"
}

@test "the longest wait is not said to be idle if events were lost meanwhile" {
    "$ETRACE_ROOT/build/tests/scene" requests 9000 >"$BATS_TEST_TMPDIR/x.etr"
    run "$ETRACE_BIN" replay -q --as requests "$BATS_TEST_TMPDIR/x.etr"
    assert_regex "$(row buy)" '^1\|5us / 5us\|1us / 1us\|'
    assert_line 'longest wait: 9.01us while events were lost'
    "$ETRACE_ROOT/build/tests/scene" requests 4000 >"$BATS_TEST_TMPDIR/x.etr"
    run "$ETRACE_BIN" replay -q --as requests "$BATS_TEST_TMPDIR/x.etr"
    assert_line 'longest wait: 5us while no callback began'
}

# bats test_tags=long
@test "a server that goes on after an early reply keeps the next request waiting" {
    traced -- 'asks:call({early, 200}), asks:call({sleep, 1})'
    assert_success
    assert_line --regexp '^longest wait: [0-9.]+ms behind handle_call\(\{early,_\}\)$'
}

# Prints what does not depend on times of each request.
without_times() {
    jq -r 'select(.type == "request" and .server != null) | [.server, .request, .answered, .timed_out, .late, .postponed,
        has("replier"), has("waited_us"), has("worked_us"), has("reply_us")] | map(tostring) | join(" ")' "$1" | sort
}

@test "the views of requests show the same as complete events do" {
    local load='asks:calls({sleep, 1}, 3), asks:later(5), asks:pool(3, 5), asks:requests({sleep, 1}), asks:call({early, 5}),
        timeout = asks:given_up(), ok = gen_server:cast(asks, {sleep, 1}), asks:behind(5, count), asks_machine:locked(20, 1)'
    traced --json -- "$load"
    assert_success
    without_times "$OUT" >"$BATS_TEST_TMPDIR/brief"
    traced -o "$BATS_TEST_TMPDIR/x.etr" -- "$load"
    assert_success
    "$ETRACE_BIN" replay --as requestjson "$BATS_TEST_TMPDIR/x.etr" >"$BATS_TEST_TMPDIR/whole.json"
    without_times "$BATS_TEST_TMPDIR/whole.json" >"$BATS_TEST_TMPDIR/whole"
    assert_equal "$(grep -E '^asks' "$BATS_TEST_TMPDIR/brief")" "$(grep -E '^asks' "$BATS_TEST_TMPDIR/whole")"
}

# Prints the rows of the servers, and what they were busy with, with T for each known time.
without_durations() { sed -nE 's/[0-9.]+([mun]s|s)/T/g; s/  +/|/g; s/^longest wait: |^unanswered|^late|^asks/&/p' <<<"$1" | sort; }

@test "the table is the one of a recording of the same run" {
    local who recorder load='asks:calls({sleep, 1}, 3), asks:later(5), asks:pool(3, 5), asks:requests({sleep, 1}), asks:call({early, 5}),
        timeout = asks:given_up(), timeout = asks:call(never, 5), asks:call({put, {item, 1}, #{}}), asks:call(settled),
        ok = gen_server:cast(asks, {sleep, 1}), asks:behind(300, count), asks_machine:locked(20, 1), asks:variants(40),
        asks:start(asks_other), noproc = try gen_server:call(asks_other, stop_later), gen_server:call(asks_other, gone)
            catch exit:{Why, _} -> Why end, asks:start(asks_other), crash = try gen_server:call(asks_other, crash) catch exit:{Died, _} -> Died end'
    live_own counts
    on_node 'asks:start(), asks_machine:start(state_functions)'
    for who in all asks; do
        rm -f "$BATS_TEST_TMPDIR/err"
        "$ETRACE_BIN" requests -n "$NODE" -P "$who" -P asks_machine -o "$BATS_TEST_TMPDIR/x.etr" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
        recorder=$!
        until_true 130 grep -q 'Ctrl-C stops' "$BATS_TEST_TMPDIR/err"
        traced -P "$who" -P asks_machine -- "$load"
        kill -INT "$recorder"
        wait "$recorder"
        assert_success
        node_heard "$NODE" crash
        run "$ETRACE_BIN" replay -q --as requests "$BATS_TEST_TMPDIR/x.etr"
        assert_success
        assert_equal "$(without_durations "$(<"$OUT")")" "$(without_durations "$output")"
        # On a busy host, any of the requests may wait longest.
        assert_line --regexp '^longest wait: [0-9.]+m?s[, ].* at (asks|asks_machine)\b'
    done
}

# bats test_tags=long
@test "no rate applies to the table and with --server, unless one is given" {
    traced -P asks -- 'asks:calls(count, 6000)'
    assert_success
    assert_regex "$(row count)" '^6000\|'
    refute_output --partial lost
    # With --server it would leave out requests to this server for those to others.
    traced --server asks --json -- 'asks:calls(count, 6000)'
    assert_success
    run json_of requests 'select(.shape == "count") | .calls > 4000' # a slow client may leave out some
    assert_output true
    assert_regex "$(<"$ERR")" '^etrace: the messages of all processes are traced: -P with the server and its callers costs less'
    traced --rate 20 --server asks -P asks -- 'asks:calls(count, 300)'
    assert_success
    assert_output --partial 'events lost (request)'
    [[ $(<"$ERR") != *'costs less'* ]]
}

# bats test_tags=long
@test "without the NIF, a long state does not hide From either" {
    on_node 'sys:replace_state(asks, fun(_) -> [{X, lists:duplicate(2000, $a)} || X <- lists:seq(1, 500)] end)'
    traced --fallback --json -P asks -- 'asks:call({put, lists:seq(1, 5000)}), asks:call(settled)'
    on_node 'sys:replace_state(asks, fun(_) -> [] end)'
    assert_success
    run of_shape '{put,_}' '"\(.server) \(.waited_us > 0) \(.worked_us > 0)"'
    assert_output 'asks true true'
}

@test "a server that ends is named" {
    live_own ends
    on_node 'asks:start()'
    traced --json -- 'catch asks:call(crash)'
    node_heard "$NODE" crash
    run of_shape crash '"\(.server_ended) \(.answered)"'
    assert_output 'true false'
}

# bats test_tags=long
@test "a long message or state in front of From does not hide it" {
    on_node 'sys:replace_state(asks, fun(_) -> [{X, lists:duplicate(2000, $a)} || X <- lists:seq(1, 500)] end)'
    traced --json -- 'asks:call({put, lists:seq(1, 5000), binary:copy(<<"x">>, 100000)})'
    on_node 'sys:replace_state(asks, fun(_) -> [] end)'
    assert_success
    run of_shape '{put,_,_}' '"\(.server) \(.waited_us > 0) \(.worked_us > 0) \(.reply_us > 0)"'
    assert_output 'asks true true true'
}

# bats test_tags=long
@test "shapes with too many tags become one, and secrets stay hidden" {
    traced -- 'asks:variants(40), asks:call({login, [{password, "hunter2"}], hunter2})'
    assert_success
    assert_regex "$(row '\{get,_\}')" '^40\|'
    refute_output --partial key1
    assert_regex "$(row '\{login,_,_\}')" '^1\|'
    traced --json -- 'asks:call({login, {password, hunter2}, #{token => hunter2}})'
    refute_output --partial hunter2
    run of_shape '{login,{password,_},_}' .answered
    assert_output true
}

@test "--as text prints a line for each request" {
    traced --as text -- 'asks:behind(30, {sleep, 2})'
    assert_success
    assert_line --regexp '^[0-9:.]+ <0\.[0-9]+\.0>(\([^)]+\))? -> <0\.[0-9]+\.0>\(asks\) \{sleep,2\} waited [0-9.]+ms worked [0-9.]+ms reply [0-9.]+[mun]s, behind handle_info\(\{recount,_\}\)$'
}

@test "--as hist draws a histogram of each part of the requests" {
    traced --as hist -- 'asks:calls({sleep, 4}, 20), asks:call(count), asks:later(30)'
    assert_success
    local title='^(asks )?\{sleep,_\}'
    assert_line --regexp "$title waited  20, p50 [0-9.]+[mu]s, p99 [0-9.]+[mu]s, max [0-9.]+[mu]s\$"
    assert_line --regexp "$title worked  20, p50 [0-9.]+ms, p99 [0-9.]+ms, max [0-9.]+ms\$"
    assert_line --regexp "$title reply  20, p50 "
    # The rows of each part add up to its requests: those of the work are at 4 ms and more.
    run awk '/sleep,_} worked/ { on = 1; next } /^$/ { on = 0 } on && /ms \|/ { n += $NF } END { print n }' <<<"$output"
    assert_output 20
    refute grep -q try_handle_call "$OUT"
    # The times of callers that are not traced are unknown.
    traced --as hist -P asks -- 'asks:call({sleep, 1})'
    assert_line --regexp "$title reply  0, no time known\$"
}

# bats test_tags=long
@test "--as csv and tsv have the figures of each shape in columns" {
    traced --as csv -- 'asks:calls({sleep, 4}, 20)'
    assert_success
    assert_line -n 0 "node,server,shape,calls,$(printf '%s,' {waited,worked,reply}_{p50,p99,max}_us)timed_out,late,unanswered,oldest_us,server_ended"
    assert_line -n 1 --regexp '^,asks,"\{sleep,_\}",20,([0-9.]+,){9}0,0,0,,0$'
    assert_equal "${#lines[@]}" 2
    traced --as tsv -P asks -- 'asks:call({sleep, 1})'
    # The times of callers that are not traced are unknown.
    assert_line -n 1 --regexp $'\t"\{sleep,_\}"\t1\t([0-9.]+\t){6}\t\t\t\t0\t0\t\t0$'
}

# bats test_tags=long
@test "a recording of messages and callbacks has the same table" {
    COMMAND=trace trace -o "$BATS_TEST_TMPDIR/x.etr" 'send(_, _)' 'recv(_)' 'asks:handle_call/3 | asks:handle_info/2 -> return'
    on_node 'asks:behind(30, {sleep, 2}), timeout = asks:given_up(), asks:call(settled)'
    COMMAND=trace trace_end
    run "$ETRACE_BIN" replay --as requests "$BATS_TEST_TMPDIR/x.etr"
    assert_success
    assert_regex "$(row '\{sleep,_\}')" '^2\|[0-9.]+[mu]s / [0-9.]+ms\|[0-9.]+ms / [0-9.]+ms\|[0-9.]+[mun]s\|1$'
    assert_line 'late: 1 reply after the caller had given up'
    run "$ETRACE_BIN" replay --as requesthist "$BATS_TEST_TMPDIR/x.etr"
    assert_line --regexp '^(asks )?\{sleep,_\} worked  2, p50 '
    assert_line 'timed out: 1'
    run "$ETRACE_BIN" replay --as requestlog "$BATS_TEST_TMPDIR/x.etr"
    assert_line --regexp ' \{sleep,2\} waited [0-9.]+ms worked [0-9.]+ms reply [0-9.]+.s, behind handle_info\(\{recount,_\}\)$'
    # A recording of etrace requests shows all views, too.
    traced -o "$BATS_TEST_TMPDIR/y.etr" -- 'asks:call({sleep, 2})'
    run "$ETRACE_BIN" replay --elixir --as requests "$BATS_TEST_TMPDIR/y.etr"
    assert_regex "$(row '\{:sleep, _\}')" '^1\|'
    run "$ETRACE_BIN" replay --as requestlog "$BATS_TEST_TMPDIR/y.etr"
    assert_line --regexp ' \{sleep,2\} waited '
}

@test "requests that hang come first, and the oldest one is named with its age" {
    live_own hangs
    on_node 'asks:start(), asks:start(asks_other)'
    local load='[gen_server:call(asks_other, settled) || _ <- lists:seq(1, 20)], asks:open({sleep, 60000}, 3), timer:sleep(200)'
    traced -- "$load"
    assert_success
    assert_regex "${lines[1]}" '^\{sleep,_\} +3 .* 3$'
    assert_regex "${lines[2]}" '^settled +20 '
    assert_line --regexp '^longest wait: [0-9.]+m?s so far behind handle_call\(\{sleep,_\}\)$'
    assert_line --regexp '^unanswered: 3 requests, the oldest for [0-9.]+m?s: \{sleep,_\} at <[0-9.]+>\(asks\) has run for [0-9.]+m?s$'
    on_node 'asks:start(asks_third)'
    traced --json -o "$BATS_TEST_TMPDIR/x.etr" -- 'begin spawn(fun() -> gen_server:call(asks_third, {sleep, 60000}) end), timer:sleep(200) end'
    json_of requests 'select(.unanswered > 0) | "\(.unanswered) \(.oldest_us > 200000)"' >"$BATS_TEST_TMPDIR/rows"
    assert_equal "$(<"$BATS_TEST_TMPDIR/rows")" '1 true'
    run jq -es 'map(select(.type == "request" and .answered == false)) | length == 1 and .[0].unanswered_us > 200000' "$OUT"
    assert_success
    # The recording has the same age.
    json_of requests 'select(.unanswered > 0) | .oldest_us' >"$BATS_TEST_TMPDIR/live"
    "$ETRACE_BIN" replay -q --as requestjson "$BATS_TEST_TMPDIR/x.etr" | jq 'select(.type == "requests" and .unanswered > 0) | .oldest_us' >"$BATS_TEST_TMPDIR/replayed"
    assert_equal "$(<"$BATS_TEST_TMPDIR/replayed")" "$(<"$BATS_TEST_TMPDIR/live")"
}

# bats test_tags=long
@test "a server that hangs since before the trace is not said to be idle" {
    live_own before
    on_node 'asks:start(), asks:open({sleep, 60000}, 1)'
    traced -- 'asks:open(count, 2), timer:sleep(50)'
    assert_success
    assert_line --regexp '^longest wait: [0-9.]+m?s so far while no callback began$'
    assert_line --regexp '^unanswered: 2 requests, the oldest for [0-9.]+m?s: count at <[0-9.]+>\(asks\) has waited while no callback began$'
}

# bats test_tags=each
@test "a deadlock is in the first rows, also after its callers gave up" {
    live_own deadlock
    on_node 'asks:start(), asks:start(asks_other), asks:start(asks_third)'
    traced -- '[gen_server:call(asks_third, {sleep, 1}) || _ <- lists:seq(1, 20)], asks:deadlock(asks, asks_other),
        [timeout, timeout, timeout] = [asks:call(count, 100) || _ <- [1, 2, 3]]'
    assert_success
    assert_line --regexp '^unanswered: 6 requests, the oldest for [0-9.]+m?s: \{ask,_,\{ask,_,_\}\} at <[0-9.]+>\(asks\) has run for [0-9.]+m?s$'
    assert_line --regexp '^longest wait: [0-9.]+m?s so far behind handle_call\(\{ask,_,\{ask,_,_\}\}\)'
    assert_regex "$(row count)" '^4\|-\|-\|-\|3\|4$'
    assert_regex "${lines[1]} ${lines[2]} ${lines[3]}" 'count.*\{ask,_.*\{ask,_'
}

# bats test_tags=long
@test "on a terminal the age of a request grows without events" {
    live_own ages
    on_node 'asks:start()'
    terminal 100 16 "exec $ETRACE_BIN requests -n $NODE -P asks --interval 200ms"
    await '^q quit'
    on_node 'asks:open({sleep, 60000}, 2)'
    await '^unanswered: 2 requests, the oldest for [0-9.]+s: \{sleep,_\} at <[0-9.]+>\(asks\) has run for '
}

# bats test_tags=each
@test "a stock node that knows none of the names is traced, and left as it was" {
    live_own stock
    traced -- 'gen_server:call(kernel_sup, which_children), supervisor:count_children(kernel_sup)'
    assert_success
    assert_regex "$(row which_children)" '^1\|'
    refute grep -q warning "$ERR" # of gen_server2, which few nodes have
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

# bats test_tags=long
@test "servers and tasks of Elixir print in its syntax" {
    local dir=$BATS_TEST_TMPDIR
    cat >"$dir/Elixir.Shop.Stock.erl" <<'EOF'
-module('Elixir.Shop.Stock').
-export([begun/0, held/0, init/1, handle_call/3, handle_cast/2]).
held() ->
    {ok, Pid} = gen_server:start('Elixir.Shop.Stock', [], []),
    [spawn(fun() -> gen_server:call(Pid, hold, infinity) end) || _ <- [1, 2]],
    timer:sleep(infinity).
begun() ->
    {ok, Pid} = gen_server:start('Elixir.Shop.Stock', [], []),
    ok = gen_server:call(Pid, {reserve, 'Elixir.Shop.Tea', #{'__struct__' => 'Elixir.Shop.Item', n => 1}}),
    {ok, Agent} = 'Elixir.Agent':start(fun() -> 42 end),
    42 = 'Elixir.Agent':get(Agent, fun(N) -> N end),
    42 = asks:client(fun() -> 'Elixir.Task':await('Elixir.Task':async(fun() -> timer:sleep(5), 42 end)) end),
    7 = asks:client(fun() -> 'Elixir.Task':await('Elixir.Task':async(lists, max, [[3, 7]])) end).
init([]) -> {ok, []}.
handle_call(hold, _, State) -> timer:sleep(infinity), {reply, ok, State};
handle_call(_, _, State) -> {reply, ok, State}.
handle_cast(_, State) -> {noreply, State}.
EOF
    "$ETRACE_ERLC" -o "$dir" "$dir/Elixir.Shop.Stock.erl"
    live_own elixir -pa "${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/lib/elixir/ebin" "$dir"
    on_node '{ok, _} = application:ensure_all_started(elixir)'
    traced -- "'Elixir.Shop.Stock':begun()"
    assert_success
    assert_line --regexp '^Shop\.Stock +\{:reserve, _, %Shop\.Item\{\}\} +1 '
    assert_line --regexp '^Agent\.Server +\{:get, _\} +1 '
    assert_line --regexp '^Task +#Function<[0-9]+\.[0-9]+ in Shop\.Stock> +1 +[0-9.]+.s / [0-9.]+.s +[0-9.]+ms / [0-9.]+ms +[0-9.]+.s +0$'
    assert_line --regexp '^Task +:lists\.max/1 +1 '
    traced -- "begin spawn(fun() -> 'Elixir.Shop.Stock':held() end), timer:sleep(300) end"
    assert_line --regexp '^unanswered: 2 requests, the oldest for [0-9.]+ms: :hold at <[0-9.]+>(\(.*\))? has run for [0-9.]+ms$'
    assert_line --regexp '^longest wait: [0-9.]+ms so far behind handle_call\(:hold\)$'
    traced --terms erlang -- "'Elixir.Shop.Stock':begun()"
    assert_line --regexp "^'Elixir\.Shop\.Stock' +\{reserve,_,%Shop\.Item\{\}\} +1 "
}

# bats test_tags=long
@test "with two nodes, the reply crosses them" {
    local server client
    live_own server
    server=$NODE
    node_start client
    client=$NODE
    on_node "pong = net_adm:ping('$server')"
    node_eval "$server" 'asks:start()' >/dev/null
    trace --json -n "$server"
    node_eval "$client" "ok = gen_server:call({asks, '$server'}, {sleep, 2}), gen_server:multi_call(['$server'], asks, {sleep, 2})" >/dev/null
    trace_end
    assert_success
    run of_shape '{sleep,_}' '"\(.node) \(.waited_us >= 0) \(.worked_us > 1900) \(.caller | test("^<0[.]")) \(.timed_out)"'
    assert_output "$(printf "$server true true true false\n%.0s" 1 2)"
    run of_shape '{sleep,_}' .caller_node
    assert_output "$(printf "$client\n%.0s" 1 2)"
    NODE=$client
    trace --as text -n "$server"
    node_eval "$client" "gen_server:call({asks, '$server'}, {sleep, 2})" >/dev/null
    trace_end
    assert_line --regexp " $server <0\.[0-9.]+>(\(.*\))? on $client -> <0\.[0-9.]+>\(asks\) \{sleep,2\} "
    # Only the server's node is traced: the caller's part is unknown.
    NODE=$server
    trace --json
    node_eval "$client" "gen_server:call({asks, '$server'}, {sleep, 2})" >/dev/null
    trace_end
    run of_shape '{sleep,_}' '"\(.waited_us >= 0) \(.worked_us > 1900) \(has("reply_us")) \(has("timed_out")) \(.caller | test("^<0[.]"))"'
    assert_output 'true true false false false'
}

@test "on a terminal the table refreshes in place, and the whole table stays at the end" {
    terminal 100 16 "PS1='ready> ' exec sh"
    await '^ready>'
    entered "clear; $ETRACE_BIN requests -n $NODE --interval 200ms"
    await '^q quit'
    on_node 'asks:calls({sleep, 1}, 3)'
    await '^(asks +)?\{sleep,_\} +3 '
    await '^etrace requests · .* events'
    on_node 'asks:calls({sleep, 1}, 2), asks:call(count)'
    await '^(asks +)?\{sleep,_\} +5 '
    entered /count
    await '^(asks +)?count +1 '
    await_not 'sleep'
    keys / Escape
    await '^(asks +)?\{sleep,_\} +5 '
    # Enter shows the chosen row, also in a pause. The details go on; the table that has stopped is then there again.
    keys p
    await 'etrace requests .* · paused'
    keys Down
    keys Enter
    await '^request +count$'
    await '^waited  1, p50 '
    await_not 'paused'
    on_node 'asks:call(count), asks:call(count)'
    await '^calls +3$'
    keys Escape
    await 'etrace requests .* · paused'
    await '^(asks +)?count +1 '
    keys p
    await '^(asks +)?count +3 '
    keys Home
    # On a low screen the arrows show the other rows, below the titles of the columns.
    resized 100 6
    await_not '^(asks +)?count +3 '
    keys Down
    await '^(asks +)?count +3 '
    await_not '\{sleep,_\}'
    terminal_shows ' calls '
    keys Home
    await '^(asks +)?\{sleep,_\} +5 '
    resized 100 16
    keys p
    await 'etrace requests .* · paused'
    resized 60 12
    await '^q quit'
    keys h
    await 'show only the rows'
    keys h
    resized 100 16
    keys q
    await '^etrace: [0-9]+ events in '
    await_last '^ready> *$'
    await '^(asks +)?\{sleep,_\} +5 '
    await 'longest wait:'
    # Ctrl-C ends it, too. --once prints no table before the end.
    entered "clear; $ETRACE_BIN requests -n $NODE"
    await '^q quit'
    keys C-c
    await '^etrace: [0-9]+ events? in '
    await_last '^ready> *$'
    entered "clear; $ETRACE_BIN requests -n $NODE --once -P asks"
    await '1 process .* Ctrl-C stops' # the line of the command before says more processes
    on_node 'asks:call(count)'
    keys C-c
    await '^(asks +)?count +1 '
    await_last '^ready> *$'
}

# bats test_tags=long
@test "while the table refreshes, events on their way are not called missing" {
    terminal 100 16 "exec $ETRACE_BIN requests -n $NODE --interval 200ms"
    await '^q quit'
    on_node 'begin register(loads, spawn(fun F() -> asks:call(count), F() end)), ok end'
    await '^(asks +)?count +[0-9]{3}'
    local seen
    for ((seen = 0; seen < 10; seen++)); do
        run screen
        refute_output --partial 'never came'
        pause 0.25
    done
    on_node 'begin exit(whereis(loads), kill), ok end'
}

@test "on a narrow terminal the table leaves out columns, and the sums of those stay" {
    local etr="$BATS_TEST_DIRNAME/../fixtures/shop.etr"
    terminal 80 24 "$ETRACE_BIN replay -q --as requests '$etr'; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line -n 0 --regexp '^server +request +calls +waited p50/p99 +worked p50/p99 +timed out$'
    assert_line -n 1 --regexp '^shop_orders +\{place,_,_,_\} +8 '
    assert_line -n 4 'unanswered: 3 requests, the oldest for 344us:'
    assert_line -n 5 '  {place,_,_,_} at <0.92.0>(shop_orders) has waited mostly while no callback ran'
    terminal_end
    terminal 40 24 "$ETRACE_BIN replay -q --as requests '$etr'; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line -n 0 --regexp '^request +calls +waited p50/p99$'
    assert_line -n 1 --regexp '^\{place,_,_,_\} +8 +[0-9.]+us / [0-9.]+us$'
    terminal_end
    terminal 40 60 "$ETRACE_BIN replay -q --as requesthist '$etr'; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line --regexp '^ +131us \|#+ *\| [0-9]+$'
    # A line that is too wide for the screen ends in an ellipsis.
    terminal_end
    terminal 44 40 "exec $ETRACE_BIN requests -n $NODE -P asks --as hist --interval 200ms"
    await '^q quit'
    on_node 'asks:calls({sleep, 1}, 3)'
    await '^(asks )?\{sleep,_\} waited  3, p50 .*…$'
    # A table that refreshes has one column less.
    terminal_end
    terminal 82 16 "exec $ETRACE_BIN requests -n $NODE --interval 200ms"
    await '^q quit'
    on_node 'begin asks:calls({sleep, 1}, 3), timeout = asks:given_up(), ok end'
    await '^late: 1 reply' # until then the table has a column of open requests, too
    run screen
    assert_line --regexp '^(asks +)?\{sleep,_\} +4 .*[a-z0-9]$'
    assert_line --regexp '^(server +)?request +calls +waited p50/p99 +worked p50/p99( +reply p99)?( +timed out)?$'
}

@test "in interactive mode, :requests shows captured requests, and with options traces them" {
    COMMAND=repl
    repl_start -n "$NODE"
    repl_line 'send(_, _)' 'recv(_)' 'asks:handle_call/3 -> return'
    until_true 30 armed_probes 3
    on_node 'asks:call({sleep, 2})'
    until_true 30 grep -q ' receive from <[0-9.]*>(asks) ' "$OUT"
    repl_line ':requests' ':requestlog' ':requesthist' ':requests --dry-run'
    repl_end
    trace_wait
    assert_line --regexp '^(asks +)?\{sleep,_\} +1 +[0-9.]+.s / [0-9.]+.s +[0-9.]+ms / '
    assert_line --regexp ' \{sleep,2\} waited [0-9.]+.s worked [0-9.]+ms reply [0-9.]+.s$'
    assert_line --regexp '^(asks )?\{sleep,_\} worked  1, p50 [0-9.]+ms, '
    assert_regex "$talk" 'not traced \(--dry-run\)'
}

@test "requests takes no expressions, and the views of events show its events" {
    run "$ETRACE_BIN" requests -n "$NODE" shop_stock
    assert_failure 2
    assert_line -n 0 "etrace: requests takes no arguments, but got 'shop_stock'"
    traced -c -- 'asks:call({sleep, 1})'
    assert_line --regexp ' gen_server:try_handle_call/4$'
}
