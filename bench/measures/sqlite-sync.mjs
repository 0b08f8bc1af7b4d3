import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OURS } from '../contenders.mjs';
import { fact } from '../report.mjs';
import { median, monotonicMs, quantile } from '../statistics.mjs';

const ours = (figure) => ({ [OURS.name]: figure });

/** Steps of workflows, which have to outlive a loss of power: what waiting for the disk costs. */
export const sqliteSync = { name: 'SQLite: durable steps of workflows', run: measureSync };

async function measureSync(bench) {
  const rows = [];
  for (const sync of ['everysec', 'always'])
    for (const callers of [1, 64]) {
      const rates = [];
      const took = [];
      for (let round = 1; round <= bench.plan.syncRounds; round++) {
        bench.progress(sqliteSync.name, `${sync}, ${callers} at once, round ${round}`);
        rates.push(await stepping({ sync, callers, forMs: bench.plan.syncMs }, took));
      }
      const who = callers === 1 ? 'one caller' : `${callers} callers`;
      const measure = `${sqliteSync.name}, sync ${sync}, ${who}`;
      const row = { requirement: 'W-03', unit: 'steps/s' };
      rows.push(fact({ ...row, measure, figures: ours(median(rates)) }));
      const p99 = ours(quantile(took, 0.99));
      rows.push(fact({ ...row, measure: `${measure}, p99`, unit: 'ms', figures: p99 }));
    }
  return rows;
}

/** So many workflows at once, each of which sets its state again and again; gives the steps per second. */
async function stepping({ sync, callers, forMs }, took) {
  const { open } = await import('../../dist/index.js');
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-sync-'));
  const holdfast = await open(`sqlite:${join(dir, 'bench.db')}`, { sync });
  try {
    const ids = Array.from({ length: callers }, (_, n) => `w${n}`);
    const all = await Promise.all(ids.map((id) => holdfast.workflows.claim(id)));
    const startMs = monotonicMs();
    let steps = 0;
    const work = async (workflow) => {
      for (let n = 0; monotonicMs() - startMs < forMs; n++) {
        const sentMs = monotonicMs();
        await workflow.updateState({ n });
        took.push(monotonicMs() - sentMs);
        steps++;
      }
    };
    await Promise.all(all.map(work));
    return (steps / (monotonicMs() - startMs)) * 1_000;
  } finally {
    await holdfast.close();
    rmSync(dir, { recursive: true, force: true });
  }
}
