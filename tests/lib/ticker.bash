# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Tells whether a question of etrace delays the processes of a node. Load it after live.bash, for a node with a single
# scheduler (+S 1), so that a question that keeps the scheduler busy delays the ticker.
#
#   ticking                    starts the ticker on NODE
#   undisturbed COMMAND ARG... fails if the question delays the ticker; leaves the answer in status, output and stderr

# Starts a process on the node that sleeps five milliseconds again and again, and remembers how late it was at most.
ticking() { on_node 'spawn(fun() -> register(ticker, self()), (fun F(Last, Most) -> receive {most, P} -> P ! {most, Most}, F(erlang:monotonic_time(millisecond), 0)
    after 5 -> Now = erlang:monotonic_time(millisecond), F(Now, max(Most, Now - Last - 5)) end end)(erlang:monotonic_time(millisecond), 0) end), ok'; }
# Prints how many milliseconds the ticker was late at most, since the last time.
lateness() { node_eval "$NODE" 'ticker ! {most, self()}, receive {most, Most} -> Most end'; }

# Fails if the ticker is late whenever the node gets this question, and not when it gets none: another program of this host that
# delays the ticker does not do so each time. A pause without a question is as long as the one with it.
undisturbed() { # COMMAND ARG...
    local round began most idle asked=999999 alone=0
    for round in 1 2 3 4 5; do
        lateness >/dev/null
        began=$(date +%s%N)
        run --separate-stderr timeout 120 "$ETRACE_BIN" "$1" -n "$NODE" "${@:2}"
        [[ $status -eq 0 || ($1 == check && $status -eq 12) ]] || fail "etrace $*: $status, $stderr"
        most=$(lateness)
        [[ $most -ge $asked ]] || asked=$most
        pause "$(awk -v ns=$(($(date +%s%N) - began)) 'BEGIN { print ns / 1e9 }')"
        idle=$(lateness)
        [[ $idle -le $alone ]] || alone=$idle
        [[ $asked -gt $((alone + 50)) ]] || break
    done
    echo "etrace $*: $asked ms late, $alone ms without a question"
    [[ $asked -le $((alone + 50)) ]]
}
