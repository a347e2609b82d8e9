"""The scripts that teach bash, zsh and fish to complete `mibyan`."""

from __future__ import annotations

from typing import Final

_BASH: Final = r"""# Completion of mibyan for bash: put `eval "$(mibyan completion bash)"` into ~/.bashrc.
_mibyan_completion() {
    local program=$1 typed=$2 line value answer
    [[ $program == "~/"* ]] && program=$HOME/${program#"~/"}
    answer=$(_MIBYAN_COMPLETE=bash "$program" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)
    COMPREPLY=()
    while IFS= read -r line; do
        value=${line%%$'\t'*}
        case $value in
            '') ;;
            :dirs) _mibyan_paths -d "$typed" ;;
            :files) _mibyan_paths -f "$typed" ;;
            *)
                # Where bash doesn't take --enable=x apart, the word is replaced as a whole.
                [[ $typed == --*=* ]] && value=${typed%%=*}=$value
                [[ $value == *[=,] ]] && type compopt >/dev/null 2>&1 && compopt -o nospace
                [[ $value == *[!A-Za-z0-9_./:=,+@%-]* ]] && printf -v value '%q' "$value"
                COMPREPLY+=("$value")
                ;;
        esac
    done <<< "$answer"
}

_mibyan_paths() {
    local path
    type compopt >/dev/null 2>&1 && compopt -o filenames
    while IFS= read -r path; do
        [[ -n $path ]] && COMPREPLY+=("$path")
    done < <(compgen "$1" -- "$2")
}

complete -F _mibyan_completion mibyan
"""

_ZSH: Final = r"""#compdef mibyan
# Completion of mibyan for zsh: put `eval "$(mibyan completion zsh)"` into ~/.zshrc,
# or write this to a file called _mibyan in a folder of $fpath.
_mibyan() {
    local -a lines values
    local line value
    lines=("${(@f)$(_MIBYAN_COMPLETE=zsh ${~words[1]} "${(@)words[2,CURRENT]}" 2>/dev/null </dev/null)}")
    for line in $lines; do
        value=${line%%$'\t'*}
        case $value in
            '') ;;
            :dirs) _files -/ ;;
            :files) _files ;;
            *[=,])
                compadd -S '' -- "$value" ;;
            *)
                if [[ $line == *$'\t'* ]]; then
                    values+=("${value//:/\\:}:${line#*$'\t'}")
                else
                    values+=("${value//:/\\:}")
                fi
                ;;
        esac
    done
    (( $#values )) && _describe -V 'mibyan' values
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _mibyan "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _mibyan mibyan
fi
"""

_FISH: Final = r"""# Completion of mibyan for fish: mibyan completion fish > ~/.config/fish/completions/mibyan.fish
function __mibyan_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    for line in (_MIBYAN_COMPLETE=fish $program $words "$typed" 2>/dev/null </dev/null)
        switch $line
            case ':dirs*'
                __fish_complete_directories $typed
            case ':files*'
                __fish_complete_path $typed
            case '*'
                echo $line
        end
    end
end

complete --no-files --command mibyan --arguments '(__mibyan_complete)'
"""

#: The script by the shell's name.
SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
