/** Every view: its title, its key, and where its code is. The code is loaded when the view is opened. */
import type { ComponentType } from 'preact';

export interface View {
  readonly title: string;
  /** After `g`. */
  readonly key: string;
  /** Keys that work too, and are not shown. */
  readonly otherKeys?: string;
  /** All of them. */
  list(): Promise<ComponentType>;
  /** One of them, by id. */
  one?(): Promise<ComponentType<{ id: string }>>;
}

/** In the order of the navigation. Addresses stay as they are, whatever the titles say: people have them in bookmarks. */
export const VIEWS: Readonly<Record<string, View>> = {
  '': { title: 'Map', key: 'h', list: async () => (await import('./views/map.tsx')).MapView },
  targets: {
    title: 'Targets',
    key: 'a',
    otherKeys: 'p',
    list: async () => (await import('./views/targets.tsx')).TargetsView,
    one: async () => (await import('./views/target.tsx')).TargetView,
  },
  members: {
    title: 'Instances',
    key: 'i',
    otherKeys: 'm',
    list: async () => (await import('./views/members.tsx')).MembersView,
    one: async () => (await import('./views/member.tsx')).MemberView,
  },
  timeline: {
    title: 'Timeline',
    key: 't',
    list: async () => (await import('./views/timeline.tsx')).TimelineView,
  },
  feed: { title: 'Feed', key: 'f', list: async () => (await import('./views/feed.tsx')).FeedView },
  leases: {
    title: 'Leases',
    key: 'l',
    list: async () => (await import('./views/leases.tsx')).LeasesView,
    one: async () => (await import('./views/lease.tsx')).LeaseView,
  },
  workflows: {
    title: 'Workflows',
    key: 'w',
    list: async () => (await import('./views/workflows.tsx')).WorkflowsView,
    one: async () => (await import('./views/workflow.tsx')).WorkflowView,
  },
  sessions: {
    title: 'Sessions',
    key: 's',
    list: async () => (await import('./views/sessions.tsx')).SessionsView,
    one: async () => (await import('./views/session.tsx')).SessionView,
  },
  doctor: {
    title: 'Doctor',
    key: 'd',
    list: async () => (await import('./views/doctor.tsx')).DoctorView,
  },
};
