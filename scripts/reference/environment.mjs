// The environment variables. The list is kept by hand and compared with the source, so a new one cannot be forgotten.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { code, table } from './page.mjs';

/** Variable, the key that it stands for, what it says. */
const READ = [
  [
    'HOLDFAST_STORE',
    'store',
    'Address of the store; where it has a password, this is the place for it.',
  ],
  ['HOLDFAST_PREFIX', 'prefix', 'Put before every key in the store.'],
  ['HOLDFAST_QUARANTINE', 'quarantine', '`on` or `off`.'],
  [
    'HOLDFAST_MAX_TTL',
    'maxTtl',
    'How long leases may last: `60s`, or `lease=60s,poll=30s,workflow=5m`.',
  ],
  ['HOLDFAST_CONFIG', '', 'Which configuration file; default `holdfast.config.mjs` here or above.'],
  ['HOLDFAST_WORKER_NAME', 'worker.name', 'The worker’s own name, the same at every start.'],
  ['HOLDFAST_API_TOKEN', 'api.tokens', 'A token that may do everything.'],
  [
    'HOLDFAST_API_TOKEN_PREVIOUS',
    'api.tokens',
    'The one before it, while all move to the new one.',
  ],
  [
    'HOLDFAST_API_TOKENS_FILE',
    'api.tokens',
    'A file with a JSON list of `{ id, token, scope, tenant, expiresAt }`.',
  ],
  ['HOLDFAST_IDEM_SECRET', '', 'The secret for idempotency, 32 bytes or more, the same for all.'],
  ['HOLDFAST_IDEM_SECRET_PREVIOUS', '', 'The one before it, while it is changed.'],
  [
    'HOLDFAST_V3_API_LEASES',
    'intents.apiLeases',
    '`on` or `off`. This and the two before are understood with `XG2G_` in front, too.',
  ],
  [
    'HOLDFAST_SQLITE_DRIVER',
    '',
    '`node` or `libsql`: which SQLite the embedded store uses. Default: Node’s own where there is one.',
  ],
  ['HOLDFAST_DEBUG', '', '`1`: errors of commands say where they come from.'],
  ['NO_COLOR', '', 'Anything: no colours, even on a terminal.'],
];

/** Variable, what it says. */
const GIVEN = [
  ['HOLDFAST_LEASE_KEY', '`holdfast run`: the key that is held.'],
  [
    'HOLDFAST_FENCE',
    'The fence: of the lease or slot of `holdfast run`, or of the slot or own lease of a session.',
  ],
  ['HOLDFAST_LEASE_FENCE', '`holdfast run`: the old name of `HOLDFAST_FENCE`, in this version.'],
  ['HOLDFAST_SLOT', 'The slot, where there is one: of `holdfast run --slots`, or of a session.'],
  ['HOLDFAST_SESSION_ID', 'A pipeline: its session.'],
  ['HOLDFAST_SESSION_TENANT', 'Its tenant.'],
  ['HOLDFAST_SESSION_KIND', 'Its kind: `live`, `vod`, or one that the configuration declares.'],
  ['HOLDFAST_SESSION_KEY', 'Of a declared kind: the key of its request.'],
  ['HOLDFAST_SESSION_TYPE', '`stream.start` or `vod.start`; `start` of a declared kind.'],
  ['HOLDFAST_SESSION_TARGET', 'The channel or recording, as the client named it: anybody’s text.'],
  ['HOLDFAST_SESSION_PROFILE', 'How it is to be run.'],
  ['HOLDFAST_SESSION_BUCKET', 'The bucket of its key.'],
  ['HOLDFAST_SESSION_START_MS', 'Of a recording, from where.'],
  ['HOLDFAST_ATTEMPT', 'Of a declared kind: which try this is, from 1.'],
  ['HOLDFAST_TARGET', 'The command of a runner: the id of its target.'],
  ['HOLDFAST_TARGET_JSON', 'The command of a runner: its whole target as JSON, up to 128 KiB.'],
];

/** In examples, or between processes of our own. */
const NOT_FOR_USERS = ['HOLDFAST_URL', 'HOLDFAST_COMMAND', 'HOLDFAST_PROCESS'];

export function environmentText(root) {
  const told = [...READ, ...GIVEN].map(([name]) => name);
  checkAgainstSource(root, [...told, ...NOT_FOR_USERS]);
  const read = READ.map(([name, key, what]) => [code(name), code(key), what]);
  const given = GIVEN.map(([name, what]) => [code(name), what]);
  return [
    table(['read', 'instead of', ''], read),
    'Commands that Holdfast runs find these in theirs:',
    table(['given', ''], given),
  ].join('\n\n');
}

function checkAgainstSource(root, known) {
  const src = join(root, 'src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
  const texts = files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(src, file), 'utf8'));
  const named = texts.flatMap((text) => text.match(/\bHOLDFAST_[A-Z0-9_]*[A-Z0-9]\b/g) ?? []);
  const missing = [...new Set(named)].filter((name) => !known.includes(name));
  if (missing.length > 0)
    throw new Error(`${missing.join(', ')}: in src, and not in scripts/reference/environment.mjs`);
}
