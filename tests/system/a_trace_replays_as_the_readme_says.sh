#!/usr/bin/env bash
# The README's line, word for word, from the repository's root; then two policies on one page.
. "$(dirname "$0")/harness.sh"

cd "$here/../.."
line=$(grep -o 'aliquot replay [^#]*[^# ]' README.md | head -1)
[ -n "$line" ] || fail "the README has no line for aliquot replay"
read -ra words <<<"$line"
said=$("$aliquot" "${words[@]:1}")
case $said in
  "simulated: 400 jobs of trace.csv replayed in virtual time on cluster.csv (68 GPUs on 13 nodes:"*) ;;
  *) fail "unexpected: $said" ;;
esac
grep -Eq '^ours +[0-9]+ +[0-9]+ +0 +0 ' <<<"$said" || fail "no summary of ours: $said"
same "a second run" "$said" "$("$aliquot" "${words[@]:1}")"

"$aliquot" "${words[@]:1:2}" --policy ours,fgd --html "$work/r.html" --json "$work/r.json" >/dev/null
grep -q 'simulated' "$work/r.html" || fail "the page does not say that it is simulated"
same "lines of the two policies in five plots" 10 "$(grep -o 'class="line"' "$work/r.html" | wc -l)"
same "jobs of the second policy" 400 "$(python3 -c 'import json, sys
print(len(json.load(open(sys.argv[1]))["runs"][1]["jobs"]))' "$work/r.json")"
