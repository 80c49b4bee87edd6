// The client program of kafkajs: the flags and events of package program (../../program), in JavaScript.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import snappy from 'kafkajs-snappy';

const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = snappy;

const emit = (event, more = {}) => process.stdout.write(JSON.stringify({ event, ...more }) + '\n');
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const valueOf = (i) => `v-${i}-` + 'abcdefghij'.repeat(10);

// "stop" on standard input, or its end.
const stopped = new Promise((stop) => {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => line === 'stop' && stop());
  lines.on('close', stop);
});

// duration reads what Go prints: 0s, 2ms, 250ms, 1.5s.
const milliseconds = (text) => {
  const [, n, unit] = /^([\d.]+)(ms|s)$/.exec(text);
  return Number(n) * (unit === 's' ? 1000 : 1);
};

async function patiently(what, attempt) {
  for (const until = Date.now() + 120_000; ;) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() > until) throw new Error(`${what}: ${error.message}`);
      await sleep(100);
    }
  }
}

async function produce(kafka, job) {
  const compression = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy }[job.compression];
  const producer = kafka.producer({ idempotent: job.idempotent, maxInFlightRequests: 1 });
  await producer.connect();
  const records = Array.from({ length: job.count }, (_, n) => ({ key: `k-${job.from + n}`, value: valueOf(job.from + n) }));
  // A send is answered as a whole: record by record if they shall come slowly, otherwise some at a time.
  const size = job.pace > 0 ? 1 : 50;
  for (let at = 0; at < records.length; at += size) {
    const messages = records.slice(at, at + size);
    const [answer] = await producer.send({ topic: job.topic, acks: -1, compression, messages });
    for (const m of messages) {
      const where = size === 1 ? { partition: answer.partition, offset: Number(answer.baseOffset) } : { offset: -1 };
      emit('acked', { ...where, value: m.value });
    }
    await sleep(job.pace);
  }
  await producer.disconnect();
}

async function consume(kafka, job) {
  const consumer = kafka.consumer({ groupId: job.group, sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10_000, maxWaitTimeInMs: 200 });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => emit('assigned', { partitions: payload.memberAssignment[job.topic] ?? [] }));
  consumer.on(consumer.events.REBALANCING, () => emit('assigned', { partitions: [] }));
  let taken = 0;
  let full;
  const enough = new Promise((done) => { full = done; });
  await consumer.connect();
  await consumer.subscribe({ topics: [job.topic], fromBeginning: true });
  await consumer.run({
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat, commitOffsetsIfNecessary, uncommittedOffsets, isRunning, isStale }) => {
      for (const m of batch.messages) {
        if (!isRunning() || isStale() || (job.count > 0 && taken === job.count)) break;
        taken++;
        emit('record', { partition: batch.partition, offset: Number(m.offset), value: m.value.toString() });
        resolveOffset(m.offset);
      }
      await commitOffsetsIfNecessary(uncommittedOffsets());
      emit('committed');
      if (taken === job.count) full();
      await heartbeat();
    },
  });
  await Promise.race([stopped, enough]);
  await consumer.disconnect();
}

async function seek(kafka, job) {
  const admin = kafka.admin();
  await admin.connect();
  const offsets = await patiently('offsets by time', () => admin.fetchTopicOffsetsByTimestamp(job.topic, job.time));
  await admin.disconnect();
  for (const o of offsets) emit('offset', { partition: o.partition, offset: Number(o.offset) });
  // The library has no reader without a group.
  const consumer = kafka.consumer({ groupId: `${job.topic}-seek`, maxWaitTimeInMs: 200 });
  let left = job.count;
  let full;
  const enough = new Promise((done) => { full = done; });
  await consumer.connect();
  await consumer.subscribe({ topics: [job.topic] });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (left === 0) return;
      emit('record', { partition, offset: Number(message.offset), value: message.value.toString() });
      if (--left === 0) full();
    },
  });
  for (const o of offsets) consumer.seek({ topic: job.topic, partition: o.partition, offset: o.offset });
  await enough;
  await consumer.disconnect();
}

async function administer(kafka, job) {
  const admin = kafka.admin();
  await admin.connect();
  const same = (what, got, want) => {
    if (got !== want) throw new Error(`${what}: ${got}, expected ${want}`);
  };
  const unless = (type) => (error) => {
    if (error.type !== type && !error.errors?.some((e) => e.type === type) && !error.groups?.every((g) => g.error.type === type)) throw error;
  };
  const partitions = async (topic) => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length;
  const retention = async (topic) => {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] };
    return (await admin.describeConfigs({ resources: [resource] })).resources[0].configEntries[0].configValue;
  };
  for (let i = 0; i < job.count; i++) {
    const topic = `${job.topic}-${i}`;
    const group = `${job.topic}-group-${i}`;
    const config = { topic, numPartitions: 2, replicationFactor: 3, configEntries: [{ name: 'retention.ms', value: '3600000' }] };
    const calls = [
      ['create a topic', () => admin.createTopics({ topics: [config] })],
      ['describe it', async () => same('partitions', await partitions(topic), 2)],
      ['read its configuration', async () => same('retention.ms', await retention(topic), '3600000')],
      ['add partitions', () => admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] }).catch(unless('INVALID_PARTITIONS'))],
      ['describe the larger one', async () => same('partitions', await partitions(topic), 4)],
      ['alter its configuration', () => admin.alterConfigs({
        validateOnly: false,
        resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name: 'retention.ms', value: '7200000' }] }],
      })],
      ['read the new configuration', async () => same('retention.ms', await retention(topic), '7200000')],
      ['commit for a group', () => admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: '0' }] })],
      ['list groups', async () => same('listed', (await admin.listGroups()).groups.some((g) => g.groupId === group), true)],
      ['describe the group', async () => same('state', (await admin.describeGroups([group])).groups[0].state, 'Empty')],
      ['delete the group', () => admin.deleteGroups([group]).catch(unless('GROUP_ID_NOT_FOUND'))],
      ['delete the topic', () => admin.deleteTopics({ topics: [topic] }).catch(unless('UNKNOWN_TOPIC_OR_PARTITION'))],
    ];
    for (const [name, call] of calls) {
      await patiently(name, call);
      emit('admin', { value: name });
    }
    await sleep(job.pace);
  }
  await admin.disconnect();
}

const text = (name, value = '') => [name, { type: 'string', default: value }];
// Go's flags begin with one dash.
const args = process.argv.slice(3).map((a) => (/^-[a-z]+$/.test(a) ? `-${a}` : a));
const { values } = parseArgs({
  args,
  options: Object.fromEntries([
    text('bootstrap'), text('topic'), text('from', '0'), text('count', '0'), text('pace', '0s'), text('compression', 'none'),
    ['idempotent', { type: 'boolean', default: false }], text('group'), text('protocol'), text('assignor'), text('time', '0'),
  ]),
});
const job = { ...values, from: Number(values.from), count: Number(values.count), time: Number(values.time), pace: milliseconds(values.pace) };
const kafka = new Kafka({ clientId: 'client', brokers: job.bootstrap.split(','), logLevel: logLevel.ERROR, retry: { retries: 60, initialRetryTime: 100, maxRetryTime: 1000 } });

emit('client', { value: createRequire(import.meta.url)('kafkajs/package.json').version });
try {
  await { produce, consume, seek, admin: administer }[process.argv[2]](kafka, job);
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}
