#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace mcp` with the official clients: both SDKs in TypeScript, and the command line of the inspector.
# bats file_tags=long

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    command -v npm >/dev/null || return 0
    NODE_PATH=$("$ETRACE_ROOT/tests/npm")
    export NODE_PATH
    live_share mcp_clients
}
teardown_file() { [[ ! ${NODE_PATH:-} ]] || live_end; }
setup() {
    [[ ${NODE_PATH:-} ]] || skip 'no npm here'
    live_setup
}
teardown() {
    [[ ${NODE_PATH:-} ]] || return 0
    on_node 'whereis(ticker) =:= undefined orelse (ticker ! stop)' || true
    live_teardown
}

ticker() {
    on_node 'true = register(ticker, spawn(fun() -> control:again(10, fun() -> work:one(tick) end) end)), ok'
}

# client SDK: runs tests/lib/mcp_client.mjs against the server.
client() { run --separate-stderr timeout 120 node "$ETRACE_ROOT/tests/lib/mcp_client.mjs" "$1" "$ETRACE_BIN" mcp -n "$NODE"; }

# inspector ARGS...: runs the inspector without its page.
inspector() {
    run --separate-stderr timeout 120 node "$NODE_PATH/.bin/mcp-inspector" --cli "$ETRACE_BIN" mcp -n "$NODE" "$@"
    assert_success
}

@test "each way of each SDK lists, calls, is refused, and cancels" {
    local sdk
    ticker
    for sdk in v1 legacy modern; do
        client "$sdk"
        assert_success
        assert_output "server etrace
tools nodes check ps why requests top trace count replay explain
read only true
nodes true
why init
trace 2
refused true etrace: the action process_dump is refused: it prints a process with its secrets, and this server only reads
unknown tool -32602
cancelled yes
explain true
closed"
    done
}

@test "when a client is killed, nothing stays on the node" {
    node "$ETRACE_ROOT/tests/lib/mcp_client.mjs" v1 "$ETRACE_BIN" mcp -n "$NODE" >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    # No process calls work:one/1, so the client waits for a trace of twenty seconds.
    is_traced() { ! nobody_there && grep -q '^nodes' "$OUT"; }
    until_true 60 is_traced
    child_kill "$TRACER"
    until_true 30 nobody_there
}

@test "the inspector lists the tools and calls one" {
    inspector --method tools/list
    [[ $(jq -r '[.tools[].name] | join(" ")' <<<"$output") == 'nodes check ps why requests top trace count replay explain' ]] || fail "$output"
    inspector --method tools/call --tool-name top --tool-arg functions=work --tool-arg seconds=1
    jq -e '.isError == false and (.content[0].text | fromjson | .rows[-1].type == "counted")' <<<"$output" >/dev/null || fail "$output"
}
