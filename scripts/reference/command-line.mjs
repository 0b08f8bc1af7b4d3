// What every command says of itself, in one page.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { page } from './page.mjs';

const WIDTH = 80;

export async function commandLinePage(root) {
  const { buildProgram } = await import(pathToFileURL(join(root, 'dist/cli/program.js')).href);
  const commands = withSubcommands(buildProgram(() => {}));
  return page({
    title: 'Every command',
    from: 'the commands themselves',
    intro: 'What `--help` says, command by command.',
    byHand:
      'What they are for, with examples of their output, is in [The command line](../cli.md).',
    body: commands
      .map((command) => `## ${nameOf(command)}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\``)
      .join('\n\n'),
  });
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
