# bash completion for etrace: eval "$(etrace completion bash)", or this text in
# ~/.local/share/bash-completion/completions/etrace
# shellcheck shell=bash

_etrace() {
    # bash breaks words at the colons of mod:fun, so the line is split anew.
    local line=${COMP_LINE:0:COMP_POINT} cur words breaks
    read -ra words <<<"$line"
    cur=
    [[ $line == *[[:space:]] ]] || { cur=${words[-1]}; unset 'words[-1]'; }
    # A quote that is still open stands in front of the expression.
    cur=${cur#[\'\"]}
    mapfile -t COMPREPLY < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" "$cur" 2>/dev/null)
    # What stands before the last break is on the line already.
    breaks=${cur%"${cur##*[:=]}"}
    [[ $COMP_WORDBREAKS == *:* ]] || breaks=
    COMPREPLY=("${COMPREPLY[@]#"$breaks"}")
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *[:.=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -o default -F _etrace etrace
