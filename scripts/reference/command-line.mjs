// What every command says of itself.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { page } from './page.mjs';

const WIDTH = 80;

const GROUPS = 'cli-groups';
const STORES = 'cli-stores';
/** The groups of commands that administer a store. */
const OF_STORES = ['store', 'fence'];

/** The commands on one page, those with subcommands on another, and those that administer stores on a third. */
export async function commandLinePages(root) {
  const { buildProgram } = await import(pathToFileURL(join(root, 'dist/cli/program.js')).href);
  const commands = withSubcommands(buildProgram(() => {}));
  const byHand = 'What they are for, with examples, is in [The command line](../cli.md).';
  const from = 'the commands themselves';
  const alone = page({
    title: 'Every command',
    from,
    byHand,
    intro: `What \`--help\` says, command by command; [those with subcommands](${GROUPS}.md), [those that administer a store](${STORES}.md).`,
    body: textsOf(commands.filter((command) => !isInGroup(command))),
  });
  const groups = page({
    title: 'Commands with subcommands',
    from,
    byHand,
    intro: 'What `--help` says, command by command; [all others](cli.md).',
    body: textsOf(commands.filter((command) => isInGroup(command) && !isOfStores(command))),
  });
  const stores = page({
    title: 'Commands that administer a store',
    from,
    byHand,
    intro: 'What `--help` says, command by command; [all others](cli.md).',
    body: textsOf(commands.filter((command) => isInGroup(command) && isOfStores(command))),
  });
  return [
    ['cli', alone],
    [GROUPS, groups],
    [STORES, stores],
  ];
}

function isOfStores(command) {
  return OF_STORES.includes(command.name()) || OF_STORES.includes(command.parent.name());
}

function textsOf(commands) {
  return commands.map(textOf).join('\n\n');
}

function isInGroup(command) {
  const { parent } = command;
  if (parent === null) return false;
  return parent.parent !== null || command.commands.length > 0;
}

function textOf(command) {
  return `## ${nameOf(command)}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\``;
}

function withSubcommands(command) {
  const visible = command.createHelp().visibleCommands(command);
  const own = command.commands.filter((each) => visible.includes(each));
  return [command, ...own.flatMap(withSubcommands)];
}

function nameOf(command) {
  const name = command.name();
  return command.parent === null ? name : `${nameOf(command.parent)} ${name}`;
}

/** All of it: also what is added behind the options. */
function helpOf(command) {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    // Whatever terminal this is run in.
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text.trim();
}
