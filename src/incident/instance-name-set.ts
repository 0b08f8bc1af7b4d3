/** Names before ids: an instance is called what people call it, unless two have that name. */

const ID = /^(.+)-\d{16,}-([0-9a-f]{8})$/;
const IDS = /\S+?-\d{16,}-[0-9a-f]{8}/g;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Colours of a page; a further instance shares one. */
export const COLOURS = 12;

export class InstanceNameSet {
  readonly #names = new Map<string, string>();

  constructor(ids: Iterable<string>) {
    const all = [...new Set(ids)].filter((id) => ID.test(id));
    const byName = new Map<string, number>();
    for (const id of all) byName.set(nameOf(id), (byName.get(nameOf(id)) ?? 0) + 1);
    for (const id of all) {
      const name = nameOf(id);
      this.#names.set(id, byName.get(name) === 1 ? name : id.replace(ID, '$1-$2'));
    }
  }

  of(instance: string): string {
    return this.#names.get(instance) ?? instance.replace(ID, '$1-$2');
  }

  /** A holder that an instance named by itself is called like the instance. */
  ofHolder({ holder, instance }: { holder: string; instance: string }): string {
    const isItsOwn = holder.startsWith(instance) || UUID.test(holder);
    return isItsOwn ? this.of(instance) : this.within(holder);
  }

  /** A text with names instead of ids. */
  within(text: string): string {
    return text.replace(IDS, (id) => this.of(id));
  }
}

function nameOf(id: string): string {
  return ID.exec(id)?.[1] ?? id;
}
