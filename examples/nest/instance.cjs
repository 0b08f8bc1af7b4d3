/** One instance: `node instance.cjs NAME`. Compiles the application to CommonJS in memory, and starts it. */
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const ts = require('typescript');

const compilerOptions = {
  module: ts.ModuleKind.CommonJS,
  target: ts.ScriptTarget.ES2022,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

require.extensions['.cts'] = (module, path) => {
  const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions });
  module._compile(outputText, path);
};
require(join(__dirname, 'app.cts'));
