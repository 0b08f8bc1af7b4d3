// The documentation as a site: node scripts/docs.mjs dev shows it while it is written, node scripts/docs.mjs build makes files of it.
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HELP = `Usage: npm run docs [-- --port NUMBER]
       npm run docs:build [-- --out FOLDER]

  docs         shows the documentation on this host, and what changes in it at once
  docs:build   makes a site of it that any web server can serve, in docs/.vitepress/dist; dead links are errors

Options:
  --port NUMBER   for docs: where to listen (default: 5173, or the next that is free)
  --out FOLDER    for docs:build: where the site goes; what is there is replaced
  -h, --help      show this
`;

class UsageError extends Error {}

const docs = fileURLToPath(new URL('../docs', import.meta.url));

try {
  const { command, port, out, help } = readArguments(process.argv.slice(2));
  if (help) process.stdout.write(HELP);
  else if (command === 'dev') await show(port);
  else await build(out);
} catch (error) {
  // VitePress has named the pages and the links above; the rest is in the error.
  console.error(`docs: ${error instanceof Error ? error.message : error}`);
  process.exitCode = error instanceof UsageError ? 64 : 1;
}

async function show(port) {
  const { createServer } = await import('vitepress');
  const start = async () => {
    const server = await createServer(docs, { host: '127.0.0.1', port }, async () => {
      // The list of pages, or how they are shown, has changed: all of it is read again.
      await server.close();
      await start();
    });
    await server.listen();
    console.log(`The documentation is at ${server.resolvedUrls.local[0]} (Ctrl-C ends it)`);
  };
  await start();
}

async function build(out) {
  const vitepress = await import('vitepress');
  const outDir = out ?? fileURLToPath(new URL('../docs/.vitepress/dist', import.meta.url));
  await vitepress.build(docs, { outDir });
  console.log(`The site is in ${relative(process.cwd(), outDir) || '.'}`);
}

function readArguments(args) {
  const { values, positionals } = parsed(args);
  const [command, ...others] = positionals;
  if (values.help) return { help: true };
  if ((command !== 'dev' && command !== 'build') || others.length > 0)
    throw new UsageError(`say dev or build, not '${positionals.join(' ')}'. See --help.`);
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535))
    throw new UsageError(`--port is '${values.port}': it is a number from 0 to 65535.`);
  return { command, port, out: values.out };
}

function parsed(args) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        port: { type: 'string' },
        out: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError(`${error.message} See --help.`);
  }
}
