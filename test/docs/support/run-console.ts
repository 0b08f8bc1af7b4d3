import type { Finding } from '../../support/source-tree.ts';
import { isElsewhere } from './elsewhere.ts';
import { isExpected, plain } from './expected-output.ts';
import type { Block } from './markdown.ts';
import type { Outcome, Shell } from './shell.ts';

/** Of an output, at its beginning and at its end. */
const SHOWN_LINES = 15;

/** A command as it is shown, and what it is shown to say. */
export interface Command {
  readonly line: number;
  readonly text: string;
  readonly expected: string;
}

/** Of a `console` block: what follows `$ `, with lines that a backslash continues, and the lines up to the next one. */
export function commandsOf(block: Block): Command[] {
  const commands: Command[] = [];
  let isOpen = false;
  for (const [index, line] of block.text.split('\n').entries()) {
    const last = commands.at(-1);
    if (isOpen && last) {
      commands.splice(-1, 1, { ...last, text: `${last.text}\n${line}` });
      isOpen = line.endsWith('\\');
    } else if (line.startsWith('$ ')) {
      commands.push({ line: block.line + 1 + index, text: line.slice(2), expected: '' });
      isOpen = line.endsWith('\\');
    } else if (last) commands.splice(-1, 1, { ...last, expected: `${last.expected}${line}\n` });
  }
  return commands.map((command) => ({ ...command, expected: plain(command.expected) }));
}

export interface ConsoleOptions {
  readonly rewrite: (text: string) => string;
  /** A file for the output of what goes on running. */
  readonly logFile: string;
}

/** Types the commands of a block into a shell, and compares what they say. */
export async function consoleFindings(
  block: Block,
  shell: Shell,
  { rewrite, logFile }: ConsoleOptions,
): Promise<Finding[]> {
  const commands = commandsOf(block);
  const found = (line: number, what: string) => [{ path: block.path, line, what }];
  if (commands.length === 0) return found(block.line, "has no command: begin one with '$ '");
  for (const { line, text } of block.before) {
    const { code, output } = await shell.run(rewrite(text));
    if (code !== 0) return found(line, `${ending(code)}, in front of the block${shown(output)}`);
  }
  for (const [index, command] of commands.entries()) {
    const { line, text } = command;
    if (isElsewhere(text)) continue;
    if (block.background && goesOn(command, commands)) {
      const isReady = readiness(command);
      const outcome = await shell.start(rewrite(text), `${logFile}.${index}`, isReady);
      if (outcome) return found(line, difference(command, outcome));
      continue;
    }
    const outcome = await shell.run(rewrite(text));
    const isCodeAsked = commands[index + 1]?.text.includes('$?') ?? false;
    const isFine = isRight(command, outcome, isCodeAsked);
    if (!isFine) return found(line, difference(command, outcome));
  }
  for (const { line, text } of block.after) {
    const { code, output } = await shell.run(rewrite(text));
    if (code !== 0) return found(line, `${ending(code)}, behind the block${shown(output)}`);
  }
  return [];
}

/** What shows that it runs: what the page shows. Where that is nothing, anything it says; an `up` is up when it says so. */
function readiness({ text, expected }: Command): (output: string) => boolean {
  if (expected !== '') return (output) => isExpected(`${expected}\n…`, output);
  if (/\bholdfast up\b/.test(text)) return (output) => output.includes('is up');
  // It has nothing to say until something happens.
  if (/\bholdfast watch\b/.test(text)) return () => true;
  return (output) => output.trim() !== '';
}

/** Of a block that leaves something in the background: the commands that do not end, or the last one. */
function goesOn(command: Command, commands: readonly Command[]): boolean {
  const isLasting = ({ text }: Command) => /\bholdfast (up|demo|watch|top|run)\b/.test(text);
  return commands.some(isLasting) ? isLasting(command) : command === commands.at(-1);
}

/** A `sh` block is a script: every line of it has to work. */
export async function scriptFindings(
  block: Block,
  shell: Shell,
  rewrite: (text: string) => string,
): Promise<Finding[]> {
  const pieces = [...block.before, { line: block.line + 1, text: block.text }, ...block.after];
  for (const { line, text } of pieces) {
    const { code, output } = await shell.run(`( set -e\n${rewrite(text)}\n)`);
    if (code !== 0) return [{ path: block.path, line, what: `${ending(code)}${shown(output)}` }];
  }
  return [];
}

/**
 * A command that fails is a finding, unless the page shows what it says then, or asks for its code. What it says is of no
 * account where the page shows nothing.
 */
function isRight({ expected }: Command, outcome: Outcome, isCodeAsked: boolean): boolean {
  if (outcome.code === undefined) return false;
  if (expected === '') return outcome.code === 0 || isCodeAsked;
  return isExpected(expected, outcome.output);
}

function difference({ text, expected }: Command, { code, output }: Outcome): string {
  const wanted = expected === '' ? '' : `\n  expected:\n    ${indented(expected)}`;
  return `${ending(code)}: ${text}${wanted}${shown(output)}`;
}

function ending(code: number | undefined): string {
  return code === undefined
    ? 'has not ended, nor said what is expected, in time (what goes on running needs <!-- background -->)'
    : `ends with ${code}`;
}

function shown(output: string): string {
  const lines = plain(output).split('\n');
  const left = lines.length - 2 * SHOWN_LINES;
  if (left > 0) lines.splice(SHOWN_LINES, left, `(${left} lines)`);
  return `\n  what came:\n    ${indented(lines.join('\n'))}`;
}

function indented(text: string): string {
  return text.replaceAll('\n', '\n    ');
}
