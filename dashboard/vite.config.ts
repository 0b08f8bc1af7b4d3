import { defineConfig } from 'vite';

/** Relative addresses: the server knows where it is mounted, this build does not. */
export default defineConfig({
  base: './',
  // Nothing is inlined: the server's policy allows no script, style or font that is not a file of the server.
  build: { assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: 'es2022' },
  // `npm run dashboard` in a second terminal, beside `npm start`: the dashboard as you edit it, with the data of the server.
  server: { proxy: { '/api': 'http://127.0.0.1:4747' } },
});
