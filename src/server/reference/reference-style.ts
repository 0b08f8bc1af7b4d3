/** The stylesheet of the reference: light and dark, from phones to wide screens. */
export const STYLE = `
:root {
  --paper: #fbfaf7; --ink: #1d2430; --quiet: #5c6675; --line: #e2ded5; --panel: #f2efe8;
  --accent: #0b6b75; --get: #0b6b75; --post: #8a4b08; --patch: #5b3ea6; --delete: #a3273a; --good: #1f7a44; --bad: #a3273a;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, monospace;
  --sans: "Inter", system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161c; --ink: #dfe4ea; --quiet: #93a0b0; --line: #28303a; --panel: #1a2028;
    --accent: #5fc4cd; --get: #5fc4cd; --post: #e0a458; --patch: #b79cf2; --delete: #f08a98; --good: #6fce93; --bad: #f08a98;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 var(--sans); }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: .18em; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.frame { max-width: 76rem; margin: 0 auto; padding: 0 1.25rem 6rem; }
main, .lead { min-width: 0; max-width: 50rem; }
h1 { font-size: 2.1rem; line-height: 1.15; letter-spacing: -.02em; margin: 0 0 .75rem; }
h2 { font-size: 1.35rem; letter-spacing: -.01em; margin: 3.5rem 0 0; }
h2::first-letter, .nav-group a::first-letter { text-transform: uppercase; }
h3 { font-size: 1.1rem; margin: 0; }
h4 { font-size: .74rem; letter-spacing: .09em; text-transform: uppercase; color: var(--quiet); margin: 1.4rem 0 .4rem; }
h5 { font: 600 .9rem var(--mono); margin: 1rem 0 0; }
p { margin: .4rem 0; }
.lead { padding-top: 3rem; }
.version { font: 500 .95rem var(--mono); color: var(--quiet); vertical-align: .3em; }
.quiet { color: var(--quiet); }
code, pre { font-family: var(--mono); font-size: .86em; }
p code, dd code, td code { background: var(--panel); padding: .1em .32em; border-radius: 4px; overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .85rem 1rem; overflow-x: auto; line-height: 1.5; }
pre code { font-size: .84rem; }
article { border-top: 1px solid var(--line); padding: 1.5rem 0 1rem; margin-top: 1rem; scroll-margin-top: .5rem; }
article:target { border-top-color: var(--accent); box-shadow: inset 0 2px 0 var(--accent); }
.anchor { color: inherit; text-decoration: none; }
.anchor:hover { color: var(--accent); }
.route { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; }
.route code { background: none; padding: 0; font-size: .95rem; font-weight: 600; }
.method { font: 700 .7rem/1 var(--mono); letter-spacing: .03em; padding: .32em .5em; border-radius: 5px; border: 1px solid currentColor; }
.get { color: var(--get); } .post { color: var(--post); } .patch { color: var(--patch); } .delete { color: var(--delete); }
.chip { font: 500 .74rem/1 var(--mono); padding: .38em .6em; border-radius: 999px; background: var(--panel); border: 1px solid var(--line); color: var(--quiet); }
.open { color: var(--good); } .status { color: var(--bad); }
.chips { display: flex; flex-wrap: wrap; gap: .4rem; }
table.fields { width: 100%; border-collapse: collapse; }
.fields th, .fields td { text-align: left; vertical-align: top; padding: .45rem .75rem .45rem 0; border-top: 1px solid var(--line); font-weight: 400; }
.fields tr:first-child > * { border-top: 0; }
.fields th { width: 30%; } .fields th code { font-weight: 600; overflow-wrap: anywhere; }
.must { color: var(--post); font-size: .74rem; white-space: nowrap; }
.kind { color: var(--quiet); font: 500 .8rem var(--mono); }
.kind code { font-size: 1em; }
.answers { margin: 0; }
.answers div { display: flex; gap: .9rem; padding: .18rem 0; }
.answers dt { font: 600 .82rem/1.95 var(--mono); flex: none; width: 2.4rem; }
.answers dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
.dense { display: flex; flex-wrap: wrap; gap: 0 1.3rem; font-size: .9rem; }
.dense div { gap: .45rem; } .dense dt { width: auto; }
.good { color: var(--good); } .bad { color: var(--bad); }
nav { font-size: .88rem; line-height: 1.4; padding-top: 2rem; }
nav ul { list-style: none; margin: 0 0 .8rem; padding: 0; }
nav li a { display: flex; gap: .55rem; align-items: baseline; padding: .22rem 0; color: var(--ink); text-decoration: none; }
nav li a:hover { color: var(--accent); }
nav .method { border: 0; padding: 0; width: 2.3rem; flex: none; font-size: .62rem; text-align: right; }
.nav-group { margin: .9rem 0 .2rem; font-weight: 600; }
.nav-group a { display: inline-block; color: var(--quiet); text-decoration: none; }
@media (min-width: 62rem) {
  .frame:has(nav) { display: grid; grid-template: "nav lead" auto "nav main" 1fr / 16rem minmax(0, 1fr); column-gap: 3.5rem; }
  nav { grid-area: nav; position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 3rem 0 2rem; }
}
@media (max-width: 61.99rem) {
  nav { border-bottom: 1px solid var(--line); padding-bottom: 1rem; margin-top: 1rem; columns: 14rem; }
  nav ul { break-inside: avoid; } .nav-group { break-after: avoid; }
  .lead { padding-top: 2rem; }
}
@media (max-width: 34rem) {
  body { font-size: 15px; }
  .fields th, .fields td { display: block; width: auto; padding-right: 0; }
  .fields td { border-top: 0; padding-top: 0; }
}
`;
