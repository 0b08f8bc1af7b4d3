import type { Context } from '../../context.ts';
import { EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { jsonFacts } from '../../ui/text.ts';
import { drawMap } from './map-drawing.ts';

export interface MapFlags {
  readonly all?: boolean;
}

/** Without a terminal there is no width to fit into, but lines have to end somewhere. */
const DEFAULT_COLUMNS = 100;

export async function map({ flags, output }: Context, { all = false }: MapFlags): Promise<Exit> {
  const view = await withHoldfast(flags, (holdfast) => holdfast.fleet.view());
  const { members, targets } = view;
  output.result(
    {
      members: members.map((member) => jsonFacts({ ...member })),
      targets: targets.map((target) => jsonFacts({ ...target })),
    },
    () =>
      drawMap(view, {
        columns: output.columns ?? DEFAULT_COLUMNS,
        isWhole: all,
        isPlain: process.env.TERM === 'dumb',
        style: (style, text) => output.style(style, text),
      }),
  );
  return EXIT.ok;
}
