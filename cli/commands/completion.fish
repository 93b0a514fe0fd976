# fish completion for etrace: etrace completion fish | source, or this text in
# ~/.config/fish/completions/etrace.fish

function __etrace_complete
    set -l words (commandline -opc)
    $words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null
end

complete -c etrace -a '(__etrace_complete)'
