#compdef etrace
# zsh completion for etrace: eval "$(etrace completion zsh)" after compinit, or this text as a file
# called _etrace in a directory of $fpath

_etrace() {
    local -a found
    # $PREFIX is the word up to the cursor without the quote that may be open in front of it.
    found=("${(@f)$($words[1] __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    if [[ -z "$found" ]]; then
        _files
    elif [[ -n $compstate[quote] || $found[1] == *[:.=] ]]; then
        compadd -S '' -- "${found[@]}"
    else
        compadd -- "${found[@]}"
    fi
}

if [[ $funcstack[1] == _etrace ]]; then
    _etrace "$@"
else
    compdef _etrace etrace
fi
