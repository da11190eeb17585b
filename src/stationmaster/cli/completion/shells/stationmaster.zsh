#compdef stationmaster
# Completion of stationmaster for zsh; printed by `stationmaster completion zsh`.
_stationmaster() {
    local action='' line program=${(Q)words[1]} begun=$PREFIX
    local -a values shown how
    while IFS= read -r line; do
        if [[ -z $action ]]; then action=$line; continue; fi
        values+=("${line%%$'\t'*}")
        shown+=("${line#*$'\t'}")
    done < <("${program/#\~\//$HOME/}" __complete zsh "${(@Q)words[2,CURRENT-1]}" "$begun" 2>/dev/null)
    [[ $begun == --[a-z-]##=* ]] && compset -P '--[a-z-]##='
    case $action in
        files) _files; return ;;
        folders) _files -/; return ;;
        partial) how=(-S '') ;;
    esac
    (( $#values )) && compadd "${how[@]}" -l -V stationmaster -d shown -a -- values
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _stationmaster "$@"  # from a folder of fpath: this file is the function's body, once
else
    compdef _stationmaster stationmaster
fi
