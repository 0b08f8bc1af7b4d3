import { systemClock } from '../../../core/clock.ts';
import { systemRandom } from '../../../core/random.ts';
import type { Holdfast, OpenOptions } from '../../../holdfast.ts';
import { ALMANAC, printAlmanac } from './almanac.ts';
import { watchChannels } from './channels.ts';
import { FORECAST, ForecastRun } from './forecast-run.ts';
import { CITIES, StationServer } from './station-server.ts';

/** Who decides about workflows, by turns. */
const ORCHESTRATORS = ['dora', 'emil'];

/** All that is put into the store for the instances to do, or to be seen beside what they do. */
export class ProgrammeRun {
  readonly #holdfast: Holdfast;
  readonly #open: (options: OpenOptions) => Promise<Holdfast>;
  readonly #stations = new StationServer(systemRandom);
  readonly #over = new AbortController();
  #orchestrators: readonly Holdfast[] = [];
  #going: readonly Promise<void>[] = [];

  constructor(holdfast: Holdfast, open: (options: OpenOptions) => Promise<Holdfast>) {
    this.#holdfast = holdfast;
    this.#open = open;
  }

  /** Resolves when there is something to poll. The rest goes on by itself until the end. */
  async begin(): Promise<void> {
    const operator = this.#holdfast;
    await this.#stations.open(operator);
    this.#orchestrators = await Promise.all(
      // What is refused is to be found in the log that all share.
      ORCHESTRATORS.map((name) => this.#open({ name, history: 'on' })),
    );
    const [signal, clock] = [this.#over.signal, systemClock];
    const forecast = { clock, stations: this.#stations, operator };
    this.#going = [
      new ForecastRun({ ...forecast, orchestrators: this.#orchestrators }, signal).run(),
      printAlmanac(operator),
      watchChannels(operator.intents(), clock, signal),
    ];
  }

  async end(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#going);
    await Promise.all(this.#orchestrators.map((holdfast) => holdfast.close({ within: 0 })));
    this.#stations.close();
  }

  /** Takes it out of the store again. */
  async remove(): Promise<void> {
    const { targets: sessions, workflows } = this.#holdfast;
    await workflows.close();
    for (const id of [FORECAST, ALMANAC]) await workflows.remove(id);
    for (const city of CITIES) await sessions.remove(city).catch(() => {});
  }
}
