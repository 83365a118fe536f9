// Requests come on descriptor 3, one JSON text a line: an object with code, or null to interrupt what runs.
// Answers go to standard output: the mark and one JSON object, behind whatever the code has printed.
const util = require('node:util');
const vm = require('node:vm');
const { Worker } = require('node:worker_threads');

const mark = process.argv[1];
const most = 10_000;
let interrupt = () => {};
globalThis.require = require;

// While code runs nothing else does in this thread, so another one listens.
const listen = `
  const { parentPort } = require('node:worker_threads');
  const input = require('node:fs').createReadStream(null, { fd: 3 });
  require('node:readline').createInterface({ input })
    .on('line', (line) => {
      const request = JSON.parse(line);
      if (request === null) process.kill(process.pid, 'SIGINT');
      else parentPort.postMessage(request);
    })
    .on('close', () => process.kill(process.pid, 'SIGKILL'));
`;

function run(code) {
  const script = (text) => vm.runInThisContext(text, { filename: 'repl', breakOnSigint: true });
  // As the prompt of node does: braces at the beginning are an object if they can be one.
  const forms = [code];
  if (/^\s*\{/.test(code)) forms.unshift(`(${code}\n)`);
  if (/\bawait\b/.test(code)) forms.push(`(async () => (${code}\n))()`, `(async () => {${code}\n})()`);
  for (const [at, form] of forms.entries()) {
    try {
      new vm.Script(form);
    } catch (error) {
      if (at + 1 < forms.length) continue;
      throw error;
    }
    return script(form);
  }
}

const written = (error) => String((error && error.stack) || util.inspect(error)).slice(0, most);
// An orderly end would wait for the thread that listens, which waits for us.
process.on('exit', () => process.kill(process.pid, 'SIGKILL'));
process.on('SIGINT', () => interrupt(new Error('the code was interrupted')));
process.on('uncaughtException', (error) => process.stdout.write(`Uncaught ${written(error)}\n`));

new Worker(listen, { eval: true }).on('message', async ({ code }) => {
  const told = { value: null, error: null };
  try {
    const stopped = new Promise((_, reject) => (interrupt = reject));
    const value = await Promise.race([run(code), stopped]);
    if (value !== undefined) told.value = util.inspect(value).slice(0, most);
  } catch (error) {
    told.error = written(error);
  }
  interrupt = () => {};
  process.stdout.write(`\x1e${mark}${JSON.stringify(told)}\n`);
});
