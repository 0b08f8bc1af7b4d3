// Is it fit for release? `npm run release:check -- --help` has the rest. Publishes nothing.
import { relative } from 'node:path';
import { parseArgs } from 'node:util';
import { CHECKS, Failure } from './release/checks.mjs';
import { seconds, table } from './release/command.mjs';
import { publishCommand } from './release/facts.mjs';
import { isWhole, STEPS, selectSteps } from './release/steps.mjs';

const HELP = `Usage: npm run release:check -- [--only STEPS] [--skip STEPS] [--offline] [--list] [--json]

Takes every step that a release needs, one after the other, and says at the end which have failed. It publishes nothing; where all of
them have passed, it prints the one command that would.

${STEPS.map(({ name, about }) => `  ${name.padEnd(13)} ${about}`).join('\n')}

  --only STEPS  only these, with commas between them; may be given more than once
  --skip STEPS  all but these
  --offline     do not ask the registry for an audit; the report says so, and it is no failure
  --list        name the steps that would be taken, and take none
  --json        nothing but { fit, steps: [{ name, ok, detail, ms }], publish } on stdout

Exit code: 0 if every step taken has passed; 1 if one has not; 2 for wrong arguments.`;

const flags = readFlags();
if (flags.help) console.log(HELP);
else if (flags.list) console.log(listed(flags.chosen));
else process.exitCode = await main();

function readFlags() {
  const boolean = { type: 'boolean', default: false };
  const names = { type: 'string', multiple: true, default: [] };
  const options = {
    only: names,
    skip: names,
    offline: boolean,
    list: boolean,
    json: boolean,
    help: boolean,
  };
  try {
    const { values } = parseArgs({ options });
    return { ...values, chosen: selectSteps(values) };
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(2);
  }
}

function listed(steps) {
  if (flags.json)
    return JSON.stringify(
      steps.map(({ name, about }) => ({ name, about })),
      null,
      2,
    );
  return table(steps.map(({ name, about }) => [name, about]));
}

async function main() {
  const shared = {};
  const results = [];
  for (const [index, { name }] of flags.chosen.entries()) {
    console.error(`${index + 1} of ${flags.chosen.length}: ${name} …`);
    const result = await take(name, shared);
    results.push(result);
    console.error(`  ${result.ok ? 'ok' : 'FAILED'}, ${seconds(result.ms)}: ${result.detail}`);
  }
  const hasPassed = results.every(({ ok }) => ok);
  const isFit = hasPassed && isWhole(flags.chosen);
  const publish = isFit ? publishCommand(relative(process.cwd(), shared.tarball)) : null;
  console.log(
    flags.json
      ? JSON.stringify({ fit: isFit, steps: results, publish }, null, 2)
      : summary({ results, hasPassed, publish }),
  );
  return hasPassed ? 0 : 1;
}

/** All steps are taken, whichever fail: who releases wants to know of everything at once. */
async function take(name, shared) {
  const startMs = performance.now();
  const took = (rest) => ({ name, ...rest, ms: Math.round(performance.now() - startMs) });
  try {
    return took({ ok: true, detail: await CHECKS[name]({ isOffline: flags.offline, shared }) });
  } catch (error) {
    // Anything else than a Failure is a mistake of this program's, and its place is of use.
    return took({ ok: false, detail: error instanceof Failure ? error.message : error.stack });
  }
}

function summary({ results, hasPassed, publish }) {
  const rows = results.map(({ name, ok, detail, ms }) => {
    return [name, ok ? 'ok' : 'FAILED', seconds(ms), detail.split('\n')[0]];
  });
  const left = STEPS.filter(({ name }) => !results.some((result) => result.name === name));
  const verdict = !hasPassed
    ? 'Not fit for release: see what has failed, above.'
    : publish === null
      ? `What was looked at is fit. Not looked at: ${left.map(({ name }) => name).join(', ')}.`
      : `Fit for release. Nothing was published; this would, what was checked:\n\n  ${publish}`;
  return `\n${table(rows)}\n\n${verdict}`;
}
