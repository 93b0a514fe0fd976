#!/usr/bin/env bats
# --expect and --fail-on over a recording: what was shown decides the exit status.

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert

scene() { "$ETRACE_BIN" replay "$@" "$ETRACE_ROOT/tests/fuzz/corpus/rec/scene"; }

@test "nothing was asserted, nothing is judged" {
    run scene
    assert_success
}

@test "--fail-on says which event it was" {
    run --separate-stderr scene --fail-on 'size > 100000' --fail-on 'size >= 0'
    assert_failure 10
    assert_regex "$stderr" "^etrace: --fail-on 'size >= 0' holds: .+"
    run scene --fail-on 'size > 100000'
    assert_success
}

@test "--expect: each must have held" {
    run scene --expect 'size >= 0'
    assert_success
    run --separate-stderr scene --expect 'size >= 0' --expect 'size > 100000'
    assert_failure 11
    assert_equal "$stderr" "etrace: --expect 'size > 100000' held for no event"
}

@test "what is filtered out is not judged" {
    run scene -e 'size > 100000' --fail-on 'size >= 0'
    assert_success
    run scene -e 'size > 100000' --expect 'size >= 0'
    assert_failure 11
}

@test "an assertion that is wrong is refused like a filter" {
    run scene --expect 'size >'
    assert_failure 2
    run scene --fail-on 'text =~ "("'
    assert_failure 2
}
