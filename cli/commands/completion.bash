# SPDX-License-Identifier: Apache-2.0
# bash completion for etrace: eval "$(etrace completion bash)", or this text in
# ~/.local/share/bash-completion/completions/etrace
# shellcheck shell=bash

# Splits the line as the shell does, into the array `words`; sets `quote` to a quote that is still open at the end.
_etrace_words() {
    local line=$1 word='' begun='' ch i
    words=() quote=''
    for ((i = 0; i < ${#line}; i++)); do
        ch=${line:i:1}
        if [[ $quote && $ch == "$quote" ]]; then
            quote=''
        elif [[ $quote == "'" ]]; then
            word+=$ch
        elif [[ $ch == \\ ]]; then
            i=$((i + 1)) begun=yes
            word+=${line:i:1}
        elif [[ $quote ]]; then
            word+=$ch
        elif [[ $ch == [\'\"] ]]; then
            quote=$ch begun=yes
        elif [[ $ch == [[:space:]] ]]; then
            [[ ! $begun ]] || words+=("$word")
            word='' begun=''
        else
            word+=$ch begun=yes
        fi
    done
    words+=("$word")
}

_etrace() {
    local cur words quote breaks=''
    _etrace_words "${COMP_LINE:0:COMP_POINT}"
    cur=${words[-1]}
    mapfile -t COMPREPLY < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
    # Without a quote bash breaks words at the colons of mod:fun, so what stands before the last break is on the line already.
    if [[ ! $quote ]]; then
        breaks=${cur%"${cur##*[:=]}"}
        [[ $COMP_WORDBREAKS == *:* ]] || breaks=''
    fi
    COMPREPLY=("${COMPREPLY[@]#"$breaks"}")
    # Inside of quotes more of the expression may follow; bash would close the quote.
    if [[ ${#COMPREPLY[@]} -gt 0 && ($quote || ${COMPREPLY[0]} == *[:.=]) ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -o default -F _etrace etrace
