/** A guard for `@nestjs/schedule`, to copy as `once-per.ts`: each fire of a method runs on one instance, by `holdfast.once`. */
import type { Holdfast, OnceOptions } from 'holdfast';

type Job = (signal: AbortSignal) => Promise<void>;

let holdfast: Holdfast | undefined;

/** Call it once, before the application starts. */
export function useHoldfast(opened: Holdfast): void {
  holdfast = opened;
}

/**
 * Put it below `@Cron`. `options.per` is the time between two fires. The method gets an AbortSignal, which fires if the lease
 * is lost. Nest logs the error if no instance can run the job now.
 */
export function OncePer(key: string, options: OnceOptions) {
  return (_target: object, _name: string | symbol, method: TypedPropertyDescriptor<Job>): void => {
    const job = method.value as Job;
    method.value = async function guarded(this: unknown) {
      if (holdfast === undefined) throw new Error('call useHoldfast first');
      const result = await holdfast.once(key, options, ({ signal }) => job.call(this, signal));
      if (!result.ok && result.reason === 'quarantine')
        throw new Error(`'${key}' is not run: no grants for ${result.expiresInMs} ms`);
    };
  };
}
