/** The dashboard: sign-in, the current view, and the frame around it. */
import { Component, type ComponentChildren, type ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { access, enter, messageOf } from './data/access.ts';
import { followEvents } from './data/events.ts';
import { followFleet } from './data/fleet.ts';
import { nameOf } from './data/palette.ts';
import { nameOfSession, namesVersion } from './data/session-names.ts';
import { Frame } from './frame.tsx';
import { listenToKeys } from './keyboard.ts';
import { Empty } from './parts/basics.tsx';
import { place } from './router.ts';
import { SignIn } from './sign-in.tsx';
import { VIEWS } from './views.ts';

export function App() {
  useEffect(() => {
    enter().catch((error: unknown) => {
      access.value = { kind: 'out', why: messageOf(error) };
    });
  }, []);
  const { kind } = access.value;
  if (kind === 'entering') return <p class="visually-hidden">Signing in …</p>;
  return kind === 'out' ? <SignIn /> : <SignedIn />;
}

function SignedIn() {
  useEffect(() => {
    const end = new AbortController();
    listenToKeys(end.signal);
    void followFleet(end.signal);
    void followEvents(end.signal);
    return () => end.abort();
  }, []);
  const { view, id } = place.value;
  const found = Object.hasOwn(VIEWS, view) ? VIEWS[view] : undefined;
  namesVersion.value;
  const label = id === null ? null : (nameOfSession(id) ?? nameOf(id));
  useEffect(() => {
    document.title = found === undefined ? 'Holdfast' : `${label ?? found.title} · Holdfast`;
  }, [view, label]);
  return (
    <Frame>
      {found === undefined ? (
        <Empty title="This view does not exist.">
          <a href="#/">Go to the map</a>
        </Empty>
      ) : (
        <Guarded key={`${view}/${id ?? ''}`}>
          {id !== null && found.one !== undefined ? (
            <Loaded load={found.one} props={{ id }} />
          ) : (
            <Loaded load={found.list} props={{}} />
          )}
        </Guarded>
      )}
    </Frame>
  );
}

/** Loads the code of a view, once. */
function Loaded<P extends object>({
  load,
  props,
}: {
  load: () => Promise<ComponentType<P>>;
  props: P;
}) {
  const [found, setFound] = useState<{ view: ComponentType<P> } | { error: unknown } | null>(null);
  useEffect(() => {
    load().then(
      (view) => setFound({ view }),
      (error: unknown) => setFound({ error }),
    );
  }, [load]);
  if (found === null) return <p class="quiet">Loading …</p>;
  if ('error' in found)
    return (
      <Empty title="Your browser could not load this view.">
        {messageOf(found.error)}
        <button type="button" onClick={() => location.reload()}>
          Reload the dashboard
        </button>
      </Empty>
    );
  return <found.view {...props} />;
}

/** Shows what failed in place of a view that throws. */
class Guarded extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <Empty title="This view has failed.">
        <code>{messageOf(this.state.error)}</code>
        <button type="button" onClick={() => this.setState({ error: null })}>
          Try again
        </button>
      </Empty>
    );
  }
}
