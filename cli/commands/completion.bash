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

# Asks etrace for what can be at the cursor, into the array `found`.
_etrace_ask() { # CURRENT
    mapfile -t found < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1:${#words[@]}-2}" "$1" 2>/dev/null)
    # An empty line says that no file name can be there.
    if [[ ${#found[@]} -eq 1 && ! ${found[0]} ]]; then
        found=()
        compopt +o default 2>/dev/null
    fi
}

# Appends to COMPREPLY the text on the line with MORE behind it, quoted for the place where it will be.
_etrace_reply() { # TEXT MORE
    local text=$1 i special='[]["#$&()*;<>?\\^`{|}~! '\'']'
    case $quote in
        "'") [[ $2 != *\'* ]] || return 0 ;;
        '"') [[ $2 != *[\"\$\`\\\!]* ]] || return 0 ;; # a quoted ! has no spelling in double quotes
    esac
    if [[ $quote || $2 != *$special* ]]; then
        text+=$2
    else
        for ((i = 0; i < ${#2}; i++)); do
            # shellcheck disable=SC2254 # it is a pattern
            case ${2:i:1} in $special) text+=\\ ;; esac
            text+=${2:i:1}
        done
    fi
    COMPREPLY+=("$text")
}

# Asks for candidates and turns them into replies.
_etrace_offer() { # TEXT CURRENT
    local found one
    COMPREPLY=()
    _etrace_ask "$2"
    for one in "${found[@]}"; do
        _etrace_reply "$1" "${one#"$cur"}"
    done
}

# Bash replaces its second argument, the text since the last quote or word break, by the common beginning of the
# replies. Each reply therefore begins with this text, and only appends to it.
_etrace() {
    local words quote cur text=${2%\\} one
    _etrace_words "${COMP_LINE:0:COMP_POINT}"
    cur=${words[-1]}
    _etrace_offer "$text" "$cur"
    # Bash closes the quote behind a single reply, and the shell would read the rest of an expression as its own
    # syntax. If an expression can go on behind the only reply, offer how.
    if [[ $quote && ${#COMPREPLY[@]} -eq 1 ]]; then
        one=${COMPREPLY[0]}
        _etrace_offer "$text" "$cur${one#"$text"} "
        [[ ${#COMPREPLY[@]} -gt 1 ]] || COMPREPLY=("$one")
    fi
    if [[ ${#COMPREPLY[@]} -gt 0 && ! $quote && ${COMPREPLY[0]} == *[:.=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -o default -F _etrace etrace
