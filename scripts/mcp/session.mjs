// A session of the official TypeScript SDK with `gripper mcp`: session.mjs SDK GRIPPER [URL TOKEN].
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const [sdk, gripper, url, token] = process.argv.slice(2);
const part = (name) => import(join(sdk, 'dist/esm', name));
const { Client } = await part('client/index.js');
const { StdioClientTransport } = await part('client/stdio.js');
const { StreamableHTTPClientTransport } = await part('client/streamableHttp.js');
const { ElicitRequestSchema } = await part('types.js');

const here = process.cwd();
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

async function connect(answer) {
    const asked = [];
    const client = new Client({ name: 'session', version: '1' }, { capabilities: answer ? { elicitation: {} } : {} });
    if (answer)
        client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
            asked.push(params.message);
            return answer === 'decline' ? { action: answer } : { action: 'accept', content: { decision: answer } };
        });
    const headers = { Authorization: `Bearer ${token}` };
    await client.connect(
        url
            ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
            : new StdioClientTransport({ command: gripper, args: ['mcp'], cwd: here, env: { ...process.env } }),
    );
    return { client, asked };
}

const text = (result) => result.content.filter((block) => block.type === 'text').map((block) => block.text).join('');
const call = (client, name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const bash = (client, command, options) => call(client, 'Bash', { command, description: 'a test' }, options);
const running = (command) => {
    try {
        return execFileSync('pgrep', ['-f', `^${command}`]).length > 0;
    } catch {
        return false;
    }
};

const commands = join(process.env.HOME, '.gripper/commands');
mkdirSync(commands, { recursive: true });
writeFileSync(join(commands, 'greet.md'), '---\nargument-hint: <who> [how]\n---\nGreet $who, now$how.\n');

const { client, asked } = await connect('allow once');
const names = (await client.listTools()).tools.map((tool) => tool.name);
for (const name of ['Bash', 'Edit', 'Read']) assert(names.includes(name), names);
const notes = join(here, 'notes.txt');
writeFileSync(notes, 'one\ntwo\n');
assert.match(text(await call(client, 'Read', { file_path: notes })), /two/);
await call(client, 'Edit', { file_path: notes, old_string: 'two', new_string: 'three' });
assert.equal(readFileSync(notes, 'utf8'), 'one\nthree\n');
writeFileSync(join(here, 'dot.png'), Buffer.from(png, 'base64'));
const seen = await call(client, 'Read', { file_path: join(here, 'dot.png') });
assert(seen.content.some((block) => block.type === 'image'), seen);
assert.equal((await client.readResource({ uri: 'gripper://todos' })).contents[0].text, '[]');

assert((await client.listPrompts()).prompts.some((prompt) => prompt.name === 'greet'));
const greeting = await client.getPrompt({ name: 'greet', arguments: { who: 'the world', how: ', please' } });
assert.equal(greeting.messages[0].content.text, 'Greet the world, now, please.');
await assert.rejects(client.getPrompt({ name: 'greet', arguments: { whom: 'x' } }), /takes no argument/);

const questions = asked.length;
rmSync(join(here, 'made'), { force: true });
assert(!(await bash(client, 'touch made')).isError && existsSync(join(here, 'made')));
assert(asked.length === questions + 1 && asked.at(-1).includes('touch made'), asked);
const reports = [];
const onprogress = (report) => reports.push(report.progress);
await bash(client, 'for n in 1 2 3; do echo $n; sleep 0.7; done', { onprogress });
assert(reports.length > 0);
await assert.rejects(bash(client, 'sleep 4712', { signal: AbortSignal.timeout(2000) }));
for (let tries = 0; running('sleep 4712'); tries++) {
    assert(tries < 100, 'a cancelled command runs on');
    await sleep(100);
}
await client.close();

for (const answer of ['decline', undefined]) {
    const { client, asked } = await connect(answer);
    const refused = await bash(client, 'touch refused');
    assert(refused.isError && !existsSync(join(here, 'refused')), refused);
    assert.equal(asked.length, answer ? 1 : 0);
    if (!answer) assert.match(text(refused), /Bash\(touch/);
    await client.close();
}
console.log('typescript sdk,', url ? 'http' : 'stdio');
