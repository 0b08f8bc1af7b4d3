/** All views there are: what they are called, which keys lead to them, and where their code is. It is loaded when somebody looks. */
import type { ComponentType } from 'preact';

export interface View {
  readonly title: string;
  /** After `g`. */
  readonly key: string;
  /** All of them. */
  list(): Promise<ComponentType>;
  /** One of them, by id. */
  one?(): Promise<ComponentType<{ id: string }>>;
  /** Not in the navigation: reached from others. */
  readonly isHidden?: true;
}

export const VIEWS: Readonly<Record<string, View>> = {
  '': { title: 'Map', key: 'h', list: async () => (await import('./views/map.tsx')).MapView },
  timeline: {
    ...{ title: 'Timeline', key: 't' },
    list: async () => (await import('./views/timeline.tsx')).TimelineView,
  },
  feed: { title: 'Feed', key: 'f', list: async () => (await import('./views/feed.tsx')).FeedView },
  members: {
    ...{ title: 'Members', key: 'm' },
    list: async () => (await import('./views/members.tsx')).MembersView,
    one: async () => (await import('./views/member.tsx')).MemberView,
  },
  targets: {
    ...{ title: 'Targets', key: 'p', isHidden: true },
    list: async () => (await import('./views/map.tsx')).MapView,
    one: async () => (await import('./views/target.tsx')).TargetView,
  },
  leases: {
    ...{ title: 'Leases', key: 'l' },
    list: async () => (await import('./views/leases.tsx')).LeasesView,
    one: async () => (await import('./views/lease.tsx')).LeaseView,
  },
  workflows: {
    ...{ title: 'Workflows', key: 'w' },
    list: async () => (await import('./views/workflows.tsx')).WorkflowsView,
    one: async () => (await import('./views/workflow.tsx')).WorkflowView,
  },
  sessions: {
    ...{ title: 'Sessions', key: 's' },
    list: async () => (await import('./views/sessions.tsx')).SessionsView,
    one: async () => (await import('./views/session.tsx')).SessionView,
  },
  doctor: {
    ...{ title: 'Doctor', key: 'd' },
    list: async () => (await import('./views/doctor.tsx')).DoctorView,
  },
};
