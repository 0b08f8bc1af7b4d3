/**
 * The report as one HTML page: it loads nothing and runs no script, so it can be mailed and kept.
 * All that comes from the log is escaped: keys and names are what users chose.
 */

import type { EventName } from '../core/events.ts';
import { type Html, html, NOTHING } from '../core/html.ts';
import { LOSS_TEXTS } from '../core/loss-reason.ts';
import { exactly, spanOf } from '../core/time-text.ts';
import type { LoggedEvent } from '../telemetry/event-log.ts';
import { LEVELS } from '../telemetry/levels.ts';
import { sentenceOf } from '../telemetry/sentences.ts';
import { COLOURS, InstanceNameSet } from './instance-name-set.ts';
import type { IncidentReport, ReportKey, ReportList, ReportTenure } from './report.ts';
import { STYLE } from './report-style.ts';
import type { Finding, Verification } from './verify.ts';
import type { ZonedClock } from './zoned-clock.ts';

export interface PageOptions {
  readonly time: ZonedClock;
  /** When the page was made. */
  readonly madeAtMs: number;
  /** How to get less: `give --key or a shorter time`. */
  readonly narrow: string;
}

/** The whole page. */
export function reportPage(report: IncidentReport, options: PageOptions): string {
  return new PageWriter(report, options).text();
}

/** Of one key, the latest are listed. */
const MAX_LISTED = 50;
/** A name is written into a bar that is at least this wide, in percent. */
const NAMED_PERCENT = 6;
const WIDE_PERCENT = 25;
const MIN_PERCENT = 0.3;
const BAR_Y = 3;
const BAR_HEIGHT = 18;

const HOW: Readonly<Record<string, string>> = {
  released: 'released',
  transferred: 'handed over',
  abandoned: 'left to expire',
};

const DOUBTS: Readonly<Record<string, string>> = {
  renewal_failed: 'a renewal failed',
  clock_jump: 'the wall clock jumped',
};

class PageWriter {
  readonly #report: IncidentReport;
  readonly #options: PageOptions;
  readonly #names: InstanceNameSet;
  /** By the name of a holder, in the order in which they appear. */
  readonly #colours = new Map<string, number>();

