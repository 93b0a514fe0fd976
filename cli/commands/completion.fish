# fish completion for etrace: etrace completion fish | source, or this text in
# ~/.config/fish/completions/etrace.fish

function __etrace_complete
    set -l words (commandline -opc)
    # The word at the cursor comes with the quote that is open in front of it.
    set -l word (commandline -ct | string replace -r '^["\']' '' | string collect)
    set -l found ($words[1] __complete $words[2..-1] "$word" 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end

complete -c etrace -f -a '(__etrace_complete)'
