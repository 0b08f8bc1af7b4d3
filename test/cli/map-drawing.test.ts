import { describe, expect, it } from 'vitest';
import { drawMap } from '../../src/cli/commands/fleet/map-drawing.ts';
import type { FleetView, MemberView } from '../../src/fleet/watch/fleet.ts';

type Target = FleetView['targets'][number];

const idOf = (name: string) => `${name}-1794735731650762000-0000000a`;

function member(name: string, facts: Partial<MemberView> = {}): MemberView {
  return {
    ...{ id: idOf(name), name, weight: 1, isDraining: false, isForeign: false },
    ...{ owned: 0, quota: 0, expiresInMs: 30_000, version: null },
    ...{ beatTtlMs: null, startedAt: null, vitals: null, ...facts },
  };
}

function target(id: string, owner: string | null, facts: Partial<Target> = {}): Target {
  const reason = owner === null ? 'free' : 'kept';
  return {
    target: id,
    owner,
    planned: owner,
    pinned: null,
    expiresInMs: 1_000,
    reason,
    text: '',
    ...facts,
  };
}

function draw(
  view: FleetView,
  columns = 80,
  options: { isWhole?: boolean; isPlain?: boolean } = {},
) {
  const { isWhole = false, isPlain = false } = options;
  return drawMap(view, { columns, isWhole, isPlain, style: (_, text) => text });
}

describe('the map', () => {
  it('shows a bar, the share and the targets of each instance', () => {
    const view = {
      members: [member('ana', { quota: 2 }), member('ben', { quota: 1 })],
      targets: [target('a', idOf('ana')), target('b', idOf('ana')), target('c', idOf('ben'))],
    };
    expect(draw(view)).toBe(
      [
        '3 targets on 2 instances',
        '',
        `ana-0000000a  ${'█'.repeat(40)}  2 of 2`,
        '  a  b',
        `ben-0000000a  ${'█'.repeat(20)}${' '.repeat(20)}  1 of 1`,
        '  c',
        '',
      ].join('\n'),
    );
  });

  it('shows what moves and where to, what an instance lacks, and what it is', () => {
    const moving = { reason: 'moving' as const, planned: idOf('ben') };
    const view = {
      members: [
        member('ana', { quota: 0, isDraining: true }),
        member('ben', { quota: 2, weight: 3 }),
        member('old', { isForeign: true }),
      ],
      targets: [
        target('a', idOf('ana'), moving),
        target('b', idOf('ben')),
        target('c', idOf('old'), { reason: 'foreign' }),
      ],
    };
    const lines = draw(view, 80, { isPlain: true }).split('\n');
    expect(lines[0]).toBe('3 targets on 3 instances, 1 moving');
    expect(lines[2]).toMatch(/^ana-0000000a {2}#+ +1 of 0 {2}draining$/);
    expect(lines[3]).toBe('  a>ben-0000000a');
    expect(lines[4]).toMatch(/^ben-0000000a {2}#+\.+ +1 of 2 {2}weight 3$/);
    expect(lines[6]).toMatch(/^old-0000000a {2}#+ +1 {2}foreign$/);
  });

  it('shows targets without an owner, and targets whose owner has ended', () => {
    const view = {
      members: [member('ana', { quota: 4 })],
      targets: [
        target('a', null),
        target('b', null, { reason: 'quarantine' }),
        target('c', idOf('dead'), { reason: 'expiring' }),
      ],
    };
    const text = draw(view);
    expect(text).toMatch(/^no owner +█+ +2 {2}1 free, 1 quarantine$/m);
    expect(text).toMatch(/^dead-0000000a +█+ +1 {2}no heartbeat: these leases expire$/m);
  });

  it('says what to do where there is nothing', () => {
    expect(draw({ members: [], targets: [] })).toMatch(/holdfast up/);
  });

  it.each([
    [1, 3, 80],
    [3, 10_000, 80],
    [50, 10_000, 80],
    [50, 3, 120],
    [3, 40, 40],
    [7, 100, 200],
  ])('fits on a screen with %d instances, %d targets and %d columns', (count, many, columns) => {
    const members = Array.from({ length: count }, (_, i) =>
      member(`api${i}`, { quota: Math.ceil(many / count) }),
    );
    const targets = Array.from({ length: many }, (_, i) =>
      target(`device-${String(i).padStart(6, '0')}`, idOf(`api${i % count}`)),
    );
    const lines = draw({ members, targets }, columns).trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(Math.max(40, count + 10));
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
    const shown = lines.join('\n').match(/device-/g)?.length ?? 0;
    const hidden = [...lines.join('\n').matchAll(/… (\d+) more/g)];
    const rest = hidden.reduce((sum, [, more]) => sum + Number(more), 0);
    // Where there is room for no names at all, the counts say how many there are.
    if (shown > 0) expect(shown + rest).toBe(many);
    const whole = draw({ members, targets }, columns, { isWhole: true });
    expect(whole.match(/device-/g)).toHaveLength(many);
  });

  it('lets nothing from a store act on the terminal', () => {
    const nasty = '\u001b[31m\u202e\u0007';
    const view = {
      members: [member(`ana${nasty}`, { quota: 1 })],
      targets: [target(`a${nasty}`, idOf(`ana${nasty}`))],
    };
    expect(draw(view)).toMatch(/^[\n -~█░…]*$/);
  });
});
