#!/bin/sh
# Bundles what reports use of Apache ECharts: sim/results/entry.js -> echarts.min.js.gz, and the licences of what is in it.
# Needs npm.  The same versions give the same bytes; tests/app/report/test_charts.py knows their hash.
set -eu
target=$(cd "$(dirname "$0")/../sim/results" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init --yes >/dev/null
npm install --silent --save-exact echarts@6.1.0 zrender@6.1.0 tslib@2.3.0 esbuild@0.28.2
cp "$target/entry.js" .
npx esbuild entry.js --bundle --minify --format=iife --global-name=echarts --legal-comments=none --target=es2020 --outfile=echarts.min.js
gzip -9 -n -c echarts.min.js >"$target/echarts.min.js.gz"
for part in echarts zrender tslib; do
    printf '%s %s\n\n' "$part" "$(node -p "require('./node_modules/$part/package.json').version")"
    cat "node_modules/$part/NOTICE" 2>/dev/null || true
    cat "node_modules/$part"/LICENSE*
    printf '\n\n'
done >"$target/LICENCES.txt"
printf 'd3.js, parts of it in echarts\n\n' >>"$target/LICENCES.txt"
cat node_modules/echarts/licenses/LICENSE-d3 >>"$target/LICENCES.txt"
sha256sum echarts.min.js
