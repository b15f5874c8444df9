#!/usr/bin/env bash
# Twelve minutes on one GPU: the tests marked cuda, a table of throughput, and the longest self-play run that fits.
#
#   bench/gpu.sh [--dry] [OUT]     OUT: folder of the results (default: bench-out), which are written as they come
#
# --dry: small sizes on a CPU, to test the script. MINUTES=11.5 limits the total time. Weights may be in parts:
# weights/NAME/model.safetensors.part* are joined, and each folder weights/NAME is one more base of the table.
# PYTHON names the interpreter. Needs no network.
set -uo pipefail
cd "$(dirname "$0")/.."
dry=""; [ "${1:-}" = --dry ] && { dry=1; shift; }
out=${1:-bench-out}; python=${PYTHON:-python3}; mkdir -p "$out"
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 REDQUEEN_CACHE=""
if [ -n "$dry" ]; then
  export CUDA_VISIBLE_DEVICES=""
  minutes=${MINUTES:-4}; sizes="1 2"; many=""; table="--repeats 1 --prompts 4 --attempts 2 --new-tokens 4"
  run="smoke"; sets="run.num_steps=3 evaluate.max_items=4 run.product=distilled distill.every_steps=1 evaluate.every_steps=1"
else
  minutes=${MINUTES:-11.5}; sizes="1 8 100"; many="1000"; table="--repeats 2 --precision bf16 --prompts 512 --rows 4096 --threads 8"
  # A hundred times the proposals of a small step: 6,400 a teacher, of which about half become distilled answers.
  run="maths"; sets="run.num_steps=1000 propose.num_of_each_kind=3200 solve.max_rows=8192 run.num_threads=8 run.num_lanes=1
    run.checkpoint_every_steps=1 learn.micro_batch_tokens=131072 verify.num_workers=14 distill.every_steps=2
    evaluate.every_steps=2 evaluate.students=true evaluate.max_items=1600 distill.batch_size=192"
fi
left() { "$python" -c "print(int($minutes * 60 - $SECONDS))"; }
part() { # part NAME SECONDS COMMAND...: run it into OUT/NAME.txt, at most so long and never beyond the end
  local name=$1 most=$2; shift 2
  local room; room=$(left); [ "$room" -lt "$most" ] && most=$room
  [ "$most" -lt 5 ] && { echo "$name: no time left" | tee -a "$out/parts.txt"; return; }
  local began=$SECONDS; timeout -k 10 "$most" "$@" > "$out/$name.txt" 2>&1
  echo "$name: exit code $?, $((SECONDS - began)) s" | tee -a "$out/parts.txt"
}

: > "$out/parts.txt"
for first in weights/*/model.safetensors.part*; do
  folder=$(dirname "$first")
  [ -e "$first" ] && [ ! -e "$folder/model.safetensors" ] && cat "$folder"/model.safetensors.part* > "$folder/model.safetensors"
done
part doctor 60 "$python" -m redqueen doctor
[ -n "$dry" ] || part tests 150 "$python" -m pytest -q -m cuda -p no:cacheprovider tests/test_cuda.py
part table-embedded 120 "$python" bench/population_tax.py $table --members $sizes $many
for base in weights/*/; do
  [ -e "$base/config.json" ] && part "table-$(basename "$base")" 90 "$python" bench/population_tax.py $table --base "$base" --rank 16 --members $sizes
done

# The run gets what is left, but for a minute of evaluation at its end; the journal holds what it got to, however it ends.
seconds=$(($(left) - 60)); arguments=(); for one in $sets "run.max_seconds=$((seconds > 20 ? seconds * 2 / 3 : 20))"; do arguments+=(--set "$one"); done
folder=$(mktemp -d)/run
part run "$(left)" "$python" -m redqueen train "$run" --run-dir "$folder" "${arguments[@]}"
[ -e "$folder/journal.sqlite" ] && "$python" - "$folder/journal.sqlite" > "$out/curve.txt" <<'P'
import sqlite3, sys
journal = sqlite3.connect(sys.argv[1])
print("step  answers distilled  who       mode     items  right %  95 % interval")
rows = journal.execute("""SELECT e.step, (SELECT value FROM metric m WHERE m.name = 'distill/answers' AND m.step <= e.step
    ORDER BY m.step DESC LIMIT 1), individual, mode, num_items, 100 * mean_frac, 100 * low_frac, 100 * high_frac
    FROM evaluation e WHERE stratum = 'all' AND kind = 'all' AND individual IN ('base', 'control', 'students', 'product', 'change', 'gain')
    ORDER BY e.step, individual, mode""")
for step, answers, who, mode, items, *figures in rows:
    print(f"{step:4}  {answers or 0:17,.0f}  {who:8}  {mode:7}  {items:5}  " + "  ".join(f"{x:6.2f}" for x in figures if x is not None))
print("\nphase     steps  seconds")
for phase, steps, seconds in journal.execute("SELECT phase, count(*), sum(seconds) FROM timing WHERE step > 0 GROUP BY phase"):
    print(f"{phase:9} {steps:5}  {seconds:7.1f}")
P
cp "$folder/journal.sqlite" "$out/" 2>/dev/null
cat "$out/parts.txt" "$out/curve.txt" 2>/dev/null
