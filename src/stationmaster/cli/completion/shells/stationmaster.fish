# Completion of stationmaster for fish; printed by `stationmaster completion fish`.
function __stationmaster_complete
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -l answer ($program __complete fish $words[2..-1] "$begun" 2>/dev/null)
    set -l attached (string match -r '^--[a-z-]+=' -- "$begun")
    set -l rest (string replace -r '^--[a-z-]+=' '' -- "$begun")
    switch "$answer[1]"
        case files
            printf '%s\n' "$attached"(__fish_complete_path "$rest")
        case folders
            printf '%s\n' "$attached"(__fish_complete_directories "$rest" '')
        case '*'
            set -q answer[2]; and printf '%s\n' $answer[2..-1]
    end
end

complete -c stationmaster -f -k -a '(__stationmaster_complete)'
