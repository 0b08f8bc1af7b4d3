/** Completion scripts, generated from the commands. */
import type { Command } from 'commander';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

interface Flag {
  readonly name: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
  readonly description: string;
}

interface Entry {
  readonly name: string;
  readonly description: string;
  readonly flags: readonly Flag[];
  /** The possible first arguments, if they are known. */
  readonly choices: readonly string[];
}

export function completionScript(program: Command, shell: Shell): string {
  const global = flagsOf(program);
  const entries = visibleCommands(program).map(
    (command): Entry => ({
      name: command.name(),
      description: command.description(),
      flags: [command, ...visibleCommands(command)].flatMap(flagsOf),
      choices: firstWords(command),
    }),
  );
  return { bash, zsh, fish }[shell](global, entries);
}

/** The subcommands, or the choices of the first argument. */
function firstWords(command: Command): readonly string[] {
  const names = visibleCommands(command).map((each) => each.name());
  return names.length > 0 ? names : (command.registeredArguments[0]?.argChoices ?? []);
}

/** Without old spellings, and without `help`. */
function visibleCommands(command: Command): readonly Command[] {
  const visible = command.createHelp().visibleCommands(command);
  return command.commands.filter((each) => visible.includes(each));
}

function flagsOf(command: Command): Flag[] {
  const flags = command.createHelp().visibleOptions(command);
  return flags.map((option) => ({
    name: option.long ?? option.short ?? '',
    takesValue: option.required || option.optional,
    choices: option.argChoices ?? [],
    description: option.description,
  }));
}

/**
 * The cases of bash and zsh: the words that may follow. `$seen` is the command, `$before` the last
 * word.
 */
function cases(global: readonly Flag[], entries: readonly Entry[]): string {
  const all = [...global, ...entries.flatMap(({ flags }) => flags)];
  const values = new Map(
    all.flatMap((flag) => (flag.takesValue ? [[flag.name, flag.choices]] : [])),
  );
  const names = (flags: readonly Flag[]) => flags.map(({ name }) => name);
  const lines = [...values].map(
    ([flag, choices]) => `    *:${flag}) candidates='${choices.join(' ')}' ;;`,
  );
  const first = [...entries.map(({ name }) => name), ...names(global)];
  lines.push(`    :*) candidates='${first.join(' ')}' ;;`);
  for (const { name, flags, choices } of entries) {
    const words = [...choices, ...names(flags), ...names(global)];
    lines.push(`    ${name}:*) candidates='${[...new Set(words)].join(' ')}' ;;`);
  }
  return lines.join('\n');
}

function bash(global: readonly Flag[], entries: readonly Entry[]): string {
  return `# bash completion for holdfast: source <(holdfast completion bash)
_holdfast() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} seen= candidates= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      --)
        if ((i == COMP_CWORD - 1)); then COMPREPLY=($(compgen -c -- "$word")); fi
        return ;;
      ${entries.map(({ name }) => name).join('|')}) seen=\${seen:-\${COMP_WORDS[i]}} ;;
    esac
  done
  case $seen:$before in
${cases(global, entries)}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}
complete -o default -F _holdfast holdfast
`;
}

function zsh(global: readonly Flag[], entries: readonly Entry[]): string {
  return `#compdef holdfast
# zsh completion for holdfast: source <(holdfast completion zsh)
_holdfast() {
  local before=\${words[CURRENT - 1]} seen= candidates= i
  for ((i = 2; i < CURRENT; i++)); do
    case \${words[i]} in
      --)
        if ((i == CURRENT - 1)); then _command_names -e; else _files; fi
        return ;;
      ${entries.map(({ name }) => name).join('|')}) seen=\${seen:-\${words[i]}} ;;
    esac
  done
  case $seen:$before in
${cases(global, entries)}
  esac
  compadd -- \${=candidates}
}
compdef _holdfast holdfast
`;
}

function fish(global: readonly Flag[], entries: readonly Entry[]): string {
  const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const flag = ({ name, takesValue, choices, description }: Flag, when: string) => {
    const values = choices.length > 0 ? ` -a ${quoted(choices.join(' '))}` : '';
    const long = name.replace(/^--/, '');
    return `complete -c holdfast${when} -l ${long}${takesValue ? ' -x' : ''}${values} -d ${quoted(description)}`;
  };
  const lines = global.map((each) => flag(each, ''));
  for (const { name, description, flags, choices } of entries) {
    lines.push(
      `complete -c holdfast -n __fish_use_subcommand -f -a ${name} -d ${quoted(description)}`,
    );
    const when = ` -n '__fish_seen_subcommand_from ${name}'`;
    if (choices.length > 0)
      lines.push(`complete -c holdfast${when} -f -a ${quoted(choices.join(' '))}`);
    for (const each of flags) lines.push(flag(each, when));
  }
  return `# fish completion for holdfast: holdfast completion fish | source\n${lines.join('\n')}\n`;
}
