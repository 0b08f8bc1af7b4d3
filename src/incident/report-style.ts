import { html } from '../core/html.ts';

/** Light and dark, from phones to wide screens. The page loads nothing, so all of it is here. */
export const STYLE = html`<style>
:root {
  color-scheme: light;
  --ground: #f5f6f7; --panel: #fff; --panel-2: #eef1f3; --line: #d7dce0; --ink: #14191d; --ink-2: #4a545d;
  --good: #14703a; --good-ground: #e3f3e8; --warn: #8a4b00; --warn-ground: #fff1d6; --bad: #b0182b; --bad-ground: #fde5e7;
  --owner-ink: #fff;
  --o0: #1c65b0; --o1: #a6450c; --o2: #2e7031; --o3: #8b3a93; --o4: #7a5c00; --o5: #0b6e7c;
  --o6: #b02a5b; --o7: #55489c; --o8: #5c6b1e; --o9: #8a4a3c; --o10: #2f6285; --o11: #6b5570;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace;
  --sans: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    color-scheme: dark;
    --ground: #0f1315; --panel: #171c1f; --panel-2: #20272b; --line: #2f383e; --ink: #eaeef0; --ink-2: #a8b4bc;
    --good: #63cf8b; --good-ground: #14301f; --warn: #f2b55c; --warn-ground: #38290f; --bad: #ff8a93; --bad-ground: #3d171c;
    --owner-ink: #0b0e10;
    --o0: #7db5f2; --o1: #f0a06a; --o2: #83cf86; --o3: #dd9ae4; --o4: #dcbf4e; --o5: #63cbd9;
    --o6: #f495b6; --o7: #b3a8f5; --o8: #b9cb6c; --o9: #dba091; --o10: #93bfdc; --o11: #c4adc9;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 var(--sans); }
main { max-width: 82rem; margin: 0 auto; padding: 2rem 1.5rem 5rem; }
h1 { font-size: 1.75rem; line-height: 1.2; letter-spacing: -.015em; margin: .15rem 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; }
h2 .count { color: var(--ink-2); font-weight: 400; margin-left: .35rem; }
p { margin: .35rem 0; }
.quiet { color: var(--ink-2); }
.small { font-size: .85rem; }
.kicker { color: var(--ink-2); font-size: .85rem; margin: 0; }
.break { overflow-wrap: anywhere; }
.verdict { border-left: 4px solid; border-radius: 6px; padding: .8rem 1rem; margin: 1.25rem 0 0; }
.verdict { background: var(--panel); }
.verdict > strong { font-size: 1.1rem; }
.verdict.good { border-color: var(--good); background: var(--good-ground); }
.verdict.warn { border-color: var(--warn); background: var(--warn-ground); }
.verdict.bad { border-color: var(--bad); background: var(--bad-ground); }
.verdict.good > strong { color: var(--good); } .verdict.warn > strong { color: var(--warn); } .verdict.bad > strong { color: var(--bad); }
.verdict summary { cursor: pointer; margin-top: .5rem; }
.finding { margin: .75rem 0 0; } .finding ul { margin: .25rem 0 0; }
ul { padding-left: 1.2rem; margin: .4rem 0; }
.facts { display: flex; flex-wrap: wrap; gap: .6rem; list-style: none; padding: 0; margin: 1rem 0 0; }
.facts li { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .45rem .8rem; min-width: 7rem; }
.facts b { display: block; font-size: 1.2rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.facts span { color: var(--ink-2); font-size: .82rem; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1rem; list-style: none; padding: 0; margin: 0 0 .6rem; font-size: .85rem; }
.legend i { display: inline-block; width: 1.1em; height: .8em; border-radius: 3px; margin-right: .4em; vertical-align: -.05em; }
.legend svg { vertical-align: -.1em; margin-right: .4em; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
.lanes { padding: .35rem 0; }
.lane > summary, .axis { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: .9rem; align-items: center; padding: 1px .9rem; }
.lane > summary { cursor: pointer; list-style: none; }
.lane > summary::-webkit-details-marker { display: none; }
.lane > summary:hover { background: var(--panel-2); }
.lane > summary:focus-visible { outline: 2px solid var(--o5); outline-offset: -2px; }
.lane[open] > summary { background: var(--panel-2); }
.lane .key { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 500; }
.lane .key::before { content: "▸"; color: var(--ink-2); display: inline-block; width: 1em; }
.lane[open] .key::before { content: "▾"; }
.lane .scroll { padding: .4rem .9rem .8rem; }
svg.bars { display: block; width: 100%; height: 24px; overflow: hidden; }
.axis svg { display: block; width: 100%; height: 18px; overflow: visible; }
.axis text { font: 11px var(--sans); fill: var(--ink-2); font-variant-numeric: tabular-nums; }
.tick { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.name { font: 600 11px var(--sans); fill: var(--owner-ink); pointer-events: none; }
.open { fill-opacity: .5; }
.doubt { fill: url(#doubt); }
.gap { fill: var(--bad); }
.lost { stroke: var(--bad); stroke-width: 3; }
.act { stroke: var(--ink); stroke-width: 2; }
${colours()}
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th { text-align: left; font-weight: 500; color: var(--ink-2); font-size: .8rem; }
th, td { padding: .32rem .8rem .32rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
.panel > .scroll { padding: .3rem .9rem; }
td.time, td.num { white-space: nowrap; font-variant-numeric: tabular-nums; }
td.num, th.num { text-align: right; }
td.break { min-width: 6.5rem; }
td.words { min-width: 14rem; overflow-wrap: anywhere; }
.grave { color: var(--bad); } .mild { color: var(--warn); }
.mono { font-family: var(--mono); font-size: .9em; }
.more { padding: .5rem .9rem; margin: 0; color: var(--ink-2); font-size: .85rem; border-top: 1px solid var(--line); }
.none { color: var(--ink-2); padding: .7rem .9rem; margin: 0; }
@media (max-width: 700px) {
  main { padding: 1.25rem .9rem 3rem; }
  h1 { font-size: 1.35rem; }
  .lane > summary, .axis { grid-template-columns: minmax(0, 1fr); gap: 1px; padding: .2rem .7rem; }
  .axis .between, .axis > span { display: none; }
  .short { display: none; }
  .facts li { flex: 1 1 40%; min-width: 0; }
  .lane .scroll, .panel > .scroll, .more, .none { padding-left: .7rem; padding-right: .7rem; }
}
@media print { body { background: none; } .lane { break-inside: avoid; } }
</style>`;

function colours() {
  return Array.from(
    { length: 12 },
    (_, i) => html`.o${i} { fill: var(--o${i}); background: var(--o${i}); } `,
  );
}