  constructor(report: IncidentReport, options: PageOptions) {
    this.#report = report;
    this.#options = options;
    const { keys, events, gaps } = report;
    this.#names = new InstanceNameSet([
      ...keys.flatMap(({ tenures }) => tenures.map(({ instance }) => instance)),
      ...events.flatMap(({ instance, member }) => [instance, String(member)]),
      ...gaps.flatMap(({ from, to }) => [from ?? '', to]),
    ]);
    const tenures = keys.flatMap((key) => key.tenures).sort((a, b) => a.fromMs - b.fromMs);
    const holders = tenures.map((one) => this.#names.ofHolder(one));
    for (const [i, name] of [...new Set(holders)].entries()) this.#colours.set(name, i % COLOURS);
  }

  text(): string {
    const { time } = this.#options;
    const { fromMs, toMs } = this.#report;
    const range = time.range(fromMs, toMs);
    const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Holdfast, ${range}</title>
${STYLE}
</head>
<body>
<main>
${this.#head(range)}
${this.#verdict()}
${this.#facts()}
${this.#tenures()}
${this.#gaps()}
${this.#doubts()}
${this.#standstills()}
${this.#eventTable('Acts of operators', 'acts', 'No operator acted.')}
${this.#eventTable('Store and log', 'trouble', 'No trouble with the store was recorded.')}
${this.#eventTable('Events', 'events', 'The log has no events of this time.')}
</main>
</body>
</html>
`;
    return page.text;
  }

  #head(range: string): Html {
    const { time, madeAtMs } = this.#options;
    const { fromMs, toMs, key } = this.#report;
    return html`<header>
<p class="kicker">Holdfast report${key === null ? NOTHING : html` of <b class="break">${key}</b>`}</p>
<h1>${range}</h1>
<p class="quiet small">${spanOf(toMs - fromMs)}, in the time zone ${time.zone}, by the clocks of the instances. Made ${time.moment(Math.floor(madeAtMs / 1_000) * 1_000)}.</p>
</header>`;
  }

  #verdict(): Html {
    const { contradictions, unclear, limits, tenures } = this.#report.verification;
    const told = html`<details><summary>What the log cannot tell</summary><ul>${limits.map((line) => html`<li class="break">${this.#names.within(line)}</li>`)}</ul></details>`;
    const doubtful =
      unclear.length === 0
        ? NOTHING
        : html`<details><summary>${count(unclear.length, 'finding')} that something else explains as well</summary>${this.#findings(unclear)}</details>`;
    if (contradictions.length > 0)
      return html`<section class="verdict bad"><strong>${count(contradictions.length, 'contradiction')}</strong>${this.#findings(contradictions)}${doubtful}${told}</section>`;
    if (tenures === 0)
      return html`<section class="verdict"><strong>The log has no tenure of this time.</strong>${told}</section>`;
    const tone = unclear.length > 0 ? 'warn' : 'good';
    return html`<section class="verdict ${tone}"><strong>No contradiction found.</strong>
<p>This is testimony, not proof: the log has what instances wrote about themselves.</p>${doubtful}${told}</section>`;
  }

  #findings(findings: Verification['contradictions']): Html[] {
    return findings.map((finding) => this.#finding(finding));
  }

  #finding({ key, text, explanation, events, writes }: Finding): Html {
    const { time } = this.#options;
    const entries = events.map(
      (event) =>
        html`<li><span class="mono">${time.clock(event.at)}</span> ${this.#sentence(event)}</li>`,
    );
    const written = writes.map(
      ({ at, fence, sink, line }) =>
        html`<li><span class="mono">${time.clock(at)}</span> ${sink}:${line} accepted fence ${fence}</li>`,
    );
    return html`<div class="finding break"><b>${key}</b>: ${this.#names.within(text)}.${explanation === null ? '' : ` ${sentenceCase(this.#names.within(explanation))}.`}<ul class="small">${[...entries, ...written]}</ul></div>`;
  }

  #facts(): Html {
    const { verification, gaps, leftOut, handovers, acts, events } = this.#report;
    const longest = gaps[0]?.gapMs;
    const fact = (value: string, what: string) =>
      html`<li><b>${value}</b><span>${what}</span></li>`;
    return html`<ul class="facts">
${fact(String(verification.keys), verification.keys === 1 ? 'key' : 'keys')}
${fact(String(verification.tenures), verification.tenures === 1 ? 'tenure' : 'tenures')}
${fact(String(gaps.length + leftOut.gaps), gaps.length === 1 ? 'gap after a failure' : 'gaps after a failure')}
${longest === undefined ? NOTHING : fact(exactly(longest), 'longest gap')}
${fact(String(handovers.count), handovers.count === 0 ? 'handovers' : `handovers, at most ${exactly(handovers.longestMs)}`)}
${fact(String(acts.length + leftOut.acts), 'acts of operators')}
${fact(String(events.length + leftOut.events), 'events')}
</ul>`;
  }

  #tenures(): Html {
    const { keys, leftOut } = this.#report;
    if (keys.length === 0)
      return html`<h2>Who held what</h2><div class="panel"><p class="none">No instance recorded a lease in this time.</p></div>`;
    return html`<h2>Who held what</h2>
${this.#legend()}
<div class="panel lanes">
${this.#axis()}
${keys.map((key) => this.#lane(key))}
${this.#more('keys')}
</div>${leftOut.tenures === 0 ? NOTHING : html`<p class="quiet small">${leftOut.tenures} earlier tenures are not shown: ${this.#options.narrow}.</p>`}`;
  }

  #legend(): Html {
    const holders = [...this.#colours].map(
      ([name, colour]) => html`<li class="break"><i class="o${colour}"></i>${name}</li>`,
    );
    return html`<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs><pattern id="doubt" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="6" fill="var(--panel)" fill-opacity=".75"/></pattern></defs></svg>
<ul class="legend">${holders}
<li><svg width="16" height="10" aria-hidden="true"><rect width="16" height="10" rx="2" fill="var(--ink-2)"/><rect class="doubt" width="16" height="10"/></svg>uncertain</li>
<li><svg width="16" height="10" aria-hidden="true"><line class="lost" x1="8" x2="8" y1="0" y2="10"/></svg>lost</li>
<li><svg width="16" height="10" aria-hidden="true"><rect class="gap" y="3" width="16" height="4"/></svg>gap</li>
<li><svg width="16" height="10" aria-hidden="true"><rect class="open" width="16" height="10" rx="2" fill="var(--ink-2)"/></svg>no end recorded</li>
<li><svg width="16" height="10" aria-hidden="true"><line class="act" x1="8" x2="8" y1="0" y2="10"/></svg>act of an operator</li>
</ul>`;
  }

  #axis(): Html {
    const { fromMs, toMs } = this.#report;
    const { time } = this.#options;
    const ticks = ticksOf(fromMs, toMs).map((at, i) => {
      const { x } = this.#place(at, at);
      const text = toMs - fromMs < 5 * MINUTE_MS ? time.clock(at).slice(0, 8) : time.minute(at);
      const anchor = x < EDGE_PERCENT ? 'start' : x > 100 - EDGE_PERCENT ? 'end' : 'middle';
      return html`<text class="${i % 2 === 1 ? 'between' : ''}" x="${x}%" y="13" text-anchor="${anchor}">${text}</text>`;
    });
    return html`<div class="axis"><span></span><svg aria-hidden="true">${ticks}</svg></div>`;
  }

  #lane({ key, leaseClass, tenures }: ReportKey): Html {
    const { gaps, acts, fromMs, toMs } = this.#report;
    const ticks = ticksOf(fromMs, toMs).map((at) => {
      const { x } = this.#place(at, at);
      return html`<line class="tick" x1="${x}%" x2="${x}%" y1="0" y2="24"/>`;
    });
    const own = gaps.filter(({ target }) => leaseClass === 'poll' && target === key);
    const missing = own.map(({ atMs, gapMs }) => {
      const { x, width } = this.#place(atMs - gapMs, atMs);
      return html`<rect class="gap" x="${x}%" y="10" width="${width}%" height="4"><title>gap of ${exactly(gapMs)}</title></rect>`;
    });
    const acted = acts
      .filter(({ subject, key: revoked }) => subject === key || revoked === key)
      .map(({ at }) => {
        const { x } = this.#place(at, at);
        return html`<line class="act" x1="${x}%" x2="${x}%" y1="0" y2="24"/>`;
      });
    const said = tenures.map((one) => this.#spoken(one)).slice(-3);
    return html`<details class="lane"><summary><span class="key" title="${key}">${key}</span><svg class="bars" role="img" aria-label="${said.join('; ')}">${ticks}${tenures.map((one) => this.#bar(one))}${missing}${acted}</svg></summary>${this.#tenureTable(tenures, leaseClass)}</details>`;
  }

  #spoken(tenure: ReportTenure): string {
    const { time } = this.#options;
    return `${this.#names.ofHolder(tenure)} ${time.clock(tenure.fromMs).slice(0, 8)} to ${time.clock(tenure.untilMs).slice(0, 8)}`;
  }

  #bar(tenure: ReportTenure): Html {
    const { fromMs, untilMs, isOpen, how, doubts } = tenure;
    const { x, width } = this.#place(fromMs, untilMs);
    const name = this.#names.ofHolder(tenure);
    const colour = this.#colours.get(name) ?? 0;
    const isShort = width < WIDE_PERCENT ? 'short' : '';
    const label =
      width < NAMED_PERCENT
        ? NOTHING
        : html`<text class="name ${isShort}" x="6" y="13">${name}</text>`;
    const doubtful = doubts.map((doubt) => {
      const place = this.#place(doubt.fromMs, doubt.untilMs ?? untilMs);
      return html`<rect class="doubt" x="${place.x}%" y="${BAR_Y}" width="${place.width}%" height="${BAR_HEIGHT}"/>`;
    });
    const endX = round(x + width);
    const lost =
      how === 'lost'
        ? html`<line class="lost" x1="${endX}%" x2="${endX}%" y1="${BAR_Y - 2}" y2="${BAR_Y + BAR_HEIGHT + 2}"/>`
        : NOTHING;
    const isOpenEnd = isOpen && untilMs < this.#report.toMs ? ' open' : '';
    return html`<svg x="${x}%" y="${BAR_Y}" width="${width}%" height="${BAR_HEIGHT}"><title>${this.#spoken(tenure)}</title><rect class="o${colour}${isOpenEnd}" width="100%" height="100%" rx="3"/>${label}</svg>${doubtful}${lost}`;
  }

  /** In percent of the time of the report. */
  #place(fromMs: number, untilMs: number): { x: number; width: number } {
    const { fromMs: startMs, toMs } = this.#report;
    const share = (ms: number) => Math.min(1, Math.max(0, (ms - startMs) / (toMs - startMs))) * 100;
    const x = Math.min(share(fromMs), 100 - MIN_PERCENT);
    return { x: round(x), width: round(Math.max(MIN_PERCENT, share(untilMs) - x)) };
  }

  #tenureTable(tenures: readonly ReportTenure[], leaseClass: string): Html {
    const { time } = this.#options;
    const rows = tenures.slice(-MAX_LISTED).map((tenure) => {
      const { fromMs, untilMs, isOpen, fence } = tenure;
      const until = isOpen ? `${time.clock(untilMs)}?` : time.clock(untilMs);
      return html`<tr><td class="time">${time.clock(fromMs)}</td><td class="time">${until}</td><td class="break">${this.#names.ofHolder(tenure)}</td><td>${endOf(tenure)}</td><td class="mono">${fence}</td></tr>`;
    });
    const rest = tenures.length - rows.length;
    return html`<div class="scroll"><p class="quiet small">Class ${leaseClass}.${rest > 0 ? ` ${rest} earlier tenures are not listed: ${this.#options.narrow}.` : ''}</p><table><thead><tr><th>from</th><th>until</th><th>holder</th><th>end</th><th>fence</th></tr></thead><tbody>${rows}</tbody></table></div>`;
  }

  #gaps(): Html {
    const { gaps } = this.#report;
    const { time } = this.#options;
    const rows = gaps.map(
      ({ atMs, target, gapMs, silentMs, wakeMs, grantMs, from, to }) =>
        html`<tr><td class="time">${time.clock(atMs)}</td><td class="break">${target}</td><td class="num"><b>${exactly(gapMs)}</b></td><td class="words quiet">${exactly(silentMs)} silent, ${exactly(wakeMs)} to ask, ${exactly(grantMs)} to be granted</td><td class="break">${from === null ? '?' : this.#names.of(from)} → ${this.#names.of(to)}</td></tr>`,
    );
    const head = html`<th>taken at</th><th>target</th><th class="num">gap</th><th>made of</th><th>from → to</th>`;
    return this.#table('Gaps after a failure', 'gaps', {
      head,
      rows,
      none: 'No target was without an owner after a failure.',
    });
  }

  #doubts(): Html {
    const { time } = this.#options;
    const rows = this.#report.doubts.map(({ instance, reason, fromMs, untilMs, keys }) => {
      const lasted = untilMs === null ? 'no end recorded' : exactly(untilMs - fromMs);
      const named =
        keys.length > 5
          ? `${keys.slice(0, 5).join(', ')} and ${keys.length - 5} more`
          : keys.join(', ');
      return html`<tr><td class="time">${time.clock(fromMs)}</td><td class="break">${this.#names.of(instance)}</td><td class="num">${lasted}</td><td>${DOUBTS[reason] ?? reason}</td><td class="words">${named}</td></tr>`;
    });
    const head = html`<th>from</th><th>instance</th><th class="num">lasted</th><th>why</th><th>leases</th>`;
    return this.#table('Who was uncertain', 'doubts', {
      head,
      rows,
      none: 'No instance was uncertain of a lease.',
    });
  }

  #standstills(): Html {
    const { time } = this.#options;
    const rows = this.#report.standstills.map(
      ({ instance, atMs, lastedMs, lost }) =>
        html`<tr><td class="time">${time.clock(atMs)}</td><td class="break">${this.#names.of(instance)}</td><td class="num">${exactly(lastedMs)}</td><td>${lost === 0 ? 'lost no lease' : `${count(lost, 'lease')} had expired meanwhile`}</td></tr>`,
    );
    const head = html`<th>noticed at</th><th>instance</th><th class="num">late by</th><th></th>`;
    return this.#table('Processes that stood still', 'standstills', {
      head,
      rows,
      none: 'No process stood still for long, or none came back to say so.',
    });
  }

  #eventTable(title: string, list: 'acts' | 'trouble' | 'events', none: string): Html {
    const { time } = this.#options;
    const rows = this.#report[list].map((event) => {
      const level = LEVELS[event.event as EventName] ?? 'info';
      const tone = level === 'error' ? 'grave' : level === 'warn' ? 'mild' : '';
      return html`<tr><td class="time ${tone}">${time.clock(event.at)}</td><td class="words">${this.#sentence(event)}</td></tr>`;
    });
    return this.#table(title, list, { head: html`<th>at</th><th>what</th>`, rows, none });
  }

  #table(
    title: string,
    list: ReportList,
    { head, rows, none }: { head: Html; rows: readonly Html[]; none: string },
  ): Html {
    const total = rows.length + this.#report.leftOut[list];
    const body =
      rows.length === 0
        ? html`<p class="none">${none}</p>`
        : html`<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>`;
    return html`<h2>${title}${total === 0 ? NOTHING : html`<span class="count">${total}</span>`}</h2>
<div class="panel">${body}${this.#more(list)}</div>`;
  }

  #more(list: ReportList): Html {
    const rest = this.#report.leftOut[list];
    return rest === 0
      ? NOTHING
      : html`<p class="more">${rest} more are not shown: ${this.#options.narrow}.</p>`;
  }

  #sentence(event: LoggedEvent): Html {
    const { position: _, at: _at, instance, event: name, ...facts } = event;
    return html`<b>${this.#names.of(instance)}</b> ${this.#names.within(sentenceOf(name, facts, instance))}`;
  }
}

function endOf({ how, reason, isOpen }: ReportTenure): string {
  if (isOpen) return 'no end recorded';
  if (how !== 'lost') return HOW[how ?? ''] ?? '';
  return `lost: ${(reason !== null && (LOSS_TEXTS as Readonly<Record<string, string>>)[reason]) || reason || 'unknown'}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function round(percent: number): number {
  return Math.round(percent * 1_000) / 1_000;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const STEPS_MS = [
  1, 5, 10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200,
];
const MAX_TICKS = 8;
/** A text this close to an end would reach beyond it. */
const EDGE_PERCENT = 4;

/** Round moments of a time. */
function ticksOf(fromMs: number, toMs: number): number[] {
  const steps = STEPS_MS.map((seconds) => seconds * 1_000);
  const stepMs =
    steps.find((step) => (toMs - fromMs) / step <= MAX_TICKS) ??
    Math.ceil((toMs - fromMs) / MAX_TICKS / DAY_MS) * DAY_MS;
  const ticks = [];
  for (let at = Math.ceil(fromMs / stepMs) * stepMs; at <= toMs; at += stepMs) ticks.push(at);
  return ticks;
}
