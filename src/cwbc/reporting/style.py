"""The look of the report, as text in Python: the page stays one file and the package needs no assets."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1f2328; --soft: #63696f; --line: #e3e3de; --accent: #0072b2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --card: #1d2125; --ink: #e6e8ea; --soft: #9aa3ab; --line: #30363c; --accent: #56b4e9;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 60rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
.kicker {
  margin: 0 0 .6rem; color: var(--accent); font-weight: 600; font-size: .9rem; overflow-wrap: anywhere;
}
h1 {
  margin: 0 0 1rem; font-size: clamp(1.35rem, 1rem + 1.9vw, 2rem); line-height: 1.25; letter-spacing: -.012em;
  text-wrap: balance; overflow-wrap: anywhere;
}
h2 { margin: 2.75rem 0 .75rem; font-size: 1.1rem; }
.lead { margin: 0; color: var(--soft); max-width: 46rem; }
figure {
  margin: 2rem 0 0; padding: 1rem; background: #ffffff; border: 1px solid var(--line); border-radius: 10px;
}
img { display: block; width: 100%; height: auto; }
.box { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .94rem; }
th, td { padding: .55rem .9rem; text-align: right; vertical-align: top; white-space: nowrap; }
th:first-child { position: sticky; left: 0; background: var(--card); text-align: left; font-weight: 600; }
td:first-of-type, thead th:nth-child(2) { padding-left: 1.2rem; }
thead th { vertical-align: bottom; font-weight: 600; border-bottom: 1px solid var(--line); }
tbody tr + tr > * { border-top: 1px solid var(--line); }
small { display: block; color: var(--soft); font-size: .78rem; font-weight: 400; }
.bar { display: block; height: 4px; margin-top: .35rem; border-radius: 2px; background: var(--line); }
.bar span { display: block; height: 100%; border-radius: 2px; background: var(--accent); }
.heat { background: color-mix(in srgb, var(--accent) calc(var(--share) * .38), transparent); }
.tag {
  margin-left: .6rem; padding: .05rem .45rem; border: 1px solid var(--line); border-radius: 1rem;
  color: var(--soft); font-size: .74rem; font-weight: 400;
}
.facts {
  display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .45rem 1.5rem; margin: 0;
  padding: 1rem 1.1rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px;
}
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
@media (max-width: 34rem) {
  main { padding-top: 1.75rem; }
  figure { padding: .4rem; }
  th, td { padding: .5rem .65rem; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  dd + dt { margin-top: .6rem; }
  .tag { display: block; width: max-content; margin: .15rem 0 0; }
}
@media print { body { background: none; } section { break-inside: avoid; } }
"""
