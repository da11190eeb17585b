# Completion of stationmaster for bash; printed by `stationmaster completion bash`.
_stationmaster() {
    local action='' line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $action ]]; then action=$line; else COMPREPLY+=("$line"); fi
    done < <("${1/#\~\//$HOME/}" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    # bash before 4.0 has no compopt, and before 4.4 no nosort.
    compopt -o nosort 2>/dev/null
    case $action in
        partial) compopt -o nospace 2>/dev/null ;;
        files) compopt -o default 2>/dev/null ;;
        folders) compopt -o dirnames 2>/dev/null ;;
    esac
}

complete -F _stationmaster stationmaster
